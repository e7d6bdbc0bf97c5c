package control

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

const smallPlan = `schema = 1
title = "Small"
[run]
baseline = false
rounds = 1
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" }]
`

// openTest starts a server with the machines a, b and c, and connects to it.
func openTest(t *testing.T, queue int64) (*Fleet, map[string]jetstream.JetStream) {
	t.Helper()
	s, err := broker.Serve(t.TempDir(), broker.Options{
		Limits: fleet.Limits{Queue: queue, Results: 16 << 20, Runs: 8 << 20, Replicas: 1}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	nc, js, err := fleet.Connect(s.Control(), false, nil)
	require.NoError(t, err)
	f := &Fleet{nc, js}
	t.Cleanup(f.NATS.Close)
	machines := map[string]jetstream.JetStream{}
	for _, name := range []string{"a", "b", "c"} {
		l, err := s.AddMachine(t.Context(), name)
		require.NoError(t, err)
		nc, js, err := fleet.Connect(l, false, nil)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		machines[name] = js
	}
	return f, machines
}

// send publishes v as a machine does.
func send(t *testing.T, js jetstream.JetStream, subject string, v any) {
	t.Helper()
	data, err := fleet.Encode(v)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), subject, data)
	require.NoError(t, err)
}

func statusOf(name string) fleet.Status {
	return fleet.Status{Machine: name, State: fleet.Idle, Host: result.Host{OS: "darwin", OSVersion: "26.4", Arch: "arm64",
		Model: "Mac16,1", CPU: "Apple M4", Memory: 16 << 30, Disks: []result.Disk{{Free: 100e9}}}}
}

// give records that a machine was given jobs.
func give(t *testing.T, f *Fleet, machine string, jobs ...string) {
	t.Helper()
	for _, id := range jobs {
		require.NoError(t, f.store(t.Context(), fleet.SubmissionSubject(machine, id), fleet.Job{ID: id}))
	}
}

// submit returns the ids of the jobs, in their order, and the other lines.
func submit(t *testing.T, f *Fleet, job fleet.Job, s Selector) (ids, others []string) {
	t.Helper()
	job.Plan, job.Text = "small.toml", smallPlan
	n, err := f.Submit(t.Context(), job, s, func(machine, text string) {
		if id, ok := strings.CutPrefix(text, "job "); ok {
			ids = append(ids, id)
		} else {
			others = append(others, machine+": "+text)
		}
	})
	require.NoError(t, err)
	assert.Len(t, ids, n)
	return ids, others
}

func jobsOf(t *testing.T, f *Fleet) []JobView {
	t.Helper()
	_, jobs, err := f.Jobs(t.Context())
	require.NoError(t, err)
	return jobs
}

func TestSubmitToMachinesThatFit(t *testing.T) {
	f, js := openTest(t, 16<<20)
	send(t, js["a"], fleet.StatusSubject("a"), statusOf("a"))
	old := statusOf("b")
	old.Host.OSVersion, old.State, old.Job = "15.6", fleet.Measuring, "x"
	send(t, js["b"], fleet.StatusSubject("b"), old)

	selector, err := ParseSelector("os>=26")
	require.NoError(t, err)
	jobs, skipped := submit(t, f, fleet.Job{Repeat: 2}, selector)
	require.Len(t, jobs, 2)
	assert.Equal(t, []string{"b: skipped: os is macos, 15.6, want >= 26",
		"c: skipped: it has not sent a status yet"}, skipped)
	assert.Regexp(t, `^\d{8}-\d{4}-[a-z2-7]{4}$`, jobs[0])
	assert.Equal(t, jobs[0]+"-2", jobs[1])

	machines, err := f.Machines(t.Context())
	require.NoError(t, err)
	require.Len(t, machines, 3)
	assert.Equal(t, 2, machines[0].Queued)
	assert.Equal(t, "15.6", machines[1].Host.OSVersion)
	assert.NotZero(t, machines[1].Heard)
	assert.Equal(t, "not joined", machines[2].State)

	views := jobsOf(t, f)
	require.Len(t, views, 2)
	assert.Equal(t, []string{"a", jobs[1], "small", Waiting}, []string{views[1].Machine, views[1].Job, views[1].Plan, views[1].State})

	// What the machine gets is what was submitted.
	c, err := f.JetStream.Consumer(t.Context(), fleet.Jobs, "a")
	require.NoError(t, err)
	m, err := c.Next()
	require.NoError(t, err)
	job, err := fleet.Decode[fleet.Job](m.Data())
	require.NoError(t, err)
	assert.Equal(t, fleet.Job{ID: jobs[0], Plan: "small", Text: smallPlan, Submitted: job.Submitted, Repeat: 2}, job)
}

