package analysis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// Rounds that a pause tears apart are named, unless the run went on at once on the same boot.
func TestTornRoundsAreWarnedOf(t *testing.T) {
	begin := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	warned := func(gap time.Duration, boot string, move func(c int, st *result.Step) bool) (texts []string) {
		p := planOf(t, twoFormats)
		r := play(p, 3, steady(flat(), 0.01))
		r.Sessions[0].Started, r.Sessions[0].Finished, r.Sessions[0].Boot = begin, begin.Add(time.Hour), "one"
		s := r.Sessions[0]
		s.Index, s.Boot, s.Started = 2, boot, s.Finished.Add(gap)
		r.Sessions = append(r.Sessions, s)
		for i := range r.Cases {
			for k := range r.Cases[i].Steps {
				if st := &r.Cases[i].Steps[k]; move(i, st) {
					st.Session = 2
				}
			}
		}
		require.NoError(t, Analyze(p, r, Options{}))
		for _, w := range r.Warnings {
			if w.Kind == "sessions" {
				texts = append(texts, w.Text)
			}
		}
		return texts
	}
	secondCase := func(c int, st *result.Step) bool { return c > 0 && st.Round == 2 || st.Round == 3 }
	got := warned(time.Hour, "one", secondCase)
	require.Len(t, got, 1)
	assert.Regexp(t, `^these rounds were measured in more than one session, .*: 2;`, got[0])
	got = warned(time.Minute, "two", func(_ int, st *result.Step) bool { return st.Phase != "new" })
	require.Len(t, got, 1)
	assert.Regexp(t, `^these rounds were measured .*: 1, 2, 3;`, got[0])
	assert.Empty(t, warned(time.Minute, "one", secondCase), "the same boot, and at once")
	assert.Empty(t, warned(time.Hour, "one", func(_ int, st *result.Step) bool { return st.Round > 1 }), "between two rounds")
	got = warned(-10*time.Minute, "one", secondCase) // the clock was set back between the sessions
	require.Len(t, got, 1)
	assert.Regexp(t, `^these rounds were measured in more than one session, .*: 2;`, got[0])
	assert.Equal(t, "1, 2, 3, 4, 5, 6 and 2 more", wording.Numbers{1, 2, 3, 4, 5, 6, 7, 8}.String())
}
