package watch

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"

	"dmgbench/internal/result"
)

// manyCases is a screen of a run with more cases than a terminal has lines; the current one is the 30th.
func manyCases() Screen {
	s := Screen{Title: "Many", Status: running, Quantities: []Quantity{{"write", "new"}}}
	for i := range 36 {
		s.Cases = append(s.Cases, Case{Name: fmt.Sprintf("case %d", i+1), Current: i == 29, Rounds: []string{""}})
	}
	return s
}

// Cases that have no room are not silently missing: the heading counts them.
func TestHiddenCasesAreCounted(t *testing.T) {
	s := manyCases()
	for top, want := range map[int]string{-1: "cases 21–36 of 36", 0: "cases 1–16 of 36", 3: "cases 4–19 of 36",
		35: "cases 21–36 of 36"} {
		drawn := s.Draw(Layout{Width: 80, Height: 24, Top: top})
		assert.Contains(t, drawn, want)
		assert.Equal(t, 24, strings.Count(drawn, "\n")+1)
	}
	assert.NotContains(t, s.Draw(Layout{Width: 80, Height: 60, Top: -1}), "of 36", "there is room for all")
	assert.NotContains(t, s.Draw(Layout{Width: 80}), "of 36")
}

// So are rounds.
func TestHiddenRoundsAreCounted(t *testing.T) {
	s := manyCases()
	assert.Contains(t, s.Draw(Layout{Width: 80}), "rounds")
	s.Cases[0].Rounds = make([]string, 30)
	assert.Contains(t, s.Draw(Layout{Width: 80}), "10 of 30")
	assert.Contains(t, s.Draw(Layout{Width: 160}), "20 of 30")
	assert.Contains(t, s.Draw(Layout{Width: 240}), "rounds")
}

// The first line of the warnings that have room is the first one of a warning.
func TestWarningsAreNotCutInTheMiddle(t *testing.T) {
	s := manyCases()
	for _, name := range []string{"one", "two", "three"} {
		s.Warnings = append(s.Warnings, name+strings.Repeat(" more words", 8))
	}
	drawn := s.Draw(Layout{Width: 80, Height: 24})
	assert.Contains(t, drawn, "3 warnings, the last ones\n  two more")
	s.Warnings = []string{strings.Repeat("word ", 80) + "end"}
	drawn = s.Draw(Layout{Width: 80, Height: 24})
	assert.Contains(t, drawn, "1 warning, the last ones\n    word", "one that has no room is shown as far as it goes")
	assert.Contains(t, drawn, "end\n")
}

// What stopped a run comes before the command that continues it.
func TestReasonOfAnInterruption(t *testing.T) {
	r := &Run{dir: "runs/it", state: &result.State{Sessions: []result.Session{{End: result.Interrupted,
		Reason: "place internal is full"}}}}
	var s Screen
	r.setStatus(&s)
	assert.Equal(t, "place internal is full; continue with: dmgbench resume runs/it", s.Advice)
}

// Intervals are whole: the end that is cut off might be the one that matters, and the method is half of what they mean.
func TestIntervalsAreWhole(t *testing.T) {
	s := manyCases()
	ci := &result.CI{Level: 0.95, Low: -41.1e6, High: 1590e6, Method: "Student t, jackknife by size", Unit: "file within one mount"}
	s.Cases[35].Figures = map[Quantity]*result.Summary{s.Quantities[0]: {Op: "write", Phase: "new",
		Estimates: []result.Estimate{{Value: 773e6, Unit: "B/s", CI: ci}}}}
	for _, top := range []int{-1, 0} { // rows do not move when the case is not on the screen
		drawn := s.Draw(Layout{Width: 80, Height: 24, Top: top})
		assert.Contains(t, strings.Join(strings.Fields(drawn), " "), "over files within one mount (not independent)")
		assert.Equal(t, top < 0, strings.Contains(drawn, "-41.1 to 1590"))
	}
}

// The command that continues a run can be copied, whatever its folder is called.
func TestAdviceIsQuoted(t *testing.T) {
	dir, lines := simulate(t, watched)
	cutJournal(t, dir, lines, settles, 3)
	r := open(t, dir)
	r.dir = "my runs/it's $HOME"
	assert.NoError(t, r.show(r.shown))
	assert.Contains(t, r.Screen(r.after(0)).Draw(Layout{Width: 80}), `dmgbench resume 'my runs/it'\''s $HOME'`)
}

// Ctrl-Z reaches the program as a key, which then has to stop itself.
func TestSuspends(t *testing.T) {
	cmd := (&program{}).press("ctrl+z")
	if assert.NotNil(t, cmd) {
		assert.Equal(t, tea.Suspend(), cmd())
	}
}

// What the terminal reports of its background counts more than what its variables made of it, and never brings colours.
func TestBackground(t *testing.T) {
	for theme, want := range map[Theme][2]Theme{Plain: {Plain, Plain}, Light: {Light, Dark}, Dark: {Light, Dark}} {
		p := &program{layout: Layout{Theme: theme}}
		_, _ = p.Update(tea.BackgroundColorMsg{Color: lightGrey{}})
		assert.Equal(t, want[0], p.layout.Theme)
		_, _ = p.Update(tea.BackgroundColorMsg{Color: black{}})
		assert.Equal(t, want[1], p.layout.Theme)
	}
}

type black struct{}

func (black) RGBA() (r, g, b, a uint32) { return 0, 0, 0, 0xffff }
