package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/cli/clitest"
	"dmgbench/internal/fleet"
)

// cluster is three servers that are not ours, as processes.
type cluster struct {
	manyAgents
	configs, urls []string
	nodes         []*exec.Cmd
}

// TestCluster kills a server of three in the middle of a run of 20 agents: one that does not lead the stream of jobs, and after it is
// back the one that does (DMGBENCH_LONG=1).
func TestCluster(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("takes minutes: DMGBENCH_LONG=1")
	}
	const machines = 20
	c := &cluster{manyAgents: manyAgents{T: t}}
	links := c.serve(machines)
	for _, l := range links {
		must(c.execute("add-machine", l.User))(t)
	}
	c.connect(fleet.Link{URLs: []string{c.flags[1]}, User: fleet.Control})
	c.start(links, must(exec.LookPath("dmgbench"))(t), "inprocess")
	file, dir := filepath.Join(t.TempDir(), "life.toml"), t.TempDir()
	require.NoError(t, os.WriteFile(file, []byte(clitest.Life), 0o600))

	for i, isLeader := range []bool{false, true} {
		require.Equal(t, machines, strings.Count(must(c.execute("submit", file))(t), ": job "))
		c.until("the first results", func() bool { return c.results() >= i*machines+3 })
		node := c.leader()
		if !isLeader {
			node = (node + 1) % len(c.nodes)
		}
		before := c.results() - i*machines
		require.Less(t, before, machines, "the run is in its middle")
		c.kill(node)
		killed := time.Now()
		var status string
		c.until("a command without the server", func() bool { // the others have to elect leaders
			var err error
			status, err = c.execute("status")
			return err == nil
		})
		answered := time.Since(killed)
		require.Equal(t, (i+1)*machines, strings.Count(status, " life "), status)
		c.until("all results", func() bool { return c.results() >= (i+1)*machines })
		ended := time.Since(killed)
		c.until("an empty queue", func() bool { return c.count(fleet.Jobs) == 0 })
		require.Equal(t, (i+1)*machines, c.results())
		c.checkRuns(dir, machines, (i+1)*machines)
		c.startNode(node)
		c.until("three copies of everything", c.isComplete)
		t.Logf("server %d (leader: %v) killed after %d results: status after %v, all results after %v, three copies after %v",
			node, isLeader, before, answered, ended, time.Since(killed))
	}
}

// serve starts the servers, with a user for each machine in an account of its own, as docs/fleet.md advises, and makes the streams.
func (c *cluster) serve(machines int) []fleet.Link {
	c.Helper()
	addresses := freeAddresses(c.T, 6)
	var routes []string
	for i := range 3 {
		c.urls = append(c.urls, "nats://"+addresses[i])
		routes = append(routes, "nats://"+addresses[3+i])
	}
	control := strings.ReplaceAll(strings.Join(c.urls, ","), "://", "://"+fleet.Control+":secret@")
	c.flags = []string{"--nats", control}
	accounts, links := c.accounts(machines)
	dir := c.TempDir()
	for i := range 3 {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // servers do not read \u003e
		require.NoError(c, e.Encode(map[string]any{"server_name": fmt.Sprintf("n%d", i), "listen": addresses[i],
			"jetstream": map[string]any{"store_dir": filepath.Join(dir, fmt.Sprint(i)), "max_file_store": int64(16 << 30)},
			"cluster":   map[string]any{"name": "fleet", "listen": addresses[3+i], "routes": routes}, "accounts": accounts}))
		c.configs = append(c.configs, filepath.Join(dir, fmt.Sprintf("%d.conf", i)))
		require.NoError(c, os.WriteFile(c.configs[i], text.Bytes(), 0o600))
		c.nodes = append(c.nodes, nil)
		c.startNode(i)
		c.Cleanup(func() { c.kill(i) })
	}
	c.until("a cluster", func() bool { // the servers have to find each other
		_, err := c.execute("serve", "--replicas", "3")
		return err == nil
	})
	return links
}

// accounts is that of the streams and those of the machines, as in the configuration of a server.
func (c *cluster) accounts(machines int) (map[string]any, []fleet.Link) {
	c.Helper()
	type object = map[string]any
	exports := []object{{"service": "$JS.API.CONSUMER.MSG.NEXT.>", "response_type": "stream"}, {"stream": "fleet.cancel.*"}}
	// A server gives an account that does not import $JS.API.INFO its own imports, and answers requests twice then.
	for _, subject := range []string{"$JS.API.INFO", "$JS.API.CONSUMER.INFO.>", "$JS.API.DIRECT.GET.>", "$JS.API.STREAM.>",
		"$JS.ACK.>", "$O.>", "fleet.>"} {
		exports = append(exports, object{"service": subject})
	}
	all := object{"FLEET": object{"jetstream": "enabled", "exports": exports,
		"users": []object{{"user": fleet.Control, "password": "secret"}}}}
	var links []fleet.Link
	for i := range machines {
		name := fmt.Sprintf("mac-%d", i+1)
		pair := must(nkeys.CreateUser())(c.T)
		publish, subscribe := fleet.Permissions(name)
		imports := []object{{"stream": object{"account": "FLEET", "subject": fleet.CancelSubject(name)}}}
		for _, subject := range append(publish, "$JS.API.INFO") {
			imports = append(imports, object{"service": object{"account": "FLEET", "subject": subject}})
		}
		all[name] = object{"imports": imports, "users": []object{{"nkey": must(pair.PublicKey())(c.T), "permissions": object{
			"publish": object{"allow": publish}, "subscribe": object{"allow": subscribe}}}}}
		links = append(links, fleet.Link{URLs: c.urls, User: name, Seed: string(must(pair.Seed())(c.T))})
	}
	return all, links
}

// freeAddresses finds addresses on which no program listens.
func freeAddresses(t *testing.T, n int) (addresses []string) {
	t.Helper()
	for range n {
		l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

func (c *cluster) startNode(i int) {
	c.Helper()
	c.nodes[i] = exec.Command("nats-server", "-c", c.configs[i])
	c.nodes[i].Stderr = os.Stderr // of a panic
	require.NoError(c, c.nodes[i].Start())
}

func (c *cluster) kill(i int) {
	_ = c.nodes[i].Process.Kill()
	_ = c.nodes[i].Wait()
}

// leader is the server that leads the stream of jobs.
func (c *cluster) leader() (node int) {
	c.Helper()
	s := must(c.js.Stream(c.Context(), fleet.Jobs))(c.T)
	must(fmt.Sscanf(s.CachedInfo().Cluster.Leader, "n%d", &node))(c.T)
	return node
}

// isComplete reports whether each stream has three copies that are up to date.
func (c *cluster) isComplete() bool {
	list := c.js.ListStreams(c.Context())
	isComplete := true
	for s := range list.Info() {
		isComplete = isComplete && s.Cluster != nil && len(s.Cluster.Replicas) == 2
		for i := 0; isComplete && i < 2; i++ {
			isComplete = s.Cluster.Replicas[i].Current && !s.Cluster.Replicas[i].Offline
		}
	}
	return isComplete && list.Err() == nil
}
