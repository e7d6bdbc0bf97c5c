package agent

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

// proxy forwards connections to a server, and while it is cut it only holds what it gets, as a network that drops packets.
type proxy struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	open     chan struct{} // closed while it forwards
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, server, _ := strings.Cut(url, "://")
	p := &proxy{listener: listener, server: server, open: make(chan struct{})}
	close(p.open)
	t.Cleanup(func() { listener.Close() })
	go p.accept()
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.server)
		if err != nil {
			in.Close()
			continue
		}
		go p.forward(in, out)
		go p.forward(out, in)
	}
}

func (p *proxy) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		<-p.state()
		if err != nil && err != io.EOF || n == 0 {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) state() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

func (p *proxy) restore() { close(p.state()) }

// A network that is away for longer than the acknowledgement wait neither stops the run nor has it measured again.
func TestNetworkCut(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	p := newProxy(t, s.link.URLs[0])
	c := s.config(realProgram(t))
	c.Link.URLs = []string{"tls://" + p.listener.Addr().String()}
	s.start(c)
	s.submit(tinyJob("a"))
	s.until("a run", func() bool { return s.status().Progress != nil })
	p.cut()
	start := time.Now()
	s.until("the end of the run", func() bool {
		tasks := readTasks(c.Folder)
		return len(tasks) == 1 && tasks[0].Result.State == fleet.Done
	})
	s.until("the end of the acknowledgement wait", func() bool { return time.Since(start) > 2*shortAckWait })
	assert.Nil(t, s.get(fleet.Results("mac"), fleet.ResultSubject("mac", "a", 0)))
	p.restore()
	r := s.await("a", 0)
	assert.Equal(t, fleet.Done, r.State, r.Error)
	assert.Equal(t, 1, r.Attempts)
	s.checkRun(r, 2)
	s.awaitGone("a")
	s.empty(c)
}
