package plan_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// A value that is no number is inside no bound, not even one that is open at both ends.
func TestNoNumberIsInsideABound(t *testing.T) {
	assert.False(t, plan.Bound{Low: math.Inf(-1), High: math.Inf(1)}.Holds(math.NaN()))
	assert.True(t, plan.Bound{Low: math.Inf(-1), High: math.Inf(1)}.Holds(0))
}

// A word of 64 characters may be misspelt; a longer one is no key.
func TestNearestHasALongestWord(t *testing.T) {
	long := strings.Repeat("x", 64)
	assert.Equal(t, long, plan.Nearest(long, []string{long}))
	assert.Empty(t, plan.Nearest(long+"x", []string{long}))
}

// A figure is of an operand if it was taken on all that the operand names.
func TestFiguresMatchWhatAnOperandNames(t *testing.T) {
	day := time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC)
	figure := plan.Published{On: plan.On{Machine: "Mac", OS: "macOS 15", Tool: "Tool 1", Date: day}}
	for _, test := range []struct {
		on   plan.On
		want bool
	}{
		{plan.On{}, true},
		{figure.On, true},
		{plan.On{Machine: "Mac"}, true}, {plan.On{Machine: "PC"}, false},
		{plan.On{OS: "macOS 15"}, true}, {plan.On{OS: "macOS 14"}, false},
		{plan.On{Tool: "Tool 1"}, true}, {plan.On{Tool: "Tool 2"}, false},
		{plan.On{Date: day}, true}, {plan.On{Date: day.AddDate(0, 0, 1)}, false},
	} {
		assert.Equal(t, test.want, figure.Matches(&plan.Operand{On: test.on}, nil), "%+v", test.on)
	}
}

// The unit of a coefficient follows from its fit; a time over bytes is printed as a rate.
func TestUnitsOfCoefficients(t *testing.T) {
	for _, test := range []struct {
		quantity    plan.Quantity
		along, name string
		unit        string
		inverse     bool
	}{
		{"write_time", "file_size", "r2", "1", false},
		{"write_time", "threads", "exponent", "1", false},
		{"write_time", "file_size", "break", "B", false},
		{"write_time", "threads", "break", "1", false},
		{"write_time", "file_size", "slope", "B/s", true},
		{"write_time", "file_size", "slope_2", "B/s", true},
		{"write_time", "threads", "slope", "s", false},
		{"write", "file_size", "slope", "", false},
		{"write", "file_size", "intercept", "B/s", false},
		{"write", "threads", "factor", "B/s", false},
	} {
		unit, inverse := plan.CoefficientUnit(plan.Fit{Quantity: test.quantity, Along: test.along}, test.name)
		assert.Equal(t, test.unit, unit, "%+v", test)
		assert.Equal(t, test.inverse, inverse, "%+v", test)
	}
}

// Digits are those of a unit that the plan names; a quantity without a unit needs none.
func TestDigitsOfAnUnknownUnitAreLeftOut(t *testing.T) {
	two, three := 2, 3
	table := plan.Table{Unit: "GB/s", Digits: &two}
	for _, test := range []struct {
		line   plan.TableLine
		unit   string
		digits *int
	}{
		{plan.TableLine{Operand: plan.Operand{Quantity: "write"}}, "GB/s", &two},
		{plan.TableLine{Operand: plan.Operand{Quantity: "write"}, Digits: &three}, "GB/s", &three},
		{plan.TableLine{Operand: plan.Operand{Quantity: "write_time"}}, "", nil},
		{plan.TableLine{Operand: plan.Operand{Quantity: "ratio"}}, "", &two},
		{plan.TableLine{Coefficient: "slope", Unit: "MB/s", Digits: &three}, "MB/s", &three},
	} {
		unit, digits := table.DisplayFormat(test.line)
		assert.Equal(t, test.unit, unit, "%+v", test.line)
		assert.Equal(t, test.digits, digits, "%+v", test.line)
	}
}

// Rounds are as many as the plan has, or end at a limit that the change names.
func TestLimitsOfRoundsAreNamed(t *testing.T) {
	p := mustParse(t, smallPlan)
	assert.Equal(t, 3, p.Run.AtMost())
	for _, test := range []struct {
		flags plan.Overrides
		want  string
	}{
		{plan.Overrides{Auto: true}, "^5 to 30 rounds, until every interval is within ± 5%, not 3 rounds$"},
		{plan.Overrides{Auto: true, MaxRounds: 7, MaxTime: 60e9}, "within ± 5%, for at most 60 s, not 3 rounds$"},
		{plan.Overrides{Auto: true, MaxWritten: 5e9}, "within ± 5%, writing at most 5 GB, not 3 rounds$"},
	} {
		q, changes, err := p.Apply(test.flags)
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Regexp(t, test.want, changes[0].Text)
		if test.flags.MaxRounds > 0 {
			assert.Equal(t, test.flags.MaxRounds, q.Run.AtMost())
		}
	}
}

