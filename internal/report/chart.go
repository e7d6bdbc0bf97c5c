package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/types"
)

// canvasFrom is the number of points from which a chart is drawn on a canvas: SVG elements would make the page slow.
const canvasFrom = 2500

// chart is one picture with its table. Notes are printed inside the picture, so
// that it stays honest when it is cut out of the page.
type chart struct {
	id, section  string
	file         string // name of its saved picture without a suffix, see [nameFiles]
	heading, sub string
	notes        []string
	height       int // of the plot without headings, in CSS pixels
	x, y         axis
	series       []series
	fixed        bool    // the legend does not hide series
	flipped      bool    // categories run downwards on the y axis
	headed       bool    // the first line of a tip is its heading
	trend        bool    // a series a line of blocks where nothing can be drawn
	count        float64 // bytes that one of what the role bands draws stands for
	table        table
}

// axis is one axis of a chart. With categories it has no scale.
type axis struct {
	name       string
	unit       string // base unit of the values
	categories []string
	log        bool
	human      bool      // labels choose their unit one by one, as file sizes do
	ticks      []float64 // explicit places of ticks, for log axes
	names      []string  // labels of the whole numbers from 0: categories with room between them
	brief      []string  // the same for a narrow screen, if they differ
	low, high  *float64
	values     []float64 // for the scale
}

// series is one set of marks. role tells report.js how they look: bar, whisker,
// error, thin (errors that recede), heat, part, line, gap (over what is missing in a line), bands, dots,
// outcome (dots whose name says the colour), points, canary, warned, named, fit, fit2, faint, level, ideal, live, published, uncomparable, prediction.
type series struct {
	role, name string
	points     []any
	tips       []string
}

// spec is what the page's script reads.
type spec struct {
	ID      string         `json:"id"`
	File    string         `json:"file"`
	Notes   []string       `json:"notes"`
	Height  int            `json:"height"`
	Canvas  bool           `json:"canvas"`
	Fixed   bool           `json:"fixed"`
	Flipped bool           `json:"flipped"`
	Headed  bool           `json:"headed,omitempty"`
	Count   float64        `json:"count,omitempty"`
	X       *specAxis      `json:"x"`
	Y       *specAxis      `json:"y"`
	Tips    [][]string     `json:"tips"`
	Option  map[string]any `json:"option"`
}

type specAxis struct {
	Unit   string  `json:"unit"`
	Factor float64 `json:"factor"`
	Suffix string  `json:"suffix"`
	Human  bool    `json:"human"`
	// Names stand for the whole numbers from 0.
	Names []string `json:"names,omitempty"`
	Brief []string `json:"brief,omitempty"`
}

// spec builds the options of the chart through go-echarts and adds what its structs lack.
func (c chart) spec() ([]byte, error) {
	option, err := c.option()
	if err != nil {
		return nil, fmt.Errorf("building chart %q: %w", c.id, err)
	}
	s := spec{ID: c.id, File: firstOf(c.file, c.id), Notes: c.notes, Height: c.height, Canvas: c.size() >= canvasFrom, Fixed: c.fixed, Flipped: c.flipped, Headed: c.headed, Count: c.count,
		X: c.x.spec(), Y: c.y.spec(), Option: option}
	for _, one := range c.series {
		s.Tips = append(s.Tips, one.tips)
	}
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("building chart %q: %w", c.id, err)
	}
	return out, nil
}

func (c chart) size() int {
	n := 0
	for _, s := range c.series {
		n += len(s.points)
	}
	return n
}

func (c chart) option() (map[string]any, error) {
	base := charts.NewCustom()
	base.SetGlobalOptions(
		charts.WithInitializationOpts(opts.Initialization{ChartID: c.id}),
		charts.WithTitleOpts(opts.Title{Title: c.heading, Subtitle: c.sub}),
		charts.WithLegendOpts(opts.Legend{Data: c.legend()}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "item", Formatter: "fn:tip"}),
		charts.WithAriaOpts(&opts.Aria{Enabled: opts.Bool(true), Label: &opts.AriaLabel{Description: c.description()}}),
		charts.WithAnimation(false),
		charts.WithXAxisOpts(c.x.x()), charts.WithYAxisOpts(c.y.y(c.flipped)),
	)
	if c.x.categories != nil {
		base.SetXAxis(c.x.categories)
	}
	for i, s := range c.series {
		base.MultiSeries = append(base.MultiSeries, s.echarts(i))
	}
	base.Validate()
	text, err := json.Marshal(base.JSON())
	if err != nil {
		return nil, err
	}
	var option map[string]any
	if err := json.Unmarshal(text, &option); err != nil {
		return nil, err
	}
	delete(option, "color") // the page picks colours that suit light and dark
	delete(option, "toolbox")
	c.x.extend(option, "xAxis", "fn:x")
	c.y.extend(option, "yAxis", "fn:y")
	return option, nil
}

