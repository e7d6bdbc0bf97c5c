package selftest

import (
	"encoding/json"
	"fmt"
	"math"
)

// Study is one question with what came of it.
type Study struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Asks     string    `json:"asks"`
	How      string    `json:"how"` // law, design and number of runs
	Tables   []Table   `json:"tables"`
	Promises []Promise `json:"promises"`
	Says     []string  `json:"says"` // what follows for whoever reads a result, shortfalls included
}

// Table is figures in rows; the first column names the row.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// Promise is a bound that figures of a study have to keep.
type Promise struct {
	Says  string  `json:"says"`
	Where string  `json:"where"` // of which figure Worst is
	Worst float64 `json:"worst"` // the figure that is farthest from keeping it, in Unit
	Error float64 `json:"error"` // its Monte Carlo standard error; 0 where nothing is drawn
	Low   float64 `json:"-"`     // the bound, in Unit; -[none] for an open side
	High  float64 `json:"-"`
	Unit  string  `json:"unit"` // "%", "ns" …
	N     int     `json:"n"`    // simulated runs behind Worst
	Kept  bool    `json:"kept"`
}

// MarshalJSON adds the sides of the bound that are not open, as low and high.
func (p Promise) MarshalJSON() ([]byte, error) {
	type plain Promise
	out := struct {
		plain
		Low  *float64 `json:"low,omitempty"`
		High *float64 `json:"high,omitempty"`
	}{plain: plain(p)}
	if p.Low > -none {
		out.Low = &p.Low
	}
	if p.High < none {
		out.High = &p.High
	}
	return json.Marshal(out)
}

// share counts how often something came about.
type share struct{ hits, n int }

func (s *share) add(hit bool) {
	s.n++
	if hit {
		s.hits++
	}
}

func (s *share) join(o share) { s.hits, s.n = s.hits+o.hits, s.n+o.n }

// rate is the share, in per cent.
func (s share) rate() float64 { return 100 * float64(s.hits) / float64(max(s.n, 1)) }

// err is the Monte Carlo standard error in per cent, about a share that is drawn
// towards one half by one hit and one miss, as 0 of 100 is not certain.
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

// bound collects figures that have to lie between low and high, and keeps the one
// that is farthest out.
type bound struct {
	p   Promise
	far float64
	any bool
}

func within(says, unit string, low, high float64) *bound {
	return &bound{p: Promise{Says: says, Unit: unit, Low: low, High: high, Kept: true}}
}

// none is the limit of an open side of a bound; JSON has no infinity.
const none = math.MaxFloat64

// mercy is how many standard errors a figure may lie outside of its bound: a
// figure that keeps it exactly strays that far in one of forty cases.
const mercy = 2

// take looks at one figure.
func (b *bound) take(where string, v, err float64, n int) {
	far := max(v-b.p.High, b.p.Low-v)
	if math.IsNaN(v) {
		far = math.Inf(1)
	}
	if far > mercy*err {
		b.p.Kept = false
	}
	if !b.any || far-mercy*err > b.far {
		b.any, b.far = true, far-mercy*err
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

// keyed are shares by row and column.
type keyed map[[2]string]*share

func (k keyed) at(row, column string) *share {
	s := k[[2]string{row, column}]
	if s == nil {
		s = &share{}
		k[[2]string{row, column}] = s
	}
	return s
}

// table sets rows against columns.
func (k keyed) table(title, corner string, rows, columns []string) Table {
	t := Table{Title: title, Head: append([]string{corner}, columns...)}
	for _, r := range rows {
		line := []string{r}
		for _, c := range columns {
			line = append(line, k.at(r, c).String())
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}
