// Package control is the fleet as the one sees it who submits plans: machines,
// jobs, results, logs and run folders.
//
// It trusts no machine. What a machine stored counts only where the subject,
// which the server's permissions restrict, agrees with it, and only a run folder
// that can be read as a run is kept.
package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	pageMessages = 256     // of a stream that are read with one request
	pageBytes    = 8 << 20 // a page ends after the message that exceeds this
	pageWait     = 15 * time.Second
)

// Fleet is a connection to a fleet.
type Fleet struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// Open connects to a fleet. The caller closes it.
func Open(l fleet.Link) (*Fleet, error) {
	nc, js, err := fleet.Connect(l, false, nil)
	if err != nil {
		return nil, err
	}
	return &Fleet{nc, js}, nil
}

// Close ends the connection.
func (f *Fleet) Close() { f.nc.Close() }

// NATS is the connection itself.
func (f *Fleet) NATS() *nats.Conn { return f.nc }

// Setup makes the streams on a server that is not ours, or adapts them to the
// limits.
func (f *Fleet) Setup(ctx context.Context, l fleet.Limits) error { return fleet.Setup(ctx, f.js, l) }

// message is one of a stream.
type message struct {
	subject  string
	sequence uint64
	time     time.Time // when the server stored it
	data     []byte
}

// read calls each for the messages of a stream from a sequence on, in their
// order. The subject may have wildcards. next is the sequence to continue from.
//
// It reads with direct requests in batches, which nats-server has since version
// 2.11. A consumer could not read the work queue, in which each machine has its
// own already.
func (f *Fleet) read(ctx context.Context, stream, subject string, next uint64, each func(message)) (uint64, error) {
	for {
		list, more, err := f.readPage(ctx, stream, subject, next)
		if err != nil {
			return next, fmt.Errorf("reading stream %s: %w", stream, err)
		}
		for _, m := range list {
			each(m)
			next = m.sequence + 1
		}
		if !more || len(list) == 0 {
			return next, nil
		}
	}
}

func (f *Fleet) readPage(ctx context.Context, stream, subject string, from uint64) (list []message, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	request, err := json.Marshal(map[string]any{
		"seq": from, "next_by_subj": subject, "batch": pageMessages, "max_bytes": pageBytes})
	if err != nil {
		return nil, false, err
	}
	inbox := f.nc.NewInbox()
	sub, err := f.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := f.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, request); err != nil {
		return nil, false, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, false, err
		}
		if lastHeader(m, "Nats-Subject") != "" {
			got, err := decodeMessage(m)
			if err != nil {
				return nil, false, err
			}
			list = append(list, got)
			continue
		}
		switch status := m.Header.Get("Status"); status {
		case "204": // end of the batch
			return list, lastHeader(m, "Nats-Num-Pending") != "0", nil
		case "404":
			return nil, false, nil
		default:
			return nil, false, fmt.Errorf("status %s %s", status, m.Header.Get("Description"))
		}
	}
}

// lastHeader is the header that the server added. The server keeps those of the
// sender, who may have set the same ones, in front of it.
func lastHeader(m *nats.Msg, key string) string {
	values := m.Header.Values(key)
	return append([]string{""}, values...)[len(values)]
}

func decodeMessage(m *nats.Msg) (out message, err error) {
	out = message{subject: lastHeader(m, "Nats-Subject"), data: m.Data}
	if out.sequence, err = strconv.ParseUint(lastHeader(m, "Nats-Sequence"), 10, 64); err == nil {
		out.time, err = time.Parse(time.RFC3339Nano, lastHeader(m, "Nats-Time-Stamp"))
	}
	return out, err
}
