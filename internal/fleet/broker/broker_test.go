package broker

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

const soon = 10 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startServer(t *testing.T, folder string, o Options) *Server {
	t.Helper()
	if o.Limits == (fleet.Limits{}) {
		o.Limits = fleet.Limits{Queue: 4 << 20, Results: 4 << 20, Runs: 8 << 20, Replicas: 1}
	}
	s, err := Serve(folder, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// machine adds one and connects as it.
func machine(t *testing.T, s *Server, name string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	l, err := s.AddMachine(testContext(t), name)
	require.NoError(t, err)
	return connect(t, l)
}

func connect(t *testing.T, l fleet.Link) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, js, err := fleet.Connect(l, false, nil)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, js
}

func TestRestart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "fleet")
	ctx := testContext(t)
	first := startServer(t, folder, Options{})
	l, err := first.AddMachine(ctx, "mac")
	require.NoError(t, err)
	old, err := first.AddMachine(ctx, "gone")
	require.NoError(t, err)
	require.NoError(t, first.setKey("gone", ""))
	states, back := make(chan error, 10), make(chan bool)
	nc, js, err := fleet.Connect(l, true, func(err error) { states <- err })
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, <-states)
	_, err = first.js.Publish(ctx, fleet.JobSubject("mac", "j"), []byte("work"))
	require.NoError(t, err)
	first.Close()
	require.Error(t, <-states)
	go func() {
		for err := range states { // attempts that fail
			if err == nil {
				close(back)
				return
			}
		}
	}()

	second := startServer(t, folder, Options{})
	assert.Equal(t, first.Control(), second.Control())
	assert.Equal(t, first.Addresses(), second.Addresses())
	read, err := ReadControl(folder)
	require.NoError(t, err)
	assert.Equal(t, second.Control(), read)
	select {
	case <-back: // without a new join string
	case <-time.After(soon):
		t.Fatal("the machine did not come back")
	}
	c, err := js.Consumer(ctx, fleet.Jobs, "mac")
	require.NoError(t, err)
	m, err := c.Next()
	require.NoError(t, err)
	assert.Equal(t, "work", string(m.Data()))
	_, _, err = fleet.Connect(old, false, nil)
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

func TestStateFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "fleet")
	s := startServer(t, folder, Options{})
	l, err := s.AddMachine(testContext(t), "mac")
	require.NoError(t, err)
	info, err := os.Stat(folder)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(folder, stateName))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotContains(t, string(data), l.Seed, "the key of a machine is only on the machine")
		}
		return err
	}))
	s.Close()

	require.NoError(t, os.WriteFile(filepath.Join(folder, stateName), []byte(`{"port":1`), 0o600))
	_, err = Serve(folder, Options{Limits: fleet.DefaultLimits()})
	require.ErrorContains(t, err, `decoding "fleet.json"`)
	data, err := os.ReadFile(filepath.Join(folder, stateName))
	require.NoError(t, err)
	assert.Equal(t, `{"port":1`, string(data), "keys that cannot be read are not replaced")
}

func TestReadControlWithoutServer(t *testing.T) {
	_, err := ReadControl(t.TempDir())
	assert.ErrorContains(t, err, "start `dmgbench-fleet serve` there first")
	_, err = ReadControl(filepath.Join(t.TempDir(), "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestLock(t *testing.T) {
	folder := t.TempDir()
	s := startServer(t, folder, Options{})
	_, err := Serve(folder, Options{Limits: fleet.DefaultLimits()})
	require.ErrorContains(t, err, "another server uses the folder")
	connect(t, s.Control()) // the first is unharmed
	s.Close()
	startServer(t, folder, Options{})
}

func TestListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for listen, want := range map[string]string{
		taken.Addr().String(): "address already in use",
		"127.0.0.1":           "want host:port",
		"127.0.0.1:http":      "want host:port",
		"127.0.0.1:65536":     "want host:port",
	} {
		_, err := Serve(t.TempDir(), Options{Listen: listen, Limits: fleet.DefaultLimits()})
		assert.ErrorContains(t, err, want, listen)
	}
	s := startServer(t, t.TempDir(), Options{})
	assert.Regexp(t, `^tls://127\.0\.0\.1:\d+$`, s.Addresses()[0])
	assert.Len(t, s.Addresses(), 1)
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		host      string
		advertise []string
		want      []string
	}{
		{"127.0.0.1", nil, []string{"tls://127.0.0.1:4222"}},
		{"::1", nil, []string{"tls://[::1]:4222"}},
		{"0.0.0.0", []string{"mac.local", "10.0.0.1:99", "::2", "[::3]:98"},
			[]string{"tls://mac.local:4222", "tls://10.0.0.1:99", "tls://[::2]:4222", "tls://[::3]:98"}},
	} {
		got, err := joinURLs(c.host, 4222, c.advertise)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	own, err := ownAddresses("0.0.0.0")
	if err != nil {
		t.Skip(err) // no network
	}
	for _, host := range own {
		ip := net.ParseIP(host)
		assert.True(t, ip.To4() != nil && !ip.IsLoopback() && !ip.IsUnspecified(), host)
	}
	s := startServer(t, t.TempDir(), Options{Listen: "0.0.0.0:0"})
	assert.Len(t, s.Addresses(), len(own))
	connect(t, s.Control())
	l, err := s.AddMachine(testContext(t), "mac")
	require.NoError(t, err)
	connect(t, l)
}

func TestRoom(t *testing.T) {
	_, err := room(spare-1, 0)
	require.EqualError(t, err, "the disk has 1023 MiB free: want at least 1024 MiB")
	got, err := room(0, spare)
	require.NoError(t, err)
	assert.EqualValues(t, spare, got, "what is stored can be read from a full disk")
	got, err = room(3*spare, spare)
	require.NoError(t, err)
	assert.EqualValues(t, 2*spare, got)
	got, err = room(3*spare, 9*spare)
	require.NoError(t, err)
	assert.EqualValues(t, 9*spare, got, "streams that exist keep what they have reserved")
}

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	l := newLogger(&b)
	l.Noticef("started")
	l.Debugf("detail")
	l.Warnf("slow %d%%", 50)
	l.Errorf("127.0.0.1:1 - cid:1 - authentication error")
	l.Errorf("127.0.0.1:2 - cid:2 - authentication error")
	l.Errorf("stream %q critical write error: %v", "X", os.ErrInvalid)
	l.Fatalf("first %d", 1)
	l.Fatalf("second")
	assert.Equal(t, "slow 50%\n127.0.0.1:1 - cid:1 - authentication error\nstream \"X\" critical write error: invalid argument\n"+
		"nothing more is stored until the disk has room; the server then starts again\n", b.String())
	assert.Equal(t, "invalid argument", l.failure.Load())
	assert.Equal(t, "first 1", l.fatal.Load())
	newLogger(nil).Errorf("dropped")
}
