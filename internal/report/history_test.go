package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

// era is a stretch of runs of one version, and the share of the usual rate that
// an encrypted sparse bundle is written with.
type era struct {
	system, build, tool string
	runs                int
	encrypted           float64
}

// eras change the system, the program, or both; the shares other than those of
// 26.5 and 26.6 are within what sessions differ by.
var eras = []era{{"26.2", "25C56", "0.4.0", 4, 1}, {"26.4", "25E241", "0.4.0", 5, 1.004},
	{"26.4", "25E241", "0.5.0", 3, 1.002}, {"26.5", "25F71", "0.5.0", 5, 0.86}, {"26.6", "25G12", "0.5.0", 1, 0.85}}

// pastRuns are runs of one plan on one Mac over five versions, the oldest first: in
// macOS 26.5 writing to an encrypted sparse bundle became slower by a seventh.
// Sessions differ by two percent. One run has a warning of its own, and one is
// unfinished.
func pastRuns() []*result.Result {
	out := pastRunsFrom(0, 18)
	for i := range out[6].Summaries {
		if s := &out[6].Summaries[i]; s.Op == "write" && s.Phase == "new" && s.Case == "format=UDSB,encryption=none" {
			s.Warnings = append(s.Warnings, result.Warning{Kind: "throttled",
				Text: "the last round was 9 % slower than the first"})
		}
	}
	out[15].Status = result.Unfinished
	return out
}

// sharedPast are the same runs, for tests that do not change them.
var sharedPast = sync.OnceValue(pastRuns)

// sharedHistory is the history of the same runs.
var sharedHistory = sync.OnceValue(func() *analysis.History { return pastOf(sharedPast()) })

// pastRunsFrom are the runs of the past from one index to another, as they were without incident.
func pastRunsFrom(from, to int) (out []*result.Result) {
	n := 0
	for _, e := range eras {
		for range e.runs {
			if n++; n > from && n <= to {
				out = append(out, pastRun(e, n))
			}
		}
	}
	return out
}

// pastRun is the first run of the past as the n-th, counted from 1.
func pastRun(e era, n int) *result.Result {
	r := reporttest.Past()
	r.Run, r.Tool.Version = fmt.Sprintf("p%03d", n), e.tool
	s := &r.Sessions[0]
	s.Started = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).AddDate(0, 0, 7*n)
	s.Finished = s.Started.Add(20 * time.Minute)
	s.Engine.Version, s.Engine.Title = "macOS "+e.system, "hdiutil (Apple, macOS "+e.system+")"
	s.Host.OSVersion, s.Host.OSBuild = e.system, e.build
	for _, c := range r.Cases {
		session := 1 + 0.01*reporttest.Noise("session", n, c.Target.Format, c.Target.Encryption)
		for _, op := range []string{"write", "read"} {
			factor := session
			if op == "write" && c.ID == "format=UDSB,encryption=AES-256" {
				factor *= e.encrypted
			}
			speedUp(r, c, op, factor)
		}
	}
	return r
}

// speedUp makes the files of a case and direction faster by a factor.
func speedUp(r *result.Result, c result.Case, op string, factor float64) {
	faster := func(ns *int64) { *ns = int64(float64(*ns) / factor) }
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Op != op || s.Span == nil {
			continue
		}
		faster(&s.Span.BusyNS)
		s.Span.LastDoneNS -= s.Span.GateNS
		faster(&s.Span.LastDoneNS)
		s.Span.LastDoneNS += s.Span.GateNS
		for k := range s.Samples {
			faster(&s.Samples[k].DurationNS)
		}
	}
	for i := range r.Summaries {
		if s := &r.Summaries[i]; s.Case == c.ID && s.Op == op {
			e := &s.Estimates[0]
			e.Value, e.CI.Low, e.CI.High = e.Value*factor, e.CI.Low*factor, e.CI.High*factor
		}
	}
}

// pastOf makes a history of runs; the eighth is the baseline.
func pastOf(runs []*result.Result) *analysis.History {
	var list []analysis.HistoryRun
	for i, r := range runs {
		list = append(list, analysis.HistoryRun{Result: r, Name: fmt.Sprintf("run-%02d", i+1), Path: fmt.Sprintf("run-%02d/report.html", i+1), Baseline: i == 7})
	}
	return analysis.NewHistory(list, inFull)
}

func historyPage(t *testing.T, h *analysis.History) string {
	t.Helper()
	return string(rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, HistoryDocument(h)) }))
}

func historyWords(t *testing.T, h *analysis.History) string {
	t.Helper()
	return string(rendered(t, func(w io.Writer) error { return Renderers.Document(w, HistoryDocument(h), TextOptions{}) }))
}

