package chart

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// factors are the units that axes may have, in base units.
var factors = map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6,
	"GB/s": 1e9, "TB/s": 1e12, "/s": 1, "k/s": 1e3, "M/s": 1e6, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}

// encoded is what the page and the saved pictures read of a chart.
type encoded struct {
	X, Y   *struct{ Factor float64 }
	Labels [][]string
	Tips   [][]string
	Option struct {
		Title  struct{ Text, Subtext string }
		Series []struct {
			ID   string
			Data [][]*float64
		}
		XAxis, YAxis []struct {
			Name string
			Max  *float64
		}
	}
}

// unitOf is the factor of the unit that ends the name of an axis, or a caption; 1 if there is none.
func unitOf(name string) float64 {
	at := strings.LastIndex(name, ", ")
	if f, ok := factors[strings.TrimPrefix(name[max(at, 0):], ", ")]; ok {
		return f
	}
	return 1
}

// scatter gives figures, intervals, published values and times of files random values, often about a change of the unit.
func scatter(t *rapid.T, r *result.Result) {
	base := math.Pow(10, rapid.Float64Range(-1, 11).Draw(t, "base"))
	spread := rapid.SampledFrom([]float64{0.3, 1, 4}).Draw(t, "decades")
	value := func() float64 { return base * math.Pow(10, -rapid.Float64Range(0, spread).Draw(t, "below")) }
	for i := range r.Summaries {
		s := &r.Summaries[i]
		for k := range s.Estimates {
			e := &s.Estimates[k]
			e.Value = value()
			if e.Unit == "s" {
				e.Value /= 1e9
			}
			if e.CI != nil {
				ci := *e.CI
				ci.Low, ci.High = e.Value*rapid.Float64Range(0, 1).Draw(t, "low"), e.Value*rapid.Float64Range(1, 20).Draw(t, "high")
				e.CI = &ci
			}
		}
		for k := range s.Published {
			s.Published[k].Low = value() * rapid.Float64Range(0.1, 30).Draw(t, "published")
			s.Published[k].High = s.Published[k].Low
		}
	}
	for i := range r.Cases {
		slower := math.Pow(10, rapid.Float64Range(-2, spread).Draw(t, "slower"))
		ns := func(n int64) int64 { return int64(float64(n)*slower) + 1 }
		for k := range r.Cases[i].Steps {
			s := &r.Cases[i].Steps[k]
			s.DurationNS = ns(s.DurationNS)
			if s.Span != nil {
				span := *s.Span
				span.GateNS, span.LastDoneNS, span.IdleNS = ns(span.GateNS), ns(span.LastDoneNS), ns(span.IdleNS)
				s.Span = &span
			}
			for n := range s.Samples {
				s.Samples[n].DurationNS = ns(s.Samples[n].DurationNS)
			}
		}
	}
}

// checkUnits compares the labels of a chart with its values in the unit of the axis, and returns the labels.
func checkUnits(t require.TestingT, c *report.Chart, e encoded) (labels []string) {
	for axis, have := range map[string]*struct{ Factor float64 }{e.Option.XAxis[0].Name: e.X, e.Option.YAxis[0].Name: e.Y} {
		isHuman := have == nil || c.X.Human && have == e.X || c.Y.Human && have == e.Y
		assert.True(t, isHuman || have.Factor == unitOf(axis), "%s: the name of the axis %q has another unit", c.ID, axis)
	}
	for i, s := range e.Option.Series {
		role, _, _ := strings.Cut(s.ID, ":")
		for k, label := range e.Labels[i] {
			v, unit := *s.Data[k][0], unitOf(e.Option.XAxis[0].Name)
			rounding := 1e-5 * math.Abs(v) // of places in a picture
			switch role {
			case "part":
				v -= *s.Data[k][4]
			case "heat": // the figure is in the tip, after the names of row and column
				_, suffix, _ := strings.Cut(e.Option.Title.Subtext, ", in ")
				suffix, _, _ = strings.Cut(suffix, ";")
				v, unit = humanValue(t, strings.Split(e.Tips[i][k], "\n")[2]), factors[suffix]
			case "error":
				continue
			}
			number, err := strconv.ParseFloat(strings.NewReplacer("−", "-", "+", "").Replace(label), 64)
			require.NoError(t, err, "%s: a label is a number", c.ID)
			assert.InDelta(t, v, number*unit, 0.0051*math.Abs(v)+rounding, "%s: %s in units of %g", c.ID, label, unit)
			labels = append(labels, label)
		}
	}
	return labels
}

