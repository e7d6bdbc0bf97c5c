package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// usesView is the view of the result with uses, changed.
func usesView(change func(r *result.Result)) *View {
	p, r := reporttest.Uses()
	if change != nil {
		change(r)
	}
	return NewView(p, r)
}

// Every choice has its word, what decided, and the candidates in columns of their titles.
func TestUseMatrix(t *testing.T) {
	t.Parallel()
	m := usesView(nil).First.Uses
	assert.Equal(t, []string{"Sparse bundle", "Sparse image", "RAW", "ASIF", "ASIF, AES-256", "UDZO", "ULFO"}, m.Columns)
	for i, want := range []struct{ word, choice, why, marks string }{
		{"take", "Sparse bundle", "decided by: size on disk (less is better; within 10 % is equal), then writing (more is better; within 10 % is equal)", "✓......"},
		{"take", "Sparse bundle or RAW: within 10 %", "equal by: creating files (more is better; within 10 % is equal)", "✓.✓...."},
		{"undecided between", "RAW and ASIF", "not decided by: writing (more is better; within 10 % is equal)", "..??..."},
		{"take", "Sparse image", "decided by: time to attach (less is better; within 20 % is equal)", ".✓..–.."},
		{"not measured", "", "fewer than two candidates have figures: size on disk (less is better; within 10 % is equal)", ".....––"},
	} {
		r, marks := m.Rows[i], ""
		for _, c := range r.Cells {
			marks += FirstOf(c.Mark, ".")
			assert.Equal(t, c.Title == "", len(c.Figures) == 0 && c.Missing == "", "%s: %s", r.Use, c.Title)
		}
		assert.Equal(t, []string{want.word, want.choice, want.why, want.marks}, []string{r.Word, r.Choice, r.Why, marks})
	}
	assert.Equal(t, "about 12 rounds in all, if they scatter as these do", m.Rows[2].Needs)
	assert.Equal(t, []string{"size on disk (less is better; within 10 % is equal)", "writing (more is better; within 10 % is equal)"}, m.Rows[0].Criteria)
	assert.Contains(t, m.Scope, "not for macOS")
	assert.Contains(t, m.Basis, "3 rounds · Example workstation")
}

// A candidate that a criterion excluded has no figure by the next, and bars of one criterion share a scale.
func TestUseFigures(t *testing.T) {
	t.Parallel()
	cells := usesView(nil).First.Uses.Rows[0].Cells
	assert.Len(t, cells[0].Figures, 2)
	require.Len(t, cells[2].Figures, 1)
	assert.Equal(t, UseFigure{Criterion: "size on disk ↓", Value: "256 MB", Interval: "no spread", Rank: "17.9 times worse",
		Class: result.DoesNotHold, Bar: 100, From: 100}, cells[2].Figures[0])
	f := cells[0].Figures[1]
	assert.Equal(t, []string{"210 MB/s", "191–229", "best"}, []string{f.Value, f.Interval, f.Rank})
	assert.InDelta(t, f.Bar, f.From+f.Span/2, 0.1, "the interval is about the end of the bar")
	undecided := usesView(nil).First.Uses.Rows[2].Cells
	assert.Equal(t, "? 1.22 times worse (0.907–1.63)", undecided[2].Figures[0].Rank)
	assert.Equal(t, "ahead", undecided[3].Figures[0].Rank, "none is the best yet")
}

func TestUseWithoutRatios(t *testing.T) {
	t.Parallel()
	m := usesView(func(r *result.Result) {
		f := r.Uses[3].Candidates[0].Figures
		f[0].Ratio.Name, f[0].Ratio.Unit, f[0].Ratio.Value, f[0].Ratio.CI = "difference", "s", 0.0031, nil
		r.Cases[0].Status, r.Cases[0].Reason = result.Failed, "no room; hint: make some"
		r.Uses[4].Candidates[0].Cases = []string{r.Cases[0].ID}
	}).First.Uses
	assert.Equal(t, "worse by 3.10 ms in 5 rounds", m.Rows[3].Cells[0].Figures[0].Rank)
	assert.Equal(t, "failed: no room", m.Rows[4].Cells[5].Missing)
}

// The simulated engine measures no disk: that limits the choices, whatever else does.
func TestUsesOfSimulatedEngine(t *testing.T) {
	t.Parallel()
	m := usesView(func(r *result.Result) { r.Sessions[0].Engine.Name = "simulated" }).First.Uses
	assert.Contains(t, m.Scope, "No disk was measured")
	m = usesView(func(r *result.Result) {
		for i := range r.Uses {
			r.Uses[i].Scope = ""
		}
	}).First.Uses
	assert.Empty(t, m.Scope)
}

func TestPlansWithoutUsesHaveNoMatrix(t *testing.T) {
	assert.Nil(t, NewView(shared("sample")()).First.Uses)
	assert.NotContains(t, pageOf("sample"), `class="uses"`)
}

