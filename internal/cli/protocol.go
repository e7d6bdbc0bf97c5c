package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

// protocolWidth is the width of the text in characters without a terminal,
// maxProtocolWidth the largest.
const (
	protocolWidth    = 80
	maxProtocolWidth = 100
)

// protocol prints a plan as an article prints its method: what is measured, the
// files, and the steps with numbers.
type protocol struct {
	plan  *plan.Plan
	w     io.Writer
	width int
	steps int   // numbered so far
	err   error // of the first write that failed
}

// printProtocol prints a plan in lines of at most width characters.
func printProtocol(w io.Writer, p *plan.Plan, width int) error {
	t := &protocol{plan: p, w: w, width: width}
	t.item("", p.Title)
	if s := p.Source; s != nil {
		date := ""
		if !s.Date.IsZero() {
			date = s.Date.Format("2 January 2006")
		}
		t.item("", "after "+strings.Join(nonempty(s.Author, "“"+s.Title+"”", date), ", "))
		if s.URL != "" {
			t.line(printable(s.URL))
		}
	}
	if p.Summary != "" {
		t.line("")
		t.item("", p.Summary)
	}
	t.printCases()
	if len(p.Files) > 0 || t.has("stream") {
		t.printFiles()
	}
	t.line("\nPROTOCOL (in brackets: the phase by which tables and claims find a step)")
	t.printSteps()
	t.printFits()
	t.printTables()
	t.printClaims()
	return t.err
}

// line prints text and a line end. After a failed write it prints no more.
func (t *protocol) line(text string) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, text)
	}
}

// item prints text after a prefix, the next lines indented as far.
func (t *protocol) item(prefix, text string) {
	t.line(wrap(prefix, text, utf8.RuneCountInString(prefix), t.width))
}

// printCases prints the cases: axes, exclusions, additional cases, places, and
// the image that they have in common.
func (t *protocol) printCases() {
	p, cases := t.plan, t.plan.Cases()
	t.line(fmt.Sprintf("\nCASES: %d, in %s, each with a fresh container", len(cases), p.Run.RoundsText()))
	for _, a := range p.Axes {
		t.item("  "+a.Key+": ", strings.Join(a.Values, ", "))
	}
	for _, e := range p.Exclude {
		t.item("  not where ", e.Prose())
	}
	also := "  one where "
	if len(p.Axes) > 0 {
		also = "  and one where "
	}
	for _, e := range p.Extra {
		t.item(also, e.Prose())
	}
	if p.Run.Baseline {
		t.item("  ", "and a native folder of each place, in the same steps")
	}
	for _, m := range p.Manual {
		t.item("  by hand, "+m.Name+": ", strings.Join(m.Values, ", ")+". "+m.Instructions)
	}
	if names := p.Places(); len(names) > 0 {
		t.item("  places: ", strings.Join(names, ", ")+"; run needs "+onFlags(names, "DIR"))
	}
	if t.onlyFolders() {
		t.item("  in ", "a native folder, without an image")
	} else if image := imageText(p.Defaults); image != "" {
		t.item("  image, by default: ", image)
	}
	for _, in := range p.Inputs {
		t.item("  to bring, "+in.Name+": ", in.About)
	}
}

// onlyFolders reports whether the plan makes no image.
func (t *protocol) onlyFolders() bool {
	return !slices.ContainsFunc(t.plan.Cases(), func(c plan.Case) bool { return c.Settings.Target != "directory" })
}

