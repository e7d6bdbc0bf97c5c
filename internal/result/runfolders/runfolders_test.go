package runfolders

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

const planText = `schema = 1
title = "Small"
[run]
baseline = false
rounds = 1
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" }]
`

// makeRun makes a run folder with a plan and a journal: one case, which wrote a file in one round.
func makeRun(t *testing.T, dir, text string, started time.Time) string {
	t.Helper()
	p, problems := plan.Parse("small.toml", []byte(text))
	require.Empty(t, problems.Errors(), "%v", problems)
	d, err := result.CreateRun(dir, filepath.Base(dir))
	require.NoError(t, err)
	cases := p.Cases()
	require.Len(t, cases, 1)
	id := cases[0].ID
	for _, rec := range []result.Record{
		{Run: &result.RunStart{ID: filepath.Base(dir), Plan: result.PlanRef{Name: p.Name, Title: p.Title, Digest: p.Digest()}, Rounds: 1,
			Cases: []result.PlanCase{{ID: id, Target: result.Target{Kind: "image", Format: "UDSB"}}}}},
		{Session: &result.Session{Index: 1, Started: started, Host: result.Host{OS: "linux", Model: "box"}, Engine: result.Engine{Title: "in-process"}}},
		{Round: &result.RoundStart{Round: 1, Order: []string{id}}},
		{CaseStart: &result.CaseStart{Case: id, Round: 1}},
		{StepStart: &result.StepStart{Case: id, Round: 1, Index: 2, Do: "write", Phase: "new"}},
		{Step: &result.StepEnd{Case: id, Round: 1, Step: result.Step{Index: 2, Do: "write", Phase: "new", Round: 1, Session: 1,
			DurationNS: 1_000_000, Expect: "ok", Samples: []result.Sample{{File: "f0001", Bytes: 1_000_000, DurationNS: 1_000_000}},
			Span: &result.Span{FirstDoneNS: 1_000_000, LastDoneNS: 1_000_000, Bytes: 1_000_000, BusyNS: 1_000_000, Waves: 1}}}},
		{CaseEnd: &result.CaseEnd{Case: id, Round: 1, Status: result.Done}},
		{SessionEnd: &result.SessionEnd{Session: 1, End: result.Clean}},
		{RunEnd: &result.RunEnd{Status: result.Done}},
	} {
		rec.At = started
		require.NoError(t, d.Append(rec))
	}
	require.NoError(t, d.WriteFile(result.PlanFile, []byte(text)))
	require.NoError(t, d.Close())
	return dir
}

var someDay = time.Date(2026, 3, 23, 1, 2, 3, 0, time.UTC)

func updated(t *testing.T, dir, text string, started time.Time) string {
	t.Helper()
	_, _, err := Update(makeRun(t, dir, text, started))
	require.NoError(t, err)
	return dir
}

func TestUpdateWritesWhatAnalyzeComputes(t *testing.T) {
	dir := makeRun(t, filepath.Join(t.TempDir(), "one"), planText, someDay)
	p, want, err := Analyze(dir)
	require.NoError(t, err)
	assert.Equal(t, "Small", p.Title)
	require.NotEmpty(t, want.Summaries)
	require.NoFileExists(t, filepath.Join(dir, result.ResultFile))
	_, got, err := Update(dir)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	again, err := result.ReadResult(dir)
	require.NoError(t, err)
	assert.Equal(t, want.Summaries, again.Summaries)
	page, err := os.ReadFile(filepath.Join(dir, result.ReportFile))
	require.NoError(t, err)
	assert.Contains(t, string(page), "Small")
	for _, path := range []string{dir, filepath.Join(dir, result.ResultFile)} {
		assert.Equal(t, p.Digest(), Plan(path, got).Digest(), path)
	}
	state, err := State(dir)
	require.NoError(t, err)
	require.Len(t, state.Run.Cases, 1)

	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write(result.PlanFile, strings.Replace(planText, "1 GB", "2 GB", 1))
	for name, do := range map[string]func(string) (*plan.Plan, *result.Result, error){"analyze": Analyze, "update": Update} {
		_, _, err = do(dir)
		require.ErrorContains(t, err, "it is not the plan that the journal names", name)
	}
	assert.Nil(t, Plan(dir, got), "of another plan")
	write(result.PlanFile, "schema = 1\n[")
	_, _, err = Analyze(dir)
	require.Error(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, result.PlanFile)))
	_, _, err = Analyze(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(result.PlanFile, planText)
	write(result.JournalFile, "no journal\n")
	_, _, err = Analyze(dir)
	require.Error(t, err)
	for _, do := range []func(string) error{
		func(dir string) error { _, _, err := Analyze(dir); return err },
		func(dir string) error { _, err := State(dir); return err },
	} {
		require.Error(t, do(filepath.Join(dir, "missing")))
	}
	assert.Nil(t, Plan(filepath.Join(dir, "missing"), got))
}

