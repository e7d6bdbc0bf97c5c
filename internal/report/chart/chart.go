// Package chart draws a result: it has one row for each kind of chart in a
// registry, and turns charts into the options of the charting library and into
// SVG.
//
// The functions of the registry give series of marks, axes and captions;
// everything about the library is in library.go.
package chart

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// Section is one part of the page with its charts.
//
// The lead is printed below the heading.
type Section struct{ ID, Heading, Lead string }

// Sections are the parts of the page that have charts, in order; the charts of
// the section "first" are on the first screen.
var Sections = []Section{
	{"speed", "Speed", ""},
	{"encryption", "What encryption costs", ""},
	{"cost", "Where the time went", "The same files in the native folder and in the images of the same rounds: " +
		"what harness, file system, format and encryption each took."},
	{"sweep", "Along what the plan varies", ""},
	{"size", "Speed and file size", "How the speed depends on the size of the file; intervals where rounds or files " +
		"are enough, and in the tables how far the files spread."},
	{"files", "Every file", "Nothing averaged: one point for each timed file."},
	{"life", "Space over the steps", ""},
	{"drift", "Drift along the run", "Each step against the median of its own kind: a level band means that nothing " +
		"but the case changed."},
	{"relations", "One quantity against another", ""},
}

// kinds is the registry: every kind of chart, in the order of the page, with
// the section of the page that has it. build returns no chart where the kind
// does not apply to the run; sections and provenance are added by
// [NewView].
//
// A new kind of chart is a row here; long captions are templates.
var kinds = []struct {
	section string
	build   func(*run) []report.Chart
}{
	{"first", firstChart},
	{"speed", speedCharts},
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

// run is what the functions of the registry read.
//
// One run is made for each report, so that the samples are gathered once.
type run struct {
	*report.View
	sets []fileSet
}

// NewView arranges a result with its charts, for every renderer. Each chart has
// an id of its own. A chart of speeds that is on the first screen is not drawn
// again.
func NewView(p *plan.Plan, r *result.Result) *report.View {
	v := report.NewView(p, r)
	in := &run{View: v, sets: fileSets(v)}
	id := report.Namer("-again-") // odd names of quantities may give the same id
	for _, k := range kinds {
		for _, c := range k.build(in) {
			isSame := func(o report.Chart) bool { return reflect.DeepEqual(o.Table.Rows, c.Table.Rows) }
			if k.section == "speed" && slices.ContainsFunc(v.Charts, isSame) {
				continue
			}
			c.ID, c.Section = id(c.ID), k.section
			c.Table.Caption, c.Notes = cmp.Or(c.Table.Caption, c.Heading), append(c.Notes, v.Provenance)
			c.Table.Origin = wording.NonEmpty([]string{v.First.Notice})
			v.Charts = append(v.Charts, c)
		}
	}
	return v
}

// caseOf is the case with an id, an empty one if the result has none.
func (r *run) caseOf(id string) *result.Case {
	if at, ok := r.Order[id]; ok {
		return &r.Result.Cases[at]
	}
	return &result.Case{}
}

// data is what a template or the script of the page reads, by the names that
// these use.
type data = map[string]any

// caption sets what is printed above a picture and inside it, from the
// templates of that name with -sub and -note.
func caption(c *report.Chart, name string, d data) {
	c.Sub, c.Notes = report.Phrase(name+"-sub", d), []string{report.Phrase(name+"-note", d)}
}

// tip is a template with a line for each thing that is known of a mark.
func tip(name string, d data) string { return strings.Join(report.Lines(name, d), "\n") }
