package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits are the sizes of what a fleet stores, in bytes, and its copies.
type Limits struct {
	Queue    int64 // all jobs that are not done
	Results  int64 // the results of one machine, without run folders
	Runs     int64 // the run folders of one machine
	Replicas int   // copies of all of it, on so many servers of a cluster
}

// DefaultLimits are those of an embedded server. It reserves them on its disk, all
// but the queue for each machine.
func DefaultLimits() Limits {
	return Limits{Queue: 64 << 20, Results: 16 << 20, Runs: 256 << 20, Replicas: 1}
}

const (
	ackWait     = 30 * time.Second // an agent that is gone for longer gets its job again
	maxWaiting  = 1000             // jobs of a machine that wait for their time
	logMessages = 200              // of one job; older ones are dropped
	logBytes    = 8 << 20          // of one machine
	// The server keeps every subject of a stream in memory, so that the messages are
	// limited, too: to so many, and one more for each so many bytes.
	maxMessages, chunkBytes = 64 << 10, 64 << 10
)

// Setup makes the streams of a fleet, or adapts them and those of the machines to the
// limits.
func Setup(ctx context.Context, js jetstream.JetStream, l Limits) error {
	if _, err := js.Stream(ctx, "FLEET_RESULTS"); err == nil {
		return errors.New("the streams are of an earlier version, in which all machines shared FLEET_RESULTS (fetch the " +
			"results with that version, delete the streams, on an own server its folder jetstream, and add the machines again)")
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: Jobs, Subjects: []string{JobSubject("*", "*")}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, MaxBytes: l.Queue, DiscardNewPerSubject: true, MaxMsgSize: MaxMessage},
		{Name: Submissions, Subjects: []string{SubmissionSubject("*", "*")}, MaxMsgSize: MaxMessage},
		{Name: Statuses, Subjects: []string{StatusSubject("*")}, MaxMsgSize: MaxStatus},
	} {
		c.Replicas, c.MaxMsgsPerSubject, c.AllowDirect = l.Replicas, 1, true
		if err := makeStream(ctx, js, c); err != nil {
			return err
		}
	}
	return resizeStores(ctx, js, l)
}

// resizeStores changes the stores of machines that were added before, if they have
// other limits.
func resizeStores(ctx context.Context, js jetstream.JetStream, l Limits) error {
	streams := js.ListStreams(ctx)
	for s := range streams.Info() {
		name, _ := StoreOf(s.Config.Name)
		for _, c := range stores(name, l) {
			if c.Name != s.Config.Name || c.MaxBytes == s.Config.MaxBytes {
				continue
			}
			if err := makeStream(ctx, js, c); err != nil {
				return err
			}
		}
	}
	return streams.Err()
}

func makeStream(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) error {
	if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
		return fmt.Errorf("making stream %s: %w", c.Name, err)
	}
	return nil
}

// stores are the streams of one machine, each with its own limits, so that none can
// take the space of another: results, logs, and the run folders, which is the
// stream of an object store.
func stores(machine string, l Limits) []jetstream.StreamConfig {
	list := []jetstream.StreamConfig{
		{Name: Results(machine), Subjects: []string{"fleet.result." + machine + ".*.*"}, Discard: jetstream.DiscardNew,
			MaxBytes: l.Results, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, MaxMsgSize: MaxResult},
		{Name: Logs(machine), Subjects: []string{LogSubject(machine, "*")}, MaxMsgsPerSubject: logMessages,
			MaxBytes: logBytes, MaxMsgSize: MaxMessage},
		{Name: runsStream(machine), Subjects: []string{"$O." + Bucket(machine) + ".C.>", "$O." + Bucket(machine) + ".M.>"},
			Discard: jetstream.DiscardNew, MaxBytes: l.Runs, AllowRollup: true},
	}
	for i := range list {
		list[i].Replicas, list[i].AllowDirect = l.Replicas, true
		list[i].MaxMsgs = maxMessages + list[i].MaxBytes/chunkBytes
	}
	return list
}

// runsStream is the stream of a machine's object store.
func runsStream(machine string) string { return "OBJ_" + Bucket(machine) }

