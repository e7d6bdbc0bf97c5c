package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/selftest"
	"dmgbench/internal/plan"
)

// TestPagesAreCurrent compares the pages of docs/ with what `make docs` would write.
func TestPagesAreCurrent(t *testing.T) {
	for name := range pages {
		want, err := render(name)
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), "docs/%s is not current: run make docs", name)
	}
}

// TestPlanLanguageIsComplete: the page has every table of keys and every kind of step, test and quantity.
func TestPlanLanguageIsComplete(t *testing.T) {
	page, err := render("plan-language.md")
	require.NoError(t, err)
	text := string(page)
	r := plan.LanguageReference()
	for name, keys := range r.Tables {
		assert.Contains(t, text, keyTable(keys), name)
		for _, k := range keys {
			assert.NotEmpty(t, k.Type, "%s: %s", name, k.Name)
		}
	}
	for _, s := range r.Steps {
		assert.NotEmpty(t, s.About, s.Do)
		assert.Contains(t, text, "| `"+s.Do+"` | "+s.State+" |")
	}
	for _, k := range r.Tests {
		assert.Contains(t, text, "| `"+k.Name+"` |")
	}
	for _, q := range r.Quantities {
		assert.Contains(t, text, "`"+string(q.Name)+"`")
	}
	assert.Greater(t, len(r.Tables), 20)
}

func TestCell(t *testing.T) {
	assert.Equal(t, `a\|b`, cell("a|b"))
	assert.Equal(t, "`a`, `b`", code([]string{"a", "b"}))
	assert.Empty(t, code(nil))
}

func TestWriteAccuracy(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, writeAccuracy(t.Context(), folder, selftest.Options{Seed: 1, Only: []string{"drift"}}))
	text, err := os.ReadFile(filepath.Join(folder, "accuracy.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "drift")

	assert.ErrorContains(t, writeAccuracy(t.Context(), folder, selftest.Options{Only: []string{"drifting"}}),
		`there is no study "drifting", only recovery, files,`)
	assert.Error(t, writeAccuracy(t.Context(), filepath.Join(folder, "none"), selftest.Options{Only: []string{"drift"}}))
}
