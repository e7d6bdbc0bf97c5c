package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	requestTime = 10 * time.Second // for the answer to one request
	uploadTime  = time.Hour        // for a run folder; it ends before if the connection is lost
)

// connection is the agent's connection to the fleet. What it does is bounded in
// time, and fails while the connection is lost.
type connection struct {
	machine string
	nc      *nats.Conn
	js      jetstream.JetStream
	cancels chan struct{} // gets a value when a job may have been cancelled
	onLost  atomic.Pointer[context.CancelFunc]
	status  fleet.Status
}

// connect returns before there is a connection: the attempts end with close.
func connect(l fleet.Link, log func(string, ...any)) (c *connection, err error) {
	c = &connection{machine: l.User, cancels: make(chan struct{}, 1)}
	onCancel := func(*nats.Msg) {
		select {
		case c.cancels <- struct{}{}:
		default: // there is one already
		}
	}
	c.nc, c.js, err = fleet.Connect(l, true, func(lost error) {
		log("connection to the fleet: %v", cmp.Or(lost, errors.New("it is back")))
		if cancel := c.onLost.Load(); cancel != nil {
			(*cancel)()
		}
		onCancel(nil) // a message may have been lost, too
	})
	if err == nil {
		_, err = c.nc.Subscribe(fleet.CancelSubject(l.User), onCancel)
	}
	return c, err
}

// untilLost makes a context that ends when the connection is lost: what waits for
// an answer then would wait in vain.
func (c *connection) untilLost(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	c.onLost.Store(&cancel)
	return ctx, cancel
}

// checkAnswer is called with the error of a request. Without an answer it makes
// the connection anew, as a machine that slept may have one that exists only on
// its side.
func (c *connection) checkAnswer(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoHeartbeat) {
		_ = c.nc.ForceReconnect()
	}
	return err
}

// flush waits until the server has what was sent.
func (c *connection) flush(limit time.Duration) error { return c.checkAnswer(c.nc.FlushTimeout(limit)) }

// isStored reports whether a stream has a message with this subject.
func (c *connection) isStored(ctx context.Context, stream, subject string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err == nil && answer.Header.Get("Nats-Stream") == "" && answer.Header.Get("Status") != "404" {
		err = fmt.Errorf("status %q of the server", answer.Header.Get("Status"))
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", subject, c.checkAnswer(err))
	}
	return answer.Header.Get("Nats-Stream") != "", nil
}

// isQueued reports whether a job is in the queue, hasResult whether the result of
// an occurrence is stored.
func (c *connection) isQueued(ctx context.Context, job string) (bool, error) {
	return c.isStored(ctx, fleet.Jobs, fleet.JobSubject(c.machine, job))
}

func (c *connection) hasResult(ctx context.Context, r fleet.Result) (bool, error) {
	return c.isStored(ctx, fleet.Results, fleet.ResultSubject(c.machine, r.Job, r.Occurrence))
}

// report changes the status of the machine and sends it, unless the connection is
// lost. It does not wait. Only the goroutine that executes a job calls it, or the
// one that reads the output of its child meanwhile.
func (c *connection) report(change func(*fleet.Status)) {
	change(&c.status)
	c.status.Time = time.Now().UTC()
	if data, err := fleet.Encode(c.status); err == nil && c.nc.IsConnected() {
		_ = c.nc.Publish(fleet.StatusSubject(c.machine), data)
	}
}

// upload stores a run folder in the machine's object store and returns its size
// there, in bytes.
func (c *connection) upload(ctx context.Context, id, dir string) (int64, error) {
	ctx, cancel := c.untilLost(ctx, uploadTime)
	defer cancel()
	var info *jetstream.ObjectInfo
	store, err := c.js.ObjectStore(ctx, fleet.Bucket(c.machine))
	if err == nil {
		r, w := io.Pipe()
		defer r.Close() // ends Pack if the upload fails
		go func() { w.CloseWithError(fleet.Pack(w, dir)) }()
		info, err = store.Put(ctx, jetstream.ObjectMeta{Name: id}, r)
	}
	if err != nil {
		return 0, fmt.Errorf("storing run %q: %w", id, c.checkAnswer(err))
	}
	return int64(info.Size), nil
}

// publish stores the result of a task. It is an error if there is one already.
func (c *connection) publish(ctx context.Context, r fleet.Result) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	subject := fleet.ResultSubject(c.machine, r.Job, r.Occurrence)
	data, err := fleet.Encode(r)
	if err == nil {
		_, err = c.js.Publish(ctx, subject, data, jetstream.WithMsgID(cmp.Or(r.Run, subject)))
	}
	if err != nil {
		return fmt.Errorf("storing the result of job %q: %w", r.Job, c.checkAnswer(err))
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
