package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(want, got) {
		assert.Equal(t, string(want), string(got), "%s differs; run with -update and read the change", path)
	}
}

type maker func() (*plan.Plan, *result.Result)

var makers = map[string]maker{
	"sample": reporttest.Sample, "sweep": reporttest.Sweep, "hostile": reporttest.Hostile,
	"large": func() (*plan.Plan, *result.Result) { return reporttest.Large(10_000) },
	"empty": func() (*plan.Plan, *result.Result) { return &plan.Plan{}, &result.Result{} },
	"aging": reporttest.Aging,
}

func text(t *testing.T, m maker, o TextOptions) string {
	t.Helper()
	p, r := m()
	var b bytes.Buffer
	require.NoError(t, Renderers.Run(&b, p, r, o))
	return b.String()
}

func markdown(t *testing.T, m maker) string {
	t.Helper()
	p, r := m()
	var b bytes.Buffer
	require.NoError(t, Renderers.RunMarkdown(&b, p, r))
	return b.String()
}

func html(t *testing.T, m maker) string {
	t.Helper()
	p, r := m()
	var b bytes.Buffer
	require.NoError(t, HTML(&b, p, r))
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"sample", "sweep"} {
		golden(t, name+"-brief.txt", []byte(text(t, makers[name], TextOptions{})))
		golden(t, name+".txt", []byte(text(t, makers[name], TextOptions{Verbose: true})))
		golden(t, name+".md", []byte(markdown(t, makers[name])))
	}
}

// The options of one chart of each kind; points of single files would fill pages.
func TestGoldenCharts(t *testing.T) {
	want := map[string][]string{
		"sample": {"speed-write", "size-1-1", "heat-1-1", "cost-1-1", "life-case-3", "life-allocated", "life-bands", "drift"}, "sweep": {"sweep-threads-stream", "relation-1"},
		"aging": {"cycles-write"},
	}
	for name, ids := range want {
		p, r := makers[name]()
		charts := NewView(p, r).Charts()
		for _, id := range ids {
			i := index(charts, id)
			require.GreaterOrEqual(t, i, 0, "%s has no chart %s", name, id)
			raw, err := charts[i].spec()
			require.NoError(t, err)
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, raw, "", " "))
			b.WriteByte('\n')
			golden(t, name+"-"+id+".json", b.Bytes())
		}
	}
}

func index(charts []Chart, id string) int {
	for i, c := range charts {
		if c.ID == id {
			return i
		}
	}
	return -1
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		t.Run(name, func(t *testing.T) {
			assert.True(t, html(t, m) == html(t, m), "the page differs from one call to the next")
			assert.Equal(t, text(t, m, TextOptions{Color: true}), text(t, m, TextOptions{Color: true}))
			assert.Equal(t, markdown(t, m), markdown(t, m))
		})
	}
}

// Rendering reads: the result is the same before and after.
func TestRenderingChangesNothing(t *testing.T) {
	p, r := reporttest.Sample()
	before, err := json.Marshal(r)
	require.NoError(t, err)
	v := NewView(p, r)
	require.NoError(t, renderPage(&bytes.Buffer{}, v))
	require.NoError(t, Renderers.RunMarkdown(io.Discard, p, r))
	require.NoError(t, Renderers.Run(io.Discard, p, r, TextOptions{}))
	after, err := json.Marshal(r)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after))
}

// Two sessions stand one after the other on the axis of time, though each has a clock of its own.
func TestDriftCountsFromTheFirstSession(t *testing.T) {
	p, r := reporttest.Sample()
	later := r.Sessions[0]
	later.Index, later.Started = 2, later.Started.Add(3*time.Hour)
	r.Sessions = append(r.Sessions, later)
	for c := range r.Cases {
		for s := range r.Cases[c].Steps {
			if r.Cases[c].Steps[s].Round == 3 {
				r.Cases[c].Steps[s].Session = 2
			}
		}
	}
	lowest, highest := 1e9, 0.0
	for _, s := range NewView(p, r).driftSteps() {
		lowest, highest = min(lowest, s.minutes), max(highest, s.minutes)
	}
	assert.InDelta(t, 0, lowest, 0.01)
	assert.InDelta(t, 180, highest, 1)
}

func TestTransposed(t *testing.T) {
	in := Table{Columns: Columns("<case", "a", "b"),
		Rows: [][]Cell{{{Text: "x"}, {Text: "1"}, {Text: "2"}}}}
	out := in.transposed()
	assert.Equal(t, "x", out.Columns[1].Title)
	require.Len(t, out.Rows, 2)
	assert.Equal(t, []string{"b", "2"}, []string{out.Rows[1][0].Text, out.Rows[1][1].Text})
}
