package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func meanOfY(_, y []float64) float64 { return mean(y) }

// With one group the jackknife of the mean is Student's interval.
func TestOneGroupIsStudentsInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), 3, 30).Draw(t, "y")
		x := make([]float64, len(y))
		got, err := JackknifeByGroup(x, y, meanOfY, 1, 0.95)
		require.NoError(t, err)
		want, err := MeanInterval(y, 0.95)
		require.NoError(t, err)
		require.InDelta(t, want.Low, got.Low, 1e-6)
		require.InDelta(t, want.High, got.High, 1e-6)
	})
}

// What the groups differ by is chosen, and widens nothing.
func TestGroupsAreNoScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x, y, apart []float64
		for g := range rapid.IntRange(1, 5).Draw(t, "groups") {
			for range rapid.IntRange(MinInGroup, 6).Draw(t, "members") {
				v := rapid.Float64Range(-1, 1).Draw(t, "v")
				x, y, apart = append(x, float64(g)), append(y, v), append(apart, v+1000*float64(g))
			}
		}
		a, err := JackknifeByGroup(x, y, meanOfY, 1, 0.95)
		require.NoError(t, err)
		b, err := JackknifeByGroup(x, apart, meanOfY, 1, 0.95)
		require.NoError(t, err)
		require.InDelta(t, a.High-a.Low, b.High-b.Low, 1e-6)
	})
}

func TestSmallGroupsAreRefused(t *testing.T) {
	_, err := JackknifeByGroup([]float64{1, 1, 1, 2, 2}, []float64{1, 2, 3, 4, 5}, meanOfY, 1, 0.95)
	require.ErrorIs(t, err, ErrTooFew)
	x, y := []float64{1, 1, 1, 2, 2}, []float64{1, 2, 3, 4, 5}
	line, err := FitTheilSen(x, y)
	require.NoError(t, err)
	_, err = line.SlopeIntervalByGroup(x, y, 0.95)
	require.ErrorIs(t, err, ErrTooFew)
	_, err = JackknifeByGroup(nil, nil, meanOfY, 1, 0.95)
	require.Error(t, err)
}

// slopeByHand works the interval of [TheilSen.SlopeIntervalByGroup] out the long way: every point counts how many
// slopes to points of other x are above the median slope less how many are below it, and the variance of Kendall's S
// follows from how these counts scatter within each x. ok is false where the interval would reach beyond all slopes.
func slopeByHand(x, y []float64, level float64) (low, high float64, ok bool) {
	var slopes []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	slices.Sort(slopes)
	n := len(slopes)
	mid := (slopes[(n-1)/2] + slopes[n/2]) / 2
	terms := map[float64][]float64{}
	for i := range x {
		term := 0.0
		for j := range x {
			if x[i] != x[j] {
				term += float64(cmp.Compare((y[i]-y[j])/(x[i]-x[j]), mid))
			}
		}
		terms[x[i]] = append(terms[x[i]], term)
	}
	variance, below := 0.0, 0.0
	for _, list := range terms {
		g, sum, squares := float64(len(list)), 0.0, 0.0
		for _, v := range list {
			sum, squares = sum+v, squares+v*v
		}
		share := (squares - sum*sum/g) * g / (g - 1)
		variance, below = variance+share, below+share*share/(g-1)
	}
	k := int(math.Floor((float64(n) - StudentQuantile((1+level)/2, variance*variance/below)*math.Sqrt(variance)) / 2))
	if k < 1 {
		return 0, 0, false
	}
	return slopes[k-1], slopes[n-k], true
}

func TestSlopeIntervalByGroupAgainstTheLongWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	given, refused := 0, 0
	for range 200 {
		var x, y []float64
		// The x are in no order, as files come. They differ by powers of two, so that slopes are exact and some tie.
		for _, at := range []float64{6, 2, 4}[:2+rng.IntN(2)] {
			for range MinInGroup + rng.IntN(4) {
				x, y = append(x, at), append(y, math.Round(4*(at+at*rng.NormFloat64()/4))/4)
			}
		}
		line, err := FitTheilSen(x, y)
		require.NoError(t, err)
		for _, level := range []float64{0.5, 0.95} {
			got, err := line.SlopeIntervalByGroup(x, y, level)
			low, high, ok := slopeByHand(x, y, level)
			if !ok {
				require.ErrorIs(t, err, ErrTooFew, "%v %v", x, y)
				refused++
				continue
			}
			require.NoError(t, err, "%v %v", x, y)
			require.Equal(t, Interval{Low: low, High: high, Level: level, Method: MethodSenByGroup}, got, "%v %v", x, y)
			given++
		}
	}
	assert.Greater(t, given, 200)
	assert.Greater(t, refused, 20)
}

// grown draws times that grow with size and scatter by a share of themselves.
func grown(rng *rand.Rand, each int) (x, y []float64) {
	for _, size := range []float64{1, 2, 5, 10, 20, 50, 100} {
		for range each {
			x, y = append(x, size), append(y, (0.5+size)*math.Exp(0.1*rng.NormFloat64()-0.005))
		}
	}
	return x, y
}

// coverGrown is how often the intervals of a slope of 1 hold it.
func coverGrown(t *testing.T, each, n int) (sen, least float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		x, y := grown(rng, each)
		l, err := FitTheilSen(x, y)
		require.NoError(t, err)
		iv, err := l.SlopeIntervalByGroup(x, y, 0.95)
		require.NoError(t, err)
		if iv.Contains(1) {
			sen++
		}
		iv, err = JackknifeByGroup(x, y, func(x, y []float64) float64 {
			line, err := FitLine(x, y)
			require.NoError(t, err)
			return line.Slope
		}, 1, 0.95)
		require.NoError(t, err)
		if iv.Contains(1) {
			least++
		}
	}
	return sen / float64(n), least / float64(n)
}

func TestIntervalsByGroupHoldTheirLevelWhereScatterGrows(t *testing.T) {
	n := 300
	if os.Getenv("DMGBENCH_LONG") != "" {
		n = 5000
	}
	sen, least := coverGrown(t, 8, n)
	assert.InDelta(t, 0.95, sen, 0.04)
	assert.InDelta(t, 0.95, least, 0.04)
}
