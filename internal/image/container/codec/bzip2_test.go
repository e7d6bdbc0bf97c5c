package codec

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
)

func roundTripBzip2(t require.TestingT, src []byte, level int) []byte {
	encode := func(dst, src []byte) ([]byte, error) { return bzip2Encode(dst, src, level) }
	return RoundTrip(t, encode, bunzip2, src)
}

func TestBzip2Vectors(t *testing.T) {
	for _, v := range Vectors() {
		if len(v.Data) > 20000 && v.Name != "mixed" {
			continue // the compressor takes its time
		}
		t.Run(v.Name, func(t *testing.T) {
			stream := roundTripBzip2(t, v.Data, 0)
			got, err := io.ReadAll(stdlib.NewReader(bytes.NewReader(stream)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(v.Data, got))
		})
	}
}

// TestBzip2Level has the digits of Apple's chunks (docs/formats.md).
func TestBzip2Level(t *testing.T) {
	for n, want := range map[int]string{0: "BZh1", 512: "BZh1", 100000: "BZh1", 100001: "BZh2", 417792: "BZh5", 900000: "BZh9", 1029120: "BZh9"} {
		stream, err := bzip2Encode(nil, make([]byte, n), 0)
		require.NoError(t, err)
		assert.Equal(t, want, string(stream[:4]), "%d bytes", n)
	}
	stream := roundTripBzip2(t, Text(417792), 0)
	assert.Equal(t, "BZh5", string(stream[:4]))
	assert.Equal(t, "BZh2", string(roundTripBzip2(t, Text(300000), 2)[:4]))
	_, err := bzip2Encode(nil, nil, 10)
	assert.Error(t, err)
}

func TestBzip2Rapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTripBzip2(t, Draw(t, 20000), rapid.IntRange(0, 3).Draw(t, "level"))
	})
}

// TestBzip2Runs has runs of every length around the four that the format cuts them at, and around 255 more.
func TestBzip2Runs(t *testing.T) {
	var src []byte
	for n := range 300 {
		src = append(append(src, bytes.Repeat([]byte{byte(n)}, n)...), '-')
	}
	roundTripBzip2(t, src, 0)
	roundTripBzip2(t, append(src, bytes.Repeat([]byte{7}, 4)...), 0)
	roundTripBzip2(t, append(src, bytes.Repeat([]byte{7}, 100000)...), 0)
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
	src := append(Mixed(300000), Text(200000)...)
	for _, n := range []int{0, 1, 4096, len(src)} {
		for _, level := range []string{"-1", "-9"} {
			Decodes(t, bunzip2, src[:n], run(src[:n], "-c", level))
		}
		assert.True(t, bytes.Equal(src[:n], run(roundTripBzip2(t, src[:n], 0), "-dc")), "%d bytes", n)
	}
}

func TestBzip2RefusesDamage(t *testing.T) {
	src := Text(3000)
	stream := roundTripBzip2(t, src, 0)
	get := func(dst int, stream []byte) error {
		n, err := Decode(Bzip2, make([]byte, dst), stream)
		assert.True(t, err != nil || n == dst)
		return err
	}
	assert.NoError(t, get(len(src), append(bytes.Clone(stream), "behind"...)))
	assert.Error(t, get(len(src)-1, stream))
	assert.Error(t, get(len(src)+1, stream))
	for i := 0; i < len(stream); i += 1 + i/100 {
		require.Error(t, get(len(src), stream[:i]), "cut to %d bytes", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range times(600) {
		bad := bytes.Clone(stream)
		i := r.IntN(len(bad))
		bad[i] ^= 1 << r.IntN(8)
		if i == 3 || i == len(bad)-1 {
			continue // the level, the padding
		}
		require.Error(t, get(len(src), bad), "byte %d", i)
	}
}
