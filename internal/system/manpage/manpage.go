// Package manpage writes the manual pages of a program from the help of its
// commands. cobra's own generator would bring two Markdown modules with it.
package manpage

import (
	"bytes"
	_ "embed" // for man.tmpl
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed man.tmpl
var manTemplate string

// Command is a command with its subcommands: a *cobra.Command. The template
// calls more methods of it. It is an interface because hdiutil for Linux, which
// uses [Escape], does not link cobra.
type Command[C any] interface {
	CommandPath() string
	Name() string
	IsAvailableCommand() bool
	Commands() []C
}

// Write writes the page of a command and those of all commands below it as files
// NAME.1 into a folder, which must exist. Hidden commands have no page, nor has
// the completion, which cobra adds.
func Write[C Command[C]](dir string, command C) error {
	name := pageName(command)
	lines := func(text string) string {
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i, line := range lines {
			lines[i] = Escape(line)
		}
		return strings.Join(lines, "\n")
	}
	functions := template.FuncMap{"roff": lines, "pageName": pageName[C], "upper": strings.ToUpper}
	var page bytes.Buffer
	err := template.Must(template.New("man").Funcs(functions).Parse(manTemplate)).Execute(&page, command)
	if err == nil {
		text := bytes.Replace(page.Bytes(), []byte("\nEXIT STATUS\n"), []byte("\n.SH \"EXIT STATUS\"\n"), 1)
		err = os.WriteFile(filepath.Join(dir, name+".1"), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing manual page %q: %w", name, err)
	}
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" {
			if err := Write(dir, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageName is the name of a command's page.
func pageName[C Command[C]](c C) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Escape escapes a line for a manual page, so that it is not taken for a
// request, and dashes of options can be copied.
func Escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
