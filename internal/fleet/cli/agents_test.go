package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/agent"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// manyAgents is a fleet with its agents in the process of the test.
type manyAgents struct {
	*testing.T
	js    jetstream.JetStream // of Control
	flags []string            // with which commands reach the server
}

// must fails the test if there is an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// connect connects as Control.
func (m *manyAgents) connect(l fleet.Link) {
	m.Helper()
	nc, js, err := fleet.Connect(l, false, nil)
	require.NoError(m, err)
	m.Cleanup(nc.Close)
	m.js = js
}

// start starts an agent for each link at once, with folders of its own, and waits until all have sent a status. They are stopped at
// the end of the test, which then prints what they logged, but for the results.
func (m *manyAgents) start(links []fleet.Link, program, engine string) {
	m.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var agents sync.WaitGroup
	var mu sync.Mutex
	logged := map[string]int{}
	log := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil && !strings.HasPrefix(format, "job ") {
			logged[fmt.Sprintf("%.150s", fmt.Sprintf(format, args...))]++
		}
	}
	top := m.TempDir()
	for _, l := range links {
		place := filepath.Join(top, l.User, "place")
		require.NoError(m, os.MkdirAll(place, 0o700))
		c := agent.Config{Link: l, Folder: filepath.Join(top, l.User, "agent"), Program: program, Engine: engine,
			Places: map[string]string{"": place}, Log: log}
		agents.Go(func() { assert.NoError(m, agent.Run(ctx, c)) })
	}
	m.Cleanup(func() {
		cancel()
		agents.Wait()
		for text, n := range logged {
			m.Logf("%d × %s", n, text)
			assert.NotContains(m, text, "not enabled for account", "another account than that of the streams answered")
		}
		for _, pattern := range []string{"*/place/*", "*/agent/jobs/*"} {
			assert.Empty(m, must(filepath.Glob(filepath.Join(top, pattern)))(m.T), "files of jobs")
		}
	})
	m.until("all machines", func() bool { return m.count(fleet.Statuses) == len(links) })
}

// until waits for minutes, as the machine that executes the test may be slow.
func (m *manyAgents) until(what string, is func() bool) {
	m.Helper()
	require.Eventually(m, is, 20*time.Minute, 100*time.Millisecond, what)
}

// count counts the messages of a stream; -1 is that the server does not answer.
func (m *manyAgents) count(stream string) int {
	s, err := m.js.Stream(m.Context(), stream)
	if err != nil {
		return -1
	}
	return int(s.CachedInfo().State.Msgs)
}

// results counts the results of all machines.
func (m *manyAgents) results() (n int) {
	streams := m.js.ListStreams(m.Context())
	for s := range streams.Info() {
		if _, kind := fleet.StoreOf(s.Config.Name); kind == fleet.Results("") {
			n += int(s.State.Msgs)
		}
	}
	if streams.Err() != nil {
		return -1
	}
	return n
}

// execute executes dmgbench-fleet and returns what it printed.
func (m *manyAgents) execute(args ...string) (string, error) {
	var out, errs bytes.Buffer
	if code := Main(m.Context(), &out, &errs, append(args, m.flags...)); code != 0 {
		return "", fmt.Errorf("%v: status %d: %s", args, code, errs.String())
	}
	return out.String(), nil
}

// checkRuns fetches all runs into dir and checks that there are so many, each complete, measured once and of the machine of its
// result, and as many of each machine. It returns the bytes of their archives.
func (m *manyAgents) checkRuns(dir string, machines, runs int) (size int64) {
	m.Helper()
	must(m.execute("results", "--to", dir))(m.T)
	hosts, byMachine := map[string]string{}, map[string]int{}
	var jobs struct{ Jobs []fleet.Result }
	require.NoError(m, json.Unmarshal([]byte(must(m.execute("status", "--format", "json"))(m.T)), &jobs))
	require.Len(m, jobs.Jobs, runs)
	for _, r := range jobs.Jobs {
		require.Equal(m, fleet.Done, r.State, r.Error)
		assert.Equal(m, 1, r.Attempts, r.Machine)
		hosts[r.Run] = r.Machine
		byMachine[r.Machine]++
		size += r.Size
	}
	assert.Len(m, hosts, runs, "distinct runs")
	assert.Len(m, byMachine, machines)
	for name, n := range byMachine {
		assert.Equal(m, runs/machines, n, name)
	}
	folders := must(filepath.Glob(filepath.Join(dir, "*")))(m.T)
	assert.Len(m, folders, runs)
	for _, path := range folders {
		_, run, err := runfolders.Analyze(path)
		require.NoError(m, err)
		assert.Equal(m, result.Done, run.Outcome(), path)
		assert.Equal(m, hosts[run.Run], run.Sessions[0].Host.Name)
	}
	return size
}
