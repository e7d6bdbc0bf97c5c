package result

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestGlanceIsTheResultCutDown: whatever is in a result, the short reading is the long one cut down.
func TestGlanceIsTheResultCutDown(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := &Result{Schema: SchemaVersion, Run: rapid.String().Draw(t, "run"), Status: Done}
		for range rapid.IntRange(0, 4).Draw(t, "cases") {
			c := Case{ID: rapid.String().Draw(t, "id"), Baseline: rapid.Bool().Draw(t, "baseline"), Reason: rapid.String().Draw(t, "reason"),
				Status: rapid.SampledFrom([]string{Done, Skipped, Failed, Discarded}).Draw(t, "status"), Keys: [][2]string{{"status", "id"}},
				Target: Target{Kind: "image", Place: rapid.String().Draw(t, "place"), Filesystem: rapid.String().Draw(t, "filesystem"), Size: 1e9}}
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				c.Steps = append(c.Steps, Step{Do: "write", Error: rapid.String().Draw(t, "error"), Reported: map[string]string{"status": "x"},
					Samples: []Sample{{File: rapid.String().Draw(t, "file")}}})
			}
			r.Cases = append(r.Cases, c)
		}
		for range rapid.IntRange(0, 4).Draw(t, "summaries") {
			r.Summaries = append(r.Summaries, drawSummary(t))
		}
		r.Claims = append(r.Claims, Claim{ID: "\n  \"cases\": [\n", Says: "x", Verdict: "holds", Evidence: []string{"\n  \"summaries\": [\n"}})
		b, err := r.MarshalIndent()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ResultFile), b, 0o644))
		want, err := ParseResult("", b)
		require.NoError(t, err)
		got, err := Glance(dir)
		require.NoError(t, err)
		require.Equal(t, glimpse(want), got)

		short, err := ParseResult("", brief(b)) // and it is the short way that was taken
		require.NoError(t, err)
		require.Len(t, short.Cases, len(r.Cases))
		require.Len(t, short.Summaries, len(got.Summaries))
		require.Empty(t, short.Claims[0].Says)
		for _, c := range short.Cases {
			require.Empty(t, c.Keys)
		}
		for _, s := range short.Summaries {
			require.Empty(t, s.Published)
			require.Len(t, s.Estimates, 1)
		}

		want, err = ParseResult("", b)
		require.NoError(t, err)
		whole := len(quoted(want).Summaries)
		got, err = GlanceSummaries(dir)
		require.NoError(t, err)
		require.Equal(t, want, got)
		short, err = ParseResult("", briefSummaries(b))
		require.NoError(t, err)
		require.Len(t, short.Summaries, whole)
		for _, s := range short.Summaries {
			require.Len(t, s.Estimates, 1)
		}
		require.Empty(t, short.Claims)

		got, err = GlanceClaims(dir)
		require.NoError(t, err)
		want, err = ParseResult("", b)
		require.NoError(t, err)
		require.Equal(t, want.Claims, got.Claims)
		require.Empty(t, got.Cases)
		require.Empty(t, got.Summaries)
	})
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

func TestGlanceReadsOtherForms(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ResultFile, `{"schema":1,"run":"r","cases":[{"id":"a","status":"failed","steps":[]}]}`)
	r, err := Glance(dir)
	require.NoError(t, err)
	assert.Equal(t, []Case{{ID: "a", Status: Failed}}, r.Cases)
	write(t, dir, ResultFile, "{\n  \"schema\": 1,\n  \"cases\": [\n    {\n      \"id\": 3\n    }\n  ]\n}\n")
	_, err = Glance(dir)
	assert.ErrorContains(t, err, "line 5")
	_, err = Glance(t.TempDir())
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
		s.end(1, "clean").add(Record{Kind: KindRunEnd, RunEnd: &RunEnd{Status: Done}})
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

// large is a result.json of a run of 10,000 files, and of 200 summaries that have 10 estimates.
func large(t testing.TB) (dir string, size int) {
	t.Helper()
	r := &Result{Schema: SchemaVersion, Status: Done}
	c := Case{ID: "a", Status: Done, Steps: []Step{{Do: "write"}}}
	for i := range 10_000 {
		c.Steps[0].Samples = append(c.Steps[0].Samples, Sample{File: fmt.Sprint(i), Bytes: 1 << 20, DurationNS: int64(i)})
	}
	r.Cases = []Case{c}
	for range 200 {
		s := Summary{Case: "a", Op: "write", Headline: "e5"}
		for k := range 10 {
			s.Estimates = append(s.Estimates, Estimate{Name: fmt.Sprint("e", k), Unit: "B/s", CI: &CI{Unit: "round"}})
		}
		r.Summaries = append(r.Summaries, s)
	}
	text, err := r.MarshalIndent()
	require.NoError(t, err)
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ResultFile), text, 0o644))
	return dir, len(text)
}

// A glance decodes what it gives and nothing else: what it leaves over of a large
// result for the decoder, and what it allocates, are a small part of it.
func TestGlanceDecodesLittle(t *testing.T) {
	dir, size := large(t)
	text, err := os.ReadFile(filepath.Join(dir, ResultFile))
	require.NoError(t, err)
	assert.Less(t, len(brief(text)), size/20)
	per := func(read func() error) float64 {
		return testing.AllocsPerRun(3, func() { require.NoError(t, read()) })
	}
	short := per(func() error { _, err := Glance(dir); return err })
	long := per(func() error { _, err := ReadResult(dir); return err })
	assert.Less(t, short, long/5)
}

// BenchmarkGlance reads a run of 10,000 files.
func BenchmarkGlance(b *testing.B) {
	dir, size := large(b)
	b.SetBytes(int64(size))
	for b.Loop() {
		_, err := Glance(dir)
		require.NoError(b, err)
	}
}
