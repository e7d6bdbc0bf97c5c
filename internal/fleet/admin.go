package fleet

import (
	"context"
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
)

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
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, AdminSubject(verb), []byte(machine))
	if errors.Is(err, nats.ErrNoResponders) {
		return "", fmt.Errorf("%s machine %q: this server is not `dmgbench-fleet serve`; its operator makes the users",
			verb, machine)
	}
	if err != nil {
		return "", fmt.Errorf("%s machine %q: %w", verb, machine, err)
	}
	if text := m.Header.Get(ErrorHeader); text != "" {
		return "", errors.New(text)
	}
	return string(m.Data), nil
}
