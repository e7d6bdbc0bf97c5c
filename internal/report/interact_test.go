package report

import (
	"bytes"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// hostileComparison is full of names that want to be markup.
func hostileComparison(t *testing.T) *analysis.Comparison {
	evil := `</script><img src=x onerror=alert(1)>` + "\u202e`|*\"'__f__ 🧨" + strings.Repeat("x", 300)
	a, b := comparable("a"+evil, evil+"1", 100), comparable("b"+evil, evil+"2", 200)
	for _, r := range []*result.Result{a, b} {
		r.Claims[0].Says, r.Claims[0].ID, r.Plan.Name = evil, evil, evil
		r.Cases[0].ID = evil
	}
	c, err := analysis.Compare([]*result.Result{a, b}, analysis.CompareOptions{})
	require.NoError(t, err)
	return c
}

// fewFiles is a report of one phase, with few points in its charts: it draws quickly.
func fewFiles(t *testing.T, m maker) string {
	t.Helper()
	p, r := m()
	thinOut(r)
	phase := ""
	eachStep(r, func(s *result.Step) {
		if phase == "" && s.Do == "write" {
			phase = s.Phase
		}
	})
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Steps = slices.DeleteFunc(c.Steps, func(s result.Step) bool { return len(s.Samples) > 0 && s.Do != "canary" && s.Phase != phase })
	}
	r.Summaries = slices.DeleteFunc(r.Summaries, func(s result.Summary) bool { return s.Phase != phase })
	var b bytes.Buffer
	require.NoError(t, HTML(&b, p, r))
	return b.String()
}

// TestPagesInABrowser does to every kind of page what people do: toggle legends,
// sort, copy, save, darken, print. Nothing may be asked of the network, and the
// console stays empty.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	d := drive(t)
	hears(d)
	compared := func(c *analysis.Comparison) string {
		return string(rendered(t, func(w io.Writer) error { return ComparisonHTML(w, c) }))
	}
	for _, p := range []struct{ name, page string }{
		{"report of a real run", realRun(t)}, {"report", fewFiles(t, makers["sample"])}, {"comparison", compared(comparison(t))},
		{"hostile report", fewFiles(t, makers["hostile"])}, {"hostile comparison", compared(hostileComparison(t))},
		{"history", historyPage(t, pastOf(reporttest.Past()))}, {"hostile history", historyPage(t, hostilePast())},
	} {
		t.Run(p.name, func(t *testing.T) {
			d.t = t
			d.page(p.page)
			drawnAll(d)
			toggles(d)
			sorts(d)
			copies(d)
			saves(d)
			darkens(d)
			prints(d)
			assert.Empty(t, d.said())
		})
	}
}

// hears opens a page that does all that no page of ours may do: what is not heard here, would not be heard of ours.
func hears(d *driver) {
	d.page(`<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline'"><title>loud</title>
		<script>console.log('a word'); alert('a question'); fetch('http://dmgbench.invalid/data'); null.thrown;</script>
		<script src="forbidden.js"></script><img src="http://dmgbench.invalid/picture.png">`)
	kinds := map[string]string{}
	for _, h := range d.said() {
		kinds[h.Kind] += h.Text + "\n"
	}
	for kind, texts := range map[string][]string{
		"console": {"log: a word", "Content Security Policy"}, "dialog": {"a question"}, "exception": {"null"},
		"request": {"http://dmgbench.invalid/data", "http://dmgbench.invalid/picture.png"},
	} {
		for _, text := range texts {
			require.Contains(d.t, kinds[kind], text, "%s of a page that is loud", kind)
		}
	}
}

func drawnAll(d *driver) {
	var empty []string
	d.eval(`Array.from(document.querySelectorAll('.chart')).filter(function (c) { return !c.querySelector('svg, canvas'); }).map(function (c) { return c.id; })`, &empty)
	assert.Empty(d.t, empty, "charts that are not drawn")
	var n int
	d.eval(`document.querySelectorAll('img, iframe, object, link').length`, &n)
	assert.Zero(d.t, n, "foreign elements")
}

// toggles clicks on the first name of a legend that hides series.
func toggles(d *driver) {
	var at struct{ X, Y float64 }
	d.eval(`(function () {
		var c = window.toggled = dmgbenchSave.charts.find(function (c) { return !c.spec.fixed && !c.spec.canvas && c.spec.option.legend.data.length > 1; });
		c.place.scrollIntoView({ block: 'start' });
		var name = c.chart.getOption().legend[0].data[0];
		var texts = Array.from(c.place.querySelectorAll('svg text'));
		var text = texts.find(function (e) { return e.textContent === name; }) || texts.find(function (e) { return name.indexOf(e.textContent.slice(0, 12)) === 0; });
		var r = text.getBoundingClientRect();
		return { X: r.x + 5, Y: r.y + r.height / 2 };
	})()`, &at)
	d.do(order{Do: "click", X: at.X, Y: at.Y}, nil)
	var shown bool
	d.eval(`(function () { var l = toggled.chart.getOption().legend[0]; return l.selected[l.data[0]] !== false; })()`, &shown)
	assert.False(d.t, shown, "a click on a legend hides its series")
}

