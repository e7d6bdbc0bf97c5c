package broker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
)

// adminTimeout is how long a request of Control may take.
const adminTimeout = 30 * time.Second

// AddMachine makes the key, the consumer and the object store of a machine. A
// machine that exists keeps what it has and gets a new key; the old one is revoked.
func (s *Server) AddMachine(ctx context.Context, name string) (fleet.Link, error) {
	if err := fleet.AddMachine(ctx, s.js, name, s.limits); err != nil {
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
	err := fleet.CheckMachine(name)
	if err == nil {
		err = s.setKey(name, "")
	}
	if err != nil {
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

// setKey stores the public key of a machine, or with "" that it has none, and closes
// the connections that use the old one.
func (s *Server) setKey(name, public string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.state.Machines[name]
	user, err := s.newUser(name)
	if err == nil {
		err = s.update(func(f *state) {
			delete(f.Machines, name)
			if public != "" {
				f.Machines[name] = public
			}
		})
	}
	if err != nil {
		return err
	}
	delete(s.users, old) // from here on nobody can connect with it
	if public != "" {
		s.users[public] = user
	}
	if old == "" {
		return nil
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
	var err error
	answer := nats.NewMsg(m.Reply)
	switch name := string(m.Data); m.Subject {
	case fleet.AdminSubject(fleet.Add):
		var l fleet.Link
		if l, err = s.AddMachine(ctx, name); err == nil {
			answer.Data = []byte(l.String())
		}
	case fleet.AdminSubject(fleet.Revoke):
		err = s.Revoke(ctx, name)
	case fleet.AdminSubject(fleet.Remove):
		err = s.RemoveMachine(ctx, name)
	default:
		err = fmt.Errorf("unknown request %q", m.Subject)
	}
	if err != nil {
		answer.Header.Set(fleet.ErrorHeader, err.Error())
	}
	_ = s.nc.PublishMsg(answer) // without an answer the request ends with a timeout
}

// shared are the subjects that the account with the streams offers to those of the
// machines; each imports its own only. One list for all keeps the time to add a
// machine the same, however many there are.
var shared = []string{"$JS.API.CONSUMER.INFO.>", "$JS.API.DIRECT.GET.>", "$JS.API.STREAM.>", "$JS.ACK.>", "$O.>",
	"fleet.>"}

// addUsers adds Control and the machines that the state has.
func (s *Server) addUsers() error {
	hub := s.ns.GlobalAccount()
	// A request for a job has several answers: heartbeats, the job, or that there is none.
	err := hub.AddServiceExportWithResponse("$JS.API.CONSUMER.MSG.NEXT.>", server.Streamed, nil)
	for _, subject := range shared {
		err = errors.Join(err, hub.AddServiceExport(subject, nil))
	}
	if err = errors.Join(err, hub.AddStreamExport(fleet.CancelSubject("*"), nil)); err != nil {
		return fmt.Errorf("making the account of the streams: %w", err)
	}
	pair, err := nkeys.FromSeed([]byte(s.state.Control.Seed))
	if err != nil {
		return fmt.Errorf("reading the key of %s: %w", fleet.Control, err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return fmt.Errorf("reading the key of %s: %w", fleet.Control, err)
	}
	s.users[public] = &server.User{Username: fleet.Control}
	for name, key := range s.state.Machines {
		if s.users[key], err = s.newUser(name); err != nil {
			return err
		}
	}
	return nil
}

// newUser is the user of a machine. Each has an account of its own, which imports
// the subjects that it may use. Permissions would not be enough: the server does
// not check the subject that a request names for the answer, so that a machine
// could have its own data delivered as the job or the result of another one. With
// an account of its own, the answer stays in that account.
func (s *Server) newUser(name string) (*server.User, error) {
	publish, subscribe := fleet.Permissions(name)
	hub := s.ns.GlobalAccount()
	account, isNew := s.ns.LookupOrRegisterAccount(name)
	if isNew {
		err := account.AddStreamImport(hub, fleet.CancelSubject(name), "")
		for _, subject := range publish {
			err = errors.Join(err, account.AddServiceImport(hub, subject, subject))
		}
		if err != nil {
			return nil, fmt.Errorf("making the account of machine %q: %w", name, err)
		}
	}
	// Within its account a machine could still use what nats-server offers to every
	// account, such as creating streams.
	return &server.User{Username: name, Account: account, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}}, nil
}

// Check implements server.Authentication. nats-server could do that itself, but
// would check every connection anew whenever a machine is added. Check holds the
// lock until the connection has its permissions, so that one with a key that is
// revoked meanwhile is found.
func (s *Server) Check(c server.ClientAuthentication) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := c.GetOpts()
	user, ok := s.users[o.Nkey]
	if !ok || c.Kind() != server.CLIENT || !isSigned(o.Nkey, c.GetNonce(), o.Sig) {
		return false
	}
	c.RegisterUser(user)
	return true
}

// isSigned reports whether the owner of a key signed the nonce of this connection.
func isSigned(public string, nonce []byte, signature string) bool {
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(nonce) == 0 {
		return false
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(nonce, sig) == nil
}
