package report

import (
	"cmp"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// maxRows keeps a table readable; what is left out is counted, and is in the exports.
const maxRows = 240

// FigureSection is one kind of figures with its tables.
type FigureSection struct {
	ID, Caption string
	Figures     Figures
	Tables      []Table // several where one would be too wide
}

// opsPerTable is how many quantities stand side by side; the first table, of speeds, has all of its own.
const opsPerTable = 4

// figureKinds are the tables of figures, by the units of their quantities.
var figureKinds = []struct {
	id, caption string
	units       []string
}{
	{"speeds", "Speed", []string{"B/s"}},
	{"sizes", "Sizes", []string{"B"}},
	{"counts", "Bands and ratios", []string{"1"}},
	{"times", "Times of steps", []string{"s"}},
}

// figuresIn are the figures of all quantities in some units.
func (v *View) figuresIn(units []string) Figures {
	unitOf := map[string]string{}
	for i := range v.Result.Summaries {
		if h := Headline(&v.Result.Summaries[i]); h != nil {
			unitOf[v.Result.Summaries[i].Op] = h.Unit
		}
	}
	return v.FiguresOf(func(op string) bool { return slices.Contains(units, unitOf[op]) })
}

// tables makes the table of the first screen and those of sizes, times and pure numbers.
func (v *View) tables() {
	for _, k := range figureKinds {
		f := v.figuresIn(k.units)
		if len(f.Keys) == 0 {
			continue
		}
		v.Sections = append(v.Sections, FigureSection{k.id, k.caption, f, v.figureTables(k.id, k.caption, f)})
	}
	if t := v.sessionTable(); len(t.Rows) > 0 {
		v.Sections = append(v.Sections, FigureSection{"sessions", t.Caption, Figures{}, []Table{t}})
	}
	for _, r := range v.Result.Relations {
		v.Relations = append(v.Relations, relationTable(r))
	}
}

// figureTables prints the figures in tables that are no wider than a page, each
// with the rows that have something in it.
func (v *View) figureTables(id, caption string, f Figures) []Table {
	if id == "speeds" {
		return []Table{v.figureTable(id, caption, f)}
	}
	var out []Table
	chunks := slices.Collect(slices.Chunk(f.Ops, opsPerTable))
	for i, ops := range chunks {
		part := Figures{By: f.By, Ops: ops}
		for _, k := range f.Keys {
			if slices.ContainsFunc(ops, func(op string) bool { return f.By[k][op] != nil }) {
				part.Keys = append(part.Keys, k)
			}
		}
		name, title := id, caption
		if len(chunks) > 1 {
			name += "-" + Human(float64(i+1), "1")
			title += " (" + Human(float64(i+1), "1") + " of " + Human(float64(len(chunks)), "1") + ")"
		}
		out = append(out, v.figureTable(name, title, part))
	}
	return out
}

// figureTable prints rows of case × phase; each quantity is a group of columns:
// measured, interval, one published column a machine, ratio.
func (v *View) figureTable(id, caption string, f Figures) Table {
	t := Table{ID: id, Caption: caption, Columns: Columns("<case", "<phase")}
	var book notes
	groups := make([]opColumns, len(f.Ops))
	for i, op := range f.Ops {
		groups[i] = columnsOf(f, op)
		t.Columns = append(t.Columns, groups[i].columns()...)
	}
	same := v.sharedText(f)
	same.all = alike(f, f.Ops)
	if same.n == "" {
		t.Columns = append(t.Columns, Column{Title: "n", Text: true})
	}
	for _, general := range same.general {
		book.general(general)
	}
	for i, k := range f.Keys {
		if i == maxRows {
			book.general("Only the first " + Grouped(maxRows) + " of " + Grouped(int64(len(f.Keys))) + " rows are shown; `export` writes all.")
			break
		}
		row := []Cell{{Text: v.CaseName(k.CaseID), Class: "head", Title: Plain(k.CaseID, 300)}, {Text: PhaseName(k.Phase, k.Cycle)}}
		var ns []string
		for j, op := range f.Ops {
			s := f.By[k][op]
			row = append(row, groups[j].cells(s, same, &book)...)
			if s != nil && !slices.Contains(ns, SampleSize(s)) {
				ns = append(ns, SampleSize(s))
			}
		}
		if same.n == "" {
			row = append(row, Cell{Text: strings.Join(ns, "; "), Class: "muted"})
		}
		t.Rows = append(t.Rows, row)
	}
	if text := same.all.weakened(); text != "" {
		book.general(text)
	}
	if text := v.flushNote(); text != "" && id == "speeds" {
		book.general(text)
	}
	t.Notes = book.list
	if !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[1].Text != "" }) {
		t.Columns = slices.Delete(t.Columns, 1, 2) // no row has a phase
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], 1, 2)
		}
	}
	return t
}