// sorts clicks on headings of every table that sorts: up, down, and back.
func sorts(d *driver) {
	var found []string
	d.eval(`(function () {
		var wrong = [];
		document.querySelectorAll('.scroll > table').forEach(function (table, t) {
			var body = table.tBodies[0];
			var text = function () { return Array.from(body.rows).map(function (r) { return r.textContent; }).join('\n'); };
			var first = text();
			Array.from(table.querySelectorAll('th .sort')).forEach(function (button, i) {
				var values = function () {
					return Array.from(body.rows).map(function (r) { return r.cells[i].querySelector('bdi'); })
						.map(function (b) { return b && /^[0-9.]+$/.test(b.textContent) ? Number(b.textContent) : NaN; }).filter(function (v) { return !isNaN(v); });
				};
				button.click();
				var up = values();
				if (!button.parentNode.classList.contains('number')) up = [];
				up.forEach(function (v, k) { if (k && v < up[k - 1]) wrong.push('table ' + t + ' column ' + i + ' is not sorted: ' + up.join(' ')); });
				if (button.parentNode.getAttribute('aria-sort') !== 'ascending') wrong.push('table ' + t + ' says no order');
				button.click();
				if (up.length > 1 && values()[0] < up[0]) wrong.push('table ' + t + ' does not turn round');
				button.click();
				if (text() !== first) wrong.push('table ' + t + ' column ' + i + ' does not come back');
			});
		});
		if (!document.querySelector('.sort')) wrong.push('no table sorts');
		return wrong;
	})()`, &found)
	assert.Empty(d.t, found)
}

// copies presses the buttons of the first tables and looks at what they hand out.
func copies(d *driver) {
	var copied map[string]string
	d.eval(`(async function () {
		var out = {};
		navigator.clipboard.writeText = function (text) { out[form] = text; return Promise.resolve(); };
		var form;
		for (var bar of Array.from(document.querySelectorAll('.scroll + .copy')).slice(0, 1)) {
			for (var button of bar.querySelectorAll('button')) { form = button.textContent; button.click(); await null; }
		}
		return out;
	})()`, &copied)
	require.Len(d.t, copied, 3)
	assert.True(d.t, strings.HasPrefix(copied["HTML"], "<table>"))
	assert.Contains(d.t, copied["Markdown"], "|---")
	assert.NotContains(d.t, strings.ToLower(copied["HTML"]), "<img")
	lines := strings.Split(strings.TrimSuffix(copied["TSV"], "\n"), "\n")
	for _, line := range lines {
		assert.Equal(d.t, strings.Count(lines[0], "\t"), strings.Count(line, "\t"), line)
	}
}

// saves presses the buttons below the first chart and looks at the files.
func saves(d *driver) {
	for _, form := range []string{"SVG", "PNG"} {
		var name string
		file := filepath.Join(d.t.TempDir(), "saved")
		d.do(order{Do: "save", Text: `.chart + .copy button:text-is("` + form + `")`, File: file}, &name)
		assert.Equal(d.t, "."+strings.ToLower(form), filepath.Ext(name))
		text, err := os.ReadFile(file)
		require.NoError(d.t, err)
		if form == "SVG" {
			assert.True(d.t, bytes.HasPrefix(text, []byte("<svg")))
			require.NoError(d.t, wellFormed(string(text)))
			continue
		}
		picture, err := png.Decode(bytes.NewReader(text))
		require.NoError(d.t, err)
		assert.Equal(d.t, 2*pictureWidth, picture.Bounds().Dx(), "two pixels for each of CSS")
		colours := map[[3]uint32]bool{}
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			for y := 0; y < picture.Bounds().Dy(); y += 3 {
				r, g, b, _ := picture.At(x, y).RGBA()
				colours[[3]uint32{r, g, b}] = true
			}
		}
		assert.Greater(d.t, len(colours), 8, "something is drawn")
	}
}

func darkens(d *driver) {
	d.do(order{Do: "scheme", Text: "dark"}, nil)
	var got struct{ Paper, Chart string }
	d.eval(`new Promise(function (done) { requestAnimationFrame(function () { requestAnimationFrame(function () {
		done({ Paper: getComputedStyle(document.body).backgroundColor, Chart: dmgbenchSave.charts[0].chart.getOption().backgroundColor });
	}); }); })`, &got)
	assert.Equal(d.t, "rgb(19, 22, 26)", got.Paper)
	assert.Equal(d.t, "#13161a", got.Chart)
}

func prints(d *driver) {
	file := filepath.Join(d.t.TempDir(), "page.pdf")
	d.do(order{Do: "print", File: file}, nil)
	pdf, err := os.ReadFile(file)
	require.NoError(d.t, err)
	assert.True(d.t, bytes.HasPrefix(pdf, []byte("%PDF")))
	assert.Greater(d.t, bytes.Count(pdf, []byte("/Type /Page\n"))+bytes.Count(pdf, []byte("/Type /Page ")), 0, "pages")
}
