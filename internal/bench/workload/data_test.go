package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The data of a published run must be the same for ever: this is what openssl enc
// -aes-128-ctr makes of zeros with key sha256("dmgbench data
// 1\x0042\x003\x00format=UDSB")[:16] and counter sha256("dmgbench file
// 1\x00batch001/01-000-2MB.bin")[:8] followed by zeros.
func TestDataNeverChanges(t *testing.T) {
	d := NewData(42, 3, "format=UDSB", DataRandom, 0)
	p := make([]byte, 100_000)
	d.FillAt(p, KeyOf("batch001/01-000-2MB.bin"), 0)
	sum := sha256.Sum256(p)
	assert.Equal(t, "865ba15b2f054698ac4e46cedc9354f64676012478e9e9963990978faa6c092b", hex.EncodeToString(sum[:]))
}

// Any range of a file is the same as that range of the whole, whatever the kind.
func TestFillAtIsASliceOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{DataRandom, DataZero, DataMixed, DataText}).Draw(t, "kind")
		d := NewData(rapid.Uint64().Draw(t, "seed"), 1, "c", kind, rapid.Float64Range(0, 1).Draw(t, "share"))
		size := rapid.IntRange(1, 200_000).Draw(t, "size")
		from := rapid.IntRange(0, size-1).Draw(t, "from")
		to := rapid.IntRange(from, size).Draw(t, "to")
		slice(t, d, size, from, to)
	})
}

func slice(t require.TestingT, d *Data, size, from, to int) {
	whole, part := make([]byte, size), bytes.Repeat([]byte{0xa5}, to-from)
	d.FillAt(whole, 9, 0)
	d.FillAt(part, 9, int64(from))
	require.True(t, bytes.Equal(whole[from:to], part), "bytes %d to %d of %d", from, to, size)
}

func FuzzFillAt(f *testing.F) {
	f.Add(uint16(5000), uint16(17), uint16(4097), byte(2))
	f.Fuzz(func(t *testing.T, size, from, to uint16, share byte) {
		d := NewData(1, 1, "c", DataMixed, float64(share)/255)
		if from <= to && to <= size {
			slice(t, d, int(size), int(from), int(to))
		}
	})
}

// Far into a file the counter has to go on, not wrap.
func TestFillFarIn(t *testing.T) {
	d := randomData(t)
	a, b := make([]byte, 4096), make([]byte, 4096)
	for _, off := range []int64{1<<36 - 2048, 1 << 40, 1<<62 + 3} {
		d.FillAt(a, 1, off)
		d.FillAt(b[:1000], 1, off)
		d.FillAt(b[1000:], 1, off+1000)
		require.Equal(t, a, b, "at %d", off)
	}
}

func TestParallelFillIsTheSame(t *testing.T) {
	d := randomData(t)
	for _, n := range []int{1, 4096, 8<<20 - 1, 8 << 20, 9<<20 + 12345} {
		a, b := make([]byte, n), make([]byte, n)
		d.FillAt(a, 5, 0)
		d.fillParallel(b, 5)
		require.True(t, bytes.Equal(a, b), "%d bytes", n)
	}
}

// No block of 4 KiB is ever seen twice: not in a file, nor in two files, rounds,
// cases or seeds.
func TestNoBlockRepeats(t *testing.T) {
	seen := map[[32]byte]string{}
	p := make([]byte, 1<<20)
	for seed := range uint64(2) {
		for round := range 2 {
			for _, c := range []string{"a", "b"} {
				d := NewData(seed, round, c, DataRandom, 0)
				for _, it := range items(1<<20, 1<<20) {
					d.FillAt(p, KeyOf(it.Name), 0)
					for off := 0; off < len(p); off += 4096 {
						sum := sha256.Sum256(p[off : off+4096])
						where := fmt.Sprint(seed, round, c, it.Name, off)
						require.Empty(t, seen[sum], where)
						seen[sum] = where
					}
				}
			}
		}
	}
}

// The declared share of each 4 KiB is zero, and only that.
func TestMixedSharesEachBlock(t *testing.T) {
	for _, share := range []float64{0, 0.25, 0.5, 1} {
		d := NewData(1, 1, "c", DataMixed, share)
		p := make([]byte, 64<<10)
		d.FillAt(p, 3, 4096)
		for off := 0; off < len(p); off += 4096 {
			zeros := bytes.Count(p[off:off+4096], []byte{0})
			assert.InDelta(t, share*4096+(1-share)*16, zeros, 20, "share %v", share)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	d := randomData(b)
	p := make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	off := int64(0)
	for b.Loop() {
		d.FillAt(p, 1, off)
		off += int64(len(p))
	}
}