func TestSetupResizesStores(t *testing.T) {
	f, js := openTest(t, 16<<20)
	storeRun(t, js["a"], "run-1", make([]byte, 1<<20))
	for _, size := range []int64{9 << 20, 7 << 20} {
		require.NoError(t, fleet.Setup(t.Context(), f.JetStream, fleet.Limits{Queue: 16 << 20, Results: 16 << 20, Runs: size, Replicas: 1}))
		for name := range js {
			s, err := f.JetStream.Stream(t.Context(), "OBJ_"+fleet.Bucket(name))
			require.NoError(t, err)
			assert.Equal(t, size, s.CachedInfo().Config.MaxBytes)
		}
	}
	store, err := f.JetStream.ObjectStore(t.Context(), fleet.Bucket("a"))
	require.NoError(t, err)
	data, err := store.GetBytes(t.Context(), "run-1")
	require.NoError(t, err)
	assert.Len(t, data, 1<<20)
}

func TestRejectPlan(t *testing.T) {
	for _, c := range []struct {
		plan    string
		options fleet.Options
		change  func(s *fleet.Status)
		want    string
	}{
		{smallPlan, fleet.Options{}, func(*fleet.Status) {}, ""},
		{smallPlan + "[matrix]\nplace = [\"usb4\"]\n", fleet.Options{},
			func(*fleet.Status) {}, ""}, // the place without a name
		{smallPlan + "[matrix]\nplace = [\"usb4\"]\n", fleet.Options{},
			func(s *fleet.Status) { s.Host.Disks[0].Place = "sd" }, `it has no place "usb4"`},
		{smallPlan + "[matrix]\nplace = [\"usb4\", \"sd\"]\n", fleet.Options{},
			func(*fleet.Status) {}, `it has no place "usb4"`},
		{smallPlan + "[matrix]\nplace = [\"usb4\", \"sd\"]\n", fleet.Options{Only: []string{"place=usb4"}},
			func(*fleet.Status) {}, ""},
		{strings.Replace(smallPlan, "rounds = 1", "rounds = 1\nrequire = { memory = \"32 GB\" }", 1), fleet.Options{},
			func(*fleet.Status) {}, "the plan requires memory of at least 32 GB; usable are 17.2 GB"},
		{strings.Replace(smallPlan, "rounds = 1", "rounds = 1\nrequire = { medium = \"ssd\" }", 1), fleet.Options{},
			func(s *fleet.Status) {
				s.Host.Disks = []result.Disk{{Place: "", Medium: "ssd"}, {Place: "sd", Medium: "hdd"}}
			}, ""},
	} {
		p, err := readPlan(fleet.Job{Plan: "small", Text: c.plan, Options: c.options})
		require.NoError(t, err)
		m := Machine{Status: statusOf("a")}
		c.change(&m.Status)
		if c.want == "" {
			assert.Empty(t, rejectPlan(p, m), c.plan)
		} else {
			assert.Contains(t, rejectPlan(p, m), c.want)
		}
	}
}

