package codec

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
	"pgregory.net/rapid"
)

func xzRoundTrip(t require.TestingT, src []byte) []byte {
	return RoundTrip(t, encodeXZ, decodeXZ, src)
}

func decodes(t require.TestingT, want, stream []byte) { Decodes(t, decodeXZ, want, stream) }

func TestXZRoundTripVectors(t *testing.T) {
	for _, v := range Vectors() {
		if len(v.Data) > 20000 && v.Name != "mixed" || len(v.Data) == 0 {
			continue // the compressor takes its time
		}
		t.Run(v.Name, func(t *testing.T) { xzRoundTrip(t, v.Data) })
	}
}

func TestXZRoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { xzRoundTrip(t, append(Draw(t, 30000), 'x')) })
}

// TestForm holds the framing against Apple's (docs/formats.md): no check, sizes in a block header of 16 bytes, 8 MiB.
func TestXZForm(t *testing.T) {
	src := Text(300000)
	stream := xzRoundTrip(t, src)
	assert.Equal(t, "\xfd7zXZ\x00\x00\x00\xff\x12\xd9\x41", string(stream[:12]))
	assert.Equal(t, []byte{3, 0xc0}, stream[12:14])
	assert.Equal(t, []byte{0x21, 1, 0x16}, stream[20:23])
	assert.Equal(t, "\x00\x00YZ", string(stream[len(stream)-4:]))
	assert.Zero(t, len(stream)%4)
}

// TestOtherWriters reads what the module's writer and xz(1) make, with every kind of check and filter property.
func TestXZOtherWriters(t *testing.T) {
	src := Mixed(120000)
	for _, c := range []xz.WriterConfig{{NoCheckSum: true}, {CheckSum: xz.CRC32}, {CheckSum: xz.CRC64}, {CheckSum: xz.SHA256},
		{BlockSize: 50000}, {Properties: &lzma.Properties{LC: 0, LP: 4, PB: 4}}, {Properties: &lzma.Properties{LC: 4, LP: 0, PB: 0}}} {
		var out bytes.Buffer
		w, err := c.NewWriter(&out)
		require.NoError(t, err)
		_, err = w.Write(src)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		decodes(t, src, out.Bytes())
	}
	for _, c := range []lzma.WriterConfig{{}, {SizeInHeader: true, Size: int64(len(src))}, {SizeInHeader: true, Size: int64(len(src)), EOSMarker: true}} {
		var out bytes.Buffer
		w, err := c.NewWriter(&out)
		require.NoError(t, err)
		_, err = w.Write(src)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		decodes(t, src, out.Bytes())
		_, err = decodeXZ(make([]byte, len(src)-1), out.Bytes())
		require.ErrorIs(t, err, ErrCorrupt)
		_, err = decodeXZ(make([]byte, len(src)+1), out.Bytes())
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

func TestXZAgainstXZ(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("xz is not installed")
	}
	src := append(Mixed(60000), Text(60000)...)
	run := func(in []byte, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "xz", args...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		require.NoError(t, err, "xz %q", args)
		return out
	}
	for _, args := range [][]string{{"-c"}, {"-c", "-9e"}, {"-c", "-0"}, {"-c", "--check=none"}, {"-c", "--check=sha256"}, {"-c", "--check=crc32"},
		{"-c", "--block-size=70000"}, {"-c", "--format=lzma"}, {"-c", "--lzma2=preset=6,lc=0,lp=2,pb=4"}, {"-c", "-T2"}} {
		decodes(t, src, run(src, args...))
	}
	for _, n := range []int{1, 4096, len(src)} {
		assert.True(t, bytes.Equal(src[:n], run(xzRoundTrip(t, src[:n]), "-dc")), "%d bytes", n)
	}
	_, err := decodeXZ(make([]byte, len(src)), run(src, "-c", "--x86", "--lzma2"))
	assert.ErrorIs(t, err, ErrCorrupt)
}

func TestXZDecodeRefuses(t *testing.T) {
	src := Text(3000)
	stream := xzRoundTrip(t, src)
	get := func(dst int, stream []byte) error {
		n, err := decodeXZ(make([]byte, dst), stream)
		assert.True(t, err != nil || n == dst)
		return err
	}
	assert.NoError(t, get(len(src), append(bytes.Clone(stream), "behind"...)))
	assert.ErrorIs(t, get(len(src)-1, stream), ErrCorrupt)
	assert.ErrorIs(t, get(len(src)+1, stream), ErrCorrupt)
	blocks := len(stream) - 24 // index and footer are not read
	for i := range blocks {
		require.ErrorIs(t, get(len(src), stream[:i]), ErrCorrupt, "cut to %d bytes", i)
	}
	// Without a check, damage in the payload may pass; in the headers it may not.
	for i := range 28 {
		bad := bytes.Clone(stream)
		bad[i] ^= 0x10
		require.ErrorIs(t, get(len(src), bad), ErrCorrupt, "byte %d", i)
	}
}

func TestXZDecodeDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	src := Mixed(20000)
	stream := xzRoundTrip(t, src)
	dst := make([]byte, len(src)+8)
	for range times(600) {
		bad := bytes.Clone(stream)
		for range 1 + r.IntN(3) {
			bad[28+r.IntN(len(bad)-28)] ^= 1 << r.IntN(8)
		}
		_, _ = decodeXZ(dst[:len(src):len(src)], bad)
		require.Equal(t, make([]byte, 8), dst[len(src):])
	}
}