// A result is read where it is current, and computed otherwise; whoever asks is told of the latter once.
func TestReaderAnalyzesWhatIsOutdated(t *testing.T) {
	dir := makeRun(t, filepath.Join(t.TempDir(), "one"), planText, someDay)
	var told []string
	rd := &Reader{Outdated: func(dir string) { told = append(told, dir) }}
	analysed, err := rd.Result(dir)
	require.NoError(t, err, "without a result.json")
	_, _, err = Update(dir)
	require.NoError(t, err)
	read, err := rd.Result(dir)
	require.NoError(t, err)
	assert.Equal(t, analysed.Summaries, read.Summaries)
	read, err = rd.Result(filepath.Join(dir, result.ResultFile))
	require.NoError(t, err)
	assert.Equal(t, analysed.Summaries, read.Summaries)
	assert.Empty(t, told)

	require.NoError(t, os.WriteFile(filepath.Join(dir, result.PlanFile), []byte(planText+"# the same plan\n"), 0o644))
	for range 2 {
		fresh, err := rd.Result(dir)
		require.NoError(t, err)
		assert.NotEqual(t, read.Sources.Plan, fresh.Sources.Plan, "it is of the plan as it is now")
	}
	assert.Equal(t, []string{dir}, told)
	_, err = (&Reader{}).Result(dir)
	require.NoError(t, err, "nobody has to be told")

	require.NoError(t, os.WriteFile(filepath.Join(dir, result.ResultFile), []byte("{"), 0o644))
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		_, err = rd.Result(path)
		require.ErrorContains(t, err, path)
	}
	lost := makeRun(t, filepath.Join(t.TempDir(), "lost"), planText, someDay)
	require.NoError(t, os.Remove(filepath.Join(lost, result.PlanFile)))
	_, err = rd.Result(lost)
	require.ErrorContains(t, err, lost, "its plan")
	empty := t.TempDir()
	_, err = rd.Result(empty)
	require.ErrorContains(t, err, empty, "a folder without a run")
	assert.Equal(t, 1, strings.Count(err.Error(), empty), "named once: %v", err)
}

func TestPoolOrdersRunsByTheirStart(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	late, early := makeRun(t, at("a"), planText, someDay.Add(time.Hour)), makeRun(t, at("b"), planText, someDay)
	same := makeRun(t, at("c"), planText, someDay)
	out := at("pooled")
	p, r, err := Pool([]string{late, same, early}, out)
	require.NoError(t, err)
	var runs []string
	for _, run := range r.Runs {
		runs = append(runs, run.Run)
	}
	assert.Equal(t, []string{"b", "c", "a"}, runs)
	assert.Equal(t, 3, r.Rounds)
	assert.NotEmpty(t, r.Summaries)
	text, err := os.ReadFile(filepath.Join(out, result.PlanFile))
	require.NoError(t, err)
	assert.Equal(t, string(p.Canonical()), string(text))
	read, err := (&Reader{}).Result(out)
	require.NoError(t, err)
	assert.Equal(t, r.Summaries, read.Summaries)
	require.FileExists(t, filepath.Join(out, result.ReportFile))

	for _, name := range []string{result.PlanFile, result.ResultFile, result.ReportFile} {
		partly := at("partly " + name)
		require.NoError(t, os.Mkdir(partly, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(partly, name), []byte("mine"), 0o644))
		_, _, err = Pool([]string{late, early}, partly)
		require.ErrorIs(t, err, fs.ErrExist, name)
		require.ErrorContains(t, err, "writing the pooled report")
	}
	_, _, err = Pool([]string{late, early}, filepath.Join(out, result.PlanFile, "below a file"))
	require.ErrorContains(t, err, "writing the pooled report")
	_, _, err = Pool([]string{late, early}, "")
	require.NoError(t, err, "nothing is written")
	other := makeRun(t, at("d"), strings.Replace(planText, "1 MB", "2 MB", 1), someDay)
	_, _, err = Pool([]string{late, other}, "")
	require.ErrorIs(t, err, result.ErrNotPoolable)
	_, _, err = Pool([]string{late, at("missing")}, "")
	require.ErrorContains(t, err, at("missing"))
}