func TestSubmitRefusesPlans(t *testing.T) {
	f, _ := openTest(t, 16<<20)
	for _, c := range []struct {
		job  fleet.Job
		want string
	}{
		{fleet.Job{Plan: "my plan.toml", Text: smallPlan}, "rename it"},
		{fleet.Job{Plan: "sub/small.toml", Text: "schema = 1\nbogus = 2\n"}, "sub/small.toml:2:1: "},
		{fleet.Job{Plan: "small", Text: smallPlan, Options: fleet.Options{Scale: "many"}}, "many"},
		{fleet.Job{Plan: "small", Text: smallPlan, Options: fleet.Options{Only: []string{"moon=full"}}}, "moon"},
		{fleet.Job{Plan: "small", Text: smallPlan, Options: fleet.Options{Sets: -1}}, "want 1 to"},
		{fleet.Job{Plan: "small", Text: smallPlan + "[[manual]]\nname = \"cores\"\nvalues = [1, 2]\ninstructions = \"Set it.\"\n"},
			"someone has to set"},
	} {
		_, err := f.Submit(t.Context(), c.job, nil, nil)
		assert.ErrorContains(t, err, c.want)
	}
	assert.Empty(t, jobsOf(t, f))
}

func TestSubmitToAFullQueue(t *testing.T) {
	f, js := openTest(t, 64<<10)
	for name, js := range js {
		send(t, js, fleet.StatusSubject(name), statusOf(name))
	}
	long := smallPlan + strings.Repeat("# a comment that makes the plan long\n", 700)
	var stored []string
	n, err := f.Submit(t.Context(), fleet.Job{Plan: "small", Text: long}, nil, func(machine, _ string) {
		stored = append(stored, machine)
	})
	require.ErrorContains(t, err, "the queue is full")
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"a", "b"}, stored)
	assert.ErrorContains(t, err, `to machine "c"`)
	assert.Len(t, jobsOf(t, f), 2)
}

