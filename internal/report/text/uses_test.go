package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// whichImage is a result with the uses of the plan which-image: one of them decided by its second criterion, two undecided.
func whichImage(t *testing.T) (*plan.Plan, *result.Result) {
	_, r := reporttest.Uses()
	text, ok := plans.Get("which-image")
	require.True(t, ok)
	p, problems := plan.Parse("which-image", text)
	require.Nil(t, problems)
	r.Uses = report.Map(p.Uses, func(x plan.Use) result.Use {
		u := result.Use{Name: x.Name, Says: x.Says, Choice: result.ChosenOne, Chosen: []string{x.Candidates[0].Title},
			Scope: "dmgbench's own images (in-process) on Debian GNU/Linux 12 (bookworm), not for macOS"}
		switch x.Name {
		case "download":
			u.DecidedBy = 1
		case "working", "vm":
			u.Choice, u.Needs = result.Undecided, "about 74 rounds in all, if they scatter as these do"
			u.Chosen = report.Map(x.Candidates, func(c plan.Candidate) string { return c.Title })
		}
		for _, c := range x.Decide {
			u.Criteria = append(u.Criteria, result.UseCriterion{Title: c.Title, Unit: c.Quantity.Unit(), HigherIsBetter: c.Better == "higher", Matters: 0.1})
		}
		for i, c := range x.Candidates {
			k := result.UseCandidate{Title: c.Title}
			for n, x := range u.Criteria {
				f := result.UseFigure{Estimate: &result.Estimate{Value: 1234567, Unit: x.Unit, CI: &result.CI{Low: 1.1e6, High: 1.4e6}}}
				if f.Rank = result.RankEqual; i > 0 && n == u.DecidedBy {
					f.Rank = result.RankWorse
					f.Ratio = &result.Estimate{Name: "ratio", Value: 3.741, Unit: "1", CI: &result.CI{Low: 2.504, High: 5.613}, N: 5}
				} else if i == 0 {
					f.Rank = result.RankBest
				}
				k.Figures = append(k.Figures, f)
			}
			u.Candidates = append(u.Candidates, k)
		}
		for _, a := range x.Advice {
			u.Advice = append(u.Advice, result.UseAdvice{Says: a.Says, Source: a.Source, Candidate: a.Candidate, Verdict: result.DoesNotHold})
		}
		return u
	})
	return p, r
}

// One screen has all of the matrix: a line for each candidate and each advice.
func TestUsesFitOneScreen(t *testing.T) {
	t.Parallel()
	for width, most := range map[int]int{80: 40, 100: 36} {
		var b bytes.Buffer
		p, r := whichImage(t)
		require.NoError(t, Run(&b, p, r, Options{Width: width}))
		body := b.String()[strings.Index(b.String(), "Which image to take"):]
		matrix, weak, found := strings.Cut(body, "\n\n"+weaknesses+"\n")
		require.True(t, found)
		assert.LessOrEqual(t, strings.Count(matrix, "\n")+1, most, "%d columns:\n%s", width, matrix)
		assert.LessOrEqual(t, strings.Count(weak, "\n"), 4)
		bars, candidates := 0, 0
		for line := range strings.Lines(matrix) {
			assert.LessOrEqual(t, report.Width(strings.TrimSpace(line)), width, line)
			for _, c := range []string{"best", "ahead", "3.74 times worse (2.50–5.61)"} {
				if strings.HasSuffix(line, "  "+c+"\n") {
					candidates++
				}
			}
			if strings.Contains(line, "█") {
				bars++
			}
		}
		assert.Equal(t, []int{19, 19}, []int{candidates, bars})
		assert.Contains(t, matrix, "(Howard Oakley, 2024): the figures do not agree\n")
	}
}

// What one screen cuts is whole in the report of everything.
func TestVerboseUsesAreWhole(t *testing.T) {
	t.Parallel()
	p, r := whichImage(t)
	var brief, whole bytes.Buffer
	require.NoError(t, Run(&brief, p, r, Options{}))
	require.NoError(t, Run(&whole, p, r, Options{Verbose: true}))
	for _, part := range []string{"particularly if using encryption.” (Howard Oakley, “Disk image performance: the cost of encryption rises”, 23 March 2026)"} {
		assert.NotContains(t, strings.Join(strings.Fields(brief.String()), " "), part)
		assert.Contains(t, strings.Join(strings.Fields(whole.String()), " "), part)
	}
}

// Names or figures that leave no room for bars are printed without them.
func TestLongCandidatesHaveNoBars(t *testing.T) {
	t.Parallel()
	row := report.UseRow{Headings: []string{"size ↓"}, Cells: []report.UseCell{{Title: strings.Repeat("n", 38), Mark: "✓",
		Figures: []report.UseFigure{{Value: "12.5 MB", Interval: "11–14", Span: 10, Bar: 100, Rank: "3.74 times worse (2.50–5.61)"}}},
		{}, {Title: "other", Missing: "failed: " + strings.Repeat("no room ", 20)}}}
	for width, want := range map[int]string{88: " n{38}  12.5 MB  3.74 ", 100: " n{38}  12.5 MB  █{8}  3.74", 110: ` n{38}  12.5 MB \(11–14\)  █{8}  3.74 `} {
		w := newTerminal(Options{Width: width})
		w.candidates(row)
		assert.Regexp(t, want, w.String())
		assert.Regexp(t, `other +failed: no room [no rm]+…\n`, w.String())
		assert.LessOrEqual(t, strings.Count(w.String(), "\n"), 2)
	}
}

// A drift is described in three lines, and would push others off the screen.
func TestWeaknessesTakeOneLineEach(t *testing.T) {
	t.Parallel()
	p, r := whichImage(t)
	for _, uses := range []bool{true, false} {
		v := report.NewView(p, r)
		if v.First.Weak = []string{strings.Repeat("slower ", 40), "short"}; !uses {
			v.First.Uses = nil
		}
		w := newTerminal(Options{Width: 80})
		w.document(screenReport(v, 80))
		_, weak, found := strings.Cut(w.String(), weaknesses+"\n")
		require.True(t, found)
		lines := strings.Split(weak, "\n")
		assert.Regexp(t, "^  • slower .*…$", lines[0])
		assert.Equal(t, "  • short", lines[1])
	}
}
