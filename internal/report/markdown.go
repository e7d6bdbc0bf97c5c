package report

import (
	"bytes"
	"fmt"
	"strings"
)

// escapeMarkdown keeps foreign text from being markup, in GitHub's dialect and CommonMark.
var escapeMarkdown = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;",
	"#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`, "&", "&amp;", "$", `\$`, "@", `\@`, "://", ":&#8203;//",
)

func md(s string) string { return escapeMarkdown.Replace(s) }

func renderMarkdown(v *view) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", md(v.title))
	if v.source != "" {
		fmt.Fprintf(&b, "After %s.\n\n", md(v.source))
	}
	if v.summary != "" {
		fmt.Fprintf(&b, "%s\n\n", md(v.summary))
	}
	pairsMarkdown(&b, v.facts)
	v.first.markdown(&b)
	claimsMarkdown(&b, v.claims)
	listMarkdown(&b, v.departed, len(v.departures), func(i int) string {
		d := v.departures[i]
		return md(d.Text) + zero(d.Cases != "", " *("+md(d.Cases)+")*")
	})
	for _, t := range v.otherTables() {
		tableMarkdown(&b, t.unfolded().ungrouped())
	}
	for _, s := range v.sections {
		for _, t := range s.tables {
			tableMarkdown(&b, t)
		}
	}
	for _, f := range v.fits {
		tableMarkdown(&b, f.table)
	}
	for _, t := range v.relations {
		tableMarkdown(&b, t)
	}
	chartsMarkdown(&b, v.charts())
	listMarkdown(&b, "Not measured, or not in full", len(v.notDone), func(i int) string {
		return "**" + md(v.notDone[i].Name) + "**: " + md(v.notDone[i].Value)
	})
	listMarkdown(&b, "Warnings", len(v.warnings), func(i int) string {
		return md(v.warnings[i].Text) + " *(" + md(v.warnings[i].Where) + ")*"
	})
	listMarkdown(&b, "Formats", len(v.legend), func(i int) string {
		return "**" + v.legend[i].Name + "**: " + md(v.legend[i].Value)
	})
	fmt.Fprint(&b, "## Settings\n\n")
	pairsMarkdown(&b, v.settings)
	for _, h := range v.hosts {
		pairsMarkdown(&b, h)
	}
	fmt.Fprint(&b, "## How to repeat\n\n")
	codeMarkdown(&b, "sh", strings.Join(v.repeat, "\n"))
	if v.canonical != "" {
		fmt.Fprint(&b, "## The plan as executed\n\n")
		codeMarkdown(&b, "toml", v.canonical)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

func pairsMarkdown(b *bytes.Buffer, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprint(b, "| | |\n|---|---|\n")
	for _, p := range pairs {
		fmt.Fprintf(b, "| %s | %s |\n", md(p.Name), md(p.Value))
	}
	fmt.Fprintln(b)
}

func listMarkdown(b *bytes.Buffer, heading string, n int, item func(int) string) {
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", heading)
	for i := range n {
		fmt.Fprintf(b, "- %s\n", item(i))
	}
	fmt.Fprintln(b)
}

// claimsMarkdown lists the verdicts; claims that share a reason are a list below it.
func claimsMarkdown(b *bytes.Buffer, groups []claimGroup) {
	listMarkdown(b, "Verdicts", len(groups), func(i int) string {
		g := groups[i]
		word := "**" + md(g.Word) + "**"
		if g.Reason == "" {
			return word + ": " + claimMarkdown(g.Claims[0], "\n  - ")
		}
		text := word + ", " + md(g.Reason)
		for _, c := range g.Claims {
			text += "\n  - " + claimMarkdown(c, "\n    - ")
		}
		for _, e := range g.Common {
			text += "\n  - " + md(e)
		}
		return text
	})
}

func claimMarkdown(c claimView, item string) string {
	text := md(c.Says) + " *(" + md(strings.Join(nonEmpty([]string{c.By, c.Scope}), ", ")) + ")*"
	for _, line := range nonEmpty([]string{c.Reason, c.Robust, zero(c.Here != "", "Here: "+c.Here)}) {
		text += item + md(line)
	}
	for _, e := range c.Evidence {
		text += item + md(e)
	}
	return text
}

func tableMarkdown(b *bytes.Buffer, t table) {
	fmt.Fprintf(b, "## %s\n\n", md(t.Caption))
	for _, c := range t.Columns {
		fmt.Fprintf(b, "| %s ", md(strings.TrimSpace(c.Group+" "+c.Title)))
	}
	fmt.Fprint(b, "|\n")
	for _, c := range t.Columns {
		fmt.Fprint(b, map[bool]string{true: "|:---", false: "|---:"}[c.Text])
	}
	fmt.Fprint(b, "|\n")
	for _, row := range t.Rows {
		for _, c := range row {
			text := md(c.Text)
			if c.Class == "muted" && text != "" {
				text = "*" + text + "*"
			}
			for _, m := range c.Marks {
				text += fmt.Sprintf(" (%d)", m)
			}
			fmt.Fprintf(b, "| %s ", text)
		}
		fmt.Fprint(b, "|\n")
	}
	fmt.Fprintln(b)
	for _, n := range t.Notes {
		mark := ""
		if n.Mark > 0 {
			mark = fmt.Sprintf("(%d) ", n.Mark)
		}
		fmt.Fprintf(b, "%s%s  \n", mark, md(n.Text))
	}
	fmt.Fprintln(b)
}

// codeMarkdown fences text with more backticks than it has in a row.
func codeMarkdown(b *bytes.Buffer, language, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(b, "%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(text, "\n"), fence)
}
