package report

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// devtools drives one headless Chromium over the pipe of its DevTools protocol:
// a JSON message each way, ended by a zero byte.
type devtools struct {
	t       *testing.T
	in      io.Writer
	session string

	mu      sync.Mutex
	next    int
	answers map[int]chan message
	events  chan message
	seen    []message // events that nobody waited for
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
}

// drive starts a browser, or skips the test where there is none.
func drive(t *testing.T) *devtools {
	t.Helper()
	path := browser(t)
	fromUs, toBrowser, err := os.Pipe()
	require.NoError(t, err)
	fromBrowser, toUs, err := os.Pipe()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+t.TempDir(), "--hide-scrollbars", "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs}
	if err := cmd.Start(); err != nil {
		cancel()
		t.Skipf("the browser does not run here: %v", err)
	}
	d := &devtools{t: t, in: toBrowser, answers: map[int]chan message{}, events: make(chan message, 10_000)}
	done := make(chan struct{})
	go func() { defer close(done); d.read(fromBrowser) }()
	fromUs.Close()
	toUs.Close()
	t.Cleanup(func() {
		d.send("", "Browser.close", nil)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
		}
		cancel()
		_ = cmd.Wait() // it was told to go
		toBrowser.Close()
		fromBrowser.Close()
	})
	return d
}

func (d *devtools) read(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		if m.ID == 0 {
			d.events <- m
			continue
		}
		d.mu.Lock()
		answer := d.answers[m.ID]
		delete(d.answers, m.ID)
		d.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

func (d *devtools) send(session, method string, params any) chan message {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	answer := make(chan message, 1)
	d.answers[d.next] = answer
	p, _ := json.Marshal(params)
	text, _ := json.Marshal(message{ID: d.next, Method: method, Params: p, SessionID: session})
	_, _ = d.in.Write(append(text, 0)) // a browser that is gone does not answer, which is what fails
	return answer
}

// call asks the page and wants an answer without error.
func (d *devtools) call(method string, params any, into any) {
	d.t.Helper()
	d.callIn(d.session, method, params, into)
}

func (d *devtools) callIn(session, method string, params, into any) {
	d.t.Helper()
	if params == nil {
		params = struct{}{}
	}
	select {
	case m := <-d.send(session, method, params):
		require.Nil(d.t, m.Error, "%s: %+v", method, m.Error)
		if into != nil {
			require.NoError(d.t, json.Unmarshal(m.Result, into))
		}
	case <-time.After(90 * time.Second):
		require.Fail(d.t, "the browser does not answer", method)
	}
}

// until waits for an event of that name that fits, and keeps the others.
func (d *devtools) until(method string, fits func(message) bool) {
	d.t.Helper()
	late := time.After(90 * time.Second)
	for {
		select {
		case m := <-d.events:
			d.seen = append(d.seen, m)
			if m.Method == method && (fits == nil || fits(m)) {
				return
			}
		case <-late:
			require.Fail(d.t, "the event did not come", method)
		}
	}
}

// page opens a file in a page of its own and waits until its scripts have run.
func (d *devtools) page(html string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "page.html")
	require.NoError(d.t, os.WriteFile(file, []byte(html), 0o600))
	var target struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	d.callIn("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	d.callIn("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	d.session, d.seen = target.SessionID, nil
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		d.call(domain+".enable", nil, nil)
	}
	d.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1100, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	d.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	d.until("Page.loadEventFired", nil)
}

// eval runs an expression in the page; a promise is waited for.
func (d *devtools) eval(expression string, into any) {
	d.t.Helper()
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	d.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	require.Nil(d.t, out.Exception, "%s: %+v", expression, out.Exception)
	if into != nil {
		require.NoError(d.t, json.Unmarshal(out.Result.Value, into), "%s gave %q", expression, out.Result.Value)
	}
}

// said is everything that the page complained of, and every request that it made but for itself.
func (d *devtools) said() []string {
	for len(d.events) > 0 {
		d.seen = append(d.seen, <-d.events)
	}
	var out []string
	documents := 0
	for _, m := range d.seen {
		if m.SessionID != d.session {
			continue
		}
		switch m.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
			out = append(out, m.Method+" "+shorten(string(m.Params), 600))
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			_ = json.Unmarshal(m.Params, &p) // what is no request has no address
			switch url := p.Request.URL; {
			case strings.HasPrefix(url, "file://") && documents == 0:
				documents++
			case !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:"):
				out = append(out, fmt.Sprintf("request %s", url))
			}
		}
	}
	return out
}
