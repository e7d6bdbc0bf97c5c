package hdiutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The builds that run knows are those of the captures of Apple's tools.
func TestKnownBuildsAreThoseOfCaptures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "testdata", "apple", "captures", "*", "capture.tsv"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	captured := []string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		values := map[string]string{}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
			values[key] = value
		}
		if values["vendor"] == vendorApple {
			captured = append(captured, values["build"])
		}
	}
	assert.ElementsMatch(t, captured, knownBuilds)
	assert.False(t, IsKnown("25A1"))
}

// Names of beliefs are unique: what people send is compared by them.
func TestNamesOfBeliefs(t *testing.T) {
	for _, e := range Ideal() {
		seen := map[string]bool{}
		for _, b := range append(e.neededBeliefs(), openBeliefs...) {
			assert.False(t, seen[b.name], b.name)
			assert.NotEmpty(t, b.expected, b.name)
			seen[b.name] = true
		}
		assert.GreaterOrEqual(t, len(seen), 55)
	}
}
