package attach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// TestHostFullBelowADisk lets the disk of the host run full below a loop device: the writer's pages are still in
// memory then, and unmount(2) does not say that they came no further.
func TestHostFullBelowADisk(t *testing.T) {
	for _, verb := range []string{"detach", "unmount", "no mount"} {
		t.Run(verb, func(t *testing.T) {
			privileged(t)
			small := t.TempDir()
			require.NoError(t, unix.Mount("tmpfs", small, "tmpfs", 0, "size=12m"))
			t.Cleanup(func() { assert.NoError(t, unix.Unmount(small, 0)) })
			path := made(t, container.UDRW, "ext4", 64<<20)
			inside := filepath.Join(small, "image.dmg")
			run(t, "cp", "--sparse=always", path, inside)
			a, err := attachRequest(t.Context(), Request{Image: inside, NoMount: verb == "no mount"})
			require.NoError(t, err)
			require.Equal(t, ModeLoop, a.Mode)
			if verb == "no mount" {
				for _, node := range []string{a.Partition, a.Device} {
					f, err := os.OpenFile(node, os.O_WRONLY, 0)
					require.NoError(t, err)
					_, _ = f.WriteAt(noise(16<<20), 1<<20) // whoever does not ask is told nothing
					require.NoError(t, f.Close())
				}
				lost, err := Detach(t.Context(), a, false)
				require.NoError(t, err)
				assert.Contains(t, fmt.Sprint(lost), a.Partition)
				assert.Contains(t, fmt.Sprint(lost), a.Device+`"`)
				return
			}
			require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "large"), noise(16<<20), 0o644), "it goes to memory")
			if verb == "unmount" {
				require.ErrorContains(t, Unmount(t.Context(), a, false), "may not be in the image")
				assert.NoDirExists(t, a.MountPoint)
				detach(t, a)
				return
			}
			lost, err := Detach(t.Context(), a, false)
			require.NoError(t, err)
			assert.Contains(t, fmt.Sprint(lost), "may not be in the image")
			assert.NoDirExists(t, a.MountPoint)
		})
	}
}

// TestUnmountedByHand takes a served volume away as everybody can: its process flushes and ends, and nobody died.
func TestUnmountedByHand(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	data := noise(1<<20 + 7)
	for i := range 2 {
		require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "file"), data, 0o644))
		require.NoError(t, unix.Unmount(a.MountPoint, 0))
		require.NoError(t, waitUntil(t.Context(), helperTimeout, func() bool {
			_, lives := processStart(a.HelperPID)
			return !lives
		}))
		if i == 0 {
			detach(t, a)
		} else {
			list, err := List(t.Context())
			require.NoError(t, err)
			assert.Empty(t, list)
		}
		assert.NoDirExists(t, a.MountPoint)
		a = attach(t, path)
		requireFile(t, filepath.Join(a.MountPoint, "file"), data)
	}
	checked(t, path, a)
}

// TestCopyOfAnImage attaches an image and its copy, whose volumes have the same identifier.
func TestCopyOfAnImage(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "xfs", 320<<20)
	a, b := attach(t, path), attach(t, made(t, container.UDSB, "xfs", 320<<20)) // both are copies of one
	put(t, filepath.Join(a.MountPoint, "file"), []byte("first"))
	put(t, filepath.Join(b.MountPoint, "file"), []byte("second"))
	detach(t, a)
	a, err := attachRequest(t.Context(), Request{Image: path, ReadOnly: true})
	require.NoError(t, err)
	requireFile(t, filepath.Join(a.MountPoint, "file"), []byte("first"))
	requireFile(t, filepath.Join(b.MountPoint, "file"), []byte("second"))
	detach(t, a)
	detach(t, b)
}

// TestRuntimeBehindALink keeps state and volumes in a folder that is reached through a link: the kernel names the
// folder itself.
func TestRuntimeBehindALink(t *testing.T) {
	privileged(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(RuntimeDir(), link))
	t.Setenv("DMGBENCH_RUNTIME_DIR", link)
	path, a := served(t, 64<<20)
	put(t, filepath.Join(a.MountPoint, "file"), noise(5))
	checked(t, path, a)
	a, err := attachRequest(t.Context(), Request{Image: path, NoMount: true})
	require.NoError(t, err)
	detach(t, a)
}

// TestSpellings meets one file under two spellings of its name: it is one file to programs that would copy it onto
// itself.
func TestSpellings(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	at := func(name string) string { return filepath.Join(a.MountPoint, name) }
	data := noise(9000)
	put(t, at("file"), data)
	for _, name := range []string{"FILE", "File", "file"} {
		out, err := exec.Command("cp", at("file"), at(name)).CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(out), "are the same file")
		requireFile(t, at("file"), data)
	}
	require.NoError(t, os.Rename(at("file"), at("FILE")))
	put(t, at("other"), nil)
	list, err := os.ReadDir(a.MountPoint)
	require.NoError(t, err)
	require.Len(t, list, 2)
	numbers := map[uint64]string{}
	for _, e := range list {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(at(e.Name()), &st))
		numbers[st.Ino] = e.Name()
	}
	assert.Len(t, numbers, 2)
	assert.Equal(t, "FILE", list[0].Name())
	requireFile(t, at("File"), data)
	checked(t, path, a)
}

// TestAnotherBoot finds a record of a boot that is over: its folder to mount on goes too, or each boot would leave one
// more.
func TestAnotherBoot(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	detach(t, a)
	s, err := openStore(t.Context(), a.ID, 0)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(a.MountPoint, 0o755))
	r := &record{Attached: a, Boot: "another", Complete: true, MadeMountPoint: true, LastMountPoint: a.MountPoint}
	require.NoError(t, s.save(r))
	s.close()
	b := attach(t, path)
	assert.Equal(t, a.MountPoint, b.MountPoint)
	checked(t, path, b)
}

// TestLabelOfADevice looks at a volume again, as before it is mounted later: the label of exFAT does not lie in its
// first blocks.
func TestLabelOfADevice(t *testing.T) {
	privileged(t)
	a, err := attachRequest(t.Context(), Request{Image: made(t, container.UDRW, "ExFAT", 64<<20), NoMount: true})
	require.NoError(t, err)
	require.Equal(t, "Test", a.VolumeName)
	s, r, err := openMountable(t.Context(), a)
	require.NoError(t, err)
	assert.NoError(t, s.identifyPart(r))
	s.close()
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "Test", list[0].VolumeName)
	detach(t, a)
}

// TestNamesOfAnyBytes attaches an image, and mounts on a folder, whose names are no UTF-8.
func TestNamesOfAnyBytes(t *testing.T) {
	for _, fs := range []string{"exfat", "ext4"} {
		t.Run(fs, func(t *testing.T) {
			privileged(t)
			path := filepath.Join(t.TempDir(), "b\xff\xfe.dmg")
			require.NoError(t, os.Rename(made(t, container.UDRW, fs, 16<<20), path))
			point := filepath.Join(t.TempDir(), "m\xff")
			require.NoError(t, os.Mkdir(point, 0o755))
			a, err := attachRequest(t.Context(), Request{Image: path, MountPoint: point})
			require.NoError(t, err)
			assert.Equal(t, point, a.MountPoint)
			list, err := List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, path, list[0].Image)
			assert.Equal(t, point, list[0].MountPoint)
			detach(t, list[0])
			assert.DirExists(t, point)
		})
	}
}
