package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/host"
)

// tinyPlan is a plan of about a second; its pauses give tests the time to interfere.
const tinyPlan = `schema = 1
title = "Tiny"
[image]
format = "UDSB"
size = "32 MiB"
filesystem_preference = ["exFAT"]
[files.few]
sizes = ["100 kB"]
[io]
files = "few"
[run]
rounds = 2
canary = false
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "settle", at_least = "200 ms" }, { do = "detach" }]
`

var binaries string // folder for what the tests build

func TestMain(m *testing.M) {
	if behaviour := os.Getenv("FLEET_AGENT_FAKE"); behaviour != "" {
		os.Exit(pretend(behaviour, os.Args[1:]))
	}
	if text := os.Getenv("FLEET_AGENT_PROCESS"); text != "" {
		runProcess(text)
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests wait more than they compute
	var err error
	if binaries, err = os.MkdirTemp("", "fleet-agent-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

var dmgbench = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "dmgbench")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "dmgbench/cmd/dmgbench").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func realProgram(t *testing.T) string {
	t.Helper()
	path, err := dmgbench()
	require.NoError(t, err)
	return path
}

// fake is a program that behaves as the named one of pretend.
func fake(t *testing.T, behaviour string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dmgbench")
	script := fmt.Sprintf("#!/bin/sh\nFLEET_AGENT_FAKE='%s' exec '%s' \"$@\"\n", behaviour, self)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

// site is a server with one machine.
type site struct {
	t      *testing.T
	folder string // of the server
	server *broker.Server
	link   fleet.Link
	nc     *nats.Conn
	js     jetstream.JetStream
	limits fleet.Limits
}

func newSite(t *testing.T, limits fleet.Limits) *site {
	t.Helper()
	s := &site{t: t, folder: t.TempDir(), limits: limits}
	s.serve()
	t.Cleanup(func() { s.nc.Close(); s.server.Close() })
	var err error
	s.link, err = s.server.AddMachine(t.Context(), "mac")
	require.NoError(t, err)
	s.shortenAckWait()
	return s
}

var smallLimits = fleet.Limits{Queue: 16 << 20, Results: 16 << 20, Runs: 16 << 20, Replicas: 1}

func (s *site) serve() {
	s.t.Helper()
	var err error
	s.server, err = broker.Serve(s.folder, broker.Options{Limits: s.limits})
	require.NoError(s.t, err)
	s.nc, s.js, err = fleet.Connect(s.server.Control(), false, nil)
	require.NoError(s.t, err)
}

// shortAckWait is after how long the job of a killed agent is delivered again.
const shortAckWait = time.Second

// shortenAckWait gives it to the machine.
func (s *site) shortenAckWait() {
	c, err := s.js.Consumer(s.t.Context(), fleet.Jobs, "mac")
	require.NoError(s.t, err)
	config := c.CachedInfo().Config
	config.AckWait = shortAckWait
	_, err = s.js.UpdateConsumer(s.t.Context(), fleet.Jobs, config)
	require.NoError(s.t, err)
}

// config is an agent with a place.
func (s *site) config(program string) Config {
	place := s.t.TempDir()
	return Config{Link: s.link, Folder: s.t.TempDir(), Program: program, Places: map[string]string{"": place},
		Engine: "inprocess", Log: s.t.Logf}
}

// start starts an agent, and stops it and waits for its end when stop is called.
func (s *site) start(c Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(s.t, <-done)
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *site) submit(job fleet.Job) {
	s.t.Helper()
	data, err := json.Marshal(job)
	require.NoError(s.t, err)
	_, err = s.js.Publish(s.t.Context(), fleet.SubmissionSubject("mac", job.ID), data)
	require.NoError(s.t, err)
	s.submitRaw(job.ID, data)
}

func (s *site) submitRaw(id string, data []byte) {
	s.t.Helper()
	_, err := s.js.Publish(s.t.Context(), fleet.JobSubject("mac", id), data)
	require.NoError(s.t, err)
}

func (s *site) get(stream, subject string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	st, err := s.js.Stream(ctx, stream)
	if err != nil {
		return nil
	}
	m, err := st.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return nil
	}
	return m.Data
}

func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	require.Eventually(s.t, is, 2*time.Minute, 20*time.Millisecond, what)
}

