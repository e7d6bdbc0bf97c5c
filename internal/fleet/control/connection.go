// Package control is the fleet as the one sees it who submits plans: machines,
// jobs, results, logs and run folders.
//
// It trusts no machine. What a machine stored counts only where the subject,
// which the server's permissions restrict, agrees with it, and only a run folder
// that can be read as a run is kept.
package control

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

// batchMessages is how many messages of a stream one request is for, at most. A batch
// also ends with the message that exceeds 8 MiB.
const batchMessages = 256

// Fleet is a connection to a fleet. Its user may do everything.
type Fleet struct {
	NATS      *nats.Conn
	JetStream jetstream.JetStream
}

// message is one of a stream. Its Time is when the server stored it.
type message = jetstream.RawStreamMsg

// read calls each for the messages of a stream from a sequence on, in their
// order, and returns the sequence to continue from. The subject may have
// wildcards.
//
// It uses direct requests in batches, which nats-server has since version 2.11. A
// consumer could not read the work queue, in which each machine has its own.
func (f *Fleet) read(ctx context.Context, stream, subject string, next uint64, each func(message)) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	inbox := f.NATS.NewInbox()
	sub, err := f.NATS.SubscribeSync(inbox)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	for isEnd := true; err == nil; {
		if isEnd { // of a batch, or there was none
			err = f.NATS.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, fmt.Appendf(nil,
				`{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":8388608}`, next, subject, batchMessages))
		}
		m, noAnswer := sub.NextMsgWithContext(ctx)
		if err = cmp.Or(err, noAnswer); err != nil {
			break
		}
		status, stored := m.Header.Get("Status"), lastHeader(m, "Nats-Subject")
		isEnd = stored == ""
		switch {
		case !isEnd:
			at, _ := time.Parse(time.RFC3339Nano, lastHeader(m, "Nats-Time-Stamp"))
			each(message{Subject: stored, Time: at, Data: m.Data})
			next, err = strconv.ParseUint(lastHeader(m, "Nats-Sequence"), 10, 64)
			next++
		case status == "404", status == "204" && lastHeader(m, "Nats-Num-Pending") == "0":
			return next, nil
		case status != "204":
			err = fmt.Errorf("status %s %s", status, m.Header.Get("Description"))
		}
	}
	return next, fmt.Errorf("reading stream %s: %w", stream, err)
}

// lastHeader is the header that the server added. The server puts it after those
// of the sender, who may have given the same one.
func lastHeader(m *nats.Msg, key string) string {
	values := m.Header.Values(key)
	return append([]string{""}, values...)[len(values)]
}

// store stores a message in the stream of its subject.
func (f *Fleet) store(ctx context.Context, subject string, v any) error {
	data, err := fleet.Encode(v)
	if err == nil {
		_, err = f.JetStream.Publish(ctx, subject, data)
	}
	return err
}
