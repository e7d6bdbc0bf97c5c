package echarts_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/third_party/echarts"
)

func TestDigests(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		want, name, ok := strings.Cut(line, "  ")
		require.True(t, ok, line)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		assert.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
}

func TestSafeInline(t *testing.T) {
	lower := strings.ToLower(echarts.Script)
	for _, bad := range []string{"</script", "<!--", "<script", "__f__"} {
		assert.NotContains(t, lower, bad)
	}
	name, number, _ := strings.Cut(echarts.Version(), "@")
	assert.Equal(t, "echarts", name)
	assert.Contains(t, echarts.Script, `"`+number+`"`, "the script says its own version")
	assert.Contains(t, echarts.License, "Apache License")
	assert.Contains(t, echarts.License, "Mike Bostock")
	assert.Contains(t, echarts.Notice, "Apache Software Foundation")
}
