package report_test

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reaches goes through the page by the tab key: all that can be pressed, opened or scrolled has to get the focus once, and show it.
func reaches(d *driver) {
	var n int
	d.eval(`(function () {
		window.wanted = Array.from(document.querySelectorAll('a[href], button, summary, [tabindex="0"]')).filter(function (e) { return e.checkVisibility(); });
		window.got = new Set();
		window.unseen = [];
		document.addEventListener('focusin', function (event) {
			got.add(event.target);
			if (getComputedStyle(event.target).outlineStyle === 'none') unseen.push(event.target.outerHTML.slice(0, 200));
		});
		document.activeElement.blur();
		wanted[0].focus({ focusVisible: true });
		return wanted.length;
	})()`, &n)
	d.do(order{Do: "size", X: 1100, Y: 150}, nil) // less to paint after each key
	d.do(order{Do: "press", Text: "Tab", Times: n}, nil)
	var left struct{ Missed, Unseen []string }
	d.eval(`({ Missed: wanted.filter(function (e) { return !got.has(e); }).map(function (e) { return e.outerHTML.slice(0, 200); }), Unseen: unseen })`, &left)
	assert.Empty(d.t, left.Missed, "of %d that the keyboard should reach", n)
	assert.Empty(d.t, left.Unseen, "focus that cannot be seen")
}

// audits applies the rules of axe-core to the page, in dark colours that of contrast alone, and leaves it light. The shadows at
// the edges of tables go for that time: axe-core finds no contrast on a gradient.
func audits(d *driver) {
	d.eval(`document.querySelectorAll('.scroll').forEach(function (e) { e.style.background = 'none'; })`, nil)
	for scheme, rule := range map[string]string{"dark": "color-contrast", "light": ""} {
		d.do(order{Do: "scheme", Text: scheme}, nil)
		d.eval(`new Promise(function (done) { requestAnimationFrame(function () { requestAnimationFrame(done); }); })`, nil)
		var wrong []string
		d.do(order{Do: "audit", Text: rule}, &wrong)
		assert.Empty(d.t, wrong, scheme)
	}
	d.do(order{Do: "scheme", Text: "light"}, nil)
	d.eval(`document.querySelectorAll('.scroll').forEach(function (e) { e.style.background = ''; })`, nil)
}

// auditsAll audits the page with all its details open.
func auditsAll(d *driver) {
	d.eval(`(function () { window.opened = Array.from(document.querySelectorAll('details:not([open])')); opened.forEach(function (e) { e.open = true; }); })()`, nil)
	audits(d)
	d.eval(`opened.forEach(function (e) { e.open = false; })`, nil)
}

// types presses keys on the first that is seen of everything that answers to keys.
func types(d *driver) {
	var wrong []string
	pressed := func(selector, key, then string) {
		d.eval(`(function () { var e = window.held = Array.from(document.querySelectorAll('`+selector+`')).find(function (e) { return e.checkVisibility(); }); e.scrollIntoView(); e.focus(); })()`, nil)
		d.do(order{Do: "press", Text: key}, nil)
		var ok bool
		d.eval(then, &ok)
		if !ok {
			wrong = append(wrong, selector+" does not answer to "+key)
		}
	}
	pressed("details > summary", "Enter", `held.parentNode.open`)
	pressed("details > summary", "Enter", `!held.parentNode.open`)
	var scripted bool
	d.eval(`!!window.dmgbenchSave`, &scripted)
	if scripted {
		pressed(".chart", "ArrowRight", `document.querySelector('p.said').textContent.length > 3`)
		pressed("th .sort", "Enter", `held.parentNode.getAttribute('aria-sort') === 'ascending'`)
		pressed("th .sort", "Space", `held.parentNode.getAttribute('aria-sort') === 'descending'`)
		pressed("th .sort", "Enter", `!held.parentNode.getAttribute('aria-sort') || held.parentNode.getAttribute('aria-sort') === 'none'`)
	}
	assert.Empty(d.t, wrong)
}

// narrows looks at the page on a small telephone, where it stays: only what scrolls by itself may be wider. Words of a page
// without hostile text are never broken.
func narrows(d *driver, hasWords bool) {
	d.do(order{Do: "size", X: 380, Y: 800}, nil)
	var wide []string
	// Charts follow the size of the window some time later, on a busy machine.
	d.eval(`new Promise(function (done) {
		var root = document.documentElement, until = Date.now() + 5000;
		(function look() { requestAnimationFrame(function () { requestAnimationFrame(function () {
			if (root.scrollWidth <= root.clientWidth) return done([]);
			if (Date.now() < until) return look();
			done(Array.from(document.body.querySelectorAll('*')).filter(function (e) {
				return e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest('.scroll, svg') && e.checkVisibility();
			}).map(function (e) { return e.outerHTML.slice(0, 200); }).concat('the page is ' + root.scrollWidth + ' wide'));
		}); }); })();
	})`, &wide)
	assert.Empty(d.t, wide, "on 380 pixels")
	d.eval(`document.querySelectorAll('.ledger details').forEach(function (e) { e.open = true; })`, nil)
	fits(d, "on 380 pixels")
	if hasWords {
		wholeWords(d)
	}
}

