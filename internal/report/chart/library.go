package chart

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/types"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

// canvasFrom is the number of marks from which a chart is drawn on a canvas: as
// many SVG elements make a page slow.
const canvasFrom = 2500

// Encode writes a chart as JSON for the script of the page. The characters <, >
// and & are escaped, so that the text is safe inside a script element.
func Encode(c *report.Chart) ([]byte, error) {
	out, err := json.Marshal(newSpec(c))
	if err != nil {
		return nil, fmt.Errorf("encoding chart %q: %w", c.ID, err)
	}
	return out, nil
}

// newSpec is what the script of the page reads for one chart: the option of the
// library, and what the script binds to it as functions (labels, tips, marks),
// which JSON cannot carry.
//
// go-echarts knows the names and the nesting of the option; styles are set by
// the script, for light and dark. Tips are by series and mark; so are labels,
// for the roles that write next to or into marks.
func newSpec(c *report.Chart) data {
	xs, ys := drawn(c)
	xOption, x := encodeAxis(c.X, xs)
	yOption, y := encodeAxis(c.Y, ys)
	spec := data{"id": c.ID, "notes": c.Notes, "height": c.Height, "canvas": c.Size() >= canvasFrom, "x": x, "y": y,
		"fixed": c.FixedLegend, "flipped": c.Flipped, "headed": c.HeadedTips, "count": c.BandBytes}
	base := charts.NewCustom()
	base.SetGlobalOptions(
		charts.WithTitleOpts(opts.Title{Title: c.Heading, Subtitle: c.Sub}),
		charts.WithLegendOpts(opts.Legend{Data: c.Names()}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true)}),
		charts.WithAriaOpts(&opts.Aria{Enabled: opts.Bool(true), Label: &opts.AriaLabel{Description: c.Description()}}),
		charts.WithXAxisOpts(xOption),
		charts.WithYAxisOpts(opts.YAxis{Type: yOption.Type, Name: yOption.Name, Data: yOption.Data, Min: yOption.Min,
			Max: yOption.Max, Inverse: opts.Bool(c.Flipped)}),
	)
	base.MultiSeries, spec["tips"], spec["labels"] = encodeSeries(c)
	option := base.JSON()
	delete(option, "color") // the page has colours for light and dark
	delete(option, "toolbox")
	spec["option"] = option
	return spec
}

// drawn are the values of the marks on both axes, with intervals and published
// values on that of the figures.
func drawn(c *report.Chart) (xs, ys []float64) {
	for _, m := range c.Marks() {
		figures := []float64{m.Published}
		if m.CI != nil {
			figures = append(figures, m.CI.Low, m.CI.High)
		}
		xs, ys = append(xs, m.X), append(ys, m.Y)
		if c.Flipped {
			xs = append(xs, figures...)
		} else {
			ys = append(ys, figures...)
		}
	}
	return xs, ys
}

// encodeAxis returns the option of an axis, in which nil is left to the library,
// and what the script needs to write its labels, nil for categories.
func encodeAxis(a report.Axis, drawn []float64) (option opts.XAxis, labels data) {
	if a.Categories != nil {
		return opts.XAxis{Type: "category", Name: a.Name, Data: a.Categories}, nil
	}
	option = opts.XAxis{Type: "value", Name: a.Name, Min: a.Low, Max: a.High}
	if a.Log {
		option.Type = "log"
	}
	sc := a.Scale
	if a.High != nil {
		drawn = report.Where(append(drawn, *a.High), func(v float64) bool { return v <= *a.High })
	}
	if sc.Factor == 0 {
		sc = report.ScaleOf(a.Unit, drawn...)
	}
	if !a.Human && a.Names == nil {
		option.Name = report.WithUnit(a.Name, sc)
	}
	return option, data{"unit": a.Unit, "factor": sc.Factor, "suffix": sc.Suffix, "human": a.Human, "ticks": a.Ticks,
		"names": a.Names}
}

// roleOption is how the library draws a role: the type of its series, how many
// of the values of a mark they have, and which of these have to fit on the axes
// (nil: the first two). The script draws the marks of custom series. The values
// are x, y, the ends of the interval, the start of a part, the published value,
// whether that is comparable, the slot within the row, the slots of the chart
// and the marks of the row.
type roleOption struct {
	kind   string
	values int
	encode *opts.Encode
}

// lines are drawn for the roles that are not in the table below.
var lines = roleOption{types.ChartLine, 2, nil}

