package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
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
	require.NoError(t, Renderers.HTML(&b, p, r))
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"sample", "sweep"} {
		golden(t, name+"-brief.txt", []byte(text(t, makers[name], TextOptions{})))
		golden(t, name+".txt", []byte(text(t, makers[name], TextOptions{Verbose: true})))
		golden(t, name+".md", []byte(markdown(t, makers[name])))
	}
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		t.Run(name, func(t *testing.T) {
			first, second := html(t, m), html(t, m)
			assert.True(t, first == second, "the page differs from one call to the next")
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
	require.NoError(t, Renderers.HTML(io.Discard, p, r))
	require.NoError(t, Renderers.RunMarkdown(io.Discard, p, r))
	require.NoError(t, Renderers.Run(io.Discard, p, r, TextOptions{}))
	after, err := json.Marshal(r)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after))
}
