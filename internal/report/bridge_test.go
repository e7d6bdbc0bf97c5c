package report

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// This file is what the tests in a browser, which run the whole program and so stand outside of the package, need of its inside.

// PictureWidth is how wide a saved picture is, in CSS pixels.
const PictureWidth = 900

// WellFormed reads a picture as XML.
var WellFormed = wellFormed

// PageOf is the report of one of the makers.
func PageOf(name string) string { return pageOf(name) }

// Made are pages of results that no plan can bring about on one machine: a history over versions of a system, and results that
// somebody changed, with control characters, broken UTF-8 and hostile text in what the program itself writes, as names of
// machines and kinds of warnings. Results come from strangers, too.
func Made(t *testing.T) map[string]string {
	c := hostileComparison(t)
	return map[string]string{
		"report that was changed":     fewFiles(t, makers["hostile"]),
		"comparison that was changed": string(rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, ComparisonDocument(c)) })),
		"history that was changed":    historyPage(t, hostilePast()),
		"history over versions":       historyPage(t, pastOf(sharedPast())),
	}
}

// hostileComparison is full of names that want to be markup.
func hostileComparison(t *testing.T) *analysis.Comparison {
	evil := `</script><img src=x onerror=alert(1)>` + "\u202e`|*\"'__f__ 🧨" + strings.Repeat("x", 300)
	a, b := comparableRun("a"+evil, evil+"1", 100), comparableRun("b"+evil, evil+"2", 200)
	for _, r := range []*result.Result{a, b} {
		r.Claims[0].Says, r.Claims[0].ID, r.Plan.Name = evil, evil, evil
		r.Cases[0].ID = evil
	}
	c, err := analysis.Compare([]*result.Result{a, b}, analysis.CompareOptions{})
	require.NoError(t, err)
	return c
}

// fewFiles is a report of one phase and a few cases, with few points in its charts: it draws quickly.
func fewFiles(t *testing.T, m maker) string {
	t.Helper()
	p, r := m()
	thinOut(r)
	phase := ""
	eachStep(r, func(s *result.Step) {
		if phase == "" && s.Do == "write" {
			phase = s.Phase
		}
	})
	r.Cases = slices.Delete(r.Cases, 2, 4) // of four images
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Steps = slices.DeleteFunc(c.Steps, func(s result.Step) bool { return len(s.Samples) > 0 && s.Do != "canary" && s.Phase != phase })
	}
	r.Summaries = slices.DeleteFunc(r.Summaries, func(s result.Summary) bool {
		return s.Phase != phase || !slices.ContainsFunc(r.Cases, func(c result.Case) bool { return c.ID == s.Case })
	})
	var b bytes.Buffer
	require.NoError(t, Renderers.HTML(&b, p, r))
	return b.String()
}
