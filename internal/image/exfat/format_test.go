package exfat

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

func TestUpcaseTableIsTheStandardOne(t *testing.T) {
	assert.Len(t, upcaseData, 5836, "as published")
	assert.EqualValues(t, upcaseChecksum, tableChecksum(upcaseData))
	for c, u := range decodeCase(nil) {
		require.EqualValues(t, c, u, "a table without entries changes no code")
	}
	assert.EqualValues(t, 'A', standardCase()['a'])
}

func TestFormatIsDeterministicAndLeavesNoOldBytes(t *testing.T) {
	const size = 8 << 20
	a, b := blockdevtest.NewMem(size), blockdevtest.NewMem(size)
	_, err := b.WriteAt(bytes.Repeat([]byte{0xA5}, size), 0)
	require.NoError(t, err)
	for _, dev := range []*blockdevtest.MemDevice{a, b} {
		require.NoError(t, Format(dev, FormatOptions{Label: "Volume", Serial: 7}))
	}
	g, _, backup, err := readBoot(a)
	require.NoError(t, err)
	assert.False(t, backup)
	x, y := make([]byte, g.at(g.Root)+g.clusterSize()), make([]byte, g.at(g.Root)+g.clusterSize())
	require.NoError(t, readFull(a, x, 0))
	require.NoError(t, readFull(b, y, 0))
	for _, part := range []struct{ from, to int64 }{{0, g.fatStart() + int64(g.FATLength)*512}, {g.heapStart(), int64(len(x))}} {
		assert.True(t, bytes.Equal(x[part.from:part.to], y[part.from:part.to]))
	}
}

func TestFormatGeometry(t *testing.T) {
	for _, c := range []struct {
		size, cluster, align, heap int64
	}{
		{1 << 20, 4096, 4096, 0}, {64 << 20, 4096, 1 << 20, 1 << 20}, {1 << 30, 32 << 10, 1 << 20, 1 << 20}, {100_000_000_000, 128 << 10, 1 << 20, 3 << 20},
	} {
		dev := blockdevtest.NewMem(c.size)
		require.NoError(t, Format(dev, FormatOptions{}))
		g, _, _, err := readBoot(dev)
		require.NoError(t, err)
		assert.Equal(t, c.cluster, g.clusterSize())
		assert.Zero(t, g.heapStart()%c.align)
		if c.heap != 0 {
			assert.Equal(t, c.heap, g.heapStart())
		}
		assert.Less(t, c.size-g.at(g.Clusters+2), g.clusterSize())
		assert.Less(t, dev.Allocated(), int64(1<<20), "sparse containers stay sparse")
	}
}

// What was made by default can be mounted by default.
func TestFormatOfManyTerabytes(t *testing.T) {
	for size, cluster := range map[int64]int64{16_000_000_000_000: 128 << 10, 16 << 40: 256 << 10, 20 << 40: 256 << 10, 100 << 40: 1 << 20} {
		_, v := newVolume(t, size, FormatOptions{})
		assert.Equal(t, cluster, v.ClusterSize())
		writeFile(t, v, "file", noise(1, 9000))
		require.NoError(t, v.Unmount())
	}
}

func TestFormatRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		size int64
		o    FormatOptions
	}{
		"small":        {512 << 10, FormatOptions{}},
		"label":        {1 << 20, FormatOptions{Label: "twelve chars"}},
		"cluster":      {1 << 20, FormatOptions{ClusterSize: 3000}},
		"huge cluster": {1 << 30, FormatOptions{ClusterSize: 64 << 20}},
		"no room":      {1 << 20, FormatOptions{ClusterSize: 128 << 10}},
		"max size":     {1 << 20, FormatOptions{MaxSize: 1 << 40}},
	} {
		assert.ErrorContains(t, Format(blockdevtest.NewMem(c.size), c.o), "formatting volume: ", name)
	}
}

// TestCutLabel: a name is shortened to be a label, never inside a character.
func TestCutLabel(t *testing.T) {
	for name, want := range map[string]string{"short": "short", "longer-than-eleven": "longer-than", "1234567890😀": "1234567890",
		"123456789😀x": "123456789😀", "12345678901": "12345678901"} {
		assert.Equal(t, want, CutLabel(name))
	}
}
