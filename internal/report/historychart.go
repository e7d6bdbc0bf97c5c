package report

import (
	"cmp"
	"fmt"
	"strings"

	"dmgbench/internal/analysis"
)

const (
	casesInChart = 8
	// intervalRuns is of how many runs intervals are drawn: more of them would
	// hide the points.
	intervalRuns = 80
)

// charts draw one quantity of a series, run after run; many cases make more
// pictures.
func (v *seriesView) charts(p seriesPart) []Chart {
	return InParts(p.rows, casesInChart, func(rows []analysis.HistoryRow, _ int) Chart { return v.chart(p, rows) })
}

func (v *seriesView) chart(p seriesPart, rows []analysis.HistoryRow) Chart {
	runs := len(v.S.Runs) - v.First
	c := Chart{ID: v.id + "-" + Slug(p.op), Height: 280, Trend: true, HeadedTips: true,
		Heading: Capitalize(QuantityName(p.op)) + " over " + Count(runs, "run") +
			PhaseSuffix(PhaseName(p.Phase, p.Cycle)),
		X: Axis{Unit: "1", Low: new(-0.5), High: new(float64(runs) - 0.5)},
		Y: Axis{Name: QuantityName(p.op), Unit: rows[0].Unit}}
	v.nameVersions(&c.X, runs)
	if c.Y.FitAround(0.03, v.numbers(rows)...); c.Y.Low == nil {
		c.Y.Fit(0, 0, 0.9)
	}
	open := Series{Role: "uncomparable", Name: "not finished, or failed"}
	doubtful := Series{Role: "warned", Name: "with a warning of its own"}
	for _, row := range rows {
		line := Series{Role: "line", Name: v.label(row.Case)}
		for i, value := range row.Values[v.First:] {
			run := v.First + i
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
	v.addUprights(&c)
	c.Sub = "Runs in the order of time, the oldest on the left; a dashed line is where system, program or engine " +
		"changed." + TextIf(*c.Y.Low > 0, " The axis does not begin at 0.")
	c.Notes = v.notes(rows)
	c.Table = v.chartTable(c.Heading, rows)
	return c
}

// nameVersions writes each version in the middle of the runs that have it, as
// what differs from the version before; a build only where the system has the
// same number.
//
// Two lines of twenty characters fit between two versions of a picture.
func (v *seriesView) nameVersions(x *Axis, runs int) {
	x.Names = make([]string, runs)
	before := ""
	for from := 0; from < runs; {
		version, to := v.S.Runs[v.First+from].Version, from
		for to+1 < runs && v.S.Runs[v.First+to+1].Version == version {
			to++
		}
		name := v.versionName(version)
		var parts []string
		for part := range strings.SplitSeq(name, ", ") {
			if short, _, _ := strings.Cut(part, " ("); !strings.Contains(before, short) {
				parts = append(parts, Plain(short, 20))
			} else if !strings.Contains(before, part) {
				parts = append(parts, Plain(part, 20))
			}
		}
		before = name
		x.Names[(from+to)/2] = strings.Join(parts[:min(len(parts), 2)], "\n")
		x.Ticks, from = append(x.Ticks, float64((from+to)/2)), to+1
	}
}

// versionName is a version by what differs among those of the series.
func (v *seriesView) versionName(version int) string {
	var all []int
	for i := range v.S.Versions {
		all = append(all, i)
	}
	return v.S.VersionName(version, all...)
}

// addUprights draws the changes of version and the baseline.
func (v *seriesView) addUprights(c *Chart) {
	var changes, baselines []float64
	for i := v.First; i < len(v.S.Runs); i++ {
		if i > v.First && v.S.Runs[i].Version != v.S.Runs[i-1].Version {
			changes = append(changes, float64(i-v.First)-0.5)
		}
		if v.S.Runs[i].Baseline {
			baselines = append(baselines, float64(i-v.First))
		}
	}
	c.Add(uprights("faint", "another version", *c.Y.Low, *c.Y.High, changes...),
		uprights("ideal", "baseline run", *c.Y.Low, *c.Y.High, baselines...))
}

// tip describes a mark, its run first; why is the reason why it is not final.
func (v *seriesView) tip(row analysis.HistoryRow, run int, why string) string {
	p, value := v.S.Runs[run], row.Values[run]
	text := v.label(row.Case) + ": " + Human(value.Value, row.Unit)
	if value.CI != nil {
		text += " (" + RangeText(ScaleOf(row.Unit, value.Value), value.CI, row.Unit) + ")"
	}
	return strings.Join(Lines("run-tip", map[string]any{"Run": v.runName(run), "Figure": text, "Why": why,
		"Version": p.Version + 1, "VersionName": Plain(v.versionName(p.Version), 60), "Baseline": p.Baseline,
		"Doubts": v.doubts(row, run)}), "\n")
}

// notes are printed inside the picture: what the marks are, and where the
// numbers come from.
func (v *seriesView) notes(rows []analysis.HistoryRow) []string {
	var estimators, intervals []string
	few, many := 0, 0 // rounds of a run; none in a series whose drawn runs have no values
	for _, row := range rows {
		for i, value := range row.Values[v.First:] {
			if value == nil {
				continue
			}
			estimators = AppendNew(estimators, Plain(strings.ReplaceAll(value.Estimate, "-", " "), 40))
			if value.CI != nil && value.CI.Low < value.CI.High {
				intervals = AppendNew(intervals, DescribeInterval(value.CI))
			}
			rounds := v.S.Runs[v.First+i].Rounds
			few, many = min(cmp.Or(few, rounds), rounds), max(many, rounds)
		}
	}
	return []string{
		Phrase("series-notes", map[string]any{"Estimators": estimators, "Intervals": intervals,
			"Drawn": len(v.S.Runs)-v.First <= intervalRuns, "Few": few, "Many": many}),
		Phrase("series-origin", map[string]any{"S": v.S, "Engine": Plain(engineShort(v.S.Engine), 60),
			"PlanName": v.PlanName()}),
	}
}

// chartTable has a row a run, the newest first, and a column a case.
func (v *seriesView) chartTable(caption string, rows []analysis.HistoryRow) Table {
	t := Table{Caption: caption, Columns: Columns("<run", "version")}
	scale := ColumnScale(rows[0].Unit, v.numbers(rows)...) // one for all, so that a row can be read across
	t.Columns = append(t.Columns, Map(rows, func(r analysis.HistoryRow) Column {
		return Column{Title: WithUnit(v.label(r.Case), scale)}
	})...)
	for run := len(v.S.Runs) - 1; run >= v.First; run-- {
		p := v.S.Runs[run]
		line := TextRow(v.runName(run)+TextIf(p.Baseline, " (baseline)"), fmt.Sprint(p.Version+1))
		t.Rows = append(t.Rows, append(line, Map(rows, func(r analysis.HistoryRow) Cell {
			return v.figure(r, run, scale)
		})...))
	}
	return t
}
