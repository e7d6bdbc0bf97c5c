package result

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestQuantilesAreWithinHalfAPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<62), 1, 50).Draw(t, "values")
		var one, a, b Latencies
		for i, v := range values {
			one.Add(v)
			[]*Latencies{&a, &b}[i%2].Add(v)
		}
		a.Merge(&b)
		h := one.Histogram()
		assert.Equal(t, h, a.Histogram(), "merged")
		require.NoError(t, h.check())
		assert.EqualValues(t, len(values), h.Count())
		for _, q := range []float64{0, 0.5, 0.95, 0.99, 1} {
			got, below, atMost := float64(h.Quantile(q)), 0, 0
			for _, v := range values {
				if float64(v) < got*0.995 {
					below++
				}
				if float64(v) <= got*1.005 {
					atMost++
				}
			}
			assert.GreaterOrEqual(t, float64(atMost), q*float64(len(values)), "quantile %v", q)
			assert.LessOrEqual(t, float64(below), max(q*float64(len(values)), 0), "quantile %v", q)
		}
	})
}

func TestQuantilesOfFewValues(t *testing.T) {
	var l Latencies
	assert.Zero(t, new(Histogram).Quantile(0.5))
	for _, v := range []int64{100, 300, 200, -5} {
		l.Add(v)
	}
	h := l.Histogram()
	assert.Equal(t, Histogram{Sum: 600, Min: 0, Max: 300, Buckets: [][2]int64{{0, 1}, {100, 1}, {200, 1}, {278, 1}}}, h)
	for q, want := range map[float64]int64{0.01: 0, 0.25: 0, 0.5: 100, 0.51: 200, 0.75: 200, 0.99: 300, 1: 300} {
		assert.Equal(t, want, h.Quantile(q), "quantile %v", q)
	}
	worst := Histogram{Min: 5, Max: 1001, Buckets: [][2]int64{{5, 99}, {int64(bucketOf(1001)), 1}}}
	assert.Equal(t, int64(1001), worst.Quantile(1), "the largest value is no middle of a bucket")
	var empty Latencies
	empty.Merge(&l)
	assert.Equal(t, h, empty.Histogram())
	empty.Merge(&Latencies{})
	assert.Equal(t, h, empty.Histogram())
}

func TestOperationsThatContradictThemselvesAreRejected(t *testing.T) {
	const good = `{"do": "random", "duration_ns": 1000, "operations_span": {"duration_ns": 900, "own_ns": 3},
		"operations": [{"kind": "read", "count": 2, "bytes": 8192,
			"latency": {"sum_ns": 500, "min_ns": 200, "max_ns": 300, "buckets": [[200, 1], [278, 1]]}}]}`
	for _, tt := range []struct{ name, old, new, want string }{
		{"as recorded", "", "", ""},
		{"another count", `"count": 2`, `"count": 3`, "3 of 8192 bytes, with 2 latencies"},
		{"negative bytes", "8192", "-1", "2 of -1 bytes"},
		{"longer than the step", `"duration_ns": 1000`, `"duration_ns": 250`, "operations run for"},
		{"latency longer than the step", `"max_ns": 300, "buckets": [[200, 1], [278, 1]]`,
			`"max_ns": 5000, "buckets": [[200, 1], [796, 1]]`, "latencies up to 5000 ns"},
		{"no span", `"operations_span": {"duration_ns": 900, "own_ns": 3},`, "", "operations run for"},
		{"negative own time", `"own_ns": 3`, `"own_ns": -3`, "operations run for"},
		{"negative span", `"duration_ns": 900`, `"duration_ns": -9`, "operations run for"},
		{"buckets out of order", "[[200, 1], [278, 1]]", "[[278, 1], [200, 1]]", "bucket 200"},
		{"a bucket twice", "[[200, 1], [278, 1]]", "[[200, 1], [200, 1]]", "bucket 200"},
		{"an empty bucket", "[278, 1]", "[278, 0]", "bucket 278 has 0 values"},
		{"a bucket that no value has", "[278, 1]", "[7296, 1]", "bucket 7296"},
		{"another shortest", `"min_ns": 200`, `"min_ns": 100`, "values from 100 to 300 ns"},
		{"another longest", `"max_ns": 300`, `"max_ns": 400`, "values from 200 to 400 ns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var step Step
			require.NoError(t, json.Unmarshal([]byte(replaceOnce(t, good, tt.old, tt.new)), &step))
			if err := step.check(); tt.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.want)
			}
		})
	}
}

func replaceOnce(t *testing.T, text, old, with string) string {
	if old == "" {
		return text
	}
	require.Equal(t, 1, strings.Count(text, old), old)
	return strings.Replace(text, old, with, 1)
}
