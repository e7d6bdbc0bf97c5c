package enginetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/system/clock"
)

// Apple's hdiutil and diskutil with every kind that they make. It takes many minutes, so that it has to be asked for.
func TestApple(t *testing.T) {
	if os.Getenv("DMGBENCH_APPLE") == "" {
		t.Skip("long: set DMGBENCH_APPLE=1 to use Apple's tools")
	}
	version, err := exec.Command("/usr/bin/sw_vers", "-productVersion").Output()
	require.NoError(t, err)
	e, err := hdiutil.New(t.Context(), hdiutil.Apple("macOS "+strings.TrimSpace(string(version)), clock.NewReal()))
	require.NoError(t, err)
	const keeps = "Apple's tools decide when freed space goes back to the host"
	readOnly := []string{"UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UDTO", "UFBI"}
	for _, c := range []struct {
		backend, format, filesystem string
		size                        int64
		band                        int64
		convert                     []string
	}{
		{"hdiutil", "UDRW", "APFS", 128 << 20, 0, append(readOnly, "UDSP", "UDSB")},
		{"hdiutil", "UDSB", "APFS", 128 << 20, 4 << 20, []string{"UDRW"}},
		{"hdiutil", "UDSP", "APFS", 128 << 20, 0, []string{"UDRW"}},
		{"hdiutil", "UDRW", "Case-sensitive APFS", 64 << 20, 0, nil},
		{"hdiutil", "UDSB", "Journaled HFS+", 128 << 20, 0, nil},
		{"hdiutil", "UDRW", "exFAT", 128 << 20, 0, nil},
		{"hdiutil", "UDRW", "FAT32", 128 << 20, 0, nil},
		{"diskutil", "UDRW", "APFS", 128 << 20, 0, []string{"ASIF", "UDZO"}},
		{"diskutil", "UDSB", "APFS", 128 << 20, 0, nil},
		{"diskutil", "ASIF", "APFS", 256 << 20, 0, []string{"UDRW"}},
	} {
		t.Run(c.backend+"/"+c.format+"/"+c.filesystem, func(t *testing.T) {
			for _, encryption := range []string{"none", "AES-256"} {
				t.Run(encryption, func(t *testing.T) {
					runContract(t, func() engine.Engine { return open{e} }, t.TempDir(), Options{
						Spec: engine.Spec{Format: c.format, Encryption: encryption, Filesystems: []string{c.filesystem}, Size: c.size,
							BandSize: c.band, VolumeName: "BENCH", Backend: c.backend, Passphrase: []byte("of the contract of engines")},
						Convert: c.convert, Keeps: keeps, Remounts: 5,
					})
				})
			}
		})
	}
}

// open is an engine that stays open from test to test: asking the tools takes long.
type open struct{ engine.Engine }
