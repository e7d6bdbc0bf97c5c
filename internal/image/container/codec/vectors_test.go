package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Vector is an input with a name.
type Vector struct {
	Name string
	Data []byte
}

// Vectors are the inputs that every codec must reproduce: no bytes, single
// bytes, sizes around the limits of formats, all kinds of content, and periods
// around every limit of a distance.
var Vectors = sync.OnceValue(func() []Vector {
	text, noise := Text(1<<20+1), Noise(1<<20+1, 7)
	vectors := []Vector{{"empty", nil}, {"one byte", []byte{'x'}}, {"one zero", []byte{0}}}
	sizes := []int{2, 3, 7, 8, 9, 511, 512, 4095, 4096, 4097, 65535, 65536, 65537, 1<<20 + 1}
	if long {
		sizes = append(sizes, 1<<20-1, 1<<20)
	}
	for _, n := range sizes {
		vectors = append(vectors,
			Vector{fmt.Sprintf("%d of text", n), text[:n]},
			Vector{fmt.Sprintf("%d of noise", n), noise[:n]},
			Vector{fmt.Sprintf("%d zeros", n), make([]byte, n)})
	}
	for _, d := range []int{1, 2, 3, 4, 7, 8, 15, 16, 17, 1023, 1024, 1025, 32767, 32768, 32769, 65534, 65535, 65536,
		65537, 262138, 262139, 262140} {
		n := min(2*d+5000, 1<<20)
		vectors = append(vectors, Vector{fmt.Sprintf("period %d", d), bytes.Repeat(noise[:d], n/d+1)[:n]})
	}
	return append(vectors, Vector{"mixed", Mixed(1 << 20)}, Vector{"records", Records(300000)})
})

// Noise is n bytes that do not compress.
func Noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	out := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], r.Uint64())
	}
	return out[:n]
}

// Text is n bytes that compress about as well as prose does.
func Text(n int) []byte {
	if all := oneText(); n <= len(all) {
		return bytes.Clone(all[:n])
	}
	return makeText(n)
}

// oneText is as much text as most tests take, made once.
var oneText = sync.OnceValue(func() []byte { return makeText(3<<19 + 1) })

func makeText(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 3000)
	for i := range words {
		var w strings.Builder
		for range 2 + r.IntN(9) {
			w.WriteByte("etaoinshrdlucmfwypvbgkqjxz"[min(r.IntN(26), r.IntN(26))])
		}
		words[i] = w.String()
	}
	var out bytes.Buffer
	for out.Len() < n {
		out.WriteString(words[min(r.IntN(len(words)), r.IntN(len(words)), r.IntN(len(words)))])
		out.WriteByte(" \n"[r.IntN(20)/19])
	}
	return out.Bytes()[:n]
}

// Records is n bytes of numbered records of 64 bytes: short matches at one
// distance, as in tables of file systems.
func Records(n int) []byte {
	out := make([]byte, 0, n+64)
	for i := uint32(0); len(out) < n; i++ {
		var record [64]byte
		binary.BigEndian.PutUint32(record[4:], i)
		binary.BigEndian.PutUint32(record[20:], i*2654435761)
		copy(record[32:], "record")
		out = append(out, record[:]...)
	}
	return out[:n]
}

// Mixed is n bytes of text, noise, zeros and records in turn, in pieces of
// uneven length.
func Mixed(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	text, noise, records := Text(n), Noise(n, 9), Records(n)
	out := make([]byte, 0, n)
	for len(out) < n {
		size := 1 << r.IntN(16)
		source := [][]byte{text, noise, make([]byte, size), records}[r.IntN(4)]
		from := r.IntN(max(1, len(source)-size))
		out = append(out, source[from:min(len(source), from+size)]...)
	}
	return out[:n]
}

