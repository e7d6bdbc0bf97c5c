// Package broker is the embedded server of a fleet.
package broker

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/hostio"
)

// Version is that of the embedded server.
const Version = server.VERSION

const (
	readyTimeout = 2 * time.Minute // of a server that reads a large store
	readyPoll    = 50 * time.Millisecond
	authTimeout  = 20       // seconds: a thousand agents may come back at once
	headers      = 16 << 10 // bytes that a message may have beside its content
	spare        = 1 << 30  // bytes of the disk that are left to others
)

// Options are what Serve can be told.
type Options struct {
	Listen    string   // host:port; "" is 127.0.0.1 and the port of last time, else a free one
	Advertise []string // addresses for join strings; nil finds those of this machine when Listen is not loopback
	Limits    fleet.Limits
	Log       io.Writer // lines of the server: warnings and errors; nil drops them
}

// Server is a running server of a fleet.
type Server struct {
	limits  fleet.Limits
	store   *store
	users   *users
	ns      *server.Server
	nc      *nats.Conn // of Control, within the process
	js      jetstream.JetStream
	control fleet.Link
	urls    []string
	room    int64 // bytes that the streams may reserve
}

// Serve starts the server of the fleet in folder, which it makes if missing, and
// returns when it accepts connections. Only one server may use a folder.
func Serve(folder string, o Options) (*Server, error) {
	s, err := serve(folder, o)
	if err != nil {
		return nil, fmt.Errorf("serving the fleet in %q: %w", folder, err)
	}
	return s, nil
}

func serve(folder string, o Options) (s *Server, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s = &Server{limits: o.Limits, users: &users{}}
	if s.store, err = openStore(folder); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	host, port, err := s.listenAddress(o.Listen)
	if err != nil {
		return s, err
	}
	if err := s.start(folder, host, port, o.Log); err != nil {
		return s, err
	}
	port = s.ns.Addr().(*net.TCPAddr).Port
	if s.urls, err = joinURLs(host, port, o.Advertise); err != nil {
		return s, err
	}
	err = s.store.update(func(f *secrets) { f.Port, f.URL, f.Room = port, localURL(host, port), s.room })
	if err != nil {
		return s, err
	}
	s.control = s.store.secrets.link()
	return s, s.connect()
}

// listenAddress is where to listen: with port 0 the port stays that of last time,
// as it is in the join strings of the machines.
func (s *Server) listenAddress(listen string) (host string, port int, err error) {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, text, err := net.SplitHostPort(listen)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: want host:port", listen)
	}
	if port == 0 {
		port = s.store.secrets.Port
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// start starts nats-server and waits until it accepts connections.
func (s *Server) start(folder, host string, port int, log io.Writer) error {
	tls, err := serverTLS(s.store.secrets.Key)
	if err != nil {
		return err
	}
	s.users.mu.Lock()
	defer s.users.mu.Unlock()
	if s.room, err = s.store.room(); err != nil {
		return err
	}
	lines := newLogger(log)
	s.ns, err = server.NewServer(&server.Options{ServerName: "dmgbench-fleet", Host: host, Port: port, NoSigs: true,
		TLSConfig: tls, TLSTimeout: authTimeout, AuthTimeout: authTimeout,
		CustomClientAuthentication: s.users, AlwaysEnableNonce: true,
		MaxPayload: fleet.MaxMessage + headers, PingInterval: time.Hour, DisableShortFirstPing: true,
		JetStream: true, StoreDir: folder, JetStreamMaxStore: s.room, JetStreamMaxMemory: 1 << 20, SyncAlways: true})
	if err != nil {
		return err
	}
	s.ns.SetLoggerV2(lines, false, false, false)
	go s.ns.Start()
	for deadline := time.Now().Add(readyTimeout); !s.ns.ReadyForConnections(readyPoll); {
		select {
		case err := <-lines.fatal:
			return err
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server is not ready after %v", readyTimeout)
		}
	}
	s.users.ns = s.ns
	return s.users.share(s.store.secrets)
}

// connect makes the streams, and takes requests of Control.
func (s *Server) connect() (err error) {
	pair, public, err := readKey(s.control.Seed)
	if err != nil {
		return err
	}
	s.nc, err = nats.Connect("", nats.InProcessServer(s.ns), nats.Nkey(public, pair.Sign), nats.MaxReconnects(-1),
		nats.CustomInboxPrefix(fleet.Inbox(fleet.Control)))
	if err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.nc); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := fleet.Setup(ctx, s.js, s.limits); err != nil {
		return err
	}
	_, err = s.nc.Subscribe(fleet.AdminSubject("*"), s.answer)
	return err
}

// Control is the link of the user that may do everything.
func (s *Server) Control() fleet.Link { return s.control }

// Addresses are those at which machines can reach the server, as URLs.
func (s *Server) Addresses() []string { return s.urls }

// Close stops the server and waits until its files are closed.
func (s *Server) Close() {
	if s.nc != nil {
		s.nc.Close()
	}
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
	}
	s.store.close()
}

// ReadControl reads the link of the user that may do everything from the folder of
// a server.
func ReadControl(folder string) (fleet.Link, error) {
	dir, err := hostio.OpenDir(folder)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("reading the keys of the server: %w", err)
	}
	defer dir.Close()
	f, err := readSecrets(dir)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("reading the keys of the server: %w (start `dmgbench-fleet serve` there first)", err)
	}
	return f.link(), nil
}