// opColumns is what one quantity needs: a column appears only if a row fills it.
type opColumns struct {
	op       string
	scale    Scale
	interval bool
	on       []string // one published column each
	ratios   bool
}

func columnsOf(f Figures, op string) opColumns {
	o := opColumns{op: op, scale: f.scaleFor(op), on: f.PublishedOn(op)}
	o.interval = f.Any(op, func(s *result.Summary) bool { return Headline(s).CI != nil })
	o.ratios = f.Any(op, func(s *result.Summary) bool {
		return slices.ContainsFunc(s.Published, func(p result.PublishedValue) bool { return p.Ratio > 0 })
	})
	return o
}

func (o opColumns) columns() []Column {
	unit := ""
	if o.scale.Suffix != "" {
		unit = ", " + o.scale.Suffix
	}
	group := QuantityName(o.op)
	out := []Column{{Group: group, Title: "measured" + unit}}
	if o.interval {
		out = append(out, Column{Group: group, Title: "interval"})
	}
	for _, on := range o.on {
		title := "published"
		if len(o.on) > 1 && on != "" {
			title += ": " + Plain(on, 60)
		}
		out = append(out, Column{Group: group, Title: title})
		if o.ratios {
			out = append(out, Column{Group: group, Title: "ratio"})
		}
	}
	return out
}

// cells are the entries of one row for this quantity.
func (o opColumns) cells(s *result.Summary, same shared, book *notes) []Cell {
	out := make([]Cell, len(o.columns()))
	if s == nil {
		return out
	}
	h := Headline(s)
	out[0] = Cell{Text: o.scale.Number(h.Value)}
	if same.statistic == "" && s.Headline != "" && h.Unit == "B/s" {
		out[0].Marks = append(out[0].Marks, book.mark("Statistic: "+StatisticName(s.Headline)+"."))
	}
	if same.all.weakenedBeyond(s.Warnings) {
		out[0].Class = "warn"
		out[0].Marks = append(out[0].Marks, book.mark(same.all.beyond(s.Warnings)))
	}
	at := 1
	if o.interval {
		out[at] = o.intervalCell(h, same, book)
		at++
	} else if h.Why != "" && same.why == "" {
		out[0].Marks = append(out[0].Marks, book.mark("No interval: "+Plain(h.Why, 200)+"."))
	}
	for _, on := range o.on {
		out[at], at = o.publishedCell(s, on), at+1
		if o.ratios {
			out[at], at = o.ratioCell(s, on, book), at+1
		}
	}
	return out
}

func (o opColumns) intervalCell(h *result.Estimate, same shared, book *notes) Cell {
	if h.CI == nil {
		c := Cell{Text: "none", Class: "muted"}
		if h.Why != "" && same.why == "" {
			c.Marks = []int{book.mark("No interval: " + Plain(h.Why, 200) + ".")}
		}
		return c
	}
	c := Cell{Text: RangeText(o.scale, h.CI, h.Unit), Title: DescribeInterval(h.CI)}
	if same.ci == "" {
		c.Marks = []int{book.mark("Interval: " + DescribeInterval(h.CI) + ".")}
	}
	return c
}

// RangeText is an interval in words; where all values are one there is nothing to span.
func RangeText(s Scale, ci *result.CI, unit string) string {
	if s.Mixed != "" {
		s = ScaleOf(unit, ci.Low, ci.High)
		if (ci.Low == 0 || s.legible(ci.Low)) && ci.Low != ci.High {
			return RangeText(s, ci, unit) + " " + s.Suffix
		}
	}
	low, high := s.Number(ci.Low), s.Number(ci.High)
	if ci.Low != 0 && !s.legible(ci.Low) || ci.High != 0 && !s.legible(ci.High) {
		low, high = Human(ci.Low, unit), Human(ci.High, unit)
	}
	switch {
	case ci.Low == ci.High:
		return "no spread"
	case ci.Low < 0:
		return low + " to " + high
	}
	return low + "–" + high
}