func TestOneRunOfAPlanIsTheBaseline(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	one, two := updated(t, at("one"), planText, someDay), updated(t, at("two"), planText, someDay)
	_, other := reporttest.Sample() // a result of another plan
	text, err := other.MarshalIndent()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(at("other"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(at("other"), result.ResultFile), text, 0o644))
	find := func(want, of string) {
		t.Helper()
		found, name, err := FindBaseline(of)
		require.NoError(t, err)
		assert.Equal(t, []string{want, "small"}, []string{found, name})
	}
	mark := func(run string, remove bool, want ...string) {
		t.Helper()
		name, replaced, err := MarkBaseline(run, remove)
		require.NoError(t, err)
		assert.Equal(t, want, replaced)
		assert.NotEmpty(t, name)
	}
	find("", one)
	mark(at("other"), false)
	mark(one, false)
	mark(one, false)
	find(one, two)
	mark(two, false, "one")
	find(two, one)
	assert.FileExists(t, filepath.Join(at("other"), BaselineFile), "of another plan")
	mark(two, true)
	mark(two, true)
	find("", one)
	_, _, err = MarkBaseline(at("missing"), false)
	require.Error(t, err)
	_, _, err = FindBaseline(at("missing"))
	require.Error(t, err)
}

// A folder of runs, as run --sessions makes it, stands for the runs directly in it.
func TestFoldersOfAnArgument(t *testing.T) {
	home := t.TempDir()
	runs := []string{filepath.Join(home, "a"), filepath.Join(home, "b")}
	for _, run := range runs {
		makeRun(t, run, planText, someDay)
	}
	require.NoError(t, os.Mkdir(filepath.Join(home, "notes"), 0o755))
	require.NoError(t, os.Symlink(runs[0], filepath.Join(home, "link")))
	assert.Equal(t, runs, Folders(home))
	assert.Equal(t, runs[:1], Folders(runs[0]))
	for _, path := range []string{filepath.Join(home, "notes"), filepath.Join(home, "missing")} {
		assert.Equal(t, []string{path}, Folders(path))
	}
}

