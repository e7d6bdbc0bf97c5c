package enginetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// damagePlan damages copies of an image in every way that its format has.
const damagePlan = `
schema = 1
title = "What survives"
[image]
format = "%s"
filesystem = "%s"
size = "%s"
band_size = "1 MiB"
[io]
cache = "buffered"
[files.few]
sizes = ["70 kB", "300 kB", "200 kB"]
sets = 8
[run]
rounds = 1
baseline = false
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "fill" },
  { do = "detach" },
  %s
]
`

// survivors are the formats with the kinds of damage to try: with one engine and file system all of them, with the
// other those that differ most.
var survivors = map[string]struct {
	format, filesystem, size, sealed string
	kinds                            []string
	newEngine                        func(*testing.T) engine.Engine
}{
	"inprocess/UDRW": {"UDRW", "exFAT", "16 MB", "", []string{"header", "table", "truncated", "tail", "flipped", "volume", "killed"}, inProcess},
	"inprocess/UDSB": {"UDSB", "exFAT", "16 MB", "", []string{"header", "truncated", "tail", "flipped", "band-missing", "killed"}, inProcess},
	"inprocess/UDSP": {"UDSP", "exFAT", "16 MB", "", []string{"tail", "flipped", "killed"}, inProcess},
	"inprocess/ASIF": {"ASIF", "exFAT", "16 MB", "", []string{"header", "flipped", "killed"}, inProcess},
	"inprocess/UDZO": {"UDRW", "exFAT", "16 MB", "UDZO", []string{"header", "tail", "flipped"}, inProcess},
	"hdiutil/UDSB":   {"UDSB", "ext4", "64 MB", "", []string{"flipped", "band-missing", "killed"}, workAlike},
	"hdiutil/UDZO":   {"UDRW", "ext4", "64 MB", "UDZO", []string{"flipped"}, workAlike},
}

func inProcess(*testing.T) engine.Engine { return inprocess.New(nil) }

// Files that a recover step counts as lost and damaged are those that diff -r finds on the mounted volume, compared with
// a copy of the undamaged one.
func TestRecoveredFilesAreThoseOfDiff(t *testing.T) {
	if os.Geteuid() != 0 || !attach.Loops() {
		t.Skip("needs root and loop devices: it mounts images")
	}
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	lost, damaged := 0, 0
	for name, c := range survivors {
		t.Run(name, func(t *testing.T) {
			steps, source := "", ""
			if c.sealed != "" {
				source = `on = "sealed", `
				steps = fmt.Sprintf("{ do = \"convert\", as = \"sealed\", format = %q },\n", c.sealed)
			}
			for _, kind := range c.kinds {
				how := fmt.Sprintf("kind = %q", kind)
				if kind == "flipped" {
					how += ", bytes = 8"
					if c.sealed != "" {
						how = how[:len(how)-1] + "1"
					}
				}
				steps += fmt.Sprintf("{ do = \"damage\", %sas = %q, phase = %q, %s },\n", source, kind, kind, how) +
					fmt.Sprintf("{ do = \"recover\", on = %q, phase = %q },\n", kind, kind)
			}
			p, problems := plan.Parse("survival", []byte(fmt.Sprintf(damagePlan, c.format, c.filesystem, c.size, steps)))
			if problems != nil {
				require.Empty(t, problems.Errors())
			}
			dir := t.TempDir()
			out := filepath.Join(dir, "run")
			_, err := runner.Run(t.Context(), runner.Config{Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: out,
				Engine: c.newEngine(t), Why: "a test", Clock: clock.NewVirtual(time.Unix(0, 0)), StateDir: filepath.Join(dir, "state"),
				Volatile: true, Keep: true})
			require.NoError(t, err)
			done := theCase(t, out)
			require.Equal(t, result.Done, done.Status, "%v", done.Steps[len(done.Steps)-1].Error)

			mounted := workAlike(t)
			tree := filepath.Join(dir, "tree")
			require.True(t, onVolume(t, mounted, c.format, kept(t, out, "round1.*"), func(root string) {
				output, err := exec.Command("cp", "-r", root, tree).CombinedOutput()
				require.NoError(t, err, "%s", output)
			}))
			for _, st := range done.Steps {
				if st.Do != "recover" {
					continue
				}
				rc := st.Recovery
				require.NotNil(t, rc)
				if st.Phase == engine.Killed {
					addFlushed(t, p, done.ID, tree, rc.Files)
				}
				format := c.format
				if c.sealed != "" {
					format = c.sealed
				}
				gone, different := rc.Files, 0
				onVolume(t, mounted, format, kept(t, out, "round1-"+st.Phase+".*"), func(root string) {
					gone, different = diff(t, tree, root)
				})
				assert.Equal(t, []int{gone, different}, []int{rc.Lost, rc.Damaged}, "%s: %v", st.Phase, st.Findings)
				lost, damaged = lost+rc.Lost, damaged+rc.Damaged
				t.Logf("%s: %d lost, %d damaged of %d, noticed by %q, in flight: %v", st.Phase, rc.Lost, rc.Damaged, rc.Files,
					rc.Noticed, rc.InFlight)
			}
		})
	}
	assert.Positive(t, lost)
	assert.Positive(t, damaged)
}

