package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// engine draws for all tests, as the library takes long to prepare: whatever the console says is an error.
type engine struct {
	sync.Mutex // the interpreter is of one goroutine at a time
	*drawer
	said []string
}

var sharedEngine = sync.OnceValues(func() (e *engine, err error) {
	e = &engine{}
	e.drawer, err = newDrawer(func(text string) { e.said = append(e.said, text) })
	return e, err
})

func newEngine(t *testing.T) *engine {
	t.Helper()
	e, err := sharedEngine()
	require.NoError(t, err)
	return e
}

// draw returns the picture of a chart as SVG.
func (e *engine) draw(t *testing.T, c report.Chart, width int, theme string) string {
	t.Helper()
	e.Lock()
	defer e.Unlock()
	e.said = nil
	svg, err := e.drawer.draw(&c, width, theme)
	require.NoError(t, err, c.ID)
	assert.Empty(t, e.said, "the console says")
	return svg
}

// eval runs a script next to those of the page.
func (e *engine) eval(t *testing.T, script string) goja.Value {
	t.Helper()
	e.Lock()
	defer e.Unlock()
	v, err := e.RunString(script)
	require.NoError(t, err)
	return v
}

// kindOf is what the id of a chart begins with. Pictures of one kind differ in nothing but numbers and texts.
var kindOf = regexp.MustCompile(`^(life-)?[a-z]+`)

// counters are the only thing that differs between two pictures of one chart.
var counters = regexp.MustCompile(`zr\d+-c\w*-?\d*`)

// thinOut leaves one set of the files in the first round, and one file in later ones:
// a picture draws any point like any other.
func thinOut(r *result.Result) {
	eachStep(r, func(s *result.Step) {
		keep := 1
		if s.Round == 1 {
			keep = 16
		}
		s.Samples = s.Samples[:min(len(s.Samples), keep)]
	})
}

// Every kind of chart is drawn of good results, and of hostile ones; DMGBENCH_LONG draws all charts. 10,000 points in an
// interpreter take long, and show nothing new.
func TestEveryChartDraws(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	drawn := map[string]bool{}
	for _, name := range []string{"sample", "sweep", "aging", "hostile", "empty"} {
		t.Run(name, func(t *testing.T) {
			p, r := makers[name]()
			thinOut(r)
			for _, c := range NewView(p, r).Charts {
				kind := fmt.Sprint(kindOf.FindString(c.ID), " hostile ", name == "hostile")
				if c.ID == "first" { // which is of any kind
					kind = name
				}
				if drawn[kind] && os.Getenv("DMGBENCH_LONG") == "" {
					continue
				}
				drawn[kind] = true
				svg := e.draw(t, c, 900, "LIGHT")
				assert.True(t, strings.HasPrefix(svg, "<svg"), c.ID)
				assert.NotContains(t, svg, "NaN", c.ID)
				assert.NotContains(t, svg, "undefined", c.ID)
				assert.NotContains(t, strings.ToLower(svg), "<script", c.ID)
				require.NoError(t, wellFormed(svg), c.ID)
			}
		})
	}
}

func TestPictureShowsWhatItShould(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p, r := makers["sample"]()
	charts := NewView(p, r).Charts
	svg := e.draw(t, charts[index(charts, "speed-write")], 900, "LIGHT")
	for _, text := range []string{"Write speed of each case", "sparse bundle (UDSB) · AES-256", "native folder", "speed, GB/s", "95 % t over rounds", "not comparable",
		"Example workstation", "2.31", "7.62"} {
		assert.Contains(t, svg, text)
	}
	bars := regexp.MustCompile(`fill="#0b6bb8"`).FindAllString(svg, -1)
	assert.GreaterOrEqual(t, len(bars), 5, "a bar for each case")
	again := e.draw(t, charts[index(charts, "speed-write")], 900, "LIGHT")
	assert.Equal(t, counters.ReplaceAllString(svg, ""), counters.ReplaceAllString(again, ""), "twice the same")
	dark := e.draw(t, charts[index(charts, "speed-write")], 900, "DARK")
	assert.Contains(t, dark, "#13161a")
	assert.NotContains(t, dark, "#0b6bb8")
	narrow := e.draw(t, charts[index(charts, "speed-write")], 340, "LIGHT")
	assert.Contains(t, narrow, `width="340"`)
}

// A name such as "fn:tip" must stay a name.
func TestFunctionsAreBoundByKeyOnly(t *testing.T) {
	e := newEngine(t)
	c := report.Chart{ID: "x", Heading: "fn:tip", Sub: "1", Notes: []string{"__f__alert(1)__f__"}, Height: 200,
		X: report.Axis{Name: "fn:x", Categories: []string{"fn:y", "{b}", "{a|rich}"}}, Y: report.Axis{Name: "fn:y", Unit: "B"},
		Series: []report.Series{{Role: "line", Name: "fn:tip", Marks: []report.Mark{report.Point(0, 1), report.Point(1, 2), report.Point(2, 3)}}}}
	svg := e.draw(t, c, 600, "LIGHT")
	for _, text := range []string{"fn:tip", "fn:y", "{b}", "{a|rich}", "__f__alert(1)__f__"} {
		assert.Contains(t, svg, text)
	}
}

// The numbers of the page's script are those of Go.
func TestScriptWritesNumbersLikeGo(t *testing.T) {
	e := newEngine(t)
	for _, unit := range []string{"B", "B/s", "s"} {
		for _, v := range []float64{0, 1, 12.5, 999.4, 999.6, 1e3, 1.234e6, 53.3e9, 2.5e13} {
			got := e.eval(t, fmt.Sprintf(`dmgbenchReport.human(%v, %q)`, v, unit))
			assert.Equal(t, report.Human(v, unit), got.String(), "%v %s", v, unit)
		}
	}
}

// wellFormed reads the picture as XML: what is saved has to open elsewhere.
func wellFormed(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("parsing the picture: %w", err)
		}
	}
}

// What is saved to files is the picture of the page, well-formed, and the same twice.
func TestSavedPictures(t *testing.T) {
	t.Parallel()
	saved := func() map[string]string {
		p, r := makers["sweep"]()
		out := map[string]string{}
		require.NoError(t, SVG(p, r, func(name string, svg []byte) error {
			assert.NotContains(t, out, name)
			out[name] = string(svg)
			return wellFormed(string(svg))
		}))
		return out
	}
	first := saved()
	require.Contains(t, first, "sweep-threads-stream.svg")
	assert.Contains(t, first["sweep-threads-stream.svg"], "Example workstation", "where it comes from stands inside")
	assert.Equal(t, first, saved())
	p, r := makers["sweep"]()
	full := errors.New("no space left on device")
	require.ErrorIs(t, SVG(p, r, func(string, []byte) error { return full }), full)
}
