package selftest

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// Study is one question with its outcome.
type Study struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Asks  string `json:"asks"`
	// Law, design and number of runs
	How      string    `json:"how"`
	Tables   []Table   `json:"tables"`
	Promises []Promise `json:"promises"`
	// What follows for whoever reads a result, shortfalls included
	Says []string `json:"says"`
}

// Table is figures in rows; the first column names the row.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// Promise is a bound that figures of a study have to keep.
type Promise struct {
	Says string `json:"says" toml:"promise"`
	// The place of Worst: row, column and law
	Where string `json:"where"`
	// The figure that is farthest from keeping it, in Unit
	Worst float64 `json:"worst"`
	// Its Monte Carlo standard error; 0 where nothing is drawn
	Error float64 `json:"error"`
	// Low and High are the bound, in Unit; nil is an open side.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// "%", "ns" …
	Unit string `json:"unit"`
	// Simulated runs of Worst
	N    int  `json:"n"`
	Kept bool `json:"kept"`
}

//go:embed studies.toml
var studiesTOML []byte

// studyText is a study as studies.toml has it.
type studyText struct {
	Study
	Laws [][]string
}

var studyTexts = sync.OnceValue(func() []studyText {
	var out struct{ Study []studyText }
	if err := toml.Unmarshal(studiesTOML, &out); err != nil {
		// The file is fixed: a test reads it
		panic(fmt.Sprintf("reading studies.toml: %v", err))
	}
	return out.Study
})

// draft is a study that is being made.
type draft struct {
	Study
	// One a promise, in their order
	bounds []*bound
	// Rows of the study's own: a name, lines of a law, and more
	laws [][]string
}

func newDraft(id string) *draft {
	list := studyTexts()
	text := list[slices.IndexFunc(list, func(t studyText) bool { return t.ID == id })]
	d := &draft{Study: text.Study, laws: text.Laws}
	for _, p := range d.Promises {
		d.bounds = append(d.bounds, newBound(p))
	}
	d.Promises = nil
	return d
}

// fillHow puts numbers into the description of laws and designs.
func (d *draft) fillHow(numbers ...any) { d.How = fmt.Sprintf(d.How, numbers...) }

// add adds grids as tables.
func (d *draft) add(grids ...*grid) {
	for _, g := range grids {
		d.Tables = append(d.Tables, g.table())
	}
}

func (d *draft) finish() Study {
	for _, b := range d.bounds {
		d.Promises = append(d.Promises, b.promise())
	}
	return d.Study
}

// bound collects figures that have to be between low and high, and keeps the
// one that is farthest out.
type bound struct {
	p   Promise
	far float64
	any bool
}

func newBound(p Promise) *bound {
	p.Kept = true
	return &bound{p: p}
}

// errorsAllowed is how many standard errors a figure may be outside of its
// bound: a figure that keeps it exactly strays that far in one of forty cases.
const errorsAllowed = 2

// outside is how far v is above High or below Low, negative inside; infinite
// for NaN.
func (p Promise) outside(v float64) float64 {
	far := math.Inf(-1)
	if p.High != nil {
		far = v - *p.High
	}
	if p.Low != nil {
		far = max(far, *p.Low-v)
	}
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return far
}

// take checks one figure v of n runs with its standard error.
func (b *bound) take(where string, v, err float64, n int) {
	far := b.p.outside(v)
	if far > errorsAllowed*err {
		b.p.Kept = false
	}
	if !b.any || far-errorsAllowed*err > b.far {
		b.any, b.far = true, far-errorsAllowed*err
		b.p.Where, b.p.Worst, b.p.Error, b.p.N = where, v, err, n
	}
}

// share is take of a share in per cent; one without draws is left out.
func (b *bound) share(where string, s share) {
	if s.n > 0 {
		b.take(where, s.rate(), s.err(), s.n)
	}
}

// promise is the outcome. A bound without a figure is not kept.
func (b *bound) promise() Promise {
	if !b.any {
		b.p.Kept, b.p.Where = false, "nothing was measured"
	}
	return b.p
}
