package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/internal/system/clock"
)

// TestMain makes the test's program the work-alike, too, and the process behind its images.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hdiutil":
			os.Exit(imagetool.Main(context.Background(), os.Args[2:], imagetool.System()))
		case imagetool.HelperVerb:
			os.Exit(imagetool.Main(context.Background(), os.Args[1:], imagetool.System()))
		}
	}
	os.Exit(m.Run())
}

// volume is a file system as a plan names it, and the image that it is tested in, in bytes.
type volume struct {
	name string
	size int64
}

var volumes = []volume{{"ext4", 64 << 20}, {"exFAT", 64 << 20}, {"XFS", 384 << 20}, {"btrfs", 192 << 20}, {"FAT32", 64 << 20}, {"HFS+", 64 << 20}}

// The work-alike with every file system that there is; the quick tests have a
// bundle behind FUSE with ext4, and a raw image with exFAT.
func TestWorkAlike(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it attaches images")
	}
	if !attach.Loops() {
		t.Skip("no loop device")
	}
	state := t.TempDir()
	t.Setenv("DMGBENCH_RUNTIME_DIR", state)
	remounts := map[bool]int{true: 20, false: 3}[long]
	for _, v := range volumes {
		for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF", "UDRW AES-256", "UDSB AES-256", "UDSP AES-128"} {
			format, cipher, encrypted := strings.Cut(format, " ")
			switch {
			case encrypted && v.name != "ext4" && v.name != "exFAT": // two are enough
				continue
			case format == "ASIF" && v.name != "exFAT": // diskutil makes it, with the file systems of its own
				continue
			}
			t.Run(strings.TrimSpace(v.name+"/"+format+" "+cipher), func(t *testing.T) {
				if quick := v.name+format == "ext4UDSB" || v.name+format == "exFATUDRW"; !long && (!quick || encrypted) {
					t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
				}
				keeps := ""
				if encrypted && format == "UDRW" {
					keeps = "an encrypted raw image has no block that was never written"
				}
				convert, size, only := []string{"UDRW", "UDSB", "UDSP", "UDZO", "ULFO"}, v.size, []string(nil)
				if !long { // to every format from one of the two is enough, and one of them is encrypted
					size = 32 << 20
					if convert = convert[1:]; format == "UDSB" {
						convert = []string{"UDRW"}
					} else {
						only = []string{"encryption"}
					}
				}
				dir := t.TempDir()
				runContract(t, func() engine.Engine { return workAlike(t) }, dir, Options{
					Spec: engine.Spec{Format: format, Encryption: cipher, Filesystems: []string{v.name}, Size: size, VolumeName: "BENCH",
						Passphrase: []byte("of the contract of engines")},
					Remounts: remounts,
					Keeps:    keeps,
					Convert:  convert,
					Long:     only,
					After:    func(t *testing.T) { nothingLeft(t, state, dir) },
				})
			})
		}
	}
}

func workAlike(t *testing.T) engine.Engine {
	self, err := os.Executable()
	require.NoError(t, err)
	e, err := hdiutil.New(t.Context(), hdiutil.WorkAlike(clock.NewReal(), self, "hdiutil"))
	require.NoError(t, err)
	return e
}

// nothingLeft says that no image is attached, no device has a file of the test, and nothing is mounted there.
func nothingLeft(t *testing.T, state, dir string) {
	t.Helper()
	list, err := attach.List(context.Background())
	require.NoError(t, err)
	assert.Empty(t, list)
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	require.NoError(t, err)
	for _, name := range backing {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // another test's, detached just now
		}
		assert.False(t, strings.HasPrefix(string(text), dir) || strings.HasPrefix(string(text), state), "%s: %s", name, text)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
	assert.NotContains(t, string(mounts), state)
}