// FuzzDecode: no panic, nothing outside dst; what both readers accept is the same.
func FuzzXZDecode(f *testing.F) {
	for _, src := range [][]byte{[]byte("a"), Text(300), Noise(100, 1), make([]byte, 1000)} {
		stream, err := encodeXZ(nil, src)
		require.NoError(f, err)
		f.Add(stream, uint16(len(src)))
	}
	f.Add([]byte("\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x83\xff\xfb\xff\xff\xc0\x00\x00\x00"), uint16(0))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := decodeXZ(dst[:size], stream)
		require.Zero(t, dst[size])
		require.LessOrEqual(t, n, int(size))
		require.True(t, err != nil || n == int(size))
	})
}

func BenchmarkXZDecode(b *testing.B) {
	benchDecode(b, func(src []byte) []byte {
		stream, err := encodeXZ(nil, src)
		require.NoError(b, err)
		return stream
	}, decodeXZ)
}

func BenchmarkXZEncode(b *testing.B) { benchEncode(b, encodeXZ) }

// TestSeveralStreams: a payload may be several xz streams with padding between them, as xz(1) and 7zz read it.
func TestSeveralStreams(t *testing.T) {
	src := bytes.Repeat([]byte("to and fro "), 4000)
	half := len(src) / 2
	first, second := xzRoundTrip(t, src[:half]), xzRoundTrip(t, src[half:])
	empty := emptyStream(t)
	dst := make([]byte, len(src))
	for _, padding := range []int{0, 4, 64} {
		payload := slices.Concat(empty, first, make([]byte, padding), empty, second, make([]byte, padding))
		n, err := xzDecode(dst, payload)
		require.NoError(t, err)
		require.Equal(t, len(src), n)
		require.True(t, bytes.Equal(src, dst))
	}
	_, err := xzDecode(dst, slices.Concat(first, second[:40]))
	require.Error(t, err, "a second stream that is not whole")
	_, err = xzDecode(dst[:half], slices.Concat(first, second))
	require.Error(t, err, "more than wanted")
	n, err := xzDecode(dst, slices.Concat(first, []byte("something else")))
	require.NoError(t, err, "what is no stream is not read")
	require.Equal(t, half, n)
}

// emptyStream is an xz stream without a block.
func emptyStream(t require.TestingT) []byte {
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestManyBlocksAreRefused: each block takes a dictionary, so that a payload of empty ones would take minutes.
func TestManyBlocksAreRefused(t *testing.T) {
	stream := xzRoundTrip(t, []byte("x"))
	_, err := xzDecode(make([]byte, 1<<20), bytes.Repeat(stream, 5000))
	require.ErrorContains(t, err, "too many blocks")
}
