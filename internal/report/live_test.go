package report_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/watch"
)

// TestLivePageInABrowser serves a run whose journal grows, and looks at its page as a user does who leaves it open: it reloads
// itself after new records, keeps its position, leaves a user alone who reads an opened part or types, and rests when the run has
// ended. The clock of the browser is moved by the test.
func TestLivePageInABrowser(t *testing.T) {
	t.Parallel()
	node, modules, chromium := browserTools(t)
	w := newWorld(t)
	run := w.run(w.save(filepath.Join(w.dir, "tiny.toml"), tiny), "tiny")
	w.fine(t)
	journal := filepath.Join(run, result.JournalFile)
	whole, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(whole), "\n")
	grow := func(n int) { require.NoError(t, os.WriteFile(journal, []byte(strings.Join(lines[:n], "")), 0o600)) }
	grow(len(lines) / 3)

	ctx, cancel := context.WithCancel(t.Context())
	address, served := make(chan string, 1), make(chan error, 1)
	now := func() time.Time { return time.Unix(0, 0) } // a page takes no time, so that its server need not rest
	go func() {
		served <- watch.Serve(ctx, run, now, func(url string) error { address <- url; return nil })
	}()
	end := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
	})
	defer end()
	d := drive(t, node, modules, chromium)
	page := <-address
	d.do(order{Do: "visit", Text: page}, nil)
	requests := func() (n int) {
		for _, h := range d.said() {
			require.Equal(t, "request", h.Kind, "%s", h.Text)
			require.Equal(t, page, h.Text, "the page asks its own server alone")
			n++
		}
		return n
	}
	pass := func() { d.do(order{Do: "pass", Times: 11}, nil) }
	// Whether the page is still the one that was marked, or has loaded itself again.
	isMarked := func() (is bool) {
		d.eval(`window.marked === true`, &is)
		return is
	}
	mark := func() { d.eval(`window.marked = true, scrollTo(0, 300)`, nil) }
	reloads := func(why string) {
		mark()
		require.Eventually(t, func() bool { pass(); return !isMarked() }, 20*time.Second, 50*time.Millisecond, why)
		d.do(order{Do: "loaded"}, nil)
		require.Eventually(t, func() bool {
			var y float64
			d.eval(`scrollY`, &y)
			return y > 200 && y < 400 // the browser keeps the text that was seen, and what is above may have grown
		}, 5*time.Second, 50*time.Millisecond, "the position is kept")
	}
	// The answer to each question of the page has come when the request after it has been made.
	stays := func(why string) {
		mark()
		for range 3 {
			pass()
		}
		assert.True(t, isMarked(), why)
	}
	stays("there are no new records")
	asked := requests()
	require.Greater(t, asked, 1, "it does ask")
	auditsAll(d)

	grow(len(lines) / 2)
	d.eval(`document.querySelector('details > summary').focus()`, nil)
	stays("a control has the focus")
	d.eval(`document.activeElement.blur()`, nil)
	reloads("new records")

	grow(len(lines))
	reloads("the end of the run")
	stays("the run has ended")
	u, err := url.Parse(page)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", u.Hostname())
	requests()
	end()
	require.Eventually(t, func() (is bool) {
		pass()
		d.eval(`document.querySelector('main > [role=status]') !== null`, &is)
		return is
	}, 20*time.Second, 50*time.Millisecond, "the end of the server is shown")
	auditsAll(d)
}
