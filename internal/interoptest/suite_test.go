package interoptest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/linuxhdiutil/imagetool"
)

// TestMain lets this binary be hdiutil, diskutil and the process behind an attached image.
func TestMain(m *testing.M) {
	asTool := func(args ...string) {
		env := imagetool.System()
		env.Iterations, _ = strconv.Atoi(os.Getenv(iterations))
		os.Exit(imagetool.Main(context.Background(), args, env))
	}
	if len(os.Args) > 1 && os.Args[1] == imagetool.HelperVerb {
		asTool(os.Args[1:]...)
	}
	switch filepath.Base(os.Args[0]) {
	case "hdiutil":
		asTool(os.Args[1:]...)
	case "diskutil":
		asTool(append([]string{"diskutil"}, os.Args[1:]...)...)
	case "detach-everything":
		list, err := attach.List(context.Background())
		for _, a := range list {
			_, e := attach.Detach(context.Background(), a, true)
			err = errors.Join(err, e)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// iterations names the variable with the iterations of the key derivation of new images; unset, it is the default of hdiutil.
const iterations = "DMGBENCH_INTEROP_ITERATIONS"

// tools puts our hdiutil and diskutil on the path of the programs that the test starts, with a
// state folder of their own. What is still attached at the end of the test is a failure, and is detached.
func tools(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	for _, name := range []string{"hdiutil", "diskutil", "detach-everything"} {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	t.Setenv("DMGBENCH_RUNTIME_DIR", state)
	if !interoptest.Required() { // TestChangedPassphrase has the default in any case
		t.Setenv(iterations, "1000")
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() {
		info, err := exec.Command(filepath.Join(dir, "hdiutil"), "info").CombinedOutput()
		if bytes.Contains(info, []byte("/dev/")) || err != nil {
			t.Errorf("still attached: %s %v", info, err)
		}
		out, err := exec.Command(filepath.Join(dir, "detach-everything")).CombinedOutput()
		if err != nil {
			t.Errorf("detaching: %v: %s", err, out)
		}
	})
}

// mounts skips where images cannot be attached and mounted.
func mounts(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("needs Linux and root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse")
	}
	if !attach.Loops() {
		t.Skip("no loop device")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting is not allowed here: %s", out)
	}
	require.NoError(t, exec.CommandContext(t.Context(), "umount", dir).Run())
}

func hdiutil(t *testing.T, args ...string) string {
	t.Helper()
	return interoptest.Run(t, "hdiutil", args...)
}

// sha of a file, which is a device as some tool gave it.
func sha(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	require.NoError(t, err)
	return fmt.Sprintf("%d bytes %x", n, h.Sum(nil))
}

func shaOf(p []byte) string { return fmt.Sprintf("%d bytes %x", len(p), sha256.Sum256(p)) }

// fill puts something into p: holes, noise, text, one block over and over, single letters, all in stretches
// whose ends fit nothing.
func fill(p []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	noise := rand.NewChaCha8([32]byte{byte(seed)})
	block := make([]byte, 4096)
	_, _ = noise.Read(block)
	words := []string{"disk ", "image ", "band ", "of ", "a ", "sparse\n", "bundle ", "sector ", "trailer "}
	for len(p) > 0 {
		part := p[:min(len(p), 512*(1+r.IntN(1500)), len(p))]
		p = p[len(part):]
		switch r.IntN(5) {
		case 0:
			clear(part)
		case 1:
			_, _ = noise.Read(part)
		case 2:
			for rest := part; len(rest) > 0; {
				rest = rest[copy(rest, words[r.IntN(len(words))]):]
			}
		case 3:
			for rest := part; len(rest) > 0; {
				rest = rest[copy(rest, block):]
			}
		default:
			for i := range part {
				part[i] = byte('a' + seed%26)
			}
		}
	}
}

// rawDevice writes a device of some size to a file and returns its sum.
func rawDevice(t *testing.T, path string, size int64) string {
	t.Helper()
	device := make([]byte, size)
	fill(device, uint64(size))
	device[0] = 1 // dissect.hypervisor reads no ASIF image without a table, which is one without data
	require.NoError(t, os.WriteFile(path, device, 0o600))
	return shaOf(device)
}

// sizes of devices in bytes: around chunks of 1 MiB; the large ones for `make test-interop` alone.
func sizes() []int64 {
	list := []int64{512, 1<<20 + 3*512}
	if interoptest.Required() {
		list = append(list, 5<<20+3*512, 4096, 1<<20, 1<<20+512, 2<<20-512, 48_000_000/512*512)
	}
	return list
}
