package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// charts are all pictures of the report in page order.
// Charts are all charts of the report, in order.
func (v *View) Charts() []Chart {
	sets := v.fileSets()
	first, bars := v.firstChart(v.barCharts())
	out := slices.Concat(first, bars, v.encryptionCharts(), v.costCharts(sets), v.sweepCharts(), v.sizeCharts(sets), v.heatCharts(sets), v.timeCharts(sets), v.residualCharts(sets), v.stripCharts(sets),
		v.lifeCycles(), v.lifeCharts(), v.driftChart(), v.relationCharts())
	nameFiles(out)
	return out
}

// cycleCharts draw each rate along the cycles of a repeat block.
func (v *View) cycleCharts() []Chart {
	var out []Chart
	for _, s := range v.Sections {
		if s.ID != "speeds" {
			continue
		}
		for _, op := range s.Figures.Ops {
			c := v.cycleChart(op, s.Figures)
			if len(c.Series) > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

func (v *View) cycleChart(op string, f Figures) Chart {
	type curve struct{ caseID, phase string }
	points := map[curve][]FigureKey{}
	var order []curve
	for _, k := range f.Keys {
		if k.Cycle > 0 && f.By[k][op] != nil {
			id := curve{k.CaseID, k.Phase}
			if points[id] == nil {
				order = append(order, id)
			}
			points[id] = append(points[id], k)
		}
	}
	c := Chart{ID: "cycles-" + slug(op), Section: "sweep", Height: 320, Heading: Capitalize(QuantityName(op)) + " along the cycles",
		X: Axis{Name: "cycle", Unit: "1"}, Y: Axis{Name: QuantityName(op), Unit: "B/s", Low: pointer(0)}}
	c.Table = Table{Caption: c.Heading, Columns: Columns("<curve", "cycle", "measured", "interval")}
	var ns []string
	for _, id := range order {
		keys := points[id]
		if len(keys) < minSweep {
			continue
		}
		slices.SortFunc(keys, func(a, b FigureKey) int { return cmp.Compare(a.Cycle, b.Cycle) })
		line := Series{Role: "line", Name: strings.Join(NonEmpty([]string{v.CaseName(id.caseID), Plain(id.phase, 40)}), " · ")}
		for _, k := range keys {
			s := f.By[k][op]
			h := Headline(s)
			ns = AppendNew(ns, SampleSize(s))
			line.Points = append(line.Points, xy(float64(k.Cycle), h.Value))
			c.Y.Values = append(c.Y.Values, h.Value)
			interval := ""
			if h.CI != nil {
				interval = Human(h.CI.Low, h.Unit) + "–" + Human(h.CI.High, h.Unit)
			}
			c.Table.Rows = append(c.Table.Rows, []Cell{{Text: line.Name, Class: "head"}, {Text: strconv.Itoa(k.Cycle)}, {Text: Human(h.Value, h.Unit)}, {Text: interval}})
		}
		c.Series = append(c.Series, line)
	}
	c.Sub = strings.Join(ns, " / ") + " a point."
	c.Notes = []string{"The intervals are in the table.", v.Provenance}
	return c
}