// StoreOf is the machine whose store a stream is, and the name of the stream without
// it; both are empty for another stream.
func StoreOf(stream string) (machine, kind string) {
	for _, c := range stores("", Limits{}) {
		if name, ok := strings.CutPrefix(stream, c.Name); ok {
			return name, c.Name
		}
	}
	return "", ""
}

// AddMachine makes the consumer and the stores of a machine, with as many copies as
// the queue has. A machine that exists keeps what it has.
func AddMachine(ctx context.Context, js jetstream.JetStream, name string, l Limits) error {
	if err := CheckMachine(name); err != nil {
		return err
	}
	if err := addMachine(ctx, js, name, l); err != nil {
		return fmt.Errorf("adding machine %q: %w", name, err)
	}
	return nil
}

func addMachine(ctx context.Context, js jetstream.JetStream, name string, l Limits) error {
	jobs, err := js.Stream(ctx, Jobs)
	if err != nil {
		return err
	}
	l.Replicas = jobs.CachedInfo().Config.Replicas // the consumer has as many as its stream
	for _, c := range stores(name, l) {
		if err := makeStream(ctx, js, c); err != nil {
			return err
		}
	}
	_, err = jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: name,
		FilterSubject: JobSubject(name, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxDeliver: -1, MaxAckPending: maxWaiting})
	return err
}

// RemoveMachine deletes the consumer of a machine, its jobs and its status. What it
// stored stays.
func RemoveMachine(ctx context.Context, js jetstream.JetStream, name string) error {
	if err := CheckMachine(name); err != nil {
		return err
	}
	err := js.DeleteConsumer(ctx, Jobs, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = nil
	}
	err = errors.Join(err, purge(ctx, js, Jobs, JobSubject(name, "*")), purge(ctx, js, Statuses, StatusSubject(name)))
	if err != nil {
		return fmt.Errorf("removing machine %q: %w", name, err)
	}
	return nil
}

// purge deletes the messages of a subject from a stream.
func purge(ctx context.Context, js jetstream.JetStream, stream, subject string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// PurgeMachine deletes what a machine stored: results, logs and run folders. Of a
// machine that was removed nothing stays.
func PurgeMachine(ctx context.Context, js jetstream.JetStream, name string) error {
	if err := CheckMachine(name); err != nil {
		return err
	}
	err := purgeMachine(ctx, js, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = errors.New("there is no such machine")
	}
	if err != nil {
		return fmt.Errorf("purging machine %q: %w", name, err)
	}
	return nil
}

func purgeMachine(ctx context.Context, js jetstream.JetStream, name string) error {
	_, err := js.Consumer(ctx, Jobs, name)
	isRemoved := errors.Is(err, jetstream.ErrConsumerNotFound)
	if err != nil && !isRemoved {
		return err
	}
	// The results are the last: there is no such machine without their stream.
	for _, c := range slices.Backward(stores(name, Limits{})) {
		if isRemoved {
			err = js.DeleteStream(ctx, c.Name)
		} else {
			err = purge(ctx, js, c.Name, ">")
		}
		if err != nil && (c.Name == Results(name) || !errors.Is(err, jetstream.ErrStreamNotFound)) {
			return err
		}
	}
	if !isRemoved {
		return nil
	}
	return purge(ctx, js, Submissions, SubmissionSubject(name, "*"))
}

// Inbox is the prefix of the subjects on which a user gets answers.
func Inbox(user string) string { return "_INBOX_" + user }

// Permissions are the only subjects to which a machine may publish and subscribe:
// its own jobs, results, status, log and object store. A user of a server that is
// not ours needs the same, and an account of its own that imports these subjects:
// within the account that has the streams, a machine could name the subject of
// another one for an answer, which no permission prevents.
func Permissions(machine string) (publish, subscribe []string) {
	own := runsStream(machine)
	return []string{
			"$JS.API.CONSUMER.INFO." + Jobs + "." + machine,
			"$JS.API.CONSUMER.MSG.NEXT." + Jobs + "." + machine,
			"$JS.ACK." + Jobs + "." + machine + ".>",
			"$JS.API.DIRECT.GET." + Jobs + "." + JobSubject(machine, "*"),
			"$JS.API.DIRECT.GET." + Results(machine) + ".fleet.result." + machine + ".*.*",
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
