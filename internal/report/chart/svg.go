package chart

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

// pictureWidth is the width of a saved picture in CSS pixels.
//
// It fits a column of an article at twice its resolution.
const pictureWidth = 900

//go:embed script
var scriptFiles embed.FS

// Script is all script of a page with charts: it draws and saves them, and
// sorts and copies tables.
var Script = readScripts("tables.js", "save.js", "marks.js", "report.js")

func readScripts(names ...string) string {
	all := ""
	for _, name := range names {
		text, err := scriptFiles.ReadFile("script/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		all += string(text)
	}
	return all
}

// SVG draws every chart of a report in the colours of light paper and gives
// each to save, in page order and under a file name of its own. The scripts of
// the page draw it here too, in an interpreter without network, files or clock,
// so that the same result gives the same bytes.
func SVG(p *plan.Plan, r *result.Result, save func(name string, svg []byte) error) error {
	v := NewView(p, r)
	if len(v.Charts) == 0 {
		return nil
	}
	d, err := newDrawer(func(string) {})
	if err != nil {
		return err
	}
	for _, c := range v.Charts {
		svg, err := d.draw(&c, pictureWidth, "LIGHT")
		if err != nil {
			return err
		}
		if err := save(c.File+".svg", []byte(svg+"\n")); err != nil {
			return fmt.Errorf("saving picture %q: %w", c.File, err)
		}
	}
	return nil
}

// compileLibrary compiles the charting library once for all drawers.
var compileLibrary = sync.OnceValues(func() (*goja.Program, error) {
	return goja.Compile("echarts.min.js", echarts.Script, false)
})

// drawFunction draws one chart without a document.
const drawFunction = `(function (text, width, theme) {
	var made = dmgbenchReport.picture(JSON.parse(text), width, dmgbenchReport[theme], dmgbenchReport.measurer());
	var chart = echarts.init(null, null, {renderer: 'svg', ssr: true, width: width, height: made.height});
	chart.setOption(made.option);
	var svg = chart.renderToSVGString();
	chart.dispose();
	return svg;
})`

// drawer runs the charting library and the scripts of the page without a
// browser.
type drawer struct {
	*goja.Runtime
	function goja.Callable // [drawFunction]
}

// newDrawer prepares a drawer; console gets what the scripts log.
//
// The interpreter is a part of this program: no browser has to be installed.
func newDrawer(console func(text string)) (*drawer, error) {
	d := &drawer{Runtime: goja.New()}
	log := func(call goja.FunctionCall) goja.Value {
		console(fmt.Sprint(call.Arguments))
		return goja.Undefined()
	}
	globals := map[string]any{"console": map[string]any{"log": log, "warn": log, "error": log}}
	for _, name := range []string{"setTimeout", "clearTimeout", "setInterval", "clearInterval"} {
		// Without an event loop, work that the library defers is never done: a
		// still picture does not need it.
		globals[name] = func(goja.FunctionCall) goja.Value { return goja.Undefined() }
	}
	// The library measures how long it takes to measure text, and measures
	// otherwise if that is slow.
	d.SetTimeSource(func() time.Time { return time.Unix(0, 0) })
	program, err := compileLibrary()
	for name, value := range globals {
		if err == nil {
			err = d.Set(name, value)
		}
	}
	if err == nil {
		_, err = d.RunProgram(program)
	}
	if err == nil {
		_, err = d.RunScript("report.js", Script)
	}
	var value goja.Value
	if err == nil {
		value, err = d.RunString(drawFunction)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the charting library: %w", err)
	}
	d.function, _ = goja.AssertFunction(value) // it is one
	return d, nil
}

// draw returns the picture of a chart as SVG. The theme is LIGHT or DARK.
//
// The text is the one that the page has, so that a saved picture is the picture
// of the page.
func (d *drawer) draw(c *report.Chart, width int, theme string) (string, error) {
	text, err := Encode(c)
	if err != nil {
		return "", err
	}
	value, err := d.function(goja.Undefined(), d.ToValue(string(text)), d.ToValue(width), d.ToValue(theme))
	if err != nil {
		return "", fmt.Errorf("drawing chart %q: %w", c.ID, err)
	}
	return strings.TrimSpace(value.String()), nil
}