func historyMarkdown(t *testing.T, h *analysis.History) string {
	t.Helper()
	return string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, HistoryDocument(h)) }))
}

func TestGoldenHistory(t *testing.T) {
	h := sharedHistory()
	words := historyWords(t, h)
	golden(t, "history.txt", []byte(words))
	golden(t, "history.md", []byte(historyMarkdown(t, h)))
	for line := range strings.Lines(words) {
		assert.LessOrEqual(t, Width(strings.TrimRight(line, "\n")), 80, line)
	}
}

// The picture has every number of the reports in its place, and nothing that is not final in a line.
func TestHistoryChart(t *testing.T) {
	runs := sharedPast()
	h := sharedHistory()
	v := newSeriesView(&h.Series[0], "name", "s1", valuesDrawn)
	var ops []string
	for _, p := range v.Parts {
		ops = append(ops, p.op+" "+p.Phase)
	}
	assert.Equal(t, []string{"write new", "read new", "allocated new"}, ops)
	c := v.charts(v.Parts[0])[0]
	roles := map[string]Series{}
	for _, s := range c.Series {
		roles[s.Role+" "+s.Name] = s
	}
	line := roles["line UDSB, AES-256"]
	require.Len(t, line.Marks, len(runs))
	for i, r := range runs {
		want := 0.0
		for _, s := range r.Summaries {
			if s.Case == "format=UDSB,encryption=AES-256" && s.Op == "write" && s.Phase == "new" {
				want = s.Estimates[0].Value
			}
		}
		if r.Status == result.Unfinished {
			assert.False(t, line.Marks[i].Drawn())
			open := roles["uncomparable not finished, or failed"].Marks
			assert.True(t, slices.ContainsFunc(open, func(m Mark) bool { return m.X == float64(i) && m.Y == want }))
			continue
		}
		assert.Equal(t, []float64{float64(i), want}, []float64{line.Marks[i].X, line.Marks[i].Y})
		assert.Contains(t, line.Marks[i].Tip, Human(want, "B/s"))
	}
	intervals := 0
	for _, m := range line.Marks {
		if m.CI != nil {
			intervals++
		}
	}
	assert.Equal(t, len(runs)-1, intervals)
	assert.Len(t, roles["warned with a warning of its own"].Marks, 1)
	assert.Equal(t, Point(7, *c.Y.Low), roles["ideal baseline run"].Marks[0])
	assert.Equal(t, "macOS 26.2\ndmgbench 0.4.0", c.X.Names[1])
	assert.Equal(t, "dmgbench 0.5.0", c.X.Names[10])
	assert.Equal(t, []float64{1, 6, 10, 14, 17}, c.X.Ticks, "a version stands at the middle of its runs")

	drawn := strings.Join(slices.Concat(c.X.Names, c.Names(), c.Notes), "\n")
	for _, text := range []string{"macOS 26.4", "macOS 26.5", "dmgbench 0.5.0", "baseline run", "UDSB, AES-256", "95 % t over rounds", "Apple M4 Pro", "SHA-256"} {
		assert.Contains(t, drawn, text)
	}
	assert.Len(t, c.Table.Rows, len(runs))
	assert.Contains(t, c.Table.Rows[10][0].Text, "run-08 (baseline)")
	assert.Equal(t, "muted", c.Table.Rows[2][3].Class, "of a run that is not finished")
	assert.Equal(t, "warn", c.Table.Rows[11][4].Class)
}

// The list of runs leads to the report of each, and marks those that are not complete.
func TestListOfRunsLeadsToReports(t *testing.T) {
	rows := newSeriesView(&sharedHistory().Series[0], "name", "s1", valuesDrawn).runs().Table.Rows
	require.Len(t, rows, len(sharedPast()))
	for i, row := range rows {
		run := len(rows) - i // the newest is the first
		assert.Equal(t, fmt.Sprintf("run-%02d/report.html", run), row[0].Link)
		assert.Equal(t, TextIf(run == 16, "warn"), row[2].Class, "run %d", run)
	}
}

// The text fits 80 columns, also where the names of versions are long.
func TestHistoryTextFitsTheScreen(t *testing.T) {
	runs := pastRuns()
	for _, r := range runs {
		r.Tool.Version = "v0.0.0-20261122125007-fe31ee3a9c11+dirty"
		for i := range r.Sessions {
			r.Sessions[i].Host.OS, r.Sessions[i].Host.Kernel = "linux", "6.8.0-45-generic"
			r.Sessions[i].Engine.Title = "in-process (dmgbench v0.0.0-20261122125007-fe31ee3a9c11+dirty)"
		}
	}
	text := historyWords(t, pastOf(runs))
	assert.Contains(t, text, "first run")
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, Width(strings.TrimRight(line, "\n")), 80, line)
	}
}

