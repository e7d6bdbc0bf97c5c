package broker

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/hostio"
)

// Files in the folder of a server, beside those of nats-server.
const (
	secretsName = "fleet.json"
	lockName    = "fleet.lock"
	maxSecrets  = 16 << 20 // bytes: a hundred thousand machines
)

// secrets are what the server needs to be the same one after a restart.
type secrets struct {
	Port     int               `json:"port"`
	URL      string            `json:"url"`      // for Control, on this machine
	Room     int64             `json:"room"`     // bytes that the streams may reserve
	Key      []byte            `json:"tls_key"`  // seed of an Ed25519 key
	Control  string            `json:"control"`  // seed of the NKey of Control
	Machines map[string]string `json:"machines"` // the public NKey of each; the machine has the seed
}

// newSecrets makes those of a new server.
func newSecrets() (f secrets, err error) {
	f.Key = make([]byte, ed25519.SeedSize)
	rand.Read(f.Key)
	f.Control, _, err = newKey()
	return f, err
}

// newKey makes the NKey of a user.
func newKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("making a key: %w", err)
	}
	data, err := pair.Seed()
	if err == nil {
		public, err = pair.PublicKey()
	}
	return string(data), public, err
}

// readKey is the NKey of a seed.
func readKey(seed string) (pair nkeys.KeyPair, public string, err error) {
	if pair, err = nkeys.FromSeed([]byte(seed)); err == nil {
		public, err = pair.PublicKey()
	}
	return pair, public, err
}

func readSecrets(dir *hostio.Dir) (f secrets, err error) {
	data, err := dir.ReadFile(secretsName, maxSecrets)
	if err != nil {
		return f, err
	}
	if err = json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("decoding %q: %w", secretsName, err)
	}
	if len(f.Key) != ed25519.SeedSize || f.Control == "" {
		return f, fmt.Errorf("decoding %q: a key is missing", secretsName)
	}
	return f, nil
}

// public is the public key of the server in the form that is pinned.
func (f secrets) public() ([]byte, error) {
	return x509.MarshalPKIXPublicKey(ed25519.NewKeyFromSeed(f.Key).Public())
}

// pin is fleet.Pin of every certificate of the server.
func (f secrets) pin() string {
	data, err := f.public()
	if err != nil {
		panic(err) // Ed25519 keys can be encoded
	}
	sum := sha256.Sum256(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// link is that of Control.
func (f secrets) link() fleet.Link {
	return fleet.Link{URLs: []string{f.URL}, User: fleet.Control, Seed: f.Control, Pin: f.pin()}
}

// serverTLS makes a certificate for the key. Clients compare the key only, so that
// names and dates in it do not matter.
func serverTLS(seed []byte) (*tls.Config, error) {
	key := ed25519.NewKeyFromSeed(seed)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dmgbench-fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	data, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{data}, PrivateKey: key}}}, nil
}

// store is the folder of a server. It is locked while the server runs.
type store struct {
	dir     *hostio.Dir
	lock    *hostio.File
	mu      sync.Mutex
	secrets secrets
}

func openStore(folder string) (*store, error) {
	dir, err := hostio.OpenDir(folder)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir}
	s.lock, err = dir.Open(lockName, hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
	if err == nil {
		err = s.lock.TryLock()
	}
	if errors.Is(err, hostio.ErrLocked) {
		err = errors.New("another server uses the folder")
	}
	if err == nil {
		s.secrets, err = readSecrets(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.secrets, err = newSecrets()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) close() {
	if s.lock != nil {
		s.lock.Close()
	}
	s.dir.Close()
}

// update changes the secrets and writes them; on an error they are unchanged.
func (s *store) update(change func(*secrets)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.secrets
	if f.Machines = maps.Clone(f.Machines); f.Machines == nil {
		f.Machines = map[string]string{}
	}
	change(&f)
	data, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = s.dir.WriteFileAtomic(secretsName, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("storing the keys: %w", err)
	}
	s.secrets = f
	return nil
}

// room is how many bytes the streams may reserve together: those that they have on
// the disk and those that are free, less a part for others. It does not become less,
// as streams that exist have reserved theirs.
func (s *store) room() (int64, error) {
	free, _, _, err := s.dir.FreeSpace()
	if err != nil {
		return 0, err
	}
	if err := checkFree(free); err != nil {
		return 0, err
	}
	err = fs.WalkDir(os.DirFS(s.dir.Path()), ".", func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				free += info.Size()
			}
		}
		return nil // what cannot be read counts as used by others
	})
	return max(free-spare, s.secrets.Room), err
}

func checkFree(free int64) error {
	if free < spare {
		return fmt.Errorf("the disk has %d MiB free: want at least %d MiB", free>>20, spare>>20)
	}
	return nil
}
