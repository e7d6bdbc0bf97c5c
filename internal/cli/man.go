package cli

import (
	"context"
	_ "embed" // for man.tmpl
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"dmgbench/internal/imagetool"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:embed man.tmpl
var manTemplateText string

// manTemplate is the page of one command, filled in from a manPage. cobra's own
// generator of manual pages would bring two Markdown modules with it.
var manTemplate = template.Must(template.New("man").Funcs(template.FuncMap{
	"roff":     roffLines,
	"upper":    strings.ToUpper,
	"indented": func(s string) bool { return strings.HasPrefix(s, " ") },
}).Parse(manTemplateText))

// manPage is what the manual page of a command contains.
type manPage struct {
	Name       string // of the page: "dmgbench-history-prune"
	Short      string
	Usage      string
	Paragraphs []string // of the description; indented ones keep their lines
	Commands   []*cobra.Command
	Flags      [][2]string // "--rounds N" and its help
	Exits      [][2]string // status and meaning
	Example    string
	SeeAlso    []string // names of pages
}

// writeManPages is the command "man".
func (a *app) writeManPages(_ context.Context, args []string) error {
	a.chownAtExit(args[0])
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("making folder %q: %w", args[0], err)
	}
	return eachManPage(a.command.Root(), func(name, page string) error {
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644); err != nil {
			return fmt.Errorf("writing manual page %q: %w", name, err)
		}
		return nil
	})
}

// eachManPage calls write with the manual page of c and of every listed command
// below it. Equal programs give equal pages.
func eachManPage(c *cobra.Command, write func(name, page string) error) error {
	var page strings.Builder
	if err := manTemplate.Execute(&page, newManPage(c)); err != nil {
		return err
	}
	if err := write(pageName(c)+".1", page.String()); err != nil {
		return err
	}
	for _, sub := range documented(c) {
		if err := eachManPage(sub, write); err != nil {
			return err
		}
	}
	return nil
}

// newManPage splits the help of a command into the sections of its page.
func newManPage(c *cobra.Command) manPage {
	text, exits, _ := strings.Cut(c.Long, "EXIT STATUS\n")
	p := manPage{Name: pageName(c), Short: c.Short, Usage: c.UseLine(), Commands: listed(c), Example: c.Example,
		Paragraphs: strings.Split(strings.TrimSpace(text), "\n\n")}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			p.Flags = append(p.Flags, manFlag(f))
		}
	})
	// A line that starts with a number is a new status, others continue the
	// last.
	for line := range strings.Lines(exits) {
		status, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Trim(status, "0123456789") == "" {
			p.Exits = append(p.Exits, [2]string{status, strings.TrimSpace(meaning)})
		} else if last := len(p.Exits) - 1; last >= 0 { // the line continues the one above
			p.Exits[last][1] += "\n" + strings.TrimSpace(line)
		}
	}
	if c.HasParent() {
		p.SeeAlso = append(p.SeeAlso, pageName(c.Parent()))
	}
	for _, sub := range documented(c) {
		p.SeeAlso = append(p.SeeAlso, pageName(sub))
	}
	return p
}

// manFlag is a flag with the name of its value, and its help with the default.
func manFlag(f *pflag.Flag) [2]string {
	value, help := pflag.UnquoteUsage(f)
	if !slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
		help += " (default " + f.DefValue + ")"
	}
	return [2]string{strings.TrimSpace("--" + f.Name + " " + value), help}
}

// pageName is the name of a manual page without its section.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// listed are the subcommands that the help lists.
func listed(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return sub.Hidden || !sub.IsAvailableCommand() && sub.Name() != "help"
	})
}

// documented are the subcommands with a manual page: those that cobra adds have
// none.
func documented(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(listed(c), func(sub *cobra.Command) bool {
		return sub.Name() == "completion" || sub.Name() == "help"
	})
}

// roffLines escapes every line of a text.
func roffLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = imagetool.Roff(line)
	}
	return strings.Join(lines, "\n")
}
