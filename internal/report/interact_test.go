package report_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
)

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

// drawn looks at what the page has become: every chart is there, and nothing that a text brought along.
func drawn(d *driver) {
	var wrong []string
	d.eval(`(function () {
		var wrong = Array.from(document.querySelectorAll('.chart')).filter(function (c) { return !c.querySelector('svg, canvas'); }).map(function (c) { return 'not drawn: ' + c.id; });
		document.querySelectorAll('img, iframe, object, embed, link, base, form, script[src], svg:not(.chart svg)').forEach(function (e) { wrong.push('foreign: ' + e.outerHTML.slice(0, 200)); });
		var scripts = document.querySelectorAll('script:not([type])').length;
		if (scripts !== (window.dmgbenchSave ? 2 : 0)) wrong.push(scripts + ' scripts');
		document.querySelectorAll('*').forEach(function (e) {
			Array.from(e.attributes).forEach(function (a) {
				if (/^on/i.test(a.name)) wrong.push('foreign: ' + e.tagName + ' ' + a.name);
				if (a.name === 'href' && e.protocol !== 'file:') wrong.push('leads away: ' + a.value);
			});
		});
		var walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) {
			var n = walk.currentNode;
			if (n.parentNode.tagName === 'SCRIPT') continue;
			if (/[\u202a-\u202e\u2066\u2067\u200e\u200f\u061c]/.test(n.data)) wrong.push('turns what is around it: ' + n.data.slice(0, 200));
			if (!n.parentNode.closest('svg') && n.data.split('\u2068').length !== n.data.split('\u2069').length) wrong.push('is not closed: ' + n.parentNode.outerHTML.slice(0, 300));
		}
		return wrong;
	})()`, &wrong)
	assert.Empty(d.t, wrong)
}

// fits looks for text that lies on other text: what sticks out of the cell of a table, and names of rows of a chart that are too tall.
func fits(d *driver, where string) {
	var wrong []string
	d.eval(`(function () {
		var wrong = [], range = document.createRange();
		document.querySelectorAll('th, td').forEach(function (cell) {
			if (!cell.checkVisibility() || !cell.textContent.trim()) return;
			range.selectNodeContents(cell);
			var text = range.getBoundingClientRect(), box = cell.getBoundingClientRect();
			if (text.right > box.right + 1) wrong.push('out of its cell by ' + Math.round(text.right - box.right) + ': ' + cell.textContent.slice(0, 100));
		});
		document.querySelectorAll('.chart').forEach(function (chart) {
			var lines = Array.from(chart.querySelectorAll('svg text[text-anchor="end"]')).filter(function (e) { return /[a-z]/i.test(e.textContent) && /^(translate|$)/.test(e.getAttribute('transform') || ''); })
				.map(function (e) { return { text: e.textContent, box: e.getBoundingClientRect() }; });
			lines.forEach(function (a, i) {
				lines.slice(i + 1).forEach(function (b) {
					var high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
					var wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
					if (high > 4 && wide > 4) wrong.push('in ' + chart.id + ' on each other: ' + a.text + ' | ' + b.text);
				});
			});
		});
		return wrong;
	})()`, &wrong)
	assert.Empty(d.t, wrong, where)
}

// toggles clicks on the first name of a legend that hides series.
func toggles(d *driver) {
	var at struct{ X, Y float64 }
	d.eval(`(function () {
		var c = window.toggled = dmgbenchSave.charts.find(function (c) { return !c.spec.fixed && !c.spec.canvas && c.spec.option.legend.data.length > 1; });
		c.place.scrollIntoView({ block: 'start' });
		var name = c.chart.getOption().legend[0].data[0].name;
		var texts = Array.from(c.place.querySelectorAll('svg text'));
		var text = texts.findLast(function (e) { return e.textContent === name; }) // a category may have the same name; the legend comes later
			 || texts.find(function (e) { return name.indexOf(e.textContent.slice(0, 12)) === 0; });
		var r = text.getBoundingClientRect();
		return { X: r.x + 5, Y: r.y + r.height / 2 };
	})()`, &at)
	d.do(order{Do: "click", X: at.X, Y: at.Y}, nil)
	var shown bool
	d.eval(`(function () { var l = toggled.chart.getOption().legend[0]; return l.selected[l.data[0].name] !== false; })()`, &shown)
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

// captions presses the button for the caption of every chart: it copies the heading, the notes and the origin.
func captions(d *driver) {
	var charts []struct {
		Copied, Heading, Status string
		Notes                   []string
	}
	d.eval(`(async function () {
		var out = [], copied;
		navigator.clipboard.writeText = function (text) { copied = text; return Promise.resolve(); };
		for (var c of dmgbenchSave.charts) {
			copied = '';
			var bar = c.place.nextElementSibling;
			Array.from(bar.querySelectorAll('button')).find(function (b) { return b.textContent === 'Copy caption'; }).click();
			await null;
			out.push({ Copied: copied, Heading: c.spec.option.title.text, Notes: c.spec.notes, Status: bar.querySelector('[role=status]').textContent });
		}
		return out;
	})()`, &charts)
	require.NotEmpty(d.t, charts)
	for _, c := range charts {
		assert.True(d.t, strings.HasPrefix(c.Copied, c.Heading+"."), c.Copied)
		for _, note := range c.Notes {
			assert.Contains(d.t, c.Copied, note)
		}
		assert.Equal(d.t, " copied", c.Status)
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
			require.NoError(d.t, report.WellFormed(string(text)))
			continue
		}
		picture, err := png.Decode(bytes.NewReader(text))
		require.NoError(d.t, err)
		assert.Equal(d.t, 2*report.PictureWidth, picture.Bounds().Dx(), "two pixels for each of CSS")
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
