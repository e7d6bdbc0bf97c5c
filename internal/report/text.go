package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// TextOptions say how wide the terminal is and whether it shows colours.
type TextOptions struct {
	Width   int  // columns; 0 is 80, below 60 is taken as 60
	Color   bool // ANSI colours for verdicts and headings
	Verbose bool // all figures, verdicts and warnings, instead of one screen
}

// textWriter lays lines out in a given number of columns.
type textWriter struct {
	bytes.Buffer
	width int
	color bool
}

func renderText(v *View, o TextOptions) []byte {
	w := &textWriter{width: max(60, cmp.Or(o.Width, 80)), color: o.Color}
	if !o.Verbose {
		w.brief(v)
		return w.Bytes()
	}
	w.facts(v)
	v.First.text(w)
	for _, t := range v.OtherTables() {
		w.published(t)
	}
	for _, s := range v.terminalSections() {
		w.section(v, s)
	}
	w.fits(v.Fits)
	w.charts(v.charts())
	w.claims(v.Claims)
	if len(v.Deviations) > 0 {
		w.heading(fmt.Sprintf("%s (%d)", v.DeviationsHeading, len(v.Deviations)))
		for _, d := range v.Deviations {
			w.wrapped("  • ", d.Text+TextIf(d.Cases != "", " ["+d.Cases+"]"))
		}
	}
	if len(v.NotDone) > 0 {
		w.heading("Not measured, or not in full")
		for _, p := range v.NotDone {
			w.wrapped("  • ", p.Name+": "+p.Value)
		}
	}
	w.warnings(v)
	return w.Bytes()
}

// facts say what was measured, on what and when.
func (w *textWriter) facts(v *View) {
	w.wrapped("", w.paint("1", v.Title))
	w.wrapped("  ", TextIf(v.Source != "", "first published by "+v.Source))
	for _, f := range v.Facts {
		w.wrapped(fmt.Sprintf("  %-9s ", strings.ToLower(f.Name)), f.Value)
	}
}

func (w *textWriter) heading(text string) {
	fmt.Fprintln(w)
	w.wrapped("", w.paint("1", text))
}

// paint puts text in an ANSI style if colours are wanted.
func (w *textWriter) paint(style, text string) string {
	if !w.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// wrapped prints text behind a first-line prefix, later lines indented as far.
func (w *textWriter) wrapped(prefix, text string) {
	if text == "" {
		return
	}
	indent := strings.Repeat(" ", visible(prefix))
	room, line := w.width-visible(prefix), ""
	for _, word := range strings.Split(text, " ") {
		if line != "" && visible(line)+1+visible(word) > room {
			fmt.Fprintln(w, prefix+line)
			prefix, line = indent, ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, prefix+line)
}

// visible is the width without ANSI styles.
func visible(s string) int {
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			return Width(s)
		}
		end := strings.IndexByte(s[at:], 'm')
		if end < 0 {
			return Width(s)
		}
		s = s[:at] + s[at+end+1:]
	}
}

// section prints figures: a line for each case, below it one for each phase and quantity.
func (w *textWriter) section(v *View, s FigureSection) {
	f := s.Figures
	ops := slices.DeleteFunc(slices.Clone(f.Ops), func(op string) bool { return !onTerminal(op, f) })
	if len(ops) == 0 {
		return
	}
	w.heading(s.Caption)
	same := v.sharedText(f)
	if s.ID != "speeds" && !f.published() {
		w.compact(v, f, ops)
		return
	}
	all := alike(f, ops)
	grid := [][]string{{"", "", "measured", "interval", "published", "ratio", "n"}}
	heads := map[int]string{}
	last, greyed, warned := "", false, false
	for _, k := range f.Keys {
		for _, op := range ops {
			sum := f.By[k][op]
			if sum == nil {
				continue
			}
			if k.CaseID != last {
				heads[len(grid)], last = v.CaseName(k.CaseID), k.CaseID
			}
			row, grey, warn := textRow(sum, PhaseName(k.Phase, k.Cycle), f.scaleFor(op), all)
			if same.n != "" {
				row[len(row)-1] = ""
			}
			grid, greyed, warned = append(grid, row), greyed || grey, warned || warn
		}
	}
	w.narrow(w.grid(grid, heads, 2))
	for _, n := range same.general {
		w.wrapped("  ", n)
	}
	if greyed {
		w.wrapped("  ", "Ratios in brackets are not comparable: see the deviations.")
	}
	if slices.ContainsFunc(grid, func(row []string) bool { return strings.Contains(row[5], "*") }) {
		w.wrapped("  ", "* was published as another statistic, and is compared with that one: see the report.")
	}
	w.marks(all, warned)
}