// A change that too few sessions show says so, in every rendering.
func TestHistoryOfOneRunEach(t *testing.T) {
	runs := sharedPast()
	h := pastOf([]*result.Result{runs[10], runs[12]})
	for _, page := range []string{historyPage(t, h), historyMarkdown(t, h), historyWords(t, h)} {
		assert.Contains(t, strings.Join(strings.Fields(page), " "), "undecided: too few sessions to know how much sessions differ")
		assert.Contains(t, page, "session effect unknown")
		assert.NotContains(t, page, "Regression:")
	}
}

// The figures of one run are in its pictures and their tables, and nothing changed.
func TestHistoryOfOneRun(t *testing.T) {
	r := sharedPast()[0]
	h := pastOf([]*result.Result{r})
	s := newSeriesView(&h.Series[0], "name", "s1", valuesDrawn).sections()[0]
	require.Len(t, s.Charts, 3)
	table := s.Charts[0].Table
	assert.Equal(t, "UDSB, AES-256, GB/s", table.Columns[5].Title)
	require.Len(t, table.Rows, 1)
	assert.Regexp(t, `^4\.\d\d \(4\.\d\d–4\.\d\d\)$`, table.Rows[0][5].Text)
	page := historyPage(t, h)
	assert.Contains(t, page, "there is no change to look for")
	assert.Contains(t, page, "† one with a warning of its own")
}

// Series of one title are told apart by what differs.
func TestSeriesNames(t *testing.T) {
	one := analysis.HistorySeries{Title: "T", Plan: "p", Machine: "Mac", Engine: "hdiutil (Apple, macOS 26.4)", Digest: "0123456789"}
	scaled, other, again := one, one, one
	scaled.Departed, other.Machine, again.Digest = []string{"sizes times 0.1"}, "iMac", "fedcba9876"
	alone := one
	alone.Title = "U"
	assert.Equal(t, []string{"T · Mac · not scaled · SHA-256 01234567…", "T · Mac · sizes times 0.1 · SHA-256 01234567…", "T · iMac · not scaled · SHA-256 01234567…",
		"T · Mac · not scaled · SHA-256 fedcba98…", "U"},
		seriesNames([]analysis.HistorySeries{one, scaled, other, again, alone}))
	formatted := one
	formatted.Filesystem = "exFAT"
	assert.Equal(t, []string{"T", "T · exFAT"}, seriesNames([]analysis.HistorySeries{one, formatted}), "no blank field")
	assert.Equal(t, "hdiutil (Apple)", engineShort(one.Engine))
	assert.Equal(t, "in-process", engineShort("in-process"))
}

func TestTickStepFitsSixTimes(t *testing.T) {
	for _, span := range []float64{7.3e9, 0.05e9, 117e6, 7, 0.001, 1, 6, 600} {
		step := TickStep(span)
		assert.LessOrEqual(t, span/step, 6+1e-9, span)
		assert.Greater(t, span/step, 2.0, span)
	}
}

// hostilePast are runs of a plan, a machine and cases whose every name wants to be markup.
func hostilePast() *analysis.History {
	evil := `</script><img src=x onerror=alert(1)>` + "\u202e`|*\"'__f__ 🧨\x1b[31m" + strings.Repeat("x", 300)
	runs := pastRunsFrom(10, 14)
	for i, r := range runs {
		r.Run, r.Plan.Name, r.Plan.Title = fmt.Sprint(evil, i), evil, evil
		r.Status = []string{result.Done, evil}[i%2]
		r.Departures = []result.Departure{{Kind: "scale", Text: evil}}
		r.Warnings = []result.Warning{{Kind: evil, Text: evil}}
		h := &r.Sessions[0].Host
		h.Model, h.CPU, h.OSVersion, h.OSBuild = evil, evil, evil+h.OSVersion, evil
		h.Disks[0].Device = evil
		r.Sessions[0].Engine.Title, r.Tool.Version = evil, evil
		rename := map[string]string{}
		for k := range r.Cases {
			c := &r.Cases[k]
			rename[c.ID] = fmt.Sprint(evil, k)
			c.ID, c.Reason = rename[c.ID], evil
			for s := range c.Steps {
				c.Steps[s].Phase += evil
			}
		}
		for k := range r.Summaries {
			s := &r.Summaries[k]
			s.Case, s.Phase = rename[s.Case], s.Phase+evil
			s.Warnings = append(s.Warnings, result.Warning{Kind: fmt.Sprint(evil, i), Text: evil})
		}
	}
	var list []analysis.HistoryRun
	for i, r := range runs {
		list = append(list, analysis.HistoryRun{Result: r, Name: evil, Path: []string{"javascript:alert(1)", `"><script>`}[i%2], Baseline: i == 1})
	}
	h := analysis.NewHistory(list, inFull)
	h.LeftOut = append(h.LeftOut, evil)
	return h
}

