package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	requestTime = 10 * time.Second // for the answer to one request
	uploadTime  = 10 * time.Second // for a run folder, doubled with each attempt
	maxAttempts = 20               // to execute something that a signal ends, or that does not come further
	graceTime   = 30 * time.Second // for a child to detach its images after an interrupt
)

// agent is a machine's connection to the fleet and its dmgbench. Its requests are
// bounded in time, and fail while the connection is lost.
type agent struct {
	Config
	nc     *nats.Conn
	js     jetstream.JetStream
	status fleet.Status
	lines  []string // of the child, not sent yet
}

// errStoreFull names the machine whose store it is.
func (a *agent) errStoreFull() error {
	return fmt.Errorf("the store of %[1]s on the server is full (fetch results, then purge %[1]s; or raise serve --runs)",
		a.Link.User)
}

// checkAnswer is called with the error of a request. Without an answer it makes
// the connection anew, as a machine that slept may have one that exists only on
// its side.
func (a *agent) checkAnswer(err error) error {
	isTimeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if isTimeout || errors.Is(err, jetstream.ErrNoHeartbeat) {
		_ = a.nc.ForceReconnect()
	}
	e, ok := errors.AsType[*jetstream.APIError](err)
	if ok && (e.Description == "maximum bytes exceeded" || e.Description == "maximum messages exceeded") {
		return a.errStoreFull()
	}
	return err
}

// isStored reports whether a stream has a message with this subject. A machine is not
// permitted to ask for facts of the stream, as the newer interface of the client
// library does first.
func (a *agent) isStored(ctx context.Context, stream, subject string) (bool, error) {
	js, _ := a.nc.JetStream(nats.MaxWait(requestTime)) // fails with bad options only
	_, err := js.GetLastMsg(stream, subject, nats.DirectGet(), nats.Context(ctx))
	if err != nil && !errors.Is(err, nats.ErrMsgNotFound) {
		return false, fmt.Errorf("reading %s: %w", subject, err)
	}
	return err == nil, nil
}

// isQueued reports whether a job is in the queue. It asks again before it denies
// that: a server of a cluster may have a message later than the others, and a job
// that is missing is cancelled.
func (a *agent) isQueued(ctx context.Context, job string) (queued bool, err error) {
	for range 2 {
		queued, err = a.isStored(ctx, fleet.Jobs, fleet.JobSubject(a.Link.User, job))
		if queued || err != nil {
			break
		}
		sleep(ctx, 0)
	}
	return queued, err
}

// hasResult reports whether the result of an occurrence is stored.
func (a *agent) hasResult(ctx context.Context, r fleet.Result) (bool, error) {
	return a.isStored(ctx, fleet.Results(a.Link.User), fleet.ResultSubject(a.Link.User, r.Job, r.Occurrence))
}

// serverTime is the time of the server's clock, which decides when an occurrence is
// due: the clock of this machine may be wrong, and may jump.
func (a *agent) serverTime(ctx context.Context) (time.Time, error) {
	consumer, err := a.js.Consumer(ctx, fleet.Jobs, a.Link.User)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the clock of the server: %w", err)
	}
	return consumer.CachedInfo().TimeStamp, nil
}

// report changes the status of the machine and sends it, unless the connection is
// lost, and sends what the child printed as one log message: the client library
// keeps that until the connection is back. It does not wait. Only the goroutine that
// executes a job calls it, or the one that reads the output of its child meanwhile.
func (a *agent) report(change func(*fleet.Status)) {
	change(&a.status)
	a.status.Time = time.Now().UTC()
	if data, err := fleet.Encode(a.status); err == nil && a.nc.IsConnected() {
		_ = a.nc.Publish(fleet.StatusSubject(a.Link.User), data)
	}
	if len(a.lines) > 0 {
		_ = a.nc.Publish(fleet.LogSubject(a.Link.User, a.status.Job), []byte(strings.Join(a.lines, "\n")))
		a.lines = nil
	}
}

// upload stores a run folder in the machine's object store and returns its size
// there, in bytes. It replaces what an earlier attempt stored, since an object that
// exists may lack chunks for which the store had no space. The archive, which may
// be as large as the memory, is a file meanwhile.
func (a *agent) upload(ctx context.Context, id, dir string, attempt int) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime<<min(attempt, 9))
	defer cancel()
	archive, err := os.Create(dir + ".archive")
	if err != nil {
		return 0, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err = fleet.Pack(archive, dir); err != nil {
		return 0, err
	}
	size, err := archive.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if _, err = archive.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	store, err := a.js.ObjectStore(ctx, fleet.Bucket(a.Link.User))
	if err != nil {
		return 0, err
	}
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: id}, archive)
	return size, err
}

// sleep pauses after an attempt, from 0, that failed: from a second to a minute.
func sleep(ctx context.Context, attempt int) {
	select {
	case <-ctx.Done():
	case <-time.After(min(time.Second<<min(attempt, 10), time.Minute)):
	}
}

// command makes a command of dmgbench that is interrupted when ctx ends, and later
// killed. Its state folder is the agent's own, so that it does not touch the
// owner's runs.
func (a *agent) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, a.Program, args...)
	cmd.Env = append(os.Environ(), "DMGBENCH_STATE="+filepath.Join(a.Folder, "state"), "DMGBENCH_HOST_NAME="+a.Link.User)
	// WaitDelay also bounds the wait for a server of an image that holds stderr.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, graceTime
	// Ctrl-C interrupts the child once, by the agent: at the second interrupt it
	// would leave its images.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// execute executes a command that does not measure, and again if a signal ends it,
// as when memory is short, which is not the fault of the job. The
// error is what it printed on stderr, if it failed or would refuse the run.
func (a *agent) execute(ctx context.Context, args ...string) (err error) {
	for attempt := range maxAttempts {
		var text bytes.Buffer
		cmd := a.command(ctx, args...)
		cmd.Stderr = &text
		err = cmd.Run()
		if text.Len() > 0 && (err != nil || strings.Contains(text.String(), "this run would be refused")) {
			err = errors.New(strings.TrimSpace(text.String()))
		}
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() >= 0 {
			break
		}
		sleep(ctx, attempt)
	}
	return err
}
