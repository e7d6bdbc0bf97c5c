package result

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever is in a result, its summary is the result cut down, from summary.json and without it.
func TestSummaryIsTheResultCutDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := CreateRun(dir, "r-1")
	require.NoError(t, err)
	defer d.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := &Result{Schema: SchemaVersion, Run: rapid.String().Draw(t, "run"), Status: Done}
		for range rapid.IntRange(0, 4).Draw(t, "cases") {
			c := Case{ID: rapid.String().Draw(t, "id"), Baseline: rapid.Bool().Draw(t, "baseline"), Reason: rapid.String().Draw(t, "reason"),
				Status: rapid.SampledFrom([]string{Done, Skipped, Failed, Discarded}).Draw(t, "status"), Keys: [][2]string{{"status", "id"}},
				Target: Target{Kind: "image", Place: rapid.String().Draw(t, "place"), Size: 1e9}}
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				c.Steps = append(c.Steps, Step{Do: "write", Samples: []Sample{{File: "f"}}})
			}
			r.Cases = append(r.Cases, c)
		}
		for range rapid.IntRange(0, 4).Draw(t, "summaries") {
			r.Summaries = append(r.Summaries, drawSummary(t))
		}
		r.Claims = append(r.Claims, Claim{ID: "a", Says: "x", Verdict: "holds", Evidence: []string{"because"}})
		require.NoError(t, d.WriteResult(r))
		b, err := os.ReadFile(filepath.Join(dir, ResultFile))
		require.NoError(t, err)
		want, err := ParseResult("", bytes.NewReader(b))
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, SummaryFile))
		check := func() {
			got, err := ReadSummary(dir)
			require.NoError(t, err)
			require.Equal(t, want.Claims, got.Claims)
			require.Len(t, got.Cases, len(want.Cases))
			for i, c := range got.Cases {
				w := want.Cases[i]
				require.Equal(t, completed(t, &Case{ID: w.ID, Status: w.Status, Baseline: w.Baseline, Reason: w.Reason, Target: w.Target}), completed(t, &c))
			}
			for _, s := range got.Summaries {
				require.Len(t, s.Estimates, 1)
				require.Equal(t, s.Headline, s.Estimates[0].Name)
			}
			requireSummaries(t, want.Summaries, got.Summaries)
		}
		check()
		require.NoError(t, os.Remove(filepath.Join(dir, SummaryFile)))
		check()
	})
}

// requireSummaries checks which summaries were kept: rates, sizes on disk and published figures, or all where there is no rate.
func requireSummaries(t *rapid.T, all, got []Summary) {
	var names, main []string
	rates := false
	for _, s := range all {
		i := slices.IndexFunc(s.Estimates, func(e Estimate) bool { return e.Name == s.Headline })
		if i < 0 {
			continue
		}
		names = append(names, s.Case+s.Phase)
		if rate := s.Estimates[i].Unit == "B/s"; rate || s.Op == "allocated" || len(s.Published) > 0 {
			main, rates = append(main, s.Case+s.Phase), rates || rate
		}
	}
	if rates {
		names = main
	}
	require.Len(t, got, len(names))
	for i, s := range got {
		require.Equal(t, names[i], s.Case+s.Phase)
	}
}

// writeResult writes a result to a run folder.
func writeResult(t require.TestingT, dir string, r *Result) {
	d, err := OpenRun(dir)
	require.NoError(t, err)
	require.NoError(t, d.WriteResult(r))
	require.NoError(t, d.Close())
}

// A result.json that was changed or replaced is read, not what summary.json has of the one before.
func TestStaleSummaryIsNotUsed(t *testing.T) {
	dir := endedRun(t, true)
	r := &Result{Schema: SchemaVersion, Run: "r-1", Status: Done}
	writeResult(t, dir, r)
	b, err := os.ReadFile(filepath.Join(dir, ResultFile))
	require.NoError(t, err)
	write(t, dir, ResultFile, strings.Replace(string(b), `"r-1"`, `"r-2"`, 1))
	got, err := ReadSummary(dir)
	require.NoError(t, err)
	assert.Equal(t, "r-2", got.Run)
	write(t, dir, ResultFile, string(b))
	write(t, dir, SummaryFile, "{")
	got, err = ReadSummary(dir)
	require.NoError(t, err)
	assert.Equal(t, "r-1", got.Run)
}

// Rates, sizes on disk and published figures are what a list of runs shows; without any rate it is all.
func TestSummaryKeepsTheMainFigures(t *testing.T) {
	of := func(op, unit string, published int) Summary {
		return Summary{Case: "a", Op: op, Headline: "mean", Published: make([]PublishedValue, published),
			Estimates: []Estimate{{Name: "low", Unit: unit}, {Name: "mean", Unit: unit}}}
	}
	rest := []Summary{of("allocated", "B", 0), of("attach_time", "s", 1), of("detach_time", "s", 0), {Case: "a", Op: "none", Headline: "mean"}}
	for _, c := range []struct {
		all  []Summary
		want []string
	}{
		{append([]Summary{of("write", "B/s", 0)}, rest...), []string{"write", "allocated", "attach_time"}},
		{append(slices.Clone(rest), of("read", "B/s", 0)), []string{"allocated", "attach_time", "read"}},
		{rest, []string{"allocated", "attach_time", "detach_time"}},
	} {
		dir := endedRun(t, true)
		writeResult(t, dir, &Result{Schema: SchemaVersion, Run: "r-1", Status: Done, Summaries: c.all})
		got, err := ReadSummary(dir)
		require.NoError(t, err)
		var ops []string
		for _, s := range got.Summaries {
			ops = append(ops, s.Op)
			require.Len(t, s.Estimates, 1)
			assert.Equal(t, "mean", s.Estimates[0].Name)
		}
		assert.Equal(t, c.want, ops)
	}
}