var roleOptions = map[string]*roleOption{
	"bar":          {types.ChartBar, 2, nil},
	"whisker":      {types.ChartCustom, 9, &opts.Encode{X: []int{0, 2, 3, 5}, Y: 1}},
	"part":         {types.ChartCustom, 10, &opts.Encode{X: []int{0, 3, 4}, Y: 1}},
	"error":        {types.ChartCustom, 4, &opts.Encode{X: 0, Y: []int{2, 3}}},
	"heat":         {types.ChartCustom, 2, &opts.Encode{X: 0, Y: 1}},
	"points":       {types.ChartScatter, 2, nil},
	"named":        {types.ChartScatter, 2, nil},
	"canary":       {types.ChartScatter, 2, nil},
	"warned":       {types.ChartScatter, 2, nil},
	"published":    {types.ChartScatter, 2, nil},
	"uncomparable": {types.ChartScatter, 2, nil},
	"prediction":   {types.ChartScatter, 2, nil},
}

// encodeSeries gives each series its data, its tips and its labels; the intervals
// of bars and lines are series of their own.
func encodeSeries(c *report.Chart) (out []charts.SingleSeries, allTips, allLabels [][]string) {
	// Bars and parts of one row share its height in equal slots.
	slots, steps := 0, map[float64]int{} // of the chart, and of each row
	for _, one := range c.Series {
		slots += bit(one.Role == "bar")
		if one.Role == "part" {
			for _, m := range one.Marks {
				slots = max(slots, m.Slot+1)
				steps[m.Y]++
			}
		}
	}
	slot := 0
	add := func(role, name string, marks []report.Mark) {
		o := cmp.Or(roleOptions[role], &lines)
		values, tips, labels := make([][]any, len(marks)), make([]string, len(marks)), []string{}
		for i, m := range marks {
			values[i], tips[i] = []any{known(m.X), known(m.Y)}, m.Tip
			if o.kind == types.ChartCustom {
				labels = append(labels, m.Label)
				values[i] = slices.Concat(values[i], ends(m), []any{known(m.From), known(m.Published),
					bit(m.Comparable), m.Slot + slot, slots, steps[m.Y]})[:o.values]
			}
		}
		if role == "whisker" || role == "error" || strings.Join(tips, "") == "" {
			tips = nil // nobody can point at the marks, or the script writes their tips
		}
		allTips, allLabels = append(allTips, tips), append(allLabels, labels)
		out = append(out, charts.SingleSeries{Name: name, Id: role + ":" + strconv.Itoa(len(out)), Type: o.kind,
			Data: values, Encode: o.encode})
	}
	for _, one := range c.Series {
		add(one.Role, one.Name, one.Marks)
		if one.Role == "bar" {
			add("whisker", one.Name, one.Marks)
			slot++
		} else if roleOptions[one.Role] == nil {
			bars := report.Where(one.Marks, func(m report.Mark) bool { return !slices.Contains(ends(m), nil) })
			if len(bars) > 0 {
				add("error", one.Name, bars)
			}
		}
	}
	return out, allTips, allLabels
}

// ends are the ends of the interval of a mark, nil where it has none.
func ends(m report.Mark) []any {
	if m.CI == nil {
		return []any{nil, nil}
	}
	return []any{known(m.CI.Low), known(m.CI.High)}
}

// known is a number for JSON, nil if it is none.
//
// NaN and infinities have no form in JSON; the library leaves null out.
func known(v float64) any {
	if !report.IsFinite(v) {
		return nil
	}
	return report.RoundDigits(v)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pictureWidth is the width of a saved picture in CSS pixels.
//
// It fits a column of an article at twice its resolution.
const pictureWidth = 900

//go:embed script/tables.js
var tablesScript string

//go:embed script/save.js
var saveScript string

//go:embed script/marks.js
var marksScript string

//go:embed script/report.js
var reportScript string

// Script is all script of a page with charts: it draws and saves them, and
// sorts and copies tables.
var Script = tablesScript + saveScript + marksScript + reportScript

// SVG draws every chart of a report in the colours of light paper and gives
// each to save, in page order and under its id. The scripts of
// the page draw it here too, in an interpreter without network, files or clock,
// so that the same result gives the same bytes.
func SVG(p *plan.Plan, r *result.Result, save func(name string, svg []byte) error) error {
	d, err := newDrawer(func(string) {})
	if err != nil {
		return err
	}
	for _, c := range NewView(p, r).Charts {
		svg, err := d.draw(&c, pictureWidth, "LIGHT")
		if err != nil {
			return err
		}
		if err := save(c.ID+".svg", []byte(svg+"\n")); err != nil {
			return fmt.Errorf("saving picture %q: %w", c.ID, err)
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
	// Without an event loop, work that the library defers is never done: a
	// still picture does not need it.
	skip := func(goja.FunctionCall) goja.Value { return goja.Undefined() }
	for name, value := range map[string]any{"console": map[string]any{"log": log, "warn": log, "error": log},
		"setTimeout": skip, "clearTimeout": skip, "setInterval": skip, "clearInterval": skip} {
		_ = d.Set(name, value) // an error is one of a setter, which none has
	}
	// The library measures how long it takes to measure text, and measures
	// otherwise if that is slow.
	d.SetTimeSource(func() time.Time { return time.Unix(0, 0) })
	program, err := compileLibrary()
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