func TestCancel(t *testing.T) {
	f, js := openTest(t, 16<<20)
	for name, js := range js {
		send(t, js, fleet.StatusSubject(name), statusOf(name))
	}
	jobs, _ := submit(t, f, fleet.Job{}, nil)
	id := jobs[0]
	// a waits, b executes the job, c has ended it and is about to acknowledge.
	working := statusOf("b")
	working.State, working.Job = fleet.Measuring, id
	send(t, js["b"], fleet.StatusSubject("b"), working)
	send(t, js["c"], fleet.ResultSubject("c", id, 0), fleet.Result{Job: id, Machine: "c", Plan: "small", State: fleet.Done})
	views := jobsOf(t, f)
	require.Len(t, views, 3)
	assert.Equal(t, []string{Waiting, fleet.Measuring, fleet.Done}, []string{views[0].State, views[1].State, views[2].State})

	heard, err := f.NATS.SubscribeSync(fleet.CancelSubject("*"))
	require.NoError(t, err)
	n, err := f.Cancel(t.Context(), id, "nobody")
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = f.Cancel(t.Context(), id, "")
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	for _, name := range []string{"a", "b"} {
		m, err := heard.NextMsg(10 * time.Second)
		require.NoError(t, err)
		assert.Equal(t, fleet.CancelSubject(name), m.Subject)
		s, err := f.JetStream.Stream(t.Context(), fleet.Jobs)
		require.NoError(t, err)
		_, err = s.GetLastMsgForSubject(t.Context(), fleet.JobSubject(name, id))
		assert.ErrorIs(t, err, jetstream.ErrMsgNotFound)
	}
	views = jobsOf(t, f) // b's own result comes when it has ended
	require.Len(t, views, 2)
	assert.Equal(t, []string{fleet.Cancelled, fleet.Done}, []string{views[0].State, views[1].State})
	n, err = f.Cancel(t.Context(), id, "")
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestCancelWhileTheMachineEndsTheJob(t *testing.T) {
	f, js := openTest(t, 16<<20)
	give(t, f, "a", "j")
	send(t, js["a"], fleet.ResultSubject("a", "j", 0), fleet.Result{Job: "j", Machine: "a", State: fleet.Done})
	require.NoError(t, f.cancelOne(t.Context(), fleet.Result{Machine: "a", Job: "j", State: Waiting}))
	views := jobsOf(t, f)
	require.Len(t, views, 1)
	assert.Equal(t, fleet.Done, views[0].State)
}

func TestRepeatedJob(t *testing.T) {
	f, js := openTest(t, 16<<20)
	send(t, js["a"], fleet.StatusSubject("a"), statusOf("a"))
	jobs, _ := submit(t, f, fleet.Job{Repeat: 2, Every: time.Hour}, nil)
	require.Len(t, jobs, 1)
	id := jobs[0]
	views := jobsOf(t, f)
	require.Len(t, views, 1)
	stored := views[0].Due
	assert.NotZero(t, stored)

	end := func(occurrence int) {
		send(t, js["a"], fleet.ResultSubject("a", id, occurrence), fleet.Result{Job: id, Machine: "a", Plan: "small",
			Occurrence: occurrence, State: fleet.Done})
	}
	end(0)
	views = jobsOf(t, f)
	require.Len(t, views, 2)
	assert.Equal(t, []any{Waiting, 1, stored.Add(time.Hour)}, []any{views[1].State, views[1].Occurrence, views[1].Due})

	n, err := f.Cancel(t.Context(), id, "a")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	views = jobsOf(t, f)
	require.Len(t, views, 2)
	assert.Equal(t, fleet.Cancelled, views[1].State)
}

func TestOccurrences(t *testing.T) {
	stored := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	data, err := fleet.Encode(fleet.Job{Every: time.Hour, Repeat: 4})
	require.NoError(t, err)
	m := message{Subject: fleet.JobSubject("a", "j"), Time: stored, Data: data}
	for _, c := range []struct {
		after time.Duration
		ended int // occurrence, -1 for none
		want  int // -1: the job is over
	}{{0, -1, 0}, {30 * time.Minute, 0, 1}, {150 * time.Minute, 0, 2}, {150 * time.Minute, 2, 3}, {200 * time.Minute, 3, -1}} {
		v, ok := viewJob(m, map[string]bool{fleet.ResultSubject("a", "j", c.ended): true}, stored.Add(c.after))
		assert.Equal(t, c.want >= 0, ok)
		if ok {
			assert.Equal(t, c.want, v.Occurrence)
			assert.Equal(t, stored.Add(time.Duration(c.want)*time.Hour), v.Due)
		}
	}
}

func TestCancelNumberedJobs(t *testing.T) {
	f, js := openTest(t, 16<<20)
	send(t, js["a"], fleet.StatusSubject("a"), statusOf("a"))
	jobs, _ := submit(t, f, fleet.Job{Repeat: 12}, nil)
	first := jobs[0]
	assert.Equal(t, first+"-12", jobs[11])
	n, err := f.Cancel(t.Context(), jobs[1], "")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	n, err = f.Cancel(t.Context(), first[:8], "") // a day is no job
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = f.Cancel(t.Context(), first, "")
	require.NoError(t, err)
	assert.Equal(t, 11, n)
}

func TestResultsOfOthersAreForged(t *testing.T) {
	f, js := openTest(t, 16<<20)
	give(t, f, "a", "j1", "j2", "j3", "j4", "j5")
	give(t, f, "b", "j", "j6")
	// The server refuses this one; below there are six results without it.
	require.NoError(t, js["a"].Conn().Publish(fleet.ResultSubject("b", "j", 0), []byte("{}")))
	require.NoError(t, js["a"].Conn().Flush())
	send(t, js["a"], fleet.ResultSubject("a", "j1", 0), fleet.Result{Job: "j1", Machine: "b", State: fleet.Done})
	send(t, js["a"], fleet.ResultSubject("a", "j2", 0), fleet.Result{Job: "j2", Machine: "a", State: fleet.Done, Occurrence: 7})
	send(t, js["a"], fleet.ResultSubject("a", "j3", 0), fleet.Result{Job: "j3", Machine: "a", State: "splendid"})
	send(t, js["a"], fleet.ResultSubject("a", "j4", 0), "not a result")
	// Headers that look like the server's.
	data, err := fleet.Encode(fleet.Result{Job: "j5", Machine: "b", State: fleet.Done})
	require.NoError(t, err)
	_, err = js["a"].PublishMsg(t.Context(), &nats.Msg{Subject: fleet.ResultSubject("a", "j5", 0), Data: data, Header: nats.Header{
		"Nats-Subject": {fleet.ResultSubject("b", "j5", 0)}, "Nats-Sequence": {"1"}, "Status": {"204"}, "Nats-Num-Pending": {"0"}}})
	require.NoError(t, err)
	send(t, js["b"], fleet.ResultSubject("b", "j6", 0), fleet.Result{Job: "j6", Machine: "b", State: fleet.Done})

	views := jobsOf(t, f)
	require.Len(t, views, 6)
	for _, v := range views[:5] {
		assert.Equal(t, []string{"a", Forged}, []string{v.Machine, v.State}, v.Job)
		assert.True(t, v.IsEnded)
		assert.Empty(t, v.Run)
		assert.NotEmpty(t, v.Error)
	}
	assert.Equal(t, fleet.Done, views[5].State)

	// A status for another machine is not believed.
	send(t, js["a"], fleet.StatusSubject("a"), statusOf("b"))
	machines, err := f.Machines(t.Context())
	require.NoError(t, err)
	for _, m := range machines {
		assert.Equal(t, "not joined", m.State)
	}
}

// Results of jobs that a machine was not given do not count, however many they are.
func TestResultsOfUnknownJobs(t *testing.T) {
	f, js := openTest(t, 16<<20)
	jobs := fleet.Job{ID: "hourly", Plan: "small", Every: time.Hour}
	require.NoError(t, f.submit(t.Context(), "a", jobs))
	give(t, f, "b", "theirs")
	store := func(job string, occurrence int) {
		send(t, js["a"], fleet.ResultSubject("a", job, occurrence), fleet.Result{Job: job, Machine: "a", Occurrence: occurrence,
			Plan: "small", Run: "r", State: fleet.Done})
	}
	store("hourly", 0)
	for _, job := range []string{"never", "theirs"} {
		store(job, 0)
	}
	store("hourly", 9) // due in nine hours
	machines, views, err := f.Jobs(t.Context())
	require.NoError(t, err)
	require.Len(t, views, 2)
	assert.Equal(t, []any{"hourly", 0, true}, []any{views[0].Job, views[0].Occurrence, views[0].IsEnded})
	assert.Equal(t, []any{"hourly", 1, false}, []any{views[1].Job, views[1].Occurrence, views[1].IsEnded})
	assert.Equal(t, []int{3, 0}, []int{machines[0].Unknown, machines[1].Unknown})
	assert.Positive(t, machines[0].Stored)
	assert.Zero(t, machines[1].Stored)

	require.NoError(t, fleet.PurgeMachine(t.Context(), f.JetStream, "a"))
	machines, views, err = f.Jobs(t.Context())
	require.NoError(t, err)
	require.Len(t, views, 1, "the job stays")
	assert.Zero(t, machines[0].Unknown)
	assert.Zero(t, machines[0].Stored)
}

// What the server knows of a machine is shown, not what the machine reported before.
func TestRevokedMachine(t *testing.T) {
	f, js := openTest(t, 16<<20)
	send(t, js["a"], fleet.StatusSubject("a"), statusOf("a"))
	_, err := fleet.Request(t.Context(), f.NATS, fleet.Revoke, "a")
	require.NoError(t, err)
	machines, err := f.Machines(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{fleet.Revoked, "not joined"}, []string{machines[0].State, machines[1].State})
	report, err := fleet.RequestReport(t.Context(), f.NATS)
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"CONTROL": false, "b": true, "c": true}, report.Keys)

	m := Machine{Status: statusOf("b")}
	m.addReport(fleet.Report{Keys: report.Keys, Refused: map[string]fleet.Refusal{"b": {Address: "10.0.0.7", Time: time.Now()}}})
	assert.Equal(t, "another agent with its key was refused, at 10.0.0.7", m.Error)
	m = Machine{Status: statusOf("b")}
	m.addReport(fleet.Report{Keys: report.Keys, Refused: map[string]fleet.Refusal{"b": {Time: time.Now().Add(-time.Hour)}}})
	assert.Empty(t, m.Error, "that was long ago")
	m.addReport(fleet.Report{Keys: report.Keys, Error: "nothing is stored: no space"})
	assert.Equal(t, "nothing is stored: no space", m.Error)
}

