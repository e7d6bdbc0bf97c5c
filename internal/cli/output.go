package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"

	"golang.org/x/term"
)

// printable replaces control and format characters, so that no name in a run
// folder can control the terminal. Line ends and tabs stay. Everything that may
// come from a file or an argument is printed through it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// wrap breaks text between words into lines of at most width characters after a
// prefix on the first line and an indentation of indent blanks on the others. A
// longer word gets a line of its own.
func wrap(prefix, text string, indent, width int) string {
	var b strings.Builder
	b.WriteString(prefix)
	column := utf8.RuneCountInString(prefix)
	// Widths are counted in runes: the texts have no wide or combining
	// characters.
	for i, word := range strings.Fields(printable(text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// printTable prints rows of cells in aligned columns with two blanks between
// them. Lines are cut at width characters; 0 does not cut, which is for output
// that is not a terminal.
func printTable(w io.Writer, rows [][]string, width int) error {
	var aligned, lines strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = report.Clean(cell)
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	table.Flush()
	for line := range strings.Lines(aligned.String()) {
		line = strings.TrimRight(line, " \n")
		lines.WriteString(cut(line, cmp.Or(width, len(line))) + "\n")
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

// cut shortens text to n characters; an ellipsis marks what was removed.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(n-1, 0)]) + "…"
}

// quoted is a path as a shell takes it, without quotes where none are needed,
// for commands that users copy.
func quoted(path string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%"
	switch {
	case path == "" || strings.Trim(path, safe) != "":
		return engine.ShellQuote(path)
	case path[0] == '-': // not a flag
		return "./" + path
	}
	return path
}

// absolute is the absolute path, or path itself where the working folder is
// gone.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// existing is path, or the nearest folder above it that exists, as an absolute
// path: facts of a disk can be read before the run folder is made.
func existing(path string) string {
	path = absolute(path)
	for !exists(path) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

// nonempty are the texts that are not empty.
func nonempty(parts ...string) []string { return report.NonEmpty(slices.Clone(parts)) }

// unique are the different texts in the order of their first occurrence,
// without empty ones.
func unique(texts []string) (out []string) {
	for _, text := range nonempty(texts...) {
		out = report.AppendNew(out, text)
	}
	return out
}

// print prints lines of the answer.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintln(a.stdout, printable(fmt.Sprintf(format, args...)))
	return err
}

// terminal is the file of a stream that is a terminal. Streams of tests are not
// files.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// textOptions adapt reports to stdout: its width and colours on a terminal,
// neither elsewhere. NO_COLOR and the terminal "dumb" have no colours, see
// no-color.org.
func (a *app) textOptions() text.Options {
	var o text.Options
	if f := a.command.Flags().Lookup("verbose"); f != nil {
		o.Verbose = a.isSet("verbose")
	}
	f, ok := terminal(a.stdout)
	if !ok {
		return o
	}
	o.Color = a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = w
	}
	return o
}

// canAsk reports whether stdin and stderr are terminals, so that a user can
// read and answer a question. Scripts are never asked.
func (a *app) canAsk() bool {
	_, in := terminal(a.stdin)
	_, out := terminal(a.stderr)
	return in && out
}

// confirm asks a question and returns nil if the answer was yes; an empty answer
// counts as "no", which is an error with a hint. It returns the error of ctx when
// that is cancelled first, as by Ctrl-C.
func (a *app) confirm(ctx context.Context, question, hint string) error {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	typed := make(chan string, 1)
	go func() { // a read of a terminal cannot be cancelled; the program ends instead
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		typed <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return ctx.Err()
	case line := <-typed:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
		return usageError(hint, "aborted")
	}
}
