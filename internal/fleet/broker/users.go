package broker

import (
	"encoding/base64"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
)

// users decides who may connect. nats-server could do that itself, but would check
// every connection anew whenever a machine is added.
type users struct {
	mu   sync.RWMutex
	name map[string]string // of a user, by public NKey
}

func newUsers(f secrets) (*users, error) {
	pair, err := nkeys.FromSeed([]byte(f.Control))
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	u := &users{name: map[string]string{public: fleet.Control}}
	for name, key := range f.Machines {
		u.name[key] = name
	}
	return u, nil
}

// Check implements server.Authentication. It holds the lock until the connection
// has its permissions, so that one whose key is revoked meanwhile is found.
func (u *users) Check(c server.ClientAuthentication) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	o := c.GetOpts()
	name, ok := u.name[o.Nkey]
	if !ok || c.Kind() != server.CLIENT || !isSigned(o.Nkey, c.GetNonce(), o.Sig) {
		return false
	}
	user := &server.User{Username: name}
	if name != fleet.Control {
		publish, subscribe := fleet.Permissions(name)
		user.Permissions = &server.Permissions{Publish: &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: subscribe}}
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

// replace makes public the key of a user and the old one invalid; either may be "".
func (u *users) replace(name, old, public string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.name, old)
	if public != "" {
		u.name[public] = name
	}
}

// connect connects within the process.
func (u *users) connect(ns *server.Server, seed string) (*nats.Conn, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect("", nats.InProcessServer(ns), nats.Nkey(public, pair.Sign), nats.MaxReconnects(-1),
		nats.CustomInboxPrefix(fleet.Inbox(fleet.Control)))
}
