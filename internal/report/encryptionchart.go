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
func (v *View) encryptionCharts() []Chart {
	var out []Chart
	for _, s := range v.Sections {
		if s.ID != "speeds" {
			continue
		}
		for _, op := range s.Figures.Ops {
			for _, p := range s.Figures.Phases([]string{op}) {
				if c, ok := v.encryptionChart(op, p, s.Figures); ok {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// encryptionRows pairs the cases; a row needs two values at least.
func (v *View) encryptionRows(op string, p FigureKey, f Figures) (rows []encrypted, values []string) {
	at := map[string]int{}
	for _, k := range f.Keys {
		s, i := f.By[k][op], v.Order[k.CaseID]
		if s == nil || k.Phase != p.Phase || k.Cycle != p.Cycle || i >= len(v.Result.Cases) || v.Result.Cases[i].ID != k.CaseID {
			continue
		}
		value, rest := "", []string{}
		for _, kv := range v.Result.Cases[i].Keys {
			if kv[0] == "encryption" {
				value = KeyValue(kv[0], kv[1])
				continue
			}
			rest = append(rest, KeyValue(kv[0], kv[1]))
		}
		if value == "" {
			continue
		}
		name := FirstOf(strings.Join(NonEmpty(rest), " · "), "image")
		if _, ok := at[name]; !ok {
			at[name] = len(rows)
			rows = append(rows, encrypted{name, map[string]*result.Summary{}})
		}
		rows[at[name]].by[value] = s
		values = AppendNew(values, value)
	}
	rows = slices.DeleteFunc(rows, func(r encrypted) bool { return len(r.by) < 2 })
	return rows[:min(len(rows), barsPerChart)], values
}

func (v *View) encryptionChart(op string, p FigureKey, f Figures) (Chart, bool) {
	rows, values := v.encryptionRows(op, p, f)
	if len(rows) == 0 {
		return Chart{}, false
	}
	top := 0.0
	for _, r := range rows {
		for _, s := range r.by {
			h := Headline(s)
			top = max(top, h.Value)
			if h.CI != nil && IsFinite(h.CI.High) {
				top = max(top, min(h.CI.High, 3*h.Value))
			}
			if pub, comparable := firstPublished(s); IsFinite(pub) && comparable {
				top = max(top, pub)
			}
		}
	}
	c := Chart{ID: "encryption-" + slug(op) + "-" + slug(PhaseName(p.Phase, p.Cycle)), Section: "encryption", FixedLegend: true, Flipped: true,
		Heading: "What encryption costs: " + QuantityName(op) + PhaseSuffix(PhaseName(p.Phase, p.Cycle)), Height: 34 + len(rows)*(14+18*len(values)),
		X: Axis{Name: "speed", Unit: "B/s", Low: pointer(0), High: pointer(roundUp(top * 1.03)), Values: []float64{top}}}
	c.Table = Table{Caption: c.Heading, Columns: Columns("<image", "<encryption", "measured", "interval", "published", "<n")}
	var intervals, ns []string
	published, uncomparable, bare, clipped := false, false, false, false
	for _, r := range rows {
		c.Y.Categories = append(c.Y.Categories, r.name)
	}
	for slot, value := range values {
		bar, whisker := Series{Role: "bar", Name: value}, Series{Role: "whisker", Name: value}
		for i, r := range rows {
			s := r.by[value]
			if s == nil {
				bar.Points, bar.Tips = append(bar.Points, nil), append(bar.Tips, "")
				continue
			}
			h := Headline(s)
			sc := ScaleOf(h.Unit, top)
			low, high := math.NaN(), math.NaN()
			if h.CI != nil {
				low, high, intervals = h.CI.Low, h.CI.High, AppendNew(intervals, DescribeInterval(h.CI))
				clipped = clipped || high > *c.X.High
			}
			pub, comparable := firstPublished(s)
			bare, ns = bare || h.CI == nil, AppendNew(ns, SampleSize(s))
			published, uncomparable = published || IsFinite(pub) && comparable, uncomparable || IsFinite(pub) && !comparable
			row := FigureRow(s, PhaseName(p.Phase, p.Cycle), ScaleOf(h.Unit, h.Value))
			bar.Points, bar.Tips = append(bar.Points, digits(h.Value)), append(bar.Tips, tip(row))
			whisker.Points = append(whisker.Points, []any{i, orNull(low), orNull(high), orNull(pub), bit(comparable), slot, len(values), digits(h.Value), sc.Number(h.Value)})
			c.Table.Rows = append(c.Table.Rows, []Cell{{Text: r.name, Class: "head"}, {Text: value}, {Text: Human(h.Value, h.Unit)}, {Text: row[3]}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		whisker.Tips = bar.Tips
		c.Series = append(c.Series, bar, whisker)
	}
	c.publishedLegend(published, uncomparable)
	c.Sub = "Images that differ in encryption alone; " + strings.Join(ns, " / ") + "."
	note := "No interval: too few rounds."
	if len(intervals) > 0 {
		note = "Whiskers: " + strings.Join(intervals, "; ") + "." + TextIf(bare, " No whisker: no interval.") + TextIf(clipped, " An arrow goes on beyond the scale.")
	}
	c.Notes = []string{note + TextIf(uncomparable, " Grey marks were published for other conditions; those off the scale stand at its edge."), v.Provenance}
	return c, true
}
