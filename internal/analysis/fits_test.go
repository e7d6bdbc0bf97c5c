package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const scaling = `
schema = 1
title = "threads"
[source]
title = "an article"
[image]
format = "UDSB"
size = "10 GB"
[inputs.big]
about = "any file"
size = "1 GB"
optional = true
[matrix]
threads = [1, 2, 4, 8]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "copy", from = "big", to = "in" },
  { do = "stream", from = "in", to = "out" },
]
[run]
baseline = false
canary = false
[[fit]]
name = "time"
quantity = "stream_time"
along = "threads"
model = "power"
predict = [16]
published = { factor = "10 s", exponent = -0.9 }
[[fit]]
name = "rate"
quantity = "stream"
along = "threads"
points = [1, 2, 4]
model = "line"
predict = [8]
[[relation]]
name = "time-output"
x = { stream_time = {} }
y = { stream_out = {} }
over = [{ threads = 1 }, { threads = 2 }, { threads = 4 }, { threads = 8 }]
`

// perThread takes 10 s / T^0.9 for 1 GB.
func perThread(noise float64) laws {
	return laws{engine: apple(), stream: func(m moment) (float64, int64, int64) {
		t := float64(m.c.Settings.Threads)
		return 10 / math.Pow(t, 0.9) * (1 + noise*m.noise("t")), 1e9, int64(5e8 / t)
	}}
}

func TestMeasuredFits(t *testing.T) {
	p := planOf(t, scaling)
	for _, rounds := range []int{1, 3} {
		r := analysed(t, p, rounds, perThread(0.02))
		require.Len(t, r.Fits, 2)
		f := r.Fits[0]
		require.Empty(t, f.Reason)
		require.Len(t, f.Points, 4)
		assert.Equal(t, []string{"factor", "exponent", "r2"}, []string{f.Coefficients[0].Name, f.Coefficients[1].Name, f.Coefficients[2].Name})
		e := f.Coefficients[1]
		assert.InDelta(t, -0.9, e.Value, 0.05)
		require.NotNil(t, e.Published)
		assert.InDelta(t, -0.9, *e.Published, 1e-12)
		require.NotNil(t, e.CI)
		assert.Equal(t, map[int]string{1: "point of the fit", 3: "round"}[rounds], e.CI.Unit)
		assert.Nil(t, f.Coefficients[2].CI)
		require.Len(t, f.Predictions, 1)
		assert.InEpsilon(t, 10/math.Pow(16, 0.9), f.Predictions[0][1], 0.1)
		assert.Len(t, r.Fits[1].Points, 3, "only the points that the plan names")
	}
}

// What is drawn is what was fitted: of a round that lost a point, no other point counts.
func TestPointsOfAFitAreThoseThatWereFitted(t *testing.T) {
	p := planOf(t, scaling)
	l := perThread(0.02)
	stream := l.stream
	l.stream = func(m moment) (float64, int64, int64) {
		s, in, out := stream(m)
		if m.round == 2 { // slow in all, and lost where there are 8 threads
			s *= 3
		}
		return s, in, out
	}
	l.fail = func(m moment) string {
		if m.round == 2 && m.c.Settings.Threads == 8 && m.step.Do == "stream" {
			return "lost"
		}
		return ""
	}
	f := analysed(t, p, 4, l).Fits[0]
	require.Empty(t, f.Reason)
	require.Len(t, f.Points, 4)
	for _, x := range f.Points {
		assert.InEpsilon(t, 10/math.Pow(x[0], 0.9), x[1], 0.03)
	}
	whole, err := fitPoints("power", f.Points)
	require.NoError(t, err)
	assert.InEpsilon(t, whole.coefficients[2].value, f.Coefficients[2].Value, 1e-12)
	assert.InDelta(t, whole.coefficients[1].value, f.Coefficients[1].Value, 1e-9, "the mean of lines over the same x is the line of the means")
}