func TestHostileHistory(t *testing.T) {
	h := hostilePast()
	require.Len(t, h.Series, 1)
	page := strings.Replace(historyPage(t, h), echarts.Script, "", 1)
	assert.NotContains(t, page, "<img")
	assert.NotContains(t, page, `href="javascript`)
	assert.Equal(t, strings.Count(page, `class="chart"`)+strings.Count(page, "<table>")+2, strings.Count(page, "<script"),
		"the data of charts, the copies of tables, the library and our own")
	assert.Contains(t, page, "&lt;/script&gt;", "it is shown, not removed")
	text := historyWords(t, h)
	for _, bad := range []string{"\x1b", "\u202e"} {
		assert.NotContains(t, text, bad)
	}
	assert.NotContains(t, historyMarkdown(t, h), "<img")
}

// manyRuns are n runs of few numbers, a version every so many runs, in several series.
func manyRuns(n, each, series int) []*result.Result {
	out := make([]*result.Result, n)
	for i := range out {
		out[i] = comparableRun(fmt.Sprintf("r%04d", i), fmt.Sprintf("26.%d", i/series/each), 5000, 6000, 1500, 2800)
		r := out[i]
		r.Plan.Digest = fmt.Sprintf("%016d", i%series)
		r.Sessions[0].Started = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		r.Sessions[0].Engine.Name, r.Sessions[0].Engine.Title = "inprocess", "in-process"
		for _, c := range r.Cases {
			for _, op := range []string{"write", "read"} {
				v := 3e9 + 1e7*float64(i%17)
				r.Summaries = append(r.Summaries, result.Summary{Case: c.ID, Phase: "new", Op: op, N: 1, Rounds: 1, Headline: "aggregate",
					Estimates: []result.Estimate{{Name: "aggregate", Value: v, Unit: "B/s", CI: &result.CI{Low: v * 0.98, High: v * 1.02, Level: 0.95, Method: "t", Unit: "round"}}}})
			}
		}
	}
	return out
}

// A history of a thousand runs stays a page, and says what it left out.
func TestHistoryOfManyRunsStaysSmall(t *testing.T) {
	for _, c := range []struct {
		each, series int
		says         []string
	}{
		{50, 1, []string{"600 older runs are left out", "not listed", "not examined", "879 older runs not listed"}},
		{1, 1, []string{"older versions left out", "too many changes for one page"}},
		{10, 40, []string{"Only the 10 series with the newest runs are shown, 30 are left out"}},
	} {
		h := pastOf(manyRuns(1000, c.each, c.series))
		require.Len(t, h.Series, c.series)
		page := historyPage(t, h)
		assert.Less(t, len(page), 3<<20)
		for _, text := range c.says {
			assert.Contains(t, page, text)
		}
		assert.Less(t, len(historyMarkdown(t, h)), 1<<20)
	}
}

// A quantity without a value has an axis that ends at 1, and no line.
func TestHistoryChartWithoutValues(t *testing.T) {
	h := sharedHistory()
	v := newSeriesView(&h.Series[0], "name", "s1", valuesDrawn)
	rows := slices.Clone(v.Parts[0].rows)
	for i := range rows {
		rows[i].Values = make([]*analysis.HistoryValue, len(rows[i].Values))
	}
	c := v.chart(v.Parts[0], rows)
	require.NotNil(t, c.Y.High)
	assert.Equal(t, 1.0, *c.Y.High)
}

// No run, or none with a number: a page that says so.
func TestHistoryOfNothing(t *testing.T) {
	for _, h := range []*analysis.History{pastOf(nil), pastOf([]*result.Result{comparableRun("a", "26.4", 100)})} {
		for _, page := range []string{historyPage(t, h), historyMarkdown(t, h), historyWords(t, h)} {
			assert.NotContains(t, page, "Points:")
		}
	}
	r := comparableRun("a", "26.4", 100)
	r.Sessions[0].Started = time.Unix(1e9, 0)
	assert.Contains(t, historyWords(t, pastOf([]*result.Result{r})), "No run of it has a number yet")
}

// inFull gives the run itself, without its plan.
func inFull(r analysis.HistoryRun) (*plan.Plan, *result.Result, error) { return nil, r.Result, nil }