// description is the picture in one sentence, for those who do not see it.
func (c chart) description() string {
	return c.heading + ". " + c.sub + " The figures are in the table below the chart; the arrow keys walk through its marks."
}

// legend names every series once, in order.
func (c chart) legend() []string {
	names := []string{}
	for _, s := range c.series {
		if s.name != "" && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

func (s series) echarts(i int) charts.SingleSeries {
	out := charts.SingleSeries{Name: s.name, Id: s.role + ":" + strconv.Itoa(i), Type: types.ChartLine, Data: s.points}
	if s.points == nil {
		out.Data = []any{}
	}
	switch s.role {
	case "bar":
		out.Type = types.ChartBar
		out.BarGap, out.BarCategoryGap = "12%", "30%"
	case "whisker":
		out.Type, out.RenderItem = types.ChartCustom, "fn:whisker"
		out.Encode = &opts.Encode{X: []int{1, 2, 3}, Y: 0}
	case "error", "thin":
		out.Type, out.RenderItem = types.ChartCustom, "fn:error"
		out.Encode = &opts.Encode{X: 0, Y: []int{1, 2}}
	case "part":
		out.Type, out.RenderItem = types.ChartCustom, "fn:part"
		out.Encode = &opts.Encode{X: []int{1, 2, 4}, Y: 0}
	case "heat":
		out.Type, out.RenderItem = types.ChartCustom, "fn:heat"
		out.Encode = &opts.Encode{X: 0, Y: 1}
	case "points", "canary", "warned", "published", "uncomparable", "prediction", "named":
		out.Type = types.ChartScatter
	}
	return out
}

func (a axis) kind() string {
	switch {
	case a.categories != nil:
		return "category"
	case a.log:
		return "log"
	}
	return "value"
}

func (a axis) x() opts.XAxis {
	x := opts.XAxis{Type: a.kind(), Name: a.title(), NameLocation: "middle"}
	if a.low != nil {
		x.Min = *a.low
	}
	if a.high != nil {
		x.Max = *a.high
	}
	return x
}

func (a axis) y(inverse bool) opts.YAxis {
	y := opts.YAxis{Type: a.kind(), Name: a.title(), Inverse: opts.Bool(inverse)}
	if a.categories != nil {
		y.Data = a.categories
	}
	if a.low != nil {
		y.Min = *a.low
	}
	if a.high != nil {
		y.Max = *a.high
	}
	return y
}

// title is the name of the axis with the unit of its labels.
func (a axis) title() string {
	if a.human || a.categories != nil || a.names != nil {
		return a.name
	}
	return withUnit(a.name, scaleOf(a.unit, a.values...))
}

func (a axis) spec() *specAxis {
	if a.categories != nil {
		return nil
	}
	s := scaleOf(a.unit, a.values...)
	return &specAxis{a.unit, s.factor, s.suffix, a.human, a.names, a.brief}
}

// extend sets formatter and ticks, which the structs of go-echarts cannot carry.
func (a axis) extend(option map[string]any, key, formatter string) {
	list, ok := option[key].([]any)
	if !ok || len(list) == 0 || a.categories != nil {
		return
	}
	m := list[0].(map[string]any)
	label := map[string]any{"formatter": formatter}
	if a.ticks != nil {
		label["customValues"] = a.ticks
		m["axisTick"] = map[string]any{"customValues": a.ticks}
	}
	m["axisLabel"] = label
}

// slug keeps letters and digits of a name for use in an id; it need not be unique.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, shorten(s, 40))
}

// digits rounds to six significant digits: more than a picture shows, and a smaller page.
func digits(v float64) float64 {
	if !finite(v) || v == 0 {
		return v
	}
	p := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if !finite(p) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// xy is one point, or nil (a gap) where it cannot be drawn.
func xy(x, y float64) any {
	if !finite(x) || !finite(y) {
		return []any{nil, nil}
	}
	return []any{digits(x), digits(y)}
}

// orNull makes a number or a gap.
func orNull(v float64) any {
	if !finite(v) {
		return nil
	}
	return digits(v)
}

func pointer(v float64) *float64 { return &v }
