package codec

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// roundTrip encodes and decodes, and says how long the stream was.
func lzfseRoundTrip(t require.TestingT, src []byte) int {
	stream := RoundTrip(t, func(dst, src []byte) ([]byte, error) { return lzfseEncode(dst, src, 0) }, decodeLZFSE, src)
	return len(stream)
}

func TestLZFSERoundTripVectors(t *testing.T) {
	for _, v := range Vectors() {
		t.Run(v.Name, func(t *testing.T) {
			n := lzfseRoundTrip(t, v.Data)
			assert.LessOrEqual(t, n, len(v.Data)+12)
		})
	}
}

func TestLZFSEBlockKinds(t *testing.T) {
	text := Text(1 << 20)
	noise := Noise(1<<20, 1)
	tests := []struct {
		name  string
		src   []byte
		magic uint32
	}{
		{"nothing", nil, magicEnd},
		{"seven bytes", text[:7], magicUncompressed},
		{"eight bytes of noise", noise[:8], magicUncompressed},
		{"eight zeros", make([]byte, 8), magicUncompressed},
		{"4095 bytes of text", text[:4095], magicV2},
		{"4096 bytes of text", text[:4096], magicV2},
		{"1 MiB of text", text, magicV2},
		{"4095 bytes of noise", noise[:4095], magicUncompressed},
		{"1 MiB of noise", noise, magicUncompressed},
		{"1 MiB of zeros", make([]byte, 1<<20), magicV2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lzfseRoundTrip(t, test.src)
			stream := encodeLZFSE(nil, test.src)
			assert.Equal(t, test.magic, binary.LittleEndian.Uint32(stream))
			if test.magic == magicUncompressed {
				assert.Len(t, stream, len(test.src)+12, "more than one block")
			}
		})
	}
}

// TestLongMatchesAndLiterals crosses the limits of L and M, one by one, with sources that leave no other choice.
func TestLZFSELongMatchesAndLiterals(t *testing.T) {
	noise := Noise(1<<16, 2)
	for _, l := range []int{1, 15, 16, 17, 59, 60, 314, 315, 316, 630, 631, 945} {
		for _, m := range []int{3, 4, 311, 312, 2358, 2359, 2360, 4718, 4719} {
			src := append(bytes.Clone(noise[:8000]), noise[20000:20000+l]...)
			src = append(src, noise[100:100+m]...)
			src = append(src, noise[30000:30000+l]...)
			lzfseRoundTrip(t, src)
		}
	}
}

func TestLZFSEDistances(t *testing.T) {
	noise := Noise(600000, 3)
	for _, d := range []int{16, 1535, 1536, 16383, 16384, 65535, 65536, 131071, 131072, 262137, 262138, 262139, 262140, 262141} {
		src := append(bytes.Clone(noise[:d]), noise[:20000]...)
		n := lzfseRoundTrip(t, src)
		if d <= maxD && d >= 20000 {
			assert.Less(t, n, d+d/100+2000, "distance %d is not used", d)
		} else if d > maxD {
			assert.Greater(t, n, d+10000, "distance %d is used", d)
		}
	}
	for d := 1; d < 40; d++ {
		for _, size := range []int{8, 40, 1000, 4096, 10000} {
			src := bytes.Repeat(noise[:d], size/d+1)[:size]
			lzfseRoundTrip(t, src)
		}
	}
}

func TestLZFSERoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lzfseRoundTrip(t, Draw(t, 200000))
	})
}

