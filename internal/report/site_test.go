package report_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sitePage is what a page of the site contains: absolute addresses of links and pictures, and the names of its anchors.
type sitePage struct{ Links, Pictures, Anchors []string }

// TestSiteInABrowser opens every page that `make site` has built from files: all its links within the site resolve, it asks
// nothing of the network, and everyone can use it.
func TestSiteInABrowser(t *testing.T) {
	t.Parallel()
	site, err := filepath.Abs(filepath.Join("..", "..", "dist", "site"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(site, "index.html")); err != nil {
		t.Skip("the site is not built: make site")
	}
	if source := newerThan(t, filepath.Join(site, "..", "plans")); source != "" && os.Getenv("CI") == "" {
		t.Skipf("the site was built before %s was changed: make site", source)
	}
	node, modules, chromium := browserTools(t)
	d := drive(t, node, modules, chromium)
	found := map[string]sitePage{}
	for _, pattern := range []string{"*.html", "plan/*.html"} {
		paths, err := filepath.Glob(filepath.Join(site, pattern))
		require.NoError(t, err)
		require.Greater(t, len(paths), 10, pattern)
		for _, path := range paths {
			t.Run(strings.TrimPrefix(path, site+"/"), func(t *testing.T) {
				d.t = t
				found[path] = visitSite(d, path)
			})
		}
	}
	for path, page := range found {
		for _, link := range append(page.Links, page.Pictures...) {
			resolves(t, site, path, link, found)
		}
	}
}

// newerThan returns a source of the site that was changed after the folder that `make site` makes first.
func newerThan(t *testing.T, made string) string {
	built, err := os.Stat(made)
	require.NoError(t, err)
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "docs/*", "plans/*", "site/*", "site/layouts/*", "tools/docs/*"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			if f, err := os.Stat(path); err == nil && !f.IsDir() && f.ModTime().After(built.ModTime()) {
				return path
			}
		}
	}
	return ""
}

// visitSite opens a page and judges it alone.
func visitSite(d *driver, path string) (page sitePage) {
	d.open(path)
	audits(d)
	d.eval(`({
		Links: Array.from(document.querySelectorAll('a')).map(function (e) { return e.href; }),
		Pictures: Array.from(document.querySelectorAll('img')).map(function (e) { return e.src; }),
		Anchors: Array.from(document.querySelectorAll('[id]')).map(function (e) { return e.id; }),
	})`, &page)
	var broken []string
	d.eval(`Array.from(document.images).filter(function (e) { return !e.naturalWidth; }).map(function (e) { return e.src; })`, &broken)
	assert.Empty(d.t, broken, "pictures that are not shown")
	for _, h := range d.said() {
		assert.True(d.t, h.Kind == "request" && strings.HasPrefix(h.Text, "file://"), "%s: %s", h.Kind, h.Text)
	}
	d.do(order{Do: "size", X: 380, Y: 800}, nil)
	var wide int
	d.eval(`document.documentElement.scrollWidth`, &wide)
	assert.LessOrEqual(d.t, wide, 380, "on 380 pixels")
	return page
}

// resolves checks one link of a page: one within the site leads to a file and an anchor of it, any other to the web.
func resolves(t *testing.T, site, path, link string, found map[string]sitePage) {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	if u.Scheme == "https" && !slices.Contains(found[path].Pictures, link) {
		return
	}
	require.Equal(t, "file", u.Scheme, "%s links to %s", path, link)
	assert.True(t, strings.HasPrefix(u.Path, site+"/"), "%s links to %s outside of the site", path, link)
	assert.FileExists(t, u.Path, "%s links to it", path)
	if page, ok := found[u.Path]; ok && u.Fragment != "" {
		assert.Contains(t, page.Anchors, u.Fragment, "%s links to %s", path, link)
	}
}