func TestFitOfSingleFiles(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Fits = []plan.Fit{{Name: "files", Quantity: "write_time", Where: sel("format", "UDSB", "phase", "new"), Along: "file_size", Model: "line"},
		{Name: "no such", Quantity: "write_time", Where: sel("format", "ASIF"), Along: "file_size", Model: "line"},
		{Name: "too few", Quantity: "write", Where: sel("phase", "new"), Along: "size", Model: "line"}}
	r := analysed(t, p, 3, steady(flat(), 0))
	f := r.Fits[0]
	require.Empty(t, f.Reason)
	assert.Len(t, f.Points, 72)
	assert.InEpsilon(t, 1/2e9, f.Coefficients[1].Value, 1e-6)
	assert.InEpsilon(t, 1e-4, f.Coefficients[0].Value, 1e-3)
	assert.Contains(t, r.Fits[1].Reason, "format ASIF")
	assert.NotEmpty(t, r.Fits[2].Reason)
}

// Points are sizes, however they are written; a printed slope of nothing is no rate.
func TestFitOfNamedSizes(t *testing.T) {
	p := planOf(t, twoFormats+`
[[fit]]
name = "three"
quantity = "write_time"
where = { format = "UDSB", phase = "new" }
along = "file_size"
model = "line"
points = ["2000 kB", "4000000 B", "16 MB"]
published = { slope = "0 s" }
[[table]]
name = "t"
title = "T"
columns = [{ title = "rate", coefficient = "slope" }]
rows = [{ title = "x", fit = "three" }]
`)
	r := analysed(t, p, 3, steady(flat(), 0))
	assert.Len(t, r.Fits[0].Points, 54, "three of four sizes")
	assert.InEpsilon(t, 1/2e9, r.Fits[0].Coefficients[1].Value, 1e-6)
	cell := r.Tables[0].Cells[0][0]
	assert.InEpsilon(t, 2e9, cell.Estimate.Value, 1e-6)
	assert.Nil(t, cell.Published)
	_, err := json.Marshal(r)
	assert.NoError(t, err)
}

// The files of two mounts are no files within one mount: their line has an interval neither over files nor over rounds.
func TestFitOfTheFilesOfTwoRoundsHasNoInterval(t *testing.T) {
	p := planOf(t, twoFormats+`
[[fit]]
name = "files"
quantity = "write_time"
where = { format = "UDSB", phase = "new" }
along = "file_size"
model = "line"
[[table]]
name = "t"
title = "T"
columns = [{ title = "rate", coefficient = "slope" }]
rows = [{ title = "x", fit = "files" }]
`)
	for rounds, unit := range map[int]string{1: "file within one mount", 2: "", 3: "round"} {
		r := analysed(t, p, rounds, steady(flat(), 0.02))
		ci, cell := r.Fits[0].Coefficients[1].CI, r.Tables[0].Cells[0][0].Estimate
		if unit == "" {
			assert.Nil(t, ci)
			assert.Nil(t, cell.CI)
			assert.Contains(t, cell.Why, "too few rounds")
			continue
		}
		require.NotNil(t, ci, rounds)
		assert.Equal(t, unit, ci.Unit)
		assert.Empty(t, cell.Why)
	}
}

// What files took beside each other makes no rate of the whole, in a fit no more than in an estimate.
func TestNoFitOfFilesOfSeveralWorkers(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Fits = []plan.Fit{{Name: "files", Quantity: "write_time", Where: sel("format", "UDSB", "phase", "new"), Along: "file_size", Model: "line"}}
	r := play(p, 3, steady(flat(), 0))
	for i := range r.Cases {
		for k := range r.Cases[i].Steps {
			r.Cases[i].Steps[k].Workers = 4
		}
	}
	require.NoError(t, Analyze(p, r, Options{}))
	assert.Contains(t, r.Fits[0].Reason, "several workers")
}

func TestTwoLines(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Fits = []plan.Fit{{Name: "two", Quantity: "write_time", Where: sel("format", "UDSB", "phase", "new"), Along: "file_size", Model: "two-lines"}}
	l := steady(flat(), 0)
	rate := l.rate
	l.rate = func(m moment) float64 {
		if m.size > 5e6 {
			return rate(m) / 3
		}
		return rate(m)
	}
	f := analysed(t, p, 1, l).Fits[0]
	require.Empty(t, f.Reason)
	got := map[string]float64{}
	for _, c := range f.Coefficients {
		got[c.Name] = c.Value
	}
	assert.InEpsilon(t, 6e6, got["break"], 1e-9)
	assert.InEpsilon(t, 1/2e9, got["slope"], 1e-6)
	assert.InEpsilon(t, 3/2e9, got["slope_2"], 1e-6)
	assert.InDelta(t, 1, got["r2"], 1e-9)
}

