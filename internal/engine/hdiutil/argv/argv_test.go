package argv_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/hdiutil/argv"
)

type builder interface{ Command() (argv.Command, error) }

var secret = []byte("pass word")

// The exact arguments and the exact input, as the contract has them.
func TestCommands(t *testing.T) {
	for _, test := range []struct {
		build builder
		want  string
		input string
	}{
		{argv.Create{Image: "/p/x.dmg", Type: "UDIF", Size: 100 << 20, Filesystem: "APFS", Volume: "Bench"},
			"hdiutil create -sectors 204800 -type UDIF -fs APFS -volname Bench -plist /p/x.dmg", ""},
		{argv.Create{Image: "/p/x.dmg", Type: "UDIF", Size: 512, Filesystem: "MS-DOS FAT32", Volume: "A B", NoSpotlight: true},
			"hdiutil create -sectors 1 -type UDIF -fs 'MS-DOS FAT32' -volname 'A B' -nospotlight -plist /p/x.dmg", ""},
		{argv.Create{Image: "/p/x.sparseimage", Type: "SPARSE", Size: 100_000_000_000 / 512 * 512, Filesystem: "Journaled HFS+", Volume: "v"},
			"hdiutil create -sectors 195312500 -type SPARSE -fs 'Journaled HFS+' -volname v -plist /p/x.sparseimage", ""},
		{argv.Create{Image: "/p/x.sparsebundle", Type: "SPARSEBUNDLE", Size: 1 << 30, Filesystem: "APFS", Volume: "v", Band: 8 << 20},
			"hdiutil create -sectors 2097152 -type SPARSEBUNDLE -fs APFS -volname v -imagekey sparse-band-size=16384 -plist /p/x.sparsebundle", ""},
		{argv.Create{Image: "/p/x.dmg", Type: "UDIF", Size: 1 << 20},
			"hdiutil create -sectors 2048 -type UDIF -layout NONE -plist /p/x.dmg", ""},
		{argv.Create{Image: "/p/x.dmg", Type: "UDIF", Size: 1 << 20, Filesystem: "APFS", Volume: "v", Encryption: "AES-128", Passphrase: secret, NoSpotlight: true},
			"hdiutil create -sectors 2048 -type UDIF -fs APFS -volname v -encryption AES-128 -stdinpass -nospotlight -plist /p/x.dmg", "pass word"},
		{argv.Attach{Image: "/p/x.dmg", MountPoint: "/m/1"},
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -mountpoint /m/1 /p/x.dmg", ""},
		{argv.Attach{Image: "/p/x.dmg", ReadOnly: true, Verify: true, Passphrase: secret},
			"hdiutil attach -plist -nobrowse -owners on -verify -noautofsck -noautoopen -readonly -nomount -stdinpass /p/x.dmg", "pass word"},
		{argv.Attach{Image: "/p/x.dmg", ServedBy: "kernel"},
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -kernel -nomount /p/x.dmg", ""},
		{argv.Attach{Image: "/p/x.dmg", ServedBy: "helper", MountPoint: "/m/1"},
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -nokernel -mountpoint /m/1 /p/x.dmg", ""},
		{argv.Detach{Device: "/dev/disk6"}, "hdiutil detach /dev/disk6", ""},
		{argv.Detach{Device: "/dev/disk6", Force: true}, "hdiutil detach /dev/disk6 -force", ""},
		{argv.Info{}, "hdiutil info -plist", ""},
		{argv.ImageInfo{Image: "/p/x.dmg", Passphrase: secret}, "hdiutil imageinfo -plist -stdinpass /p/x.dmg", "pass word"},
		{argv.IsEncrypted{Image: "/p/x.dmg"}, "hdiutil isencrypted -plist /p/x.dmg", ""},
		{argv.Verify{Image: "/p/x.dmg"}, "hdiutil verify /p/x.dmg", ""},
		{argv.Checksum{Image: "/p/x.dmg", Type: "SHA256"}, "hdiutil checksum -type SHA256 /p/x.dmg", ""},
		{argv.Compact{Image: "/p/x.sparsebundle"}, "hdiutil compact /p/x.sparsebundle", ""},
		{argv.Compact{Image: "/p/x.sparsebundle", AllowBattery: true, Passphrase: secret},
			"hdiutil compact -batteryallowed -stdinpass /p/x.sparsebundle", "pass word"},
		{argv.Resize{Image: "/p/x.dmg", Size: 1 << 20}, "hdiutil resize -sectors 2048 /p/x.dmg", ""},
		{argv.Resize{Image: "/p/x.dmg", Size: 1 << 20, ImageOnly: true}, "hdiutil resize -sectors 2048 -imageonly /p/x.dmg", ""},
		{argv.Limits{Image: "/p/x.dmg"}, "hdiutil resize -limits /p/x.dmg", ""},
		{argv.Trim{MountPoint: "/m/1"}, "hdiutil trim /m/1", ""},
		{argv.Convert{Source: "/p/x.dmg", Target: "/p/y.dmg", Format: "ULFO"}, "hdiutil convert /p/x.dmg -format ULFO -o /p/y.dmg", ""},
		{argv.Convert{Source: "/p/x.dmg", Target: "/p/y.dmg", Format: "UDZO", SourcePass: secret},
			"hdiutil convert /p/x.dmg -format UDZO -o /p/y.dmg -stdinpass", "pass word"},
		{argv.Convert{Source: "/p/x.dmg", Target: "/p/y.sparsebundle", Format: "UDSB", Band: 1 << 20, Encryption: "AES-256", SourcePass: secret, TargetPass: []byte("new")},
			"hdiutil convert /p/x.dmg -format UDSB -o /p/y.sparsebundle -tgtimagekey sparse-band-size=2048 -encryption AES-256 -stdinpass", "pass word\x00new"},
		{argv.Help{Verb: "create"}, "hdiutil create -help", ""},

		{argv.CreateBlank{Image: "/p/x.asif", Format: "ASIF", Size: 100_000_002_048 / 4096 * 4096, Filesystem: "APFS", Volume: "Bench"},
			"diskutil image create blank --format ASIF --size 100000002048 --fs APFS --volumeName Bench /p/x.asif", ""},
		{argv.CreateBlank{Image: "/p/x.dmg", Format: "RAW", Size: 4096, Filesystem: "None", Volume: "no", Passphrase: secret},
			"diskutil image create blank --encrypt --stdinpassphrase --format RAW --size 4096 --fs None /p/x.dmg", "pass word\n"},
		{argv.CreateFrom{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "ULMO"},
			"diskutil image create from --format ULMO /p/x.asif /p/y.dmg", ""},
		{argv.CreateFrom{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", SourcePass: secret},
			"diskutil image create from --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\n"},
		{argv.CreateFrom{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", SourcePass: secret, TargetPass: []byte("new")},
			"diskutil image create from --encrypt --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\nnew\n"},
		{argv.AttachImage{Image: "/p/x.asif", MountPoint: "/m/1"},
			"diskutil image attach --plist --nobrowse --mountPoint /m/1 /p/x.asif", ""},
		{argv.AttachImage{Image: "/p/x.asif", ReadOnly: true, Passphrase: secret},
			"diskutil image attach --plist --stdinpassphrase --readOnly --noMount /p/x.asif", "pass word\n"},
		{argv.ImageInfoDU{Image: "/p/x.asif", Passphrase: secret}, "diskutil image info --plist --stdinpassphrase /p/x.asif", "pass word\n"},
		{argv.ResizeImage{Image: "/p/x.asif", Size: 8192}, "diskutil image resize --size 8192 /p/x.asif", ""},
		{argv.ResizeImage{Image: "/p/x.asif"}, "diskutil image resize --plist /p/x.asif", ""},
		{argv.ResizeImage{Image: "/p/x.asif", Size: 4096, ImageOnly: true}, "diskutil image resize --size 4096 --image-only /p/x.asif", ""},
		{argv.Eject{Device: "/dev/disk6"}, "diskutil eject /dev/disk6", ""},
		{argv.VerifyVolume{Device: "/dev/disk9s1"}, "diskutil verifyVolume /dev/disk9s1", ""},
		{argv.VerifyVolume{Device: "/dev/disk9s1", Repair: true}, "diskutil repairVolume /dev/disk9s1", ""},
		{argv.TrimLog{Since: time.Unix(1774257072, 5e8)},
			"log show --style ndjson --start @1774257072 --predicate 'senderImagePath CONTAINS \"apfs\" AND (eventMessage CONTAINS \"spaceman_scan_free_blocks\" OR eventMessage CONTAINS \"spaceman_trim_free_blocks\" OR eventMessage CONTAINS \"set_backingstore\")'", ""},
		{argv.HelpDU{Verb: "image create blank"}, "diskutil image create blank --help", ""},
	} {
		c, err := test.build.Command()
		require.NoError(t, err, test.want)
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

func TestRefused(t *testing.T) {
	ok := argv.Create{Image: "/p/x.dmg", Type: "UDIF", Size: 512, Filesystem: "APFS"}
	with := func(f func(*argv.Create)) argv.Create { c := ok; f(&c); return c }
	for name, b := range map[string]builder{
		"relative":            with(func(c *argv.Create) { c.Image = "-x" }),
		"no size":             with(func(c *argv.Create) { c.Size = 0 }),
		"half a sector":       with(func(c *argv.Create) { c.Size = 513 }),
		"bands of a file":     with(func(c *argv.Create) { c.Band = 8 << 20 }),
		"small bands":         with(func(c *argv.Create) { c.Type, c.Band = "SPARSEBUNDLE", 1<<20-512 }),
		"large bands":         with(func(c *argv.Create) { c.Type, c.Band = "SPARSEBUNDLE", 8<<30+512 }),
		"encryption alone":    with(func(c *argv.Create) { c.Encryption = "AES-256" }),
		"passphrase alone":    with(func(c *argv.Create) { c.Passphrase = secret }),
		"empty passphrase":    with(func(c *argv.Create) { c.Encryption, c.Passphrase = "AES-256", []byte{} }),
		"zero byte":           with(func(c *argv.Create) { c.Encryption, c.Passphrase = "AES-256", []byte("a\x00b") }),
		"long passphrase":     with(func(c *argv.Create) { c.Encryption, c.Passphrase = "AES-256", make([]byte, 2000) }),
		"line break":          argv.AttachImage{Image: "/x", Passphrase: []byte("a\nb")},
		"odd bytes":           argv.CreateBlank{Image: "/x", Size: 512},
		"option as device":    argv.Detach{Device: "-force"},
		"path as device":      argv.Eject{Device: "/dev/../Users"},
		"nothing as device":   argv.VerifyVolume{Device: "/dev/"},
		"relative mount":      argv.Attach{Image: "/x", MountPoint: "m"},
		"unknown server":      argv.Attach{Image: "/x", ServedBy: "auto"},
		"relative target":     argv.Convert{Source: "/x", Target: "y"},
		"bands of a raw copy": argv.Convert{Source: "/x", Target: "/y", Format: "UDRW", Band: 8 << 20},
		"shrunk to nothing":   argv.Resize{Image: "/x"},
		"no verb":             argv.HelpDU{},
	} {
		_, err := b.Command()
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "pass word")
	}
}
