package report

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

func TestColumnsHaveOneUnitWhereItReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit   string
		values []float64
		want   string
	}{
		{"B", []float64{2e9, 117e6}, "2.00 GB, 0.117 GB"},
		{"B", []float64{93e6, 4096, 0}, "93.0 MB, 4.10 kB, 0 B"},
		{"B", []float64{0, 0}, "0 B, 0 B"},
		{"B", []float64{5e6, -3000}, "5.00 MB, -3.00 kB"},
		{"s", []float64{2, 0.004}, "2.00 s, 4.00 ms"},
		{"B/s", []float64{2e9, 90e6}, "2.00 GB/s, 90.0 MB/s"},
		{"1", []float64{18, 0}, "18, 0"},
	} {
		sc := ColumnScale(c.unit, c.values...)
		var got []string
		for _, v := range c.values {
			got = append(got, sc.Text(v))
		}
		assert.Equal(t, c.want, strings.Join(got, ", "))
	}
}

// A cell has the digits that the plan asks for, unless fewer than two would remain.
func TestCellsHaveTheDigitsOfThePlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		digits int
		value  float64
		want   string
	}{
		{0, 7e9, "7"}, {0, 0.4e9, "0"}, {0, 0, "0"},
		{2, 7e9, "7.00"}, {2, 12.345e9, "12.35"}, {2, -0.25e9, "-0.25"}, {2, 0, "0.00"},
		{2, 0.04e9, "0.0400"}, {2, 0.001e9, "0.00100"}, {2, math.Inf(1), "—"},
	} {
		sc := Scale{Factor: 1e9, Suffix: "GB", digits: &c.digits}
		assert.Equal(t, c.want, sc.Number(c.value), "%g with %d digits", c.value, c.digits)
	}
}

func TestSpanHasTheUnitsThatItNeeds(t *testing.T) {
	t.Parallel()
	one, mixed := ColumnScale("B", 5e6), ColumnScale("B", 5e6, 4096)
	for _, c := range []struct {
		sc        Scale
		low, high float64
		want      string
	}{
		{one, 4e6, 6e6, "4.00–6.00"}, {one, 0, 6e6, "0–6.00"}, {one, 4096, 6e6, "4.10 kB–6.00 MB"}, {one, -1e6, 2e6, "-1.00 to 2.00"},
		{mixed, 4000, 4200, "4.00–4.20 kB"}, {mixed, 4000, 6e6, "4.00 kB–6.00 MB"}, {mixed, 7, 7, "no spread"}, {mixed, 0, 0, "no spread"},
	} {
		assert.Equal(t, c.want, RangeText(c.sc, &result.CI{Low: c.low, High: c.high}, "B"))
	}
}

// A unit follows a number or a range without one, and no words.
func TestUnitsFollowNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1.24": "1.24 GB/s", "0.917–2.14": "0.917–2.14 GB/s", "917 MB/s–2.14 GB/s": "917 MB/s–2.14 GB/s",
		"within the last digit": "within the last digit", "no spread": "no spread", "—": "—", "": ""} {
		assert.Equal(t, want, AddUnit(text, "GB/s"))
	}
	afterWords := regexp.MustCompile(`(digit|spread|none|—) ([kMGT]?B(/s)?|[mµn]?s|min|h)\b`)
	p, r := makers["sample"]()
	for i := range r.Summaries {
		h := Headline(&r.Summaries[i])
		h.CI = &result.CI{Low: h.Value, High: h.Value * (1 + 1e-9*float64(i%2)), Level: 0.95, Unit: "round"}
	}
	m := func() (*plan.Plan, *result.Result) { return p, r }
	for form, text := range map[string]string{"page": html(t, m), "terminal": text(t, m, TextOptions{Verbose: true}), "first screen": text(t, m, TextOptions{}),
		"Markdown": markdown(t, m)} {
		assert.Contains(t, text, "within the last digit", form)
		assert.NotRegexp(t, afterWords, text, form)
	}
}

// Whatever values meet in a column: no cell begins with zeros, none is long, nought has its unit.
func TestEveryCellReads(t *testing.T) {
	t.Parallel()
	zeros := regexp.MustCompile(`^-?0\.0`)
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"B", "B/s"}).Draw(t, "unit")
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.Int64Range(-1<<rapid.IntRange(0, 50).Draw(t, "power"), 1<<50).Draw(t, "value"))
		}), 1, 6).Draw(t, "values")
		sc := ColumnScale(unit, values...)
		for _, v := range values {
			text := sc.Text(v)
			if zeros.MatchString(text) || len(text) > 12 || v == 0 && text != "0 "+unit {
				t.Fatalf("%v of %v is printed as %q", v, values, text)
			}
		}
	})
}

// unreadable is how a small size looks in the unit of a large one.
var unreadable = regexp.MustCompile(`[>| ](0|0\.00\d+) [kMG]B|[>|] ?0\.00\d+(</bdi>| \|)`)

func TestSmallSizesAreReadableInEveryRendering(t *testing.T) {
	t.Parallel()
	m := func() (*plan.Plan, *result.Result) {
		p, r := reporttest.Sample()
		small := []float64{4096, 0, 140e6}
		for i, n := 0, 0; i < len(r.Summaries); i++ {
			if s := &r.Summaries[i]; s.Op == "live" {
				s.Estimates[0].Value, n = small[n%3], n+1
			}
		}
		return p, r
	}
	for what, out := range map[string]string{"text": text(t, m, TextOptions{Verbose: true}), "markdown": markdown(t, m), "page": html(t, m)} {
		for _, want := range []string{"4.10 kB", "0 B", "140 MB"} {
			assert.Contains(t, out, want, what)
		}
		assert.False(t, unreadable.MatchString(out), "%s: %q", what, unreadable.FindString(out))
	}
	for line := range strings.Lines(text(t, m, TextOptions{Verbose: true})) {
		require.LessOrEqual(t, Width(strings.TrimRight(line, "\n")), 80, line)
	}
}

func TestRatiosWithoutRowsOfZeros(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "0.421×", Ratio(0.421))
	assert.Equal(t, "0.00642×", Ratio(0.00642))
	assert.Equal(t, "6.59e-05×", Ratio(0.0000659))
	assert.Equal(t, "1e-10×", Ratio(1e-10))
}

// An axis ends on a tick at or above its largest value, and at 1 without one.
func TestAxesEndOnTicks(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, -3: 1, math.Inf(1): 1, 1: 1, 7: 8, 83: 100, 0.31: 0.4, 1250e6: 1500e6} {
		assert.InDelta(t, want, RoundUp(v), 1e-9*want, "%g", v)
	}
}
