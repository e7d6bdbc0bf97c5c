package watch

import (
	"context"
	"crypto/rand"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

func newTestPage(t *testing.T, dir string) *page {
	t.Helper()
	return &page{dir: dir, now: time.Now, host: "127.0.0.1:4711", path: "/" + rand.Text() + "/"}
}

func (p *page) get(method, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestPageNeedsTheAddress(t *testing.T) {
	dir, _ := simulate(t, watched)
	p := newTestPage(t, dir)
	for name, x := range map[string]struct {
		method, host, path string
		code               int
	}{
		"the address":         {http.MethodGet, p.host, p.path, 200},
		"its head":            {http.MethodHead, p.host, p.path, 200},
		"no secret":           {http.MethodGet, p.host, "/", 404},
		"another secret":      {http.MethodGet, p.host, "/" + strings.Repeat("A", len(p.path)-2) + "/", 404},
		"the start of it":     {http.MethodGet, p.host, p.path[:10], 404},
		"a file below it":     {http.MethodGet, p.host, p.path + "plan.toml", 404},
		"a name that rebinds": {http.MethodGet, "evil.example:4711", p.path, 404},
		"localhost":           {http.MethodGet, "localhost:4711", p.path, 404},
		"another port":        {http.MethodGet, "127.0.0.1:4712", p.path, 404},
		"a method that sends": {http.MethodPost, p.host, p.path, 404},
	} {
		t.Run(name, func(t *testing.T) {
			w := p.get(x.method, x.host, x.path)
			assert.Equal(t, x.code, w.Code)
			assert.Equal(t, x.code == 404, w.Header().Get("Connection") == "close", "a stranger's connection ends")
			assert.Equal(t, x.code == 200 && x.method == http.MethodGet, strings.Contains(w.Body.String(), "Watched images"))
		})
	}
}

// The page is that of the report, reloads itself until the run has ended, and shows what was appended.
func TestPageFollowsTheRun(t *testing.T) {
	dir, lines := simulate(t, watched)
	whole, err := os.ReadFile(filepath.Join(dir, result.JournalFile))
	require.NoError(t, err)
	cutJournal(t, dir, lines, `"case_end":`, 7)
	before := files(t, dir)
	p := newTestPage(t, dir)
	now := time.Unix(0, 0)
	p.now = func() time.Time {
		now = now.Add(100 * time.Millisecond) // that a page takes
		return now
	}
	first := p.get(http.MethodGet, p.host, p.path)
	version := first.Header().Get("ETag")
	assert.True(t, strings.Contains(first.Body.String(), `<script data-version="`+html.EscapeString(version)+`">`))
	assert.True(t, strings.Contains(first.Body.String(), "connect-src &#39;self&#39;"))
	assert.Equal(t, version, p.get(http.MethodHead, p.host, p.path).Header().Get("ETag"))
	assert.Equal(t, "no-store", first.Header().Get("Cache-Control"))
	assert.Equal(t, "no-referrer", first.Header().Get("Referrer-Policy"))
	assert.Contains(t, first.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.True(t, strings.Contains(first.Body.String(), "default-src &#39;none&#39;"), "the policy of the report stays")
	assert.True(t, first.Body.String() == p.get(http.MethodGet, p.host, p.path).Body.String())
	assert.Equal(t, before, files(t, dir), "no file is written")

	writeJournal(t, dir, string(whole))
	assert.Equal(t, version, p.get(http.MethodHead, p.host, p.path).Header().Get("ETag"), "a tenth of a second of work, ten of rest")
	now = now.Add(share * 200 * time.Millisecond)
	assert.NotEqual(t, version, p.get(http.MethodHead, p.host, p.path).Header().Get("ETag"))
	last := p.get(http.MethodGet, p.host, p.path)
	assert.False(t, first.Body.String() == last.Body.String())
	assert.Equal(t, last.Header().Get("ETag"), p.get(http.MethodHead, p.host, p.path).Header().Get("ETag"))

	writeJournal(t, dir, "{")
	assert.Equal(t, 500, p.get(http.MethodGet, p.host, p.path).Code)
}

// Serve listens on the loopback address, and ends with its context.
func TestServe(t *testing.T) {
	dir, _ := simulate(t, watched)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := Serve(ctx, dir, time.Now, func(address string) error {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", u.Hostname())
		require.Greater(t, len(u.Path), 25, "128 random bits")
		go func() {
			defer cancel()
			answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(address)
			if assert.NoError(t, err) {
				text, err := io.ReadAll(answer.Body)
				assert.NoError(t, err)
				assert.NoError(t, answer.Body.Close())
				assert.True(t, strings.Contains(string(text), "Watched images"))
			}
		}()
		return nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, Serve(t.Context(), dir, time.Now, func(string) error { return net.ErrClosed }), net.ErrClosed)
	require.ErrorIs(t, Serve(t.Context(), t.TempDir(), time.Now, nil), result.ErrNotRun)
}

func TestPageLimitsConnections(t *testing.T) {
	dir, _ := simulate(t, watched)
	p := newTestPage(t, dir)
	server := httptest.NewUnstartedServer(p)
	server.Config.ConnState = p.limitConnections
	server.Start()
	t.Cleanup(server.Close)
	open := func() net.Conn {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	for range maxConnections {
		open()
	}
	_, err := open().Read(make([]byte, 1))
	require.Error(t, err, "one more is closed")
}