// wholeWords looks for a word of a heading or a cell that is broken within.
func wholeWords(d *driver) {
	var wrong []string
	d.eval(`(function () {
		var wrong = [], range = document.createRange();
		document.querySelectorAll('h1, h2, h3, th, td, dt, summary').forEach(function (e) {
			if (!e.checkVisibility()) return;
			var walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) {
				for (var m of walk.currentNode.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
					range.setStart(walk.currentNode, m.index);
					range.setEnd(walk.currentNode, m.index + m[0].length);
					var lines = new Set(Array.from(range.getClientRects()).map(function (r) { return Math.round(r.top); }));
					if (lines.size > 1) wrong.push(e.tagName + ': ' + m[0] + ' in ' + e.textContent.slice(0, 60));
				}
			}
		});
		return wrong;
	})()`, &wrong)
	assert.Empty(d.t, wrong, "on 380 pixels")
}

func darkens(d *driver) {
	d.do(order{Do: "scheme", Text: "dark"}, nil)
	var got struct{ Paper, Chart string }
	d.eval(`new Promise(function (done) { requestAnimationFrame(function () { requestAnimationFrame(function () {
		done({ Paper: getComputedStyle(document.body).backgroundColor, Chart: window.dmgbenchSave ? dmgbenchSave.charts[0].chart.getOption().backgroundColor : '' });
	}); }); })`, &got)
	assert.Equal(d.t, "rgb(19, 22, 26)", got.Paper)
	assert.Contains(d.t, []string{"#13161a", ""}, got.Chart)
}

var inPrint = regexp.MustCompile(`[^A-Za-z0-9<>()=]+`)

// letters is what of a text is the same however it is wrapped and ordered.
func letters(s string) string { return inPrint.ReplaceAllString(s, "") }

// prints makes a PDF, and reads it: paper is light, whatever the screen is, and has every heading and every picture, and the texts that
// are given.
func prints(d *driver, texts ...string) {
	file := filepath.Join(d.t.TempDir(), "page.pdf")
	d.do(order{Do: "print", File: file}, nil)
	pdf, err := os.ReadFile(file)
	require.NoError(d.t, err)
	assert.True(d.t, bytes.HasPrefix(pdf, []byte("%PDF")))
	assert.Greater(d.t, bytes.Count(pdf, []byte("/Type /Page\n"))+bytes.Count(pdf, []byte("/Type /Page ")), 0, "pages")
	var found []string
	d.eval(`Array.from(document.querySelectorAll('h2')).map(function (e) { return e.textContent; }).concat(
		(window.dmgbenchSave ? dmgbenchSave.charts : []).map(function (c) { return c.spec.option.title.text; }))`, &found)
	d.t.Run("on paper", func(t *testing.T) {
		for _, program := range []string{"pdftotext", "pdftoppm"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed (Debian: apt install poppler-utils)", program)
			}
		}
		out, err := exec.CommandContext(t.Context(), "pdftotext", "-raw", file, "-").Output()
		require.NoError(t, err)
		have := letters(string(out))
		for _, text := range texts {
			assert.Contains(t, have, letters(text), "%q", text)
		}
		for _, heading := range found { // one beside another column may be wrapped around that
			assert.Contains(t, have, fmt.Sprintf("%.24s", letters(heading)), "%q", heading)
		}
		out, err = exec.CommandContext(t.Context(), "pdftoppm", "-png", "-r", "20", "-singlefile", file).Output()
		require.NoError(t, err)
		sheet, err := png.Decode(bytes.NewReader(out))
		require.NoError(t, err)
		r, g, b, _ := sheet.At(1, 1).RGBA()
		assert.Equal(t, [3]uint32{0xffff, 0xffff, 0xffff}, [3]uint32{r, g, b}, "the colour of the paper")
	})
}

// leads follows every link to another page, which has to be there.
func leads(d *driver, dir string) {
	var links []string
	d.eval(`Array.from(document.querySelectorAll('a[href]')).filter(function (a) { return a.getAttribute('href')[0] !== '#'; }).map(function (a) { return decodeURIComponent(a.pathname); })`, &links)
	require.NotEmpty(d.t, links)
	for _, link := range links {
		assert.True(d.t, strings.HasPrefix(link, dir), link)
		assert.FileExists(d.t, link)
	}
}

// walks goes through the marks of a chart with the arrow keys: each is said, with its run, and none is empty.
func walks(d *driver) {
	var heard []string
	d.eval(`(function () {
		var c = dmgbenchSave.charts[0], out = [];
		c.place.focus();
		for (var i = 0; i < 80; i++) {
			c.place.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
			out.push(document.querySelector('p.said').textContent);
		}
		return out;
	})()`, &heard)
	seen := map[string]bool{}
	for _, text := range heard {
		assert.Regexp(d.t, `^2026-\d\d-\d\d 09:00 run-\d\d\. .*GB/s.*version \d`, text)
		seen[text] = true
	}
	assert.Len(d.t, seen, 4*17+4, "four lines of the runs that ended, and what is not finished; a ring says what its line does")
	assert.Contains(d.t, strings.Join(heard, "\n"), "the run is not finished: it may change")
}
