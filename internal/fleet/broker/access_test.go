package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

// A machine can do all that an agent does.
func TestMachineUsesItsOwn(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	nc, js := machine(t, s, "mac")
	denied := make(chan error, 100)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	cancelled, err := nc.SubscribeSync(fleet.CancelSubject("mac"))
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	c, err := js.Consumer(ctx, fleet.Jobs, "mac")
	require.NoError(t, err)
	_, err = s.js.Publish(ctx, fleet.JobSubject("mac", "j"), []byte("work"))
	require.NoError(t, err)
	next := func() jetstream.Msg {
		m, err := c.Next(jetstream.FetchMaxWait(soon))
		require.NoError(t, err)
		assert.Equal(t, "work", string(m.Data()))
		return m
	}
	m := next()
	require.NoError(t, m.InProgress())
	require.NoError(t, m.Nak())
	require.NoError(t, next().NakWithDelay(time.Millisecond))
	m = next()
	meta, err := m.Metadata()
	require.NoError(t, err)
	assert.EqualValues(t, 3, meta.NumDelivered)
	get := func(stream, subject string) *nats.Msg {
		m, err := nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
		require.NoError(t, err)
		return m
	}
	assert.Equal(t, "work", string(get(fleet.Jobs, fleet.JobSubject("mac", "j")).Data))
	require.NoError(t, m.DoubleAck(ctx))
	assert.Equal(t, "404", get(fleet.Jobs, fleet.JobSubject("mac", "j")).Header.Get("Status"))
	msgs, err := c.FetchNoWait(1)
	require.NoError(t, err)
	assert.Empty(t, msgs.Messages())

	o, err := js.ObjectStore(ctx, fleet.Bucket("mac"))
	require.NoError(t, err)
	archive := bytes.Repeat([]byte("archive."), 1<<17)
	info, err := o.Put(ctx, jetstream.ObjectMeta{Name: "run"}, bytes.NewReader(archive))
	require.NoError(t, err)
	_, err = o.Put(ctx, jetstream.ObjectMeta{Name: "run"}, bytes.NewReader(archive)) // once more after a crash
	require.NoError(t, err)
	again, err := o.GetInfo(ctx, "run")
	require.NoError(t, err)
	assert.Equal(t, info.Digest, again.Digest)
	theirs, err := s.js.ObjectStore(ctx, fleet.Bucket("mac"))
	require.NoError(t, err)
	stored, err := theirs.GetBytes(ctx, "run")
	require.NoError(t, err)
	assert.Equal(t, archive, stored)
	status, err := theirs.Status(ctx)
	require.NoError(t, err)
	assert.Less(t, status.Size(), uint64(len(archive))*3/2, "the first copy is gone")

	result := fleet.ResultSubject("mac", "j", 0)
	_, err = js.Publish(ctx, result, []byte("result"), jetstream.WithMsgID("run"))
	require.NoError(t, err)
	ack, err := js.Publish(ctx, result, []byte("result"), jetstream.WithMsgID("run"))
	require.NoError(t, err)
	assert.True(t, ack.Duplicate)
	_, err = js.Publish(ctx, result, []byte("another"))
	require.ErrorContains(t, err, "maximum messages per subject exceeded")
	assert.Equal(t, "result", string(get(fleet.Results("mac"), result).Data))

	_, err = js.Publish(ctx, fleet.StatusSubject("mac"), []byte("acknowledged"))
	require.NoError(t, err)
	require.NoError(t, nc.Publish(fleet.StatusSubject("mac"), []byte("last")))
	require.NoError(t, nc.Publish(fleet.LogSubject("mac", "j"), []byte("line")))
	_, err = js.Publish(ctx, fleet.LogSubject("mac", "j"), []byte("line"))
	require.NoError(t, err)
	for stream, subject := range map[string]string{fleet.Statuses: fleet.StatusSubject("mac"), fleet.Logs("mac"): fleet.LogSubject("mac", "j")} {
		st, err := s.js.Stream(ctx, stream)
		require.NoError(t, err)
		m, err := st.GetLastMsgForSubject(ctx, subject)
		require.NoError(t, err)
		assert.Contains(t, []string{"last", "line"}, string(m.Data))
	}

	require.NoError(t, s.nc.Publish(fleet.CancelSubject("other"), nil))
	require.NoError(t, s.nc.Publish(fleet.CancelSubject("mac"), nil))
	got, err := cancelled.NextMsg(soon)
	require.NoError(t, err)
	assert.Equal(t, fleet.CancelSubject("mac"), got.Subject)
	assert.Empty(t, denied)
}

