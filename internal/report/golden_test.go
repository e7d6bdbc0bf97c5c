package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

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
	require.NoError(t, Text(&b, p, r, o))
	return b.String()
}

func markdown(t *testing.T, m maker) string {
	t.Helper()
	p, r := m()
	var b bytes.Buffer
	require.NoError(t, Markdown(&b, p, r))
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
		golden(t, name+".txt", []byte(text(t, makers[name], TextOptions{})))
		golden(t, name+".md", []byte(markdown(t, makers[name])))
	}
}

// The options of one chart of each kind; points of single files would fill pages.
func TestGoldenCharts(t *testing.T) {
	want := map[string][]string{
		"sample": {"speed-write", "size-1-1", "life-allocated", "life-bands", "drift"}, "sweep": {"sweep-threads-stream", "relation-1"},
		"aging": {"cycles-write"},
	}
	for name, ids := range want {
		p, r := makers[name]()
		charts := newView(p, r).charts()
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

func index(charts []chart, id string) int {
	for i, c := range charts {
		if c.id == id {
			return i
		}
	}
	return -1
}

func TestSameInputSameBytes(t *testing.T) {
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
	v := newView(p, r)
	require.NoError(t, renderPage(&bytes.Buffer{}, v))
	renderMarkdown(v)
	renderText(v, TextOptions{})
	after, err := json.Marshal(r)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after))
}
