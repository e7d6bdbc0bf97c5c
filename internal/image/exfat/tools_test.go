package exfat

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// unavailable skips the test, or fails it if DMGBENCH_REQUIRE_TOOLS=1 promises that everything is there.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("DMGBENCH_REQUIRE_TOOLS") == "1" {
		t.Fatalf("required: "+format, args...)
	}
	t.Skipf(format, args...)
}

func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	unavailable(t, "%s is not installed", name)
	return ""
}

func run1(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
	return string(out)
}

// image writes the device to a file, sparsely.
func image(t *testing.T, dev *blockdevtest.MemDevice) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "*.img")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(dev.Size()))
	require.NoError(t, dev.CopyTo(f))
	return f.Name()
}

// fromImage reads an image file into a device.
func fromImage(t *testing.T, path string) *blockdevtest.MemDevice {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	st, err := f.Stat()
	require.NoError(t, err)
	dev := blockdevtest.NewMem(st.Size())
	b, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for off := int64(0); off < st.Size(); off += int64(len(b)) {
		n, err := f.ReadAt(b, off)
		if err != io.EOF {
			require.NoError(t, err)
		}
		if string(b[:n]) != string(zeros[:n]) {
			_, err = dev.WriteAt(b[:n], off)
			require.NoError(t, err)
		}
	}
	return dev
}

// fsck lets exfatprogs judge the volume; it must have nothing to say but "clean".
func fsck(t *testing.T, dev *blockdevtest.MemDevice) {
	t.Helper()
	out, err := exec.Command(tool(t, "fsck.exfat"), "-n", "-v", image(t, dev)).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "clean")
	for _, bad := range []string{"ERROR", "WARN", "corrupt", "failed", "not "} {
		require.NotContains(t, string(out), bad)
	}
}

// workload fills a new volume.
type workload struct {
	size int64
	o    FormatOptions
	do   func(t *testing.T, v *Volume)
}

// workloads leave a volume in every kind of state; each ends with the volume unmounted.
var workloads = map[string]workload{
	"empty":       {64 << 20, FormatOptions{}, func(t *testing.T, v *Volume) {}},
	"tiny":        {1 << 20, FormatOptions{Label: "TINY"}, func(t *testing.T, v *Volume) { writeFile(t, v, "a", noise(1, 5)) }},
	"512 cluster": {4 << 20, FormatOptions{ClusterSize: 512, Label: "ÄÖÜ"}, oddSizes},
	"odd sizes":   {64 << 20, FormatOptions{}, oddSizes},
	"big cluster": {256 << 20, FormatOptions{ClusterSize: 1 << 20}, oddSizes},
	"max size":    {64 << 20, FormatOptions{MaxSize: 10 << 30}, oddSizes},
	"large":       {100_000_000_000, FormatOptions{Label: "100 GB"}, oddSizes},
	"fragmented": {4 << 20, FormatOptions{}, func(t *testing.T, v *Volume) {
		fragment(t, v)
		writeFile(t, v, "pieces", noise(2, int(v.Free())-100_000))
	}},
	"many files": {64 << 20, FormatOptions{}, func(t *testing.T, v *Volume) {
		require.NoError(t, v.Mkdir("d"))
		for i := range 1500 {
			f, err := v.Create(fmt.Sprintf("d/a rather long name that takes more than one entry %d", i), int64(i))
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		for i := 0; i < 1500; i += 3 {
			require.NoError(t, v.Remove(fmt.Sprintf("d/a rather long name that takes more than one entry %d", i)))
		}
		for i := range 300 {
			require.NoError(t, v.Mkdir(fmt.Sprintf("d/%d", i)))
		}
	}},
	"full": {2 << 20, FormatOptions{}, func(t *testing.T, v *Volume) { writeFile(t, v, "all", noise(3, int(v.Free()))) }},
	"grown and cut": {16 << 20, FormatOptions{}, func(t *testing.T, v *Volume) {
		a, err := v.Create("a", 0)
		require.NoError(t, err)
		b, err := v.Create("b", 100)
		require.NoError(t, err)
		for i := range 40 {
			for _, f := range []*File{a, b} {
				_, err := f.WriteAt(noise(uint64(i), 7001), int64(i)*7001)
				require.NoError(t, err)
			}
		}
		require.NoError(t, a.Truncate(100_000))
		require.NoError(t, b.Truncate(0))
		_, err = b.WriteAt([]byte("behind a hole"), 500_000)
		require.NoError(t, err)
		require.NoError(t, v.Rename("a", "a longer name than before, with more entries"))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}},
}

func oddSizes(t *testing.T, v *Volume) {
	require.NoError(t, v.Mkdir("dir"))
	require.NoError(t, v.Mkdir("dir/Ünïcödé 🎉 日本語"))
	for i, n := range []int{0, 1, 511, 512, 4095, 4096, 4097, 123_457, 1_000_000} {
		writeFile(t, v, fmt.Sprintf("dir/Ünïcödé 🎉 日本語/%d", n), noise(uint64(i), n))
	}
	f, err := v.Create("dir/never written", 100_000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, v.Remove("dir/Ünïcödé 🎉 日本語/4096"))
	require.NoError(t, v.Rename("dir/Ünïcödé 🎉 日本語/4097", "moved"))
}

func TestFsckFindsNothing(t *testing.T) {
	tool(t, "fsck.exfat")
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			dev, v := newVolume(t, w.size, w.o)
			w.do(t, v)
			require.NoError(t, v.Unmount())
			fsck(t, dev)
		})
	}
}

func TestDumpAgreesOnFigures(t *testing.T) {
	dump := tool(t, "dump.exfat")
	dev, v := newVolume(t, 64<<20, FormatOptions{Label: "Dumped", Serial: 0xCAFE})
	oddSizes(t, v)
	free := v.Free()
	require.NoError(t, v.Unmount())
	out := run1(t, dump, image(t, dev))
	for _, want := range []string{"Dumped", "0xcafe", fmt.Sprintf("Free Clusters: \t\t\t\t%d\n", free/4096)} {
		assert.Contains(t, out, want)
	}
}

func TestReadsVolumeOfMkfs(t *testing.T) {
	mkfs := tool(t, "mkfs.exfat")
	path := filepath.Join(t.TempDir(), "mkfs.img")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 64<<20))
	run1(t, mkfs, "-L", "Theirs", path)
	dev := fromImage(t, path)
	v := mount(t, dev)
	assert.Equal(t, "Theirs", v.Label())
	assert.Same(t, standardCase(), v.upcase)
	oddSizes(t, v)
	require.NoError(t, v.Unmount())
	fsck(t, dev)
}
