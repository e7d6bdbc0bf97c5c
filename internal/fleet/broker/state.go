package broker

import (
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
	"time"

	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/hostio"
)

// Files in the folder of a server, beside those of nats-server.
const (
	stateName = "fleet.json"
	lockName  = "fleet.lock"
	maxState  = 16 << 20 // bytes: a hundred thousand machines
)

// state is what the server needs to be the same one after a restart.
type state struct {
	Port     int               `json:"port"`
	Room     int64             `json:"room"`     // bytes that the streams may reserve
	Runs     int64             `json:"runs"`     // bytes of the object store of a machine
	Key      []byte            `json:"tls_key"`  // seed of an Ed25519 key
	Control  fleet.Link        `json:"control"`  // for programs on this machine
	Machines map[string]string `json:"machines"` // the public NKey of each, which has the seed
}

// newState is that of a new server.
func newState() (f state, err error) {
	f.Key = make([]byte, ed25519.SeedSize)
	rand.Read(f.Key)
	f.Control.User = fleet.Control
	if f.Control.Seed, _, err = newKey(); err == nil {
		_, f.Control.Pin, err = certificate(f.Key)
	}
	return f, err
}

// newKey makes the NKey of a user.
func newKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	data, err := pair.Seed()
	if err == nil {
		public, err = pair.PublicKey()
	}
	return string(data), public, err
}

// certificate makes one for the key, and its pin. Clients compare the key only, so
// that names and dates in it do not matter.
func certificate(seed []byte) (*tls.Config, string, error) {
	key := ed25519.NewKeyFromSeed(seed)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	data, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err == nil {
		c, err = x509.ParseCertificate(data)
	}
	if err != nil {
		return nil, "", fmt.Errorf("making a certificate: %w", err)
	}
	own := tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}}, fleet.Pin(c), nil
}

func readState(dir *hostio.Dir) (f state, err error) {
	data, err := dir.ReadFile(stateName, maxState)
	if err != nil {
		return f, err
	}
	if err = json.Unmarshal(data, &f); err == nil && len(f.Key) != ed25519.SeedSize {
		err = errors.New("the key is missing")
	}
	if err != nil {
		return f, fmt.Errorf("decoding %q: %w", stateName, err)
	}
	return f, nil
}

// openFolder locks the folder and reads or makes the state.
func (s *Server) openFolder(folder string) (err error) {
	if s.dir, err = hostio.OpenDir(folder); err != nil {
		return err
	}
	s.lock, err = s.dir.Open(lockName, hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
	if err == nil {
		err = s.lock.TryLock()
	}
	if errors.Is(err, hostio.ErrLocked) {
		return errors.New("another server uses the folder")
	}
	if err != nil {
		return err
	}
	if s.state, err = readState(s.dir); errors.Is(err, fs.ErrNotExist) {
		s.state, err = newState()
	}
	if err != nil {
		return err
	}
	free, _, _, err := s.dir.FreeSpace()
	if err == nil {
		s.state.Room, err = room(free, s.state.Room)
	}
	return err
}

// room is how many bytes the streams may reserve together, when so many are free on
// the disk and they could have so many before. It does not become less, as streams
// that exist have reserved theirs.
func room(free, before int64) (int64, error) {
	if free < spare {
		return 0, fmt.Errorf("the disk has %d MiB free: want at least %d MiB", free>>20, spare>>20)
	}
	return max(free-spare, before), nil
}

// update changes the state and writes it; on an error it is unchanged.
func (s *Server) update(change func(*state)) error {
	f := s.state // change must not reach the map that others may read
	if f.Machines = maps.Clone(f.Machines); f.Machines == nil {
		f.Machines = map[string]string{}
	}
	change(&f)
	data, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = s.dir.WriteFileAtomic(stateName, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("storing the keys: %w", err)
	}
	s.state = f
	return nil
}
