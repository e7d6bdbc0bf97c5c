package report

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// The chart of the first screen is before the verdicts.
func TestFirstChartComesBeforeVerdicts(t *testing.T) {
	t.Parallel()
	page := pageOf("sample")
	assert.Less(t, strings.Index(page, "<figure>"), strings.Index(page, `id="h-claims"`))
	assert.Equal(t, 1, strings.Count(page, `data-for="first"`))
}

// What a stranger has to see before anything else is in every rendering, in this order.
func TestFirstScreenComesFirst(t *testing.T) {
	t.Parallel()
	page := pageOf("sample")
	page = regexp.MustCompile(`(?s)<figure>.*?</figure>`).ReplaceAllString(page[strings.Index(page, "<body>"):], "")
	for what, out := range map[string]string{"page": page, "markdown": markdownOf("sample"), "text": text(t, shared("sample"), TextOptions{Width: 2000, Verbose: true})} {
		last := -1
		for _, part := range []string{"Apple’s tools were not measured.", "published conclusion was not judged here: it is about Apple’s tools, which did not run.",
			"Our 3 claims: 1 holds, 1 does not hold, 1 undecided.", "Measured here, and published elsewhere, phase “new”", "2.31 GB/s", "2.19–2.44 GB/s", "5.5 GB/s",
			"Verdicts"} {
			at := strings.Index(out, part)
			require.GreaterOrEqual(t, at, 0, "%s: %s", what, part)
			assert.Greater(t, at, last, "%s: %s", what, part)
			last = at
		}
		for _, part := range []string{"4 deviations from the published protocol", "2 of 7 cases not measured in full", "ile sizes are a hundredth of the published ones"} {
			assert.Less(t, strings.Index(out, part), strings.Index(out, "Verdicts"), "%s: %s", what, part)
		}
	}
}

func TestEngineNotice(t *testing.T) {
	t.Parallel()
	notice := func(change func(r *result.Result)) string {
		_, r := reporttest.Sample()
		change(r)
		return NewView(&plan.Plan{}, r).First.Notice
	}
	assert.Contains(t, notice(func(*result.Result) {}), "made and attached the images on Linux")
	assert.Empty(t, notice(func(r *result.Result) { r.Sessions[0].Engine.Vendor = "Apple" }))
	assert.Contains(t, notice(func(r *result.Result) {
		other := r.Sessions[0]
		other.Engine.Vendor = "Apple"
		r.Sessions = append(r.Sessions, other)
	}), "in some sessions only")
	assert.Empty(t, notice(func(r *result.Result) {
		for i := range r.Cases {
			r.Cases[i].Target.Kind = "directory"
		}
	}), "directories need no tools")
	assert.Contains(t, notice(func(r *result.Result) { r.Sessions[0].Engine.Name = "simulated" }), "No disk was measured")
}

// A figure that is shown has its interval or says that there is none, and a
// published one that may not be compared has no ratio.
func TestMainNumbers(t *testing.T) {
	t.Parallel()
	for name := range makers {
		tb := NewView(shared(name)()).First.Numbers
		if tb == nil {
			require.Contains(t, []string{"empty", "uses"}, name)
			continue
		}
		assert.LessOrEqual(t, len(tb.Rows), mainRows, name)
		for _, row := range tb.Rows {
			require.Len(t, row, len(tb.Columns), name)
			for i, c := range row {
				switch title := tb.Columns[i].Title; {
				case title == "measured" && c.Text != "":
					assert.True(t, c.Bar > 0 && c.Bar <= 100, "%s: %v", name, c)
					interval := i+1 < len(row) && tb.Columns[i+1].Title == "interval" && row[i+1].Text != ""
					assert.True(t, interval || noIntervals(tb), "%s: %v", name, c)
				case title == "published" && c.Class == "uncomparable":
					assert.True(t, i+1 == len(row) || tb.Columns[i+1].Title != "ratio" || row[i+1].Text == "", "%s: %v", name, c)
				}
			}
		}
	}
	p, r := reporttest.Sample()
	p.Source, r.Tables = nil, nil
	for i := range r.Summaries { // nothing published; the second quantity was measured in another phase only
		s := &r.Summaries[i]
		if s.Published = nil; s.Op == "write" {
			s.Phase = "later"
		}
	}
	one := NewView(p, r).First.Numbers
	for i, c := range one.Columns {
		assert.True(t, slices.ContainsFunc(one.Rows, func(row []Cell) bool { return row[i].Text != "" }), "a column of nothing: %v", c)
	}
	p, r = reporttest.Sample()
	for i := range r.Summaries {
		for j := range r.Summaries[i].Published {
			r.Summaries[i].Published[j].Comparable = true
		}
	}
	tb := NewView(p, r).First.Numbers
	titles := []string{}
	for _, c := range tb.Columns[1:5] {
		titles = append(titles, c.Title)
	}
	assert.Equal(t, []string{"measured", "interval", "published", "ratio"}, titles)
	assert.Equal(t, "0.421×", tb.Rows[0][4].Text)
}