// marks says once what weakens all figures above, and what the mark at single ones means.
func (w *textWriter) marks(all sameForAll, marked bool) {
	w.wrapped("  ", all.weakened())
	if marked {
		w.wrapped("  ", "! marks a figure with "+TextIf(len(all.warnings) > 0, "further ")+"warnings: see the report.")
	}
}

// terminalSections are the sections with sizes and counts in one table, if both
// stand without published figures.
func (v *View) terminalSections() []FigureSection {
	var out []FigureSection
	for _, s := range v.Sections {
		if last := len(out) - 1; s.ID == "counts" && last >= 0 && out[last].ID == "sizes" && !s.Figures.published() && !out[last].Figures.published() {
			both := append(slices.Clone(out[last].Figures.Ops), s.Figures.Ops...)
			out[last].Figures = v.FiguresOf(func(op string) bool { return slices.Contains(both, op) })
			out[last].Caption = "Sizes, bands and ratios"
			continue
		}
		out = append(out, s)
	}
	return out
}

// published reports whether anything published stands beside what the terminal shows.
func (f Figures) published() bool {
	return slices.ContainsFunc(f.Ops, func(op string) bool { return onTerminal(op, f) && len(f.PublishedOn(op)) > 0 })
}

// compact prints figures that have nothing published beside them: a column for
// each quantity, as many as fit.
func (w *textWriter) compact(v *View, f Figures, ops []string) {
	head := []string{""}
	for _, op := range ops {
		head = append(head, QuantityName(op))
	}
	grid, heads, last, warned := [][]string{head}, map[int]string{}, "", false
	all := alike(f, ops)
	for _, k := range f.Keys {
		row := []string{PhaseName(k.Phase, k.Cycle)}
		for _, op := range ops {
			text := ""
			if s := f.By[k][op]; s != nil {
				text = f.scaleFor(op).Text(Headline(s).Value)
				if all.weakenedBeyond(s.Warnings) {
					text, warned = "! "+text, true
				}
			}
			row = append(row, text)
		}
		if k.CaseID != last {
			heads[len(grid)], last = v.CaseName(k.CaseID), k.CaseID
		}
		grid = append(grid, row)
	}
	w.grid(grid, heads, 1)
	w.wrapped("  ", "Intervals, and what did not fit, are in the report.")
	w.marks(all, warned)
}

// fits prints the coefficients of each fit beside the published ones.
func (w *textWriter) fits(fits []FitView) {
	for _, f := range fits {
		w.heading(f.Table.Caption)
		grid := [][]string{{"", "measured", "interval", "published"}}
		for _, row := range f.Table.Rows {
			grid = append(grid, []string{row[0].Text, row[1].Text, row[2].Text, row[3].Text})
		}
		w.narrow(w.grid(grid, nil, 1))
		for _, n := range f.Table.Notes {
			w.wrapped("  ", n.Text)
		}
	}
}

// onTerminal leaves the times of steps, and what says little without a picture, to the report.
func onTerminal(op string, f Figures) bool {
	if strings.HasSuffix(op, "_time") {
		return len(f.PublishedOn(op)) > 0
	}
	return !slices.Contains([]string{"apparent", "host_free", "bands_full", "stream_out"}, op)
}

