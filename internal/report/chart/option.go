package chart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/types"

	"dmgbench/internal/report"
)

// canvasFrom is the number of marks from which a chart is drawn on a canvas: as many SVG elements make a page slow.
const canvasFrom = 2500

// Spec is what the script of the page reads for one chart.
type Spec struct {
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
	Tips    [][]string     `json:"tips"`   // by series and mark
	Labels  [][]string     `json:"labels"` // the same, for the roles that write beside or into marks
	Option  map[string]any `json:"option"`
}

// specAxis is what the script needs to write the labels of an axis.
type specAxis struct {
	Unit   string    `json:"unit"`
	Factor float64   `json:"factor"`
	Suffix string    `json:"suffix"`
	Human  bool      `json:"human"`
	Ticks  []float64 `json:"ticks,omitempty"`
	Names  []string  `json:"names,omitempty"` // labels of the whole numbers from 0
	Brief  []string  `json:"brief,omitempty"`
}

// Encode writes a chart as JSON for the script of the page. The characters <, > and & are escaped, so that the text
// is safe inside a script element.
func Encode(c *report.Chart) ([]byte, error) {
	out, err := json.Marshal(newSpec(c))
	if err != nil {
		return nil, fmt.Errorf("encoding chart %q: %w", c.ID, err)
	}
	return out, nil
}

// newSpec fills the structs of go-echarts.
func newSpec(c *report.Chart) Spec {
	x, xSpec := encodeAxis(c, c.X, func(m report.Mark) float64 { return m.X })
	y, ySpec := encodeAxis(c, c.Y, func(m report.Mark) float64 { return m.Y })
	s := Spec{ID: c.ID, File: c.File, Notes: c.Notes, Height: c.Height, Canvas: c.Size() >= canvasFrom, Fixed: c.FixedLegend,
		Flipped: c.Flipped, Headed: c.HeadedTips, Count: c.BandBytes, X: xSpec, Y: ySpec}
	base := charts.NewCustom()
	base.SetGlobalOptions(
		charts.WithInitializationOpts(opts.Initialization{ChartID: c.ID}),
		charts.WithTitleOpts(opts.Title{Title: c.Heading, Subtitle: c.Sub}),
		charts.WithLegendOpts(opts.Legend{Data: c.Names()}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "item"}),
		charts.WithAriaOpts(&opts.Aria{Enabled: opts.Bool(true), Label: &opts.AriaLabel{Description: c.Description()}}),
		charts.WithAnimation(false),
		charts.WithXAxisOpts(opts.XAxis{Type: x.kind, Name: x.name, NameLocation: "middle", Min: x.low, Max: x.high}),
		charts.WithYAxisOpts(opts.YAxis{Type: y.kind, Name: y.name, Inverse: opts.Bool(c.Flipped), Data: y.categories,
			Min: y.low, Max: y.high}),
	)
	if x.categories != nil {
		base.SetXAxis(x.categories)
	}
	base.MultiSeries = s.encodeSeries(c)
	base.Validate()
	s.Option = base.JSON()
	delete(s.Option, "color") // the page has colours for light and dark
	delete(s.Option, "toolbox")
	return s
}

// axisOption is an axis in the types of go-echarts; nil is left to the library.
type axisOption struct {
	kind, name            string
	low, high, categories any
}

func encodeAxis(c *report.Chart, a report.Axis, value func(report.Mark) float64) (axisOption, *specAxis) {
	if a.Categories != nil {
		return axisOption{kind: "category", name: a.Name, categories: a.Categories}, nil
	}
	o := axisOption{kind: "value", name: a.Name}
	if a.Log {
		o.kind = "log"
	}
	if a.Low != nil {
		o.low = *a.Low
	}
	if a.High != nil {
		o.high = *a.High
	}
	var values []float64
	for _, m := range c.Marks() {
		values = append(values, value(m))
	}
	sc := report.ScaleOf(a.Unit, values...)
	if !a.Human && a.Names == nil {
		o.name = report.WithUnit(a.Name, sc)
	}
	return o, &specAxis{a.Unit, sc.Factor, sc.Suffix, a.Human, a.Ticks, a.Names, a.Brief}
}

