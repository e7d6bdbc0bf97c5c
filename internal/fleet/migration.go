package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams of version 1, which all machines shared.
const oldResults, oldLogs = "FLEET_RESULTS", "FLEET_LOGS"

// detachResults frees the subjects of the old stream of results for those of the
// machines, and returns it, or nil if there is none. Old logs are deleted.
func detachResults(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	old, err := js.Stream(ctx, oldResults)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", oldResults, err)
	}
	c := old.CachedInfo().Config
	c.Subjects = []string{"fleet.old"}
	if old, err = js.UpdateStream(ctx, c); err != nil {
		return nil, fmt.Errorf("updating stream %s: %w", oldResults, err)
	}
	if err = js.DeleteStream(ctx, oldLogs); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("deleting stream %s: %w", oldLogs, err)
	}
	return old, nil
}

// moveResults copies the results of the old stream to those of their machines, and
// records their jobs and the ones in the queue as submitted. The old stream is
// deleted at the end, so that an interrupted move is done again.
func moveResults(ctx context.Context, js jetstream.JetStream, old jetstream.Stream, l Limits) error {
	queue, err := js.Stream(ctx, Jobs)
	if err != nil {
		return fmt.Errorf("moving results: %w", err)
	}
	err = eachMessage(ctx, queue, func(m *jetstream.RawStreamMsg) error { return submitted(ctx, js, m.Subject, m.Data) })
	if err != nil {
		return fmt.Errorf("moving results: %w", err)
	}
	known := map[string]bool{}
	err = eachMessage(ctx, old, func(m *jetstream.RawStreamMsg) error {
		machine := strings.Split(m.Subject, ".")[2]
		if !known[machine] { // or it was removed
			for _, c := range stores(machine, l) {
				if err := makeStream(ctx, js, c); err != nil {
					return err
				}
			}
			known[machine] = true
		}
		_, err := js.Publish(ctx, m.Subject, m.Data)
		if err != nil && !strings.Contains(err.Error(), "maximum messages per subject exceeded") {
			return err
		}
		return submitted(ctx, js, m.Subject, m.Data)
	})
	if err != nil {
		return fmt.Errorf("moving results: %w", err)
	}
	return js.DeleteStream(ctx, oldResults)
}

// submitted records the job of a message, which is a job or a result.
func submitted(ctx context.Context, js jetstream.JetStream, subject string, data []byte) error {
	job, _ := Decode[Job](data) // a result has some of its fields
	job.Text = ""
	parts := strings.Split(subject, ".")
	record, err := Encode(job)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, SubmissionSubject(parts[2], parts[3]), record)
	return err
}

func eachMessage(ctx context.Context, s jetstream.Stream, each func(*jetstream.RawStreamMsg) error) error {
	for next := uint64(1); ; {
		m, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(">"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err = each(m); err != nil {
			return err
		}
		next = m.Sequence + 1
	}
}
