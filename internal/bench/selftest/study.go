package selftest

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

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
	// Rows of the study's own: a name, lines of a law, and more
	Laws [][]string `json:"-"`
}

// Table is figures in rows; the first column names the row.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// Promise is a bound that figures of a study have to keep. One without figures
// is not kept.
type Promise struct {
	Says string `json:"says" toml:"promise"`
	// The place of Worst: row, column and law
	Where string `json:"where"`
	// The figure that is farthest from keeping it, in Unit
	Worst float64 `json:"worst"`
	// Its Monte Carlo standard error; 0 for figures that are not drawn
	Error float64 `json:"error"`
	// Low and High are the bound, in Unit; nil is an open side.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// "%", "ns" …
	Unit string `json:"unit"`
	// Simulated runs of Worst
	N    int  `json:"n"`
	Kept bool `json:"kept"`
	// How far Worst is outside, less the error that is allowed
	margin float64
}

//go:embed studies.toml
var studiesTOML []byte

// readStudies reads studies.toml: studies without their outcome.
func readStudies() []Study {
	var out struct{ Study []Study }
	if err := toml.Unmarshal(studiesTOML, &out); err != nil {
		// The file is fixed: a test reads it
		panic(fmt.Sprintf("reading studies.toml: %v", err))
	}
	return out.Study
}

// fillHow puts numbers into the description of laws and designs.
func (s *Study) fillHow(numbers ...any) { s.How = fmt.Sprintf(s.How, numbers...) }

// add adds grids as tables.
func (s *Study) add(grids ...*grid) {
	for _, g := range grids {
		s.Tables = append(s.Tables, g.table())
	}
}

// errorsAllowed is how many standard errors a figure may be outside of its
// bound: a figure that keeps it exactly strays that far in one of forty cases.
const errorsAllowed = 2

// outside is how far v is above High or below Low, negative inside; infinite
// for NaN.
func (p *Promise) outside(v float64) float64 {
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

// take checks one figure v of n runs with its standard error, and keeps the one
// that is farthest out.
func (p *Promise) take(where string, v, err float64, n int) {
	margin := p.outside(v) - errorsAllowed*err
	if p.Where == "" || margin > p.margin {
		p.margin, p.Kept = margin, margin <= 0
		p.Where, p.Worst, p.Error, p.N = where, v, err, n
	}
}

// takeShare is take of a share in per cent; one without draws is left out.
func (p *Promise) takeShare(where string, s share) {
	if s.n > 0 {
		p.take(where, s.rate(), s.err(), s.n)
	}
}

// share counts how often something happened.
type share struct{ hits, n int }

func (s *share) add(hit bool) {
	s.n++
	if hit {
		s.hits++
	}
}

// rate is the share, in per cent.
func (s share) rate() float64 { return 100 * float64(s.hits) / float64(max(s.n, 1)) }

// err is the Monte Carlo standard error in per cent, about a share that is
// drawn towards one half by one hit and one miss, as 0 of 100 is not certain.
func (s share) err() float64 {
	p := (float64(s.hits) + 1) / (float64(s.n) + 2)
	return 100 * math.Sqrt(p*(1-p)/float64(max(s.n, 1)))
}

// String is "94.8 ± 0.7", or a dash where the count is 0.
func (s share) String() string {
	if s.n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f ± %.1f", s.rate(), s.err())
}

// moments are mean and scatter of numbers.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }

func (m moments) mean() float64 { return m.sum / m.n }

func (m moments) sd() float64 {
	return math.Sqrt(max(0, m.squares-m.sum*m.sum/m.n) / max(m.n-1, 1))
}

// err is the standard error of the mean.
func (m moments) err() float64 { return m.sd() / math.Sqrt(m.n) }

// shareErr is the standard error of a mean of shares in per cent, never less
// than that of as many draws that are all equal.
func (m moments) shareErr() float64 { return max(m.err(), share{int(m.n), int(m.n)}.err()) }

// grid is shares by row and column, both in the order in which they are first
// named.
type grid struct {
	title, corner string
	rows, columns []string
	shares        map[[2]string]*share
}

func newGrid(title, corner string, columns ...string) *grid {
	return &grid{title: title, corner: corner, columns: columns, shares: map[[2]string]*share{}}
}

// at finds a share, or adds it.
func (g *grid) at(row, column string) *share {
	s := g.shares[[2]string{row, column}]
	if s == nil {
		s = &share{}
		g.shares[[2]string{row, column}] = s
		if !slices.Contains(g.rows, row) {
			g.rows = append(g.rows, row)
		}
		if !slices.Contains(g.columns, column) {
			g.columns = append(g.columns, column)
		}
	}
	return s
}

// check is whether a share keeps a promise.
func (g *grid) check(p *Promise, row, column string) {
	p.takeShare(row+", "+column, *g.at(row, column))
}

// table is the grid as it is printed.
func (g *grid) table() Table {
	t := Table{Title: g.title, Head: append([]string{g.corner}, g.columns...)}
	for _, r := range g.rows {
		line := []string{r}
		for _, c := range g.columns {
			line = append(line, g.at(r, c).String())
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}