func TestReadMoreThanAPage(t *testing.T) {
	f, _ := openTest(t, 16<<20)
	for i := range 2*batchMessages + 1 {
		_, err := f.JetStream.PublishAsync(fleet.SubmissionSubject("a", fmt.Sprintf("j%04d", i)), []byte("{}"))
		require.NoError(t, err)
		_, err = f.JetStream.PublishAsync(fleet.ResultSubject("a", fmt.Sprintf("j%04d", i), 0), []byte("{}"))
		require.NoError(t, err)
	}
	<-f.JetStream.PublishAsyncComplete()
	assert.Len(t, jobsOf(t, f), 2*batchMessages+1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := f.Jobs(ctx)
	assert.Error(t, err)
}

func TestLogs(t *testing.T) {
	f, js := openTest(t, 16<<20)
	for subject, text := range map[string]string{fleet.LogSubject("a", "j1"): "one\ntwo\n", fleet.LogSubject("a", "j2"): "three"} {
		_, err := js["a"].Publish(t.Context(), subject, []byte(text))
		require.NoError(t, err)
	}
	var lines []string
	collect := func(line string) { lines = append(lines, line) }
	require.NoError(t, f.Logs(t.Context(), "a", "j1", false, collect))
	assert.Equal(t, []string{"one", "two"}, lines)
	require.NoError(t, f.Logs(t.Context(), "b", "", false, collect))
	assert.Len(t, lines, 2)
	require.NoError(t, f.Logs(t.Context(), "a", "", false, collect))
	assert.Len(t, lines, 5)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines = nil
	require.ErrorIs(t, f.Logs(ctx, "a", "j1", true, func(line string) {
		switch lines = append(lines, line); line {
		case "two":
			_, err := js["a"].Publish(t.Context(), fleet.LogSubject("a", "j1"), []byte("later\n"))
			assert.NoError(t, err)
		case "later":
			cancel()
		}
	}), context.Canceled)
	assert.Equal(t, []string{"one", "two", "later"}, lines)
}

// makeRun makes the run folder of a plan with one case, which wrote a file.
func makeRun(t *testing.T, id, name, machine string, ended bool) string {
	t.Helper()
	p, problems := plan.Parse(name+".toml", []byte(smallPlan))
	require.Empty(t, problems.Errors(), "%v", problems)
	dir := filepath.Join(t.TempDir(), id)
	d, err := result.CreateRun(dir, id)
	require.NoError(t, err)
	defer d.Close()
	one := p.Cases()[0].ID
	records := []result.Record{
		{Run: &result.RunStart{ID: id, Plan: result.PlanRef{Name: p.Name, Title: p.Title, Digest: p.Digest()}, Rounds: 1,
			Cases: []result.PlanCase{{ID: one, Target: result.Target{Kind: "image", Format: "UDSB"}}}}},
		{Session: &result.Session{Index: 1, Started: someDay, Host: result.Host{Name: machine}, Engine: result.Engine{Title: "in-process"}}},
		{Round: &result.RoundStart{Round: 1, Order: []string{one}}},
		{CaseStart: &result.CaseStart{Case: one, Round: 1}},
		{StepStart: &result.StepStart{Case: one, Round: 1, Index: 2, Do: "write", Phase: "new"}},
		{Step: &result.StepEnd{Case: one, Round: 1, Step: result.Step{Index: 2, Do: "write", Phase: "new", Round: 1, Session: 1,
			DurationNS: 1e6, Expect: "ok", Samples: []result.Sample{{File: "f0001", Bytes: 1e6, DurationNS: 1e6}},
			Span: &result.Span{FirstDoneNS: 1e6, LastDoneNS: 1e6, Bytes: 1e6, BusyNS: 1e6, Waves: 1}}}},
		{CaseEnd: &result.CaseEnd{Case: one, Round: 1, Status: result.Done}},
		{SessionEnd: &result.SessionEnd{Session: 1, End: result.Clean}},
		{RunEnd: &result.RunEnd{Status: result.Done}},
	}
	if !ended {
		records = records[:len(records)-1]
	}
	for _, rec := range records {
		rec.At = someDay
		require.NoError(t, d.Append(rec))
	}
	require.NoError(t, d.WriteFile(result.PlanFile, []byte(smallPlan)))
	return dir
}

var someDay = time.Date(2026, 3, 23, 1, 2, 3, 0, time.UTC)

// storeRun stores an archive as machine a does, and returns the result that
// belongs to it.
func storeRun(t *testing.T, js jetstream.JetStream, run string, archive []byte) fleet.Result {
	t.Helper()
	store, err := js.ObjectStore(t.Context(), fleet.Bucket("a"))
	require.NoError(t, err)
	_, err = store.PutBytes(t.Context(), run, archive)
	require.NoError(t, err)
	return fleet.Result{Machine: "a", Job: "j", Plan: "small", Run: run, State: fleet.Done, Size: int64(len(archive))}
}

func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, fleet.Pack(&b, dir))
	return b.Bytes()
}

