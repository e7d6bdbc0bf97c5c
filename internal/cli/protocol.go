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

// protocolWidth is the width of the text in characters without a terminal,
// maxProtocolWidth the largest.
const (
	protocolWidth    = 80
	maxProtocolWidth = 100
)

//go:embed protocol.tmpl
var protocolTemplate string

// protocol prints a plan as an article prints its method: what is measured, the
// files, and the steps with numbers. Its methods are functions of the template.
type protocol struct {
	plan  *plan.Plan
	width int
	text  strings.Builder // of the steps
}

// printProtocol prints a plan in lines of at most width characters.
func printProtocol(w io.Writer, p *plan.Plan, width int) error {
	t := &protocol{plan: p, width: width}
	return template.Must(template.New("protocol").Funcs(template.FuncMap{
		"item": t.item, "has": t.has, "onlyFolders": t.onlyFolders, "image": t.image, "files": t.files,
		"timed": t.timed, "compressed": t.compressed, "steps": t.steps, "fit": fitText, "headings": headings,
		"onFlags": onFlags, "list": joinNonempty,
		"join": func(list []string) string { return strings.Join(list, ", ") },
	}).Parse(protocolTemplate)).Execute(w, p)
}

// joinNonempty joins the texts that are not empty with commas.
func joinNonempty(parts ...string) string { return strings.Join(nonempty(parts...), ", ") }

// item is text after a prefix, the next lines indented as far.
func (t *protocol) item(prefix, text string) string {
	return wrap(prefix, text, utf8.RuneCountInString(prefix), t.width) + "\n"
}

// onlyFolders reports whether the plan makes no image.
func (t *protocol) onlyFolders() bool {
	return !slices.ContainsFunc(t.plan.Cases(), func(c plan.Case) bool { return c.Settings.Target != "directory" })
}

// image describes the image that cases have unless an axis changes it, "" if
// the axes determine all of it.
func (t *protocol) image() string {
	d := t.plan.Defaults
	return joinNonempty(d.Format, report.TextIf(d.Size > 0, d.Size.String()), strings.TrimPrefix(d.Encryption, "none"),
		report.TextIf(d.BandSize > 0, "bands of "+d.BandSize.String()), strings.Join(d.Filesystems, ", else "),
		report.TextIf(d.Place != "", "at the place “"+d.Place+"”"))
}

// has reports whether the protocol contains a step of one of these kinds.
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

// timed is how files are written and read unless a step differs.
func (t *protocol) timed() string {
	d := t.plan.Defaults
	return joinNonempty(
		t.setting("workers", d.Workers > 1, "%d files at once", d.Workers, "one file at a time"),
		t.setting("block", d.Block > 0, "in calls of %s", d.Block, "each in one call"),
		t.setting("sync", true, "%s", map[string]string{"none": "not flushed", "fsync": "each write with its fsync",
			"full": "each write flushed to the medium"}[d.Sync], ""),
		t.setting("cache", true, "%s", map[string]string{"direct": "uncached", "buffered": "through the cache",
			"cold": "through the cache, from which files are evicted before they are read"}[d.Cache], ""))
}

// compressed is how streams are compressed unless a step differs.
func (t *protocol) compressed() string {
	d := t.plan.Defaults
	return joinNonempty(
		t.setting("codec", true, "by %s", d.Codec, ""),
		t.setting("level", d.Level > 0, "at level %d", d.Level, "at its default level"),
		t.setting("threads", d.Threads > 0, "%d threads", d.Threads, "one thread a CPU"))
}

// setting is format with the value where it is given, else what happens by
// default; "" for a key that is an axis, as axes are among the cases.
func (t *protocol) setting(key string, given bool, format string, value any, otherwise string) string {
	switch {
	case slices.ContainsFunc(t.plan.Axes, func(a plan.Axis) bool { return a.Key == key }):
		return ""
	case given:
		return fmt.Sprintf(format, value)
	}
	return otherwise
}

// steps numbers the steps through all blocks, and names the cases of blocks
// that are not for all cases.
func (t *protocol) steps() string {
	number := 0
	conditional := false // the block before is of some cases only
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

// fitText describes a model that is fitted to the measurements.
func fitText(f plan.Fit) string {
	models := map[string]string{"line": "a straight line", "power": "a power law", "two-lines": "two straight lines"}
	of := strings.ReplaceAll(fmt.Sprintf("%s over %s", f.Quantity, f.Along), "_", " ")
	points := strings.Join(f.Points, ", ")
	text := strings.TrimSpace(fmt.Sprintf("%s: %s of %s %s", f.Name, models[f.Model], of, points))
	return text + report.TextIf(len(f.Where) > 0, ", where "+f.Where.Prose()) +
		report.TextIf(len(f.Predict) > 0, "; it predicts "+strings.Join(f.Predict, ", "))
}

// headings are the headings of the columns or rows of a table.
func headings(lines []plan.TableLine) string {
	out := make([]string, len(lines))
	for i := range lines {
		out[i] = strings.Join(nonempty(lines[i].Group, lines[i].Heading()), " · ")
	}
	return strings.Join(out, "; ")
}
