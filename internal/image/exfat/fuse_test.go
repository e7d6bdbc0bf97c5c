package exfat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fuseMount mounts an image file through a loop device and exfat-fuse and returns the directory and a function that
// unmounts it again; that also happens when the test ends.
func fuseMount(t *testing.T, path string, options string) (string, func()) {
	t.Helper()
	program := tool(t, "mount.exfat-fuse")
	losetup := tool(t, "losetup")
	if os.Geteuid() != 0 {
		t.Skip("needs root for a loop device")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		unavailable(t, "no /dev/fuse: %v", err)
	}
	out, err := exec.Command(losetup, "-f", "--show", path).CombinedOutput()
	if err != nil {
		unavailable(t, "no loop device: %s", out)
	}
	loop := strings.TrimSpace(string(out))
	dir := t.TempDir()
	mounted := false
	undo := func() {
		if mounted {
			mounted = false
			assert.NoError(t, exec.Command("umount", dir).Run())
		}
		if loop != "" {
			assert.NoError(t, exec.Command(losetup, "-d", loop).Run())
			loop = ""
		}
	}
	t.Cleanup(undo)
	out, err = exec.Command(program, "-o", options, loop, dir).CombinedOutput()
	if err != nil {
		unavailable(t, "mounting with exfat-fuse: %s", out)
	}
	mounted = true
	return dir, undo
}

func TestFuseReadsWhatWeWrote(t *testing.T) {
	tool(t, "mount.exfat-fuse")
	for _, name := range []string{"odd sizes", "512 cluster", "fragmented", "many files", "grown and cut", "full"} {
		t.Run(name, func(t *testing.T) {
			w := workloads[name]
			dev, v := newVolume(t, w.size, w.o)
			w.do(t, v)
			require.NoError(t, v.Unmount())
			dir, undo := fuseMount(t, image(t, dev), "ro")
			defer undo()
			v = mount(t, dev)
			var ours, theirs []string
			require.NoError(t, v.Walk("", func(p string, i Info) error {
				ours = append(ours, p)
				if i.Dir {
					return nil
				}
				b, err := os.ReadFile(filepath.Join(dir, p))
				require.NoError(t, err)
				requireSame(t, readFile(t, v, p), b, p)
				return nil
			}, nil))
			require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
				if rel, _ := filepath.Rel(dir, p); rel != "." {
					theirs = append(theirs, rel)
				}
				return err
			}))
			assert.ElementsMatch(t, ours, theirs)
		})
	}
}

func TestReadsWhatFuseWrote(t *testing.T) {
	mkfs := tool(t, "mkfs.exfat")
	path := filepath.Join(t.TempDir(), "theirs.img")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 32<<20))
	run1(t, mkfs, "-c", "4K", path)
	dir, undo := fuseMount(t, path, "rw")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	want := map[string][]byte{}
	for i, n := range []int{0, 1, 4096, 5000, 300_001} {
		for j := range 3 { // written in turns, so that they are fragmented
			name := fmt.Sprintf("a/b/ß %d %d", n, j)
			want[name] = noise(uint64(i*10+j), n)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), want[name], 0o644))
		}
	}
	var files []*os.File
	for j := range 3 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("frag%d", j)))
		require.NoError(t, err)
		files = append(files, f)
		want[fmt.Sprintf("frag%d", j)] = nil
	}
	for i := range 20 {
		for j, f := range files {
			p := noise(uint64(i*3+j), 9000)
			_, err := f.Write(p)
			require.NoError(t, err)
			name := fmt.Sprintf("frag%d", j)
			want[name] = append(want[name], p...)
		}
	}
	for _, f := range files {
		require.NoError(t, f.Close())
	}
	undo()
	dev := fromImage(t, path)
	v := mount(t, dev)
	assert.False(t, v.State().Dirty)
	for name, b := range want {
		requireSame(t, b, readFile(t, v, name), name)
	}
	for name := range want { // and go on with it
		require.NoError(t, v.Remove(name))
		if len(want[name]) > 4096 {
			writeFile(t, v, name+" again", want[name])
		}
	}
	require.NoError(t, v.Unmount())
	fsck(t, dev)
}
