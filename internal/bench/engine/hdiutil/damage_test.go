package hdiutil

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
)

// divided gives a device one partition with a text at its start.
func divided(t *testing.T, dev blockdev.Device) (start int64) {
	table, err := gpt.Single(dev.Size(), gpt.GUID{1}, gpt.LinuxData, gpt.GUID{2}, "v", 2048)
	require.NoError(t, err)
	require.NoError(t, gpt.Write(dev, table))
	_, err = dev.WriteAt([]byte("a volume"), table.Partitions[0].Offset())
	require.NoError(t, err)
	return table.Partitions[0].Offset()
}

func (r *rig) openRaw(name string, size int64, fs string) *image {
	require.NoError(r.t, container.Create(r.dir, name+".dmg", container.Spec{Format: "UDRW", Size: size}))
	img, err := container.Open(r.dir, name+".dmg", container.OpenOptions{})
	require.NoError(r.t, err)
	divided(r.t, img)
	require.NoError(r.t, img.Close())
	c, err := r.e.Open(r.t.Context(), r.dir, name, spec("UDRW", on(fs)))
	require.NoError(r.t, err)
	return c.(*image)
}

// An ext4 volume that is too small for a copy of its superblock is not harmed: nobody could repair it.
func TestDamageOfVolumes(t *testing.T) {
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4", "ExFAT"}})
	for name, c := range map[string]*image{"small": r.openRaw("small", 48<<20, "exFAT"), "large": r.openRaw("large", 160<<20, "ext4")} {
		require.NoError(t, c.Damage(t.Context(), engine.Damage{Kind: "volume"}), name)
		img, err := container.Open(r.dir, c.Name(), container.OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		got := make([]byte, 8)
		_, err = img.ReadAt(got, 2048*512)
		require.NoError(t, err)
		require.NoError(t, img.Close())
		assert.Equal(t, bytes.Repeat([]byte{0xdb}, 8), got, name)
	}
	require.ErrorAs(t, r.openRaw("little", 48<<20, "ext4").Damage(t.Context(), engine.Damage{Kind: "volume"}), new(*engine.UnsupportedError))
}

// A read-only image is harmed in what it stores of the volume; its tables lie in no sectors of their own.
func TestDamageOfSealedImages(t *testing.T) {
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4", "ExFAT"}})
	dev := blockdevtest.NewMem(8 << 20)
	divided(t, dev)
	for _, format := range []string{"UDRO", "UDZO"} {
		require.NoError(t, container.CreateUDIF(t.Context(), r.dir, format+".dmg", dev, container.UDIFSpec{Format: format}))
		c, err := r.e.Open(t.Context(), r.dir, format, spec(format, on("ext4")))
		require.NoError(t, err)
		require.ErrorAs(t, c.Damage(t.Context(), engine.Damage{Kind: "table"}), new(*engine.UnsupportedError))
		found, err := container.Verify(r.dir, c.Name(), container.OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found, "it was not touched")
		require.NoError(t, c.Damage(t.Context(), engine.Damage{Kind: "volume"}))
		found, err = container.Verify(r.dir, c.Name(), container.OpenOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, found, format)
	}
}

// A damaged copy of the partition table is a finding, although the volume attaches.
func TestCheckFindsADamagedTable(t *testing.T) {
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4"}})
	c := r.create("x", spec("UDRW", on("ext4")))
	path := filepath.Join(r.dir.Path(), c.Name())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	copy(b[len(b)-512:], "damaged")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	rep, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
	require.NoError(t, err)
	assert.Len(t, rep.Findings, 1)
}

// What serves an image is killed if the tool's list names its process; nothing else is.
func TestKill(t *testing.T) {
	serve := func(t *testing.T) *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill() })
		return cmd
	}
	for name, test := range map[string]struct {
		line string
		pid  func(*exec.Cmd) int
		ok   bool
	}{
		"DiskImages":     {"/System/…/diskimages-helper\x00-uuid", nil, true},
		"DiskImages2":    {"/usr/libexec/diskimagesiod", nil, true},
		"dmgbench":       {"dmgbench\x00__attach-helper\x00x.dmg\x00", nil, true},
		"other process":  {"/bin/sleep 60", nil, false},
		"no process":     {"", nil, false},
		"not in list":    {"diskimages-helper", func(*exec.Cmd) int { return 0 }, false},
		"cannot be sent": {"diskimages-helper", func(*exec.Cmd) int { return 1<<22 + 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := serve(t)
			pid := cmd.Process.Pid
			if test.pid != nil {
				pid = test.pid(cmd)
			}
			r := newRig(t, FakeConfig{Server: pid})
			r.e.host.CommandLine = func(_ context.Context, of int) string {
				assert.Equal(t, pid, of)
				return test.line
			}
			c := r.create("x", spec("UDRW"))
			a, err := c.Attach(t.Context(), engine.AttachOptions{Killable: true})
			assert.Contains(t, r.last("attach"), " -nokernel ")
			if !test.ok {
				require.ErrorAs(t, err, new(*engine.UnsupportedError))
				require.NoError(t, cmd.Process.Signal(syscall.Signal(0)), "it was killed")
				r.clean()
				return
			}
			require.NoError(t, err)
			require.NoError(t, a.(engine.Killer).Kill())
			require.ErrorContains(t, cmd.Wait(), "killed")
			require.Error(t, a.(engine.Killer).Kill(), "it is gone")
			rep, err := a.Detach(t.Context(), true)
			require.NoError(t, err)
			assert.Empty(t, rep.Warnings)
			r.clean()
		})
	}
}

// Images that the kernel serves have no process to kill, which is known in advance.
func TestKillIsRefusedWithoutAProcess(t *testing.T) {
	r := newRig(t, FakeConfig{})
	killed := func(format, by string) error {
		return r.e.Allows(spec(format, servedAs(by)), engine.Action{Do: "damage", Kind: engine.Killed})
	}
	require.NoError(t, killed("UDRW", "auto"))
	require.NoError(t, killed("UDRW", "helper"))
	assert.Contains(t, engine.Advised(killed("UDRW", "kernel")), `served_by = "helper"`)
	assert.Contains(t, engine.Advised(killed("UDZO", "")), "killed for formats that can be written to")
	r.e.o.Vendor, r.e.can.noFUSE = "dmgbench", "load the module fuse"
	assert.Contains(t, engine.Advised(killed("UDRW", "auto")), "load the module fuse")
}