// Page, Markdown and terminal have the same choices.
func TestFormsOfUses(t *testing.T) {
	t.Parallel()
	shown := parsedOf("uses").shown
	assert.Less(t, strings.Index(shown, `class="uses"`), strings.Index(shown, `class="facts"`), "the matrix comes first")
	for _, part := range []string{"Sparse bundle or RAW", "1.43 times worse (1.31–1.56)", "the figures do not agree",
		"about 12 rounds in all", "not for macOS"} {
		assert.Contains(t, shown, part)
		assert.Contains(t, strings.ReplaceAll(markdownOf("uses"), `\`, ""), part)
		assert.Contains(t, strings.Join(strings.Fields(text(t, shared("uses"), TextOptions{})), " "), part)
	}
}

func TestHostileUses(t *testing.T) {
	t.Parallel()
	page := parse(html(t, reporttest.HostileUses))
	require.NoError(t, page.err)
	assert.NotContains(t, page.shown, "<script>alert")
	assert.NotContains(t, page.shown, "<img")
	body, _, _ := strings.Cut(markdown(t, reporttest.HostileUses), "## How to repeat")
	assert.NotRegexp(t, `<(script|img|svg|!--)`, body)
	assert.NotContains(t, text(t, reporttest.HostileUses, TextOptions{}), "\x1b")
}

// Operations of a step of one kind have one row; a published value of the whole step is kept.
func TestOperationsAreNotRepeated(t *testing.T) {
	t.Parallel()
	phases := func(v *View) (out []string) {
		f := v.FiguresOf(func(op string) bool { return op == "tree" || op == "random" })
		for _, k := range f.Keys {
			if k.CaseID == v.Result.Cases[0].ID {
				out = append(out, k.Phase)
			}
		}
		return out
	}
	v := usesView(nil)
	assert.Equal(t, []string{"new (read)", "create", "create (mkdir)", "create (create)"}, phases(v))
	v = usesView(func(r *result.Result) {
		for i := range r.Summaries {
			if s := &r.Summaries[i]; s.Op == "random" && s.Operation == "" {
				s.Published = []result.PublishedValue{{Low: 1, High: 1, Unit: "1/s"}}
			}
		}
	})
	assert.Contains(t, phases(v), "new")
}

func TestLatencyTable(t *testing.T) {
	t.Parallel()
	v := usesView(nil)
	table := v.latencyTable()
	require.Len(t, table.Rows, 6)
	texts := Map(table.Rows[0], func(c Cell) string { return c.Text })
	assert.Equal(t, []string{"create", "300", "200 µs", "180–220 µs", "280 µs", "290 µs", ""}, texts[1:8])
	assert.Equal(t, "30.0 ns", texts[9], "what the program itself takes")
	read := table.Rows[2]
	assert.Equal(t, []any{"warn", []int{1}}, []any{read[3].Class, read[3].Marks}, "30 of 80 ns are the program")
	assert.Empty(t, NewView(shared("sample")()).latencyTable().Rows)
}

func TestVerbTable(t *testing.T) {
	t.Parallel()
	table := usesView(nil).verbTable()
	texts := Map(table.Rows[0], func(c Cell) string { return c.Text })
	assert.Equal(t, []string{"attach", "all", "1 of 60, 0.040 to 8.9 %", "3 of 60, 1.0 to 14 %", "attach: Resource busy"}, texts)
	assert.Contains(t, table.Notes[0].Text, "Clopper-Pearson")
}

// Files lost have no unit, and none of them is lost by the best: 160 more are not 160 times as many. No difference has no
// number.
func TestDifferencesWithoutUnitAreNoRatios(t *testing.T) {
	t.Parallel()
	exact := &result.CI{Low: 160, High: 160}
	for want, e := range map[string]result.Estimate{
		"worse by 160":                 {Name: "difference", Value: 160, Unit: "1", CI: exact},
		"worse by 160 (120–200)":       {Name: "difference", Value: 160, Unit: "1", CI: &result.CI{Low: 120, High: 200}},
		"worse by 3 in 1 round":        {Name: "difference", Value: 3, Unit: "1", N: 1},
		"no worse so far in 2 rounds":  {Name: "difference", Unit: "B", N: 2},
		"1.5 times worse":              {Name: "ratio", Value: 1.5, Unit: "1", CI: exact},
		"no worse so far in 1 round":   {Name: "ratio", Value: 1, Unit: "1", N: 1},
		"no worse so far (0.900–1.12)": {Name: "ratio", Value: 1.003, Unit: "1", CI: &result.CI{Low: 0.9, High: 1.12}},
		"no worse so far (0.700–1.10)": {Name: "ratio", Value: 0.9, Unit: "1", CI: &result.CI{Low: 0.7, High: 1.1}},
	} {
		assert.Equal(t, want, useDifference(&e))
	}
}
