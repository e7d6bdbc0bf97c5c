package inflate

import (
	"bytes"
	"compress/flate"
	stdlib "compress/zlib"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/container/codec/codectest"
)

// pack compresses with the standard library or with klauspost's, whose blocks differ.
func pack(t require.TestingT, src []byte, level int, std bool) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	if std {
		w, err = stdlib.NewWriterLevel(&out, level)
	} else {
		w, err = zlib.NewWriterLevel(&out, level)
	}
	require.NoError(t, err)
	_, err = w.Write(src)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func decodes(t require.TestingT, want, stream []byte) { codectest.Decodes(t, Decode, want, stream) }

func TestVectors(t *testing.T) {
	for _, v := range codectest.Vectors() {
		t.Run(v.Name, func(t *testing.T) {
			levels := []int{stdlib.HuffmanOnly, 0, 1, 6, 9}
			if len(v.Data) > 70000 {
				levels = levels[2:3]
			}
			for _, level := range levels {
				decodes(t, v.Data, pack(t, v.Data, level, true))
				decodes(t, v.Data, pack(t, v.Data, level, false))
			}
		})
	}
}

func TestRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := codectest.Draw(t, 60000)
		decodes(t, src, pack(t, src, rapid.IntRange(-2, 9).Draw(t, "level"), rapid.Bool().Draw(t, "std")))
	})
}

// TestSkewed makes codes of all lengths: symbols whose frequencies fall like Fibonacci's numbers.
func TestSkewed(t *testing.T) {
	var src []byte
	a, b := 1, 1
	for symbol := byte(0); len(src) < 400000; symbol++ {
		src = append(src, bytes.Repeat([]byte{symbol * 7}, a)...)
		a, b = b, a+b
	}
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(src), func(i, j int) { src[i], src[j] = src[j], src[i] })
	for _, level := range []int{-2, 1, 9} {
		decodes(t, src, pack(t, src, level, true))
	}
	skewed := append(bytes.Clone(src[:100000]), src[30000:60000]...)
	decodes(t, skewed, pack(t, skewed, 9, true))
}

func TestRefuses(t *testing.T) {
	src := codectest.Text(4000)
	stream := pack(t, src, 6, true)
	get := func(dst int, stream []byte) error {
		n, err := Decode(make([]byte, dst), stream)
		assert.Equal(t, err == nil, n == dst)
		return err
	}
	assert.NoError(t, get(len(src), append(bytes.Clone(stream), "behind"...)))
	assert.ErrorIs(t, get(len(src)-1, stream), ErrCorrupt)
	assert.ErrorIs(t, get(len(src)+1, stream), ErrCorrupt)
	for i := range stream {
		require.ErrorIs(t, get(len(src), stream[:i]), ErrCorrupt, "cut to %d bytes", i)
	}
	for i := range stream {
		bad := bytes.Clone(stream)
		bad[i] ^= 1 << (i % 8)
		if i == 0 && bad[0]&15 == 8 || i == 1 {
			continue
		}
		require.ErrorIs(t, get(len(src), bad), ErrCorrupt, "byte %d", i)
	}
	for _, bad := range []string{
		"\x78\x9c\x07\x00\x00\x00\x00\x01",                         // kind 3
		"\x78\x9c\x01\x01\x00\x00\x00a\x00\x00\x00\x00",            // length and its inverse
		"\x78\xbb\x00\x00\x00\x01\x03\x00\x00\x00\x00\x01",         // dictionary
		"\x79\x9c\x03\x00\x00\x00\x00\x01",                         // method
		"\x78\x9c\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // no code lengths
	} {
		assert.ErrorIs(t, get(1, []byte(bad)), ErrCorrupt, "%q", bad)
	}
}

func TestNoAllocations(t *testing.T) {
	src := codectest.Text(1 << 20)
	stream := pack(t, src, 1, false)
	dst := make([]byte, len(src))
	assert.Less(t, testing.AllocsPerRun(20, func() { _, _ = Decode(dst, stream) }), 1.0)
}

// FuzzDecode holds the decoder against the standard library: the same verdict, the same bytes.
func FuzzDecode(f *testing.F) {
	for _, src := range [][]byte{nil, []byte("a"), codectest.Text(2000), codectest.Noise(300, 1), make([]byte, 1000), codectest.Records(1000)} {
		for _, level := range []int{-2, 0, 1, 9} {
			f.Add(pack(f, src, level, true)[2:], uint16(len(src)))
		}
	}
	d := new(decoder)
	f.Fuzz(func(t *testing.T, deflated []byte, size uint16) {
		in := bytes.NewReader(deflated)
		r := flate.NewReader(in)
		want := make([]byte, int(size)+1)
		n, stdErr := io.ReadFull(r, want)
		accepted := n == int(size) && (stdErr == io.ErrUnexpectedEOF || n == 0 && stdErr == io.EOF)
		if accepted {
			// A truncated stream gives the same error as a short one.
			_, again := io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
			accepted = again == nil
		}
		dst := make([]byte, int(size)+1)
		used, cause := d.deflate(dst[:size], deflated)
		require.Zero(t, dst[size])
		require.Equal(t, accepted, cause == "", "%s", cause)
		if accepted {
			require.Equal(t, len(deflated)-in.Len(), used)
			require.True(t, bytes.Equal(want, dst))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, src := range codectest.Bench() {
		stream := pack(b, src, 1, false)
		dst := make([]byte, len(src))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := Decode(dst, stream); err != nil {
					b.Fatal(err)
				}
			}
		})
		for module, open := range map[string]func(io.Reader) (io.ReadCloser, error){"klauspost": zlib.NewReader, "stdlib": stdlib.NewReader} {
			b.Run(name+"/"+module, func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					r, err := open(bytes.NewReader(stream))
					require.NoError(b, err)
					_, err = io.ReadFull(r, dst)
					require.NoError(b, err)
				}
			})
		}
	}
}