// The first screen has measured and published figures of a quantity in one unit; a published value of another
// quantity, or without a number, does not change it.
func TestMainNumbersHaveTheUnitOfPublishedOnes(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	for _, c := range []struct {
		values []float64
		low    float64 // published, of a unit
		unit   string
		want   []string
	}{
		{[]float64{950e6, 649e6}, 10.11e9, "B/s", []string{"0.950 GB/s", "0.649 GB/s"}},
		{[]float64{950e6, 649e6}, math.Inf(1), "B/s", []string{"950 MB/s", "649 MB/s"}},
		{[]float64{950e6, 649e6}, 10.11e9, "B", []string{"950 MB/s", "649 MB/s"}},
		{[]float64{2e9, 649e6}, 0, "B/s", []string{"2.00 GB/s", "0.649 GB/s"}},
	} {
		r.Cases, r.Summaries, r.Tables = r.Cases[:2], nil, nil
		for k, v := range c.values {
			r.Summaries = append(r.Summaries, result.Summary{Case: r.Cases[k].ID, Phase: "new", Op: "write", N: 1,
				Estimates: []result.Estimate{{Name: "mean", Value: v, Unit: "B/s"}},
				Published: []result.PublishedValue{{Low: c.low, High: c.low, Unit: c.unit, On: "a Mac"}}})
		}
		var got []string
		for _, row := range NewView(p, r).First.Numbers.Rows {
			got = append(got, row[1].Text)
		}
		assert.Equal(t, c.want, got, "%v %s", c.low, c.unit)
	}
}

// noIntervals says whether a table says once for all figures why they have no interval.
func noIntervals(tb *Table) bool {
	return slices.ContainsFunc(tb.Notes, func(n Note) bool { return n.Mark == 0 && strings.HasPrefix(n.Text, "Where there is no interval: ") })
}

// What does not hold or is undecided comes first on the first screen, however many claims hold.
func TestClaimsToReadComeFirst(t *testing.T) {
	t.Parallel()
	list := func(verdicts ...string) (out []ClaimView) {
		for _, v := range verdicts {
			out = append(out, ClaimView{Verdict: v})
		}
		return out
	}
	const yes, no, open, not = result.Holds, result.DoesNotHold, result.CannotTell, result.NotMeasured
	for _, c := range []struct{ all, first []ClaimView }{
		{list(yes, yes, yes, yes, yes, yes, no, no), list(no, no, yes, yes)},
		{list(yes, yes, yes, yes, yes, no, open), list(no, open, yes, yes)},
		{list(yes, yes, open, open, open, open, open), list(open, open, open, open)},
		{list(open, no, no, no, no, no), list(no, no, no, no)},
		{list(not, yes, open), list(open, yes, not)},
		{list(no), list(no)},
	} {
		assert.Equal(t, c.first, claimsToRead(c.all))
	}
	assert.Empty(t, claimsToRead(nil))
}

// A doubt that all rates share is not repeated where the list of weaknesses has it with the name of a step.
func TestSharedDoubtsAreNotRepeated(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	r.Cases[0].Warnings = []result.Warning{{Kind: "cache", Text: "write new: blocks may be cached"}}
	for i := range r.Summaries {
		r.Summaries[i].Warnings = []result.Warning{{Kind: "cache", Text: "blocks may be cached"}}
	}
	first := NewView(p, r).First
	assert.Equal(t, 1, strings.Count(strings.Join(append(first.Weak, first.Shared...), "; "), "may be cached"))
}
