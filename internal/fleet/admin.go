package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Verbs of requests to the embedded server, which has the keys of the machines.
const (
	Add    = "add"    // a machine; answered with its join string
	Revoke = "revoke" // the key of a machine
	Remove = "remove" // a machine
	List   = "list"   // answered with a Report
)

// Report is what the embedded server knows of itself and of the machines.
type Report struct {
	Error   string             `json:"error,omitempty"` // why it stores nothing
	Keys    map[string]bool    `json:"keys"`            // of the machines that have one
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// Refusal is the last connection that was refused because another agent of the
// machine was connected.
type Refusal struct {
	Address string    `json:"address"`
	Time    time.Time `json:"time"`
}

// AdminSubject is where the embedded server takes requests of Control.
func AdminSubject(verb string) string { return "fleet.admin." + verb }

// adminTime is the longest time that the server may take to answer.
const adminTime = 30 * time.Second

// ErrorHeader is the header of an answer that has the reason of a refusal.
const ErrorHeader = "Fleet-Error"

// Request has the embedded server carry out a verb for a machine. Only a
// connection of Control may do so. The join string is that of a machine added.
func Request(ctx context.Context, nc *nats.Conn, verb, machine string) (joinString string, err error) {
	if err := CheckMachine(machine); err != nil {
		return "", err
	}
	data, err := ask(ctx, nc, verb, machine)
	if errors.Is(err, nats.ErrNoResponders) {
		return "", fmt.Errorf("%s machine %q: this server is not `dmgbench-fleet serve`; its operator makes the users",
			verb, machine)
	}
	return string(data), err
}

// RequestReport asks the embedded server for a report. One that is not ours has
// none: it is nil then.
func RequestReport(ctx context.Context, nc *nats.Conn) (*Report, error) {
	data, err := ask(ctx, nc, List, "")
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err = json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("decoding the server's report: %w", err)
	}
	return r, nil
}

func ask(ctx context.Context, nc *nats.Conn, verb, machine string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, AdminSubject(verb), []byte(machine))
	if err != nil {
		return nil, fmt.Errorf("asking the server to %s %s: %w", verb, cmp.Or(machine, "machines"), err)
	}
	if text := m.Header.Get(ErrorHeader); text != "" {
		return nil, errors.New(text)
	}
	return m.Data, nil
}
