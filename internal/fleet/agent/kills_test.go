package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/fleet/control"
)

// process is what a process of a test does: it serves the folder, or without one it is an agent.
type process struct {
	Serve                   string
	Link                    fleet.Link
	Folder, Program, Engine string
	Places                  map[string]string
	Binary, Clock           string // of a process with a clock of its own
	IsOrderly               bool   // kill lets it end in order
}

// runProcess does so until it is killed.
func runProcess(text string) {
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	if p.Serve != "" {
		s, err := broker.Serve(p.Serve, broker.Options{Limits: smallLimits})
		if err != nil {
			panic(err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-ctx.Done()
		s.Close()
		return
	}
	panic(Run(context.Background(), Config{Link: p.Link, Folder: p.Folder, Program: p.Program, Engine: p.Engine, Places: p.Places,
		Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, "agent: "+format+"\n", args...) }}))
}

// spawn starts a process; kill kills it, or lets it end in order, and waits for its end.
func spawn(t *testing.T, p process) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	cmd := exec.Command(cmp.Or(p.Binary, self))
	cmd.Env = append(os.Environ(), "FLEET_AGENT_PROCESS="+string(text), "FLEET_CLOCK="+p.Clock)
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	require.NoError(t, cmd.Start())
	return func() {
		signal := syscall.SIGKILL
		if p.IsOrderly {
			signal = syscall.SIGTERM
		}
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
	}
}

// processesWith finds the processes with a text in their command line.
func processesWith(t *testing.T, text string) (pids []int) {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil && strings.Contains(line, text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestKills kills agent, child and server a hundred times (DMGBENCH_LONG=1).
func TestKills(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("takes minutes: DMGBENCH_LONG=1")
	}
	killMany(t, "inprocess", 100, 50)
}

// TestKillsWithAttachedImages does so fewer times with images that are attached to this machine (DMGBENCH_LONG=1).
func TestKillsWithAttachedImages(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("takes minutes: DMGBENCH_LONG=1")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("attaches images on Linux: needs root and /dev/fuse")
	}
	base := filepath.Dir(t.TempDir()) // of all folders of this test
	t.Setenv("DMGBENCH_RUNTIME_DIR", filepath.Join(t.TempDir(), "attached"))
	wasAttached := false
	killMany(t, "hdiutil", 20, 10, func() { wasAttached = wasAttached || strings.Contains(attached(t), base) })
	assert.True(t, wasAttached, "no image was attached when something was killed")
	assert.NotContains(t, attached(t), base)
	out, err := exec.Command(realProgram(t), "hdiutil", "info").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(out), "image-path")
	assert.Empty(t, processesWith(t, base))
}

// attached lists loop devices and mounts with their files.
func attached(t *testing.T) string {
	t.Helper()
	loops, err := exec.Command("losetup", "-a").Output()
	require.NoError(t, err)
	mounts, err := os.ReadFile("/proc/mounts")
	require.NoError(t, err)
	return string(loops) + string(mounts)
}

// TestKilledAtEveryStage kills the agent in the middle of each.
func TestKilledAtEveryStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	self := process{Link: s.link, Folder: c.Folder, Program: c.Program, Engine: c.Engine, Places: c.Places}
	kill := spawn(t, self)
	t.Cleanup(func() { kill() })
	s.submit(tinyJob("a"))
	stages := map[string]func(*task) bool{
		"accepted": func(*task) bool { return true },
		"started":  func(k *task) bool { return k.runID() != "" },
		"measured": func(k *task) bool { ended, _ := k.progress(); return ended > 1 },
		"ended":    func(k *task) bool { return k.Result.State != "" },
	}
	for _, stage := range []string{"accepted", "started", "measured", "ended"} {
		s.until(stage, func() bool {
			tasks := readTasks(c.Folder)
			return len(tasks) == 1 && stages[stage](tasks[0]) || s.get(fleet.Results("mac"), fleet.ResultSubject("mac", "a", 0)) != nil
		})
		kill()
		kill = spawn(t, self)
	}
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	s.checkRun(r, 2)
	s.awaitGone("a")
	s.empty(c)
}

// killMany calls before each kill what before is.
func killMany(t *testing.T, engine string, kills, jobs int, before ...func()) {
	limits := smallLimits
	limits.Runs = 256 << 20
	s := newSite(t, limits)
	c := s.config(realProgram(t))
	c.Engine = engine
	s.nc.Close()
	s.server.Close() // from now on it is a process
	self := process{Link: s.link, Folder: c.Folder, Program: c.Program, Engine: c.Engine, Places: c.Places}
	killServer, killAgent := spawn(t, process{Serve: s.folder}), spawn(t, self)
	t.Cleanup(func() { killServer(); killAgent() })
	s.reconnect()
	for i := range jobs {
		job := tinyJob("job-" + strconv.Itoa(i))
		job.Text = strings.Replace(tinyPlan, "200 ms", "400 ms", 1)
		s.submit(job)
	}
	count := map[string]int{}
	for count["server"]+count["agent"]+count["child"] < kills {
		<-time.After(200*time.Millisecond + rand.N(2*time.Second))
		for _, look := range before {
			look()
		}
		switch rand.IntN(3) {
		case 0:
			killServer()
			count["server"]++
			killServer = spawn(t, process{Serve: s.folder})
		case 1:
			killAgent()
			count["agent"]++
			killAgent = spawn(t, self)
		default:
			for _, pid := range processesWith(t, filepath.Join(c.Folder, jobsFolder)) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				count["child"]++
			}
		}
	}
	t.Logf("killed: %v", count)
	for i := range jobs {
		id := "job-" + strconv.Itoa(i)
		r := s.await(id, 0)
		assert.Equal(t, fleet.Done, r.State, r.Error)
		s.checkRun(r, 2)
		s.awaitGone(id)
	}
	s.empty(c)
	left, err := filepath.Glob(filepath.Join(c.Folder, "state", "runs", "*"))
	require.NoError(t, err)
	assert.Empty(t, left, "runs in the registry")
	killAgent()
	assert.Empty(t, processesWith(t, c.Folder))
}

// reconnect connects to a server that is a process, and as a user does.
func (s *site) reconnect() *control.Fleet {
	s.t.Helper()
	link, err := broker.ReadControl(s.folder)
	require.NoError(s.t, err)
	s.until("the server", func() bool {
		s.nc, s.js, err = fleet.Connect(link, false, nil)
		return err == nil
	})
	return &control.Fleet{NATS: s.nc, JetStream: s.js}
}