// await waits for the result of an occurrence, and until its job is acknowledged.
func (s *site) await(job string, occurrence int) (r fleet.Result) {
	s.t.Helper()
	s.until("a result of "+job, func() bool {
		data := s.get(fleet.Results("mac"), fleet.ResultSubject("mac", job, occurrence))
		return data != nil && json.Unmarshal(data, &r) == nil
	})
	return r
}

func (s *site) awaitGone(job string) {
	s.t.Helper()
	s.until("that job "+job+" is acknowledged", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		st, err := s.js.Stream(ctx, fleet.Jobs)
		if err == nil {
			_, err = st.GetLastMsgForSubject(ctx, fleet.JobSubject("mac", job))
		}
		return err == jetstream.ErrMsgNotFound
	})
}

func (s *site) status() (st fleet.Status) {
	_ = json.Unmarshal(s.get(fleet.Statuses, fleet.StatusSubject("mac")), &st)
	return st
}

// checkRun fetches the run of a result and checks that it is complete and that no step was measured twice.
func (s *site) checkRun(r fleet.Result, cases int) {
	s.t.Helper()
	store, err := s.js.ObjectStore(s.t.Context(), fleet.Bucket("mac"))
	require.NoError(s.t, err)
	data, err := store.GetBytes(s.t.Context(), r.Run)
	require.NoError(s.t, err)
	assert.Len(s.t, data, int(r.Size))
	dir := filepath.Join(s.t.TempDir(), "run")
	require.NoError(s.t, fleet.Unpack(bytes.NewReader(data), dir))
	_, run, err := runfolders.Analyze(dir)
	require.NoError(s.t, err)
	assert.Equal(s.t, r.Run, run.Run)
	assert.Equal(s.t, result.Done, run.Outcome())
	assert.Len(s.t, run.Cases, cases)
	for _, c := range run.Cases {
		seen := map[string]bool{}
		for _, step := range c.Steps {
			key := fmt.Sprint(step.Round, step.Index, step.Cycle)
			assert.False(s.t, seen[key], "%s: step %s is there twice", c.ID, key)
			seen[key] = true
		}
		assert.Equal(s.t, 2, len(c.Rounds), "%s: rounds", c.ID)
	}
}

// empty checks that the agent left no file of a job and that its places are as before.
func (s *site) empty(c Config) {
	s.t.Helper()
	s.until("that the folder of jobs is empty", func() bool {
		list, err := os.ReadDir(filepath.Join(c.Folder, jobsFolder))
		return os.IsNotExist(err) || err == nil && len(list) == 0
	})
	for _, dir := range c.Places {
		list, err := os.ReadDir(dir)
		require.NoError(s.t, err)
		assert.Empty(s.t, list)
	}
}

func tinyJob(id string) fleet.Job {
	return fleet.Job{ID: id, Plan: "tiny", Text: tinyPlan, Submitted: time.Now()}
}

func TestDone(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	c.Tags = []string{"lab"}
	stop := s.start(c)
	s.until("an idle machine", func() bool { return s.status().State == fleet.Idle })
	st := s.status()
	assert.Equal(t, []string{"lab"}, st.Tags)
	require.Len(t, st.Host.Disks, 1)
	assert.Positive(t, st.Host.Disks[0].Free)
	assert.Positive(t, st.Host.CPUs)
	s.submit(tinyJob("a"))
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, "tiny", r.Plan)
	assert.Zero(t, r.Exit)
	s.awaitGone("a")
	s.checkRun(r, 2)
	s.until("an idle machine", func() bool { return s.status().State == fleet.Idle })
	stop()
	assert.Equal(t, fleet.Stopped, s.status().State)
	s.empty(c)
}

// The same job with a result is acknowledged and not measured.
func TestResultExists(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	_, err := s.js.Publish(t.Context(), fleet.ResultSubject("mac", "a", 0), []byte(`{"state":"done"}`))
	require.NoError(t, err)
	c := s.config(fake(t, "never"))
	s.start(c)
	s.submit(tinyJob("a"))
	s.awaitGone("a")
	s.empty(c)
}

// What a stopped agent left is continued by the next one, and its cases are not measured again.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	s.submit(tinyJob("a"))
	for i := range 3 {
		stop := s.start(c)
		s.until("a run", func() bool {
			tasks := readTasks(c.Folder)
			return len(tasks) == 1 && tasks[0].Result.Attempts == i+1 && s.status().Progress != nil
		})
		stop()
	}
	s.start(c)
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	assert.Equal(t, 4, r.Attempts)
	s.checkRun(r, 2)
	s.empty(c)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	s.start(c)
	job := tinyJob("a")
	job.Text = strings.Replace(tinyPlan, "200 ms", "60 s", 1)
	s.submit(job)
	s.until("a run", func() bool { return s.status().Progress != nil })
	s.cancel("a")
	r := s.await("a", 0)
	assert.Equal(t, fleet.Cancelled, r.State)
	assert.NotEmpty(t, r.Run, "what there is of the run is stored")
	s.empty(c)
	s.submit(tinyJob("b"))
	assert.Equal(t, fleet.Done, s.await("b", 0).State)
}