// imageText describes the image that cases have unless an axis changes it, ""
// if the axes determine all of it.
func imageText(d plan.Settings) string {
	parts := nonempty(d.Format)
	if d.Size > 0 {
		parts = append(parts, d.Size.String())
	}
	if d.Encryption != "none" {
		parts = append(parts, d.Encryption)
	}
	if d.BandSize > 0 {
		parts = append(parts, "bands of "+d.BandSize.String())
	}
	parts = append(parts, strings.Join(d.Filesystems, ", else "))
	if d.Place != "" {
		parts = append(parts, "at the place “"+d.Place+"”")
	}
	return strings.Join(nonempty(parts...), ", ")
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

// printFiles prints the file sets with their number and size for the seed of
// the plan, and how files are written, read and compressed unless a step
// differs.
func (t *protocol) printFiles() {
	t.line("\nFILES")
	for i := range t.plan.Files {
		f := &t.plan.Files[i]
		n, bytes := 0, units.Bytes(0)
		for _, set := range f.Draw(t.plan.Run.Seed) {
			n += len(set)
			for _, size := range set {
				bytes += size
			}
		}
		t.item("  "+f.Name+": ", fmt.Sprintf("%s; %d in all, %s", f.Prose(), n, bytes.Human()))
	}
	d := t.plan.Defaults
	if t.has("write", "read") {
		t.printSettings("  timed: ", [][2]string{
			{"workers", numberText(d.Workers > 1, "%d files at once", d.Workers, "one file at a time")},
			{"block", numberText(d.Block > 0, "in calls of %s", d.Block, "each in one call")},
			{"sync", map[string]string{"none": "not flushed", "fsync": "each write with its fsync",
				"full": "each write flushed to the medium"}[d.Sync]},
			{"cache", map[string]string{"direct": "uncached", "buffered": "through the cache",
				"cold": "through the cache, from which files are evicted before they are read"}[d.Cache]},
		})
	}
	if t.has("stream") {
		t.printSettings("  compressed: ", [][2]string{
			{"codec", "by " + d.Codec},
			{"level", numberText(d.Level > 0, "at level %d", d.Level, "at its default level")},
			{"threads", numberText(d.Threads > 0, "%d threads", d.Threads, "one thread a CPU")},
		})
	}
}

// numberText is format with the number where the setting is given, else what
// happens by default.
func numberText(given bool, format string, number any, otherwise string) string {
	if given {
		return fmt.Sprintf(format, number)
	}
	return otherwise
}

// printSettings prints the texts of keys that are not an axis, as axes are
// among the cases. A text is a key and what it means.
func (t *protocol) printSettings(prefix string, texts [][2]string) {
	var parts []string
	for _, one := range texts {
		if !slices.ContainsFunc(t.plan.Axes, func(a plan.Axis) bool { return a.Key == one[0] }) {
			parts = append(parts, one[1])
		}
	}
	t.item(prefix, strings.Join(nonempty(parts...), ", "))
}

// printSteps numbers the steps through all blocks, and names the cases of
// blocks that are not for all cases.
func (t *protocol) printSteps() {
	conditional := false // the block before is of some cases only
	for i := range t.plan.Protocol {
		b := &t.plan.Protocol[i]
		switch {
		case len(b.When) > 0:
			t.line("")
			t.item("  ", "Only where "+b.When.Prose()+":")
		case conditional:
			t.line("\n  In all cases again:")
		}
		conditional = len(b.When) > 0
		for i := range b.Steps {
			t.steps++
			t.printStep(fmt.Sprintf("%4d. ", t.steps), &b.Steps[i])
		}
	}
}

// folderProse is the text of steps that differ where the plan makes no image.
var folderProse = map[string]string{"create": "make the folder", "attach": "open the folder",
	"detach": "leave the folder", "remount": "open the folder again"}

// printStep prints a step, and the steps inside it with letters.
func (t *protocol) printStep(number string, s *plan.Step) {
	text, end := s.Prose(), "."
	if before, ok := strings.CutSuffix(text, ":"); ok {
		text, end = before, ":"
	}
	if t.onlyFolders() {
		text = strings.ReplaceAll(cmp.Or(folderProse[s.Do], text), "the image", "the folder")
	}
	if s.Phase != "" {
		text += " (" + s.Phase + ")"
	}
	first, size := utf8.DecodeRuneInString(text)
	t.item(number, strings.ToUpper(string(first))+text[size:]+end)
	for i := range s.Steps {
		t.printStep(strings.Repeat(" ", len(number))+string(rune('a'+i%26))+". ", &s.Steps[i])
	}
}

// printFits prints the models that are fitted to the measurements.
func (t *protocol) printFits() {
	if len(t.plan.Fits) == 0 {
		return
	}
	t.line("\nFITTED")
	models := map[string]string{"line": "a straight line", "power": "a power law", "two-lines": "two straight lines"}
	for i := range t.plan.Fits {
		f := &t.plan.Fits[i]
		of := strings.ReplaceAll(fmt.Sprintf("%s over %s", f.Quantity, f.Along), "_", " ")
		points := strings.Join(f.Points, ", ")
		text := strings.TrimSpace(fmt.Sprintf("%s: %s of %s %s", f.Name, models[f.Model], of, points))
		if len(f.Where) > 0 {
			text += ", where " + f.Where.Prose()
		}
		if len(f.Predict) > 0 {
			text += "; it predicts " + strings.Join(f.Predict, ", ")
		}
		t.item("  - ", text)
	}
}

// printTables names the tables of the report.
func (t *protocol) printTables() {
	if len(t.plan.Tables) == 0 {
		return
	}
	t.line("\nTABLES")
	headings := func(lines []plan.TableLine) string {
		out := make([]string, len(lines))
		for i := range lines {
			out[i] = strings.Join(nonempty(lines[i].Group, lines[i].Heading()), " · ")
		}
		return strings.Join(out, "; ")
	}
	for i := range t.plan.Tables {
		table := &t.plan.Tables[i]
		t.item("  - ", table.Title)
		t.item("    columns: ", headings(table.Columns))
		t.item("    rows: ", headings(table.Rows))
	}
}

// printClaims prints the choices that the source leaves open, and the claims.
func (t *protocol) printClaims() {
	if len(t.plan.Choices) > 0 {
		t.line("\nLEFT OPEN BY THE SOURCE, CHOSEN HERE")
		for _, c := range t.plan.Choices {
			t.item("  - ", c)
		}
	}
	if len(t.plan.Claims) == 0 {
		return
	}
	t.line(fmt.Sprintf("\nJUDGED: %d published figures, %d claims", len(t.plan.Published), len(t.plan.Claims)))
	for _, c := range t.plan.Claims {
		t.item("  - ", c.Says+map[bool]string{true: " (ours)"}[c.By == "us"])
	}
}