// Program is up to n bytes of an executable, from its second MiB on, or nil
// where there is none to read: the running test itself.
func Program(n int) []byte {
	name, err := os.Executable()
	if err != nil {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil || len(content) < 1<<20+n {
		return nil
	}
	return content[1<<20 : 1<<20+n]
}

// Decodes fails the test unless decode makes want of stream, and writes no byte
// after it.
func Decodes(t require.TestingT, decode func(dst, src []byte) (int, error), want, stream []byte) {
	got := make([]byte, len(want)+1)
	got[len(want)] = 0xee
	n, err := decode(got[:len(want)], stream)
	require.NoError(t, err)
	require.Equal(t, len(want), n)
	if at := firstDifference(want, got[:n]); at < n {
		require.FailNow(t, "decodes to other bytes", "first of %d at %d", n, at)
	}
	require.Equal(t, byte(0xee), got[len(want)], "wrote after dst")
}

// firstDifference is the index of the first byte that differs, len(a) if none
// does.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// RoundTrip encodes after bytes that must not change, decodes again, and
// returns the stream.
func RoundTrip(t require.TestingT, encode func(dst, src []byte) ([]byte, error),
	decode func(dst, src []byte) (int, error), src []byte) []byte {
	stream, err := encode([]byte("before"), src)
	require.NoError(t, err)
	require.Equal(t, "before", string(stream[:6]))
	Decodes(t, decode, src, stream[6:])
	return stream[6:]
}

// benchDecode measures decode on every input of Bench, in decoded bytes.
func benchDecode(b *testing.B, encode func(src []byte) []byte, decode func(dst, src []byte) (int, error)) {
	for name, src := range Bench() {
		b.Run(name, func(b *testing.B) {
			stream := encode(src)
			dst := make([]byte, len(src))
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := decode(dst, stream); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchEncode measures encode on every input of Bench, and reports the
// ratio of the lengths.
func benchEncode(b *testing.B, encode func(dst, src []byte) ([]byte, error)) {
	for name, src := range Bench() {
		b.Run(name, func(b *testing.B) {
			out := make([]byte, 0, len(src)+1<<18)
			b.SetBytes(int64(len(src)))
			var n int
			for b.Loop() {
				stream, err := encode(out, src)
				if err != nil {
					b.Fatal(err)
				}
				n = len(stream)
			}
			b.ReportMetric(float64(n)/float64(len(src)), "ratio")
		})
	}
}

// Bench are the inputs, by name, that codecs are measured with: chunks of 1
// MiB.
func Bench() map[string][]byte {
	inputs := map[string][]byte{"text": Text(1 << 20), "noise": Noise(1<<20, 1), "mixed": Mixed(1 << 20)}
	if program := Program(1 << 20); program != nil && runtime.GOOS == "linux" {
		inputs["program"] = program
	}
	return inputs
}

// Draw makes an input of up to limit bytes from pieces: literals, repeats at
// drawn distances, runs.
func Draw(t *rapid.T, limit int) []byte {
	var out []byte
	noise := Noise(1<<16, rapid.Uint64().Draw(t, "seed"))
	for range rapid.IntRange(0, 12).Draw(t, "pieces") {
		n := min(limit-len(out), 1<<rapid.IntRange(0, 16).Draw(t, "log")+rapid.IntRange(-1, 20).Draw(t, "more"))
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case n <= 0:
		case kind == 0:
			out = append(out, noise[:min(n, len(noise))]...)
		case kind == 1:
			out = append(out, bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)...)
		case len(out) > 0:
			from := len(out) - rapid.IntRange(1, len(out)).Draw(t, "distance")
			for i := range min(n, 50000) {
				out = append(out, out[from+i])
			}
		}
	}
	return out
}

// The functions of each codec without a level. The encoders give streams that
// are longer than their source, too.

func decodeADC(dst, src []byte) (int, error)   { return Decode(ADC, dst, src) }
func decodeLZFSE(dst, src []byte) (int, error) { return Decode(LZFSE, dst, src) }
func decodeXZ(dst, src []byte) (int, error)    { return Decode(LZMA, dst, src) }

func encodeXZ(dst, src []byte) ([]byte, error) { return xzEncode(dst, src, 0) }

func encodeADC(dst, src []byte) []byte {
	out, _ := adcEncode(dst, src, 0)
	return out
}

func encodeLZFSE(dst, src []byte) []byte {
	out, _ := lzfseEncode(dst, src, 0)
	return out
}