func (s *site) cancel(job string) {
	s.t.Helper()
	st, err := s.js.Stream(s.t.Context(), fleet.Jobs)
	require.NoError(s.t, err)
	require.NoError(s.t, st.Purge(s.t.Context(), jetstream.WithPurgeSubject(fleet.JobSubject("mac", job))))
	require.NoError(s.t, s.nc.Publish(fleet.CancelSubject("mac"), nil))
}

// A job that was cancelled while its agent was away ends when that is back.
func TestCancelledWhileAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	s.submit(tinyJob("a"))
	stop := s.start(c)
	s.until("a run", func() bool { return s.status().Progress != nil })
	stop()
	s.cancel("a")
	s.start(c)
	assert.Equal(t, fleet.Cancelled, s.await("a", 0).State)
	s.empty(c)
}

const storeFull = "the store of mac on the server is full (fetch results, then purge mac; or raise serve --runs)"

func TestStoreFull(t *testing.T) {
	t.Parallel()
	limits := smallLimits
	limits.Runs = 4 << 10
	s := newSite(t, limits)
	store, err := s.js.ObjectStore(t.Context(), fleet.Bucket("mac"))
	require.NoError(t, err)
	_, err = store.PutBytes(t.Context(), "ballast", make([]byte, 3<<10))
	require.NoError(t, err)
	c := s.config(realProgram(t))
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("the error in the status", func() bool {
		st := s.status()
		return st.State == fleet.Storing && st.Error == storeFull
	})
	assert.Nil(t, s.get(fleet.Results("mac"), fleet.ResultSubject("mac", "a", 0)))
	require.NoError(t, store.Delete(t.Context(), "ballast"))
	limits.Runs = 16 << 20
	require.NoError(t, fleet.AddMachine(t.Context(), s.js, "mac", limits))
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	assert.Equal(t, 1, r.Attempts, "it is not measured again")
	s.checkRun(r, 2)
	s.empty(c)
}

// The stream of results is full: the result waits at the machine until there is room.
func TestResultsFull(t *testing.T) {
	t.Parallel()
	limits := smallLimits
	limits.Results = 8 << 10
	s := newSite(t, limits)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = s.js.Publish(t.Context(), fleet.ResultSubject("mac", "old", i), make([]byte, 256))
	}
	require.ErrorContains(t, err, "maximum bytes exceeded")
	c := s.config(fake(t, "done"))
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("the error in the status", func() bool { return s.status().Error == storeFull })
	assert.Len(t, readTasks(c.Folder), 1, "it is not lost")
	require.NoError(t, fleet.Setup(t.Context(), s.js, smallLimits))
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	assert.Equal(t, 1, r.Attempts, "it is not measured again")
	s.awaitGone("a")
	s.empty(c)
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("a run", func() bool { return s.status().Progress != nil })
	s.nc.Close()
	s.server.Close()
	s.until("the end of the run", func() bool {
		tasks := readTasks(c.Folder)
		return len(tasks) == 1 && tasks[0].Result.State == fleet.Done
	})
	s.serve()
	r := s.await("a", 0)
	assert.Equal(t, 1, r.Attempts)
	s.checkRun(r, 2)
	s.awaitGone("a")
	s.empty(c)
}

