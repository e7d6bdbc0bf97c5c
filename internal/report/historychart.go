package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
)

// intervalRuns is of how many runs intervals are drawn: more of them would hide
// the points.
const intervalRuns = 80

// charts draw one quantity of a series, run after run; many cases make more
// pictures.
func (v *seriesView) charts(p seriesPart) []Chart {
	var out []Chart
	chunks := slices.Collect(slices.Chunk(p.rows, casesInChart))
	for i, rows := range chunks {
		c := v.chart(p, rows)
		c.ID = fmt.Sprintf("%s-%s-%d", v.id, Slug(p.op), i+1)
		if len(chunks) > 1 {
			c.Heading += fmt.Sprintf(" (%d of %d)", i+1, len(chunks))
		}
		out = append(out, c)
	}
	return out
}

func (v *seriesView) chart(p seriesPart, rows []analysis.HistoryRow) Chart {
	runs := len(v.s.Runs) - v.first
	c := Chart{Height: 280, Trend: true, HeadedTips: true,
		Heading: Capitalize(QuantityName(p.op)) + " over " + Count(runs, "run") +
			TextIf(p.phase != "" || p.cycle > 0, ", phase “"+PhaseName(p.phase, p.cycle)+"”"),
		X: Axis{Unit: "1", Low: new(-0.5), High: new(float64(runs) - 0.5)},
		Y: Axis{Name: QuantityName(p.op), Unit: rows[0].Unit}}
	v.nameVersions(&c.X, runs)
	low, high := v.valueRange(rows)
	c.Y.Low, c.Y.High = &low, &high
	open := Series{Role: "uncomparable", Name: "not finished, or failed"}
	doubtful := Series{Role: "warned", Name: "with an unusual warning"}
	for _, row := range rows {
		line := Series{Role: "line", Name: v.label(row.Case), Thin: true}
		for i, value := range row.Values[v.first:] {
			run := v.first + i
			if value == nil || !IsFinite(value.Value) {
				line.Marks = append(line.Marks, Gap())
				continue
			}
			why := v.open(run, row.Case)
			m := Mark{X: float64(i), Y: value.Value, Tip: v.tip(row, run, why)}
			if why != "" {
				line.Marks, open.Marks = append(line.Marks, Gap()), append(open.Marks, m)
				continue
			}
			if len(v.doubts(row, run)) > 0 {
				doubtful.Marks = append(doubtful.Marks, m)
			}
			if runs <= intervalRuns && value.CI != nil && value.CI.Low < value.CI.High {
				m.CI = value.CI
			}
			line.Marks = append(line.Marks, m)
		}
		c.Add(line)
	}
	c.Add(open, doubtful)
	v.addUprights(&c, low, high)
	c.Sub = "Runs in the order of time, the oldest on the left; a dashed line is where system, program or engine " +
		"changed." +
		TextIf(low > 0, " The axis does not begin at 0.")
	c.Notes = v.notes(rows)
	c.Table = v.chartTable(c.Heading, rows)
	return c
}

// nameVersions writes each version in the middle of the runs that have it, as
// what differs from the version before.
func (v *seriesView) nameVersions(x *Axis, runs int) {
	x.Names, x.Brief = make([]string, runs), make([]string, runs)
	before := analysis.HistoryVersion{}
	for from := 0; from < runs; {
		version, to := v.s.Runs[v.first+from].Version, from
		for to+1 < runs && v.s.Runs[v.first+to+1].Version == version {
			to++
		}
		at, now := (from+to)/2, v.s.Versions[version]
		x.Ticks = append(x.Ticks, float64(at))
		x.Names[at] = versionName(before, now)
		x.Brief[at] = lastWords(x.Names[at])
		before, from = now, to+1
	}
}

// versionName is a version in at most two lines: what differs from the one
// before.
func versionName(was, now analysis.HistoryVersion) string {
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

// lastWords is the last word of each line: the number of the version.
func lastWords(name string) string {
	var out []string
	for line := range strings.SplitSeq(name, "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, Plain(words[len(words)-1], 10))
		}
	}
	return strings.Join(out, "\n")
}

