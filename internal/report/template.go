package report

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/system/units"
)

//go:embed templates
var templateFiles embed.FS

// templates are the texts of reports that are more than one sentence. What they
// print of foreign names goes through plain or clean.
//
// A template that cannot be executed is a mistake of this program, which every
// test of a page would meet: Render panics.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plain": Plain, "clean": Clean, "named": named, "first": FirstOf, "when": textWhen, "capitalize": Capitalize,
		"contains": strings.Contains, "lower": strings.ToLower, "prose": stepProse,
		"count": Count, "grouped": Grouped, "percent": Percent, "significant": units.Significant,
		"bytes": func(n int64) string { return Human(float64(n), "B") },
		"human": Human, "interval": DescribeInterval, "markdown": EscapeMarkdown, "items": itemsMarkdown,
		"fence": fence,
		"size":  func(n int64) string { return TextIf(n > 0, units.Bytes(n).Human()) },
		"less":  func(a, b int) int { return a - b },
		"list":  wording.JoinFacts, "glue": glue,
		"join": func(separator string, lists ...[]string) string { return glue(separator, slices.Concat(lists...)...) },
		"date": func(t time.Time, layout string) string { return TextIf(!t.IsZero(), t.UTC().Format(layout)) },
	}).ParseFS(templateFiles, "templates/*.tmpl"))
})

// Render is the text that a template makes of data.
func Render(name string, data any) string {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("rendering the template %q of this program: %v", name, err))
	}
	return b.String()
}

// blanks are what a template has between words: line feeds of its source too.
var blanks = regexp.MustCompile(`[ \n]+`)

// Phrase is the text of a template as one line.
//
// Templates are wrapped for reading; their line feeds are blanks of the text.
func Phrase(name string, data any) string {
	return strings.TrimSpace(blanks.ReplaceAllString(Render(name, data), " "))
}

// Lines are the lines of a template that are not empty.
func Lines(name string, data any) []string {
	return wording.NonEmpty(Map(strings.Split(Render(name, data), "\n"), strings.TrimSpace))
}

// pairs are the lines of a template that have a value after the tab.
//
// A tab cannot occur in a value: Clean removes control characters.
func pairs(name string, data any) []Pair {
	var out []Pair
	for line := range strings.Lines(Render(name, data)) {
		key, value, _ := strings.Cut(line, "\t")
		if value = strings.TrimSpace(value); value != "" {
			out = append(out, Pair{strings.TrimSpace(key), value})
		}
	}
	return out
}

// named writes a code of a result in words, such as the name of a statistic;
// sentences.txt has the words by "kind.code". Unknown codes are foreign text.
//
// The kinds are system, medium, ended, claimant, scope, statistic, model,
// quantity and doubt.
func named(kind, code string, limit int) string {
	return FirstOf(wording.Text(kind+"."+code), Plain(code, limit))
}

// textWhen is text where a value is neither zero nor empty, else "".
func textWhen(value any, text string) string {
	truth, _ := template.IsTrue(value)
	return TextIf(truth, text)
}

// stepProse is a step of the protocol with its phase, without those within it.
func stepProse(s plan.Step) string {
	return strings.TrimSuffix(Clean(s.Prose()), ":") + TextIf(s.Phase != "", " (“"+Plain(s.Phase, 40)+"”)")
}

// escapes keep foreign text from being markup, in the dialect of GitHub and in
// CommonMark.
var escapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;",
	"#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`, "&", "&amp;", "$", `\$`, "@", `\@`, "://", ":&#8203;//",
)

// EscapeMarkdown makes text safe in Markdown.
func EscapeMarkdown(s string) string { return escapes.Replace(s) }

// itemsMarkdown is a list with the lists in it.
func itemsMarkdown(all []Item) string {
	var b strings.Builder
	for _, item := range all {
		label := TextIf(item.Label != "", "**"+EscapeMarkdown(item.Label)+"**: ")
		note := TextIf(item.Note != "", " *("+EscapeMarkdown(item.Note)+")*")
		b.WriteString("- " + label + EscapeMarkdown(item.Text) + note + "\n")
		for line := range strings.Lines(itemsMarkdown(item.Items)) {
			b.WriteString("  " + line)
		}
	}
	return b.String()
}

// fence is more backticks than code has in a row.
func fence(code string) string {
	out := "```"
	for strings.Contains(code, out) {
		out += "`"
	}
	return out
}
