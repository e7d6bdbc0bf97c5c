package watch

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dmgbench/internal/report/html"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// Serve serves the report of the run so far to browsers on this machine until
// ctx is done. It listens on a free port of the loopback address alone, and
// announce gets the address of the page, which contains a secret: other users
// of the machine reach the port, too. now is the time of day. It writes no file.
func Serve(ctx context.Context, dir string, now func() time.Time, announce func(url string) error) error {
	p := &page{dir: dir, path: "/" + rand.Text() + "/", now: now}
	if _, _, err := runfolders.Read(dir); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for a browser: %w", err)
	}
	p.host = l.Addr().String()
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ConnState: p.limitConnections}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := announce("http://" + p.host + p.path); err != nil {
		l.Close()
		return err
	}
	if err := server.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serving the report: %w", err)
	}
	return nil
}

// page is the report of a run over HTTP. It is rendered again only where the
// journal has changed, and when a browser asks for it.
type page struct {
	dir, host, path string // path contains the secret
	now             func() time.Time
	connections     atomic.Int64
	mu              sync.Mutex
	version         string // of text
	text            []byte
	next            time.Time // before which browsers hear of no other version
}

// maxConnections is the number of connections at a time: a browser has six.
const maxConnections = 64

// limitConnections closes connections above [maxConnections], as other users of
// the machine reach the port, too.
func (p *page) limitConnections(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if p.connections.Add(1) > maxConnections {
			c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		p.connections.Add(-1)
	}
}

// render returns the page and its version, which names the state of the journal.
// Browsers may ask at the same time. The processor belongs to the run: isHead is
// the question of the script in the page, which gets no text, and a new version
// as rarely as [Run.Poll] shows records. A user who reloads the page gets it.
func (p *page) render(isHead bool) (text []byte, version string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.now()
	if isHead && at.Before(p.next) {
		return nil, p.version, nil
	}
	// The state comes first: records that are appended meanwhile make another
	// version, which a browser asks for next.
	fi, err := os.Stat(filepath.Join(p.dir, result.JournalFile))
	if err != nil {
		return nil, "", err
	}
	if version = fmt.Sprintf(`"%d-%d"`, fi.ModTime().UnixNano(), fi.Size()); version == p.version || isHead {
		return p.text, version, nil
	}
	plan, r, err := runfolders.Analyze(p.dir)
	var b bytes.Buffer
	if err == nil {
		err = html.LiveRun(&b, plan, r, version)
	}
	if err == nil {
		p.version, p.text, p.next = version, b.Bytes(), p.now().Add(share*p.now().Sub(at))
	}
	return p.text, version, err
}

// ServeHTTP answers only requests for the secret path under the address that was
// announced. Another name in Host is that of a site that had its name lead here
// (DNS rebinding), whose scripts would be allowed to read the answer.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isPath := subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte(p.path)) == 1
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !isPath || r.Host != p.host || !isRead {
		w.Header().Set("Connection", "close") // who has no secret keeps no connection
		http.NotFound(w, r)
		return
	}
	text, version, err := p.render(r.Method == http.MethodHead)
	if err != nil {
		http.Error(w, strings.TrimSpace(err.Error()), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("ETag", version)
	// Pages of other origins must neither frame nor read it. The policy of the page
	// itself stays; these rules can only be in headers.
	h.Set("Content-Security-Policy", "frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer") // the address has the secret
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) // an error is the browser's: it closed the connection
}
