package imagetool

import (
	"bytes"
	"dmgbench/internal/attach"
	"slices"
	"strings"
	"testing"

	"dmgbench/internal/container"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// builder is a command of the driver.
type builder interface{ Command() (argv.Command, error) }

// drive executes what the driver of the hdiutil engine would send.
func (m *machine) drive(b builder) (int, []byte) {
	m.t.Helper()
	c, err := b.Command()
	require.NoError(m.t, err)
	args := c.Args
	if c.Tool == argv.Diskutil {
		args = append([]string{"diskutil"}, args...)
	}
	var out, errs bytes.Buffer
	status := Main(m.t.Context(), args, Env{Stdin: bytes.NewReader(c.Input), Stdout: &out, Stderr: &errs, Attacher: m.at.attacher(), UID: m.uid, Version: "1.2", iterations: 1000})
	m.out, m.err = out.String(), errs.String()
	return status, out.Bytes()
}

// TestTheDriverIsUnderstood sends every command that the engine builds through the
// grammar, and what comes back through the engine's parsers.
func TestTheDriverIsUnderstood(t *testing.T) {
	m := newMachine(t)
	image, bundle := m.path("x.dmg"), m.path("x.sparsebundle")
	ok := func(b builder) []byte {
		t.Helper()
		status, out := m.drive(b)
		require.Zero(t, status, "%+v: %s", b, m.err)
		return out
	}
	ok(argv.Create{Image: image, Type: "UDIF", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench", NoSpotlight: true})
	ok(argv.Create{Image: bundle, Type: "SPARSEBUNDLE", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench", Band: 1 << 20})
	ok(argv.Create{Image: m.path("none.dmg"), Type: "UDIF", Size: 1 << 20})
	ok(argv.CreateBlank{Image: m.path("du.dmg"), Format: "RAW", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench"})
	ok(argv.CreateFrom{Source: image, Target: m.path("du.sparsebundle"), Format: "UDSB"})
	ok(argv.Convert{Source: image, Target: m.path("c.sparsebundle"), Format: "UDSB", Band: 1 << 20})

	info, _, err := parse.ImageInfo(ok(argv.ImageInfo{Image: bundle}))
	require.NoError(t, err)
	assert.Equal(t, parse.Image{Format: "UDSB", Description: "sparse bundle", Class: "CSparseBundleDiskImage", Size: 10 << 20, Checksum: "none", Scheme: "GUID",
		Partitions: info.Partitions, NonEmpty: info.NonEmpty, Compressed: info.NonEmpty}, info)
	assert.Contains(t, info.Partitions, "Microsoft Basic Data")
	info, _, err = parse.ImageInfo(ok(argv.ImageInfoDU{Image: image}))
	require.NoError(t, err)
	assert.Equal(t, int64(10<<20), info.Size)
	encrypted, err := parse.IsEncrypted(ok(argv.IsEncrypted{Image: image}))
	require.NoError(t, err)
	assert.False(t, encrypted)
	_, err = parse.Compact(ok(argv.Compact{Image: bundle, AllowBattery: true}))
	require.NoError(t, err)

	limits, err := parse.ResizeLimits(ok(argv.Limits{Image: image}))
	require.NoError(t, err)
	du, err := parse.ResizeImageLimits(ok(argv.ResizeImage{Image: image}))
	require.NoError(t, err)
	assert.Equal(t, limits, du)
	assert.Equal(t, int64(10<<20), limits.Current)
	ok(argv.Resize{Image: image, Size: 12 << 20})
	ok(argv.ResizeImage{Image: bundle, Size: 12 << 20})
	ok(argv.Resize{Image: m.path("none.dmg"), Size: 2 << 20, ImageOnly: true})
	ok(argv.Checksum{Image: image, Type: "SHA256"})
}

func TestTheDriverAttaches(t *testing.T) {
	m := newMachine(t)
	image, point := m.path("x.dmg"), m.path("mnt")
	m.do("create -size 8m x.dmg")
	m.write("mnt/keep", "")

	none, _, err := parse.Info(m.driven(argv.Info{}))
	require.NoError(t, err)
	assert.Empty(t, none)
	assert.Contains(t, m.out, "<key>images</key>\n\t\t<array>", "as from older systems of Apple's, the list is empty")
	vendor, version, err := parse.Vendor([]byte(m.out))
	require.NoError(t, err)
	assert.Equal(t, "dmgbench 1.2", vendor+" "+version)

	for _, b := range []builder{argv.Attach{Image: image, MountPoint: point}, argv.AttachImage{Image: image, MountPoint: point}} {
		a, around, err := parse.Attach(m.driven(b))
		require.NoError(t, err)
		assert.Empty(t, strings.TrimSpace(around))
		disk, err := a.Disk()
		require.NoError(t, err)
		v, ok := a.Volume(nil)
		require.True(t, ok)
		assert.Equal(t, point, v.MountPoint)
		assert.Equal(t, disk+"p1", v.Device)
		assert.Equal(t, "exfat", v.Kind)

		listed, _, err := parse.Info(m.driven(argv.Info{}))
		require.NoError(t, err)
		require.Len(t, listed, 1)
		assert.Equal(t, image, listed[0].Image)
		assert.Equal(t, "read/write", listed[0].Type)
		again, err := listed[0].Disk()
		require.NoError(t, err)
		assert.Equal(t, disk, again)
		assert.Equal(t, []string{point}, listed[0].Mounted())
		m.driven(argv.Trim{MountPoint: point})
		if _, is := b.(argv.Attach); is {
			m.driven(argv.Detach{Device: disk})
		} else {
			m.driven(argv.Eject{Device: disk})
		}
	}
	a, _, err := parse.Attach(m.driven(argv.Attach{Image: image, ReadOnly: true}))
	require.NoError(t, err)
	assert.Empty(t, a.Mounted())
	candidate, ok := a.Candidate()
	require.True(t, ok)
	assert.Equal(t, "/dev/loop2p1", candidate.Device)
	m.driven(argv.Detach{Device: "/dev/loop2", Force: true})
	assert.Empty(t, m.at.attached)
}

func (m *machine) driven(b builder) []byte {
	m.t.Helper()
	status, out := m.drive(b)
	require.Zero(m.t, status, "%+v: %s", b, m.err)
	return out
}

// TestHelpTellsTheDriver: the engine finds out from these texts what there is.
func TestHelpTellsTheDriver(t *testing.T) {
	m := newMachine(t)
	m.at.loops = true
	m.at.fs = []attach.FS{{Name: "ext4", Present: true, MountableByKernel: true}, {Name: "btrfs", MountableByKernel: true}, {Name: "FAT32", Present: true}}
	help := string(m.driven(argv.Help{Verb: "create"}))
	types := parse.Names(parse.Section(help, "-type"), []string{"UDIF", "SPARSE", "SPARSEBUNDLE"})
	assert.Subset(t, types, []string{"UDIF", "SPARSEBUNDLE"})
	assert.Equal(t, container.Extension("UDSP") != "", slices.Contains(types, "SPARSE"), "only what can be made")
	assert.Equal(t, []string{"ExFAT", "ext4"}, parse.Names(help, []string{"APFS", "Case-sensitive APFS", "HFS+", "Journaled HFS+", "MS-DOS FAT32", "ExFAT", "ext4", "xfs", "btrfs"}))
	assert.Equal(t, []string{"AES-128", "AES-256"}, parse.Names(help, []string{"AES-128", "AES-256"}))
	assert.Contains(t, help, "-nospotlight")
	formats := []string{"UDRW", "UDRO", "UDCO", "UDZO", "ULFO", "ULMO", "UDBZ", "UDTO", "UDSP", "UDSB", "UFBI", "ASIF"}
	made := parse.Names(parse.Section(string(m.driven(argv.Help{Verb: "convert"})), "-format"), formats)
	assert.Subset(t, made, []string{"UDRW", "UDTO", "UDSB"})
	assert.Subset(t, made, []string{"UDRO", "UDCO", "UDZO", "ULFO", "ULMO", "UDBZ", "UFBI"})
	assert.NotContains(t, made, "ASIF", "which diskutil makes")
	for _, verb := range []string{"image create blank", "image create from"} {
		made := parse.Names(string(m.driven(argv.HelpDU{Verb: verb})), []string{"RAW", "UDRO", "UDZO", "ULFO", "ULMO", "ASIF", "UDSB"})
		assert.Subset(t, made, []string{"RAW", "UDSB"})
		assert.Equal(t, container.Extension("ASIF") != "", slices.Contains(made, "ASIF"), "only what can be made")
	}
}
