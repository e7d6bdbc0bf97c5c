// Package broker is the embedded server of a fleet: a nats-server with JetStream on
// a folder, with a user for Control and one for each machine.
//
// The folder has the keys of the server and of Control, and the public keys of the
// machines. The seed of a machine's key is in its join string only.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	readyTimeout = 2 * time.Minute // of a server that reads a large store
	loginTimeout = 20              // seconds: a thousand agents may come back at once
	headers      = 16 << 10        // bytes that a message may have beside its content
	spare        = 1 << 30         // bytes of the disk that are left to others
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
	lock    *hostio.File // of the folder
	ns      *server.Server
	urls    []string
	control fleet.Link
	nc      *nats.Conn // of Control
	js      jetstream.JetStream

	mu    sync.RWMutex
	state state
	users map[string]*server.User // by public NKey
}

// Serve starts the server of the fleet in folder, which it makes if missing, and
// returns when it accepts connections. Only one server may use a folder.
func Serve(folder string, o Options) (*Server, error) {
	s := &Server{limits: o.Limits, users: map[string]*server.User{}}
	if err := s.serve(folder, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("serving the fleet in %q: %w", folder, err)
	}
	return s, nil
}

func (s *Server) serve(folder string, o Options) error {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = s.openFolder(folder)
	}
	if err != nil {
		return err
	}
	host, port, err := parseListen(o.Listen, s.state.Port)
	if err == nil {
		err = s.start(host, port, o.Log)
	}
	if err != nil {
		return err
	}
	port = s.ns.Addr().(*net.TCPAddr).Port
	if s.urls, err = joinURLs(host, port, o.Advertise); err != nil {
		return err
	}
	if isAny(host) { // Control is on this machine
		host = "127.0.0.1"
	}
	if err = s.update(func(f *state) { f.Port, f.Control.URLs = port, []string{toURL(host, port)} }); err != nil {
		return err
	}
	s.control = s.state.Control
	return s.setUp()
}

// start starts nats-server and waits until it accepts connections.
func (s *Server) start(host string, port int, log io.Writer) error {
	config, _, err := certificate(s.state.Key)
	if err != nil {
		return err
	}
	s.ns, err = server.NewServer(&server.Options{ServerName: "dmgbench-fleet", Host: host, Port: port, NoSigs: true,
		TLSConfig: config, TLSTimeout: loginTimeout, AuthTimeout: loginTimeout,
		CustomClientAuthentication: s, AlwaysEnableNonce: true,
		MaxPayload: fleet.MaxMessage + headers,
		// Nothing may be sent to a machine while it times a file.
		PingInterval: time.Hour, DisableShortFirstPing: true,
		// An agent deletes a run when it is stored here, so that it has to be on the disk.
		JetStream: true, SyncAlways: true, StoreDir: s.dir.Path(), JetStreamMaxStore: s.state.Room,
		JetStreamMaxMemory: 1 << 20})
	if err != nil {
		return err
	}
	lines := newLogger(log)
	s.ns.SetLoggerV2(lines, false, false, false)
	s.mu.Lock() // a client that is refused before its account is there gives up
	defer s.mu.Unlock()
	go s.ns.Start()
	ready := make(chan bool, 1)
	go func() { ready <- s.ns.ReadyForConnections(readyTimeout) }()
	select {
	case err := <-lines.fatal:
		return err
	case ok := <-ready:
		if !ok {
			return fmt.Errorf("the server is not ready after %v", readyTimeout)
		}
	}
	return s.addUsers()
}

// setUp makes the streams, and takes requests of Control.
func (s *Server) setUp() (err error) {
	if s.nc, s.js, err = fleet.Connect(s.control, false, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := fleet.Setup(ctx, s.js, s.limits); err != nil {
		return err
	}
	if err := s.resize(ctx); err != nil {
		return err
	}
	_, err = s.nc.Subscribe(fleet.AdminSubject("*"), s.answer)
	return errors.Join(err, s.nc.Flush())
}

// resize gives the object stores of all machines the present limit. It does so only
// when that is another one, as the time depends on the number of machines.
func (s *Server) resize(ctx context.Context) error {
	if s.state.Runs == s.limits.Runs {
		return nil
	}
	for name := range s.state.Machines {
		if err := fleet.AddMachine(ctx, s.js, name, s.limits); err != nil {
			return err
		}
	}
	return s.update(func(f *state) { f.Runs = s.limits.Runs })
}

// Control is the link of the user that may do everything.
func (s *Server) Control() fleet.Link { return s.control }

// Addresses are those at which machines can reach the server, as URLs.
func (s *Server) Addresses() []string { return s.urls }

// Close stops the server and waits until its files are closed.
func (s *Server) Close() {
	s.nc.Close()
	s.ns.Shutdown()
	if s.lock != nil {
		s.lock.Close()
	}
	if s.dir != nil {
		s.dir.Close()
	}
}

// ReadControl reads the link of the user that may do everything from the folder of
// a server.
func ReadControl(folder string) (fleet.Link, error) {
	dir, err := hostio.OpenDir(folder)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("reading the key of the server: %w", err)
	}
	defer dir.Close()
	f, err := readState(dir)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("reading the key of the server: %w (start `dmgbench-fleet serve` there first)", err)
	}
	return f.Control, nil
}
