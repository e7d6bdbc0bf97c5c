package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// groupsOf are values of groups at levels of their own, shuffled; from cut on they are larger by by.
func groupsOf(rng *rand.Rand, each, cut int, noise, by float64) (values []float64, keys []int) {
	for g := range 8 {
		for range each {
			keys = append(keys, g)
		}
	}
	rng.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	for i, g := range keys {
		v := float64(g) + noise*rng.NormFloat64()
		if i >= cut {
			v += by
		}
		values = append(values, v)
	}
	return values, keys
}

// A shift is found where it is and as large as it is, at whatever level each group lies.
func TestShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, k := range []struct {
		cut       int
		noise, by float64
	}{{40, 0.1, 0.5}, {16, 0.05, -0.4}, {60, 0.01, 1}} {
		values, keys := groupsOf(rng, 10, k.cut, k.noise, k.by)
		s, err := FindShift(values, keys)
		require.NoError(t, err)
		assert.InDelta(t, k.cut, s.At, 4)
		assert.InDelta(t, k.by, s.By, 2*k.noise)
		assert.LessOrEqual(t, s.P, 0.01)
	}
	still, err := FindShift(make([]float64, 9), make([]int, 9))
	require.NoError(t, err)
	assert.Equal(t, Shift{P: 1}, still)
	alone, err := FindShift([]float64{1, 5, 9}, []int{1, 2, 3})
	require.NoError(t, err)
	assert.Equal(t, Shift{P: 1}, alone, "values without a like of their own")
	_, err = FindShift([]float64{1}, []int{1})
	require.ErrorIs(t, err, ErrTooFew)
}

// Noise is called a shift at most as often as P says.
func TestShiftFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, each := range []int{3, 10, 30} {
		found := 0
		for range 2000 {
			values, keys := groupsOf(rng, each, 0, 0.1, 0)
			s, err := FindShift(values, keys)
			require.NoError(t, err)
			if s.P <= 0.05 {
				found++
			}
		}
		assert.LessOrEqual(t, found, 130, "%d of a group", each)
		assert.Positive(t, found, "%d of a group", each)
	}
}

func TestTwoClusters(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var one, two, far []float64
	for i := range 100 {
		z := rng.NormFloat64()
		one, two, far = append(one, z), append(two, 0.1*z), append(far, z)
		if i%3 == 0 {
			two[i]++
		}
	}
	far[7] = 50
	c, err := FitTwoClusters(two, 10)
	require.NoError(t, err)
	assert.Equal(t, [2]int{66, 34}, c.N)
	assert.InDelta(t, 1, c.High-c.Low, 0.1)
	assert.True(t, c.Distinct)
	for name, xs := range map[string][]float64{"one mode": one, "a far value": far} {
		c, err := FitTwoClusters(xs, 10)
		require.NoError(t, err)
		assert.False(t, c.Distinct, name)
	}
	_, err = FitTwoClusters(one, 51)
	require.ErrorIs(t, err, ErrTooFew)
	// Either cluster may be as small as is asked for, and no smaller
	for _, k := range []struct {
		xs   []float64
		want [2]int
	}{{[]float64{1, 1, 1, 1, 1, 1, 9, 9}, [2]int{6, 2}}, {[]float64{9, 1, 9, 9, 1, 9, 9, 9}, [2]int{2, 6}},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 9}, [2]int{6, 2}}} {
		c, err := FitTwoClusters(k.xs, 2)
		require.NoError(t, err)
		assert.Equal(t, k.want, c.N, "%v", k.xs)
	}
	same := make([]float64, 20)
	c, err = FitTwoClusters(same, 2)
	require.NoError(t, err)
	assert.False(t, c.Distinct)
}

// Evenly spread values are called two clusters in 1 of 100 samples.
func TestTwoClustersFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 1000 {
		xs := make([]float64, 40)
		for i := range xs {
			xs[i] = rng.Float64()
		}
		c, err := FitTwoClusters(xs, 4)
		require.NoError(t, err)
		if c.Distinct {
			found++
		}
	}
	assert.InDelta(t, 10, found, 9)
}
