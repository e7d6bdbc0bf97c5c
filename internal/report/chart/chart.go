// Package chart draws a result: it has one row for each kind of chart in a
// registry, and turns charts into the options of the charting library and into
// SVG.
//
// The functions of the registry give series of marks, axes and captions;
// everything about the library is in option.go.
package chart

import (
	"fmt"
	"strings"
	"unicode"

	"dmgbench/internal/report"
)

// Section is one part of the page with its charts.
//
// The lead is printed below the heading; [report.View.ChartNotes] may add to
// it.
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

// run is what the functions of the registry read.
//
// One run is made for each report, so that the samples are gathered once.
type run struct {
	*report.View
	sets []fileSet
	main *report.Chart // chart of the first screen, nil without one
}

// maxFileName is the largest number of characters in the name of a picture.
//
// Names of files may have 255 bytes; 80 characters leave room for folders and
// for the suffix, and can be read in a list.
const maxFileName = 80

// NameFiles gives every chart a file name of its own, made of its heading:
// "write-speed-of-each-case".
func NameFiles(charts []report.Chart) {
	taken := map[string]bool{}
	for i := range charts {
		name := fileName(charts[i].Heading)
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		taken[unique], charts[i].File = true, unique
	}
}

// fileName keeps the ASCII letters and digits of a heading, with hyphens
// between its words.
func fileName(heading string) string {
	words := strings.FieldsFunc(strings.ToLower(heading), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	name := "chart"
	for i, word := range words {
		switch {
		case i == 0:
			name = word
		case len(name)+1+len(word) > maxFileName:
			return name
		default:
			name += "-" + word
		}
	}
	return name
}

// data is what a template reads.
//
// The keys are the names that the templates use.
type data = map[string]any

// caption sets what is printed above a picture and inside it, from the
// templates of that name with -sub and -note.
func caption(c *report.Chart, name string, d data) {
	c.Sub, c.Notes = report.Phrase(name+"-sub", d), []string{report.Phrase(name+"-note", d)}
}

// tip is a template with a line for each thing that is known of a mark.
func tip(name string, d data) string { return strings.Join(report.Lines(name, d), "\n") }