func TestListTellsWhatARunIs(t *testing.T) {
	home := t.TempDir()
	one := updated(t, filepath.Join(home, "one"), planText, someDay)
	makeRun(t, filepath.Join(home, "two"), planText, someDay.Add(time.Hour))
	third := updated(t, filepath.Join(home, "marked", "three"), planText, someDay.Add(-time.Hour))
	for _, dir := range []string{one, filepath.Dir(third)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, BaselineFile), nil, 0o644))
	}
	torn := filepath.Join(home, "torn")
	require.NoError(t, os.Mkdir(torn, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(torn, result.ResultFile), []byte("{"), 0o644))
	for _, headlines := range []bool{false, true} {
		list, unread, err := (&Reader{}).List(home, headlines)
		require.NoError(t, err)
		require.Len(t, unread, 1)
		assert.Contains(t, unread[0], "torn: ")
		require.Len(t, list, 3)
		assert.Equal(t, []string{"two", "one", "marked/three"}, []string{list[0].Dir, list[1].Dir, list[2].Dir})
		assert.Equal(t, []bool{false, true, true}, []bool{list[0].Baseline, list[1].Baseline, list[2].Baseline})
		assert.Equal(t, []string{"", "one/report.html", "marked/three/report.html"}, []string{list[0].report, list[1].report, list[2].report})
		for i, run := range list {
			assert.Equal(t, headlines, run.Result != nil)
			assert.Equal(t, map[string]int{result.Done: 1}, run.Cases)
			assert.Equal(t, []any{"linux", "box", "in-process", 1, 1}, []any{run.System, run.Machine, run.Engine, run.Sessions, run.Rounds})
			if i > 0 || headlines { // without one the run that has no result.json is not analysed
				require.NotNil(t, run.Headline, run.Dir)
				assert.Equal(t, []any{"write", 1e9}, []any{run.Headline.Op, run.Headline.Value})
			}
		}
		if headlines {
			for _, c := range list[1].Result.Cases {
				assert.Empty(t, c.Steps, "a page of a thousand runs needs no samples")
			}
			h := (&Reader{}).History(list)
			require.Len(t, h.Series, 1)
		}
	}
	// Without its plan an unfinished run is listed as its journal is.
	require.NoError(t, os.Remove(filepath.Join(home, "two", result.PlanFile)))
	list, _, err := (&Reader{}).List(home, true)
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Nil(t, list[0].Headline)
}

func TestHeadlineIsTheFirstRateOfAnImage(t *testing.T) {
	rate := func(id string, value float64) result.Summary {
		return result.Summary{Case: id, Op: "write", Headline: "mean", Estimates: []result.Estimate{
			{Name: "least", Unit: "B/s", Value: 1}, {Name: "mean", Unit: "B/s", Value: value, CI: &result.CI{Low: value - 1, High: value + 1}}}}
	}
	seconds := result.Summary{Case: "image", Op: "attach", Headline: "mean", Estimates: []result.Estimate{{Name: "mean", Unit: "s", Value: 3}}}
	cases := []result.Case{{ID: "native", Baseline: true}, {ID: "image"}, {ID: "other"}}
	for _, c := range []struct {
		list []result.Summary
		want float64 // 0 for none
	}{
		{[]result.Summary{seconds}, 0},
		{[]result.Summary{rate("native", 5), rate("native", 6)}, 5},
		{[]result.Summary{rate("native", 5), seconds, rate("image", 7), rate("other", 8)}, 7},
		{[]result.Summary{rate("image", 7), rate("native", 5)}, 7},
	} {
		h := findHeadline(&result.Result{Cases: cases, Summaries: c.list}, "B/s")
		if c.want == 0 {
			assert.Nil(t, h)
			continue
		}
		assert.Equal(t, []float64{c.want, c.want - 1, c.want + 1}, []float64{h.Value, *h.Low, *h.High})
	}
}

func TestRunWithoutASessionIsListed(t *testing.T) {
	run := newRun(&result.Result{Run: "r"})
	assert.Equal(t, []any{"r", "", 0, true}, []any{run.Run, run.Machine, run.Sessions, run.Started.IsZero()})
}

func TestLedgerLeavesOutWhatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	_, err := (&Reader{}).Ledger(home)
	require.ErrorContains(t, err, "no readable run found")
	_, err = (&Reader{}).Ledger(filepath.Join(home, "missing"))
	require.ErrorContains(t, err, "reading folder")
	torn := filepath.Join(home, "torn")
	require.NoError(t, os.Mkdir(torn, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(torn, result.ResultFile), []byte("{"), 0o644))
	_, err = (&Reader{}).Ledger(home)
	require.ErrorContains(t, err, "no readable run found below it; torn: ")
	updated(t, filepath.Join(home, "one"), planText, someDay)
	makeRun(t, filepath.Join(home, "unfinished"), planText, someDay)
	l, err := (&Reader{}).Ledger(home)
	require.NoError(t, err)
	require.Len(t, l.LeftOut, 3)
	assert.Equal(t, []string{"one: its plan has no claims", "unfinished: its plan has no claims"}, l.LeftOut[:2])
	assert.Contains(t, l.LeftOut[2], "torn: ")
}