// addUprights draws the changes of version and the baseline.
func (v *seriesView) addUprights(c *Chart, low, high float64) {
	var changes, baselines []float64
	for i := v.first; i < len(v.s.Runs); i++ {
		if i > v.first && v.s.Runs[i].Version != v.s.Runs[i-1].Version {
			changes = append(changes, float64(i-v.first)-0.5)
		}
		if v.s.Runs[i].Baseline {
			baselines = append(baselines, float64(i-v.first))
		}
	}
	c.Add(uprights("faint", "another version", low, high, changes...),
		uprights("ideal", "baseline run", low, high, baselines...))
}

// valueRange is the range of an axis that shows every value, and as much of the
// intervals as does not press the values flat.
func (v *seriesView) valueRange(rows []analysis.HistoryRow) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	var values []*analysis.HistoryValue
	for _, row := range rows {
		for _, value := range row.Values[v.first:] {
			if value != nil && IsFinite(value.Value) {
				low, high, values = min(low, value.Value), max(high, value.Value), append(values, value)
			}
		}
	}
	if len(values) == 0 {
		return 0, 1
	}
	room := max((high-low)/2, math.Abs(high)*0.05)
	bottom, top := low-room/4, high+room/4
	for _, value := range values {
		if len(v.s.Runs)-v.first <= intervalRuns && value.CI != nil && IsFinite(value.CI.Low) &&
			IsFinite(value.CI.High) {
			bottom, top = min(bottom, max(value.CI.Low, low-room)), max(top, min(value.CI.High, high+room))
		}
	}
	if low >= 0 && bottom < high*0.4 {
		bottom = 0
	}
	if bottom >= top { // all are 0
		return bottom - 1, top + 1
	}
	step := TickStep(top - bottom)
	return RoundDigits(math.Floor(bottom/step) * step), RoundDigits(math.Ceil(top/step) * step)
}

// tip describes a mark, its run first; why is the reason why it is not final.
func (v *seriesView) tip(row analysis.HistoryRow, run int, why string) string {
	p, value := v.s.Runs[run], row.Values[run]
	text := v.label(row.Case) + ": " + Human(value.Value, row.Unit)
	if value.CI != nil {
		text += " (" + RangeText(ScaleOf(row.Unit, value.Value), value.CI, row.Unit) + ")"
	}
	lines := []string{v.runName(run), text, fmt.Sprintf("version %d, %s", p.Version+1, v.versionShort(p.Version))}
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

// versionShort is what a version does not share with all others.
func (v *seriesView) versionShort(version int) string {
	all := make([]int, len(v.s.Versions))
	for i := range all {
		all[i] = i
	}
	return Plain(v.s.VersionName(version, all...), 60)
}

// notes are printed inside the picture: what the marks are, and where the
// numbers come from.
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
	note := "Points: " + listNames(estimators) + " of each run, as in its report (" + rounds + ")."
	if len(intervals) > 0 {
		drawn := " Bars: "
		if len(v.s.Runs)-v.first > intervalRuns {
			drawn = " Intervals, in tips and table: "
		}
		note += drawn + listNames(intervals) + "; they cover how far the rounds of a run differ, not how far runs " +
			"do: bars that do not overlap are no " +
			"proof that a version changed anything."
	}
	s := v.s
	return []string{note, strings.Join(NonEmpty([]string{Plain(s.Machine, 120), Plain(engineShort(s.Engine), 60),
		"plan “" + Plain(s.Plan, 60) + "”" + digestText(s.Digest),
		Plain(strings.Join(s.Scale, "; "), 120)}), " · ")}
}

// chartTable has a row a run, the newest first, and a column a case.
func (v *seriesView) chartTable(caption string, rows []analysis.HistoryRow) Table {
	t := Table{Caption: caption, Columns: Columns("<run", "version")}
	var values []float64
	for _, row := range rows {
		for _, value := range row.Values[v.first:] {
			if value != nil {
				values = append(values, value.Value)
			}
		}
	}
	sc := ColumnScale(rows[0].Unit, values...) // of all columns, so that a row can be read across
	for _, row := range rows {
		t.Columns = append(t.Columns, Column{Title: WithUnit(v.label(row.Case), sc)})
	}
	for run := len(v.s.Runs) - 1; run >= v.first; run-- {
		p := v.s.Runs[run]
		line := TextRow(v.runName(run)+TextIf(p.Baseline, " (baseline)"), fmt.Sprint(p.Version+1))
		for _, row := range rows {
			line = append(line, v.figure(row, run, sc))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}
