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

func renderMarkdown(v *View) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", md(v.Title))
	if v.Source != "" {
		fmt.Fprintf(&b, "After %s.\n\n", md(v.Source))
	}
	if v.Summary != "" {
		fmt.Fprintf(&b, "%s\n\n", md(v.Summary))
	}
	pairsMarkdown(&b, v.Facts)
	v.First.markdown(&b)
	claimsMarkdown(&b, v.Claims)
	listMarkdown(&b, v.DeviationsHeading, len(v.Deviations), func(i int) string {
		d := v.Deviations[i]
		return md(d.Text) + TextIf(d.Cases != "", " *("+md(d.Cases)+")*")
	})
	for _, t := range v.OtherTables() {
		tableMarkdown(&b, t.unfolded().ungrouped())
	}
	for _, s := range v.Sections {
		for _, t := range s.Tables {
			tableMarkdown(&b, t)
		}
	}
	for _, f := range v.Fits {
		tableMarkdown(&b, f.Table)
	}
	for _, t := range v.Relations {
		tableMarkdown(&b, t)
	}
	chartsMarkdown(&b, v.charts())
	listMarkdown(&b, "Not measured, or not in full", len(v.NotDone), func(i int) string {
		return "**" + md(v.NotDone[i].Name) + "**: " + md(v.NotDone[i].Value)
	})
	listMarkdown(&b, "Warnings", len(v.Warnings), func(i int) string {
		return md(v.Warnings[i].Text) + " *(" + md(v.Warnings[i].Where) + ")*"
	})
	listMarkdown(&b, "Formats", len(v.Legend), func(i int) string {
		return "**" + v.Legend[i].Name + "**: " + md(v.Legend[i].Value)
	})
	fmt.Fprint(&b, "## Settings\n\n")
	pairsMarkdown(&b, v.Settings)
	for _, h := range v.Hosts {
		pairsMarkdown(&b, h)
	}
	fmt.Fprint(&b, "## How to repeat\n\n")
	codeMarkdown(&b, "sh", strings.Join(v.Repeat, "\n"))
	if v.Canonical != "" {
		fmt.Fprint(&b, "## The plan as executed\n\n")
		codeMarkdown(&b, "toml", v.Canonical)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

func pairsMarkdown(b *bytes.Buffer, pairs []Pair) {
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
func claimsMarkdown(b *bytes.Buffer, groups []ClaimGroup) {
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

func claimMarkdown(c ClaimView, item string) string {
	text := md(c.Says) + " *(" + md(strings.Join(NonEmpty([]string{c.By, c.Scope}), ", ")) + ")*"
	for _, line := range NonEmpty([]string{c.Reason, c.Robust, TextIf(c.Here != "", "Here: "+c.Here)}) {
		text += item + md(line)
	}
	for _, e := range c.Evidence {
		text += item + md(e)
	}
	return text
}

func tableMarkdown(b *bytes.Buffer, t Table) {
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