func TestMeasuredRelation(t *testing.T) {
	p := planOf(t, scaling)
	r := analysed(t, p, 3, perThread(0.001))
	require.Len(t, r.Relations, 1)
	rel := r.Relations[0]
	assert.InDelta(t, 1, rel.Spearman, 1e-12)
	for i, pt := range rel.Points {
		assert.Equal(t, i+1, pt.RankX)
		assert.Equal(t, fmt.Sprintf("threads %d", 1<<i), pt.Label)
	}
	l := perThread(0.001)
	l.skip = func(c plan.Case) (string, string) {
		if c.Settings.Threads > 2 {
			return result.Skipped, "too many"
		}
		return "", ""
	}
	rel = analysed(t, p, 3, l).Relations[0]
	assert.Len(t, rel.Points, 2)
	assert.Contains(t, rel.Reason, "threads 4: case threads=4 was skipped: too many")
	assert.Zero(t, rel.Spearman)
}

func TestThreadClaims(t *testing.T) {
	p := planOf(t, scaling)
	for i, a := range []plan.Assert{
		{Kind: "trend", Left: op("stream_time"), Along: "threads", Direction: "falling"},
		{Kind: "coefficient", Fit: "time", Coefficient: "exponent", Bound: bound(t, "-1 to -0.8", "1")},
		{Kind: "prediction", Fit: "rate", Left: op("stream", "threads", "8"), At: []string{"8"}, Bound: bound(t, "0.9 to 1", "1")},
		{Kind: "bound", Left: op("ratio", "threads", "4"), Bound: bound(t, "7 to 9", "1")},
	} {
		c := claimOf(a)
		c.ID = fmt.Sprint(i)
		p.Claims = append(p.Claims, c)
	}
	for _, c := range analysed(t, p, 4, perThread(0.005)).Claims {
		assert.Equal(t, result.Holds, c.Verdict, "%s: %s", c.ID, c.Reason)
	}
}

// A line goes through its own predictions: both are means over the rounds.
func TestPredictionsLieOnTheLine(t *testing.T) {
	p := planOf(t, scaling)
	for i := range p.Fits {
		p.Fits[i].Predict = []string{"16"}
	}
	seen := false
	for _, f := range analysed(t, p, 4, perThread(0.05)).Fits {
		if f.Model != "line" || f.Reason != "" {
			continue
		}
		seen = true
		k := map[string]float64{}
		for _, c := range f.Coefficients {
			k[c.Name] = c.Value
		}
		assert.InEpsilon(t, k["intercept"]+16*k["slope"], f.Predictions[0][1], 1e-9, f.Name)
	}
	assert.True(t, seen)
}

// The factor of a power law is above zero, and so is its interval, however far the rounds lie apart.
func TestFactorOfPowerLawStaysPositive(t *testing.T) {
	p := planOf(t, scaling)
	l := perThread(0)
	stream := l.stream
	l.stream = func(m moment) (float64, int64, int64) {
		s, in, out := stream(m)
		return s * math.Pow(6, float64(m.round-2)), in, out // 1/6, 1 and 6 times the law
	}
	c := analysed(t, p, 3, l).Fits[0].Coefficients[0]
	require.Equal(t, "factor", c.Name)
	require.NotNil(t, c.CI)
	assert.Positive(t, c.CI.Low)
	assert.Equal(t, "Student t of logarithms", c.CI.Method)
	assert.InEpsilon(t, 10, c.Value, 0.05)
	assert.Less(t, c.CI.Low, c.Value)
	assert.Greater(t, c.CI.High, c.Value)

	near := analysed(t, p, 3, perThread(0.02)).Fits[0].Coefficients[0]
	assert.NotEqual(t, "Student t of logarithms", near.CI.Method, "rounds that lie close keep the interval that they had")
}
