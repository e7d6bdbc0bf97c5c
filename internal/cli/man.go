package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/imagetool"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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

// eachManPage calls write with the manual page of c and of every listed command below it.
func eachManPage(c *cobra.Command, write func(name, page string) error) error {
	if err := write(pageName(c)+".1", manPage(c)); err != nil {
		return err
	}
	for _, sub := range documented(c) {
		if err := eachManPage(sub, write); err != nil {
			return err
		}
	}
	return nil
}

// pageName is the name of a manual page without its section.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// listed are the subcommands that the help lists.
func listed(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return sub.Hidden || !sub.IsAvailableCommand() && sub.Name() != "help"
	})
}

// documented are the subcommands with a manual page: cobra's own have none.
func documented(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(listed(c), func(sub *cobra.Command) bool {
		return sub.Name() == "completion" || sub.Name() == "help"
	})
}

// manPage is the manual page of one command: its help in the sections that man(7) requires.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	name := pageName(c)
	b.WriteString(".\\\" Made from the help of the command: dmgbench man\n")
	fmt.Fprintf(&b, ".TH %s 1 \"\" dmgbench \"User Commands\"\n.SH NAME\n%s \\- %s\n",
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

// roffText writes paragraphs; those that start with a blank keep their lines.
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

// roffLines writes lines, escaped.
func roffLines(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(imagetool.Roff(strings.TrimRight(line, "\n")) + "\n")
	}
}

// roffExits writes a list of exit statuses and their meanings, and the text after it.
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

// roffFlags writes the section of the flags.
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

// roffSeeAlso writes the pages of the parent and of the subcommands.
func roffSeeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, pageName(c.Parent()))
	}
	for _, sub := range documented(c) {
		pages = append(pages, pageName(sub))
	}
	b.WriteString(".SH \"SEE ALSO\"\n")
	for i, p := range pages {
		fmt.Fprintf(b, ".BR %s (1)%s\n", imagetool.Roff(p), map[bool]string{true: ","}[i < len(pages)-1])
	}
}
