package broker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
)

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
	return fleet.Link{URLs: s.urls, User: name, Seed: seed, Pin: s.control.Pin}, err
}

// setKey stores the public key of a machine, or with "" that it has none, and closes
// the connections that use the old one. What the machine stored stays.
func (s *Server) setKey(name, public string) error {
	if err := fleet.CheckMachine(name); err != nil {
		return err // Control keeps its key
	}
	err := s.update(func(f *state) {
		maps.DeleteFunc(f.Users, func(_, user string) bool { return user == name })
		if public != "" {
			f.Users[public] = name
		}
	})
	if err != nil {
		return err
	}
	// From here on nobody can connect with the old key, and nobody has the new one yet.
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.ns.DisconnectClientByID(s.agents[name].id) // an error means that it is gone already
	delete(s.refused, name)
	return nil
}

// report is what Control shows of the server and of the machines.
func (s *Server) report() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := fleet.Report{Keys: map[string]bool{}, Refused: s.refused}
	for _, name := range s.state.Users {
		r.Keys[name] = name != fleet.Control
	}
	if reason := s.lines.failure.Load(); reason != nil {
		r.Error = fmt.Sprintf("nothing is stored: %s", reason)
	}
	return json.Marshal(r)
}

// answer carries out a request of Control. Nobody else may publish to its subject.
func (s *Server) answer(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	answer := nats.NewMsg(m.Reply)
	switch name := string(m.Data); m.Subject {
	case fleet.AdminSubject(fleet.Add):
		var l fleet.Link
		l, err = s.AddMachine(ctx, name)
		answer.Data = []byte(l.String())
	case fleet.AdminSubject(fleet.List):
		answer.Data, err = s.report()
	case fleet.AdminSubject(fleet.Revoke):
		err = s.setKey(name, "")
	case fleet.AdminSubject(fleet.Remove):
		if err = s.setKey(name, ""); err == nil {
			err = fleet.RemoveMachine(ctx, s.js, name)
		}
	default:
		err = fmt.Errorf("unknown request %q", m.Subject)
	}
	if err != nil {
		answer.Header.Set(fleet.ErrorHeader, err.Error())
	}
	_ = s.nc.PublishMsg(answer) // without an answer the request ends with a timeout
}

// shared are the subjects that the account with the streams offers to those of the
// machines; each imports its own only. One list for all keeps the time in which a
// machine connects for the first time the same, however many there are.
var shared = []string{"$JS.API.CONSUMER.INFO.>", "$JS.API.DIRECT.GET.>", "$JS.API.STREAM.>", "$JS.ACK.>", "$O.>",
	"fleet.>"}

// share has the account of the streams offer them.
func (s *Server) share() error {
	hub := s.ns.GlobalAccount()
	// A request for a job has several answers: heartbeats, the job, or that there is none.
	err := hub.AddServiceExportWithResponse("$JS.API.CONSUMER.MSG.NEXT.>", server.Streamed, nil)
	for _, subject := range shared {
		err = errors.Join(err, hub.AddServiceExport(subject, nil))
	}
	return errors.Join(err, hub.AddStreamExport(fleet.CancelSubject("*"), nil))
}

// newUser is Control, or the user of a machine. Each of these has an account of its
// own, which imports the subjects that it may use. Permissions would not be enough:
// the server does not check the subject that a request names for the answer, so
// that a machine could have its own data delivered as the job or the result of
// another one. With an account of its own, the answer stays in that account. It
// is made when the machine connects for the first time.
func (s *Server) newUser(name string) (user *server.User, err error) {
	if name == fleet.Control {
		return &server.User{Username: name}, nil
	}
	publish, subscribe := fleet.Permissions(name)
	hub := s.ns.GlobalAccount()
	account, isNew := s.ns.LookupOrRegisterAccount(name)
	if isNew {
		err = account.AddStreamImport(hub, fleet.CancelSubject(name), "")
		for _, subject := range publish {
			err = errors.Join(err, account.AddServiceImport(hub, subject, subject))
		}
	}
	// Within its account a machine could still use what nats-server offers to every
	// account, such as creating streams.
	return &server.User{Username: name, Account: account, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}}, err
}

// Check implements server.Authentication. nats-server could do that itself, but
// would check every connection anew whenever a machine is added. Check holds the
// lock until the connection has its permissions, so that one with a key that is
// revoked meanwhile is found.
func (s *Server) Check(c server.ClientAuthentication) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := c.GetOpts()
	name, ok := s.state.Users[o.Nkey]
	if !ok || c.Kind() != server.CLIENT || !isSigned(o.Nkey, c.GetNonce(), o.Sig) {
		return false
	}
	if name != fleet.Control && !s.admit(name, c) {
		return false
	}
	user, err := s.newUser(name)
	if err != nil {
		s.ns.Errorf("making the account of %q: %v", name, err)
		return false
	}
	c.RegisterUser(user)
	return true
}

// connection is one of an agent. The name that the client library gives it is
// another one for each process.
type connection struct {
	id   uint64
	name string
}

// wakeInterval is the least time between two messages to an agent that may be
// timing a file.
const wakeInterval = time.Minute

// admit reports whether an agent may connect: a machine has one connection. A new one
// of the same process replaces the old one, of which that process knows that it is
// lost. An agent that another process replaces may be on a computer that lost its
// power, whose connection is still open on this side only: a message to it ends the
// connection then.
func (s *Server) admit(name string, c server.ClientAuthentication) bool {
	old, isKnown := s.agents[name]
	next := connection{c.(interface{ GetID() uint64 }).GetID(), c.GetOpts().Name}
	if s.isFlooding(name) {
		return false
	}
	isOpen := isKnown && s.ns.GetClient(old.id) != nil
	if isOpen && old.name != next.name {
		refusal := fleet.Refusal{Address: "an unknown address", Time: time.Now().UTC()}
		if address, ok := c.RemoteAddress().(*net.TCPAddr); ok { // it may be closed by now
			refusal.Address = address.IP.String()
		}
		s.refused[name] = refusal
		if time.Since(s.woken[name]) > wakeInterval {
			s.woken[name] = time.Now()
			_ = s.nc.Publish(fleet.CancelSubject(name), []byte(fleet.Wake))
		}
		return false
	}
	if isOpen {
		_ = s.ns.DisconnectClientByID(old.id)
	}
	s.agents[name] = next
	return true
}

// maxRequests is how many requests of a machine may wait for an answer. The client
// library has at most 4000, when it stores a run folder. The server remembers each for
// two minutes if it has no answer, and so would need gigabytes for the requests that
// one machine can send in this time.
const maxRequests = 10_000

func (s *Server) isFlooding(name string) bool {
	account, err := s.ns.LookupAccount(name)
	return err == nil && account.NumPendingReverseResponses() > maxRequests
}

// endFloods closes the connections of machines with too many requests. They are
// refused until the server has forgotten these.
func (s *Server) endFloods() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.agents {
		if s.isFlooding(name) && s.ns.DisconnectClientByID(c.id) == nil {
			s.ns.Warnf("machine %q is disconnected: over %d of its requests wait for an answer", name, maxRequests)
		}
	}
}

// isSigned reports whether the owner of a key signed the nonce of this connection.
func isSigned(public string, nonce []byte, signature string) bool {
	sig, err1 := base64.RawURLEncoding.DecodeString(signature)
	key, err2 := nkeys.FromPublicKey(public)
	return err1 == nil && err2 == nil && len(nonce) > 0 && key.Verify(nonce, sig) == nil
}
