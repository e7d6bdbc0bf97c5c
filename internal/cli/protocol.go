package cli

import (
	"cmp"
	_ "embed" // for protocol.tmpl
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/system/units"
)

// protocolWidth is the width of lines in characters where the output is no terminal,
// maxProtocolWidth the upper limit.
const (
	protocolWidth    = 80
	maxProtocolWidth = 100
)

//go:embed protocol.tmpl
var protocolTemplate string

// protocol prints a plan as an article prints its method: what is measured, the
// files, and the steps with numbers. The template calls its methods, except step.
type protocol struct {
	plan  *plan.Plan
	width int
	text  strings.Builder // of the steps
}

// printProtocol prints a plan in lines of at most width characters.
func printProtocol(w io.Writer, p *plan.Plan, width int) error {
	t := &protocol{plan: p, width: width}
	return template.Must(template.New("protocol").Funcs(template.FuncMap{
		"item": t.item, "has": t.has, "onlyFolders": t.onlyFolders, "files": t.files, "setting": t.setting,
		"steps": t.steps, "onFlags": onFlags, "prose": func(value string) string { return valueProse[value] },
		"list":  func(parts ...string) string { return strings.Join(nonempty(parts...), ", ") },
		"join":  func(separator string, list ...string) string { return strings.Join(nonempty(list...), separator) },
		"all":   func(separator string, list []string) string { return strings.Join(list, separator) },
		"words": func(key any) string { return strings.ReplaceAll(fmt.Sprint(key), "_", " ") },
	}).Parse(protocolTemplate)).Execute(w, p)
}

// valueProse maps values of settings to their descriptions.
var valueProse = map[string]string{
	"none": "not flushed", "fsync": "each write with its fsync", "full": "each write flushed to the medium",
	"direct": "uncached", "buffered": "through the cache",
	"cold": "through the cache, from which files are evicted before they are read",
	"line": "a straight line", "power": "a power law", "two-lines": "two straight lines",
}

// item is text after a prefix, the next lines indented as far.
func (t *protocol) item(prefix, text string) string {
	return wrap(prefix, text, utf8.RuneCountInString(prefix), t.width) + "\n"
}

// onlyFolders reports whether every case measures a folder, so that no disk image is
// made.
func (t *protocol) onlyFolders() bool {
	return !slices.ContainsFunc(t.plan.Cases(), func(c plan.Case) bool { return c.Settings.Target != "directory" })
}

// has reports whether the plan has a step of one of these kinds, at any depth.
func (t *protocol) has(kinds ...string) bool {
	var within func([]plan.Step) bool
	within = func(steps []plan.Step) bool {
		return slices.ContainsFunc(steps, func(s plan.Step) bool {
			return slices.Contains(kinds, s.Do) || within(s.Steps)
		})
	}
	return slices.ContainsFunc(t.plan.Protocol, func(b plan.Block) bool { return within(b.Steps) })
}

// files describes a file set with the number and size of its files for the seed
// of the plan.
func (t *protocol) files(f plan.FileSet) string {
	n, bytes := 0, units.Bytes(0)
	for _, set := range f.Draw(t.plan.Run.Seed) {
		n += len(set)
		for _, size := range set {
			bytes += size
		}
	}
	return fmt.Sprintf("%s; %d in all, %s", f.Prose(), n, bytes.Human())
}

// setting returns text, the description of a setting, or "" if its key is an axis:
// the values of axes are listed with the cases.
func (t *protocol) setting(key, text string) string {
	isAxis := slices.ContainsFunc(t.plan.Axes, func(a plan.Choice) bool { return a.Key == key })
	return report.TextIf(!isAxis, text)
}

// steps numbers the steps through all blocks, and names the cases of blocks
// that are not for all cases.
func (t *protocol) steps() string {
	number := 0
	conditional := false // the previous block is only for some cases
	for i := range t.plan.Protocol {
		b := &t.plan.Protocol[i]
		switch {
		case len(b.When) > 0:
			t.text.WriteString("\n" + t.item("  ", "Only where "+b.When.Prose()+":"))
		case conditional:
			t.text.WriteString("\n  In all cases again:\n")
		}
		conditional = len(b.When) > 0
		for i := range b.Steps {
			number++
			t.step(fmt.Sprintf("%4d. ", number), &b.Steps[i])
		}
	}
	return t.text.String()
}

// folderProse is the text of steps that differ where the plan makes no image.
var folderProse = map[string]string{"create": "make the folder", "attach": "open the folder",
	"detach": "leave the folder", "remount": "open the folder again"}

// step writes a step, and the steps inside it with letters.
func (t *protocol) step(number string, s *plan.Step) {
	text, end := s.Prose(), "."
	if before, ok := strings.CutSuffix(text, ":"); ok {
		text, end = before, ":"
	}
	if t.onlyFolders() {
		text = strings.ReplaceAll(cmp.Or(folderProse[s.Do], text), "the image", "the folder")
	}
	text += report.TextIf(s.Phase != "", " ("+s.Phase+")")
	t.text.WriteString(t.item(number, report.Capitalize(text)+end))
	for i := range s.Steps {
		t.step(strings.Repeat(" ", len(number))+string(rune('a'+i%26))+". ", &s.Steps[i])
	}
}
