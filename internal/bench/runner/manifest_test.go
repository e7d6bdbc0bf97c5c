package runner

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

func manifestOf(t *testing.T, folder string) manifest {
	t.Helper()
	dir, err := hostio.OpenDir(filepath.Dir(folder))
	require.NoError(t, err)
	defer dir.Close()
	m, err := readManifest(t.Context(), dir, filepath.Base(folder))
	require.NoError(t, err)
	return m
}

// byCmp is what cmp(1) finds of a file of two states: how many bytes are in parts
// that have a byte which the old file has not.
func byCmp(t *testing.T, old, now string, part int64) (n int64) {
	t.Helper()
	info, err := os.Stat(now)
	require.NoError(t, err)
	before, err := os.Stat(old)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "cmp", "-l", old, now).Output()
	if err != nil {
		require.ErrorContains(t, err, "exit status 1")
	}
	parts := map[int64]bool{}
	for line := range strings.Lines(string(out)) {
		at, err := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		require.NoError(t, err)
		parts[(at-1)/part] = true
	}
	for at := before.Size(); at < info.Size(); at++ { // cmp ends with the shorter file
		parts[at/part] = true
	}
	for p := range parts {
		n += min((p+1)*part, info.Size()) - p*part
	}
	return n
}

// The changes are those that another program finds in the same two states.
func TestChangesAreThoseThatCmpFinds(t *testing.T) {
	if _, err := exec.LookPath("cmp"); err != nil {
		t.Skip("cmp is not installed")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		old, now := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image")
		require.NoError(t, os.Mkdir(old, 0o700))
		require.NoError(t, os.Mkdir(now, 0o700))
		for _, name := range []string{"0", "1f"} {
			data := make([]byte, 3<<20+random.IntN(5000))
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			require.NoError(t, os.WriteFile(filepath.Join(old, name), data, 0o600))
			for range round {
				data[random.IntN(len(data))] ^= 1
			}
			if round > 4 {
				data = append(data, make([]byte, random.IntN(100_000))...)
			}
			require.NoError(t, os.WriteFile(filepath.Join(now, name), data, 0o600))
		}
		got := manifestOf(t, old).compare(manifestOf(t, now))
		want := result.Changes{}
		for _, name := range []string{"0", "1f"} {
			a, b := filepath.Join(old, name), filepath.Join(now, name)
			want.Bytes4K += byCmp(t, a, b, 4<<10)
			want.Bytes64K += byCmp(t, a, b, 64<<10)
			want.Bytes1M += byCmp(t, a, b, 1<<20)
			want.BytesWhole += byCmp(t, a, b, 1<<40)
			if round > 0 {
				want.Changed++
			}
		}
		assert.Equal(t, want, *got, "round %d", round)
	}
}

func TestChangesOfFiles(t *testing.T) {
	block := bytes.Repeat([]byte{1}, 4096)
	other := bytes.Repeat([]byte{2}, 4096)
	many := func(n int, last []byte) []byte { return append(bytes.Repeat(block, n-1), last...) }
	for _, tt := range []struct {
		name     string
		old, now map[string][]byte
		want     result.Changes
	}{
		{"none", map[string][]byte{"a": many(3, block)}, map[string][]byte{"a": many(3, block)}, result.Changes{}},
		{"empty", map[string][]byte{"a": nil}, map[string][]byte{"a": nil}, result.Changes{}},
		{"a new file", map[string][]byte{}, map[string][]byte{"a": many(3, block)},
			result.Changes{Added: 1, Bytes4K: 12288, Bytes64K: 12288, Bytes1M: 12288, BytesWhole: 12288}},
		{"a new empty file", map[string][]byte{}, map[string][]byte{"a": nil}, result.Changes{Added: 1}},
		{"a removed file", map[string][]byte{"a": block, "b": block}, map[string][]byte{"b": block}, result.Changes{Removed: 1}},
		{"the last of 20 blocks", map[string][]byte{"a": many(20, block)}, map[string][]byte{"a": many(20, other)},
			result.Changes{Changed: 1, Bytes4K: 4096, Bytes64K: 16384, Bytes1M: 81920, BytesWhole: 81920}},
		{"a longer last block", map[string][]byte{"a": many(2, block[:10])}, map[string][]byte{"a": many(2, block[:20])},
			result.Changes{Changed: 1, Bytes4K: 20, Bytes64K: 4116, Bytes1M: 4116, BytesWhole: 4116}},
		{"cut at a block", map[string][]byte{"a": many(3, block)}, map[string][]byte{"a": many(2, block)},
			result.Changes{Changed: 1, BytesWhole: 8192}},
		{"another name", map[string][]byte{"a": block}, map[string][]byte{"b": block},
			result.Changes{Added: 1, Removed: 1, Bytes4K: 4096, Bytes64K: 4096, Bytes1M: 4096, BytesWhole: 4096}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			states := []manifest{}
			for _, state := range []map[string][]byte{tt.old, tt.now} {
				folder := t.TempDir()
				for name, data := range state {
					require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
				}
				states = append(states, manifestOf(t, folder))
			}
			assert.Equal(t, tt.want, *states[0].compare(states[1]))
		})
	}
}

func TestManifestOfOneFileAndOfNone(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "image"), make([]byte, manifestCall+1), 0o600))
	m := manifestOf(t, filepath.Join(folder, "image"))
	require.Contains(t, m, "", "the file itself")
	assert.EqualValues(t, manifestCall+1, m[""].size)
	assert.Len(t, m[""].hashes, manifestCall/manifestBlock+1)
	dir, err := hostio.OpenDir(folder)
	require.NoError(t, err)
	defer dir.Close()
	_, err = readManifest(t.Context(), dir, "missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = readManifest(ctx, dir, "image")
	require.ErrorIs(t, err, context.Canceled)
	_, err = hashFile(ctx, strings.NewReader("x"), make([]byte, 10))
	require.ErrorIs(t, err, context.Canceled)
}