// humanValue reads "1.23 GB/s, 4 files".
func humanValue(t require.TestingT, text string) float64 {
	number, rest, _ := strings.Cut(text, " ")
	suffix, _, _ := strings.Cut(rest, ",")
	v, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err, text)
	require.Contains(t, factors, suffix)
	return v * factors[suffix]
}

var svgText = regexp.MustCompile(`<text [^>]*>([^<]*)</text>`)

// Labels, ends of axes and values beyond them are in the unit that the axis has, whatever the figures, intervals and published
// values are: in what the page draws, and in a saved picture.
func TestLabelsHaveTheUnitOfTheAxis(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	costs := func() (*plan.Plan, *result.Result) {
		return layered(layers, "directory", "preallocated", "UDRW none", "UDSB none", "UDSB AES-256")
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]maker{makers["sample"], makers["sample"], makers["sweep"], makers["aging"], someFiles, costs}).Draw(t, "result")
		p, r := m()
		thinOut(r)
		scatter(t, r)
		charts := NewView(p, r).Charts
		drawn := rapid.IntRange(0, len(charts)-1).Draw(t, "drawn")
		for i := range charts {
			c := &charts[i]
			text, err := Encode(c)
			require.NoError(t, err)
			var spec encoded
			require.NoError(t, json.Unmarshal(text, &spec))
			labels := checkUnits(t, c, spec)
			if i != drawn || len(labels) == 0 {
				continue
			}
			e.Lock()
			svg, err := e.drawer.draw(c, pictureWidth, "LIGHT")
			e.Unlock()
			require.NoError(t, err)
			var texts []string
			for _, m := range svgText.FindAllStringSubmatch(svg, -1) {
				texts = append(texts, m[1])
			}
			if strings.HasPrefix(spec.Option.Series[0].ID, "heat") {
				continue // labels that do not fit are left out
			}
			assert.Contains(t, texts, spec.Option.XAxis[0].Name)
			end, unit := *spec.Option.XAxis[0].Max, unitOf(spec.Option.XAxis[0].Name)
			assert.Contains(t, texts, strconv.FormatFloat(report.RoundDigits(end/unit), 'f', -1, 64), "the end of the axis")
			for _, label := range labels {
				assert.Contains(t, texts, label)
			}
			for _, s := range c.Series {
				for _, m := range s.Marks {
					if s.Role == "bar" && m.Published > end*1.01 {
						assert.Contains(t, texts, units.Significant(report.RoundDigits(m.Published)/unit, 3), "beyond the edge")
					}
				}
			}
		}
	})
}

// One unit for figures that only an interval takes beyond a thousand: that of the axis.
func TestAnIntervalDecidesTheUnit(t *testing.T) {
	t.Parallel()
	s := func(v, high float64) *result.Summary {
		return &result.Summary{Op: "write", Rounds: 3, N: 3, Estimates: []result.Estimate{{Name: "aggregate", Value: v, Unit: "B/s",
			CI: &result.CI{Low: v / 2, High: high, Level: 0.95, Unit: "round"}}}}
	}
	c := bars(report.Chart{ID: "x", Heading: "Speeds", X: report.Axis{Name: "speed"}}, [2]string{"<case", "<bars"}, []string{"a", "b"},
		[]barGroup{{"write", []*result.Summary{s(400e6, 500e6), s(743e6, 1.4e9)}}})[0]
	svg := newEngine(t).draw(t, c, pictureWidth, "LIGHT")
	for _, text := range []string{">speed, GB/s<", ">0.400<", ">0.743<", ">1.5<"} {
		assert.Contains(t, svg, text)
	}
	assert.Equal(t, "measured, GB/s", c.Table.Columns[2].Title)
}
