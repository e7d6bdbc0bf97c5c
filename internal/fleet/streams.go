package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits are the sizes of what a fleet stores, in bytes, and its copies.
type Limits struct {
	Queue    int64 // all jobs that are not done
	Results  int64 // all results, without run folders
	Runs     int64 // the run folders of one machine
	Replicas int   // copies of all of it, on so many servers of a cluster
}

// DefaultLimits are those of an embedded server. It reserves them on its disk, Runs
// for each machine.
func DefaultLimits() Limits {
	return Limits{Queue: 64 << 20, Results: 256 << 20, Runs: 256 << 20, Replicas: 1}
}

const (
	ackWait      = 30 * time.Second // an agent that is gone for longer gets its job again
	maxWaiting   = 1000             // jobs of a machine that wait for their time
	logMessages  = 200              // of one job; older ones are dropped
	logBytes     = 64 << 20
	machineBytes = MaxMessage // of a status
)

// Setup makes the streams of a fleet, or adapts them to the limits.
func Setup(ctx context.Context, js jetstream.JetStream, l Limits) error {
	for _, c := range []jetstream.StreamConfig{
		{Name: Jobs, Subjects: []string{"fleet.job.*.*"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			MaxBytes: l.Queue, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, AllowDirect: true},
		{Name: Results, Subjects: []string{"fleet.result.*.*.*"}, Discard: jetstream.DiscardNew,
			MaxBytes: l.Results, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, AllowDirect: true},
		{Name: Statuses, Subjects: []string{"fleet.status.*"}, MaxMsgsPerSubject: 1, AllowDirect: true},
		{Name: Logs, Subjects: []string{"fleet.log.*.*"}, MaxMsgsPerSubject: logMessages, MaxBytes: logBytes,
			AllowDirect: true},
	} {
		c.Replicas, c.MaxMsgSize = l.Replicas, MaxMessage
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return fmt.Errorf("making stream %s: %w", c.Name, err)
		}
	}
	return resizeStores(ctx, js, l.Runs)
}

// resizeStores changes the size of the object stores of machines that were added
// before, as they may be full.
func resizeStores(ctx context.Context, js jetstream.JetStream, size int64) (err error) {
	streams := js.ListStreams(ctx, jetstream.WithStreamListSubject("$O.>"))
	for s := range streams.Info() {
		c := s.Config
		if err == nil && strings.HasPrefix(c.Name, "OBJ_"+Bucket("")) && c.MaxBytes != size {
			c.MaxBytes = size
			if _, err = js.UpdateStream(ctx, c); err != nil {
				err = fmt.Errorf("resizing store %s to %d bytes: %w", c.Name, size, err)
			}
		}
	}
	return errors.Join(err, streams.Err())
}

// AddMachine makes the consumer and the object store of a machine, with as many
// copies as the queue has. A machine that exists keeps what it has.
func AddMachine(ctx context.Context, js jetstream.JetStream, name string, l Limits) error {
	if err := CheckMachine(name); err != nil {
		return err
	}
	jobs, err := js.Stream(ctx, Jobs)
	if err == nil { // the consumer has as many copies as its stream
		l.Replicas = jobs.CachedInfo().Config.Replicas
		_, err = jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: name,
			FilterSubject: JobSubject(name, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
			MaxDeliver: -1, MaxAckPending: maxWaiting})
	}
	if err == nil {
		_, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: Bucket(name),
			MaxBytes: l.Runs, Replicas: l.Replicas})
	}
	if err != nil {
		return fmt.Errorf("adding machine %q: %w", name, err)
	}
	return nil
}

// RemoveMachine deletes the consumer of a machine, its jobs and its status. Its
// results and run folders stay.
func RemoveMachine(ctx context.Context, js jetstream.JetStream, name string) error {
	if err := CheckMachine(name); err != nil {
		return err
	}
	err := js.DeleteConsumer(ctx, Jobs, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = nil
	}
	for stream, subject := range map[string]string{Jobs: JobSubject(name, "*"), Statuses: StatusSubject(name)} {
		s, e := js.Stream(ctx, stream)
		if e == nil {
			e = s.Purge(ctx, jetstream.WithPurgeSubject(subject))
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("removing machine %q: %w", name, err)
	}
	return nil
}

// Inbox is the prefix of the subjects on which a user gets answers.
func Inbox(user string) string { return "_INBOX_" + user }

// Permissions are the only subjects to which a machine may publish and subscribe:
// its own jobs, results, status, log and object store. A user of a server that is
// not ours needs the same, and an account of its own that imports these subjects:
// within the account that has the streams, a machine could name the subject of
// another one for an answer, which no permission prevents.
func Permissions(machine string) (publish, subscribe []string) {
	own := "OBJ_" + Bucket(machine)
	return []string{
			"$JS.API.CONSUMER.INFO." + Jobs + "." + machine,
			"$JS.API.CONSUMER.MSG.NEXT." + Jobs + "." + machine,
			"$JS.ACK." + Jobs + "." + machine + ".>",
			"$JS.API.DIRECT.GET." + Jobs + "." + JobSubject(machine, "*"),
			"$JS.API.DIRECT.GET." + Results + ".fleet.result." + machine + ".*.*",
			"$JS.API.STREAM.INFO." + own,
			"$JS.API.STREAM.PURGE." + own,
			"$JS.API.STREAM.MSG.GET." + own,
			"$JS.API.DIRECT.GET." + own + ".>",
			"$O." + Bucket(machine) + ".>",
			"fleet.result." + machine + ".*.*",
			StatusSubject(machine),
			LogSubject(machine, "*"),
		}, []string{
			Inbox(machine) + ".>",
			CancelSubject(machine),
		}
}
