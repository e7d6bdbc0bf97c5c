package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// lawful makes one case whose files take exactly latency + size/rate, but for one.
func lawful(rounds, files int) (*plan.Plan, *result.Result) {
	p, r := reporttest.Large(1)
	c := &r.Cases[0]
	c.Steps, c.Rounds, r.Rounds = nil, nil, rounds
	for round := 1; round <= rounds; round++ {
		c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
		s := result.Step{Do: "write", Op: "write", Phase: "new", Round: round, Session: 1, Workers: 1}
		for i := range files {
			size := int64(1_000_000 << (i % 4))
			s.Samples = append(s.Samples, result.Sample{Bytes: size, DurationNS: 1_000_000 + size, Order: i})
		}
		c.Steps = append(c.Steps, s)
	}
	return p, r
}

// someFiles is a case of few files in three rounds, of which one takes long and one step has a warning, and a fit.
func someFiles() (*plan.Plan, *result.Result) {
	p, r := lawful(3, 8)
	for i := range r.Cases[0].Steps {
		s := &r.Cases[0].Steps[i]
		s.StartNS, s.DurationNS = int64(i)*60e9, 1e9
		s.Span = &result.Span{LastDoneNS: int64(40+i) * 1e6, Bytes: 30e6}
		s.Samples[i].DurationNS *= int64(1 + i)
		s.Samples[7].DurationNS *= 5
	}
	r.Cases[0].Steps[1].Warnings = []result.Warning{{Kind: "busy", Text: "other work was going on"}}
	r.Fits = []result.Fit{{Name: "a line", Model: "line", Along: "file_size", Op: "write_time", Points: [][2]float64{{1e6, 2e-3}, {2e6, 3e-3}, {4e6, 6e-3}},
		Coefficients: []result.Coefficient{{Name: "intercept", Value: 1e-3}, {Name: "slope", Value: 1e-9}}}}
	return p, r
}

// Files that obey a line lie on it; the one that takes three times as long stands out by about that.
func TestResidualsAreTimesOverTheLine(t *testing.T) {
	p, r := lawful(1, 40)
	for _, one := range chartOf(t, p, r, "residuals-1-1").Series[0].Marks {
		assert.InDelta(t, 1, one.Y, 1e-6)
	}
	r.Cases[0].Steps[0].Samples[3].DurationNS *= 3
	c := chartOf(t, p, r, "residuals-1-1")
	row := c.Table.Rows[0]
	assert.Equal(t, "8 MB", row[6].Text, "the size of the farthest file")
	far := c.Series[0].Marks[3].Y
	assert.InDelta(t, 3, far, 0.4)
	assert.Equal(t, report.Human(far, "1"), row[5].Text)
	assert.Greater(t, *c.Y.High, far)
	assert.Less(t, *c.Y.Low, 1/residualRange+1e-9)
	assert.Equal(t, "level", c.Series[len(c.Series)-1].Role)
}

// The R² of the weighted line is one of weighted squares: table and picture say so.
func TestTimeChartsSayWhatTheirR2IsOf(t *testing.T) {
	p, r := lawful(1, 40)
	for i := range r.Cases[0].Steps[0].Samples {
		if s := &r.Cases[0].Steps[0].Samples[i]; i%3 == 0 {
			s.DurationNS += s.DurationNS / 5
		}
	}
	c := chartOf(t, p, r, "time-1-1")
	at := slices.IndexFunc(c.Table.Columns, func(k report.Column) bool { return strings.HasPrefix(k.Title, "R²") })
	require.Equal(t, 4, at)
	assert.Contains(t, c.Table.Columns[at].Title, "weights of the line")
	assert.Contains(t, strings.Join(c.Notes, " "), "weighted by 1/size²")
	require.Len(t, c.Table.Rows, 2)
	assert.NotEqual(t, c.Table.Rows[0][at].Text, c.Table.Rows[1][at].Text)
}

// A fit of the plan has residuals of its own line.
func TestFitsAlongFileSizeHaveResiduals(t *testing.T) {
	p, r := lawful(1, 8)
	r.Fits = []result.Fit{{Name: "line", Model: "line", Along: "file_size", Op: "write_time", Points: [][2]float64{{1e6, 2}, {0, 3}, {2e6, 6}, {4e6, 0}}, // no scale of logarithms has 0
		Coefficients: []result.Coefficient{{Name: "intercept", Value: 0}, {Name: "slope", Value: 2e-6}}}}
	c := chartOf(t, p, r, "fit-1-residuals")
	assert.Equal(t, []report.Mark{report.Point(1e6, 1), report.Point(2e6, 1.5)}, c.Series[0].Marks)
	r.Fits[0].Reason = "too few files"
	assert.Negative(t, index(NewView(p, r).Charts, "fit-1-residuals"))
}

// An interval rests on rounds from three on, on the files of a single mount, and on nothing where n is too small.
func TestIntervalsOfSizes(t *testing.T) {
	for _, c := range []struct {
		rounds, files int
		note          string
	}{
		{3, 8, "Bars: 95 % Student t of logarithms over rounds."},
		{1, 40, "over files within one mount (not independent)."},
		{1, 8, "No interval: too few rounds."},
		{2, 40, "No interval: too few rounds."},
	} {
		p, r := lawful(c.rounds, c.files)
		for i := range r.Cases[0].Steps { // rounds differ by a known factor
			for j := range r.Cases[0].Steps[i].Samples {
				f := &r.Cases[0].Steps[i].Samples[j]
				f.DurationNS = f.Bytes * int64(1+i)
			}
		}
		got := chartOf(t, p, r, "size-1-1")
		assert.Contains(t, got.Notes[0], c.note)
		bars := 0
		for _, s := range got.Series {
			for _, m := range s.Marks {
				bars += bit(m.CI != nil)
			}
		}
		if strings.HasPrefix(c.note, "No") {
			assert.Zero(t, bars)
			why := map[int]string{1: "1 round of 2 files, and an interval over files takes 6", 2: "2 rounds, and an interval needs 3"}[c.rounds]
			assert.Equal(t, report.Cell{Text: "—", Class: "muted", Title: why}, got.Table.Rows[0][3])
			continue
		}
		assert.Equal(t, 4, bars, "one for each size")
		if c.rounds == 3 { // rates 1, 1/2, 1/3 GB/s: geometric mean 6^(-1/3), and t of their logarithms
			y := got.Series[0].Marks[0].Y
			assert.InEpsilon(t, 1e9*math.Pow(6, -1.0/3), y, 1e-5)
			logs := []float64{0, math.Log(0.5), math.Log(1.0 / 3)}
			mean, sum := (logs[0]+logs[1]+logs[2])/3, 0.0
			for _, l := range logs {
				sum += (l - mean) * (l - mean)
			}
			low := 1e9 * math.Exp(mean-4.302653*math.Sqrt(sum/2/3))
			assert.InEpsilon(t, low, got.Series[0].Marks[0].CI.Low, 1e-4)
		}
	}
}
