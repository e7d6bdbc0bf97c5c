package codec

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
)

var update = flag.Bool("update", false, "write testdata/reference anew; needs pyliblzfse")

// corpus are the inputs whose streams by Apple's reference encoder lie in testdata/reference. The command that made
// them, where pyliblzfse is installed for that Python:
//
//	DMGBENCH_LZFSE_PYTHON=python3 go test ./internal/image/container/codec -run Reference -update
func corpus() map[string][]byte {
	text, noise := Text(60000), Noise(4300, 1)
	return map[string][]byte{
		"text-7":          text[:7],
		"text-100":        text[:100],
		"text-4095":       text[:4095],
		"text-4096":       text[:4096],
		"text-60000":      text,
		"noise-4300":      noise,
		"zeros-1":         make([]byte, 1),
		"zeros-4095":      make([]byte, 4095),
		"zeros-1048576":   make([]byte, 1<<20),
		"records-20000":   Records(20000),
		"period-3000":     bytes.Repeat(noise[:300], 10),
		"period-262139":   append(append(bytes.Clone(noise), make([]byte, 262139-len(noise))...), noise...),
		"literals-4-4300": append(append(bytes.Clone(noise[:2000]), "aaaaaaaaaaaaaaaaaaaa"...), noise[2000:]...),
	}
}

func TestLZFSEReferenceCorpus(t *testing.T) {
	for name, src := range corpus() {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("testdata", "reference", name+".lzfse"))
			require.NoError(t, err)
			got := make([]byte, len(src))
			_, err = decodeLZFSE(got, stream)
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, got))
			if len(src) >= 4096 { // shorter inputs are LZVN, which only Apple's encoder writes
				assert.LessOrEqual(t, len(encodeLZFSE(nil, src)), len(stream)*105/100+64, "ours is long")
				assert.Equal(t, stream[:4], encodeLZFSE(nil, src)[:4], "another kind of block")
			}
		})
	}
}

// program decodes ours and encodes each input, both with the reference.
const program = `
import liblzfse, sys, glob
for name in sorted(glob.glob(sys.argv[1] + "/*.raw")):
    raw = open(name, "rb").read()
    if liblzfse.decompress(open(name[:-4] + ".ours", "rb").read()) != raw:
        sys.exit("decodes to other bytes: " + name)
    open(name[:-4] + ".reference", "wb").write(liblzfse.compress(raw))
`

// TestReferenceProgram exchanges streams with Apple's reference code, in both directions.
func TestLZFSEReferenceProgram(t *testing.T) {
	python := interoptest.Python(t, "liblzfse")
	inputs := corpus()
	for i, v := range append(Vectors(), Vector{Name: "noisy text", Data: Text(300001)}) {
		if len(v.Data) > 0 { // the module takes an empty result for an error
			inputs[fmt.Sprintf("vector-%d", i)] = v.Data
		}
	}
	folder := t.TempDir()
	for name, src := range inputs {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".raw"), src, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".ours"), encodeLZFSE(nil, src), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", program, folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, src := range inputs {
		stream, err := os.ReadFile(filepath.Join(folder, name+".reference"))
		require.NoError(t, err)
		got := make([]byte, len(src))
		_, err = decodeLZFSE(got, stream)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(src, got), name)
		if *update && !strings.HasPrefix(name, "vector-") {
			require.NoError(t, os.MkdirAll("testdata/reference", 0o755))
			require.NoError(t, os.WriteFile(filepath.Join("testdata", "reference", name+".lzfse"), stream, 0o644))
		}
	}
}

func FuzzLZFSEDecode(f *testing.F) {
	for _, src := range [][]byte{nil, []byte("abc"), Text(200), Text(5000), make([]byte, 5000), Noise(50, 1)} {
		f.Add(encodeLZFSE(nil, src), uint16(len(src)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := decodeLZFSE(dst[:size], stream)
		require.Zero(t, dst[size])
		require.True(t, err != nil || n == int(size))
		require.LessOrEqual(t, n, int(size))
	})
}

// FuzzLZVN holds the decoder of LZVN payloads to its bounds.
func FuzzLZVN(f *testing.F) {
	for _, name := range []string{"text-100", "text-4095", "zeros-4095", "period-3000"} {
		stream, err := os.ReadFile(filepath.Join("testdata", "reference", name+".lzfse"))
		require.NoError(f, err)
		f.Add(stream[12:len(stream)-4], uint16(binary.LittleEndian.Uint32(stream[4:])))
	}
	f.Fuzz(func(t *testing.T, payload []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		decodeLZVN(dst[:size], 0, payload)
		require.Zero(t, dst[size])
	})
}

func FuzzLZFSERoundTrip(f *testing.F) {
	f.Add([]byte("abcabcabcabcd"), uint16(3), uint16(100), uint16(0))
	f.Add(Text(3000), uint16(2000), uint16(3000), uint16(4))
	f.Fuzz(func(t *testing.T, src []byte, distance, more, twice uint16) {
		for d := int(distance); d > 0 && d <= len(src) && more > 0; more-- {
			src = append(src, src[len(src)-d])
		}
		for range twice % 5 {
			src = append(src, src[:min(len(src), 20000)]...)
		}
		lzfseRoundTrip(t, src)
	})
}
