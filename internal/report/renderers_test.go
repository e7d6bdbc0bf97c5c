package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// TextOptions are those of package text, for the tests of this package.
type TextOptions struct {
	Width          int
	Color, Verbose bool
}

// Renderers are the functions of the packages above this one. The external tests set them, so that tests in here can
// look at all forms of what this package makes.
var Renderers struct {
	HTML             func(io.Writer, *plan.Plan, *result.Result) error
	DocumentHTML     func(io.Writer, Document) error
	Charts           func(*plan.Plan, *result.Result) []Chart
	Encode           func(*Chart) ([]byte, error)
	Run              func(io.Writer, *plan.Plan, *result.Result, TextOptions) error
	RunMarkdown      func(io.Writer, *plan.Plan, *result.Result) error
	Document         func(io.Writer, Document, TextOptions) error
	DocumentMarkdown func(io.Writer, Document) error
	Tables           func(*plan.Plan, *result.Result, func(string, []byte) error) error
}

func index(charts []Chart, id string) int {
	return slices.IndexFunc(charts, func(c Chart) bool { return c.ID == id })
}

// role are the series of a role.
func role(c Chart, name string) []Series {
	return slices.DeleteFunc(slices.Clone(c.Series), func(s Series) bool { return s.Role != name })
}

// thinOut leaves some files in the first round, and one in later ones: a chart draws any point like any other.
func thinOut(r *result.Result) {
	eachStep(r, func(s *result.Step) {
		keep := 1
		if s.Round == 1 {
			keep = 5
		}
		s.Samples = s.Samples[:min(len(s.Samples), keep)]
	})
}

// wellFormed reads a picture as XML: what is saved has to open elsewhere.
func wellFormed(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("parsing the picture: %w", err)
		}
	}
}
