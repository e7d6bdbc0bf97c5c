package report_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/cli"
)

// tiny is a protocol with every kind of chart that a report draws, each once where it can be, of some hundred kilobytes.
const tiny = `
schema  = 1
title   = "A real run"
summary = "Two images and a folder through one small life."
[image]
size       = "8 MB"
filesystem = "exFAT"
[io]
cache = "buffered"
files = "few"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["64 kB", "96 kB", "200 kB"]
sets  = 2
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
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

// world is a folder of runs, and all that the program keeps outside of them. What goes wrong is kept, so that runs can be made while
// a browser starts: [world.fine] tells it.
type world struct {
	ctx  context.Context
	dir  string // of the plans, and of the folder runs
	runs string
	env  []string
	err  error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{ctx: t.Context(), dir: dir, runs: filepath.Join(dir, "runs")}
	for _, part := range []string{"HOME", "DMGBENCH_STATE", "DMGBENCH_RUNTIME_DIR", "TMPDIR"} {
		w.env = append(w.env, part+"="+filepath.Join(dir, part))
		require.NoError(t, os.Mkdir(filepath.Join(dir, part), 0o700))
	}
	require.NoError(t, os.Mkdir(w.runs, 0o755))
	w.env = append(w.env, "PATH="+os.Getenv("PATH"), "DMGBENCH_RUN_ENGINE=inprocess", "DMGBENCH_RESUME_ENGINE=inprocess")
	return w
}

func (w *world) fine(t *testing.T) {
	t.Helper()
	require.NoError(t, w.err)
}

// asProgram is set for a test binary that is to be the program.
const asProgram = "DMGBENCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(context.Background(), os.Stdin, os.Stdout, os.Stderr, os.Args[1:], os.Environ()))
	}
	debug.SetGCPercent(400) // pages of megabytes make much garbage
	os.Exit(m.Run())
}

// dmgbench runs the whole program, which has to end with that status, and returns what it printed. It is a process of its own:
// a run collects garbage before it times, and here are pages of megabytes.
func (w *world) dmgbench(status int, args ...string) string {
	if w.err != nil {
		return ""
	}
	cmd := exec.CommandContext(w.ctx, os.Args[0], args...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(w.env, asProgram+"=1"), &out, &said
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != status {
		w.err = fmt.Errorf("running dmgbench %q: status %d instead of %d: %w %s%s", args, code, status, err, &out, &said)
	}
	return out.String()
}

// save keeps a text as a file and returns its path.
func (w *world) save(path, text string) string {
	w.err = cmp.Or(w.err, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run executes a plan into a folder of that name and returns the folder.
func (w *world) run(plan, name string, flags ...string) string {
	out := filepath.Join(w.runs, name)
	w.dmgbench(0, append([]string{"run", "--out", out}, append(flags, "--", plan)...)...)
	return out
}

// runTurned is run for a plan with a manual axis of two values: it pauses before each of them, and is resumed.
func (w *world) runTurned(plan, name string, flags ...string) string {
	out := filepath.Join(w.runs, name)
	w.dmgbench(130, append([]string{"run", "--out", out}, append(flags, "--", plan)...)...)
	w.dmgbench(130, "resume", "--", out)
	w.dmgbench(0, "resume", "--", out)
	return out
}

// subject is a page to look at: a file, what it has to have on paper, and the folder that its links lead into.
type subject struct {
	name, path string
	texts      []string
	into       string
}

// real makes runs of a plan that means no harm, and what is made of them.
func (w *world) real() []subject {
	run := w.run(w.save(filepath.Join(w.dir, "tiny.toml"), tiny), "tiny")
	compare := []string{"compare", "--by", "plan", "--threshold", "99%", "--format", "html"}
	for _, side := range []string{"before", "after"} { // two sessions each of the same cases
		plan := w.save(filepath.Join(w.dir, side+".toml"), tiny)
		for _, n := range []string{"1", "2"} {
			compare = append(compare, w.run(plan, side+n, "--rounds", "1", "--sets", "1"))
		}
	}
	return []subject{
		{"report", filepath.Join(run, "report.html"), []string{"A real run"}, ""},
		{"comparison", w.save(filepath.Join(w.runs, "comparison.html"), w.dmgbench(0, compare...)), []string{"before", "after"}, ""},
	}
}

// hostile makes runs whose every name and text wants to be something else, and what is made of them.
func (w *world) hostile() []subject {
	place := filepath.Join(w.dir, hostileRun+"place")
	w.err = cmp.Or(w.err, os.Mkdir(place, 0o700))
	on := []string{"--on", "p__f__alert.7.__f__=" + place}
	plan := w.save(filepath.Join(w.dir, hostileFile+".toml"), hostilePlan)
	one, two := w.runTurned(plan, hostileRun+"1", on...), w.runTurned(plan, hostileRun+"2", on...)
	compared := w.dmgbench(0, "compare", "--format", "html", "--threshold", "99%", "--", one, two)
	verdicts := w.dmgbench(0, "report", "--ledger", w.runs, "--format", "html")
	past := w.dmgbench(0, "history", w.runs, "--format", "html")
	return []subject{
		{"report", filepath.Join(one, "report.html"), []string{"title </script><script>alert(1)</script>", "bundle </script>", "alert(9)"}, ""},
		{"comparison", w.save(filepath.Join(w.runs, "comparison.html"), compared), []string{"alert(5)", "alert(9)"}, ""},
		{"history", w.save(filepath.Join(w.runs, "history.html"), past), []string{"title </script><script>alert(1)", "alert(5)"}, w.runs},
		{"ledger", w.save(filepath.Join(w.runs, "ledger.html"), verdicts), []string{"claim of ours </script><script>alert(1)</script>"}, w.runs},
	}
}