// textRow is a figure in words; one with a warning beyond those that are said elsewhere for all is marked.
func textRow(s *result.Summary, phase string, sc Scale, all sameForAll) (row []string, greyed, warned bool) {
	h := Headline(s)
	row = []string{phase, QuantityName(s.Op), sc.Text(h.Value), "", "", "", SampleSize(s)}
	if warned = all.weakenedBeyond(s.Warnings); warned {
		row[2] = "! " + row[2]
	}
	if h.CI != nil {
		row[3] = RangeText(sc, h.CI, h.Unit)
	}
	var texts, ratios []string
	for _, p := range s.Published {
		texts = append(texts, PublishedText(p))
		r := Ratio(p.Ratio)
		if e := ComparedEstimate(s, p); e != nil && e.Name != h.Name {
			r += "*"
		}
		if p.Ratio > 0 && !p.Comparable {
			r, greyed = "("+r+")", true
		}
		ratios = append(ratios, r)
	}
	row[4], row[5] = strings.Join(texts, "; "), strings.Join(ratios, "; ")
	return row, greyed, warned
}

// grid aligns columns: the first ones, of words, left, numbers right. Columns
// without a single entry are left out, and the last ones where the line is too short.
func (w *textWriter) grid(rows [][]string, heads map[int]string, left int) (dropped []string) {
	wide := make([]int, len(rows[0]))
	for _, row := range rows[1:] {
		for i, c := range row {
			wide[i] = max(wide[i], Width(c))
		}
	}
	total := 3
	for i, c := range rows[0] {
		if wide[i] > 0 {
			wide[i] = max(wide[i], Width(c))
			if total += wide[i] + 2; i > left && total > w.width {
				wide[i], total, dropped = 0, w.width, append(dropped, c)
			}
		}
	}
	for i, row := range rows {
		if name, ok := heads[i]; ok {
			w.wrapped("  ", w.paint("36", name))
		}
		line, empty := "   ", true
		for j, c := range row {
			if wide[j] == 0 {
				continue
			}
			empty = empty && (j < left || c == "")
			pad := strings.Repeat(" ", max(wide[j]-Width(c), 0))
			if j < left {
				line += " " + c + pad + " "
			} else {
				line += " " + pad + c + " "
			}
		}
		if !empty { // it has something in a column that did not fit
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
	return dropped
}

// narrow says which columns the terminal has no room for.
func (w *textWriter) narrow(dropped []string) {
	if len(dropped) > 0 {
		w.wrapped("  ", "No room for: "+strings.Join(dropped, ", ")+". See the report.")
	}
}

var verdictStyle = map[string]string{result.Holds: "32", result.DoesNotHold: "31", result.CannotTell: "33", result.NotMeasured: "2"}

func (w *textWriter) claims(groups []ClaimGroup) {
	if len(groups) == 0 {
		return
	}
	w.heading("Verdicts: " + CountVerdicts(groups))
	indent := strings.Repeat(" ", 17)
	for _, g := range groups {
		first, hang := "  "+w.pad(g)+" ", indent
		if g.Reason != "" {
			w.wrapped(first, g.Reason)
			first, hang = indent+"• ", indent+"  "
		}
		for _, c := range g.Claims {
			w.wrapped(first, c.Says+" ("+c.By+")")
			w.wrapped(hang, c.Reason)
			w.wrapped(hang, c.Robust)
			w.wrapped(hang, TextIf(c.Here != "", "here: "+c.Here))
		}
	}
}

// pad is the verdict in a column of its own.
func (w *textWriter) pad(g ClaimGroup) string {
	return w.paint(verdictStyle[g.Verdict], g.Word) + strings.Repeat(" ", max(14-Width(g.Word), 0))
}

func (w *textWriter) warnings(v *View) {
	if len(v.Warnings) == 0 {
		return
	}
	w.heading("Warnings: " + Grouped(int64(len(v.Warnings))))
	const most = 8
	for i, n := range v.Warnings {
		if i == most {
			w.wrapped("  ", "… and "+Grouped(int64(len(v.Warnings)-most))+" more in the report.")
			break
		}
		w.wrapped("  • ", n.Text+" ["+n.Where+"]")
	}
}
