package bzip2

import (
	"bytes"
	stdlib "compress/bzip2"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/container/codec/codectest"
)

func roundTrip(t require.TestingT, src []byte, level int) []byte {
	encode := func(dst, src []byte) ([]byte, error) { return Encode(dst, src, level) }
	return codectest.RoundTrip(t, encode, Decode, src)
}

func decodes(t require.TestingT, want, stream []byte) { codectest.Decodes(t, Decode, want, stream) }

func TestRoundTripVectors(t *testing.T) {
	for _, v := range codectest.Vectors() {
		if len(v.Data) > 20000 && v.Name != "mixed" {
			continue // the compressor takes its time
		}
		t.Run(v.Name, func(t *testing.T) {
			stream := roundTrip(t, v.Data, 0)
			got, err := io.ReadAll(stdlib.NewReader(bytes.NewReader(stream)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(v.Data, got))
		})
	}
}

// TestLevel has the digits of Apple's chunks (docs/formats.md).
func TestLevel(t *testing.T) {
	for n, want := range map[int]int{0: 1, 512: 1, 100000: 1, 100001: 2, 417792: 5, 900000: 9, 1029120: 9, 1 << 26: 9} {
		assert.Equal(t, want, Level(n), "%d bytes", n)
	}
	stream := roundTrip(t, codectest.Text(417792), 0)
	assert.Equal(t, "BZh5", string(stream[:4]))
	assert.Equal(t, "BZh2", string(roundTrip(t, codectest.Text(300000), 2)[:4]))
	_, err := Encode(nil, nil, 10)
	assert.Error(t, err)
}

func TestRoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, codectest.Draw(t, 20000), rapid.IntRange(0, 3).Draw(t, "level"))
	})
}

// TestRuns has runs of every length around the four that the format cuts them at, and around 255 more.
func TestRuns(t *testing.T) {
	var src []byte
	for n := range 300 {
		src = append(append(src, bytes.Repeat([]byte{byte(n)}, n)...), '-')
	}
	roundTrip(t, src, 0)
	roundTrip(t, append(src, bytes.Repeat([]byte{7}, 4)...), 0)
	roundTrip(t, append(src, bytes.Repeat([]byte{7}, 100000)...), 0)
}

func TestAgainstBzip2(t *testing.T) {
	if _, err := exec.LookPath("bzip2"); err != nil {
		t.Skip("bzip2 is not installed")
	}
	run := func(in []byte, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "bzip2", args...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		require.NoError(t, err, "bzip2 %q", args)
		return out
	}
	src := append(codectest.Mixed(300000), codectest.Text(200000)...)
	for _, n := range []int{0, 1, 4096, len(src)} {
		for _, level := range []string{"-1", "-9"} {
			decodes(t, src[:n], run(src[:n], "-c", level))
		}
		assert.True(t, bytes.Equal(src[:n], run(roundTrip(t, src[:n], 0), "-dc")), "%d bytes", n)
	}
}

func TestDecodeRefuses(t *testing.T) {
	src := codectest.Text(3000)
	stream := roundTrip(t, src, 0)
	get := func(dst int, stream []byte) error {
		n, err := Decode(make([]byte, dst), stream)
		assert.Equal(t, err == nil, n == dst)
		return err
	}
	assert.NoError(t, get(len(src), append(bytes.Clone(stream), "behind"...)))
	assert.ErrorIs(t, get(len(src)-1, stream), ErrCorrupt)
	assert.ErrorIs(t, get(len(src)+1, stream), ErrCorrupt)
	for i := 0; i < len(stream); i += 1 + i/100 {
		require.ErrorIs(t, get(len(src), stream[:i]), ErrCorrupt, "cut to %d bytes", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		bad := bytes.Clone(stream)
		i := r.IntN(len(bad))
		bad[i] ^= 1 << r.IntN(8)
		if i == 3 || i == len(bad)-1 {
			continue // the level, the padding
		}
		require.ErrorIs(t, get(len(src), bad), ErrCorrupt, "byte %d", i)
	}
}

func TestNoAllocations(t *testing.T) {
	src := codectest.Text(100000)
	stream := roundTrip(t, src, 0)
	dst := make([]byte, len(src))
	assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = Decode(dst, stream) }), 1.0)
}

// FuzzDecode holds the decoder against the standard library: what we accept, it accepts, with the same bytes. The other way
// round does not hold: it reads concatenated streams, and codes that leave bits unused, which bzip2 itself decodes
// otherwise. That whatever is valid is accepted is for the round trips to show.
func FuzzDecode(f *testing.F) {
	for _, src := range [][]byte{nil, []byte("a"), codectest.Text(500), codectest.Noise(50, 1), make([]byte, 1000)} {
		f.Add(roundTrip(f, src, 0), uint16(len(src)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := Decode(dst[:size], stream)
		require.Zero(t, dst[size])
		require.LessOrEqual(t, n, int(size))
		if size > 0 {
			require.Equal(t, err == nil, n == int(size))
		}
		if err == nil {
			// Bytes behind the stream may be an error there: only what came before counts.
			want, _ := io.ReadAll(io.LimitReader(stdlib.NewReader(bytes.NewReader(stream)), 1<<17))
			require.True(t, bytes.HasPrefix(want, dst[:size]))
		}
	})
}

// FuzzBlock fuzzes what stands between the checksums, which stop nearly every other input.
func FuzzBlock(f *testing.F) {
	for _, src := range [][]byte{[]byte("a"), codectest.Text(500), codectest.Noise(50, 1), make([]byte, 1000)} {
		f.Add(roundTrip(f, src, 0)[14:], uint16(len(src)))
	}
	d := &decoder{links: make([]uint32, unit)}
	f.Fuzz(func(t *testing.T, block []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		d.dst, d.out, d.in = dst[:size], 0, reader{src: block}
		d.block()
		require.Zero(t, dst[size])
		require.LessOrEqual(t, d.out, int(size))
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, src := range codectest.Bench() {
		stream, err := Encode(nil, src, 0)
		require.NoError(b, err)
		dst := make([]byte, len(src))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := Decode(dst, stream); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/stdlib", func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_, err := io.ReadFull(stdlib.NewReader(bytes.NewReader(stream)), dst)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, src := range codectest.Bench() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := Encode(nil, src, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
