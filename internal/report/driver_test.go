package report_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browserScripts is where the driver lies, and what installs it.
var browserScripts = filepath.Join("..", "..", "scripts", "browser")

// driver drives one headless Chromium by scripts/browser/driver.mjs: an order a
// line, an answer a line, both JSON.
type driver struct {
	t       *testing.T
	in      io.WriteCloser
	answers <-chan answer
}

type order struct {
	Do    string  `json:"do"`
	Text  string  `json:"text,omitempty"` // what to evaluate, the selector of what to click, a key, or a colour scheme
	File  string  `json:"file,omitempty"` // absolute: what to open, or where to put it
	Times int     `json:"times,omitempty"`
	X     float64 `json:"x,omitempty"`
	Y     float64 `json:"y,omitempty"`
}

type answer struct {
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// heard is something that a page said or asked for.
type heard struct{ Kind, Text string }

// browser finds a Chromium, or skips the test with the reason. `.ci/run` knows the same names.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium found on this machine")
	return ""
}

// playwright is the folder that scripts/browser/setup.sh filled for this very list, or the test skips.
func playwright(t *testing.T) string {
	t.Helper()
	dir, base := os.Getenv("DMGBENCH_BROWSER_CACHE"), os.Getenv("XDG_CACHE_HOME")
	if home, err := os.UserHomeDir(); base == "" && err == nil {
		base = filepath.Join(home, ".cache")
	}
	if dir == "" {
		dir = filepath.Join(base, "dmgbench-browser")
	}
	want, err := os.ReadFile(filepath.Join(browserScripts, "package-lock.json"))
	require.NoError(t, err)
	if got, err := os.ReadFile(filepath.Join(dir, "installed.json")); err != nil || !bytes.Equal(want, got) {
		t.Skip("playwright-core is not installed: scripts/browser/setup.sh")
	}
	dir, err = filepath.Abs(dir)
	require.NoError(t, err)
	return dir
}

// browserTools is the command that drives a browser, without the script; the test skips where something of it is missing.
func browserTools(t *testing.T) (node, modules, chromium string) {
	t.Helper()
	chromium, modules = browser(t), playwright(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	return node, modules, chromium
}

// drive starts a browser, or skips the test if it does not run here.
func drive(t *testing.T, node, modules, chromium string) *driver {
	t.Helper()
	script := filepath.Join(browserScripts, "driver.mjs")
	require.FileExists(t, script) // looked at, too, so that no result of another driver is taken from the cache of go test
	// Profiles and downloads: nothing stays, even of a driver that was killed. The path is short, since the browser makes a
	// socket below it, whose path macOS allows 104 bytes.
	scratch, err := os.MkdirTemp("/tmp", "report-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(scratch)) })
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, node, script, modules, chromium)
	cmd.Stderr, cmd.WaitDelay = t.Output(), 5*time.Second
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers, done := make(chan answer), make(chan struct{})
	go listen(ctx, out, answers)
	t.Cleanup(func() {
		in.Close() // the browser goes, and the driver with it
		go func() { defer close(done); _ = cmd.Wait() }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
		}
		kill()
		<-done
	})
	d := &driver{t: t, in: in, answers: answers}
	if a := d.answer("start"); a.Error != "" {
		t.Skipf("the browser does not run here: %.600s", a.Error)
	}
	return d
}

// listen hands on every answer until there are no more.
func listen(ctx context.Context, r io.Reader, answers chan<- answer) {
	defer close(answers)
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			a.Error = "the driver does not speak JSON: " + err.Error()
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			return
		}
	}
}

func (d *driver) answer(what string) answer {
	d.t.Helper()
	select {
	case a, ok := <-d.answers:
		require.True(d.t, ok, "the driver has ended: %s", what)
		return a
	case <-time.After(90 * time.Second):
		require.Fail(d.t, "the driver does not answer", what)
		return answer{}
	}
}

// do gives an order, which has to succeed.
func (d *driver) do(o order, into any) {
	d.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(d.t, err)
	_, err = d.in.Write(append(text, '\n'))
	require.NoError(d.t, err)
	a := d.answer(o.Do)
	require.Empty(d.t, a.Error, "%s %s", o.Do, o.Text)
	if into != nil {
		require.NoError(d.t, json.Unmarshal(a.Value, into), "%s gave %s", o.Do, a.Value)
	}
}

// page opens text as a page of its own and waits until its scripts have run.
func (d *driver) page(html string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "page.html")
	require.NoError(d.t, os.WriteFile(file, []byte(html), 0o600))
	d.do(order{Do: "open", File: file}, nil)
}

// open opens a file where it lies.
func (d *driver) open(path string) {
	d.t.Helper()
	d.do(order{Do: "open", File: path}, nil)
}

// eval runs an expression in the page; a promise is waited for.
func (d *driver) eval(expression string, into any) {
	d.t.Helper()
	d.do(order{Do: "eval", Text: expression}, into)
}

// said is everything that the page complained of, and every request that it made but for itself.
func (d *driver) said() []heard {
	d.t.Helper()
	var all, out []heard
	d.do(order{Do: "said"}, &all)
	documents := 0
	for _, h := range all {
		switch {
		case h.Kind == "request" && strings.HasPrefix(h.Text, "file://") && documents == 0:
			documents++
		case h.Kind == "request" && (strings.HasPrefix(h.Text, "data:") || strings.HasPrefix(h.Text, "blob:")):
		default:
			out = append(out, heard{h.Kind, fmt.Sprintf("%.600s", h.Text)})
		}
	}
	return out
}