// otherSubjects are those to which a machine must not publish: of another one, of
// Control, and the API of JetStream.
func otherSubjects() (subjects []string) {
	publish, _ := fleet.Permissions("other")
	for _, s := range publish {
		subjects = append(subjects, strings.NewReplacer("*", "x", ">", "1.2.3.4.5.6").Replace(s))
	}
	for _, verb := range []string{fleet.Add, fleet.Revoke, fleet.Remove, fleet.List} {
		subjects = append(subjects, fleet.AdminSubject(verb))
	}
	for _, stream := range []string{fleet.Jobs, fleet.Submissions, fleet.Statuses, fleet.Results("other"), fleet.Results("mac"),
		fleet.Logs("other"), fleet.Logs("mac"), "OBJ_fleet-other", "OBJ_fleet-mac"} {
		for _, verb := range strings.Fields(`STREAM.CREATE STREAM.UPDATE STREAM.DELETE STREAM.SNAPSHOT STREAM.RESTORE STREAM.MSG.DELETE
			STREAM.PEER.REMOVE STREAM.LEADER.STEPDOWN CONSUMER.CREATE CONSUMER.NAMES CONSUMER.LIST`) {
			subjects = append(subjects, "$JS.API."+verb+"."+stream)
		}
		for _, verb := range strings.Fields(`CONSUMER.CREATE CONSUMER.DURABLE.CREATE CONSUMER.DELETE CONSUMER.PAUSE CONSUMER.RESET
			CONSUMER.UNPIN CONSUMER.LEADER.STEPDOWN`) {
			subjects = append(subjects, "$JS.API."+verb+"."+stream+".mac", "$JS.API."+verb+"."+stream+".mac.fleet.job.mac.*")
		}
		if stream != "OBJ_fleet-mac" {
			subjects = append(subjects, "$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.PURGE."+stream,
				"$JS.API.STREAM.MSG.GET."+stream, "$JS.API.DIRECT.GET."+stream)
		}
	}
	return append(subjects, "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.INFO", "$JS.API.ACCOUNT.PURGE.$G",
		"$JS.API.STREAM.CREATE.MINE", "$JS.API.SERVER.REMOVE", "$JS.API.META.LEADER.STEPDOWN", fleet.JobSubject("mac", "forged"),
		"$JS.API.DIRECT.GET."+fleet.Statuses+"."+fleet.StatusSubject("other"), "$JS.API.DIRECT.GET."+fleet.Logs("mac")+".fleet.log.mac.j",
		"$JS.API.DIRECT.GET."+fleet.Results("other")+".fleet.result.other.j.0", fleet.SubmissionSubject("mac", "forged"), fleet.Inbox("other")+".x", fleet.Inbox(fleet.Control)+".x",
		fleet.CancelSubject("other"), "$JS.FC.FLEET_JOBS.x", "$SYS.REQ.SERVER.PING", "$SYS.ACCOUNT.other.CONNECT", "_R_.x.y", "any")
}

func TestMachineMayNotUseOthers(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	machine(t, s, "other")
	nc, _ := machine(t, s, "mac")
	for _, subject := range []string{fleet.JobSubject("other", "x"), fleet.JobSubject("mac", "x"), fleet.ResultSubject("other", "j", 0),
		fleet.LogSubject("other", "j"), fleet.StatusSubject("other")} {
		_, err := s.js.Publish(ctx, subject, []byte("secret"))
		require.NoError(t, err)
	}
	before := streams(t, ctx, s.js)
	denied := make(chan string, 1000)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err.Error() })
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	seen, err := s.nc.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	check := func(doing, subject string) { // the server refuses in the order in which it is asked
		require.NoError(t, nc.Flush())
		select {
		case text := <-denied:
			require.Contains(t, text, "Permissions Violation for "+doing)
			require.Contains(t, text, `"`+subject+`"`)
		case <-time.After(soon):
			t.Fatalf("%s %q was not refused", doing, subject)
		}
	}
	for _, subject := range otherSubjects() {
		require.NoError(t, nc.PublishRequest(subject, inbox.Subject, []byte("other")))
		check("Publish", subject)
	}
	for _, subject := range []string{">", "*", "*.*.*.*", "fleet.>", "fleet.job.mac.*", "fleet.result.mac.*.*", fleet.CancelSubject("*"),
		fleet.CancelSubject("other"), fleet.Inbox("other") + ".>", fleet.Inbox(fleet.Control) + ".>", "_INBOX.>", "*.>",
		"$JS.>", "$O.>", "$SYS.>", "_R_.>", "fleet.admin.*", fleet.StatusSubject("other"), fleet.LogSubject("other", "*")} {
		_, err := nc.SubscribeSync(subject)
		require.NoError(t, err)
		check("Subscription", subject)
		_, err = nc.QueueSubscribeSync(subject, "q")
		require.NoError(t, err)
		check("Subscription", subject)
	}
	n, _, err := inbox.Pending()
	require.NoError(t, err)
	assert.Zero(t, n, "no request was answered")
	n, _, err = seen.Pending()
	require.NoError(t, err)
	assert.Zero(t, n, "nobody saw a message")
	assert.Equal(t, before, streams(t, ctx, s.js))
}

