package report

import (
	"bytes"
	"fmt"
	"sync"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"

	"github.com/dop251/goja"
)

// pictureWidth is the width of a saved picture in CSS pixels.
const pictureWidth = 900

// SVG draws every chart of the report in the colours of light paper and hands each to
// save, in page order and under a file name of its own. There is one definition
// of a chart: the page's own script and library draw it here too, in an
// interpreter without network, files or clock. The same result gives the same bytes.
func SVG(p *plan.Plan, r *result.Result, save func(name string, svg []byte) error) error {
	charts := NewView(p, r).Charts()
	if len(charts) == 0 {
		return nil
	}
	d, err := newDrawer(func(string) {})
	if err != nil {
		return err
	}
	for _, c := range charts {
		svg, err := d.draw(c, pictureWidth, "LIGHT")
		if err != nil {
			return err
		}
		if err := save(c.File+".svg", append([]byte(svg), '\n')); err != nil {
			return fmt.Errorf("saving picture %q: %w", c.File, err)
		}
	}
	return nil
}

// library is the charting library, read once for all drawers.
var library = sync.OnceValues(func() (*goja.Program, error) { return goja.Compile("echarts.min.js", echarts.Script, false) })

// drawer runs the charting library and the page's script without a browser.
type drawer struct{ *goja.Runtime }

func newDrawer(console func(text string)) (*drawer, error) {
	vm := goja.New()
	// There is no event loop: what the library would put off is not needed for a still picture.
	none := func(goja.FunctionCall) goja.Value { return goja.Undefined() }
	say := func(call goja.FunctionCall) goja.Value {
		console(fmt.Sprint(call.Arguments))
		return goja.Undefined()
	}
	program, err := library()
	steps := []func() error{
		func() error { return err },
		func() error { return vm.Set("console", map[string]any{"log": say, "warn": say, "error": say}) },
		func() error { _, err := vm.RunProgram(program); return err },
		func() error { _, err := vm.RunScript("report.js", scriptSource); return err },
		func() error { _, err := vm.RunString(drawSource); return err },
	}
	for _, name := range []string{"setTimeout", "clearTimeout", "setInterval", "clearInterval"} {
		if err := vm.Set(name, none); err != nil {
			return nil, fmt.Errorf("preparing the charting library: %w", err)
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("preparing the charting library: %w", err)
		}
	}
	return &drawer{vm}, nil
}

// drawSource draws one chart without a document.
const drawSource = `function draw(text, width, theme) {
	var made = dmgbenchReport.picture(JSON.parse(text), width, dmgbenchReport[theme], dmgbenchReport.measurer());
	var chart = echarts.init(null, null, {renderer: 'svg', ssr: true, width: width, height: made.height});
	chart.setOption(made.option);
	var svg = chart.renderToSVGString();
	chart.dispose();
	return svg;
}`

// draw returns the picture of a chart as SVG.
func (d *drawer) draw(c Chart, width int, theme string) (string, error) {
	text, err := c.spec()
	if err != nil {
		return "", err
	}
	f, ok := goja.AssertFunction(d.Get("draw"))
	if !ok {
		return "", fmt.Errorf("drawing chart %q: the page's script has no such function", c.ID)
	}
	value, err := f(goja.Undefined(), d.ToValue(string(text)), d.ToValue(width), d.ToValue(theme))
	if err != nil {
		return "", fmt.Errorf("drawing chart %q: %w", c.ID, err)
	}
	return string(bytes.TrimSpace([]byte(value.String()))), nil
}