func (o opColumns) publishedCell(s *result.Summary, on string) Cell {
	var texts, titles []string
	muted := ""
	for _, p := range s.Published {
		if p.On != on {
			continue
		}
		texts = append(texts, PublishedText(p))
		if p.Statistic != "" {
			titles = append(titles, "published as "+StatisticName(p.Statistic))
		}
		if !p.Comparable {
			muted = "muted"
		}
	}
	return Cell{Text: strings.Join(texts, "; "), Class: muted, Title: strings.Join(titles, "; ")}
}

func (o opColumns) ratioCell(s *result.Summary, on string, book *notes) Cell {
	var texts []string
	c := Cell{}
	for _, p := range s.Published {
		if p.On != on || p.Ratio <= 0 {
			continue
		}
		texts = append(texts, Ratio(p.Ratio))
		if e := ComparedEstimate(s, p); e != nil && e.Name != Headline(s).Name {
			c.Marks = append(c.Marks, book.mark("Ratio of another statistic than the one shown: "+StatisticName(e.Name)+", measured "+Human(e.Value, e.Unit)+"."))
		}
		if !p.Comparable {
			c.Class = "muted"
			c.Marks = append(c.Marks, book.mark("Not comparable: "+departed(s.Departures, on)+"."))
		}
	}
	c.Text = strings.Join(texts, "; ")
	return c
}

// departed says why a ratio to what was published for on is not comparable; a long list is on the first screen anyway.
func departed(list []string, on string) string {
	to := "published for " + cmp.Or(Plain(on, 200), "other conditions")
	switch {
	case len(list) > 4:
		return to + ", see the deviations"
	case len(list) == 0:
		return to
	}
	return to + "; " + Plain(strings.Join(list, "; "), 400)
}

// StatisticName names an estimator in words.
func StatisticName(name string) string {
	name, part, parted := strings.Cut(name, "@")
	if parted { // of files of one size only
		return StatisticName(name) + ", " + Plain(part, 60) + " files only"
	}
	switch name {
	case "aggregate":
		return "all bytes over all time"
	case "trimmed":
		return "20 % trimmed mean of the files"
	case "mean", "median":
		return name + " of the files"
	case "theil-sen":
		return "Theil–Sen slope of time on size"
	case "least-squares":
		return "least-squares slope of time on size"
	case "weighted":
		return "weighted least-squares slope of time on size"
	}
	return Plain(name, 60)
}

// shared is what all rows have in common and is said once under the table.
type shared struct {
	statistic, ci, why, n string
	general               []string
	all                   sameForAll
}

func (v *View) sharedText(f Figures) shared {
	var stats, cis, whys, ns []string
	on := map[string]bool{}
	missing, having := 0, 0
	for _, k := range f.Keys {
		for _, op := range f.Ops {
			s := f.By[k][op]
			if s == nil {
				continue
			}
			h := Headline(s)
			stats, ns = AppendNew(stats, h.Name), AppendNew(ns, SampleSize(s))
			if h.CI != nil {
				cis, having = AppendNew(cis, DescribeInterval(h.CI)), having+1
			} else if missing++; h.Why != "" {
				whys = AppendNew(whys, Plain(h.Why, 200))
			}
			for _, p := range s.Published {
				on[p.On] = true
			}
		}
	}
	out := shared{}
	if len(stats) == 1 && slices.ContainsFunc(f.Ops, func(op string) bool { return plan.Quantity(op).Unit() == "B/s" }) {
		out.statistic = StatisticName(stats[0])
		out.general = append(out.general, "Measured: "+out.statistic+".")
	}
	if len(cis) == 1 {
		out.ci = cis[0]
		out.general = append(out.general, "Interval: "+out.ci+".")
	}
	if len(whys) == 1 && (having == 0 || missing > 0) {
		out.why = whys[0]
		out.general = append(out.general, "Where there is no interval: "+out.why+".")
	}
	if len(ns) == 1 {
		out.n = ns[0]
		out.general = append(out.general, "n: "+out.n+" in each row.")
	}
	if f.ratios() {
		out.general = append(out.general, "Ratio: measured ÷ published.")
	}
	if len(on) == 1 {
		for text := range on {
			if text != "" {
				out.general = append(out.general, "Published: "+Plain(text, 200)+".")
			}
		}
	}
	return out
}

// ratios reports whether anything measured stands against a published figure.
func (f Figures) ratios() bool {
	return slices.ContainsFunc(f.Ops, func(op string) bool { return columnsOf(f, op).ratios })
}

func AppendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
