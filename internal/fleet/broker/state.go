package broker

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// stateName is the file of the state in the folder of a server, beside those of
// nats-server.
const stateName = "fleet.json"

// state is what the server needs to be the same one after a restart.
type state struct {
	Port    int                `json:"port"`
	Room    int64              `json:"room"`    // bytes that the streams may reserve
	Key     ed25519.PrivateKey `json:"tls_key"` // join strings have its digest
	Control fleet.Link         `json:"control"` // for programs on this machine
	Users   map[string]string  `json:"users"`   // the name of each by its public NKey
}

// newState is that of a new server. Its URLs and its pin follow when it has started.
func newState() (f state, err error) {
	_, f.Key, _ = ed25519.GenerateKey(nil)
	seed, public, err := newKey()
	f.Control = fleet.Link{User: fleet.Control, Seed: seed}
	f.Users = map[string]string{public: fleet.Control}
	return f, err
}

// newKey makes the NKey of a user. Who has the seed is that user; the public key
// only checks this, so that it is enough for the server.
func newKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	data, err1 := pair.Seed()
	public, err2 := pair.PublicKey()
	return string(data), public, cmp.Or(err1, err2)
}

// certificate makes one for the key. Clients compare the key only, so that names
// and dates in it do not matter.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	data, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err == nil {
		c, err = x509.ParseCertificate(data)
	}
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key, Leaf: c}, err
}

// readState reads the file of a server. What cannot be read is not replaced, as all
// join strings depend on it.
func readState(folder string) (f state, err error) {
	data, err := os.ReadFile(filepath.Join(folder, stateName))
	if err != nil {
		return f, err
	}
	if err = json.Unmarshal(data, &f); err != nil {
		err = fmt.Errorf("decoding %q: %w", stateName, err)
	}
	return f, err
}

// openFolder makes and locks the folder, and reads or makes the state. The lock ends
// with the process.
func (s *Server) openFolder(folder string) (err error) {
	if s.unlock, err = host.Lock(folder); errors.Is(err, host.ErrBusy) {
		return errors.New("another server uses the folder")
	}
	if err == nil {
		s.dir, err = hostio.OpenDir(folder)
	}
	if err != nil {
		return err
	}
	if s.state, err = readState(folder); errors.Is(err, fs.ErrNotExist) {
		s.state, err = newState()
	}
	free, _, _, freeErr := s.dir.FreeSpace()
	if err = cmp.Or(err, freeErr); err == nil {
		s.state.Room, err = room(free, s.state.Room)
	}
	return err
}

// room is how many bytes the streams may reserve together, when so many are free on
// the disk and they could have so many before. It does not become less, as streams
// that exist have reserved theirs, and what they have can be read from a full disk.
func room(free, before int64) (int64, error) {
	if free < spare && before == 0 {
		return 0, fmt.Errorf("the disk has %d MiB free: want at least %d MiB", free>>20, spare>>20)
	}
	return max(free-spare, before), nil
}

// update changes the state and writes it; on an error it is unchanged. The map of
// users is copied, as change must not reach the one that stays.
func (s *Server) update(change func(*state)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.state
	f.Users = maps.Clone(f.Users)
	change(&f)
	data, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = s.dir.WriteFileAtomic(stateName, data, 0o600)
	}
	if err == nil {
		s.state = f
	}
	return err
}
