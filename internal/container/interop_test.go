package container

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/hostio"
)

// python is an interpreter that has a module, from DMGBENCH_INTEROP_PYTHON or
// the path.
func python(t *testing.T, module string) string {
	t.Helper()
	name := os.Getenv("DMGBENCH_INTEROP_PYTHON")
	if name == "" {
		name = "python3"
	}
	if out, err := exec.CommandContext(t.Context(), name, "-c", "import "+module).CombinedOutput(); err != nil {
		t.Skipf("%s has no module %s: %.100s", name, module, out)
	}
	return name
}

func fstool(t *testing.T) string {
	t.Helper()
	name := os.Getenv("DMGBENCH_INTEROP_FSTOOL")
	if name == "" {
		name = "fstool"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("fstool is not installed")
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// lived makes an image with a history: bands out of order, parts of bands,
// holes, a compaction, a resize. It returns what its device holds.
func lived(t *testing.T, d *hostio.Dir, name string, size int64) []byte {
	t.Helper()
	img, err := Open(d, name, OpenOptions{})
	require.NoError(t, err)
	want := make([]byte, size)
	write := func(off int64, n int, seed uint64) {
		p := pattern(n, seed)
		copy(want[off:], p)
		_, err := img.WriteAt(p, off)
		require.NoError(t, err)
	}
	discard := func(off, n int64) {
		clear(want[off : off+n])
		require.NoError(t, img.Discard(off, n))
	}
	write(size-4096, 4096, 1)
	write(size/2, int(size/4), 2)
	write(512, 3_000_000, 3)
	require.NoError(t, img.Flush())
	discard(1<<20, 2<<20)
	discard(size/2, size/8)
	_, err = img.Compact(nil)
	require.NoError(t, err)
	write(2<<20, 5000, 4)
	require.NoError(t, img.Resize(size+3*512))
	want = append(want, make([]byte, 3*512)...)
	write(size, 3*512, 5)
	require.NoError(t, img.Close())
	return want
}

// TestOthersReadOurSparseImages compares what other programs find in our
// images with what we wrote.
func TestOthersReadOurSparseImages(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		read func(t *testing.T, image, out string)
	}{
		"UDSP by libmodi": {Spec{Format: UDSP, Size: 40_000_000 / 512 * 512}, func(t *testing.T, image, out string) {
			run(t, python(t, "pymodi"), "../../scripts/interop/udsp.py", image, out)
		}},
		"UDSP by fstool": {Spec{Format: UDSP, Size: 40_000_000 / 512 * 512, BandSize: 3 << 20}, func(t *testing.T, image, out string) {
			run(t, fstool(t), "convert", image, out)
		}},
		"ASIF by dissect": {Spec{Format: ASIF, Size: 40_000_000 / 512 * 512}, func(t *testing.T, image, out string) {
			run(t, python(t, "dissect.hypervisor"), "../../scripts/interop/asif.py", image, out)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := tempDir(t)
			file, out := "i"+Extension(c.spec.Format), filepath.Join(d.Path(), "out.img")
			require.NoError(t, Create(d, file, c.spec))
			want := lived(t, d, file, c.spec.Size)
			c.read(t, filepath.Join(d.Path(), file), out)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Len(t, got, len(want))
			assert.True(t, bytes.Equal(want, got), "the bytes that were written")
		})
	}
}

// TestOthersReadOurChains is the same for a chain of three nodes, whose bands
// some programs refuse as too small.
func TestOthersReadOurChains(t *testing.T) {
	tool := fstool(t)
	d := tempDir(t)
	const size = 3000 * 4096
	require.NoError(t, createUDSP(d, "i.sparseimage", size, 4096, Encryption{}))
	want := lived(t, d, "i.sparseimage", size)
	img, err := Open(d, "i.sparseimage", OpenOptions{})
	require.NoError(t, err)
	want = pattern(len(want), 9)
	_, err = img.WriteAt(want, 0)
	require.NoError(t, err)
	require.NoError(t, img.Close())
	out := filepath.Join(d.Path(), "out.img")
	run(t, tool, "convert", filepath.Join(d.Path(), "i.sparseimage"), out)
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
}

// TestWeReadOthersSparseImages opens what fstool makes of a raw file.
func TestWeReadOthersSparseImages(t *testing.T) {
	tool := fstool(t)
	d := tempDir(t)
	want := pattern(5<<20, 1)
	clear(want[1<<20 : 3<<20])
	raw := filepath.Join(d.Path(), "raw.img")
	require.NoError(t, os.WriteFile(raw, want, 0o600))
	run(t, tool, "convert", raw, filepath.Join(d.Path(), "i.sparseimage"))
	found, err := Verify(d, "i.sparseimage")
	require.NoError(t, err)
	assert.Empty(t, found)
	img, err := Open(d, "i.sparseimage", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	got := make([]byte, img.Size())
	_, err = img.ReadAt(got, 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
}
