package cli

import (
	"cmp"
	"context"
	_ "embed" // for man.tmpl
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/selftest"
	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

//go:embed man.tmpl
var manTemplateText string

// manTemplate is the page of one command. cobra's own generator of manual pages
// would bring two Markdown modules with it.
var manTemplate = template.Must(template.New("man").Funcs(template.FuncMap{
	"pageName": pageName, "documented": documented, "flags": manFlags, "exits": manExits,
	"paragraphs": func(long string) []string { // the indented ones keep their lines
		text, _, _ := strings.Cut(long, "EXIT STATUS\n")
		return strings.Split(strings.TrimSpace(text), "\n\n")
	},
	"roff": func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = imagetool.Roff(line)
		}
		return strings.Join(lines, "\n")
	},
	"upper":    strings.ToUpper,
	"indented": func(s string) bool { return strings.HasPrefix(s, " ") },
}).Parse(manTemplateText))

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
// below it, except the one that cobra adds. Equal programs give equal pages.
func eachManPage(c *cobra.Command, write func(name, page string) error) error {
	var page strings.Builder
	if err := manTemplate.Execute(&page, c); err != nil {
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

// manFlags are the flags of a command with the names of their values, and their
// help with the default.
func manFlags(c *cobra.Command) (rows [][2]string) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, help := pflag.UnquoteUsage(f)
		if !slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
			help += " (default " + f.DefValue + ")"
		}
		rows = append(rows, [2]string{strings.TrimSpace("--" + f.Name + " " + value), help})
	})
	return rows
}

// manExits are the exit statuses at the end of a help text with their meanings.
func manExits(long string) (rows [][2]string) {
	_, exits, _ := strings.Cut(long, "EXIT STATUS\n")
	for line := range strings.Lines(exits) {
		status, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Trim(status, "0123456789") == "" {
			rows = append(rows, [2]string{status, strings.TrimSpace(meaning)})
		} else if last := len(rows) - 1; last >= 0 { // the line continues the one above
			rows[last][1] += "\n" + strings.TrimSpace(line)
		}
	}
	return rows
}

// pageName is the name of a manual page without its section.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// documented are the subcommands with a manual page: those that are listed,
// except the one that cobra adds.
func documented(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "completion"
	})
}

// printVersion is the command "version". The commit is marked as changed unless
// the sources were unchanged.
func (a *app) printVersion(context.Context, []string) error {
	t, revision, mark := tool(), "unknown", ""
	b, _ := debug.ReadBuildInfo()
	for _, s := range cmp.Or(b, &debug.BuildInfo{}).Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true" && sources != "unchanged":
			mark = " (changed)"
		}
	}
	return a.print("%s %s\n%s %s/%s\ncommit %s%s", t.Name, t.Version, t.Go, t.OS, t.Arch, revision, mark)
}

// released is the version of a build without version control, such as that of a
// package manager. The linker sets it: -X dmgbench/internal/cli.released=1.2.3.
var released string

// sources is "unchanged" where the Makefile found every file of the program as
// it was committed; the linker sets it: -X
// dmgbench/internal/cli.sources=unchanged. Go itself marks a build as modified
// for any changed file in the clone, such as a new plan.
var sources string

// tool identifies this program in results.
func tool() result.Tool {
	// go install and go build stamp a version if there is one.
	version := cmp.Or(released, "(devel)")
	if b, ok := debug.ReadBuildInfo(); ok && released == "" {
		version = cmp.Or(versionOf(b.Main.Version, sources), version)
	}
	return result.Tool{Name: "dmgbench", Version: version, Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// versionOf is the version that Go stamped, without the mark of a modified
// clone where the sources are unchanged. Go 1.24 and later append "+dirty", or
// ".dirty" after build metadata.
func versionOf(stamped, sources string) string {
	if sources == "unchanged" {
		return strings.TrimSuffix(strings.TrimSuffix(stamped, "+dirty"), ".dirty")
	}
	return stamped
}

// schemas are the documents with a schema.
var schemas = map[string]func() []byte{"plan": plan.JSONSchema, "result": result.JSONSchema,
	"comparison": analysis.ComparisonSchema}

// printSchema is the command "schema".
func (a *app) printSchema(_ context.Context, args []string) error {
	schema := schemas[args[0]]
	if schema == nil {
		return usageError("", "printing schema %q: it is not one of %s", args[0],
			strings.Join(slices.Sorted(maps.Keys(schemas)), ", "))
	}
	_, err := a.stdout.Write(schema())
	return err
}

// runSelftest is the command "selftest". A promise that is not kept is an
// error.
func (a *app) runSelftest(ctx context.Context, _ []string) error {
	seed, _ := a.command.Flags().GetUint64("seed")
	r, err := selftest.Run(ctx, selftest.Options{Seed: seed, Only: a.list("study")})
	if err != nil {
		return err
	}
	if a.text("format") == "json" {
		err = a.writeJSON(r)
	} else {
		_, err = a.stdout.Write([]byte(r.Text()))
	}
	if err == nil && !r.Kept {
		err = errors.New("testing the numbers: not every promise is kept")
	}
	return err
}
