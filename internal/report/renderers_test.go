package report

import (
	"io"

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
	Run              func(io.Writer, *plan.Plan, *result.Result, TextOptions) error
	RunMarkdown      func(io.Writer, *plan.Plan, *result.Result) error
	Document         func(io.Writer, Document, TextOptions) error
	DocumentMarkdown func(io.Writer, Document) error
	Methods          func(io.Writer, *plan.Plan, *result.Result) error
	Tables           func(*plan.Plan, *result.Result, func(string, []byte) error) error
}
