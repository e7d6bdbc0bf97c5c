package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// sharing is the sample with claims of which three share a reason.
func sharing() (*plan.Plan, *result.Result) {
	p, r := reporttest.Sample()
	const why, apart = "this engine imitates it", "this run departs in scale"
	r.Claims = []result.Claim{
		{ID: "1", Says: "first", By: "author", Verdict: result.NotMeasured, Reason: why, Here: "seen alpha", Evidence: []string{"number 1", apart}},
		{ID: "2", Says: "second", By: "us", Verdict: result.Holds, Reason: "it holds", Evidence: []string{"number 2"}},
		{ID: "3", Says: "third", By: "author", Verdict: result.NotMeasured, Reason: why, Here: "seen beta", Evidence: []string{"number 3", apart}},
		{ID: "4", Says: "fourth", By: "us", Verdict: result.NotMeasured, Reason: why, Here: "seen beta", Evidence: []string{"number 4"}},
		{ID: "5", Says: "fifth", By: "us", Verdict: result.CannotTell, Reason: "it holds", Evidence: []string{"number 5"}},
	}
	return p, r
}

func TestASharedReasonIsSaidOnce(t *testing.T) {
	t.Parallel()
	for what, out := range map[string]string{"text": text(t, sharing, TextOptions{Verbose: true}), "markdown": markdown(t, sharing), "page": html(t, sharing)} {
		_, verdicts, found := strings.Cut(out, "Verdicts")
		require.True(t, found, what)
		assert.Equal(t, 1, strings.Count(verdicts, "this engine imitates it"), what)
		assert.Contains(t, verdicts, "3 claims: this engine imitates it", what)
		assert.Equal(t, 2, strings.Count(verdicts, "it holds"), "%s: the same words behind two verdicts are two reasons", what)
		last := -1
		for _, says := range []string{"first", "third", "fourth", "second", "fifth"} {
			at := strings.Index(verdicts, says)
			assert.Greater(t, at, last, "%s: %s", what, says)
			last = at
		}
		if what == "text" {
			continue
		}
		for _, e := range []string{"number 1", "number 2", "number 3", "number 4", "number 5"} {
			assert.Equal(t, 1, strings.Count(verdicts, e), "%s: %s", what, e)
		}
	}
	assert.Equal(t, "1 holds, 1 undecided, 3 not judged", CountVerdicts(NewView(sharing()).Claims))
}

func TestDeparturesFromAPlanWithoutSource(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	p.Source = nil
	own := func() (*plan.Plan, *result.Result) { return p, r }
	for what, c := range map[string]struct{ own, sample string }{
		"text":     {text(t, own, TextOptions{Verbose: true}), verboseOf("sample")},
		"markdown": {markdown(t, own), markdownOf("sample")},
		"page":     {html(t, own), pageOf("sample")},
	} {
		assert.Contains(t, c.own, "Deviations from the plan as written", what)
		assert.NotContains(t, c.own, "Deviations from what was published", what)
		assert.Contains(t, c.sample, "Deviations from what was published", what)
	}
}
