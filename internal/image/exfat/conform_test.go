package exfat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// oddNames are names that make a set long, fill UTF-16 with surrogates, or look alike.
var oddNames = []string{
	strings.Repeat("n", 255), strings.Repeat("é", 254) + "1", strings.Repeat("🎉", 127) + "x", "e\u0301 decomposed", "é composed",
	"ǅ ß ſ K", "ﬁ ligature", "\U0010FFFD last", "\uFFFD replacement", "日本語 テスト", "עברית", ".hidden", "...", "a.b.c", " leading", "con", "1", "12345678901234", "123456789012345",
	"1234567890123456", strings.Repeat("x", 30), strings.Repeat("y", 31),
}

// more workloads: every way in which plans delete, and what tests of one layer leave out.
func init() {
	for name, pick := range map[string]func(i, n int) bool{
		"delete all":         func(i, n int) bool { return true },
		"delete last":        func(i, n int) bool { return i >= n-n/4 },
		"delete every other": func(i, n int) bool { return i%2 == 0 },
		"delete largest":     func(i, n int) bool { return i%10 == 9 },
	} {
		workloads[name] = workload{32 << 20, FormatOptions{}, func(t *testing.T, v *Volume) {
			const n = 200
			for i := range n {
				if i%50 == 0 {
					require.NoError(t, v.Mkdir(fmt.Sprint("set ", i/50)))
				}
				writeFile(t, v, fmt.Sprintf("set %d/%d", i/50, i), noise(uint64(i), 1000*(1+i%10*i%10)))
			}
			for i := range n {
				if pick(i, n) {
					require.NoError(t, v.Remove(fmt.Sprintf("set %d/%d", i/50, i)))
				}
			}
			_, err := v.Trim(0)
			require.NoError(t, err)
			for i := range 30 {
				writeFile(t, v, fmt.Sprintf("set 0/again %d", i), noise(uint64(i), 20_000))
			}
		}}
	}
	workloads["names"] = workload{16 << 20, FormatOptions{ClusterSize: 512, Label: "日本語"}, func(t *testing.T, v *Volume) {
		dir := strings.Repeat("d", 255)
		require.NoError(t, v.Mkdir(dir))
		for i, name := range oddNames {
			writeFile(t, v, dir+"/"+name, noise(uint64(i), 100+i))
			writeFile(t, v, name, noise(uint64(i), 5000))
		}
		require.NoError(t, v.Rename(oddNames[0], strings.Repeat("N", 255)))
		require.NoError(t, v.Rename(oddNames[2], "short"))
		require.NoError(t, v.Remove(dir+"/"+oddNames[1]))
	}}
	workloads["root of many clusters"] = workload{16 << 20, FormatOptions{ClusterSize: 512}, func(t *testing.T, v *Volume) {
		for i := range 400 {
			writeFile(t, v, fmt.Sprintf("%0*d", 1+i%60, i), noise(uint64(i), i%3*400))
		}
		for i := 100; i < 300; i++ {
			require.NoError(t, v.Remove(fmt.Sprintf("%0*d", 1+i%60, i)))
		}
	}}
}

// TestFsckAfterResize lets exfatprogs judge a volume at every size that it is brought to, in use.
func TestFsckAfterResize(t *testing.T) {
	tool(t, "fsck.exfat")
	for _, cluster := range []int64{512, 4096, 32768} {
		dev := blockdevtest.NewMem(8 << 20)
		require.NoError(t, Format(dev, FormatOptions{ClusterSize: cluster, MaxSize: 64 << 20}))
		v := mount(t, dev)
		writeFile(t, v, "f", noise(1, 1_000_001))
		for i, size := range []int64{8<<20 + 4096, 30 << 20, 64 << 20, 20<<20 + 512, 12 << 20, 40 << 20} {
			if size > dev.Size() {
				dev.Resize(size)
			}
			require.NoError(t, v.Resize(size), "%d, clusters of %d", size, cluster)
			dev.Resize(size)
			writeFile(t, v, fmt.Sprint("at ", size), noise(uint64(size), 100_000))
			if i > 0 {
				require.NoError(t, v.Unmount())
				requireClean(t, dev)
				fsck(t, dev)
				v = mount(t, dev)
			}
		}
		requireSame(t, noise(1, 1_000_001), readFile(t, v, "f"), "f")
	}
}

// TestKilledWithoutUnmount: what a process leaves that dies after a flush is marked dirty, everywhere else sound, and
// read in full by others.
func TestKilledWithoutUnmount(t *testing.T) {
	program := tool(t, "fsck.exfat")
	dev, v := newVolume(t, 16<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("d"))
	for i := range 20 {
		writeFile(t, v, fmt.Sprintf("d/%d", i), noise(uint64(i), 10_000*i))
	}
	require.NoError(t, v.Remove("d/7"))
	require.NoError(t, v.Sync())
	after := dev.Clone()
	again := mount(t, after)
	assert.True(t, again.State().Dirty)
	r, err := Check(after, CheckOptions{})
	require.NoError(t, err)
	for _, k := range kinds(r) {
		assert.Contains(t, []Kind{DirtyFlag, BitmapLost}, k)
	}
	require.NoError(t, again.Unmount())
	assert.True(t, mount(t, after).State().Dirty, "a clean unmount does not make it checked")
	path := image(t, after)
	out, err := exec.Command(program, "-p", path).CombinedOutput()
	require.NoError(t, errExit(err, 1), string(out)) // 1: errors were corrected
	fixed := fromImage(t, path)
	r, err = Check(fixed, CheckOptions{Repair: true}) // exfatprogs 1.2.0 clears the flag and leaves lost clusters alone
	require.NoError(t, err)
	assert.NotContains(t, kinds(r), DirtyFlag)
	requireClean(t, fixed)
	fsck(t, fixed)
	v = mount(t, fixed)
	assert.False(t, v.State().Dirty)
	for i := range 20 {
		if i != 7 {
			requireSame(t, noise(uint64(i), 10_000*i), readFile(t, v, fmt.Sprintf("d/%d", i)), fmt.Sprint(i))
		}
	}
}

// errExit is nil for the exit status that is expected.
func errExit(err error, status int) error {
	if e, ok := err.(*exec.ExitError); ok && e.ExitCode() == status {
		return nil
	}
	return err
}

// TestFuseReadsOddNames compares names and bytes through Debian's exfat-fuse.
func TestFuseReadsOddNames(t *testing.T) {
	w := workloads["names"]
	dev, v := newVolume(t, w.size, w.o)
	w.do(t, v)
	require.NoError(t, v.Unmount())
	dir, undo := fuseMount(t, image(t, dev), "ro")
	defer undo()
	v = mount(t, dev)
	var ours, theirs []string
	infos, err := v.List("")
	require.NoError(t, err)
	for _, i := range infos {
		ours = append(ours, i.Name)
	}
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		theirs = append(theirs, e.Name())
		if !e.IsDir() {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err, "%q", e.Name())
			requireSame(t, readFile(t, v, e.Name()), b, e.Name())
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	assert.Equal(t, ours, theirs)
}
