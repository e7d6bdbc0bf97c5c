package broker

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

// A second process with the key of a machine is refused while the first is connected, and Control can see it.
func TestOneProcessForEachMachine(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	l, err := s.AddMachine(testContext(t), "mac")
	require.NoError(t, err)
	back := make(chan bool, 9)
	first, _, err := fleet.Connect(l, true, func(err error) {
		if err == nil {
			back <- true
		}
	})
	require.NoError(t, err)
	<-back
	cancelled, err := first.SubscribeSync(fleet.CancelSubject("mac"))
	require.NoError(t, err)
	require.NoError(t, first.Flush())
	for range 3 {
		_, _, err = fleet.Connect(l, false, nil)
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	control, _ := connect(t, s.Control())
	connect(t, s.Control()) // which may have several
	report, err := fleet.RequestReport(t.Context(), control)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", report.Refused["mac"].Address)
	assert.WithinDuration(t, time.Now(), report.Refused["mac"].Time, time.Minute)
	m, err := cancelled.NextMsg(soon)
	require.NoError(t, err)
	assert.Equal(t, fleet.Wake, string(m.Data))
	n, _, err := cancelled.Pending()
	require.NoError(t, err)
	assert.Zero(t, n, "one message, not one for each attempt")

	require.NoError(t, first.ForceReconnect()) // the same process, of which the old connection may still be open
	select {
	case <-back:
	case <-time.After(soon):
		t.Fatal("the first process did not come back")
	}
	first.Close()
	require.Eventually(t, func() bool {
		second, _, err := fleet.Connect(l, false, nil)
		if err == nil {
			second.Close()
		}
		return err == nil
	}, soon, 20*time.Millisecond)
}

func TestSubscriptionsAreLimited(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	nc, _ := machine(t, s, "mac")
	refused := make(chan error, 2*subjects)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })
	for range subjects + 1 {
		_, err := nc.SubscribeSync(nc.NewInbox())
		require.NoError(t, err)
	}
	select {
	case err := <-refused:
		assert.ErrorContains(t, err, "maximum subscriptions exceeded")
	case <-time.After(soon):
		t.Fatal("no subscription was refused")
	}
}

// A machine cannot fill the memory of the server with requests that get no answer.
func TestFloodOfRequests(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	l, err := s.AddMachine(testContext(t), "mac")
	require.NoError(t, err)
	lost := make(chan bool, 1)
	nc, _, err := fleet.Connect(l, false, func(err error) {
		if err != nil {
			lost <- true
		}
	})
	require.NoError(t, err)
	defer nc.Close()
	other, _ := machine(t, s, "other")
	s.endFloods()
	assert.True(t, nc.IsConnected())
	for range maxRequests + 1 {
		require.NoError(t, nc.PublishRequest("$JS.ACK."+fleet.Jobs+".mac.1.1.1.1.1", nc.NewInbox(), nil))
	}
	require.NoError(t, nc.Flush())
	s.endFloods()
	select {
	case <-lost:
	case <-time.After(soon):
		t.Fatal("it is still connected")
	}
	_, _, err = fleet.Connect(l, false, nil)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	assert.True(t, other.IsConnected())
}

// fill stores messages until there is no room.
func fill(js jetstream.JetStream, subject func(int) string, data []byte) (err error) {
	for i := 0; err == nil && i < 1000; i++ {
		_, err = js.Publish(context.Background(), subject(i), data)
	}
	return err
}

