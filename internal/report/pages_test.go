package report_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
)

// TestPagesInABrowser runs the whole program, opens every kind of page that it makes, and does what people do: toggle legends, sort,
// copy, save, go through it by keys, darken, turn to a telephone, print. Nothing may be asked of the network, and the console stays
// empty; not even if every name and text wants to be something else, or a result was changed.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	node, modules, chromium := browserTools(t)
	w := map[string]*world{"real": newWorld(t), "hostile": newWorld(t)}
	pages := map[string][]subject{}
	var made sync.WaitGroup
	defer made.Wait()
	made.Go(func() { pages["real"], pages["hostile"] = w["real"].real(), w["hostile"].hostile() })
	d := drive(t, node, modules, chromium)
	hears(d)
	for name, page := range report.Made(t) {
		t.Run(name, func(t *testing.T) {
			d.t = t
			d.page(page)
			drawn(d)
			fits(d, "on a screen")
			auditsAll(d)
			if name == "history over versions" {
				walks(d)
			}
			assert.Empty(t, d.said())
		})
	}
	for _, name := range []string{"sample", "sweep", "aging", "uses", "large", "empty"} {
		t.Run("made "+name, func(t *testing.T) {
			d.t = t
			d.page(report.PageOf(name))
			audits(d)
			assert.Empty(t, d.said())
		})
	}
	made.Wait()
	keys := map[string]bool{} // pages of one name differ in texts alone: keys and colours are tried on the first of them
	for _, kind := range []string{"real", "hostile"} {
		w[kind].fine(t)
		for _, s := range pages[kind] {
			t.Run(kind+" "+s.name, func(t *testing.T) {
				d.t = t
				d.open(s.path)
				visit(d, s, kind == "real", !keys[s.name])
				keys[s.name] = true
			})
		}
	}
	t.Run("policy", func(t *testing.T) {
		d.t = t
		obeys(d, pages["real"][1].path)
	})
}

// visit does it all to the page that is open. Words of a page without hostile text are never broken; only the first page of
// a name is tried by keys and in the dark.
func visit(d *driver, s subject, hasWords, isFirst bool) {
	drawn(d)
	fits(d, "on a screen")
	if s.name != "ledger" { // which has no script, and needs none
		toggles(d)
		sorts(d)
		copies(d)
		captions(d)
		saves(d)
	}
	if isFirst {
		types(d)
		auditsAll(d)
		reaches(d)
		darkens(d)
	}
	narrows(d, hasWords)
	prints(d, s.texts...)
	if s.into != "" {
		leads(d, s.into)
	}
	assert.Empty(d.t, d.said())
}

// obeys opens a page that somebody has put a script into: it is not run, as the policy is in force.
func obeys(d *driver, path string) {
	page, err := os.ReadFile(path)
	require.NoError(d.t, err)
	spoilt := strings.Replace(string(page), "</main>", "<script>document.title='owned'</script></main>", 1)
	require.NotEqual(d.t, string(page), spoilt)
	d.page(spoilt)
	var title string
	d.eval(`document.title`, &title)
	assert.NotEqual(d.t, "owned", title)
	said := d.said()
	require.Len(d.t, said, 1)
	assert.Contains(d.t, said[0].Text, "Content Security Policy")
}