func TestFetch(t *testing.T) {
	f, js := openTest(t, 16<<20)
	source := makeRun(t, "run-1", "small", "a", true)
	require.NoError(t, os.WriteFile(filepath.Join(source, result.ReportFile), []byte("<script>evil()</script>"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(source, result.ResultFile), []byte(`{"run":"other"}`), 0o644))
	r := storeRun(t, js["a"], "run-1", pack(t, source))
	dir := filepath.Join(t.TempDir(), "runs")
	// What an attempt that was killed left.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".part-small-a-run-1"), 0o755))

	path, isNew, err := f.Fetch(t.Context(), r, dir)
	require.NoError(t, err)
	assert.True(t, isNew)
	assert.Equal(t, filepath.Join(dir, "small-a-run-1"), path)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, list, 1)
	summary, err := result.ReadSummary(path)
	require.NoError(t, err)
	assert.Equal(t, "run-1", summary.Run)
	page, err := os.ReadFile(filepath.Join(path, result.ReportFile))
	require.NoError(t, err)
	assert.NotContains(t, string(page), "evil()")
	_, run, err := runfolders.Analyze(path)
	require.NoError(t, err)
	assert.Equal(t, result.Done, run.Status)

	// A second time it is not fetched: the store could be empty by now.
	store, err := f.JetStream.ObjectStore(t.Context(), fleet.Bucket("a"))
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), "run-1"))
	again, isNew, err := f.Fetch(t.Context(), r, dir)
	require.NoError(t, err)
	assert.False(t, isNew)
	assert.Equal(t, path, again)
}

