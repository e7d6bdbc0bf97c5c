package hostio_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "dmgbench/internal/system/hostio"
)

type nothing struct{}

func (nothing) Before(Op) error      { return nil }
func (nothing) After(Op, int, error) {}

// BenchmarkReadTail reads 2 MB files: aligned, with an odd tail in one
// call, and with the tail in a call of its own (as a hook makes it).
func BenchmarkReadTail(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		hook Hook
	}{{"aligned", 1_998_848, nil}, {"scattered", 2_000_000, nil}, {"pieces", 2_000_000, nothing{}}} {
		b.Run(c.name, func(b *testing.B) {
			d := tempDir(b)
			f := create(b, d, "f", CacheDirect)
			buf, err := AlignedBuffer(c.size)
			require.NoError(b, err)
			defer buf.Free()
			_, err = f.WriteAt(buf.Bytes(), 0)
			require.NoError(b, err)
			_, err = f.Sync(SyncFsync)
			require.NoError(b, err)
			SetHook(f, c.hook)
			b.SetBytes(int64(c.size))
			for b.Loop() {
				if n, err := f.ReadAt(buf.Bytes(), 0); err != nil || n != c.size {
					b.Fatal(n, err)
				}
			}
		})
	}
}