func TestReadResultTakesAFolderAFileOrALink(t *testing.T) {
	dir := endedRun(t, true)
	writeResult(t, dir, &Result{Schema: SchemaVersion, Run: "r-1", Status: Done})
	link, toFile := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "link.json")
	require.NoError(t, os.Symlink(dir, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, ResultFile), toFile))
	for _, path := range []string{dir, filepath.Join(dir, ResultFile), link, toFile} {
		r, err := ReadResult(path)
		require.NoError(t, err, path)
		assert.Equal(t, "r-1", r.Run, path)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), filepath.Join(dir, JournalFile), t.TempDir()} {
		_, err := ReadResult(path)
		require.Error(t, err, path)
	}
}

// A result is outdated once plan or journal differ from those it was made of.
func TestOutdated(t *testing.T) {
	dir := endedRun(t, true)
	d, err := OpenRun(dir)
	require.NoError(t, err)
	sources, err := d.Sources()
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.NotEqual(t, sources.Plan, sources.Journal)
	assertOutdated := func(want bool, r *Result, why string) {
		t.Helper()
		got, err := Outdated(dir, r)
		require.NoError(t, err, why)
		assert.Equal(t, want, got, why)
	}
	assertOutdated(false, &Result{Sources: sources}, "as it was")
	assertOutdated(true, &Result{}, "it names no sources")
	write(t, dir, PlanFile, "y")
	assertOutdated(true, &Result{Sources: sources}, "another plan")
	for _, name := range []string{PlanFile, JournalFile} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Rename(path, path+"-away"))
		assertOutdated(false, &Result{Sources: sources}, "without "+name)
		require.NoError(t, os.Rename(path+"-away", path))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, JournalFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, JournalFile), 0o755))
	_, err = Outdated(dir, &Result{Sources: sources})
	require.Error(t, err, "a journal that cannot be read")
	_, err = Outdated(filepath.Join(dir, "missing"), &Result{})
	require.ErrorContains(t, err, "opening run folder")
}

func drawSummary(t *rapid.T) Summary {
	name := rapid.OneOf(rapid.SampledFrom([]string{"aggregate", "mean", "", "\"", "case"}), rapid.String())
	s := Summary{Case: name.Draw(t, "case"), Phase: name.Draw(t, "phase"), Op: rapid.SampledFrom([]string{"write", "allocated", "attach_time"}).Draw(t, "op"), N: 3, Headline: name.Draw(t, "headline")}
	for range rapid.IntRange(0, 4).Draw(t, "estimates") {
		e := Estimate{Name: name.Draw(t, "name"), Value: 1, Unit: rapid.SampledFrom([]string{"B/s", "s", "B"}).Draw(t, "unit"), N: rapid.IntRange(0, 9).Draw(t, "n")}
		if rapid.Bool().Draw(t, "interval") {
			e.CI = &CI{Low: 1, High: 2, Method: "}"}
		}
		s.Estimates = append(s.Estimates, e)
	}
	if rapid.Bool().Draw(t, "published") {
		s.Published = append(s.Published, PublishedValue{Estimate: "aggregate"})
		s.Warnings = append(s.Warnings, Warning{Kind: "headline", Text: name.Draw(t, "text")})
	}
	return s
}

func TestSummaryOfAResultWithoutSummaryFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ResultFile, `{"schema":1,"run":"r","cases":[{"id":"a","status":"failed","steps":[]}]}`)
	r, err := ReadSummary(dir)
	require.NoError(t, err)
	assert.Equal(t, []Case{{ID: "a", Status: Failed}}, r.Cases)
	write(t, dir, ResultFile, "{\n  \"schema\": 1,\n  \"cases\": [\n    {\n      \"id\": 3\n    }\n  ]\n}\n")
	_, err = ReadSummary(dir)
	assert.ErrorContains(t, err, "cannot unmarshal number")
	_, err = ReadSummary(t.TempDir())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// endedRun is a run folder with an ended run in it.
func endedRun(t *testing.T, ended bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	d, err := CreateRun(dir, "r-1")
	require.NoError(t, err)
	s := begin(1, "a").whole("a", 1)
	if ended {
		s.end(1, "clean").add(Record{RunEnd: &RunEnd{Status: Done}})
	}
	for i, rec := range s.recs {
		rec.At = time.Unix(1767225600+int64(i), 0)
		if rec.Run != nil {
			rec.Run.ID = "r-1"
		}
		require.NoError(t, d.Append(rec), i)
	}
	require.NoError(t, d.WriteFile(PlanFile, []byte("x")))
	require.NoError(t, d.Close())
	return dir
}

