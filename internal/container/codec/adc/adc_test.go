package adc

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/container/codec/codectest"
)

// plain decodes as the format's description reads, byte by byte: an oracle that shares nothing with Decode.
func plain(src []byte, size int) []byte {
	var out []byte
	for len(out) < size {
		switch c := src[0]; {
		case c&0x80 != 0:
			n := int(c&0x7f) + 1
			out, src = append(out, src[1:1+n]...), src[1+n:]
		case c&0x40 != 0:
			d := int(src[1])*256 + int(src[2]) + 1
			for range int(c&0x3f) + 4 {
				out = append(out, out[len(out)-d])
			}
			src = src[3:]
		default:
			d := int(c&3)*256 + int(src[1]) + 1
			for range int(c>>2) + 3 {
				out = append(out, out[len(out)-d])
			}
			src = src[2:]
		}
	}
	return out
}

func encode(dst, src []byte) ([]byte, error) { return Encode(dst, src), nil }

// roundTrip encodes and decodes, and says how long the stream was.
func roundTrip(t require.TestingT, src []byte) int {
	stream := codectest.RoundTrip(t, encode, Decode, src)
	require.True(t, bytes.Equal(src, plain(stream, len(src))))
	require.LessOrEqual(t, len(stream), len(src)+len(src)/128+1)
	return len(stream)
}

func TestRoundTripVectors(t *testing.T) {
	for _, v := range codectest.Vectors() {
		t.Run(v.Name, func(t *testing.T) { roundTrip(t, v.Data) })
	}
}

func TestDistances(t *testing.T) {
	noise := codectest.Noise(100000, 3)
	for _, d := range []int{1, 1023, 1024, 1025, 65534, 65535, 65536, 65537} {
		for n := 3; n < 140; n++ {
			src := append(bytes.Clone(noise[:d]), noise[:n]...)
			if n > d {
				src = bytes.Repeat(noise[:d], n)
			}
			roundTrip(t, src)
		}
		size := roundTrip(t, bytes.Repeat(noise[:d], 2+5000/d)[:d+5000])
		whole := d + d/maxLiterals + 1
		assert.Equal(t, d <= MaxDistance, size < whole+500, "distance %d: %d bytes", d, size)
	}
}

func TestDecodeByHand(t *testing.T) {
	tests := []struct {
		name, src, want string
		fine            bool
	}{
		{"nothing", "", "", true},
		{"literals", "\x82abc", "abc", true},
		{"short copy", "\x82abc\x00\x02", "abcabc", true},
		{"short copy that overlaps", "\x80a\x3c\x00", "aaaaaaaaaaaaaaaaaaa", true},
		{"long copy", "\x83abcd\x40\x00\x03", "abcdabcd", true},
		{"bytes behind", "\x82abcrest", "abc", true},
		{"literals cut short", "\x82ab", "abc", false},
		{"too many literals", "\x82abc", "ab", false},
		{"copy from before the start", "\x80a\x00\x01", "aaaa", false},
		{"copy too long", "\x80a\x00\x00", "aaa", false},
		{"short copy cut short", "\x80a\x00", "aaaa", false},
		{"long copy cut short", "\x80a\x40\x00", "aaaaa", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dst := make([]byte, len(test.want))
			n, err := Decode(dst, []byte(test.src))
			if !test.fine {
				require.ErrorIs(t, err, ErrCorrupt)
				assert.Less(t, n, len(dst))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, string(dst[:n]))
		})
	}
}

func TestRoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, codectest.Draw(t, 150000)) })
}

func TestNoAllocations(t *testing.T) {
	text := codectest.Text(1 << 20)
	stream := Encode(nil, text)
	dst, out := make([]byte, len(text)), make([]byte, 0, 2<<20)
	assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = Decode(dst, stream) }), 1.0)
	assert.Less(t, testing.AllocsPerRun(10, func() { Encode(out, text) }), 1.0)
}

// FuzzDecode: no panic, nothing outside dst, and the same as the plain reading when it is accepted.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x82abc\x00\x02"), uint16(6))
	f.Add([]byte("\x80a\x7f\x00\x00"), uint16(68))
	f.Add(Encode(nil, codectest.Text(2000)), uint16(2000))
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := Decode(dst[:size], src)
		require.Zero(t, dst[size])
		require.Equal(t, err == nil, n == int(size))
		if err == nil {
			require.True(t, bytes.Equal(plain(src, n), dst[:n]))
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("abcabcabcabcd"), uint16(3), uint16(100))
	f.Fuzz(func(t *testing.T, src []byte, distance, more uint16) {
		for d := int(distance); d > 0 && d <= len(src) && more > 0; more-- {
			src = append(src, src[len(src)-d])
		}
		roundTrip(t, src)
	})
}

func BenchmarkDecode(b *testing.B) {
	codectest.BenchmarkDecode(b, func(src []byte) []byte { return Encode(nil, src) }, Decode)
}

func BenchmarkEncode(b *testing.B) { codectest.BenchmarkEncode(b, encode) }
