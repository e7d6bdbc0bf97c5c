package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMethods(t *testing.T) {
	t.Parallel()
	p, r := analysedSample(t)
	var b bytes.Buffer
	require.NoError(t, Renderers.Methods(&b, p, r))
	one := strings.Join(strings.Fields(b.String()), " ")
	for _, part := range []string{"Example workstation", "Apple’s tools were not measured.", "in an order that was shuffled for each round", "sparse bundle (UDSB) · AES-256",
		"no space left on device", "1. Create the image and its file system.", "requested → achieved: direct → direct", "no outlier was removed", "The run differs from what was published"} {
		assert.Contains(t, one, part)
	}
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, Width(strings.TrimSuffix(line, "\n")), 80, line)
	}
	for name, m := range makers {
		p, r := m()
		var b bytes.Buffer
		require.NoError(t, Renderers.Methods(&b, p, r), name)
		assert.NotContains(t, b.String(), "\x1b", name)
	}
}
