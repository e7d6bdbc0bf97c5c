package command_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

func list(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>` + body + `</dict></plist>
`
}

func entity(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "<key>%s</key><string>%s</string>", pairs[i], pairs[i+1])
	}
	return "<dict>" + b.String() + "</dict>"
}

func entities(e ...string) string {
	return "<key>system-entities</key><array>" + strings.Join(e, "") + "</array>"
}

var (
	// macOS 26, hdiutil, APFS sparse image with a private mount point.
	apfs = []string{
		entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/disk6"),
		entity("content-hint", "Apple_APFS", "dev-entry", "/dev/disk6s1"),
		entity("content-hint", "41504653-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk9s1", "mount-point", "/private/tmp/bench.1/mnt", "volume-kind", "apfs"),
		entity("content-hint", "EF57347C-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk9"),
	}
	// macOS 26.6, diskutil image: no folder before the device, other hints.
	diskutil = []string{
		entity("content-hint", "GUID_partition_scheme", "dev-entry", "disk4"),
		entity("content-hint", "Apple_APFS", "dev-entry", "disk4s2"),
		entity("content-hint", "Apple_APFS_Container", "dev-entry", "disk5"),
		entity("content-hint", "Apple_APFS_Volume", "dev-entry", "disk5s1", "filesystem-type", "apfs", "mount-point", "/Volumes/Bench", "role", "Data"),
	}
	// macOS 26.6, APFS directly on the image.
	bare = []string{
		entity("content-hint", "", "dev-entry", "disk4"),
		entity("content-hint", "Apple_APFS_Container", "dev-entry", "disk5"),
		entity("content-hint", "Apple_APFS_Volume", "dev-entry", "disk5s1", "mount-point", "/Volumes/Bench"),
	}
	// Raw GUIDs, as info prints them.
	inInfo = []string{
		entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/disk6"),
		entity("content-hint", "7C3457EF-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk6s1"),
		entity("content-hint", "EF57347C-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk9"),
		entity("content-hint", "41504653-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk9s1", "mount-point", "/Volumes/demo"),
	}
	linux = []string{
		entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/loop3"),
		entity("content-hint", "Linux", "dev-entry", "/dev/loop3p1", "mount-point", "/mnt/x", "volume-kind", "ext4"),
	}
)

// Entities come in any order; the answers do not depend on it.
func TestAttach(t *testing.T) {
	for _, test := range []struct {
		name         string
		list         []string
		disk, volume string
		point, kind  string
		scheme       string
	}{
		{"hdiutil", apfs, "/dev/disk6", "/dev/disk9s1", "/private/tmp/bench.1/mnt", "apfs", "GUID_partition_scheme"},
		{"diskutil", diskutil, "/dev/disk4", "/dev/disk5s1", "/Volumes/Bench", "apfs", "GUID_partition_scheme"},
		{"bare", bare, "/dev/disk4", "/dev/disk5s1", "/Volumes/Bench", "", ""},
		{"guids", inInfo, "/dev/disk6", "/dev/disk9s1", "/Volumes/demo", "", "GUID_partition_scheme"},
		{"linux", linux, "/dev/loop3", "/dev/loop3p1", "/mnt/x", "ext4", "GUID_partition_scheme"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				shuffled := append([]string{}, test.list...)
				r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				text := "Licence: agree?\nhdiutil: WARNING: odd\n" + list(entities(shuffled...))
				a, err := command.ParseAttach([]byte(text))
				require.NoError(t, err)
				disk, err := a.Disk()
				require.NoError(t, err)
				assert.Equal(t, test.disk, disk)
				v := a.Candidate()
				assert.Equal(t, test.volume, v.Device)
				assert.Equal(t, test.kind, v.Kind)
				assert.Equal(t, test.scheme, a.Scheme())
				assert.Equal(t, []string{test.point}, a.MountPoints())
			}
		})
	}
}

// Not mounted: the volume is found by what it is.
func TestCandidate(t *testing.T) {
	for name, test := range map[string]struct {
		list []string
		want string
	}{
		"hfs": {[]string{entity("content-hint", "Apple_HFS", "dev-entry", "/dev/disk4s1", "volume-kind", "hfs"),
			entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/disk4")}, "/dev/disk4s1"},
		"efi first": {[]string{entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/disk4"),
			entity("content-hint", "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "dev-entry", "/dev/disk4s1"),
			entity("content-hint", "Microsoft Basic Data", "dev-entry", "/dev/disk4s2")}, "/dev/disk4s2"},
		"damaged apfs": {[]string{entity("content-hint", "GUID_partition_scheme", "dev-entry", "/dev/disk6"),
			entity("content-hint", "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "dev-entry", "/dev/disk6s1"),
			entity("content-hint", "7C3457EF-0000-11AA-AA11-00306543ECAC", "dev-entry", "/dev/disk6s2")}, "/dev/disk6s2"},
		"damaged apfs, diskutil": {[]string{entity("content-hint", "GUID_partition_scheme", "dev-entry", "disk6"),
			entity("content-hint", "Apple_APFS", "dev-entry", "disk6s1")}, "/dev/disk6s1"},
		"one device": {[]string{entity("content-hint", "", "dev-entry", "disk7")}, "/dev/disk7"},
	} {
		a, err := command.ParseAttach([]byte(list(entities(test.list...))))
		require.NoError(t, err, name)
		assert.Equal(t, test.want, a.Candidate().Device, name)
	}
}

func TestNoCandidateInAContainerWithoutVolumes(t *testing.T) {
	a, err := command.ParseAttach([]byte(list(entities(diskutil[:3]...))))
	require.NoError(t, err)
	assert.Zero(t, a.Candidate())
}

func TestAttachWithoutResult(t *testing.T) {
	whole := list(entities(apfs...))
	for name, text := range map[string]string{
		"nothing": "", "words": "/dev/disk6 \tGUID_partition_scheme\n", "no entities": list(""),
		"empty entities": list(entities()), "no device": list(entities(entity("content-hint", "x"))),
		"only synthesized": list(entities(apfs[3])), "option as device": list(entities(entity("dev-entry", "-force"))),
		"other folder": list(entities(entity("dev-entry", "/dev/../etc/passwd"))), "cut": whole[:len(whole)-40],
		"foreign": "hdiutil: attach fehlgeschlagen - Ressource ist belegt\n",
	} {
		_, err := command.ParseAttach([]byte(text))
		require.ErrorIs(t, err, command.ErrNoResult, name)
	}
}

func TestInfo(t *testing.T) {
	text := list("<key>framework</key><string>683.100.3</string><key>vendor</key><string>Apple</string><key>images</key><array><dict>" +
		"<key>image-path</key><string>/private/tmp/demo.dmg</string><key>image-encrypted</key><true/><key>image-type</key><string>read/write</string>" +
		entities(inInfo...) + "</dict><dict><key>image-path</key><string>/x.asif</string>" + entities(bare...) + "</dict></array>")
	i, err := command.ParseInfo([]byte(text))
	require.NoError(t, err)
	all := i.Images
	require.Len(t, all, 2)
	assert.Equal(t, "/private/tmp/demo.dmg", all[0].Image)
	disk, err := all[1].Disk()
	require.NoError(t, err)
	assert.Equal(t, "/dev/disk4", disk)
	assert.Equal(t, "Apple 683.100.3", i.Vendor+" "+i.Framework)
	for _, none := range []string{list("<key>framework</key><string>683</string>"), list("<key>images</key><array/>")} {
		i, err = command.ParseInfo([]byte(none))
		require.NoError(t, err)
		assert.Empty(t, i.Images)
	}
	_, err = command.ParseInfo(nil)
	require.ErrorIs(t, err, command.ErrNoResult)
}

func TestImageInfo(t *testing.T) {
	raw := list("<key>Format</key><string>UDRW</string><key>Format Description</key><string>raw read/write</string>" +
		"<key>Class Name</key><string>CRawDiskImage</string><key>Checksum Type</key><string>none</string>" +
		"<key>Backing Store Information</key><dict><key>Encryption</key><string>AES-256</string></dict>" +
		"<key>Properties</key><dict><key>Compressed</key><string>no</string><key>Encrypted</key><false/></dict>" +
		"<key>Size Information</key><dict><key>Total Bytes</key><integer>104857600</integer></dict>" +
		"<key>partitions</key><dict><key>partition-scheme</key><string>GUID</string><key>partitions</key><array><dict><key>partition-hint</key><string>Apple_APFS</string></dict></array></dict>")
	i, err := command.ParseImageInfo([]byte(raw))
	require.NoError(t, err)
	assert.Equal(t, command.Image{Format: "UDRW", Size: 100 << 20, Encrypted: true, Scheme: "GUID"}, i)
	for _, text := range []string{
		list("<key>Image Format</key><string>ASIF</string><key>Size Info</key><dict><key>Total Bytes</key><integer>512</integer></dict>"),
		list("<key>Image Format</key><string>ASIF</string><key>Size</key><integer>512</integer>"),
	} {
		i, err = command.ParseImageInfo([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, command.Image{Format: "ASIF", Size: 512}, i)
	}
	// diskutil image info of an encrypted image that was given no passphrase.
	locked := "<key>Encryption Info</key><dict><key>Encryption Type</key><string>AES-256</string></dict>"
	answer := "<key>Image Format</key><string>ASIF</string><key>Encryption Info</key><dict><key>Is Encrypted</key><%v/></dict>"
	for text, want := range map[string]command.Image{
		list("<key>Image Format</key><string>ASIF</string>" + locked): {Format: "ASIF", Encrypted: true},
		list(locked): {Encrypted: true},
		list("<key>Image Format</key><string>ASIF</string><key>Encryption Info</key><dict/>"): {Format: "ASIF"},
		list(fmt.Sprintf(answer, false)): {Format: "ASIF"},
		list(fmt.Sprintf(answer, true)):  {Format: "ASIF", Encrypted: true},
	} {
		i, err = command.ParseImageInfo([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, want, i)
	}
	huge := list("<key>Image Format</key><string>ASIF</string><key>Size</key><integer>18446744073709551615</integer>")
	i, err = command.ParseImageInfo([]byte(huge))
	require.NoError(t, err)
	assert.Zero(t, i.Size, "beyond int64")
	_, err = command.ParseImageInfo([]byte(list("")))
	require.ErrorIs(t, err, command.ErrNoResult)
}

func TestMessages(t *testing.T) {
	s := command.ParseMessages("PERCENT:-1.000000\nhdiutil: WARNING: 'hdiutil detach ...' is deprecated. Please use 'diskutil eject ...' instead.\n" +
		"hdiutil: WARNING: 'hdiutil detach ...' is deprecated. Please use 'diskutil eject ...' instead.\n[ 50% completed]\n.....\n" +
		"first\nhdiutil: couldn't unmount \"disk4\" - Resource\x1b busy\n资源暂时不可用 (35)\n")
	assert.Len(t, s.Deprecated, 1)
	assert.Equal(t, []string{"first", `hdiutil: couldn't unmount "disk4" - Resource  busy`, "资源暂时不可用 (35)"}, s.Lines)
	assert.Equal(t, `hdiutil: couldn't unmount "disk4" - Resource  busy; 资源暂时不可用 (35)`, s.Last())
	long := command.ParseMessages(strings.Repeat("é", 1000))
	assert.Less(t, len(long.Lines[0]), 410)
}

func TestNames(t *testing.T) {
	help := "  -type UDIF|SPARSEBUNDLE\n-fs: HFS+, Journaled HFS+, MS-DOS FAT32, ExFAT, ext4\n"
	assert.Equal(t, []string{"UDIF", "SPARSEBUNDLE", "HFS+", "ext4"}, command.FindNames(help, []string{"UDIF", "SPARSE", "SPARSEBUNDLE", "HFS+", "HFS", "APFS", "ext4"}))
}