func TestDiscard(t *testing.T) {
	dir := endedRun(t, true)
	write(t, dir, "notes.txt", "mine")
	before := snapshot(t, dir)
	assert.ErrorIs(t, Discard(dir, "r-1"), ErrHoldsMore)
	assert.Equal(t, before, snapshot(t, dir))
	require.NoError(t, os.Remove(filepath.Join(dir, "notes.txt")))

	assert.ErrorIs(t, Discard(dir, "r-2"), ErrNotRun)
	d, err := ResumeRun(dir)
	require.NoError(t, err)
	assert.ErrorIs(t, Discard(dir, "r-1"), ErrBusy)
	require.NoError(t, d.Close())

	marker := filepath.Join(dir, markerFile)
	require.NoError(t, os.Rename(marker, marker+"-away"))
	assert.ErrorIs(t, Discard(dir, "r-1"), ErrNotRun)
	require.NoError(t, os.Rename(marker+"-away", marker))
	require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(dir, ReportFile)))
	assert.ErrorIs(t, Discard(dir, "r-1"), ErrHoldsMore)
	require.NoError(t, os.Remove(filepath.Join(dir, ReportFile)))

	require.NoError(t, Discard(dir, "r-1"))
	assert.NoDirExists(t, dir)
	unended := endedRun(t, false)
	assert.ErrorIs(t, Discard(unended, "r-1"), ErrNotEnded)
	assert.DirExists(t, unended)
}

// large is a run folder with the result of so many files, and a summary of 10 estimates for every 50 of them.
func large(t testing.TB, files int) (dir string, size int) {
	t.Helper()
	r := &Result{Schema: SchemaVersion, Status: Done}
	c := Case{ID: "a", Status: Done, Steps: []Step{{Do: "write"}}}
	for i := range files {
		c.Steps[0].Samples = append(c.Steps[0].Samples, Sample{File: fmt.Sprint(i), Bytes: 1 << 20, DurationNS: int64(i)})
	}
	r.Cases = []Case{c}
	for range files / 50 {
		s := Summary{Case: "a", Op: "write", Headline: "e5"}
		for k := range 10 {
			s.Estimates = append(s.Estimates, Estimate{Name: fmt.Sprint("e", k), Unit: "B/s", CI: &CI{Unit: "round"}})
		}
		r.Summaries = append(r.Summaries, s)
	}
	text, err := r.MarshalIndent()
	require.NoError(t, err)
	dir = filepath.Join(t.TempDir(), "run")
	d, err := CreateRun(dir, "r-1")
	require.NoError(t, err)
	require.NoError(t, d.WriteResult(r))
	require.NoError(t, d.Close())
	return dir, len(text)
}

// A list of runs decodes what it shows and nothing else: a small part of a large result.
func TestSummaryDecodesLittle(t *testing.T) {
	dir, size := large(t, 2500)
	text, err := os.ReadFile(filepath.Join(dir, SummaryFile))
	require.NoError(t, err)
	assert.Less(t, len(text), size/20)
	per := func(read func() error) float64 {
		return testing.AllocsPerRun(1, func() { require.NoError(t, read()) })
	}
	short := per(func() error { _, err := ReadSummary(dir); return err })
	long := per(func() error { _, err := ReadResult(dir); return err })
	assert.Less(t, short, long/5)
}

// BenchmarkReadSummary reads a run of 10,000 files.
func BenchmarkReadSummary(b *testing.B) {
	dir, size := large(b, 10_000)
	b.SetBytes(int64(size))
	for b.Loop() {
		_, err := ReadSummary(dir)
		require.NoError(b, err)
	}
}

// A list reads no journal while summary.json is the newest file, and compares digests where it is not.
func TestCurrentSummary(t *testing.T) {
	dir := endedRun(t, true)
	d, err := OpenRun(dir)
	require.NoError(t, err)
	sources, err := d.Sources()
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.Nil(t, CurrentSummary(dir), "there is none")
	writeResult(t, dir, &Result{Schema: SchemaVersion, Run: "r-1", Status: Done, Sources: sources})
	at := func(name string, seconds int64) {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Unix(seconds, 0)))
	}
	all := []string{PlanFile, JournalFile, ResultFile}
	for _, changed := range append(all, "") {
		for _, name := range all {
			at(name, 100)
		}
		for _, own := range []int64{99, 100, 101} {
			at(SummaryFile, own)
			require.NotNil(t, CurrentSummary(dir), "nothing has changed")
		}
		if changed == "" {
			continue
		}
		before := contentsOf(t, filepath.Join(dir, changed))
		write(t, dir, changed, before+" ")
		at(changed, 101)
		assert.Nil(t, CurrentSummary(dir), changed)
		write(t, dir, changed, before)
	}
	write(t, dir, SummaryFile, "{")
	assert.Nil(t, CurrentSummary(dir))
	assert.Nil(t, CurrentSummary(filepath.Join(dir, "missing")))
}