// streams are the number of messages and consumers of each stream, and the last
// sequence.
func streams(t *testing.T, ctx context.Context, js jetstream.JetStream) map[string][3]uint64 {
	all := map[string][3]uint64{}
	l := js.ListStreams(ctx)
	for info := range l.Info() {
		all[info.Config.Name] = [3]uint64{info.State.Msgs, uint64(info.State.Consumers), info.State.LastSeq}
	}
	require.NoError(t, l.Err())
	return all
}

// The server does not check where a machine wants an answer: such an answer must not
// become the job or the result of another machine, or a request of Control.
func TestForgedReplies(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	other, _ := machine(t, s, "other")
	nc, js := machine(t, s, "mac")
	result := fleet.ResultSubject("mac", "j", 0)
	_, err := js.Publish(ctx, result, []byte("other"))
	require.NoError(t, err)
	_, err = s.js.Publish(ctx, fleet.JobSubject("mac", "j"), []byte("other"))
	require.NoError(t, err)
	seen, err := s.nc.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	nc.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // the server refuses some of what follows
	targets := append(otherSubjects(), fleet.CancelSubject("other"))
	for _, target := range targets {
		for _, subject := range []string{result, fleet.StatusSubject("mac"), "$JS.API.DIRECT.GET." + fleet.Results("mac") + "." + result,
			"$JS.API.CONSUMER.MSG.NEXT." + fleet.Jobs + ".mac", "$JS.API.CONSUMER.INFO." + fleet.Jobs + ".mac",
			"$JS.API.STREAM.INFO.OBJ_fleet-mac", "$JS.API.STREAM.MSG.GET.OBJ_fleet-mac", "$JS.ACK." + fleet.Jobs + ".mac.1.1.1.1.1"} {
			for _, key := range []string{"Nats-Trace-Dest", "Nats-Schedule-Target", "Nats-Rollup"} {
				m := &nats.Msg{Subject: subject, Reply: target, Data: []byte(`1`), Header: nats.Header{key: {target}}}
				m.Header.Set("Nats-Schedule", "@at "+time.Now().Format(time.RFC3339))
				require.NoError(t, nc.PublishMsg(m))
			}
			require.NoError(t, nc.PublishRequest(subject, target, nil))
		}
	}
	require.NoError(t, nc.Flush())
	for range 3 { // each API answers in order, so that the answers before have been sent
		_, err = nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+fleet.Results("mac")+"."+result, nil)
		require.NoError(t, err)
		_, err = nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO.OBJ_fleet-mac", nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.nc.Flush())
	for n, _, _ := seen.Pending(); n > 0; n, _, _ = seen.Pending() {
		m, err := seen.NextMsg(soon)
		require.NoError(t, err)
		assert.NotContains(t, targets, m.Subject)
	}
	assert.True(t, other.IsConnected())
	st, err := s.js.Stream(ctx, fleet.Jobs)
	require.NoError(t, err)
	info, err := st.Info(ctx, jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	assert.Equal(t, map[string]uint64{fleet.JobSubject("mac", "j"): 1}, info.State.Subjects)
}

func TestRevoke(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	bystander, _ := machine(t, s, "other")
	lost := make(chan *nats.Conn, 4)
	revoked := func(l fleet.Link, nc *nats.Conn) {
		select {
		case got := <-lost:
			assert.Same(t, nc, got)
		case <-time.After(soon):
			t.Error("the connection is still open")
		}
		_, _, err := fleet.Connect(l, false, nil)
		assert.ErrorIs(t, err, nats.ErrAuthorization)
	}
	join := func(l fleet.Link) *nats.Conn {
		nc, _ := connect(t, l)
		nc.SetDisconnectErrHandler(func(nc *nats.Conn, _ error) { lost <- nc })
		return nc
	}
	first, err := s.AddMachine(ctx, "mac")
	require.NoError(t, err)
	nc := join(first)
	_, err = s.js.Publish(ctx, fleet.JobSubject("mac", "j"), nil)
	require.NoError(t, err)

	second, err := s.AddMachine(ctx, "mac")
	require.NoError(t, err)
	revoked(first, nc)
	nc = join(second)
	require.NoError(t, s.setKey("mac", ""))
	revoked(second, nc)
	st, err := s.js.Stream(ctx, fleet.Jobs)
	require.NoError(t, err)
	assert.EqualValues(t, 1, st.CachedInfo().State.Msgs, "the job stays")
	require.NoError(t, s.setKey("mac", ""), "a second time changes nothing")

	third, err := s.AddMachine(ctx, "mac")
	require.NoError(t, err)
	nc = join(third)
	_, err = fleet.Request(ctx, s.nc, fleet.Remove, "mac")
	require.NoError(t, err)
	revoked(third, nc)
	st, err = s.js.Stream(ctx, fleet.Jobs)
	require.NoError(t, err)
	assert.Zero(t, st.CachedInfo().State.Msgs)
	_, err = st.Consumer(ctx, "mac")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound)
	assert.Zero(t, bystander.Statistics.Reconnects)
	assert.True(t, bystander.IsConnected())
	machine(t, s, "mac") // it can come back
	_, err = s.AddMachine(ctx, "../x")
	require.ErrorContains(t, err, "machine name")
	require.ErrorContains(t, s.setKey("CONTROL", ""), "machine name")
}

