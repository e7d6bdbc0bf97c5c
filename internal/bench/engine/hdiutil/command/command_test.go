package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

var secret = []byte("pass word")

// The exact arguments and the exact input, as the contract has them.
func TestCommands(t *testing.T) {
	for _, test := range []struct {
		build command.Command
		want  string
		input string
	}{
		{command.New("hdiutil create", command.Args{Image: "/p/x.dmg", Format: "UDIF", Size: 100 << 20, Filesystem: "APFS", Volume: "Bench"}),
			"hdiutil create -sectors 204800 -type UDIF -fs APFS -volname Bench -plist /p/x.dmg", ""},
		{command.New("hdiutil create", command.Args{Image: "/p/x.dmg", Format: "UDIF", Size: 512, Filesystem: "MS-DOS FAT32", Volume: "A B", NoSpotlight: true}),
			"hdiutil create -sectors 1 -type UDIF -fs 'MS-DOS FAT32' -volname 'A B' -nospotlight -plist /p/x.dmg", ""},
		{command.New("hdiutil create", command.Args{Image: "/p/x.sparseimage", Format: "SPARSE", Size: 100_000_000_000 / 512 * 512, Filesystem: "Journaled HFS+", Volume: "v"}),
			"hdiutil create -sectors 195312500 -type SPARSE -fs 'Journaled HFS+' -volname v -plist /p/x.sparseimage", ""},
		{command.New("hdiutil create", command.Args{Image: "/p/x.sparsebundle", Format: "SPARSEBUNDLE", Size: 1 << 30, Filesystem: "APFS", Volume: "v", Band: 8 << 20}),
			"hdiutil create -sectors 2097152 -type SPARSEBUNDLE -fs APFS -volname v -imagekey sparse-band-size=16384 -plist /p/x.sparsebundle", ""},
		{command.New("hdiutil create", command.Args{Image: "/p/x.dmg", Format: "UDIF", Size: 1 << 20}),
			"hdiutil create -sectors 2048 -type UDIF -layout NONE -plist /p/x.dmg", ""},
		{command.New("hdiutil create", command.Args{Image: "/p/x.dmg", Format: "UDIF", Size: 1 << 20, Filesystem: "APFS", Volume: "v", Encryption: "AES-128", Secrets: [][]byte{secret}, NoSpotlight: true}),
			"hdiutil create -sectors 2048 -type UDIF -fs APFS -volname v -encryption AES-128 -stdinpass -nospotlight -plist /p/x.dmg", "pass word"},
		{command.New("hdiutil attach", command.Args{Image: "/p/x.dmg", MountPoint: "/m/1"}),
			"hdiutil attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen -mountpoint /m/1 /p/x.dmg", ""},
		{command.New("hdiutil attach", command.Args{Image: "/p/x.dmg", ReadOnly: true, Verify: true, Secrets: [][]byte{secret}}),
			"hdiutil attach -plist -nobrowse -owners off -verify -noautofsck -noautoopen -readonly -nomount -stdinpass /p/x.dmg", "pass word"},
		{command.New("hdiutil attach", command.Args{Image: "/p/x.dmg", Kernel: true}),
			"hdiutil attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen -kernel -nomount /p/x.dmg", ""},
		{command.New("hdiutil attach", command.Args{Image: "/p/x.dmg", Helper: true, MountPoint: "/m/1"}),
			"hdiutil attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen -nokernel -mountpoint /m/1 /p/x.dmg", ""},
		{command.New("hdiutil attach", command.Args{Image: "/p/x.dmg", MountPoint: "/m/1", Browse: true}),
			"hdiutil attach -plist -owners off -noverify -noautofsck -noautoopen -mountpoint /m/1 /p/x.dmg", ""},
		{command.New("hdiutil detach", command.Args{Device: "/dev/disk6"}), "hdiutil detach /dev/disk6", ""},
		{command.New("hdiutil detach", command.Args{Device: "/dev/disk6", Force: true}), "hdiutil detach /dev/disk6 -force", ""},
		{command.New("hdiutil info", command.Args{}), "hdiutil info -plist", ""},
		{command.New("hdiutil imageinfo", command.Args{Image: "/p/x.dmg", Secrets: [][]byte{secret}}), "hdiutil imageinfo -plist -stdinpass /p/x.dmg", "pass word"},
		{command.New("hdiutil verify", command.Args{Image: "/p/x.dmg", Secrets: [][]byte{nil}}), "hdiutil verify /p/x.dmg", ""},
		{command.New("hdiutil compact", command.Args{Image: "/p/x.sparsebundle"}), "hdiutil compact /p/x.sparsebundle", ""},
		{command.New("hdiutil compact", command.Args{Image: "/p/x.sparsebundle", Secrets: [][]byte{secret}, Battery: true}),
			"hdiutil compact -batteryallowed -stdinpass /p/x.sparsebundle", "pass word"},
		{command.New("hdiutil resize", command.Args{Image: "/p/x.dmg", Size: 1 << 20}), "hdiutil resize -sectors 2048 /p/x.dmg", ""},
		{command.New("hdiutil resize", command.Args{Image: "/p/x.dmg", Size: 1 << 20, ImageOnly: true}), "hdiutil resize -sectors 2048 -imageonly /p/x.dmg", ""},
		{command.New("hdiutil convert", command.Args{Image: "/p/x.dmg", Target: "/p/y.dmg", Format: "ULFO"}), "hdiutil convert /p/x.dmg -format ULFO -o /p/y.dmg", ""},
		{command.New("hdiutil convert", command.Args{Image: "/p/x.dmg", Target: "/p/y.dmg", Format: "UDZO", Secrets: [][]byte{secret}}),
			"hdiutil convert /p/x.dmg -format UDZO -o /p/y.dmg -stdinpass", "pass word"},
		{command.New("hdiutil convert", command.Args{Image: "/p/x.dmg", Target: "/p/y.sparsebundle", Format: "UDSB", Band: 1 << 20, Encryption: "AES-256", Secrets: [][]byte{secret, []byte("new")}}),
			"hdiutil convert /p/x.dmg -format UDSB -o /p/y.sparsebundle -tgtimagekey sparse-band-size=2048 -encryption AES-256 -stdinpass", "pass word\x00new"},
		{command.Help("hdiutil create"), "hdiutil create -help", ""},

		{command.New("diskutil image create blank", command.Args{Image: "/p/x.asif", Format: "ASIF", Size: 100_000_002_048 / 4096 * 4096, Filesystem: "APFS", Volume: "Bench"}),
			"diskutil image create blank --format ASIF --size 100000002048 --fs APFS --volumeName Bench /p/x.asif", ""},
		{command.New("diskutil image create blank", command.Args{Image: "/p/x.dmg", Format: "RAW", Size: 4096, Filesystem: "None", Encryption: "AES-256", Secrets: [][]byte{secret}}),
			"diskutil image create blank --encrypt --stdinpassphrase --format RAW --size 4096 --fs None /p/x.dmg", "pass word\n"},
		{command.New("diskutil image create from", command.Args{Image: "/p/x.asif", Target: "/p/y.dmg", Format: "ULMO"}),
			"diskutil image create from --format ULMO /p/x.asif /p/y.dmg", ""},
		{command.New("diskutil image create from", command.Args{Image: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", Secrets: [][]byte{secret}}),
			"diskutil image create from --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\n"},
		{command.New("diskutil image create from", command.Args{Image: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", Encryption: "AES-256", Secrets: [][]byte{secret, []byte("new")}}),
			"diskutil image create from --encrypt --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\nnew\n"},
		{command.New("diskutil image attach", command.Args{Image: "/p/x.asif", MountPoint: "/m/1"}),
			"diskutil image attach --plist --nobrowse --mountPoint /m/1 /p/x.asif", ""},
		{command.New("diskutil image attach", command.Args{Image: "/p/x.asif", ReadOnly: true, Secrets: [][]byte{secret}}),
			"diskutil image attach --plist --stdinpassphrase --readOnly --nobrowse --noMount /p/x.asif", "pass word\n"},
		{command.New("diskutil image attach", command.Args{Image: "/p/x.asif", MountPoint: "/m/1", Browse: true}),
			"diskutil image attach --plist --mountPoint /m/1 /p/x.asif", ""},
		{command.New("diskutil image info", command.Args{Image: "/p/x.asif", Secrets: [][]byte{secret}}), "diskutil image info --plist --stdinpassphrase /p/x.asif", "pass word\n"},
		{command.New("diskutil image resize", command.Args{Image: "/p/x.asif", Size: 8192}), "diskutil image resize --size 8192 /p/x.asif", ""},
		{command.New("diskutil image resize", command.Args{Image: "/p/x.asif", Size: 4096, ImageOnly: true}), "diskutil image resize --size 4096 --image-only /p/x.asif", ""},
		{command.New("diskutil eject", command.Args{Device: "/dev/disk6"}), "diskutil eject /dev/disk6", ""},
		{command.New("diskutil verifyVolume", command.Args{Device: "/dev/disk9s1"}), "diskutil verifyVolume /dev/disk9s1", ""},
		{command.New("diskutil repairVolume", command.Args{Device: "/dev/disk9s1"}), "diskutil repairVolume /dev/disk9s1", ""},
		{command.TrimLog(time.Unix(1774257072, 5e8)),
			"log show --style ndjson --start @1774257072 --predicate 'senderImagePath CONTAINS \"apfs\" AND (eventMessage CONTAINS \"spaceman_scan_free_blocks\" OR eventMessage CONTAINS \"spaceman_trim_free_blocks\" OR eventMessage CONTAINS \"set_backingstore\")'", ""},
		{command.Help("diskutil image create blank"), "diskutil image create blank --help", ""},
	} {
		c := test.build
		require.NoError(t, c.Err, test.want)
		assert.Equal(t, test.want, c.String())
		assert.Equal(t, test.input, string(c.Input), test.want)
		assert.Equal(t, test.input == "", c.Input == nil, test.want)
		assert.True(t, strings.HasPrefix(c.String(), string(c.Tool)+" "+c.Verb), test.want)
		assert.NotContains(t, c.String(), "pass word'", "a secret in the arguments")
		c.Wipe()
		assert.Empty(t, strings.Trim(string(c.Input), "\x00"))
	}
	assert.Equal(t, "pass word", string(secret), "wiping the input leaves the caller's passphrase")
}

// Commands of programs without verbs.
func TestCommandsWithoutVerb(t *testing.T) {
	assert.Equal(t, "ioreg -a -l -r -c AppleDiskImageDevice -w 0", command.Registry().String())
	assert.Equal(t, "fsck_apfs -q /dev/rdisk9s1", command.QuickCheck("/dev/disk9s1").String())
}

// A passphrase that the tool would cut or take for two is not passed, and not printed.
func TestRefused(t *testing.T) {
	for name, c := range map[string]command.Command{
		"empty":      command.New("hdiutil attach", command.Args{Image: "/x", Secrets: [][]byte{{}}}),
		"zero byte":  command.New("hdiutil attach", command.Args{Image: "/x", Secrets: [][]byte{[]byte("pass\x00word")}}),
		"long":       command.New("hdiutil attach", command.Args{Image: "/x", Secrets: [][]byte{make([]byte, 2000)}}),
		"line break": command.New("diskutil image attach", command.Args{Image: "/x", Secrets: [][]byte{[]byte("pass\nword")}}),
		"second one": command.New("hdiutil convert", command.Args{Image: "/x", Secrets: [][]byte{secret, {0}}}),
	} {
		require.Error(t, c.Err, name)
		assert.NotContains(t, c.Err.Error(), "word")
		assert.Nil(t, c.Input, name)
	}
}
