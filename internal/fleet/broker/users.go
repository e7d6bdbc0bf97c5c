package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
)

// shared are what the account of the fleet offers to those of the machines, and how
// often it answers.
var shared = map[string]server.ServiceRespType{
	"$JS.API.CONSUMER.INFO.>":     server.Singleton,
	"$JS.API.CONSUMER.MSG.NEXT.>": server.Streamed,
	"$JS.API.DIRECT.GET.>":        server.Singleton,
	"$JS.API.STREAM.>":            server.Singleton,
	"$JS.ACK.>":                   server.Singleton,
	"$O.>":                        server.Singleton,
	"fleet.result.>":              server.Singleton,
	"fleet.status.>":              server.Singleton,
	"fleet.log.>":                 server.Singleton,
}

// users decides who may connect. nats-server could do that itself, but would check
// every connection anew whenever a machine is added.
//
// Each machine has an account of its own, which imports the subjects that it may
// use. Permissions would not be enough: the server does not check the subject that
// a request names for the answer, so that a machine could have its own data
// delivered as the job or the result of another one.
type users struct {
	ns    *server.Server
	mu    sync.RWMutex
	byKey map[string]*server.User // by public NKey
}

// share offers what machines may use, and adds all users. The lock is held since
// before the server listened, as a client that is refused gives up.
func (u *users) share(f secrets) error {
	hub := u.ns.GlobalAccount()
	for subject, answers := range shared {
		if err := hub.AddServiceExportWithResponse(subject, answers, nil); err != nil {
			return fmt.Errorf("sharing %q: %w", subject, err)
		}
	}
	if err := hub.AddStreamExport(fleet.CancelSubject("*"), nil); err != nil {
		return fmt.Errorf("sharing %q: %w", fleet.CancelSubject("*"), err)
	}
	_, public, err := readKey(f.Control)
	if err != nil {
		return err
	}
	u.byKey = map[string]*server.User{public: {Username: fleet.Control}}
	for name, key := range f.Machines {
		if u.byKey[key], err = u.machine(name); err != nil {
			return err
		}
	}
	return nil
}

// machine is the user of a machine. Its account is made if it is missing.
func (u *users) machine(name string) (*server.User, error) {
	publish, subscribe := fleet.Permissions(name)
	hub := u.ns.GlobalAccount()
	account, isNew := u.ns.LookupOrRegisterAccount(name)
	if isNew {
		err := account.AddStreamImport(hub, fleet.CancelSubject(name), "")
		for _, subject := range publish {
			err = errors.Join(err, account.AddServiceImport(hub, subject, subject))
		}
		if err != nil {
			return nil, fmt.Errorf("making the account of machine %q: %w", name, err)
		}
	}
	return &server.User{Username: name, Account: account, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}}, nil
}

// Check implements server.Authentication. It holds the lock until the connection
// has its permissions, so that one whose key is revoked meanwhile is found.
func (u *users) Check(c server.ClientAuthentication) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	o := c.GetOpts()
	user, ok := u.byKey[o.Nkey]
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

// replace makes public the key of a machine and the old one invalid; either may be "".
func (u *users) replace(name, old, public string) (err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byKey, old)
	if public != "" {
		u.byKey[public], err = u.machine(name)
	}
	return err
}