// A server that ends in the middle of a run, killed or in order, has all of it when it is started again on its folder.
func TestServerRestarted(t *testing.T) {
	for name, isOrderly := range map[string]bool{"killed": false, "in order": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smallLimits)
			s.nc.Close()
			s.server.Close() // from now on it is a process
			server := process{Serve: s.folder, IsOrderly: isOrderly}
			kill := spawn(t, server)
			t.Cleanup(func() { kill() })
			c := s.config(realProgram(t))
			s.start(c)
			fleetBefore := s.reconnect()
			s.submit(tinyJob("ended"))
			ended := s.await("ended", 0)
			for _, id := range []string{"running", "waiting"} {
				s.submit(tinyJob(id))
			}
			s.until("a run", func() bool { return s.status().Job == "running" && s.status().Progress != nil })
			<-time.After(200 * time.Millisecond) // a server that is killed forgets the deliveries of the last 100 ms
			logs := logsOf(t, fleetBefore, "ended")
			kill()
			s.nc.Close()
			kill = spawn(t, server)

			f := s.reconnect()
			machines, jobs, err := f.Jobs(t.Context())
			require.NoError(t, err)
			require.Len(t, machines, 1)
			assert.Equal(t, "running", machines[0].Job, "what the machine reported")
			assert.Len(t, jobs, 3)
			assert.NotEmpty(t, logs)
			assert.Equal(t, logs, logsOf(t, f, "ended"))
			_, _, err = f.Fetch(t.Context(), ended, t.TempDir())
			require.NoError(t, err)
			for _, id := range []string{"ended", "running", "waiting"} {
				r := s.await(id, 0)
				assert.Equal(t, fleet.Done, r.State, r.Error)
				assert.Equal(t, 1, r.Attempts)
				s.checkRun(r, 2)
				s.awaitGone(id)
			}
			s.empty(c)
		})
	}
}

// A server that was killed may have forgotten that it delivered a job. It ignores its acknowledgement, and delivers it again.
func TestForgottenDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(realProgram(t))
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("a run", func() bool { return s.status().Progress != nil })
	require.NoError(t, s.js.DeleteConsumer(t.Context(), fleet.Jobs, "mac"))
	s.until("a new consumer", func() bool { // not while the files of the old one are deleted
		return fleet.AddMachine(t.Context(), s.js, "mac", s.limits) == nil
	})
	r := s.await("a", 0)
	assert.Equal(t, 1, r.Attempts)
	s.checkRun(r, 2)
	s.awaitGone("a")
	s.empty(c)
}

func logsOf(t *testing.T, f *control.Fleet, job string) (lines []string) {
	t.Helper()
	require.NoError(t, f.Logs(t.Context(), "mac", job, false, func(line string) { lines = append(lines, line) }))
	return lines
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(fake(t, "done"))
	s.start(c)
	job := tinyJob("a")
	job.Every, job.Repeat = 4*time.Second, 3
	s.submit(job)
	// On a slow machine the second one may be missed, and is left out.
	for _, i := range []int{0, 2} {
		r := s.await("a", i)
		assert.Equal(t, fleet.Done, r.State, r.Error)
	}
	s.awaitGone("a")
	s.empty(c)
	assert.Nil(t, s.get(fleet.Results("mac"), fleet.ResultSubject("mac", "a", 3)))
}

// A second agent with the same key takes no job, and takes part when the first has ended.
func TestSecondAgentWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	first := s.config(fake(t, "done"))
	stop := s.start(first)
	s.until("an idle machine", func() bool { return s.status().State == fleet.Idle })
	lines := make(chan string, 99)
	second := s.config(fake(t, "3"))
	second.Log = func(format string, args ...any) { lines <- fmt.Sprintf(format, args...) }
	s.start(second)
	s.until("the refusal", func() bool { return strings.Contains(<-lines, "another agent uses it") })
	s.submit(tinyJob("a"))
	assert.Equal(t, fleet.Done, s.await("a", 0).State, "of the first agent")
	stop()
	s.until("that the second has joined", func() bool { return <-lines == `joined the fleet as machine "mac"` })
	s.submit(tinyJob("b"))
	assert.Equal(t, fleet.Incomplete, s.await("b", 0).State, "of the second agent")
}

// One run at a time measures on a computer, whoever started it.
func TestWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(fake(t, "done"))
	c.Measuring = t.TempDir()
	release, err := host.Lock(c.Measuring)
	require.NoError(t, err)
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("the reason", func() bool { return s.status().Error == "waits: another measuring run on this computer" })
	assert.Empty(t, readTasks(c.Folder)[0].Result.Attempts)
	s.submit(tinyJob("b"))
	s.cancel("a")
	assert.Equal(t, fleet.Cancelled, s.await("a", 0).State)
	release()
	assert.Equal(t, fleet.Done, s.await("b", 0).State)
	assert.NotContains(t, s.status().Error, "waits")
}

func TestOneAgentAFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(fake(t, "done"))
	s.start(c)
	s.until("an idle machine", func() bool { return s.status().State == fleet.Idle })
	assert.ErrorContains(t, Run(t.Context(), c), "only one may use")
}
