package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// controlGroup makes a control group of version 2, or of a controller of version 1, and returns its folder. A file is
// one that such a group has; what is written to it depends on the version.
func controlGroup(t *testing.T, controller, file2, file1 string) (dir string, version int) {
	t.Helper()
	for _, g := range []struct {
		version      int
		parent, file string
	}{{2, "/sys/fs/cgroup", file2}, {1, filepath.Join("/sys/fs/cgroup", controller), file1}} {
		dir := filepath.Join(g.parent, fmt.Sprintf("dmgbench-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if _, err := os.Stat(filepath.Join(dir, g.file)); err == nil {
			return dir, g.version
		}
	}
	t.Skip("no control groups to make")
	return "", 0
}

func writeGroup(t *testing.T, dir, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
}

func TestAProcessThatWasFrozenKnowsForHowLong(t *testing.T) {
	dir, version := controlGroup(t, "freezer", "cgroup.freeze", "freezer.state")
	file, frozen, thawed := "cgroup.freeze", "1", "0"
	if version == 1 {
		file, frozen, thawed = "freezer.state", "FROZEN", "THAWED"
	}
	pid, ended := startToBeStopped(t)
	writeGroup(t, dir, "cgroup.procs", fmt.Sprint(pid))
	writeGroup(t, dir, file, frozen)
	<-time.After(1200 * time.Millisecond)
	writeGroup(t, dir, file, thawed)
	suspended, stopped := ended()
	assert.GreaterOrEqual(t, suspended, time.Second)
	assert.GreaterOrEqual(t, stopped, 900*time.Millisecond)
}

// TestToBeThrottled uses a processor for half a second of its own clock, and prints for how long it was throttled.
func TestToBeThrottled(t *testing.T) {
	if os.Getenv("DMGBENCH_TEST_THROTTLED") == "" {
		return
	}
	_, err := os.Stdin.Read(make([]byte, 1))
	require.NoError(t, err)
	before := Throttled()
	for start := time.Now(); time.Since(start) < time.Second/2; {
	}
	fmt.Println(int64(Throttled() - before))
}

func TestALimitOfProcessorTimeIsSeen(t *testing.T) {
	dir, version := controlGroup(t, "cpu", "cpu.max", "cpu.cfs_quota_us")
	file, tenth := "cpu.max", "10000 100000"
	if version == 1 {
		file, tenth = "cpu.cfs_quota_us", "10000"
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestToBeThrottled$")
	cmd.Env = append(os.Environ(), "DMGBENCH_TEST_THROTTLED=yes")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	writeGroup(t, dir, "cgroup.procs", fmt.Sprint(cmd.Process.Pid))
	writeGroup(t, dir, file, tenth)
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	var throttled time.Duration
	_, err = fmt.Sscan(out.String(), &throttled)
	require.NoError(t, err, out.String())
	assert.Greater(t, throttled, 200*time.Millisecond)
}
