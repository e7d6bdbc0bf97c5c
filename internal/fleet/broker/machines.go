package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

// adminTimeout is how long a request of Control may take.
const adminTimeout = 30 * time.Second

// errStorage is the code of the error when the streams would reserve more than the
// store has. The client has no name for it.
const errStorage = 10047

// AddMachine makes the key, the consumer and the object store of a machine. A
// machine that exists keeps what it has and gets a new key; the old one is revoked.
func (s *Server) AddMachine(ctx context.Context, name string) (fleet.Link, error) {
	err := fleet.AddMachine(ctx, s.js, name, s.limits)
	if e := new(jetstream.APIError); errors.As(err, &e) && e.ErrorCode == errStorage {
		err = fmt.Errorf("adding machine %q: the disk of the server has too little space for the %d MiB of its run folders", name, s.limits.Runs>>20)
	}
	if err != nil {
		return fleet.Link{}, err
	}
	seed, public, err := newKey()
	if err == nil {
		err = s.setKey(name, public)
	}
	if err != nil {
		return fleet.Link{}, fmt.Errorf("adding machine %q: %w", name, err)
	}
	return fleet.Link{URLs: s.urls, User: name, Seed: seed, Pin: s.control.Pin}, nil
}

// Revoke makes the key of a machine invalid and closes its connections. What it
// stored stays.
func (s *Server) Revoke(_ context.Context, name string) error {
	if err := fleet.CheckMachine(name); err != nil {
		return err
	}
	if err := s.setKey(name, ""); err != nil {
		return fmt.Errorf("revoking the key of machine %q: %w", name, err)
	}
	return nil
}

// RemoveMachine revokes the key of a machine and deletes its jobs and its status.
func (s *Server) RemoveMachine(ctx context.Context, name string) error {
	if err := s.Revoke(ctx, name); err != nil {
		return err
	}
	return fleet.RemoveMachine(ctx, s.js, name)
}

// setKey stores the public key of a machine, or that it has none, and closes the
// connections that used the old one.
func (s *Server) setKey(name, public string) error {
	var old string
	err := s.store.update(func(f *secrets) {
		old = f.Machines[name]
		delete(f.Machines, name)
		if public != "" {
			f.Machines[name] = public
		}
	})
	if err != nil {
		return err
	}
	if err := s.users.replace(name, old, public); err != nil || old == "" {
		return err
	}
	c, err := s.ns.Connz(&server.ConnzOptions{User: old, Username: true, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	for _, conn := range c.Conns {
		_ = s.ns.DisconnectClientByID(conn.Cid) // an error means that it is gone already
	}
	return nil
}

// answer carries out a request of Control. Nobody else may publish to its subject.
func (s *Server) answer(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	var a fleet.Answer
	var err error
	switch name := string(m.Data); m.Subject {
	case fleet.AdminSubject(fleet.Add):
		var l fleet.Link
		if l, err = s.AddMachine(ctx, name); err == nil {
			a.Join = l.String()
		}
	case fleet.AdminSubject(fleet.Revoke):
		err = s.Revoke(ctx, name)
	case fleet.AdminSubject(fleet.Remove):
		err = s.RemoveMachine(ctx, name)
	default:
		err = fmt.Errorf("unknown request %q", m.Subject)
	}
	if err != nil {
		a.Error = err.Error()
	}
	data, err := json.Marshal(a)
	if err == nil {
		_ = m.Respond(data) // whoever asked sees that no answer comes
	}
}
