package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	requestTime = 10 * time.Second // for the answer to one request
	uploadTime  = 5 * time.Minute  // for a run folder, at the first attempt
	maxPause    = time.Minute      // between two attempts
)

// connection is the agent's connection to the fleet. What it does is bounded in
// time, and fails while the connection is lost.
type connection struct {
	machine string
	nc      *nats.Conn
	js      jetstream.JetStream
	cancels chan struct{} // gets a value when a job may have been cancelled
	onLost  atomic.Pointer[context.CancelFunc]

	mu     sync.Mutex
	status fleet.Status
}

// connect returns before there is a connection: attempts go on until close.
func connect(l fleet.Link, log func(string, ...any)) (c *connection, err error) {
	c = &connection{machine: l.User, cancels: make(chan struct{}, 1), status: fleet.Status{Machine: l.User}}
	c.nc, c.js, err = fleet.Connect(l, true, func(lost error) {
		if lost == nil {
			log("connected again")
			return
		}
		log("the connection is lost: %v", lost)
		if cancel := c.onLost.Load(); cancel != nil {
			(*cancel)()
		}
	})
	if err == nil {
		_, err = c.nc.Subscribe(fleet.CancelSubject(l.User), func(*nats.Msg) {
			select {
			case c.cancels <- struct{}{}:
			default: // there is one already
			}
		})
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
func (c *connection) flush(limit time.Duration) error {
	if !c.nc.IsConnected() {
		return nats.ErrDisconnected
	}
	return c.checkAnswer(c.nc.FlushTimeout(limit))
}

// isStored reports whether a stream has a message with this subject.
func (c *connection) isStored(ctx context.Context, stream, subject string, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	switch {
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", subject, c.checkAnswer(err))
	case answer.Header.Get("Nats-Stream") != "":
		return true, nil
	case answer.Header.Get("Status") != "404":
		return false, fmt.Errorf("reading %s: status %q of the server", subject, answer.Header.Get("Status"))
	}
	return false, nil
}

// report changes the status of the machine and sends it, unless the connection is
// lost. It does not wait.
func (c *connection) report(change func(*fleet.Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
	c.status.Time = time.Now().UTC()
	if data, err := fleet.Encode(c.status); err == nil && c.nc.IsConnected() {
		_ = c.nc.Publish(fleet.StatusSubject(c.machine), data)
	}
}

// sendLog sends lines that a child printed during a job.
func (c *connection) sendLog(job string, lines []string) {
	if len(lines) > 0 && c.nc.IsConnected() {
		_ = c.nc.Publish(fleet.LogSubject(c.machine, job), []byte(strings.Join(lines, "\n")))
	}
}

// upload stores a run folder in the machine's object store and returns its size
// there, in bytes. attempt, from 0, lengthens the time that it may take.
func (c *connection) upload(ctx context.Context, id, dir string, attempt int) (int64, error) {
	ctx, cancel := c.untilLost(ctx, uploadTime<<min(attempt, 6))
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

// publish stores the result of a task. One that is stored already counts as done.
func (c *connection) publish(ctx context.Context, r fleet.Result) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	id := r.Run
	if id == "" {
		id = r.Job + "." + strconv.Itoa(r.Occurrence)
	}
	data, err := fleet.Encode(r)
	if err == nil {
		_, err = c.js.Publish(ctx, fleet.ResultSubject(c.machine, r.Job, r.Occurrence), data, jetstream.WithMsgID(id))
	}
	// The server has one code for all errors of storing.
	if err == nil || strings.Contains(err.Error(), "maximum messages per subject") {
		return nil
	}
	return fmt.Errorf("storing the result of job %q: %w", r.Job, c.checkAnswer(err))
}

// backoff pauses between attempts, from a second to a minute.
type backoff struct{ attempts int }

// wait returns false when ctx has ended.
func (b *backoff) wait(ctx context.Context) bool {
	pause := min(time.Second<<min(b.attempts, 10), maxPause)
	b.attempts++
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
