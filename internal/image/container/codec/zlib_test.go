package codec

import (
	"bytes"
	stdlib "compress/zlib"
	stdadler32 "hash/adler32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

func TestZlibVectors(t *testing.T) {
	for _, v := range Vectors() {
		t.Run(v.Name, func(t *testing.T) {
			levels := []int{stdlib.HuffmanOnly, 0, 1, 6, 9}
			if len(v.Data) > 70000 {
				levels = levels[2:3]
			}
			for _, level := range levels {
				Decodes(t, inflate, v.Data, pack(t, v.Data, level, true))
				Decodes(t, inflate, v.Data, pack(t, v.Data, level, false))
			}
		})
	}
}

func TestZlibRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := Draw(t, 60000)
		Decodes(t, inflate, src, pack(t, src, rapid.IntRange(-2, 9).Draw(t, "level"), rapid.Bool().Draw(t, "std")))
	})
}

// TestZlibSkewed makes codes of all lengths: symbols whose frequencies fall like Fibonacci's numbers.
func TestZlibSkewed(t *testing.T) {
	var src []byte
	a, b := 1, 1
	for symbol := byte(0); len(src) < 400000; symbol++ {
		src = append(src, bytes.Repeat([]byte{symbol * 7}, a)...)
		a, b = b, a+b
	}
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(src), func(i, j int) { src[i], src[j] = src[j], src[i] })
	for _, level := range []int{-2, 1, 9} {
		Decodes(t, inflate, src, pack(t, src, level, true))
	}
	skewed := append(bytes.Clone(src[:100000]), src[30000:60000]...)
	Decodes(t, inflate, skewed, pack(t, skewed, 9, true))
}

func TestZlibRefusesDamage(t *testing.T) {
	src := Text(4000)
	stream := pack(t, src, 6, true)
	get := func(dst int, stream []byte) error {
		n, err := Decode(Zlib, make([]byte, dst), stream)
		assert.True(t, err != nil || n == dst)
		return err
	}
	assert.NoError(t, get(len(src), append(bytes.Clone(stream), "behind"...)))
	assert.Error(t, get(len(src)-1, stream))
	assert.Error(t, get(len(src)+1, stream))
	for i := range stream {
		require.Error(t, get(len(src), stream[:i]), "cut to %d bytes", i)
	}
	for i := range stream {
		bad := bytes.Clone(stream)
		bad[i] ^= 1 << (i % 8)
		require.Error(t, get(len(src), bad), "byte %d", i)
	}
	for _, bad := range []string{
		"\x78\x9c\x07\x00\x00\x00\x00\x01",                         // kind 3
		"\x78\x9c\x01\x01\x00\x00\x00a\x00\x00\x00\x00",            // length and its inverse
		"\x78\x9c\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // no code lengths
	} {
		assert.Error(t, get(1, []byte(bad)), "%q", bad)
	}
	for header, good := range map[string]bool{
		"\x78\x01": true, "\x08\x1d": true, // windows of 32 KiB and of 256 bytes
		"\x78\x20": false, // dictionary
		"\x79\x18": false, // method
		"\x88\x1c": false, // window
		"\x78\x02": false, // check
	} {
		assert.Equal(t, good, get(len(src), append([]byte(header), stream[2:]...)) == nil, "%q", header)
	}
}

// TestAdler32 compares with the standard library, at lengths around those of
// the blocks and with the largest bytes, which overflow first.
func TestAdler32(t *testing.T) {
	random := make([]byte, 1<<16)
	_, err := rand.NewChaCha8([32]byte{1}).Read(random)
	require.NoError(t, err)
	for _, p := range [][]byte{random, bytes.Repeat([]byte{0xff}, 1<<16), make([]byte, 1<<16)} {
		for n := range 3 * adlerBlock {
			require.Equal(t, stdadler32.Checksum(p[:n]), adler32(p[:n]), "%d bytes", n)
			require.Equal(t, stdadler32.Checksum(p[n:]), adler32(p[n:]), "from byte %d", n)
		}
	}
}

// BenchmarkAdler32 is of one chunk.
func BenchmarkAdler32(b *testing.B) {
	chunk := make([]byte, 1<<20)
	for name, sum := range map[string]func([]byte) uint32{"ours": adler32, "std": stdadler32.Checksum} {
		b.Run("by="+name, func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				sum(chunk)
			}
		})
	}
}
