// Package selftest shows that the numbers are right: it plays whole runs (plan,
// runner, journal, analysis) on the simulated device with a known law, and
// compares what the program reports with what is true.
//
// A study is many such runs. It gives figures with their Monte Carlo error and
// the bounds that they have to keep. Figures follow from the seed alone, except
// the harness's own cost, which is measured on this machine's clock. The truth
// comes from the law only, and no figure is stored: every one is simulated or
// measured when a study runs.
//
// studies.toml has the words and promises of each study, and [Run] goes through
// them. A study describes its runs as [trial] values, which play.go executes,
// and counts their results in a [grid].
package selftest

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"text/template"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Report is the outcome of all studies.
type Report struct {
	Seed    uint64  `json:"seed"`
	Full    bool    `json:"full"`
	Studies []Study `json:"studies"`
	// Overhead is measured on this machine; all else follows from the seed.
	Overhead *Overhead `json:"overhead,omitempty"`
	// Every promise
	Kept bool `json:"kept"`
}

// Options of [Run].
type Options struct {
	// Of all simulated runs
	Seed uint64
	// Every law and design of docs/accuracy.md, minutes; else a short form of
	// seconds
	Full bool
	// Only are the studies to go through, by their names ([IDs]). The empty
	// list means all of them; an unknown name is an error.
	Only []string
	// Done is called with each study as it ends; nil is allowed.
	Done func(Study, time.Duration)
}

// gcPercent is how much the heap may grow between collections, in per cent: the
// heap is small, and collecting it would else take a quarter of the time.
const gcPercent = 1000

// studies are all of them, in the order of the page and of studies.toml.
var studies = []struct {
	id string
	do func(*exam, *Study)
}{
	{"recovery", (*exam).recovery},
	{"files", (*exam).fileIntervals},
	{"rounds", (*exam).roundIntervals},
	{"speeds", (*exam).twoSpeedIntervals},
	{"auto", (*exam).autoRounds},
	{"verdicts", (*exam).falseVerdicts},
	{"power", (*exam).power},
	{"uses", (*exam).uses},
	{"compare", (*exam).comparisons},
	{"require", (*exam).requiredClaims},
	{"warnings", (*exam).fileWarnings},
	{"drift", (*exam).drift},
	{"overhead", (*exam).overhead},
}

// IDs are the names of all studies.
func IDs() (ids []string) {
	for _, s := range studies {
		ids = append(ids, s.id)
	}
	return ids
}

// exam is one pass over the studies. After an error it plays no more runs, so
// that studies check none: [Run] does after each of them.
type exam struct {
	ctx  context.Context // of Run, which the exam does not outlive
	seed uint64
	// Every law and design of docs/accuracy.md, else a short form
	full bool
	// Nil before it is measured
	cost *Overhead
	// Of run folders
	dir  string
	next atomic.Int64
	err  error // the first one
}

// newExam makes a folder for simulated runs; [exam.close] removes it.
func newExam(ctx context.Context, o Options) (*exam, error) {
	x := &exam{ctx: ctx, seed: o.Seed, full: o.Full}
	var err error
	// Memory instead of a disk where the system has a folder for that
	for _, base := range []string{"/dev/shm", os.TempDir()} {
		if x.dir, err = os.MkdirTemp(base, "dmgbench-selftest-"); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("making a folder for simulated runs: %w", err)
}

func (x *exam) close() error { return os.RemoveAll(x.dir) }

// choose is what the full form of a study has, or the short one.
func choose[T any](x *exam, full, short T) T {
	if x.full {
		return full
	}
	return short
}

// Run goes through the studies.
func Run(ctx context.Context, o Options) (r Report, err error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("choosing studies: there is no study %q, only %s", id,
				strings.Join(IDs(), ", "))
		}
	}
	x, err := newExam(ctx, o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	r = Report{Seed: o.Seed, Full: o.Full, Kept: true}
	for i, s := range readStudies() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.ID) {
			continue
		}
		from := time.Now()
		studies[i].do(x, &s)
		if x.err != nil {
			return r, fmt.Errorf("study %q: %w", s.ID, x.err)
		}
		for k := range s.Promises {
			s.Promises[k].Where = cmp.Or(s.Promises[k].Where, "no figure")
			r.Kept = r.Kept && s.Promises[k].Kept
		}
		r.Studies = append(r.Studies, s)
		if o.Done != nil {
			o.Done(s, time.Since(from))
		}
	}
	r.Overhead = x.cost
	return r, nil
}

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

//go:embed *.tmpl
var templateFiles embed.FS

// templates are docs/accuracy.md ("accuracy"), what a terminal shows
// ("terminal"), and the plan of a design.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"anchor": anchor,
	"join":   func(cells []string) string { return strings.Join(cells, " | ") },
	"rule":   func(head []string) string { return strings.Repeat("--:|", len(head)-1) },
	"kB":     func(o *Overhead, rate float64) float64 { return float64(o.SmallestHonest(rate)) / 1e3 },
}).ParseFS(templateFiles, "*"))

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		// The template is fixed: a test executes it
		panic(fmt.Sprintf("writing the %s of a selftest: %v", name, err))
	}
	return b.String()
}

// Page is docs/accuracy.md: what is promised and whether it is kept, then the
// studies.
func (r Report) Page() string { return render("accuracy", r) }

// Text is the report for a terminal: one line a promise.
func (r Report) Text() string { return render("terminal", r) }

// anchor is a heading as GitHub links to it.
func anchor(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		}
		return -1
	}, strings.ToLower(title))
}

// Bound is the bound of a promise in words: "at most 5 %", "93 to 97 %".
func (p Promise) Bound() string {
	switch {
	case p.Low == nil:
		return fmt.Sprintf("at most %s %s", plainNumber(*p.High), p.Unit)
	case p.High == nil:
		return fmt.Sprintf("at least %s %s", plainNumber(*p.Low), p.Unit)
	}
	return fmt.Sprintf("%s to %s %s", plainNumber(*p.Low), plainNumber(*p.High), p.Unit)
}

// Found is the figure that is farthest from keeping the promise, with its
// error.
func (p Promise) Found() string {
	if p.Error == 0 {
		return fmt.Sprintf("%s %s", plainNumber(p.Worst), p.Unit)
	}
	return fmt.Sprintf("%.1f ± %.1f %s", p.Worst+0, p.Error, p.Unit)
}

// Answer is "kept" or "not kept".
func (p Promise) Answer() string {
	if p.Kept {
		return "kept"
	}
	return "not kept"
}

// IsOutside reports whether the farthest figure is outside the bound, kept or
// not.
func (p Promise) IsOutside() bool { return p.outside(p.Worst) > 0 }

// tooSmall is where the digits of a number would be lost among its zeros; a
// figure below it is the rounding of the arithmetic, and that of another
// processor.
const tooSmall = 1e-6

// plainNumber writes up to four decimals, or the first digit that is not 0.
func plainNumber(v float64) string {
	decimals := 4
	switch a := math.Abs(v); {
	case a != 0 && a < tooSmall:
		return "below 0.000001"
	case a != 0 && a < 1e-4:
		decimals = int(math.Ceil(-math.Log10(a)))
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