// encodeSeries gives each series its data, its tips and its labels; a series with intervals becomes two.
func (s *Spec) encodeSeries(c *report.Chart) []charts.SingleSeries {
	var out []charts.SingleSeries
	add := func(role string, of report.Series, kind string, data any, tips, labels []string) {
		one := charts.SingleSeries{Name: of.Name, Id: role + ":" + strconv.Itoa(len(out)), Type: kind, Data: data}
		switch role {
		case "bar":
			one.BarGap, one.BarCategoryGap = "12%", "30%"
		case "whisker":
			one.Encode = &opts.Encode{X: []int{1, 2, 3}, Y: 0}
		case "error", "thin":
			one.Encode = &opts.Encode{X: 0, Y: []int{1, 2}}
		case "part":
			one.Encode = &opts.Encode{X: []int{1, 2, 4}, Y: 0}
		case "heat":
			one.Encode = &opts.Encode{X: 0, Y: 1}
		}
		s.Tips, s.Labels, out = append(s.Tips, tips), append(s.Labels, labels), append(out, one)
	}
	bars, slots := 0, 0
	for _, one := range c.Series {
		bars += bit(one.Role == "bar")
		for _, m := range one.Marks {
			slots = max(slots, m.Slot+1)
		}
	}
	slot := 0
	for _, one := range c.Series {
		tips, labels := markTexts(one.Marks)
		switch one.Role {
		case "bar":
			data, whiskers := make([]any, len(c.Y.Categories)), make([]any, 0, len(one.Marks))
			byRow := make([]string, len(data))
			for i, m := range one.Marks {
				row := int(m.Y)
				data[row], byRow[row] = report.RoundDigits(m.X), tips[i]
				low, high := ends(m)
				whiskers = append(whiskers, []any{row, low, high, orNull(m.Published, m.Published > 0), bit(m.Comparable),
					slot, bars, report.RoundDigits(m.X)})
			}
			add("bar", one, types.ChartBar, data, byRow, nil)
			add("whisker", one, types.ChartCustom, whiskers, nil, labels)
			slot++
		case "part":
			add("part", one, types.ChartCustom, parts(c, one, slots), tips, labels)
		case "heat":
			add("heat", one, types.ChartCustom, points(c, one), tips, labels)
		case "points", "canary", "warned", "published", "uncomparable", "prediction", "named":
			add(one.Role, one, types.ChartScatter, points(c, one), tips, nil)
		default:
			add(one.Role, one, types.ChartLine, points(c, one), tips, nil)
			if errors := intervals(one); len(errors) > 0 {
				add(map[bool]string{true: "thin", false: "error"}[one.Thin], one, types.ChartCustom, errors, nil, nil)
			}
		}
	}
	return out
}

// markTexts are the tips of marks, nil where none has any, and their labels.
func markTexts(marks []report.Mark) (tips, labels []string) {
	tips, labels = make([]string, len(marks)), make([]string, len(marks))
	for i, m := range marks {
		tips[i], labels[i] = m.Tip, m.Label
	}
	if !slices.ContainsFunc(tips, func(tip string) bool { return tip != "" }) {
		tips = nil
	}
	return tips, labels
}

// points is the data of a series of points: their places, or their values alone where the x axis has categories.
func points(c *report.Chart, s report.Series) any {
	if c.X.Categories != nil && s.Role != "heat" {
		data := make([]any, len(s.Marks))
		for i, m := range s.Marks {
			data[i] = orNull(m.Y, report.IsFinite(m.Y))
		}
		return data
	}
	data := make([][2]any, len(s.Marks))
	for i, m := range s.Marks {
		if m.Drawn() {
			data[i] = [2]any{report.RoundDigits(m.X), report.RoundDigits(m.Y)}
		}
	}
	return data
}

// intervals are the ends of the finite intervals of a line: x, low, high.
func intervals(s report.Series) []any {
	var data []any
	for _, m := range s.Marks {
		if low, high := ends(m); low != nil && high != nil {
			data = append(data, []any{report.RoundDigits(m.X), low, high})
		}
	}
	return data
}

// parts are the steps of waterfalls: row, from, to, ends of the interval, slot, slots of the picture, steps of the row.
func parts(c *report.Chart, s report.Series, slots int) []any {
	steps := map[float64]int{}
	for _, m := range c.Marks() {
		steps[m.Y]++
	}
	var data []any
	for _, m := range s.Marks {
		low, high := ends(m)
		data = append(data, []any{int(m.Y), report.RoundDigits(m.From), report.RoundDigits(m.X), low, high, m.Slot, slots, steps[m.Y]})
	}
	return data
}

// ends are the ends of the interval of a mark, nil where it has none.
func ends(m report.Mark) (low, high any) {
	if m.CI == nil {
		return nil, nil
	}
	return orNull(m.CI.Low, report.IsFinite(m.CI.Low)), orNull(m.CI.High, report.IsFinite(m.CI.High))
}

func orNull(v float64, known bool) any {
	if !known {
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
