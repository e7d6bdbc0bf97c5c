package cli_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/linuxhdiutil/attach"
)

// attachedPlan is the life of images that are mounted for real.
var attachedPlan = strings.Replace(lifePlan, `["exFAT"]`, `["ext4"]`, 1)

// The runner, the process that serves an image, or both are killed at any moment:
// clean restores the machine, and the run goes on to its end.
func TestAttachedLife(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it attaches images")
	}
	if !attach.Loops() {
		t.Skip("no loop device")
	}
	bin, err := exec.LookPath("dmgbench") // TestMain has put it there
	require.NoError(t, err)
	moments := 3
	if os.Getenv("DMGBENCH_LONG") != "" {
		moments = 20
	}
	seed := rand.Uint64()
	draw := rand.New(rand.NewPCG(seed, 0))
	for i := range moments {
		victim := []string{"runner", "helper", "both"}[i%3]
		records := 4 + draw.IntN(70)
		t.Run(victim+" at record "+strconv.Itoa(records), func(t *testing.T) { killedAttached(t, bin, victim, records) })
	}
}

func killedAttached(t *testing.T, bin, victim string, records int) {
	w := newWorld(t, bin, attachedPlan)
	w.engine = "hdiutil"
	p := w.start(w.begin()...)
	// A run of this plan has some hundred records; an image is served by a process only now and then.
	w.until(p, "at record "+strconv.Itoa(records), func() bool { return strings.Count(w.journal(), "\n") >= records })
	if victim != "runner" {
		w.until(p, "serving an image", func() bool { return len(w.helpers()) > 0 })
		if victim == "both" { // at one moment: it must not record that the image was lost
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
		}
		for _, pid := range w.helpers() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
		}
	}
	if victim != "helper" {
		require.NoError(t, p.cmd.Process.Kill())
	}
	first := p.wait()
	if pids := w.helpers(); victim == "runner" && len(pids) > 0 {
		told := strings.Join(strings.Fields(w.run("doctor").out), " ")
		assert.Contains(t, told, "left over "+w.out+" was killed: images in ")
		assert.Contains(t, told, " is attached")
	}
	e := w.run("clean")
	require.Zero(t, e.code, "%s%s", e.out, e.err)
	w.restored()
	if victim == "helper" {
		assert.Contains(t, []int{0, 1, 3}, first.code, first.err) // the case whose image was lost has failed
		return
	}
	e = w.run("resume", w.out)
	require.Zero(t, e.code, "%s%s", e.out, e.err)
	w.complete()
	w.restored()
}

// helpers are the processes that serve images of this world.
func (w *world) helpers() (pids []int) {
	for _, process := range names(w.t, "/proc") {
		name := filepath.Join("/proc", process, "cmdline")
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, []byte("\x00"+attach.HelperVerb+"\x00")) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(name), "environ"))
		if err != nil || !bytes.Contains(env, []byte(w.home)) {
			continue
		}
		pid, err := strconv.Atoi(process)
		require.NoError(w.t, err)
		pids = append(pids, pid)
	}
	return pids
}

// restored says that nothing of this world is attached, mounted, served or kept.
func (w *world) restored() {
	w.t.Helper()
	dir := filepath.Dir(w.home)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(w.t, err)
	assert.NotContains(w.t, string(mounts), dir, "mounted")
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	require.NoError(w.t, err)
	for _, name := range backing {
		text, _ := os.ReadFile(name) // of others, which come and go
		assert.NotContains(w.t, string(text), dir, name)
	}
	assert.Empty(w.t, w.helpers(), "serving")
	assert.Empty(w.t, names(w.t, w.place), "at the place")
	for _, kept := range []string{"mounts", "secrets", "probes"} {
		if _, err := os.Stat(filepath.Join(w.home, "state", kept)); err == nil {
			assert.Empty(w.t, names(w.t, filepath.Join(w.home, "state", kept)), kept)
		}
	}
}
