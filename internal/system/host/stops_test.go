package host

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestToBeStopped prints for how long it was suspended between its start and the first byte that it reads, and how long
// its stops were.
func TestToBeStopped(t *testing.T) {
	if os.Getenv("DMGBENCH_TEST_STOPPED") == "" {
		return
	}
	before, err := Suspended()
	start := time.Now()
	require.NoError(t, err)
	fmt.Println("ready")
	_, err = os.Stdin.Read(make([]byte, 1))
	require.NoError(t, err)
	after, err := Suspended()
	require.NoError(t, err)
	var sum time.Duration
	for _, s := range Stops() {
		require.True(t, 0 <= s.Ended && s.Ended < s.Began && s.Began < time.Since(start), "%v", s)
		sum += s.Began - s.Ended
	}
	fmt.Println(int64(after-before), int64(sum))
}

// startToBeStopped starts a process that has begun to watch itself; ended reads what it says when it goes on.
func startToBeStopped(t *testing.T) (pid int, ended func() (suspended, stopped time.Duration)) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestToBeStopped$")
	cmd.Env = append(os.Environ(), "DMGBENCH_TEST_STOPPED=yes")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	_, err = said.ReadString('\n')
	require.NoError(t, err)
	return cmd.Process.Pid, func() (suspended, stopped time.Duration) {
		_, err := in.Write([]byte("\n"))
		require.NoError(t, err)
		_, err = fmt.Fscan(said, &suspended, &stopped)
		require.NoError(t, err)
		require.NoError(t, cmd.Wait())
		return suspended, stopped
	}
}

func TestAProcessThatWasStoppedKnowsForHowLong(t *testing.T) {
	pid, ended := startToBeStopped(t)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	<-time.After(1200 * time.Millisecond) // of the stopped process, which has no other clock
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	suspended, stopped := ended()
	assert.GreaterOrEqual(t, suspended, time.Second)
	assert.GreaterOrEqual(t, stopped, 900*time.Millisecond)
}

func TestTheLatestStopsAreKept(t *testing.T) {
	w := &stopWatch{origin: time.Now()}
	for i := range time.Duration(3 * maxStops) {
		w.add(Stop{10 * i, 10*i + 1}, 2)
	}
	all, latest := w.seen()
	assert.EqualValues(t, 6*maxStops, all)
	assert.Len(t, latest, maxStops)
	assert.EqualValues(t, 20*maxStops, latest[0].Began)
	assert.EqualValues(t, 30*maxStops-9, latest[maxStops-1].Ended)
}

func TestThrottledTimeIsThatOfTheTightestGroup(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/self/cgroup":               "0::/a/b\n",
		"sys/fs/cgroup/a/b/cpu.stat":     "usage_usec 5000\nnr_throttled 2\nthrottled_usec 1500\n",
		"sys/fs/cgroup/a/cpu.stat":       "usage_usec 9000\nthrottled_usec 2500\n",
		"sys/fs/cgroup/cpu.stat":         "usage_usec 90000\n",
		"sys/fs/cgroup/cpu/old/cpu.stat": "nr_periods 1\nthrottled_time 7000\n",
	} {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	assert.Equal(t, 2500*time.Microsecond, tree(root).throttled())
	require.NoError(t, os.WriteFile(filepath.Join(root, "proc/self/cgroup"), []byte("3:cpu,cpuacct:/old\n"), 0o600))
	assert.Equal(t, 7*time.Microsecond, tree(root).throttled())
}
