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

// Chart is one picture with its table. Notes are printed inside the picture, so
// that it stays honest when it is cut out of the page.
type Chart struct {
	ID, Section  string
	File         string // name of its saved picture without a suffix, see [nameFiles]
	Heading, Sub string
	Notes        []string
	Height       int // of the plot without headings, in CSS pixels
	X, Y         Axis
	Series       []Series
	FixedLegend  bool    // the legend does not hide series
	Flipped      bool    // categories run downwards on the y axis
	HeadedTips   bool    // the first line of a tip is its heading
	Trend        bool    // a series a line of blocks where nothing can be drawn
	Count        float64 // bytes that one of what the role bands draws stands for
	Table        Table
}

// Axis is one axis of a chart. With categories it has no scale.
type Axis struct {
	Name       string
	Unit       string // base unit of the values
	Categories []string
	Log        bool
	Human      bool      // labels choose their unit one by one, as file sizes do
	Ticks      []float64 // explicit places of ticks, for log axes
	Names      []string  // labels of the whole numbers from 0: categories with room between them
	Brief      []string  // the same for a narrow screen, if they differ
	Low, High  *float64
	Values     []float64 // for the scale
}

// Series is one set of marks. role tells report.js how they look: bar, whisker,
// error, thin (errors that recede), heat, part, line, gap (over what is missing in a line), bands, dots,
// outcome (dots whose name says the colour), points, canary, warned, named, fit, fit2, faint, level, ideal, live, published, uncomparable, prediction.
type Series struct {
	Role, Name string
	Points     []any
	Tips       []string
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
func (c Chart) spec() ([]byte, error) {
	option, err := c.option()
	if err != nil {
		return nil, fmt.Errorf("building chart %q: %w", c.ID, err)
	}
	s := spec{ID: c.ID, File: FirstOf(c.File, c.ID), Notes: c.Notes, Height: c.Height, Canvas: c.size() >= canvasFrom, Fixed: c.FixedLegend, Flipped: c.Flipped, Headed: c.HeadedTips, Count: c.Count,
		X: c.X.spec(), Y: c.Y.spec(), Option: option}
	for _, one := range c.Series {
		s.Tips = append(s.Tips, one.Tips)
	}
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("building chart %q: %w", c.ID, err)
	}
	return out, nil
}

func (c Chart) size() int {
	n := 0
	for _, s := range c.Series {
		n += len(s.Points)
	}
	return n
}

func (c Chart) option() (map[string]any, error) {
	base := charts.NewCustom()
	base.SetGlobalOptions(
		charts.WithInitializationOpts(opts.Initialization{ChartID: c.ID}),
		charts.WithTitleOpts(opts.Title{Title: c.Heading, Subtitle: c.Sub}),
		charts.WithLegendOpts(opts.Legend{Data: c.legend()}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "item", Formatter: "fn:tip"}),
		charts.WithAriaOpts(&opts.Aria{Enabled: opts.Bool(true), Label: &opts.AriaLabel{Description: c.description()}}),
		charts.WithAnimation(false),
		charts.WithXAxisOpts(c.X.x()), charts.WithYAxisOpts(c.Y.y(c.Flipped)),
	)
	if c.X.Categories != nil {
		base.SetXAxis(c.X.Categories)
	}
	for i, s := range c.Series {
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
	c.X.extend(option, "xAxis", "fn:x")
	c.Y.extend(option, "yAxis", "fn:y")
	return option, nil
}

// description is the picture in one sentence, for those who do not see it.
func (c Chart) description() string {
	return c.Heading + ". " + c.Sub + " The figures are in the table below the chart; the arrow keys walk through its marks."
}

// legend names every series once, in order.
func (c Chart) legend() []string {
	names := []string{}
	for _, s := range c.Series {
		if s.Name != "" && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func (s Series) echarts(i int) charts.SingleSeries {
	out := charts.SingleSeries{Name: s.Name, Id: s.Role + ":" + strconv.Itoa(i), Type: types.ChartLine, Data: s.Points}
	if s.Points == nil {
		out.Data = []any{}
	}
	switch s.Role {
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

func (a Axis) kind() string {
	switch {
	case a.Categories != nil:
		return "category"
	case a.Log:
		return "log"
	}
	return "value"
}

func (a Axis) x() opts.XAxis {
	x := opts.XAxis{Type: a.kind(), Name: a.title(), NameLocation: "middle"}
	if a.Low != nil {
		x.Min = *a.Low
	}
	if a.High != nil {
		x.Max = *a.High
	}
	return x
}

func (a Axis) y(inverse bool) opts.YAxis {
	y := opts.YAxis{Type: a.kind(), Name: a.title(), Inverse: opts.Bool(inverse)}
	if a.Categories != nil {
		y.Data = a.Categories
	}
	if a.Low != nil {
		y.Min = *a.Low
	}
	if a.High != nil {
		y.Max = *a.High
	}
	return y
}

// title is the name of the axis with the unit of its labels.
func (a Axis) title() string {
	if a.Human || a.Categories != nil || a.Names != nil {
		return a.Name
	}
	return WithUnit(a.Name, ScaleOf(a.Unit, a.Values...))
}

func (a Axis) spec() *specAxis {
	if a.Categories != nil {
		return nil
	}
	s := ScaleOf(a.Unit, a.Values...)
	return &specAxis{a.Unit, s.Factor, s.Suffix, a.Human, a.Names, a.Brief}
}

// extend sets formatter and ticks, which the structs of go-echarts cannot carry.
func (a Axis) extend(option map[string]any, key, formatter string) {
	list, ok := option[key].([]any)
	if !ok || len(list) == 0 || a.Categories != nil {
		return
	}
	m := list[0].(map[string]any)
	label := map[string]any{"formatter": formatter}
	if a.Ticks != nil {
		label["customValues"] = a.Ticks
		m["axisTick"] = map[string]any{"customValues": a.Ticks}
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
	}, Shorten(s, 40))
}

// digits rounds to six significant digits: more than a picture shows, and a smaller page.
func digits(v float64) float64 {
	if !IsFinite(v) || v == 0 {
		return v
	}
	p := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if !IsFinite(p) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// xy is one point, or nil (a gap) where it cannot be drawn.
func xy(x, y float64) any {
	if !IsFinite(x) || !IsFinite(y) {
		return []any{nil, nil}
	}
	return []any{digits(x), digits(y)}
}

// orNull makes a number or a gap.
func orNull(v float64) any {
	if !IsFinite(v) {
		return nil
	}
	return digits(v)
}

func pointer(v float64) *float64 { return &v }
