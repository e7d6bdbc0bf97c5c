package selftest

import (
	"fmt"
	"math"
	"slices"
)

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
