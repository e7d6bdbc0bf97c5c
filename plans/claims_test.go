package plans_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// readPlan is a shipped plan and what was found in it. Tests share it: none changes it.
type readPlan struct {
	plan     *plan.Plan
	problems *plan.Problems
}

// shipped are all plans, read once.
var shipped = sync.OnceValue(func() map[string]readPlan {
	out := map[string]readPlan{}
	for _, name := range plans.Names() {
		text, _ := plans.Get(name)
		p, problems := plan.Parse(name+".toml", text)
		out[name] = readPlan{p, problems}
	}
	return out
})

// load is a plan that reads without a word.
func load(t *testing.T, name string) *plan.Plan {
	t.Helper()
	require.Contains(t, shipped(), name)
	if problems := shipped()[name].problems; problems != nil {
		require.Empty(t, problems.Error())
	}
	return shipped()[name].plan
}

// withoutFigures are the author's claims that rest on no printed figure, and what they are held against instead.
var withoutFigures = map[string][]string{
	// The article prints what happens, not how long it takes: what each step of the plan expects is the figure.
	"repair-2026": {"refused", "records-disused", "attached-unmounted", "repaired", "sealed-refused"},
}

// TestAuthorsClaims: every claim of an author holds on the figures that he
// printed, in each of its parts, and would not if a figure were another one.
func TestAuthorsClaims(t *testing.T) {
	for _, name := range plans.Names() {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			var outcomes []string
			for _, c := range p.Claims {
				if c.By != "author" {
					continue
				}
				require.NotNil(t, p.Source, "an author has published something")
				if c.Assert.Kind == "outcome" {
					outcomes = append(outcomes, c.ID)
				}
				for i, part := range parts(c.Assert) {
					what := fmt.Sprintf("%s, part %d", c.ID, i+1)
					got := judge(t, p, part)
					require.Equal(t, result.Holds, got.Verdict, "%s: %s", what, got.Reason)
					assert.True(t, decided(t, p, part), "%s: no figure of the source decides it", what)
				}
			}
			assert.Equal(t, withoutFigures[name], outcomes)
		})
	}
}

// parts are what has to hold of an assertion, one by one. Alternatives stay together.
func parts(a plan.Assert) []plan.Assert {
	if a.Kind != "all" {
		return []plan.Assert{a}
	}
	var out []plan.Assert
	for _, part := range a.Parts {
		out = append(out, parts(part)...)
	}
	return out
}

// judge holds one assertion against the published figures.
func judge(t *testing.T, p *plan.Plan, a plan.Assert) result.Claim {
	q := *p
	q.Claims = []plan.Claim{{ID: "one", Says: "one", By: "author", Scope: "apple", Assert: a}}
	got := analysis.JudgePublished(&q)
	require.Len(t, got, 1)
	return got[0]
}

// decided says whether the claim no longer holds when one figure is far larger or
// smaller, or the outcome another.
func decided(t *testing.T, p *plan.Plan, a plan.Assert) bool {
	if a.Kind == "outcome" {
		a.Outcome = map[string]string{"ok": "fail", "fail": "ok"}[a.Outcome]
		return judge(t, p, a).Verdict == result.DoesNotHold
	}
	for i := range p.Published {
		for _, factor := range []float64{0.001, 1000} {
			q := *p
			q.Published = slices.Clone(p.Published)
			q.Published[i].Value.Low *= factor
			q.Published[i].Value.High *= factor
			if judge(t, &q, a).Verdict != result.Holds {
				return true
			}
		}
	}
	return false
}

// What an author says and prints no figures for is our claim about Apple's tools: it says so.
func TestClaimsWithoutFiguresSayWhy(t *testing.T) {
	for _, name := range plans.Names() {
		for _, c := range load(t, name).Claims {
			if c.By == "us" && c.Scope == "apple" {
				assert.NotEmpty(t, c.Note, "%s: %s", name, c.ID)
			}
		}
	}
}

// Sizes shrink with --scale, and what a claim bounds them by does not: shipped claims set sizes against sizes.
func TestClaimsBoundNoSizes(t *testing.T) {
	for _, name := range plans.Names() {
		for _, c := range load(t, name).Claims {
			for _, part := range parts(c.Assert) {
				assert.False(t, part.Kind == "bound" && part.Left.Quantity.Unit() == "B", "%s: %s", name, c.ID)
			}
		}
	}
}

// articles are the published texts. They belong to their authors and are not part of this repository.
func articles(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("../../shared/articles/*.txt")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("../shared/articles is missing: the articles are not part of this repository")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return texts
}

var printed = regexp.MustCompile(`\d+(\.\d+)?`)

// TestFiguresArePrinted: every figure stands in one of the articles, as it is
// printed there, but for those that say that they are derived.
func TestFiguresArePrinted(t *testing.T) {
	have := map[string]bool{}
	for _, text := range articles(t) {
		for _, number := range printed.FindAllString(strings.ReplaceAll(text, ",", ""), -1) {
			have[number] = true
		}
	}
	for _, name := range plans.Names() {
		if name == "performance-2022" || name == "working-folders-2026" {
			continue // their figures are of pages that are not among these
		}
		for _, f := range load(t, name).Published {
			if strings.Contains(f.Note, "derived") {
				continue
			}
			for _, number := range printed.FindAllString(f.Value.Text, -1) {
				assert.True(t, have[number], "%s: %s %s where %s: %s is not printed", name, f.Quantity, f.Value.Text, f.Where, number)
			}
		}
	}
}

var published = regexp.MustCompile(`^By: hoakley\n+(\d+ \w+ \d{4}) at`)

// TestSourcesAreNamed: titles of sources are those of the articles, and so are their dates where an article has one.
func TestSourcesAreNamed(t *testing.T) {
	texts, dated := articles(t), 0
	elsewhere := []string{"gold-standard", "performance-2022", "which-format-2023", "working-folders-2026"}
	for _, name := range plans.Names() {
		p := load(t, name)
		if p.Source == nil || slices.Contains(elsewhere, name) {
			continue
		}
		found := false
		for _, text := range texts {
			_, rest, ok := strings.Cut("\n"+text, "\n"+p.Source.Title+"\n")
			found = found || ok
			if m := published.FindStringSubmatch(strings.TrimLeft(rest, "\n")); m != nil {
				assert.Equal(t, m[1], p.Source.Date.Format("2 January 2006"), name)
				dated++
			}
		}
		assert.True(t, found, "%s: no article is titled %q", name, p.Source.Title)
	}
	assert.Positive(t, dated, "no article has a date")
}
