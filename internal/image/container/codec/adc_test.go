package codec

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plain decodes as the format's description reads, byte by byte: an oracle that shares nothing with decodeADC.
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

// roundTrip encodes and decodes, and says how long the stream was.
func adcRoundTrip(t require.TestingT, src []byte) int {
	stream := RoundTrip(t, func(dst, src []byte) ([]byte, error) { return adcEncode(dst, src, 0) }, decodeADC, src)
	require.True(t, bytes.Equal(src, plain(stream, len(src))))
	require.LessOrEqual(t, len(stream), len(src)+len(src)/128+1)
	return len(stream)
}

func TestADCRoundTripVectors(t *testing.T) {
	for _, v := range Vectors() {
		t.Run(v.Name, func(t *testing.T) { adcRoundTrip(t, v.Data) })
	}
}

func TestADCDistances(t *testing.T) {
	noise := Noise(100000, 3)
	for _, d := range []int{1, 1023, 1024, 1025, 65534, 65535, 65536, 65537} {
		for n := 3; n < 140; n++ {
			src := append(bytes.Clone(noise[:d]), noise[:n]...)
			if n > d {
				src = bytes.Repeat(noise[:d], n)
			}
			adcRoundTrip(t, src)
		}
		size := adcRoundTrip(t, bytes.Repeat(noise[:d], 2+5000/d)[:d+5000])
		whole := d + d/adcLiterals + 1
		assert.Equal(t, d <= adcDistance, size < whole+500, "distance %d: %d bytes", d, size)
	}
}

func TestADCDecodeByHand(t *testing.T) {
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
			n, err := decodeADC(dst, []byte(test.src))
			if !test.fine {
				require.ErrorIs(t, err, ErrCorrupt)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, string(dst[:n]))
		})
	}
}

func TestADCRoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { adcRoundTrip(t, Draw(t, 150000)) })
}

func TestADCNoAllocations(t *testing.T) {
	text := Text(1 << 18)
	stream := encodeADC(nil, text)
	dst, out := make([]byte, len(text)), make([]byte, 0, 2<<18)
	assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = decodeADC(dst, stream) }), 1.0)
	assert.Less(t, testing.AllocsPerRun(10, func() { encodeADC(out, text) }), 1.0)
}

// FuzzDecode: no panic, nothing outside dst, and the same as the plain reading when it is accepted.
func FuzzADCDecode(f *testing.F) {
	f.Add([]byte("\x82abc\x00\x02"), uint16(6))
	f.Add([]byte("\x80a\x7f\x00\x00"), uint16(68))
	f.Add(encodeADC(nil, Text(2000)), uint16(2000))
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := decodeADC(dst[:size], src)
		require.Zero(t, dst[size])
		require.True(t, err != nil || n == int(size))
		if err == nil {
			require.True(t, bytes.Equal(plain(src, n), dst[:n]))
		}
	})
}

func FuzzADCRoundTrip(f *testing.F) {
	f.Add([]byte("abcabcabcabcd"), uint16(3), uint16(100))
	f.Fuzz(func(t *testing.T, src []byte, distance, more uint16) {
		for d := int(distance); d > 0 && d <= len(src) && more > 0; more-- {
			src = append(src, src[len(src)-d])
		}
		adcRoundTrip(t, src)
	})
}

func BenchmarkADCDecode(b *testing.B) {
	benchDecode(b, func(src []byte) []byte { return encodeADC(nil, src) }, decodeADC)
}

func BenchmarkADCEncode(b *testing.B) {
	benchEncode(b, func(dst, src []byte) ([]byte, error) { return adcEncode(dst, src, 0) })
}

// A copy from nearby takes two bytes up to its longest, and three beyond.
func TestADCTakesTheShorterCopy(t *testing.T) {
	noise := Noise(100, 4)
	for n, copied := range map[int]int{maxShort: 2, maxShort + 1: 3} {
		assert.Equal(t, 1+len(noise)+copied, adcRoundTrip(t, append(bytes.Clone(noise), noise[:n]...)), "%d bytes", n)
	}
}
