package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// charts are all pictures of the report in page order.
func (v *view) charts() []chart {
	sets := v.fileSets()
	first, bars := v.firstChart(v.barCharts())
	out := slices.Concat(first, bars, v.encryptionCharts(), v.costCharts(sets), v.sweepCharts(), v.sizeCharts(sets), v.heatCharts(sets), v.timeCharts(sets), v.residualCharts(sets), v.stripCharts(sets),
		v.lifeCycles(), v.lifeCharts(), v.driftChart(), v.relationCharts())
	nameFiles(out)
	return out
}

// cycleCharts draw each rate along the cycles of a repeat block.
func (v *view) cycleCharts() []chart {
	var out []chart
	for _, s := range v.sections {
		if s.id != "speeds" {
			continue
		}
		for _, op := range s.figures.ops {
			c := v.cycleChart(op, s.figures)
			if len(c.series) > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

func (v *view) cycleChart(op string, f figures) chart {
	type curve struct{ caseID, phase string }
	points := map[curve][]figureKey{}
	var order []curve
	for _, k := range f.keys {
		if k.cycle > 0 && f.by[k][op] != nil {
			id := curve{k.caseID, k.phase}
			if points[id] == nil {
				order = append(order, id)
			}
			points[id] = append(points[id], k)
		}
	}
	c := chart{id: "cycles-" + slug(op), section: "sweep", height: 320, heading: title(words(op)) + " along the cycles",
		x: axis{name: "cycle", unit: "1"}, y: axis{name: words(op), unit: "B/s", low: pointer(0)}}
	c.table = table{Caption: c.heading, Columns: []column{{"", "curve", true}, {"", "cycle", false}, {"", "measured", false}, {"", "interval", false}}}
	var ns []string
	for _, id := range order {
		keys := points[id]
		if len(keys) < minSweep {
			continue
		}
		slices.SortFunc(keys, func(a, b figureKey) int { return cmp.Compare(a.cycle, b.cycle) })
		line := series{role: "line", name: strings.Join(nonEmpty([]string{v.name(id.caseID), plain(id.phase, 40)}), " · ")}
		for _, k := range keys {
			s := f.by[k][op]
			h := headline(s)
			ns = appendNew(ns, counted(s))
			line.points = append(line.points, xy(float64(k.cycle), h.Value))
			c.y.values = append(c.y.values, h.Value)
			interval := ""
			if h.CI != nil {
				interval = human(h.CI.Low, h.Unit) + "–" + human(h.CI.High, h.Unit)
			}
			c.table.Rows = append(c.table.Rows, []cell{{Text: line.name, Class: "head"}, {Text: strconv.Itoa(k.cycle)}, {Text: human(h.Value, h.Unit)}, {Text: interval}})
		}
		c.series = append(c.series, line)
	}
	c.sub = strings.Join(ns, " / ") + " a point."
	c.notes = []string{"The intervals are in the table.", v.provenance}
	return c
}
