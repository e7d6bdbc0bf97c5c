package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/imagetool"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", GroupID: "maintain", Args: between(1, 1, "DIR"), Hidden: true,
		Short: "write the manual pages",
		Long: `Write a manual page for each command, made of its help, into the folder DIR,
which is made if need be. The page of the work-alike is printed by dmgbench
hdiutil man.

EXIT STATUS
  0  written
  1  error
  2  bad usage`,
		Example: "  dmgbench man dist/man",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.leaves(args[0])
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making folder %q: %w", args[0], err)
			}
			return eachPage(cmd.Root(), func(name, page string) error {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644); err != nil {
					return fmt.Errorf("writing manual page %q: %w", name, err)
				}
				return nil
			})
		},
	}
}

// eachPage gives the manual page of every command that the help lists; equal programs give equal bytes.
func eachPage(root *cobra.Command, write func(name, page string) error) error {
	var walk func(*cobra.Command) error
	walk = func(c *cobra.Command) error {
		if err := write(pageName(c)+".1", manPage(c)); err != nil {
			return err
		}
		for _, sub := range listed(c) {
			if sub.Name() == "completion" || sub.Name() == "help" { // cobra's own, in a form of its own
				continue
			}
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root)
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func listed(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if !sub.Hidden && (sub.IsAvailableCommand() || sub.Name() == "help") {
			out = append(out, sub)
		}
	}
	return out
}

// manPage is the page of one command: its help in the sections that man(7) names.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	name := pageName(c)
	fmt.Fprintf(&b, ".\\\" Made from the help of the command: dmgbench man\n.TH %s 1 \"\" dmgbench \"User Commands\"\n.SH NAME\n%s \\- %s\n",
		imagetool.Roff(strings.ToUpper(name)), imagetool.Roff(name), imagetool.Roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", imagetool.Roff(c.UseLine()))
	text, exits, _ := strings.Cut(c.Long, "EXIT STATUS\n")
	b.WriteString(".SH DESCRIPTION\n")
	roffText(&b, text)
	if subs := listed(c); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", imagetool.Roff(sub.Name()), imagetool.Roff(sub.Short))
		}
	}
	roffFlags(&b, c)
	if exits != "" {
		b.WriteString(".SH \"EXIT STATUS\"\n")
		roffExits(&b, exits)
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		roffLines(&b, c.Example)
		b.WriteString(".fi\n")
	}
	roffSeeAlso(&b, c)
	return b.String()
}

// roffText writes paragraphs; lines that begin with blanks stand as they are.
func roffText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			b.WriteString(".nf\n")
			roffLines(b, paragraph)
			b.WriteString(".fi\n")
			continue
		}
		roffLines(b, paragraph)
	}
}

func roffLines(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(imagetool.Roff(strings.TrimRight(line, "\n")) + "\n")
	}
}

// roffExits writes a list of numbers and meanings, with what follows behind it.
func roffExits(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		number, meaning, ok := strings.Cut(strings.TrimPrefix(line, "  "), " ")
		switch {
		case strings.TrimSpace(line) == "":
			b.WriteString(".PP\n")
		case ok && number != "" && strings.HasPrefix(line, "  "):
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", imagetool.Roff(number), imagetool.Roff(strings.TrimSpace(meaning)))
		default:
			b.WriteString(imagetool.Roff(strings.TrimSpace(line)) + "\n")
		}
	}
}

func roffFlags(b *strings.Builder, c *cobra.Command) {
	first := true
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString(".SH OPTIONS\n")
			first = false
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n", imagetool.Roff(strings.TrimSpace(name+" "+value)))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		b.WriteString(imagetool.Roff(usage) + "\n")
	})
}

func roffSeeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, pageName(c.Parent()))
	}
	for _, sub := range listed(c) {
		if sub.Name() != "completion" && sub.Name() != "help" {
			pages = append(pages, pageName(sub))
		}
	}
	b.WriteString(".SH \"SEE ALSO\"\n")
	for i, p := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", imagetool.Roff(p), end)
	}
}
