package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
)

// charts draw one quantity of a series, run after run; many cases make more pictures.
func (v *seriesView) charts(p seriesPart) []Chart {
	var out []Chart
	chunks := slices.Collect(slices.Chunk(p.rows, casesInChart))
	for i, rows := range chunks {
		c := v.chart(p, rows)
		c.ID = fmt.Sprintf("%s-%s-%d", v.id, slug(p.op), i+1)
		if len(chunks) > 1 {
			c.Heading += fmt.Sprintf(" (%d of %d)", i+1, len(chunks))
		}
		out = append(out, c)
	}
	return out
}

// barsMost is of how many runs intervals are drawn: more would be a hedge that hides the points.
const barsMost = 80

func (v *seriesView) chart(p seriesPart, rows []analysis.HistoryRow) Chart {
	n := len(v.s.Runs) - v.first
	unit := rows[0].Unit
	c := Chart{Height: 280, Trend: true, HeadedTips: true, Heading: Capitalize(QuantityName(p.op)) + " over " + Count(n, "run") + TextIf(p.phase != "" || p.cycle > 0, ", phase “"+PhaseName(p.phase, p.cycle)+"”"),
		X: Axis{Name: "", Unit: "1", Low: pointer(-0.5), High: pointer(float64(n) - 0.5)}, Y: Axis{Name: QuantityName(p.op), Unit: unit}}
	v.stretches(&c)
	low, high := v.span(rows)
	c.Y.Low, c.Y.High, c.Y.Values = pointer(low), pointer(high), []float64{low, high}
	open := Series{Role: "uncomparable", Name: "not finished, or failed"}
	doubtful := Series{Role: "warned", Name: "with an unusual warning"}
	for _, row := range rows {
		line, bars := Series{Role: "line", Name: v.label(row.Case)}, Series{Role: "thin", Name: v.label(row.Case)}
		for i, value := range row.Values[v.first:] {
			x, run := float64(i), v.first+i
			why := ""
			if value != nil && IsFinite(value.Value) {
				why = v.open(run, row.Case)
			}
			switch {
			case value == nil || !IsFinite(value.Value):
				line.Points, line.Tips = append(line.Points, []any{nil, nil}), append(line.Tips, "")
				continue
			case why != "":
				line.Points, line.Tips = append(line.Points, []any{nil, nil}), append(line.Tips, "")
				open.Points, open.Tips = append(open.Points, xy(x, value.Value)), append(open.Tips, v.tip(row, run, why))
				continue
			}
			line.Points, line.Tips = append(line.Points, xy(x, value.Value)), append(line.Tips, v.tip(row, run, ""))
			if n <= barsMost && value.CI != nil && IsFinite(value.CI.Low) && IsFinite(value.CI.High) && value.CI.Low < value.CI.High {
				bars.Points = append(bars.Points, []any{i, digits(value.CI.Low), digits(value.CI.High)})
			}
			if len(v.doubts(row, run)) > 0 {
				doubtful.Points, doubtful.Tips = append(doubtful.Points, xy(x, value.Value)), append(doubtful.Tips, v.tip(row, run, ""))
			}
		}
		c.Series = append(c.Series, line)
		if len(bars.Points) > 0 {
			c.Series = append(c.Series, bars)
		}
	}
	for _, s := range []Series{open, doubtful} {
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	v.upright(&c, low, high)
	c.Sub = "Runs in the order of time, the oldest on the left; a dashed line is where system, program or engine changed." + TextIf(low > 0, " The axis does not begin at 0.")
	c.Notes = v.notes(rows)
	c.Table = v.chartTable(c.Heading, rows)
	return c
}

// stretches writes the version in the middle of the runs that have it, in what is new of it.
func (v *seriesView) stretches(c *Chart) {
	n := len(v.s.Runs) - v.first
	c.X.Names, c.X.Brief = make([]string, n), make([]string, n)
	before := analysis.HistoryVersion{}
	for from := 0; from < n; {
		version := v.s.Runs[v.first+from].Version
		to := from
		for to+1 < n && v.s.Runs[v.first+to+1].Version == version {
			to++
		}
		at := (from + to) / 2
		c.X.Ticks = append(c.X.Ticks, float64(at))
		now := v.s.Versions[version]
		c.X.Names[at] = stretchName(before, now)
		c.X.Brief[at] = briefName(c.X.Names[at])
		before, from = now, to+1
	}
}

// stretchName is a version in at most two lines: what differs from the one before.
func stretchName(was, now analysis.HistoryVersion) string {
	lines := []string{}
	add := func(text, was string) {
		if text != was && text != "" && len(lines) < 2 {
			lines = append(lines, Plain(text, 20))
		}
	}
	system, build, _ := strings.Cut(now.System, " (")
	systemWas, buildWas, _ := strings.Cut(was.System, " (")
	add(system, systemWas)
	if system == systemWas {
		add(strings.TrimSuffix(build, ")"), strings.TrimSuffix(buildWas, ")"))
		add(TextIf(now.Kernel != "", "kernel "+now.Kernel), TextIf(was.Kernel != "", "kernel "+was.Kernel))
	}
	add(now.Tool, was.Tool)
	if len(lines) == 0 {
		add(now.Engine, was.Engine)
	}
	return strings.Join(lines, "\n")
}

// briefName is the last word of each line: the number of the version.
func briefName(name string) string {
	var out []string
	for line := range strings.SplitSeq(name, "\n") {
		words := strings.Fields(line)
		if len(words) > 0 {
			out = append(out, Plain(words[len(words)-1], 10))
		}
	}
	return strings.Join(out, "\n")
}

// upright draws the changes of version and the baseline.
func (v *seriesView) upright(c *Chart, low, high float64) {
	changes, baseline := Series{Role: "faint", Name: "another version"}, Series{Role: "ideal", Name: "baseline run"}
	line := func(s *Series, x float64) {
		s.Points = append(s.Points, xy(x, low), xy(x, high), []any{nil, nil})
	}
	for i := v.first; i < len(v.s.Runs); i++ {
		if i > v.first && v.s.Runs[i].Version != v.s.Runs[i-1].Version {
			line(&changes, float64(i-v.first)-0.5)
		}
		if v.s.Runs[i].Baseline {
			line(&baseline, float64(i-v.first))
		}
	}
	for _, s := range []Series{changes, baseline} {
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
}

// span is the range of an axis that shows every value, and of the intervals what does not squeeze the values.
func (v *seriesView) span(rows []analysis.HistoryRow) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	each := func(f func(*analysis.HistoryValue)) {
		for _, row := range rows {
			for _, value := range row.Values[v.first:] {
				if value != nil && IsFinite(value.Value) {
					f(value)
				}
			}
		}
	}
	each(func(value *analysis.HistoryValue) { low, high = min(low, value.Value), max(high, value.Value) })
	if low > high {
		return 0, 1
	}
	room := max((high-low)/2, math.Abs(high)*0.05)
	bottom, top := low-room/4, high+room/4
	each(func(value *analysis.HistoryValue) {
		if len(v.s.Runs)-v.first <= barsMost && value.CI != nil && IsFinite(value.CI.Low) && IsFinite(value.CI.High) {
			bottom, top = min(bottom, max(value.CI.Low, low-room)), max(top, min(value.CI.High, high+room))
		}
	})
	if low >= 0 && bottom < high*0.4 {
		bottom = 0
	}
	return roundSpan(bottom, top)
}

// roundSpan moves the ends of an axis outwards to round numbers.
func roundSpan(low, high float64) (float64, float64) {
	if low >= high {
		room := max(math.Abs(high)*0.05, 1)
		low, high = low-room, high+room
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (high-low)/(m*step) <= 6 {
			step *= m
			break
		}
	}
	return digits(math.Floor(low/step) * step), digits(math.Ceil(high/step) * step)
}

// tip says what a mark is, its run first.
func (v *seriesView) tip(row analysis.HistoryRow, run int, why string) string {
	p, value := v.s.Runs[run], row.Values[run]
	lines := []string{v.runName(run), v.label(row.Case) + ": " + Human(value.Value, row.Unit) + intervalText(value, row.Unit)}
	lines = append(lines, fmt.Sprintf("version %d, %s", p.Version+1, v.versionShort(p.Version)))
	lines = append(lines, NonEmpty([]string{why, TextIf(p.Baseline, "the baseline")})...)
	for i, w := range v.doubts(row, run) {
		if i == 2 {
			lines = append(lines, "and more warnings")
			break
		}
		lines = append(lines, Plain(w.Text, 100))
	}
	return strings.Join(lines, "\n")
}

func intervalText(value *analysis.HistoryValue, unit string) string {
	if value.CI == nil {
		return ""
	}
	return " (" + RangeText(ScaleOf(unit, value.Value), value.CI, unit) + ")"
}

// versionShort is what a version does not share with all others.
func (v *seriesView) versionShort(version int) string {
	all := make([]int, len(v.s.Versions))
	for i := range all {
		all[i] = i
	}
	return Plain(v.s.VersionName(version, all...), 60)
}

// notes are printed inside the picture: what the marks are, and where the numbers come from.
func (v *seriesView) notes(rows []analysis.HistoryRow) []string {
	estimators, intervals := []string{}, []string{}
	few, many := math.MaxInt, 0
	for _, row := range rows {
		for i, value := range row.Values[v.first:] {
			if value == nil {
				continue
			}
			estimators = AppendNew(estimators, Plain(strings.ReplaceAll(value.Estimate, "-", " "), 40))
			if value.CI != nil && value.CI.Low < value.CI.High {
				intervals = AppendNew(intervals, DescribeInterval(value.CI))
			}
			n := v.s.Runs[v.first+i].Rounds
			few, many = min(few, n), max(many, n)
		}
	}
	slices.Sort(estimators)
	slices.Sort(intervals)
	rounds := Count(many, "round")
	if few < many {
		rounds = fmt.Sprintf("%d to %s", few, rounds)
	}
	s := v.s
	return []string{
		"Points: " + several(estimators) + " of each run, as its report has it (" + rounds + ")." + TextIf(len(intervals) > 0, map[bool]string{true: " Bars: ", false: " Intervals, in tips and table: "}[len(v.s.Runs)-v.first <= barsMost]+several(intervals)+
			"; they say how far the rounds of a run differ, not how far runs do: bars that do not overlap are no proof that a version changed anything."),
		strings.Join(NonEmpty([]string{Plain(s.Machine, 120), Plain(engineShort(s.Engine), 60), "plan “" + Plain(s.Plan, 60) + "”" + digestText(s.Digest), Plain(strings.Join(s.Scale, "; "), 120)}), " · "),
	}
}

// chartTable has a row a run, the newest first, and a column a case.
func (v *seriesView) chartTable(caption string, rows []analysis.HistoryRow) Table {
	t := Table{Caption: caption, Columns: Columns("<run", "version")}
	unit := rows[0].Unit
	var values []float64
	for _, row := range rows {
		for _, value := range row.Values[v.first:] {
			if value != nil {
				values = append(values, value.Value)
			}
		}
	}
	one := ColumnScale(unit, values...) // for all columns, so that a row can be read across
	for _, row := range rows {
		t.Columns = append(t.Columns, Column{Title: WithUnit(v.label(row.Case), one)})
	}
	for i := range slices.Backward(v.s.Runs[v.first:]) {
		run := v.first + i
		p := v.s.Runs[run]
		line := []Cell{{Text: v.runName(run) + TextIf(p.Baseline, " (baseline)"), Class: "head"}, {Text: fmt.Sprint(p.Version + 1)}}
		for _, row := range rows {
			line = append(line, v.figure(row, run, one))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}
