package selftest

import (
	"fmt"
	"strings"
)

// Page is docs/accuracy.md: what is promised and whether it is kept, then the studies.
func (r Report) Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	if !r.Full {
		b.WriteString("This is the short form, with few runs a figure and so with large errors.\n\n")
	}
	b.WriteString("| promise | bound | farthest figure | where | |\n|---|---|---|---|---|\n")
	for _, s := range r.Studies {
		for _, p := range s.Promises {
			answer := "**" + p.Answer() + "**"
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s |\n", p.Says, anchor(s.Title), p.Bound(), p.Found(), p.Where, answer)
		}
	}
	fmt.Fprintf(&b, pageAfter, r.Seed)
	b.WriteString(power(r))
	for _, s := range r.Studies {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", s.Title, s.Asks, s.How)
		for _, t := range s.Tables {
			b.WriteString(t.markdown())
		}
		if s.ID == "power" {
			b.WriteString("\n![How often a true difference is found, by rounds](accuracy-power.svg)\n")
		}
		for _, line := range s.Says {
			fmt.Fprintf(&b, "\n- %s", line)
		}
		if len(s.Says) > 0 {
			b.WriteString("\n")
		}
	}
	b.WriteString(pageTail)
	return b.String()
}

// power is the way to the study of small differences, which people ask for first.
func power(r Report) string {
	for _, s := range r.Studies {
		if s.ID == "power" {
			return fmt.Sprintf("How small a difference a run finds: [%s](#%s).\n", s.Title, anchor(s.Title))
		}
	}
	return ""
}

func (t Table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n\n| %s |\n|---|%s\n", t.Title, strings.Join(t.Head, " | "), strings.Repeat("--:|", len(t.Head)-1))
	for _, row := range t.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// anchor is a heading as GitHub links to it.
func anchor(title string) string {
	return strings.ReplaceAll(strings.Map(func(c rune) rune {
		switch {
		case c == ' ' || c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return -1
	}, title), " ", "-")
}

const pageHead = `<!-- Made by make accuracy; do not edit. -->
# Accuracy

Can the numbers be trusted? Each promise below was put to the test on a device whose truth is known: the simulated device takes
times by a stated law (rate, latency, noise of files, mounts and sessions, outliers, full caches, throttling, drift), and the whole
program runs on it, from the plan through runner, journal and analysis to the result. What the program says is then set against the law.

`

const pageAfter = `
A figure is drawn from many simulated runs and stands with its Monte Carlo standard error (±). The farthest figure of all that fall
under a promise is shown; a promise is kept where that figure lies within the bound, or outside it by no more than two of its errors. ` +
	"`make accuracy`" + ` makes this page anew, and with seed %d the same figures, but those of the harness's own cost, which are
measured on the machine that makes it. ` + "`dmgbench selftest`" + ` runs a short form of it in seconds on yours.

`

const pageTail = `
## What is not here

- A device is more than a law. What no law of these studies has (noise that depends on the size of a file, sessions that drift apart over
  weeks, a host that caches in secret) is not covered by these figures; warnings and departures name it where it is seen.
`
