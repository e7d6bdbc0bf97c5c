package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/hdiutil/command"
)

var secret = []byte("pass word")

// The exact arguments and the exact input, as the contract has them.
func TestCommands(t *testing.T) {
	for _, test := range []struct {
		build command.Command
		want  string
		input string
	}{
		{command.Create(command.CreateOptions{Image: "/p/x.dmg", Type: "UDIF", Size: 100 << 20, Filesystem: "APFS", Volume: "Bench"}),
			"hdiutil create -sectors 204800 -type UDIF -fs APFS -volname Bench -plist /p/x.dmg", ""},
		{command.Create(command.CreateOptions{Image: "/p/x.dmg", Type: "UDIF", Size: 512, Filesystem: "MS-DOS FAT32", Volume: "A B", NoSpotlight: true}),
			"hdiutil create -sectors 1 -type UDIF -fs 'MS-DOS FAT32' -volname 'A B' -nospotlight -plist /p/x.dmg", ""},
		{command.Create(command.CreateOptions{Image: "/p/x.sparseimage", Type: "SPARSE", Size: 100_000_000_000 / 512 * 512, Filesystem: "Journaled HFS+", Volume: "v"}),
			"hdiutil create -sectors 195312500 -type SPARSE -fs 'Journaled HFS+' -volname v -plist /p/x.sparseimage", ""},
		{command.Create(command.CreateOptions{Image: "/p/x.sparsebundle", Type: "SPARSEBUNDLE", Size: 1 << 30, Filesystem: "APFS", Volume: "v", Band: 8 << 20}),
			"hdiutil create -sectors 2097152 -type SPARSEBUNDLE -fs APFS -volname v -imagekey sparse-band-size=16384 -plist /p/x.sparsebundle", ""},
		{command.Create(command.CreateOptions{Image: "/p/x.dmg", Type: "UDIF", Size: 1 << 20}),
			"hdiutil create -sectors 2048 -type UDIF -layout NONE -plist /p/x.dmg", ""},
		{command.Create(command.CreateOptions{Image: "/p/x.dmg", Type: "UDIF", Size: 1 << 20, Filesystem: "APFS", Volume: "v", Encryption: "AES-128", Passphrase: secret, NoSpotlight: true}),
			"hdiutil create -sectors 2048 -type UDIF -fs APFS -volname v -encryption AES-128 -stdinpass -nospotlight -plist /p/x.dmg", "pass word"},
		{command.Attach(command.AttachOptions{Image: "/p/x.dmg", MountPoint: "/m/1"}),
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -mountpoint /m/1 /p/x.dmg", ""},
		{command.Attach(command.AttachOptions{Image: "/p/x.dmg", ReadOnly: true, Verify: true, Passphrase: secret}),
			"hdiutil attach -plist -nobrowse -owners on -verify -noautofsck -noautoopen -readonly -nomount -stdinpass /p/x.dmg", "pass word"},
		{command.Attach(command.AttachOptions{Image: "/p/x.dmg", ServedBy: "kernel"}),
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -kernel -nomount /p/x.dmg", ""},
		{command.Attach(command.AttachOptions{Image: "/p/x.dmg", ServedBy: "helper", MountPoint: "/m/1"}),
			"hdiutil attach -plist -nobrowse -owners on -noverify -noautofsck -noautoopen -nokernel -mountpoint /m/1 /p/x.dmg", ""},
		{command.Detach("/dev/disk6", false), "hdiutil detach /dev/disk6", ""},
		{command.Detach("/dev/disk6", true), "hdiutil detach /dev/disk6 -force", ""},
		{command.Info(), "hdiutil info -plist", ""},
		{command.ImageInfo("/p/x.dmg", secret), "hdiutil imageinfo -plist -stdinpass /p/x.dmg", "pass word"},
		{command.IsEncrypted("/p/x.dmg"), "hdiutil isencrypted -plist /p/x.dmg", ""},
		{command.Verify("/p/x.dmg", nil), "hdiutil verify /p/x.dmg", ""},
		{command.Compact("/p/x.sparsebundle", nil, false), "hdiutil compact /p/x.sparsebundle", ""},
		{command.Compact("/p/x.sparsebundle", secret, true),
			"hdiutil compact -batteryallowed -stdinpass /p/x.sparsebundle", "pass word"},
		{command.Resize(command.ResizeOptions{Image: "/p/x.dmg", Size: 1 << 20}), "hdiutil resize -sectors 2048 /p/x.dmg", ""},
		{command.Resize(command.ResizeOptions{Image: "/p/x.dmg", Size: 1 << 20, ImageOnly: true}), "hdiutil resize -sectors 2048 -imageonly /p/x.dmg", ""},
		{command.Limits("/p/x.dmg", nil), "hdiutil resize -limits /p/x.dmg", ""},
		{command.Trim("/m/1"), "hdiutil trim /m/1", ""},
		{command.Convert(command.ConvertOptions{Source: "/p/x.dmg", Target: "/p/y.dmg", Format: "ULFO"}), "hdiutil convert /p/x.dmg -format ULFO -o /p/y.dmg", ""},
		{command.Convert(command.ConvertOptions{Source: "/p/x.dmg", Target: "/p/y.dmg", Format: "UDZO", SourcePass: secret}),
			"hdiutil convert /p/x.dmg -format UDZO -o /p/y.dmg -stdinpass", "pass word"},
		{command.Convert(command.ConvertOptions{Source: "/p/x.dmg", Target: "/p/y.sparsebundle", Format: "UDSB", Band: 1 << 20, Encryption: "AES-256", SourcePass: secret, TargetPass: []byte("new")}),
			"hdiutil convert /p/x.dmg -format UDSB -o /p/y.sparsebundle -tgtimagekey sparse-band-size=2048 -encryption AES-256 -stdinpass", "pass word\x00new"},
		{command.Help("create"), "hdiutil create -help", ""},

		{command.CreateBlank(command.CreateOptions{Image: "/p/x.asif", Type: "ASIF", Size: 100_000_002_048 / 4096 * 4096, Filesystem: "APFS", Volume: "Bench"}),
			"diskutil image create blank --format ASIF --size 100000002048 --fs APFS --volumeName Bench /p/x.asif", ""},
		{command.CreateBlank(command.CreateOptions{Image: "/p/x.dmg", Type: "RAW", Size: 4096, Filesystem: "None", Volume: "no", Passphrase: secret}),
			"diskutil image create blank --encrypt --stdinpassphrase --format RAW --size 4096 --fs None /p/x.dmg", "pass word\n"},
		{command.CreateFrom(command.ConvertOptions{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "ULMO"}),
			"diskutil image create from --format ULMO /p/x.asif /p/y.dmg", ""},
		{command.CreateFrom(command.ConvertOptions{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", SourcePass: secret}),
			"diskutil image create from --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\n"},
		{command.CreateFrom(command.ConvertOptions{Source: "/p/x.asif", Target: "/p/y.dmg", Format: "RAW", SourcePass: secret, TargetPass: []byte("new")}),
			"diskutil image create from --encrypt --stdinpassphrase --format RAW /p/x.asif /p/y.dmg", "pass word\nnew\n"},
		{command.AttachDiskutil(command.AttachOptions{Image: "/p/x.asif", MountPoint: "/m/1"}),
			"diskutil image attach --plist --nobrowse --mountPoint /m/1 /p/x.asif", ""},
		{command.AttachDiskutil(command.AttachOptions{Image: "/p/x.asif", ReadOnly: true, Passphrase: secret}),
			"diskutil image attach --plist --stdinpassphrase --readOnly --noMount /p/x.asif", "pass word\n"},
		{command.ImageInfoDiskutil("/p/x.asif", secret), "diskutil image info --plist --stdinpassphrase /p/x.asif", "pass word\n"},
		{command.ResizeDiskutil(command.ResizeOptions{Image: "/p/x.asif", Size: 8192}), "diskutil image resize --size 8192 /p/x.asif", ""},
		{command.ResizeDiskutil(command.ResizeOptions{Image: "/p/x.asif", Size: 4096, ImageOnly: true}), "diskutil image resize --size 4096 --image-only /p/x.asif", ""},
		{command.Eject("/dev/disk6"), "diskutil eject /dev/disk6", ""},
		{command.VerifyVolume("/dev/disk9s1", false), "diskutil verifyVolume /dev/disk9s1", ""},
		{command.VerifyVolume("/dev/disk9s1", true), "diskutil repairVolume /dev/disk9s1", ""},
		{command.TrimLog(time.Unix(1774257072, 5e8)),
			"log show --style ndjson --start @1774257072 --predicate 'senderImagePath CONTAINS \"apfs\" AND (eventMessage CONTAINS \"spaceman_scan_free_blocks\" OR eventMessage CONTAINS \"spaceman_trim_free_blocks\" OR eventMessage CONTAINS \"set_backingstore\")'", ""},
		{command.HelpDiskutil("image create blank"), "diskutil image create blank --help", ""},
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

func TestRefused(t *testing.T) {
	ok := command.CreateOptions{Image: "/p/x.dmg", Type: "UDIF", Size: 512, Filesystem: "APFS"}
	with := func(f func(*command.CreateOptions)) command.Command { c := ok; f(&c); return command.Create(c) }
	for name, b := range map[string]command.Command{
		"relative":            with(func(c *command.CreateOptions) { c.Image = "-x" }),
		"no size":             with(func(c *command.CreateOptions) { c.Size = 0 }),
		"half a sector":       with(func(c *command.CreateOptions) { c.Size = 513 }),
		"bands of a file":     with(func(c *command.CreateOptions) { c.Band = 8 << 20 }),
		"small bands":         with(func(c *command.CreateOptions) { c.Type, c.Band = "SPARSEBUNDLE", 1<<20-512 }),
		"large bands":         with(func(c *command.CreateOptions) { c.Type, c.Band = "SPARSEBUNDLE", 8<<30+512 }),
		"encryption alone":    with(func(c *command.CreateOptions) { c.Encryption = "AES-256" }),
		"passphrase alone":    with(func(c *command.CreateOptions) { c.Passphrase = secret }),
		"empty passphrase":    with(func(c *command.CreateOptions) { c.Encryption, c.Passphrase = "AES-256", []byte{} }),
		"zero byte":           with(func(c *command.CreateOptions) { c.Encryption, c.Passphrase = "AES-256", []byte("a\x00b") }),
		"long passphrase":     with(func(c *command.CreateOptions) { c.Encryption, c.Passphrase = "AES-256", make([]byte, 2000) }),
		"line break":          command.AttachDiskutil(command.AttachOptions{Image: "/x", Passphrase: []byte("a\nb")}),
		"odd bytes":           command.CreateBlank(command.CreateOptions{Image: "/x", Size: 512}),
		"option as device":    command.Detach("-force", false),
		"path as device":      command.Eject("/dev/../Users"),
		"nothing as device":   command.VerifyVolume("/dev/", false),
		"relative mount":      command.Attach(command.AttachOptions{Image: "/x", MountPoint: "m"}),
		"unknown server":      command.Attach(command.AttachOptions{Image: "/x", ServedBy: "auto"}),
		"relative target":     command.Convert(command.ConvertOptions{Source: "/x", Target: "y"}),
		"bands of a raw copy": command.Convert(command.ConvertOptions{Source: "/x", Target: "/y", Format: "UDRW", Band: 8 << 20}),
		"shrunk to nothing":   command.Resize(command.ResizeOptions{Image: "/x"}),
	} {
		require.Error(t, b.Err, name)
		assert.NotContains(t, b.Err.Error(), "pass word")
	}
}
