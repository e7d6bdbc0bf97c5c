// Package broker is the embedded server of a fleet: a nats-server with JetStream on
// a folder, with a user for Control and one for each machine.
//
// The folder has the keys of the server and of Control, and the public keys of the
// machines. The seed of a machine's key is in its join string only.
package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
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
	timeout      = 2 * time.Minute // to make the streams, or for a request of Control
	loginTimeout = 20              // seconds: a thousand agents may come back at once
	headers      = 16 << 10        // bytes that a message may have beside its content
	spare        = 1 << 30         // bytes of the disk that are left to others
	enough       = 64 << 20        // bytes of the disk with which a server that could not write starts again
	subjects     = 100             // of one connection; an agent has four
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
	dir     *hostio.Dir
	unlock  func() // the folder
	ns      *server.Server
	urls    []string
	control fleet.Link
	nc      *nats.Conn // of Control
	js      jetstream.JetStream
	lines   *logger

	mu      sync.Mutex
	state   state
	agents  map[string]connection    // the last of each machine
	refused map[string]fleet.Refusal // by the name of the machine
	woken   map[string]time.Time     // when a message was sent to find out whether the connection is alive
}

// Run serves the fleet in folder until ctx ends. A server that could not write stores
// nothing more: Run starts it again when the disk has room. It calls ready at each
// start.
func Run(ctx context.Context, folder string, o Options, ready func(*Server)) error {
	for isFirst := true; ctx.Err() == nil; isFirst = false {
		s, err := Serve(folder, o)
		if err != nil && isFirst {
			return err
		}
		if err != nil { // the disk may be full again
			newLogger(o.Log).Print(err)
			pause(ctx)
			continue
		}
		ready(s)
		for ctx.Err() == nil && !s.shouldRestart() {
			s.endFloods()
			pause(ctx)
		}
		s.Close()
	}
	return nil
}

// checkInterval is the time between two looks at the disk and at the connections.
const checkInterval = 2 * time.Second

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(checkInterval):
	}
}

// shouldRestart reports whether the server could not write, and now could.
func (s *Server) shouldRestart() bool {
	if s.lines.failure.Load() == nil {
		return false
	}
	free, _, _, err := s.dir.FreeSpace()
	return err == nil && free >= enough
}

// Serve starts the server of the fleet in folder, which it makes if missing, and
// returns when it accepts connections. Only one server may use a folder.
func Serve(folder string, o Options) (*Server, error) {
	s := &Server{limits: o.Limits, lines: newLogger(o.Log), agents: map[string]connection{},
		refused: map[string]fleet.Refusal{}, woken: map[string]time.Time{}}
	if err := s.serve(folder, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("serving the fleet in %q: %w", folder, err)
	}
	return s, nil
}

// serve stores the port and the key of the server for the next start, and for
// programs of its user.
func (s *Server) serve(folder string, o Options) error {
	if err := s.openFolder(folder); err != nil {
		return err
	}
	own, err1 := certificate(s.state.Key)
	host, port, err2 := parseListen(o.Listen, s.state.Port)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	if err := s.start(host, port, own); err != nil {
		return err
	}
	port = s.ns.Addr().(*net.TCPAddr).Port
	s.urls, err1 = joinURLs(host, port, o.Advertise)
	s.control = s.state.Control
	s.control.Pin, s.control.URLs = fleet.Pin(own.Leaf), []string{s.ns.ClientURL()}
	err2 = s.update(func(f *state) { f.Port, f.Control = port, s.control })
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	return s.setUp()
}

// start starts nats-server. It returns when the server accepts connections, which
// takes as long as it reads its streams.
func (s *Server) start(host string, port int, own tls.Certificate) (err error) {
	s.ns, err = server.NewServer(&server.Options{ServerName: "dmgbench-fleet", Host: host, Port: port, NoSigs: true,
		TLSConfig:  &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}},
		TLSTimeout: loginTimeout, AuthTimeout: loginTimeout,
		CustomClientAuthentication: s, AlwaysEnableNonce: true,
		MaxPayload: fleet.MaxMessage + headers, MaxSubs: subjects,
		// Nothing may be sent to a machine while it times a file.
		PingInterval: time.Hour, DisableShortFirstPing: true,
		// An agent deletes a run when it is stored here, so that it has to be on the disk.
		JetStream: true, SyncAlways: true, StoreDir: s.dir.Path(), JetStreamMaxStore: s.state.Room,
		JetStreamMaxMemory: 1 << 20})
	if err != nil {
		return err
	}
	s.ns.SetLoggerV2(s.lines, false, false, false)
	if err = s.share(); err != nil {
		return err
	}
	s.ns.Start()
	if reason := s.lines.fatal.Load(); reason != nil {
		return fmt.Errorf("starting nats-server: %s", reason)
	}
	return nil
}

// setUp makes the streams, and takes requests of Control.
func (s *Server) setUp() error {
	nc, js, err := fleet.Connect(s.control, false, nil)
	if err != nil {
		return err
	}
	s.mu.Lock() // agents connect already
	s.nc, s.js = nc, js
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err = fleet.Setup(ctx, s.js, s.limits); err == nil {
		_, err = s.nc.Subscribe(fleet.AdminSubject("*"), s.answer)
	}
	return errors.Join(err, s.nc.Flush())
}

// Control is the link of the user that may do everything.
func (s *Server) Control() fleet.Link { return s.control }

// Addresses are those at which machines can reach the server, as URLs.
func (s *Server) Addresses() []string { return s.urls }

// Close stops the server and waits until its files are closed.
func (s *Server) Close() {
	s.nc.Close()
	s.ns.Shutdown()
	if s.dir != nil { // then the folder is locked, too
		s.dir.Close()
		s.unlock()
	}
}

// ReadControl reads the link of the user that may do everything from the folder of
// a server.
func ReadControl(folder string) (fleet.Link, error) {
	f, err := readState(folder)
	if err != nil {
		err = fmt.Errorf("reading the key of the server: %w (start `dmgbench-fleet serve` there first)", err)
	}
	return f.Control, err
}
