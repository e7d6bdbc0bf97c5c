package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browser finds a Chromium, or skips the test with the reason.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("DMGBENCH_NO_BROWSER") != "" {
		t.Skip("DMGBENCH_NO_BROWSER is set")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium found on this machine")
	return ""
}

// open renders a page in a headless browser without any network and returns its
// document after the scripts have run, and what the console said.
func open(t *testing.T, page string, flags ...string) (dom, console string) {
	t.Helper()
	path := browser(t)
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + t.TempDir(),
		"--enable-logging=stderr", "--virtual-time-budget=5000", "--window-size=1000,1400", "--dump-dom"}, flags...)
	cmd := exec.CommandContext(ctx, path, append(args, "file://"+file)...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "</html>") {
		t.Skipf("the browser does not run here: %v %s", err, shorten(log.String(), 300))
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			lines = append(lines, line)
		}
	}
	return out.String(), strings.Join(lines, "")
}

var chartPlace = regexp.MustCompile(`<div class="chart" id="([^"]+)"[^>]*>(.{0,400})`)

func TestBrowserDrawsEveryChart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sample", "hostile"} {
		dom, console := open(t, html(t, makers[name]))
		assert.Empty(t, console, "the console of %s", name)
		assert.Contains(t, dom, `<p class="copy">`, "tables can be taken along")
		places := chartPlace.FindAllStringSubmatch(dom, -1)
		require.NotEmpty(t, places)
		for _, p := range places {
			assert.Regexp(t, `<(svg|canvas)\b`, p[2], "%s: chart %s is empty", name, p[1])
		}
	}
}

// A page whose script was tampered with is not run: the policy is in force.
func TestBrowserObeysPolicy(t *testing.T) {
	t.Parallel()
	page := html(t, makers["sweep"])
	page = strings.Replace(page, "</main>", "<script>document.title='owned'</script></main>", 1)
	dom, console := open(t, page)
	assert.NotContains(t, dom, "<title>owned")
	assert.Contains(t, console, "Content Security Policy")
}