// A machine that stores as much as it can takes nothing from another one.
func TestMachinesHaveTheirOwnSpace(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{Limits: fleet.Limits{Queue: 1 << 20, Results: 64 << 10, Runs: 256 << 10, Replicas: 1}})
	ctx := testContext(t)
	_, bad := machine(t, s, "mac")
	_, good := machine(t, s, "other")
	_, err := good.Publish(ctx, fleet.LogSubject("other", "j"), []byte("a line"))
	require.NoError(t, err)

	result := func(machine string) func(int) string {
		return func(i int) string { return fleet.ResultSubject(machine, "forged", i) }
	}
	require.ErrorContains(t, fill(bad, result("mac"), make([]byte, fleet.MaxResult/2)), "maximum bytes exceeded")
	_, err = bad.Publish(ctx, fleet.ResultSubject("mac", "large", 0), make([]byte, fleet.MaxResult+1))
	require.ErrorContains(t, err, "message size exceeds maximum allowed")
	_, err = bad.Publish(ctx, fleet.StatusSubject("mac"), make([]byte, fleet.MaxStatus+1))
	require.ErrorContains(t, err, "message size exceeds maximum allowed")
	for range 20 { // 10 MB
		_, err = bad.Publish(ctx, fleet.LogSubject("mac", "j"), make([]byte, fleet.MaxMessage-100))
		require.NoError(t, err, "old lines are dropped")
	}
	store, err := bad.ObjectStore(ctx, fleet.Bucket("mac"))
	require.NoError(t, err)
	_, err = store.PutBytes(ctx, "run", make([]byte, 300<<10))
	require.ErrorContains(t, err, "maximum bytes exceeded")

	_, err = good.Publish(ctx, fleet.ResultSubject("other", "j", 0), []byte("result"))
	require.NoError(t, err)
	store, err = good.ObjectStore(ctx, fleet.Bucket("other"))
	require.NoError(t, err)
	_, err = store.PutBytes(ctx, "run", make([]byte, 200<<10))
	require.NoError(t, err)
	logs, err := s.js.Stream(ctx, fleet.Logs("other"))
	require.NoError(t, err)
	_, err = logs.GetLastMsgForSubject(ctx, fleet.LogSubject("other", "j"))
	require.NoError(t, err)

	// Purged, the machine can store again; when it is removed, nothing stays.
	require.NoError(t, fleet.PurgeMachine(ctx, s.js, "mac"))
	_, err = bad.Publish(ctx, fleet.ResultSubject("mac", "j", 0), []byte("result"))
	require.NoError(t, err)
	_, err = fleet.Request(ctx, s.nc, fleet.Remove, "mac")
	require.NoError(t, err)
	assert.Contains(t, streams(t, ctx, s.js), fleet.Results("mac"), "results stay until they are purged")
	require.NoError(t, fleet.PurgeMachine(ctx, s.js, "mac"))
	for name := range streams(t, ctx, s.js) {
		assert.NotContains(t, name, "mac")
	}
	require.ErrorContains(t, fleet.PurgeMachine(ctx, s.js, "mac"), `purging machine "mac": there is no such machine`)
}

// The streams of an earlier version are not touched: the error says what to do.
func TestOldFolder(t *testing.T) {
	folder := t.TempDir()
	s := startServer(t, folder, Options{})
	_, err := s.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "FLEET_RESULTS"})
	require.NoError(t, err)
	s.Close()
	_, err = Serve(folder, Options{Limits: fleet.DefaultLimits()})
	require.ErrorContains(t, err, "the streams are of an earlier version")
}

// A server that could not write says so, and starts again when the disk has room; agents come back.
func TestServerStartsAgain(t *testing.T) {
	folder := t.TempDir()
	ctx, stop := context.WithCancel(testContext(t))
	servers := make(chan *Server, 9)
	ended := make(chan error, 1)
	var log bytes.Buffer
	limits := fleet.Limits{Queue: 1 << 20, Results: 1 << 20, Runs: 1 << 20, Replicas: 1}
	go func() {
		ended <- Run(ctx, folder, Options{Limits: limits, Log: &log}, func(s *Server) { servers <- s })
	}()
	stopped := sync.OnceFunc(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	defer stopped()
	first := <-servers
	l, err := first.AddMachine(ctx, "mac")
	require.NoError(t, err)
	connected := make(chan bool, 9)
	nc, js, err := fleet.Connect(l, true, func(err error) { connected <- err == nil })
	require.NoError(t, err)
	defer nc.Close()
	require.True(t, <-connected)
	control, _ := connect(t, first.Control())
	first.lines.Errorf("JetStream stream 'X' critical write error: write x/1.blk: no space left on device")
	report, err := fleet.RequestReport(ctx, control)
	require.NoError(t, err)
	assert.Equal(t, "nothing is stored: no space left on device", report.Error)

	second := <-servers
	require.False(t, <-connected)
	require.Eventually(t, func() bool { return nc.IsConnected() }, soon, 10*time.Millisecond)
	_, err = js.Publish(ctx, fleet.StatusSubject("mac"), []byte("idle"))
	require.NoError(t, err)
	assert.Equal(t, first.Addresses(), second.Addresses())
	stopped()
	assert.Contains(t, log.String(), "nothing more is stored until the disk has room; the server then starts again\n")
}
