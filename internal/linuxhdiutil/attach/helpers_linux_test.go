package attach

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// TestMain is also the program that the tests start again to serve an image.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == HelperVerb && strings.HasSuffix(os.Args[2], killedSuffix) {
		fmt.Fprintln(os.Stderr, "memory is short")
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	if len(os.Args) > 1 && os.Args[1] == HelperVerb {
		os.Exit(HelperMain(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == onceVerb {
		_, err := attachRequest(context.Background(), Request{Image: os.Args[2], Temporary: len(os.Args) > 3, NoMount: len(os.Args) > 3})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == userVerb {
		if err := liveAsUser(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("user: fine")
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "attach-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	formatted = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// formatted is the folder of the images that made has formatted, each once.
var formatted string

// killedSuffix ends the names of images whose serving process is killed as soon as it has started.
const killedSuffix = ".killed.sparsebundle"

// onceVerb makes the test program attach one image and end, as the command line does.
const onceVerb = "attach-once"

// privileged skips tests that take root, loop devices and FUSE, and gives the others a runtime folder of their own and
// the promise that nothing is left behind.
func privileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if !Loops() {
		t.Skip("no loop device")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse")
	}
	ownRuntime(t)
}

func ownRuntime(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DMGBENCH_RUNTIME_DIR", dir)
	t.Cleanup(func() {
		list, err := List(context.Background())
		assert.NoError(t, err)
		for _, a := range list {
			if !a.Dead {
				_, err := Detach(context.Background(), a, true)
				assert.NoError(t, err)
			}
		}
		left, err := mountPointsOf(func(m host.Mount) bool { return strings.HasPrefix(m.Point, dir) })
		require.NoError(t, err)
		assert.Empty(t, left, "still mounted")
		files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
		for _, f := range files {
			b, _ := os.ReadFile(f)
			assert.NotContains(t, string(b), filepath.Dir(dir), "a loop device is left")
		}
		assert.Empty(t, holders(dir), "a process is left")
	})
}

// tool skips the test when the program is missing; DMGBENCH_REQUIRE_TOOLS=1 makes that a failure.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := findTool(name)
	if path == "" {
		if os.Getenv("DMGBENCH_REQUIRE_TOOLS") == "1" {
			t.Fatalf("%s is required", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// newImage makes a container with a partition table for the file system, and the file system itself if that takes no
// device.
func newImage(t *testing.T, format, fs string, size int64) string {
	t.Helper()
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	name := "image" + container.Extension(format)
	spec := container.Spec{Format: format, Size: size}
	if format == container.UDSB {
		spec.BandSize = 1 << 20
	}
	require.NoError(t, container.Create(dir, name, spec))
	image, err := container.Open(dir, name, container.OpenOptions{})
	require.NoError(t, err)
	kind, ok := FilesystemOf(fs)
	require.True(t, ok)
	table, err := gpt.Single(size, gpt.GUID{1}, kind.Type, gpt.GUID{2}, "disk image", 0)
	require.NoError(t, err)
	require.NoError(t, gpt.Write(image, table))
	if kind.Kernel == "exfat" {
		part, err := blockdev.Section(image, table.Partitions[0].Offset(), table.Partitions[0].Size())
		require.NoError(t, err)
		require.NoError(t, exfat.Format(part, exfat.FormatOptions{Label: "Test"}))
	}
	require.NoError(t, image.Close())
	return filepath.Join(dir.Path(), name)
}

// made is newImage with the file system on it. What takes a device to format is a copy of an image that is formatted
// once.
func made(t *testing.T, format, fs string, size int64) string {
	t.Helper()
	kind, _ := FilesystemOf(fs)
	if kind.Tool == "" {
		return newImage(t, format, fs, size)
	}
	tool(t, kind.Tool)
	original := filepath.Join(formatted, fmt.Sprintf("%s %s %d", format, fs, size))
	if _, err := os.Stat(original); err != nil {
		path := newImage(t, format, fs, size)
		a, err := attachRequest(t.Context(), Request{Image: path, NoMount: true})
		require.NoError(t, err)
		require.NoError(t, Make(t.Context(), a.Partition, fs, "Test"))
		detach(t, a)
		run(t, "cp", "-a", "--sparse=always", path, original) // a raw image has its zeros written
		require.NoError(t, os.RemoveAll(path))
	}
	path := filepath.Join(t.TempDir(), "image"+container.Extension(format))
	run(t, "cp", "-a", original, path)
	return path
}

func attach(t *testing.T, path string) Attached {
	t.Helper()
	a, err := attachRequest(t.Context(), Request{Image: path})
	require.NoError(t, err)
	require.NotEmpty(t, a.MountPoint)
	return a
}

func detach(t *testing.T, a Attached) {
	t.Helper()
	lost, err := Detach(t.Context(), a, false)
	if err != nil && strings.Contains(err.Error(), "held by losetup") {
		// Tests of other packages run it, and it opens each loop device for a moment.
		require.Eventually(t, func() bool {
			lost, err = Detach(t.Context(), a, false)
			return err == nil
		}, 5*time.Second, 20*time.Millisecond)
	}
	require.NoError(t, err)
	require.Empty(t, lost)
}

func noise(n int) []byte {
	b, seed := make([]byte, n), [32]byte{}
	_, _ = crand.Read(seed[:]) // never fails
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

// put writes a file and flushes it.
func put(t *testing.T, path string, data []byte) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func requireFile(t *testing.T, path string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got), "content of %s", path)
}

// bands counts the band files of a bundle.
func bands(t *testing.T, path string) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(path, "bands"))
	require.NoError(t, err)
	return len(list)
}

// inspect opens the container as the callers of Attach do, and inspects it.
func inspect(req Request) (*ImageInfo, error) {
	dir, err := hostio.OpenDir(filepath.Dir(req.Image))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	image, err := container.Open(dir, filepath.Base(req.Image), container.OpenOptions{ReadOnly: true, Keys: req.Keys})
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return Inspect(image)
}

// attachRequest is Attach, of an image that it inspects.
func attachRequest(ctx context.Context, req Request) (Attached, error) {
	info, err := inspect(req)
	if err != nil {
		return Attached{}, err
	}
	req.Info = info
	return Attach(ctx, req)
}
