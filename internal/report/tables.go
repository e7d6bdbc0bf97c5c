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

// section is one kind of figures with its table.
type section struct {
	id, caption string
	figures     figures
	tables      []table // several where one would be too wide
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
func (v *view) figuresIn(units []string) figures {
	unitOf := map[string]string{}
	for i := range v.result.Summaries {
		if h := headline(&v.result.Summaries[i]); h != nil {
			unitOf[v.result.Summaries[i].Op] = h.Unit
		}
	}
	return v.figuresOf(func(op string) bool { return slices.Contains(units, unitOf[op]) })
}

// tables makes the table of the first screen and those of sizes, times and pure numbers.
func (v *view) tables() {
	for _, k := range figureKinds {
		f := v.figuresIn(k.units)
		if len(f.keys) == 0 {
			continue
		}
		v.sections = append(v.sections, section{k.id, k.caption, f, v.figureTables(k.id, k.caption, f)})
	}
	if t := v.sessionTable(); len(t.Rows) > 0 {
		v.sections = append(v.sections, section{"sessions", t.Caption, figures{}, []table{t}})
	}
	for _, r := range v.result.Relations {
		v.relations = append(v.relations, relationTable(r))
	}
}

// figureTables prints the figures in tables that are no wider than a page, each
// with the rows that have something in it.
func (v *view) figureTables(id, caption string, f figures) []table {
	if id == "speeds" {
		return []table{v.figureTable(id, caption, f)}
	}
	var out []table
	chunks := slices.Collect(slices.Chunk(f.ops, opsPerTable))
	for i, ops := range chunks {
		part := figures{by: f.by, ops: ops}
		for _, k := range f.keys {
			if slices.ContainsFunc(ops, func(op string) bool { return f.by[k][op] != nil }) {
				part.keys = append(part.keys, k)
			}
		}
		name, title := id, caption
		if len(chunks) > 1 {
			name += "-" + human(float64(i+1), "1")
			title += " (" + human(float64(i+1), "1") + " of " + human(float64(len(chunks)), "1") + ")"
		}
		out = append(out, v.figureTable(name, title, part))
	}
	return out
}

// figureTable prints rows of case × phase; each quantity is a group of columns:
// measured, interval, one published column a machine, ratio.
func (v *view) figureTable(id, caption string, f figures) table {
	t := table{ID: id, Caption: caption, Columns: []column{{"", "case", true}, {"", "phase", true}}}
	var book notes
	groups := make([]opColumns, len(f.ops))
	for i, op := range f.ops {
		groups[i] = columnsOf(f, op)
		t.Columns = append(t.Columns, groups[i].columns()...)
	}
	same := v.sharedText(f)
	same.all = alike(f, f.ops)
	if same.n == "" {
		t.Columns = append(t.Columns, column{"", "n", true})
	}
	for _, general := range same.general {
		book.general(general)
	}
	for i, k := range f.keys {
		if i == maxRows {
			book.general("Only the first " + grouped(maxRows) + " of " + grouped(int64(len(f.keys))) + " rows are shown; `export` writes all.")
			break
		}
		row := []cell{{Text: v.name(k.caseID), Class: "head", Title: plain(k.caseID, 300)}, {Text: cycled(k.phase, k.cycle)}}
		var ns []string
		for j, op := range f.ops {
			s := f.by[k][op]
			row = append(row, groups[j].cells(s, same, &book)...)
			if s != nil && !slices.Contains(ns, counted(s)) {
				ns = append(ns, counted(s))
			}
		}
		if same.n == "" {
			row = append(row, cell{Text: strings.Join(ns, "; "), Class: "muted"})
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
	if !slices.ContainsFunc(t.Rows, func(row []cell) bool { return row[1].Text != "" }) {
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
	scale    scale
	interval bool
	on       []string // one published column each
	ratios   bool
}

func columnsOf(f figures, op string) opColumns {
	o := opColumns{op: op, scale: f.scaleFor(op), on: f.publishedOn(op)}
	o.interval = f.some(op, func(s *result.Summary) bool { return headline(s).CI != nil })
	o.ratios = f.some(op, func(s *result.Summary) bool {
		return slices.ContainsFunc(s.Published, func(p result.PublishedValue) bool { return p.Ratio > 0 })
	})
	return o
}

func (o opColumns) columns() []column {
	unit := ""
	if o.scale.suffix != "" {
		unit = ", " + o.scale.suffix
	}
	group := words(o.op)
	out := []column{{group, "measured" + unit, false}}
	if o.interval {
		out = append(out, column{group, "interval", false})
	}
	for _, on := range o.on {
		title := "published"
		if len(o.on) > 1 && on != "" {
			title += ": " + plain(on, 60)
		}
		out = append(out, column{group, title, false})
		if o.ratios {
			out = append(out, column{group, "ratio", false})
		}
	}
	return out
}

// cells are the entries of one row for this quantity.
func (o opColumns) cells(s *result.Summary, same shared, book *notes) []cell {
	out := make([]cell, len(o.columns()))
	if s == nil {
		return out
	}
	h := headline(s)
	out[0] = cell{Text: o.scale.number(h.Value)}
	if same.statistic == "" && s.Headline != "" && h.Unit == "B/s" {
		out[0].Marks = append(out[0].Marks, book.mark("Statistic: "+statistic(s.Headline)+"."))
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
		out[0].Marks = append(out[0].Marks, book.mark("No interval: "+plain(h.Why, 200)+"."))
	}
	for _, on := range o.on {
		out[at], at = o.publishedCell(s, on), at+1
		if o.ratios {
			out[at], at = o.ratioCell(s, on, book), at+1
		}
	}
	return out
}

func (o opColumns) intervalCell(h *result.Estimate, same shared, book *notes) cell {
	if h.CI == nil {
		c := cell{Text: "none", Class: "muted"}
		if h.Why != "" && same.why == "" {
			c.Marks = []int{book.mark("No interval: " + plain(h.Why, 200) + ".")}
		}
		return c
	}
	c := cell{Text: span(o.scale, h.CI, h.Unit), Title: ciText(h.CI)}
	if same.ci == "" {
		c.Marks = []int{book.mark("Interval: " + ciText(h.CI) + ".")}
	}
	return c
}

// span is an interval in words; where all values are one there is nothing to span.
func span(s scale, ci *result.CI, unit string) string {
	if s.mixed != "" {
		s = scaleOf(unit, ci.Low, ci.High)
		if (ci.Low == 0 || s.legible(ci.Low)) && ci.Low != ci.High {
			return span(s, ci, unit) + " " + s.suffix
		}
	}
	low, high := s.number(ci.Low), s.number(ci.High)
	if ci.Low != 0 && !s.legible(ci.Low) || ci.High != 0 && !s.legible(ci.High) {
		low, high = human(ci.Low, unit), human(ci.High, unit)
	}
	switch {
	case ci.Low == ci.High:
		return "no spread"
	case ci.Low < 0:
		return low + " to " + high
	}
	return low + "–" + high
}

func (o opColumns) publishedCell(s *result.Summary, on string) cell {
	var texts, titles []string
	muted := ""
	for _, p := range s.Published {
		if p.On != on {
			continue
		}
		texts = append(texts, publishedText(p))
		if p.Statistic != "" {
			titles = append(titles, "published as "+statistic(p.Statistic))
		}
		if !p.Comparable {
			muted = "muted"
		}
	}
	return cell{Text: strings.Join(texts, "; "), Class: muted, Title: strings.Join(titles, "; ")}
}

func (o opColumns) ratioCell(s *result.Summary, on string, book *notes) cell {
	var texts []string
	c := cell{}
	for _, p := range s.Published {
		if p.On != on || p.Ratio <= 0 {
			continue
		}
		texts = append(texts, ratio(p.Ratio))
		if e := comparedWith(s, p); e != nil && e.Name != headline(s).Name {
			c.Marks = append(c.Marks, book.mark("Ratio of another statistic than the one shown: "+statistic(e.Name)+", measured "+human(e.Value, e.Unit)+"."))
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
	to := "published for " + cmp.Or(plain(on, 200), "other conditions")
	switch {
	case len(list) > 4:
		return to + ", see the deviations"
	case len(list) == 0:
		return to
	}
	return to + "; " + plain(strings.Join(list, "; "), 400)
}

// statistic names an estimator in words.
func statistic(name string) string {
	name, part, parted := strings.Cut(name, "@")
	if parted { // of files of one size only
		return statistic(name) + ", " + plain(part, 60) + " files only"
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
	return plain(name, 60)
}

// shared is what all rows have in common and is said once under the table.
type shared struct {
	statistic, ci, why, n string
	general               []string
	all                   sameForAll
}

func (v *view) sharedText(f figures) shared {
	var stats, cis, whys, ns []string
	on := map[string]bool{}
	missing, having := 0, 0
	for _, k := range f.keys {
		for _, op := range f.ops {
			s := f.by[k][op]
			if s == nil {
				continue
			}
			h := headline(s)
			stats, ns = appendNew(stats, h.Name), appendNew(ns, counted(s))
			if h.CI != nil {
				cis, having = appendNew(cis, ciText(h.CI)), having+1
			} else if missing++; h.Why != "" {
				whys = appendNew(whys, plain(h.Why, 200))
			}
			for _, p := range s.Published {
				on[p.On] = true
			}
		}
	}
	out := shared{}
	if len(stats) == 1 && slices.ContainsFunc(f.ops, func(op string) bool { return plan.Quantity(op).Unit() == "B/s" }) {
		out.statistic = statistic(stats[0])
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
				out.general = append(out.general, "Published: "+plain(text, 200)+".")
			}
		}
	}
	return out
}

// ratios reports whether anything measured stands against a published figure.
func (f figures) ratios() bool {
	return slices.ContainsFunc(f.ops, func(op string) bool { return columnsOf(f, op).ratios })
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
