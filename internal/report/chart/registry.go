package chart

import (
	"cmp"
	"fmt"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// kinds is the registry: every kind of chart, in the order of the page, with
// the section of the page that has it. build returns no chart where the kind
// does not apply to the run; sections and provenance are added by [All].
//
// A new kind of chart is a row here; long captions are templates.
var kinds = []struct {
	section string
	build   func(*run) []report.Chart
}{
	{"first", firstChart},
	{"speed", barCharts},
	{"encryption", encryptionCharts},
	{"cost", costCharts},
	{"sweep", sweepCharts},
	{"size", sizeCharts},
	{"size", heatCharts},
	{"files", timeCharts},
	{"files", residualCharts},
	{"files", stripCharts},
	{"life", lifeCharts},
	{"drift", driftChart},
	{"relations", relationCharts},
}

// NewView arranges a result with its charts, for every renderer. Each chart has
// an id and a file name of its own.
//
// The order matters: the first chart decides which chart of speeds is on the
// first screen and is not drawn again.
func NewView(p *plan.Plan, r *result.Result) *report.View {
	v := report.NewView(p, r)
	in := &run{View: v, sets: fileSets(v)}
	ids := map[string]int{}
	for _, k := range kinds {
		for _, c := range k.build(in) {
			c.Section, c.Table.Caption = k.section, cmp.Or(c.Table.Caption, c.Heading)
			c.Notes = append(c.Notes, v.Provenance)
			if ids[c.ID]++; ids[c.ID] > 1 { // odd names of quantities may give the same id
				c.ID += fmt.Sprintf("-again-%d", ids[c.ID])
			}
			v.Charts = append(v.Charts, c)
		}
	}
	NameFiles(v.Charts)
	v.ChartNotes = map[string]string{"size": in.undrawn(), "files": in.undrawn()}
	if !slices.ContainsFunc(v.Charts, func(c report.Chart) bool { return c.Section == "cost" }) {
		v.ChartNotes["cost"] = in.costLacking()
	}
	return v
}
