package fleet

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// joinPrefix starts a join string and has its version.
const joinPrefix = "dmgbench-fleet-1-"

// dialTime is for a connection, and for the answer to a request that has no deadline.
const dialTime = 10 * time.Second

// Control is the user that may do everything in the account of the fleet. No
// machine has this name, as it is not lower-case.
const Control = "CONTROL"

// Link is how a program reaches the fleet. It is a secret: whoever has it is that
// user.
type Link struct {
	URLs []string `json:"urls"`
	User string   `json:"user"`           // the name of a machine, or Control
	Seed string   `json:"seed,omitempty"` // of the user's NKey
	// Pin is the SHA-256 of the server's public key, in base64; "" trusts the system's
	// authorities.
	Pin string `json:"pin,omitempty"`

	Credentials string `json:"-"` // path of a credentials file, for a server that is not ours
}

// String is the join string of the link.
func (l Link) String() string {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return joinPrefix + base64.RawURLEncoding.EncodeToString(data)
}

// IsJoinString reports whether a text begins as a join string does.
func IsJoinString(s string) bool { return strings.HasPrefix(s, joinPrefix) }

// ParseLink reads a join string. Errors do not quote it.
func ParseLink(s string) (l Link, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), joinPrefix)
	if !ok {
		return l, fmt.Errorf("reading the join string: want one that begins with %q", joinPrefix)
	}
	data, err := base64.RawURLEncoding.DecodeString(rest)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return l, errors.New("reading the join string: it is damaged; copy it again as a whole")
	}
	if len(l.URLs) == 0 || l.Seed == "" {
		return l, errors.New("reading the join string: it has no address or no key")
	}
	return l, nil
}

// Pin is the digest of a server's public key that clients compare.
func Pin(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Connect connects to the fleet and goes on trying when the connection is lost.
// onState, if not nil, gets an error when it is lost or cannot be made, and nil when
// it is there. An agent passes retry: it also goes on trying if the first attempt
// fails, or the server refuses it. The embedded server admits one process for each
// machine, by the random name of its connections.
//
// Pings are an hour apart, and TCP sends none, as nothing may be sent while a file
// is timed.
func Connect(l Link, retry bool, onState func(error)) (*nats.Conn, jetstream.JetStream, error) {
	o := []nats.Option{nats.Name("dmgbench-fleet " + l.User + " " + rand.Text()), nats.CustomInboxPrefix(Inbox(l.User)),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.ReconnectJitter(time.Second, time.Second),
		nats.RetryOnFailedConnect(retry), nats.PingInterval(time.Hour), nats.Timeout(dialTime),
		nats.SetCustomDialer(&net.Dialer{Timeout: dialTime, KeepAlive: -1})}
	if retry {
		o = append(o, nats.IgnoreAuthErrorAbort())
	}
	if onState != nil {
		onError := func(_ *nats.Conn, err error) { onState(cmp.Or(err, nats.ErrDisconnected)) }
		onConnect := func(*nats.Conn) { onState(nil) }
		o = append(o, nats.DisconnectErrHandler(onError), nats.ReconnectErrHandler(onError),
			nats.ReconnectHandler(onConnect), nats.ConnectHandler(onConnect))
	}
	if l.Seed != "" {
		pair, err := nkeys.FromSeed([]byte(l.Seed))
		if err != nil {
			return nil, nil, errors.New("connecting to the fleet: the key is damaged")
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, nil, fmt.Errorf("connecting to the fleet: %w", err)
		}
		o = append(o, nats.Nkey(public, pair.Sign))
	}
	if l.Credentials != "" {
		o = append(o, nats.UserCredentials(l.Credentials))
	}
	if l.Pin != "" {
		o = append(o, nats.Secure(pinned(l.Pin)))
	}
	nc, err := nats.Connect(strings.Join(l.URLs, ","), o...)
	if err != nil {
		shown := userInfo.ReplaceAllString(strings.Join(l.URLs, ", "), "//")
		return nil, nil, fmt.Errorf("connecting to %s: %w", shown, err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(dialTime)) // fails with bad options only
	return nc, js, err
}

// userInfo is the user and the password in a URL, which errors do not print.
var userInfo = regexp.MustCompile(`//[^/,]*@`)

// pinned accepts the one server that has the key, whatever its name and dates.
func pinned(pin string) *tls.Config {
	verify := func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || Pin(s.PeerCertificates[0]) != pin {
			return errors.New("the server has another key than the join string")
		}
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: verify}
}
