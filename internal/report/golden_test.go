package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"sync"
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
	"aging": reporttest.Aging, "uses": reporttest.Uses,
}

// once keeps what do returns for each key: many tests look at the same results and pages, which take long to make.
func once[K comparable, V any](do func(K) V) func(K) V {
	var kept sync.Map
	return func(key K) V {
		value, _ := kept.LoadOrStore(key, sync.OnceValue(func() V { return do(key) }))
		return value.(func() V)()
	}
}

// shared makes a result once, for tests that do not change it.
var shared = once(func(name string) maker {
	p, r := makers[name]()
	return func() (*plan.Plan, *result.Result) { return p, r }
})

// written is what a function writes of the result of a maker, or the error that it returns.
func written(name string, write func(io.Writer, *plan.Plan, *result.Result) error) string {
	var b bytes.Buffer
	p, r := shared(name)()
	if err := write(&b, p, r); err != nil {
		return "writing " + name + ": " + err.Error()
	}
	return b.String()
}

// The renderings of the makers, made once.
var (
	pageOf     = once(func(name string) string { return written(name, Renderers.HTML) })
	markdownOf = once(func(name string) string { return written(name, Renderers.RunMarkdown) })
	verboseOf  = once(func(name string) string {
		return written(name, func(w io.Writer, p *plan.Plan, r *result.Result) error {
			return Renderers.Run(w, p, r, TextOptions{Verbose: true})
		})
	})
)

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
	for _, name := range []string{"sample", "sweep", "uses"} {
		golden(t, name+"-brief.txt", []byte(text(t, shared(name), TextOptions{})))
		golden(t, name+".txt", []byte(verboseOf(name)))
		golden(t, name+".md", []byte(markdownOf(name)))
	}
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		t.Run(name, func(t *testing.T) {
			assert.True(t, pageOf(name) == html(t, m), "the page differs from one call to the next")
			m = shared(name)
			assert.Equal(t, text(t, m, TextOptions{Color: true}), text(t, m, TextOptions{Color: true}))
			assert.Equal(t, markdownOf(name), markdown(t, m))
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