// A block that has to fail and fits is followed as often as it is repeated, and what it leaves is not known.
func TestABlockThatHasToFailIsRepeatedAsOftenAsItSays(t *testing.T) {
	p := mustParse(t, strings.Replace(smallPlan, `{ do = "write", phase = "new" },
  { do = "read", phase = "new" },`, `{ do = "repeat", times = 2, expect = "fail", steps = [{ do = "write", phase = "full" }] },
  { do = "measure", phase = "after" },`, 1))
	got := plan.Estimate(p, p.Cases()[0])
	assert.EqualValues(t, 2*9e6, got.BytesWritten)
	last := got.Steps[len(got.Steps)-1]
	assert.Equal(t, "measure", last.Do)
	assert.Zero(t, last.Live, "its files do not count behind it")
}

// A claim names sets, cycles and sizes that a step of its quantity has.
func TestClaimsNameSamplesThatExist(t *testing.T) {
	for where, message := range map[string]string{
		`set = 1`: "", `set = 2`: "", `set = 3`: "", `set = [1, 2]`: "", `cycle = 0`: "", `file_size = "2 MB"`: "",
		`set = 4`:            `no write step of the selected cases has the set "4"`,
		`cycle = 1`:          `no write step of the selected cases has the cycle "1"`,
		`file_size = "3 MB"`: `no write step of the selected cases has the file_size "3 MB"`,
	} {
		_, problems := plan.Parse("p.toml", []byte(smallPlan+"[[claim]]\nsays = \"x\"\nby = \"us\"\nleft = { write = { phase = \"new\", "+where+" } }\nbound = \"> 1 GB/s\"\n"))
		if message == "" {
			assert.Empty(t, problems.Errors(), where)
			continue
		}
		require.Len(t, problems.Errors(), 1, where)
		assert.Equal(t, message, problems.Errors()[0].Message)
	}
}

// Space that was trimmed is used again; without trim a second batch takes more of the host's disk.
func TestTrimmedSpaceIsUsedAgain(t *testing.T) {
	const second = `{ do = "write", phase = "new" },
  { do = "delete", all = true },
  TRIM
  { do = "write", phase = "more" },`
	peaks := map[string]float64{}
	for name, trim := range map[string]string{"trimmed": `{ do = "trim" },`, "kept": ""} {
		text := strings.Replace(smallPlan, `{ do = "write", phase = "new" },`, strings.Replace(second, "TRIM", trim, 1), 1)
		p := mustParse(t, strings.Replace(text, `size   = "1 GB"`, "size = \"1 GB\"\nband_size = \"1 MiB\"", 1))
		peaks[name] = float64(plan.Estimate(p, p.Cases()[0]).HostPeak)
	}
	assert.InDelta(t, 9e6, peaks["trimmed"], 1<<20)
	assert.InDelta(t, 18e6, peaks["kept"], 1<<20)
}

// The output of a stream has a size that is not known before; that of a copy is known.
func TestStreamsAreApproximate(t *testing.T) {
	text := smallPlan + "[inputs.big]\nabout = \"any file\"\nsize = \"1 MB\"\n"
	for steps, want := range map[string]bool{
		`{ do = "copy", from = "big", to = "a" },`:                                          false,
		`{ do = "copy", from = "big", to = "a" }, { do = "stream", from = "a", to = "b" },`: true,
	} {
		p := mustParse(t, strings.Replace(text, `{ do = "read", phase = "new" },`, steps, 1))
		assert.Equal(t, want, plan.Estimate(p, p.Cases()[0]).Approximate, steps)
	}
}

// A yes or no on the command line is true or false, and nothing else.
func TestFlagsOfSelectorsAreTrueOrFalse(t *testing.T) {
	p := mustParse(t, smallPlan)
	for text, accepted := range map[string]bool{"preallocate=true": true, "preallocate=false": true, "preallocate=maybe": false} {
		_, err := p.ParseSelector(text)
		assert.Equal(t, accepted, err == nil, "%s: %v", text, err)
	}
}