func TestRequests(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	nc, _ := connect(t, s.Control())
	text, err := fleet.Request(ctx, nc, fleet.Add, "mac")
	require.NoError(t, err)
	l, err := fleet.ParseLink(text)
	require.NoError(t, err)
	assert.Equal(t, "mac", l.User)
	connect(t, l)
	_, err = fleet.Request(ctx, nc, fleet.Revoke, "mac")
	require.NoError(t, err)
	_, _, err = fleet.Connect(l, false, nil)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	_, err = fleet.Request(ctx, nc, fleet.Remove, "mac")
	require.NoError(t, err)
	_, err = fleet.Request(ctx, nc, "promote", "mac")
	require.ErrorContains(t, err, `unknown request "fleet.admin.promote"`)
	_, err = fleet.Request(ctx, nc, fleet.Add, "CONTROL")
	require.ErrorContains(t, err, "machine name")
	m, err := nc.RequestWithContext(ctx, fleet.AdminSubject(fleet.Add), []byte("no name"))
	require.NoError(t, err)
	assert.Contains(t, m.Header.Get(fleet.ErrorHeader), "machine name")
}

func TestKeysAndPins(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	l, err := s.AddMachine(testContext(t), "mac")
	require.NoError(t, err)
	stranger := startServer(t, t.TempDir(), Options{})
	seed, _, err := newKey()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*fleet.Link)
		want   string
	}{
		"without the pin":         {func(l *fleet.Link) { l.Pin = "" }, "certificate"},
		"pin of another server":   {func(l *fleet.Link) { l.Pin = stranger.Control().Pin }, "another key"},
		"another server":          {func(l *fleet.Link) { l.URLs = stranger.Addresses() }, "another key"},
		"without a key":           {func(l *fleet.Link) { l.Seed = "" }, "Authorization Violation"},
		"a key nobody knows":      {func(l *fleet.Link) { l.Seed = seed }, "Authorization Violation"},
		"a name that is not ours": {func(l *fleet.Link) { l.Seed = "SU" }, "the key is damaged"},
	} {
		changed := l
		c.change(&changed)
		_, _, err := fleet.Connect(changed, false, nil)
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.want, name)
		}
	}
	pair, err := nkeys.FromSeed([]byte(l.Seed))
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	insecure := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	u := strings.Replace(l.URLs[0], "tls://", "tls://"+public+"@", 1)
	_, err = nats.Connect(u, nats.Secure(insecure()))
	require.ErrorIs(t, err, nats.ErrAuthorization, "the public key is not enough")
	_, err = nats.Connect(u, nats.Secure(insecure()), nats.Nkey(public, func([]byte) ([]byte, error) { return make([]byte, 64), nil }))
	require.ErrorIs(t, err, nats.ErrAuthorization)
	_, err = nats.Connect(strings.Replace(l.URLs[0], "tls://", "nats://", 1))
	require.Error(t, err, "only with TLS")
}

