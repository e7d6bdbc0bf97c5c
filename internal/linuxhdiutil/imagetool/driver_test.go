package imagetool

import (
	"bytes"
	"dmgbench/internal/linuxhdiutil/attach"
	"slices"
	"testing"

	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drive executes what the driver of the hdiutil engine would send.
func (m *machine) drive(c command.Command) (int, []byte) {
	m.t.Helper()
	require.NoError(m.t, c.Err)
	args := c.Args
	if c.Tool == command.Diskutil {
		args = append([]string{"diskutil"}, args...)
	}
	var out, errs bytes.Buffer
	status := Main(m.t.Context(), args, Env{Stdin: bytes.NewReader(c.Input), Stdout: &out, Stderr: &errs, Attacher: m.at.attacher(), UID: m.uid, Version: "1.2", Iterations: 1000}.withDefaults())
	m.out, m.err = out.String(), errs.String()
	return status, out.Bytes()
}

// TestTheDriverIsUnderstood sends every command that the engine builds through the
// grammar, and what comes back through the engine's parsers.
func TestTheDriverIsUnderstood(t *testing.T) {
	m := newMachine(t)
	image, bundle := m.path("x.dmg"), m.path("x.sparsebundle")
	ok := func(c command.Command) []byte {
		t.Helper()
		status, out := m.drive(c)
		require.Zero(t, status, "%s: %s", c, m.err)
		return out
	}
	ok(command.New("hdiutil create", command.Args{Image: image, Format: "UDIF", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench", NoSpotlight: true}))
	ok(command.New("hdiutil create", command.Args{Image: bundle, Format: "SPARSEBUNDLE", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench", Band: 1 << 20}))
	ok(command.New("hdiutil create", command.Args{Image: m.path("none.dmg"), Format: "UDIF", Size: 1 << 20}))
	ok(command.New("diskutil image create blank", command.Args{Image: m.path("du.dmg"), Format: "RAW", Size: 10 << 20, Filesystem: "ExFAT", Volume: "Bench"}))
	ok(command.New("diskutil image create from", command.Args{Image: image, Target: m.path("du.sparsebundle"), Format: "UDSB"}))
	ok(command.New("hdiutil convert", command.Args{Image: image, Target: m.path("c.sparsebundle"), Format: "UDSB", Band: 1 << 20}))

	info, err := command.ParseImageInfo(ok(command.New("hdiutil imageinfo", command.Args{Image: bundle})))
	require.NoError(t, err)
	assert.Equal(t, command.Image{Format: "UDSB", Size: 10 << 20, Scheme: "GUID"}, info)
	info, err = command.ParseImageInfo(ok(command.New("diskutil image info", command.Args{Image: image})))
	require.NoError(t, err)
	assert.Equal(t, int64(10<<20), info.Size)
	assert.Contains(t, string(ok(command.New("hdiutil compact", command.Args{Image: bundle, Battery: true}))), "Reclaimed ")
	ok(command.New("hdiutil resize", command.Args{Image: image, Size: 12 << 20}))
	ok(command.New("diskutil image resize", command.Args{Image: bundle, Size: 12 << 20}))
	ok(command.New("hdiutil resize", command.Args{Image: m.path("none.dmg"), Size: 2 << 20, ImageOnly: true}))
}

func TestTheDriverAttaches(t *testing.T) {
	m := newMachine(t)
	image, point := m.path("x.dmg"), m.path("mnt")
	m.do("create -size 8m x.dmg")
	m.write("mnt/keep", "")

	info, err := command.ParseInfo(m.driven(command.New("hdiutil info", command.Args{})))
	require.NoError(t, err)
	assert.Empty(t, info.Images)
	assert.Contains(t, m.out, "<key>images</key>\n\t\t<array>", "as from older systems of Apple's, the list is empty")
	assert.Equal(t, "dmgbench 1.2", info.Vendor+" "+info.Framework)

	for _, c := range []command.Command{command.New("hdiutil attach", command.Args{Image: image, MountPoint: point}), command.New("diskutil image attach", command.Args{Image: image, MountPoint: point})} {
		a, err := command.ParseAttach(m.driven(c))
		require.NoError(t, err)
		disk, err := a.Disk()
		require.NoError(t, err)
		v := a.Candidate()
		assert.Equal(t, point, v.MountPoint)
		assert.Equal(t, disk+"p1", v.Device)
		assert.Equal(t, "exfat", v.Kind)

		info, err := command.ParseInfo(m.driven(command.New("hdiutil info", command.Args{})))
		require.NoError(t, err)
		listed := info.Images
		require.Len(t, listed, 1)
		assert.Equal(t, image, listed[0].Image)
		assert.Equal(t, "read/write", listed[0].Type)
		again, err := listed[0].Disk()
		require.NoError(t, err)
		assert.Equal(t, disk, again)
		assert.Equal(t, []string{point}, listed[0].MountPoints())
		m.driven(command.Command{Tool: command.Hdiutil, Args: []string{"trim", point}})
		if c.Tool == command.Hdiutil {
			m.driven(command.New("hdiutil detach", command.Args{Device: disk}))
		} else {
			m.driven(command.New("diskutil eject", command.Args{Device: disk}))
		}
	}
	a, err := command.ParseAttach(m.driven(command.New("hdiutil attach", command.Args{Image: image, ReadOnly: true})))
	require.NoError(t, err)
	assert.Empty(t, a.MountPoints())
	assert.Equal(t, "/dev/loop2p1", a.Candidate().Device)
	m.driven(command.New("hdiutil detach", command.Args{Device: "/dev/loop2", Force: true}))
	assert.Empty(t, m.at.attached)
}

func (m *machine) driven(c command.Command) []byte {
	m.t.Helper()
	status, out := m.drive(c)
	require.Zero(m.t, status, "%s: %s", c, m.err)
	return out
}

// TestHelpTellsTheDriver: the engine finds out from these texts what there is.
func TestHelpTellsTheDriver(t *testing.T) {
	m := newMachine(t)
	m.at.loops = true
	m.at.fs = []attach.FS{{Name: "ext4", Present: true, MountableByKernel: true}, {Name: "btrfs", MountableByKernel: true}, {Name: "FAT32", Present: true}}
	help := string(m.driven(command.Help("hdiutil create")))
	types := command.FindNames(help, []string{"UDIF", "SPARSE", "SPARSEBUNDLE"})
	assert.Subset(t, types, []string{"UDIF", "SPARSEBUNDLE"})
	assert.Equal(t, container.Extension("UDSP") != "", slices.Contains(types, "SPARSE"), "only what can be made")
	assert.Equal(t, []string{"ExFAT", "ext4"}, command.FindNames(help, []string{"APFS", "Case-sensitive APFS", "HFS+", "Journaled HFS+", "MS-DOS FAT32", "ExFAT", "ext4", "xfs", "btrfs"}))
	assert.Equal(t, []string{"AES-128", "AES-256"}, command.FindNames(help, []string{"AES-128", "AES-256"}))
	assert.Contains(t, help, "-nospotlight")
	formats := []string{"UDRW", "UDRO", "UDCO", "UDZO", "ULFO", "ULMO", "UDBZ", "UDTO", "UDSP", "UDSB", "UFBI", "ASIF"}
	made := command.FindNames(string(m.driven(command.Help("hdiutil convert"))), formats)
	assert.Subset(t, made, []string{"UDRW", "UDTO", "UDSB"})
	assert.Subset(t, made, []string{"UDRO", "UDCO", "UDZO", "ULFO", "ULMO", "UDBZ", "UFBI"})
	assert.NotContains(t, made, "ASIF", "which diskutil makes")
	for _, verb := range []string{"image create blank", "image create from"} {
		made := command.FindNames(string(m.driven(command.Help("diskutil "+verb))), []string{"RAW", "UDRO", "UDZO", "ULFO", "ULMO", "ASIF", "UDSB"})
		assert.Subset(t, made, []string{"RAW", "UDSB"})
		assert.Equal(t, container.Extension("ASIF") != "", slices.Contains(made, "ASIF"), "only what can be made")
	}
}
