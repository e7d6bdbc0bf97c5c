package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	requestTime = 10 * time.Second // for the answer to one request
	uploadTime  = time.Minute      // for a run folder, doubled with each attempt
	maxAttempts = 20               // to execute something that a signal ends, or that does not come further
	graceTime   = 30 * time.Second // for a child to detach its images after an interrupt
)

// agent is a machine's connection to the fleet and its dmgbench. Its requests are
// bounded in time, and fail while the connection is lost.
type agent struct {
	Config
	nc      *nats.Conn
	js      jetstream.JetStream
	cancels chan struct{} // gets a value when a job may have been cancelled
	onLost  atomic.Pointer[context.CancelFunc]
	status  fleet.Status
}

// connect returns before there is a connection: attempts are made until the
// connection is closed. What the agent sends meanwhile is kept for a while.
func (a *agent) connect() (err error) {
	onCancel := func(*nats.Msg) {
		select {
		case a.cancels <- struct{}{}:
		default: // there is one already
		}
	}
	a.nc, a.js, err = fleet.Connect(a.Link, true, func(lost error) {
		a.Log("connection to the fleet: %v", cmp.Or(lost, errors.New("it is back")))
		if cancel := a.onLost.Load(); lost != nil && cancel != nil {
			(*cancel)()
		}
		onCancel(nil) // a message may have been lost, too
	})
	if err == nil {
		_, err = a.nc.Subscribe(fleet.CancelSubject(a.Link.User), onCancel)
	}
	return err
}

// untilLost makes a context that ends when the connection is lost: what waits for
// an answer then would wait in vain.
func (a *agent) untilLost(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	a.onLost.Store(&cancel)
	return ctx, cancel
}

// checkAnswer is called with the error of a request. Without an answer it makes
// the connection anew, as a machine that slept may have one that exists only on
// its side.
func (a *agent) checkAnswer(err error) error {
	isTimeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if isTimeout || errors.Is(err, jetstream.ErrNoHeartbeat) {
		_ = a.nc.ForceReconnect()
	}
	return err
}

// flush waits until the server has what was sent.
func (a *agent) flush(limit time.Duration) error { return a.checkAnswer(a.nc.FlushTimeout(limit)) }

// isStored reports whether a stream has a message with this subject. It makes the
// request itself, as a machine is not permitted to ask for facts of the stream,
// which the client library does first.
func (a *agent) isStored(ctx context.Context, stream, subject string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, err := a.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err == nil && answer.Header.Get("Nats-Stream") == "" && answer.Header.Get("Status") != "404" {
		err = fmt.Errorf("status %q of the server", answer.Header.Get("Status"))
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", subject, a.checkAnswer(err))
	}
	return answer.Header.Get("Nats-Stream") != "", nil
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
	return a.isStored(ctx, fleet.Results, fleet.ResultSubject(a.Link.User, r.Job, r.Occurrence))
}

// serverTime is the time of the server's clock, which decides when an occurrence is
// due: the clock of this machine may be wrong, and may jump.
func (a *agent) serverTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	consumer, err := a.js.Consumer(ctx, fleet.Jobs, a.Link.User)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the clock of the server: %w", a.checkAnswer(err))
	}
	return consumer.CachedInfo().TimeStamp, nil
}

// report changes the status of the machine and sends it, unless the connection is
// lost. It does not wait. Only the goroutine that executes a job calls it, or the
// one that reads the output of its child meanwhile.
func (a *agent) report(change func(*fleet.Status)) {
	change(&a.status)
	a.status.Time = time.Now().UTC()
	if data, err := fleet.Encode(a.status); err == nil && a.nc.IsConnected() {
		_ = a.nc.Publish(fleet.StatusSubject(a.Link.User), data)
	}
}

// upload stores a run folder in the machine's object store and returns its size
// there, in bytes. It replaces what an earlier attempt stored, since an object that
// exists may lack chunks for which the store had no space.
func (a *agent) upload(ctx context.Context, id, dir string, attempt int) (int64, error) {
	ctx, cancel := a.untilLost(ctx, uploadTime<<min(attempt, 6))
	defer cancel()
	var info *jetstream.ObjectInfo
	store, err := a.js.ObjectStore(ctx, fleet.Bucket(a.Link.User))
	if err == nil {
		r, w := io.Pipe()
		defer r.Close() // ends Pack if the upload fails
		go func() { w.CloseWithError(fleet.Pack(w, dir)) }()
		info, err = store.Put(ctx, jetstream.ObjectMeta{Name: id}, r)
	}
	if err != nil {
		return 0, fmt.Errorf("storing run %q: %w", id, a.checkAnswer(err))
	}
	return int64(info.Size), nil
}

// publish stores the result of a task. It is an error if there is one already. The
// server drops a second message with the id of the run.
func (a *agent) publish(ctx context.Context, r fleet.Result) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	subject := fleet.ResultSubject(a.Link.User, r.Job, r.Occurrence)
	data, err := fleet.Encode(r)
	if err == nil {
		_, err = a.js.Publish(ctx, subject, data, jetstream.WithMsgID(cmp.Or(r.Run, subject)))
	}
	if err != nil {
		return fmt.Errorf("storing the result of job %q: %w", r.Job, a.checkAnswer(err))
	}
	return nil
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
	state := filepath.Join(a.Folder, "state")
	cmd.Env = append(os.Environ(), "DMGBENCH_STATE="+state, "DMGBENCH_HOST_NAME="+a.Link.User)
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