// theCase is the only case of a run.
func theCase(t *testing.T, out string) result.Case {
	t.Helper()
	rd, err := result.OpenRun(out)
	require.NoError(t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(t, err)
	r, err := result.Fold(recs)
	require.NoError(t, err)
	require.Len(t, r.Cases, 1)
	return r.Cases[0]
}

// kept is the path of a container that a run has left.
func kept(t *testing.T, out, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, "dmgbench-*", "case01-"+name))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// onVolume mounts the volume of an image read-only, whatever its checksum is, and reports whether that succeeded.
func onVolume(t *testing.T, e engine.Engine, format, image string, do func(root string)) bool {
	t.Helper()
	dir, err := hostio.OpenDir(filepath.Dir(image))
	require.NoError(t, err)
	defer dir.Close()
	c, err := e.Open(t.Context(), dir, filepath.Base(image), engine.Spec{Format: format, Filesystems: []string{"exFAT", "ext4"}})
	if err != nil {
		return false
	}
	a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true, NoVerify: true})
	if err != nil {
		return false
	}
	defer func() {
		_, err := a.Detach(t.Context(), true)
		require.NoError(t, err)
	}()
	do(a.Volume().(workload.HostPather).HostPath("."))
	return true
}

// addFlushed adds to the tree the first files of the batch that was being written when the image was killed, so that it
// has n files.
func addFlushed(t *testing.T, p *plan.Plan, caseID, tree string, n int) {
	t.Helper()
	old := 0
	require.NoError(t, filepath.WalkDir(tree, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			old++
		}
		return err
	}))
	items := workload.Items(p.Files[0], workload.Key{Seed: p.Run.Seed, Round: 1, Step: engine.Killed, Batch: 2})
	data := workload.NewData(p.Run.Seed, 1, caseID, workload.DataRandom, 0)
	for _, it := range items[:n-old] {
		content := make([]byte, it.Size)
		data.FillAt(content, workload.KeyOf(it.Name), 0)
		path := filepath.Join(tree, it.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}

// diff counts the files that are missing or unreadable on a volume, and those that differ from the tree, as diff -r
// finds them. It ends at the first file that it cannot read: that is excluded, and diff run once more.
func diff(t *testing.T, tree, root string, exclude ...string) (lost, different int) {
	t.Helper()
	cmd := exec.Command("diff", append([]string{"-rq", tree, root}, exclude...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(out), tree, "")) {
		line = strings.TrimSpace(line)
		missing, isMissing := strings.CutPrefix(line, "Only in ")
		unreadable, isUnreadable := strings.CutPrefix(line, "diff: "+root+"/batch")
		switch {
		case isUnreadable:
			name := "batch" + unreadable[:strings.LastIndex(unreadable, ": ")]
			n := filesIn(t, tree, name)
			lost, different = diff(t, tree, root, append(exclude, "-x", filepath.Base(name))...)
			return lost + n, different
		case strings.HasSuffix(line, " differ"):
			different++
		case isMissing && !strings.HasPrefix(missing, root):
			lost += filesIn(t, tree, strings.ReplaceAll(missing, ": ", "/"))
		}
	}
	return lost, different
}

// filesIn counts the files in a folder of the tree; a file counts as one.
func filesIn(t *testing.T, tree, name string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(tree, name, "*"))
	require.NoError(t, err)
	return max(len(list), 1)
}
