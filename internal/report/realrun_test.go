package report

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/clock"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/host"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// tiny is a protocol with every kind of step that a report draws, of some hundred kilobytes.
const tiny = `
schema  = 1
title   = "A real run"
summary = "Two images and a folder through one small life."
[image]
size = "8 MB"
[io]
cache = "buffered"
files = "few"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["4 kB", "16 kB", "64 kB"]
sets  = 2
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "remount" },
  { do = "read", phase = "new" },
  { do = "verify", phase = "new" },
  { do = "measure", phase = "full" },
  { do = "delete", phase = "all", all = true },
  { do = "detach" },
  { do = "measure", phase = "emptied" },
]
[run]
rounds   = 3
baseline = true
[[claim]]
says  = "A new sparse bundle takes less than its size on disk"
by    = "us"
left  = { allocated = { format = "UDSB", phase = "full" } }
right = { apparent = { format = "UDRW", phase = "full" } }
ratio = "< 1"
[[table]]
name    = "overview"
title   = "Rates"
columns = [{ title = "write", write = { phase = "new" }, unit = "MB/s", digits = 0 }]
rows    = [{ title = "sparse bundle", where = { format = "UDSB" } }, { title = "folder", where = { baseline = true } }]
`

// realRun measures on this machine and returns the page: as `dmgbench run` does it, from the plan to the
// journal and from there to the report, with the clock, the disk and the facts of the host.
func realRun(t *testing.T) string {
	t.Helper()
	p, problems := plan.Parse("tiny", []byte(tiny))
	require.Empty(t, problems.Errors(), "%v", problems)
	dir := t.TempDir()
	c := clock.NewReal()
	out, err := runner.Run(t.Context(), runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"), Volatile: true,
		Engine: inprocess.New(c.Wall), Why: "a test", Clock: c, StateDir: filepath.Join(dir, "state"),
		Host: host.Gather(t.Context(), []host.Place{{Path: dir}}, false),
	})
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status, out.Message)
	rd, err := result.OpenRun(out.Dir)
	require.NoError(t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(t, err)
	r, err := result.Fold(recs)
	require.NoError(t, err)
	require.NoError(t, analysis.Analyse(p, r))
	require.Len(t, r.Cases, 3, "two images and the folder")
	for _, cs := range r.Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
	}
	var b bytes.Buffer
	require.NoError(t, HTML(&b, p, r))
	return b.String()
}
