package exfat

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// merged is a device on which of the flushes of a Sync the last one alone is done.
type merged struct {
	*cached
	skip bool
}

func (m *merged) Flush() error {
	if m.skip {
		return nil
	}
	return m.cached.Flush()
}

// TestSyncOfNewFileTakesTwoFlushes: with one flush for data, bitmap and directory entry, a power cut before it would
// leave files with the bytes of deleted ones, or in clusters that count as free. With two it leaves neither.
func TestSyncOfNewFileTakesTwoFlushes(t *testing.T) {
	secret, data := []byte("secret! "), noise(1, 40_000)
	r := rand.New(rand.NewPCG(5, 6))
	for _, test := range []struct {
		name string
		skip bool
		want assert.ValueAssertionFunc
	}{{"one flush", true, assert.NotZero}, {"two flushes", false, assert.Zero}} {
		t.Run(test.name, func(t *testing.T) {
			var stale, free int
			for cut := 1; ; cut++ {
				mem, v := newVolume(t, 1<<20, FormatOptions{})
				writeFile(t, v, "old", bytes.Repeat(secret, int(v.Free())/len(secret)))
				require.NoError(t, v.Remove("old"))
				require.NoError(t, v.Unmount())
				dev := &merged{cached: newCached(mem)}
				v = mount(t, dev)
				f, err := v.Create("new", int64(len(data)))
				require.NoError(t, err)
				_, err = f.WriteAt(data, 0)
				require.NoError(t, err)
				dev.skip, mem.Hook = test.skip, cutAfter(cut)
				err = f.Sync()
				mem.Hook = nil
				for range 20 {
					after := dev.afterCut(t, r)
					s, f := damagedBy(t, after, secret)
					stale, free = stale+s, free+f
				}
				if err == nil {
					break
				}
			}
			test.want(t, stale, "files with the bytes of deleted ones")
			test.want(t, free, "files in clusters that count as free")
		})
	}
}

// damagedBy counts what a power cut did to the file that was being written.
func damagedBy(t *testing.T, dev *blockdevtest.MemDevice, secret []byte) (stale, free int) {
	report, err := Check(dev, CheckOptions{})
	require.NoError(t, err)
	for _, f := range report.Findings {
		if f.Kind == BitmapMissing {
			free = 1
		}
	}
	v := mount(t, dev)
	if e, _, err := v.lookup("new"); err == nil && e.valid > 0 && bytes.Contains(readFile(t, v, "new"), secret) {
		stale = 1
	}
	return stale, free
}