func TestLZFSEDecodeRefuses(t *testing.T) {
	text := Text(100000)
	whole := encodeLZFSE(nil, text)
	small := encodeLZFSE(nil, text[:3000])
	get := func(dst int, src []byte) error {
		_, err := decodeLZFSE(make([]byte, dst), src)
		return err
	}
	require.NoError(t, get(len(text), whole))
	assert.NoError(t, get(len(text), append(bytes.Clone(whole), "trailing"...)))
	assert.ErrorIs(t, get(len(text)-1, whole), ErrCorrupt)
	assert.ErrorIs(t, get(len(text)+1, whole), ErrCorrupt)
	assert.ErrorIs(t, get(2999, small), ErrCorrupt)
	assert.ErrorIs(t, get(3001, small), ErrCorrupt)
	for i := 0; i < len(whole); i += 1 + i/50 {
		assert.ErrorIs(t, get(len(text), whole[:i]), ErrCorrupt, "cut to %d bytes", i)
	}
	for i := range small {
		assert.ErrorIs(t, get(3000, small[:i]), ErrCorrupt, "cut to %d bytes", i)
	}
	for _, src := range []string{"bvx", "bvx#", "bvx-\xff\xff\xff\xff", "bvxn\x01\x00\x00\x00\xff\xff\xff\xff", "bvxn\x01\x00\x00\x00\x01\x00\x00\x00\x70bvx$"} {
		assert.ErrorIs(t, get(1, []byte(src)), ErrCorrupt, "%q", src)
	}
}

// TestDecodeDamaged flips bits: whatever comes out, nothing may panic or write outside.
func TestLZFSEDecodeDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	text := Text(30000)
	for _, stream := range [][]byte{encodeLZFSE(nil, text), encodeLZFSE(nil, text[:3000])} {
		size := 30000
		if len(stream) < 3000 {
			size = 3000
		}
		dst := make([]byte, size+8)
		for range times(600) {
			bad := bytes.Clone(stream)
			for range 1 + r.IntN(3) {
				bad[r.IntN(min(len(bad), 1<<(4+r.IntN(12))))] ^= 1 << r.IntN(8)
			}
			copy(dst[size:], "12345678")
			n, err := decodeLZFSE(dst[:size:size], bad)
			require.LessOrEqual(t, n, size)
			require.True(t, err == nil || n <= size)
			require.Equal(t, "12345678", string(dst[size:]))
		}
	}
}

func TestLZFSENoAllocations(t *testing.T) {
	text := Text(1 << 18)
	stream := encodeLZFSE(nil, text)
	dst, out := make([]byte, len(text)), make([]byte, 0, 1<<18)
	assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = decodeLZFSE(dst, stream) }), 1.0)
	assert.Less(t, testing.AllocsPerRun(10, func() { encodeLZFSE(out, text) }), 1.0)
}

func BenchmarkLZFSEDecode(b *testing.B) {
	benchDecode(b, func(src []byte) []byte { return encodeLZFSE(nil, src) }, decodeLZFSE)
}

func BenchmarkLZFSEEncode(b *testing.B) {
	benchEncode(b, func(dst, src []byte) ([]byte, error) { return lzfseEncode(dst, src, 0) })
}

// asV1 rewrites the first block of a stream, a bvx2, as bvx1, which no encoder at hand emits.
func asV1(t *testing.T, stream []byte) []byte {
	var h lzfseHeader
	require.True(t, h.parse(stream))
	h.Payload = h.LiteralPayload + h.LMDPayload
	b, err := binary.Append(binary.LittleEndian.AppendUint32(nil, magicV1), binary.LittleEndian, h.lzfseV1)
	require.NoError(t, err)
	require.Len(t, b, 50+2*(20+20+64+256), "docs of the format: 50 bytes before the tables")
	return append(b, stream[h.size:]...)
}

func TestLZFSEV1(t *testing.T) {
	for _, src := range [][]byte{Text(300000), Records(5000), make([]byte, 4096)} {
		stream := asV1(t, encodeLZFSE(nil, src))
		got := make([]byte, len(src))
		_, err := decodeLZFSE(got, stream)
		require.NoError(t, err)
		require.True(t, bytes.Equal(src, got))
		for i := 0; i < 770; i += 7 { // within the header
			_, err := decodeLZFSE(got, stream[:i])
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
}