func TestFetchRefusesWhatIsNotTheRun(t *testing.T) {
	f, js := openTest(t, 16<<20)
	good := pack(t, makeRun(t, "run-1", "small", "a", true))
	dir := t.TempDir()
	// forgeDigest changes the description of an object, which the machine may write.
	forgeDigest := func(name string) {
		store, err := js["a"].ObjectStore(t.Context(), fleet.Bucket("a"))
		require.NoError(t, err)
		info, err := store.GetInfo(t.Context(), name)
		require.NoError(t, err)
		info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(make([]byte, 32))
		data, err := fleet.Encode(info)
		require.NoError(t, err)
		subject := "$O.fleet-a.M." + base64.URLEncoding.EncodeToString([]byte(name))
		_, err = js["a"].PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"Nats-Rollup": {"sub"}}})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		name string
		make func() fleet.Result
		want string
	}{
		{"another run", func() fleet.Result { return storeRun(t, js["a"], "run-2", good) }, `has run "run-1"`},
		{"another plan", func() fleet.Result {
			return storeRun(t, js["a"], "run-3", pack(t, makeRun(t, "run-3", "other", "a", true)))
		}, `of plan "other"`},
		{"another machine", func() fleet.Result {
			return storeRun(t, js["a"], "run-5", pack(t, makeRun(t, "run-5", "small", "b", true)))
		}, "of another machine"},
		{"not ended", func() fleet.Result {
			return storeRun(t, js["a"], "run-4", pack(t, makeRun(t, "run-4", "small", "a", false)))
		}, "has not ended"},
		{"damaged archive", func() fleet.Result {
			bad := bytes.Clone(good)
			bad[len(bad)/2] ^= 1
			return storeRun(t, js["a"], "run-1", bad)
		}, ""},
		{"torn archive", func() fleet.Result { return storeRun(t, js["a"], "run-1", good[:len(good)/2]) }, ""},
		{"wrong digest", func() fleet.Result {
			r := storeRun(t, js["a"], "run-1", good)
			forgeDigest("run-1")
			return r
		}, "digest"},
		{"larger than the result", func() fleet.Result {
			r := storeRun(t, js["a"], "run-1", append(bytes.Clone(good), make([]byte, 1000)...))
			r.Size = int64(len(good))
			return r
		}, "bytes"},
		{"smaller than the result", func() fleet.Result {
			r := storeRun(t, js["a"], "run-1", good)
			r.Size++
			return r
		}, "bytes"},
		{"too large", func() fleet.Result {
			r := storeRun(t, js["a"], "run-1", good)
			r.Size = fleet.MaxArchive + 1
			return r
		}, "bytes"},
		{"no size", func() fleet.Result { return storeRun(t, js["a"], "run-1", nil) }, "bytes"},
		{"no run", func() fleet.Result { return fleet.Result{Machine: "a", Plan: "p", State: fleet.Refused} }, "name"},
		{"a path as run", func() fleet.Result { return fleet.Result{Machine: "a", Plan: "p", Run: "../r", Size: 1} }, "name"},
		{"a path as plan", func() fleet.Result { return fleet.Result{Machine: "a", Plan: "../../p", Run: "r", Size: 1} }, "name"},
		{"missing", func() fleet.Result { return fleet.Result{Machine: "a", Plan: "p", Run: "r", Size: 1} }, "not found"},
		{"link", func() fleet.Result {
			store, err := f.JetStream.ObjectStore(t.Context(), fleet.Bucket("a"))
			require.NoError(t, err)
			_, err = store.PutBytes(t.Context(), "target", good)
			require.NoError(t, err)
			info, err := store.GetInfo(t.Context(), "target")
			require.NoError(t, err)
			_, err = store.AddLink(t.Context(), "run-9", info)
			require.NoError(t, err)
			return fleet.Result{Machine: "a", Plan: "small", Run: "run-9", Size: int64(len(good))}
		}, "link"},
	} {
		_, _, err := f.Fetch(t.Context(), c.make(), dir)
		if assert.Error(t, err, c.name) {
			assert.ErrorContains(t, err, c.want, c.name)
			assert.ErrorContains(t, err, "fetching run", c.name)
		}
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, file := range list {
			assert.Contains(t, file.Name(), ".refused-", c.name)
			require.NoError(t, os.Remove(filepath.Join(dir, file.Name())))
		}
	}
}

// An archive that was refused is fetched again only when that is asked for; one that could not be fetched is.
func TestFetchRemembersRefusals(t *testing.T) {
	f, js := openTest(t, 16<<20)
	dir := t.TempDir()
	r := storeRun(t, js["a"], "run-1", pack(t, makeRun(t, "run-2", "small", "a", true)))
	_, _, err := f.Fetch(t.Context(), r, dir)
	require.ErrorContains(t, err, "the result is forged")
	good := storeRun(t, js["a"], "run-1", pack(t, makeRun(t, "run-1", "small", "a", true)))
	_, _, err = f.Fetch(t.Context(), good, dir)
	require.ErrorContains(t, err, "the result is forged")
	refused := filepath.Join(dir, ".refused-small-a-run-1")
	require.ErrorContains(t, err, fmt.Sprintf("(delete %q to fetch it again)", refused))
	require.NoError(t, os.Remove(refused))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = f.Fetch(ended, good, dir)
	require.Error(t, err)
	_, isNew, err := f.Fetch(t.Context(), good, dir)
	require.NoError(t, err)
	assert.True(t, isNew)
}
