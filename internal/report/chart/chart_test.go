package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type maker func() (*plan.Plan, *result.Result)

var makers = map[string]maker{
	"sample": reporttest.Sample, "sweep": reporttest.Sweep, "hostile": reporttest.Hostile, "aging": reporttest.Aging,
	"files": someFiles,
	"large": func() (*plan.Plan, *result.Result) { return reporttest.Large(10_000) },
	"empty": func() (*plan.Plan, *result.Result) { return &plan.Plan{}, &result.Result{} },
}

// chartOf is the chart with an id, which has to be there.
func chartOf(t *testing.T, p *plan.Plan, r *result.Result, id string) report.Chart {
	t.Helper()
	charts := NewView(p, r).Charts
	i := index(charts, id)
	require.GreaterOrEqual(t, i, 0, "no chart %s", id)
	return charts[i]
}

func index(charts []report.Chart, id string) int {
	return slices.IndexFunc(charts, func(c report.Chart) bool { return c.ID == id })
}

// role are the series of a role.
func role(c report.Chart, name string) []report.Series {
	return slices.DeleteFunc(slices.Clone(c.Series), func(s report.Series) bool { return s.Role != name })
}

func texts(row []report.Cell) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = c.Text
	}
	return out
}

func eachStep(r *result.Result, do func(s *result.Step)) {
	for i := range r.Cases {
		for j := range r.Cases[i].Steps {
			do(&r.Cases[i].Steps[j])
		}
	}
}

// The options of one chart of each kind; points of single files would fill pages.
func TestGoldenCharts(t *testing.T) {
	for name, ids := range map[string][]string{
		"files":  {"time-1-1", "residuals-1-1", "strip-write-1-1", "drift", "fit-1", "fit-1-residuals"},
		"sample": {"first", "encryption-write-new", "life-free", "speed-write", "size-1-1", "heat-1-1", "cost-1-1", "life-case-3", "life-allocated", "life-bands", "drift"},
		"sweep":  {"sweep-threads-stream", "relation-1"}, "aging": {"cycles-write"},
	} {
		charts := NewView(makers[name]()).Charts
		for _, id := range ids {
			require.GreaterOrEqual(t, index(charts, id), 0, "no chart %s", id)
			c := charts[index(charts, id)]
			raw, err := Encode(&c)
			require.NoError(t, err)
			var got bytes.Buffer
			require.NoError(t, json.Indent(&got, raw, "", " "))
			got.WriteByte('\n')
			path := filepath.Join("testdata", name+"-"+id+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String(), "%s differs; run with -update and read the change", path)
		}
	}
}

// Every kind of chart has a place on the page.
func TestKindsHaveSections(t *testing.T) {
	for _, k := range kinds {
		has := slices.ContainsFunc(Sections, func(s Section) bool { return s.ID == k.section })
		assert.True(t, has || k.section == "first", k.section)
	}
}

// Two sessions are one after the other on the axis of time, though each has a clock of its own.
func TestDriftCountsFromTheFirstSession(t *testing.T) {
	p, r := reporttest.Sample()
	later := r.Sessions[0]
	later.Index, later.Started = 2, later.Started.Add(3*time.Hour)
	r.Sessions = append(r.Sessions, later)
	eachStep(r, func(s *result.Step) {
		if s.Round == 3 {
			s.Session = 2
		}
	})
	lowest, highest := 1e9, 0.0
	steps, _ := (&run{View: report.NewView(p, r)}).driftSteps()
	for _, s := range steps {
		lowest, highest = min(lowest, s.seconds), max(highest, s.seconds)
	}
	assert.InDelta(t, 0, lowest, 1)
	assert.InDelta(t, 180*60, highest, 60)
}

// What must be inside of every picture, in case it is the only one that somebody sees.
func TestPicturesNameTheirOrigin(t *testing.T) {
	charts := NewView(reporttest.Sample()).Charts
	require.NotEmpty(t, charts)
	for _, c := range charts {
		last := c.Notes[len(c.Notes)-1]
		for _, part := range []string{"Example workstation", "Debian GNU/Linux 13", "in-process", "performance-2024", "0.1.0"} {
			assert.Contains(t, last, part, c.ID)
		}
		assert.Regexp(t, `\d`, c.Sub, "%s: n", c.ID)
		assert.NotEmpty(t, c.Table.Rows, c.ID)
		for _, row := range c.Table.Rows {
			assert.Len(t, row, len(c.Table.Columns), c.ID)
		}
	}
}

// A chart of many files draws only some of them, and its caption gives their number.
func TestManyFilesAreThinned(t *testing.T) {
	t.Parallel()
	charts := NewView(reporttest.Large(10_000)).Charts
	thinned := 0
	for _, c := range charts {
		assert.LessOrEqual(t, c.Size(), pointsPerChart+200, c.ID)
		if strings.Contains(c.Sub, "drawn") {
			thinned++
		}
	}
	assert.Positive(t, thinned)
	assert.True(t, slices.ContainsFunc(charts, func(c report.Chart) bool { return c.Size() >= canvasFrom }), "one chart is drawn on a canvas")
}