func TestOversizedMessages(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	nc, js := machine(t, s, "mac")
	_, err := js.Publish(ctx, fleet.LogSubject("mac", "j"), make([]byte, fleet.MaxMessage-100))
	require.NoError(t, err)
	_, err = js.Publish(ctx, fleet.LogSubject("mac", "j"), make([]byte, fleet.MaxMessage+1))
	require.ErrorContains(t, err, "message size exceeds maximum allowed")
	_, err = js.Publish(ctx, fleet.LogSubject("mac", "j"), make([]byte, fleet.MaxMessage+headers+1))
	require.ErrorIs(t, err, nats.ErrMaxPayload)
	assert.EqualValues(t, fleet.MaxMessage+headers, nc.MaxPayload())
}

func TestFullStore(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{Limits: fleet.Limits{Queue: 1 << 20, Results: 1 << 20, Runs: 1 << 20, Replicas: 1}})
	ctx := testContext(t)
	_, js := machine(t, s, "mac")
	half := make([]byte, 400<<10)
	var err error
	for i := 0; i < 9; i++ {
		if _, err = s.js.Publish(ctx, fleet.JobSubject("mac", string(rune('a'+i))), half); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "maximum bytes exceeded")
	o, err := js.ObjectStore(ctx, fleet.Bucket("mac"))
	require.NoError(t, err)
	_, err = o.PutBytes(ctx, "run", make([]byte, 2<<20))
	require.ErrorContains(t, err, "maximum bytes exceeded")
	_, err = o.PutBytes(ctx, "small", half)
	require.NoError(t, err, "the parts of the one that was too large are gone")

	full := startServer(t, t.TempDir(), Options{Limits: fleet.Limits{Queue: 1 << 20, Results: 1 << 20, Runs: 1 << 60, Replicas: 1}})
	_, err = full.AddMachine(ctx, "mac")
	require.ErrorContains(t, err, `adding machine "mac": `)
	require.ErrorContains(t, err, "insufficient storage resources")
}

// What the server remembers of a request across accounts is gone when it is answered.
func TestRequestsLeaveNothing(t *testing.T) {
	s := startServer(t, t.TempDir(), Options{})
	ctx := testContext(t)
	_, js := machine(t, s, "mac")
	account, err := s.ns.LookupAccount("mac")
	require.NoError(t, err)
	c, err := js.Consumer(ctx, fleet.Jobs, "mac")
	require.NoError(t, err)
	batch, err := c.Fetch(1, jetstream.FetchMaxWait(1200*time.Millisecond), jetstream.FetchHeartbeat(500*time.Millisecond))
	require.NoError(t, err)
	pending := func() int {
		return account.NumPendingReverseResponses() + s.ns.GlobalAccount().NumPendingAllResponses()
	}
	assert.Eventually(t, func() bool { return pending() > 0 }, soon, time.Millisecond)
	assert.Nil(t, <-batch.Messages())
	require.NoError(t, batch.Error(), "the heartbeats of the server arrive")
	for i := range 20 {
		_, err = c.FetchNoWait(1)
		require.NoError(t, err)
		_, err = js.Publish(ctx, fleet.ResultSubject("mac", "j", i), nil)
		require.NoError(t, err)
	}
	assert.Eventually(t, func() bool { return pending() == 0 }, soon, time.Millisecond)
}

// The streams take the limits of the present start.
func TestLimitsChange(t *testing.T) {
	folder := t.TempDir()
	ctx := testContext(t)
	for i, size := range []int64{4 << 20, 8 << 20, 2 << 20} {
		s := startServer(t, folder, Options{Limits: fleet.Limits{Queue: size, Results: size, Runs: size, Replicas: 1}})
		if i == 0 {
			_, err := s.AddMachine(ctx, "mac")
			require.NoError(t, err)
		}
		for _, name := range []string{fleet.Jobs, fleet.Results("mac"), "OBJ_fleet-mac"} {
			st, err := s.js.Stream(ctx, name)
			require.NoError(t, err)
			assert.Equal(t, size, st.CachedInfo().Config.MaxBytes, name)
		}
		o, err := s.js.ObjectStore(ctx, fleet.Bucket("mac"))
		require.NoError(t, err)
		if i == 0 {
			_, err = o.PutBytes(ctx, "run", make([]byte, 3<<20))
			require.NoError(t, err)
		}
		data, err := o.GetBytes(ctx, "run")
		require.NoError(t, err, "a lower limit deletes nothing that is stored")
		assert.Len(t, data, 3<<20)
		s.Close()
	}
}
