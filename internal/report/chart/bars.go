package chart

import (
	"slices"
	"strings"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// rowsPerChart keeps a picture short enough for a screen; more rows make more
// pictures.
//
// A row of one bar takes 32 CSS pixels: 24 rows are some 800.
const rowsPerChart = 24

// barGroup is what the bars of one colour show: a figure for each row, nil
// where it has none.
type barGroup struct {
	name    string
	figures []*result.Summary
}

// bars draws a bar with its interval and its published value for each row and
// group. heads are the titles of the first two columns of the table.
func bars(c report.Chart, heads [2]string, rows []string, groups []barGroup) []report.Chart {
	top, values := 0.0, []float64{}
	for _, g := range groups {
		for _, s := range g.figures {
			if s == nil {
				continue
			}
			h := report.Headline(s)
			c.X.Unit, values = h.Unit, append(values, h.Value)
			// An interval of few rounds may reach many times the value: the
			// axis ends at three times the largest bar, where whiskers get an
			// arrow.
			top = max(top, h.Value)
			if h.CI != nil && report.IsFinite(h.CI.High) {
				top = max(top, min(h.CI.High, 3*h.Value))
			}
			// Values far beyond the bars are named at the edge.
			if v, comparable := report.ComparableValue(s); comparable || v <= 1.3*h.Value {
				top = max(top, v)
			}
		}
	}
	end := report.RoundUp(1.03 * top)
	c.X.Low, c.X.High = new(0.0), &end
	c.FixedLegend, c.Flipped = true, true
	// One unit for all parts, so that pictures of one quantity can be
	// compared.
	c.X.Scale = report.AxisScale(c.X.Unit, end, values...)
	sc := report.ColumnScale(c.X.Unit, append(values, end)...)
	c.Table.Columns = report.Columns(heads[0], heads[1], report.WithUnit("measured", sc), "interval", "published", "<n")
	return report.InParts(rows, rowsPerChart, func(part []string, offset int) report.Chart {
		one := c
		addBars(&one, part, offset, groups, sc)
		return one
	})
}

// addBars draws some of the rows; offset is the number of the first one.
func addBars(c *report.Chart, rows []string, offset int, groups []barGroup, sc report.Scale) {
	c.Height = 34 + len(rows)*(14+18*len(groups))
	c.Y.Categories = rows
	var statistics, ns []string
	published, uncomparable := false, false
	for _, g := range groups {
		s := report.Series{Role: "bar", Name: g.name}
		for i, row := range rows {
			figure := g.figures[offset+i]
			if figure == nil {
				continue
			}
			m := addFigure(c, figure, sc, row, g.name)
			m.X, m.Y = report.Headline(figure).Value, float64(i)
			m.Label = c.X.Scale.Number(m.X)
			published = published || m.Published > 0 && m.Comparable
			uncomparable = uncomparable || m.Published > 0 && !m.Comparable
			statistics = report.AppendNew(statistics, report.Statistic(figure))
			ns = report.AppendNew(ns, m.N)
			s.Marks = append(s.Marks, m)
		}
		c.Series = append(c.Series, s)
	}
	caption(c, "bars", data{"Sub": c.Sub, "Statistics": statistics, "Ns": ns, "Uncomparable": uncomparable,
		"Intervals": c.IntervalNote("Whiskers")})
	if published { // entries of the legend; the marks are in the series of the bars
		c.Series = append(c.Series, report.Series{Role: "published", Name: "published"})
	}
	if uncomparable {
		c.Series = append(c.Series, report.Series{Role: "uncomparable", Name: "published, not comparable"})
	}
}

// addFigure is a figure as a mark that has no place yet, with its row of the
// table; heads are the first cells of the row.
func addFigure(c *report.Chart, s *result.Summary, sc report.Scale, heads ...string) report.Mark {
	t := report.TextOf(s, sc)
	row := report.TextRow(heads[0], append(heads[1:], sc.Number(report.Headline(s).Value), t.Interval, t.Published,
		t.N)...)
	row[len(row)-1].Class = "muted"
	c.Table.Rows = append(c.Table.Rows, row)
	name := report.QuantityName(s.Op) + ": " + report.TextIf(len(s.Warnings) > 0, "! ") // "!" marks a doubtful figure
	m := report.Mark{CI: report.Headline(s).CI, Tip: tip("figure-tip", data{"Name": name, "Figure": t}), N: t.N}
	m.Published, m.Comparable = report.ComparableValue(s)
	return m
}

// figureGroup chooses the figure of a case that is drawn in one colour.
type figureGroup struct {
	name, op, phase string
	cycle           int
}

func (g figureGroup) of(f report.Figures, caseID string) *result.Summary {
	return f.By[report.FigureKey{CaseID: caseID, Phase: g.phase, Cycle: g.cycle}][g.op]
}

// figureBars draws the figures of one or more groups for every case that has
// one of them. The heading names up to two quantities; place is its end.
func (r *run) figureBars(id, place string, f report.Figures, groups []figureGroup) []report.Chart {
	var cases, rows, names []string
	for _, k := range f.Keys {
		if slices.ContainsFunc(groups, func(g figureGroup) bool { return g.of(f, k.CaseID) != nil }) &&
			!slices.Contains(cases, k.CaseID) {
			cases, rows = append(cases, k.CaseID), append(rows, r.CaseName(k.CaseID))
		}
	}
	list, rates := make([]barGroup, len(groups)), false
	for i, g := range groups {
		list[i].name, names = g.name, report.AppendNew(names, report.QuantityName(g.op))
		list[i].figures = report.Map(cases, func(id string) *result.Summary { return g.of(f, id) })
		rates = rates || slices.ContainsFunc(f.All(g.op), func(s *result.Summary) bool {
			return report.Headline(s).Unit == "B/s"
		})
	}
	few := report.TextIf(len(names) < 3, strings.Join(names, " and "))
	c := report.Chart{ID: id, X: report.Axis{Name: strings.Join(names, ", ")}}
	c.Heading = report.Capitalize(strings.TrimSpace(few+report.TextIf(rates, " speed")+" of each case")) + place
	if rates {
		c.X.Name = "speed"
	}
	return bars(c, [2]string{"<case", "<bars"}, rows, list)
}

// firstChart draws the main numbers.
func firstChart(r *run) []report.Chart {
	f, key := r.MainFigures()
	part := f.Rows(key)
	if len(part.Keys) == 0 || r.First.Numbers == nil {
		return nil
	}
	groups := report.Map(part.Ops, func(op string) figureGroup {
		return figureGroup{report.QuantityName(op), op, key.Phase, key.Cycle}
	})
	// Few rows fit the first screen: they make a single picture.
	return r.figureBars("first", report.PhaseSuffix(report.PhaseName(key.Phase, key.Cycle)), part, groups)[:1]
}

// speedCharts draw every rate by case and phase: one picture a quantity, or one
// for all where there is a single phase. Cycles are drawn along time elsewhere.
func speedCharts(r *run) []report.Chart {
	f := r.speeds()
	keys := report.Where(f.Keys, func(k report.FigureKey) bool { return k.Cycle == 0 })
	phases := report.AppendNew(nil, report.Map(keys, func(k report.FigureKey) string { return k.Phase })...)
	if len(phases) == 1 {
		groups := report.Map(f.Ops, func(op string) figureGroup {
			return figureGroup{name: report.QuantityName(op), op: op, phase: phases[0]}
		})
		return r.figureBars("speed", report.PhaseSuffix(phases[0]), f, groups)
	}
	var out []report.Chart
	for _, op := range f.Ops {
		var groups []figureGroup
		for _, phase := range phases {
			measured := func(s *result.Summary) bool { return s.Phase == phase && s.Cycle == 0 }
			if slices.ContainsFunc(f.All(op), measured) {
				name := report.FirstOf(report.Plain(phase, 40), report.QuantityName(op))
				groups = append(groups, figureGroup{name: name, op: op, phase: phase})
			}
		}
		if len(groups) > 0 {
			out = append(out, r.figureBars("speed-"+report.Slug(op), "", f, groups)...)
		}
	}
	return out
}

// speeds are the figures with a unit of rates, if the run has any.
//
// The section is absent in a run that timed no files.
func (r *run) speeds() report.Figures {
	for _, s := range r.Sections {
		if s.ID == "speeds" {
			return s.Figures
		}
	}
	return report.Figures{}
}

// encryptionCharts compare cases that differ in encryption alone, one picture a
// rate and phase, with a row for each pair of cases.
func encryptionCharts(r *run) []report.Chart {
	var out []report.Chart
	f := r.speeds()
	for _, op := range f.Ops {
		for _, p := range f.Phases(op) {
			var rows, values []string                     // of the key
			by := map[string]map[string]*result.Summary{} // by row and value
			for _, k := range f.Keys {
				if k.Phase == p.Phase && k.Cycle == p.Cycle && f.By[k][op] != nil {
					row, value := r.withoutEncryption(k.CaseID)
					if value == "" {
						continue
					}
					if by[row] == nil {
						rows, by[row] = append(rows, row), map[string]*result.Summary{}
					}
					by[row][value], values = f.By[k][op], report.AppendNew(values, value)
				}
			}
			rows = slices.DeleteFunc(rows, func(row string) bool { return len(by[row]) < 2 })
			groups := report.Map(values, func(value string) barGroup {
				return barGroup{value, report.Map(rows, func(row string) *result.Summary { return by[row][value] })}
			})
			phase := report.PhaseName(p.Phase, p.Cycle)
			c := report.Chart{ID: "encryption-" + report.Slug(op) + "-" + report.Slug(phase),
				X:       report.Axis{Name: "speed"},
				Heading: "What encryption costs: " + report.QuantityName(op) + report.PhaseSuffix(phase),
				Sub:     "Images that differ in encryption alone"}
			out = append(out, bars(c, [2]string{"<image", "<encryption"}, rows, groups)...)
		}
	}
	return out
}

// withoutEncryption is the name of a case without its encryption, and that; the
// encryption is "" where the case has none of the key.
func (r *run) withoutEncryption(id string) (name, encryption string) {
	var rest []string
	for _, kv := range r.caseOf(id).Keys {
		if text := report.KeyValue(kv[0], kv[1]); kv[0] == "encryption" {
			encryption = text
		} else if text != "" {
			rest = append(rest, text)
		}
	}
	return report.FirstOf(strings.Join(rest, " · "), "image"), encryption
}
