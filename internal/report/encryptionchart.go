package report

import (
	"math"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// encrypted is one row of the picture of what encryption costs: cases that differ in nothing else.
type encrypted struct {
	name string
	by   map[string]*result.Summary // by the value of the key
}

// encryptionCharts set cases that differ in encryption alone beside each other, one picture a rate and phase.
func (v *view) encryptionCharts() []chart {
	var out []chart
	for _, s := range v.sections {
		if s.id != "speeds" {
			continue
		}
		for _, op := range s.figures.ops {
			for _, p := range s.figures.phases([]string{op}) {
				if c, ok := v.encryptionChart(op, p, s.figures); ok {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// encryptionRows pairs the cases; a row needs two values at least.
func (v *view) encryptionRows(op string, p figureKey, f figures) (rows []encrypted, values []string) {
	at := map[string]int{}
	for _, k := range f.keys {
		s, i := f.by[k][op], v.order[k.caseID]
		if s == nil || k.phase != p.phase || k.cycle != p.cycle || i >= len(v.result.Cases) || v.result.Cases[i].ID != k.caseID {
			continue
		}
		value, rest := "", []string{}
		for _, kv := range v.result.Cases[i].Keys {
			if kv[0] == "encryption" {
				value = keyValue(kv[0], kv[1])
				continue
			}
			rest = append(rest, keyValue(kv[0], kv[1]))
		}
		if value == "" {
			continue
		}
		name := firstOf(strings.Join(nonEmpty(rest), " · "), "image")
		if _, ok := at[name]; !ok {
			at[name] = len(rows)
			rows = append(rows, encrypted{name, map[string]*result.Summary{}})
		}
		rows[at[name]].by[value] = s
		values = appendNew(values, value)
	}
	rows = slices.DeleteFunc(rows, func(r encrypted) bool { return len(r.by) < 2 })
	return rows[:min(len(rows), barsPerChart)], values
}

func (v *view) encryptionChart(op string, p figureKey, f figures) (chart, bool) {
	rows, values := v.encryptionRows(op, p, f)
	if len(rows) == 0 {
		return chart{}, false
	}
	top := 0.0
	for _, r := range rows {
		for _, s := range r.by {
			h := headline(s)
			top = max(top, h.Value)
			if h.CI != nil && finite(h.CI.High) {
				top = max(top, min(h.CI.High, 3*h.Value))
			}
			if pub, comparable := firstPublished(s); finite(pub) && comparable {
				top = max(top, pub)
			}
		}
	}
	c := chart{id: "encryption-" + slug(op) + "-" + slug(cycled(p.phase, p.cycle)), section: "encryption", fixed: true, flipped: true,
		heading: "What encryption costs: " + words(op) + phaseText(cycled(p.phase, p.cycle)), height: 34 + len(rows)*(14+18*len(values)),
		x: axis{name: "speed", unit: "B/s", low: pointer(0), high: pointer(roundUp(top * 1.03)), values: []float64{top}}}
	c.table = table{Caption: c.heading, Columns: []column{{"", "image", true}, {"", "encryption", true}, {"", "measured", false}, {"", "interval", false},
		{"", "published", false}, {"", "n", true}}}
	var intervals, ns []string
	published, uncomparable, bare, clipped := false, false, false, false
	for _, r := range rows {
		c.y.categories = append(c.y.categories, r.name)
	}
	for slot, value := range values {
		bar, whisker := series{role: "bar", name: value}, series{role: "whisker", name: value}
		for i, r := range rows {
			s := r.by[value]
			if s == nil {
				bar.points, bar.tips = append(bar.points, nil), append(bar.tips, "")
				continue
			}
			h := headline(s)
			sc := scaleOf(h.Unit, top)
			low, high := math.NaN(), math.NaN()
			if h.CI != nil {
				low, high, intervals = h.CI.Low, h.CI.High, appendNew(intervals, ciText(h.CI))
				clipped = clipped || high > *c.x.high
			}
			pub, comparable := firstPublished(s)
			bare, ns = bare || h.CI == nil, appendNew(ns, counted(s))
			published, uncomparable = published || finite(pub) && comparable, uncomparable || finite(pub) && !comparable
			row, _, _ := textRow(s, cycled(p.phase, p.cycle), scaleOf(h.Unit, h.Value), sameForAll{})
			bar.points, bar.tips = append(bar.points, digits(h.Value)), append(bar.tips, tip(row))
			whisker.points = append(whisker.points, []any{i, orNull(low), orNull(high), orNull(pub), bit(comparable), slot, len(values), digits(h.Value), sc.number(h.Value)})
			c.table.Rows = append(c.table.Rows, []cell{{Text: r.name, Class: "head"}, {Text: value}, {Text: human(h.Value, h.Unit)}, {Text: row[3]}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		whisker.tips = bar.tips
		c.series = append(c.series, bar, whisker)
	}
	c.publishedLegend(published, uncomparable)
	c.sub = "Images that differ in encryption alone; " + strings.Join(ns, " / ") + "."
	note := "No interval: too few rounds."
	if len(intervals) > 0 {
		note = "Whiskers: " + strings.Join(intervals, "; ") + "." + zero(bare, " No whisker: no interval.") + zero(clipped, " An arrow goes on beyond the scale.")
	}
	c.notes = []string{note + zero(uncomparable, " Grey marks were published for other conditions; those off the scale stand at its edge."), v.provenance}
	return c, true
}
