package hdiutil

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/system/clock"
)

// The work-alike's volumes are checked by the file systems' own programs, here scripts that say what fsck(8) says.
func TestCheckOnLinux(t *testing.T) {
	bin := t.TempDir()
	program := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", bin)
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4", "xfs", "btrfs"}})
	c := r.create("x", spec("UDRW", on("ext4")))
	check := func(repair bool) engine.Report {
		rep, err := c.Check(t.Context(), engine.CheckOptions{What: "volume", Repair: repair})
		require.NoError(t, err)
		r.clean()
		return rep
	}
	_, err := c.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.ErrorAs(t, err, new(*engine.UnsupportedError), "no such program")
	r.clean()
	program("fsck.ext4", `[ "$1" = -fn ] || exit 8; case $2 in /dev/disk*) echo clean;; *) exit 8;; esac`)
	rep := check(false)
	assert.Empty(t, rep.Findings)
	assert.Equal(t, "clean", rep.Reported["fsck_output"])
	program("fsck.ext4", "echo inode 7 is lost; exit 4")
	assert.Contains(t, check(false).Findings[0], "inode 7 is lost")
	program("fsck.ext4", `[ "$1" = -fy ] || exit 8; echo fixed; exit 1`)
	rep = check(true)
	assert.Empty(t, rep.Findings)
	assert.Contains(t, rep.Warnings[0], "fixed")
	b := r.create("b", spec("UDSB", on("btrfs")))
	program("btrfs", `[ "$1 $2" = "check --readonly" ] && [ $# = 3 ]`)
	rep, err = b.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.NoError(t, err)
	assert.Empty(t, rep.Findings)
	mendBtrfs := func(script string) engine.Report {
		program("btrfs", script)
		rep, err := b.Check(t.Context(), engine.CheckOptions{What: "volume", Repair: true})
		require.NoError(t, err)
		return rep
	}
	rep = mendBtrfs(`case "$1 $2 $3" in "rescue super-recover -y") echo Recovered; : > "$0.done"; exit 2;; "check --repair --force") [ -e "$0.done" ] || exit 1; echo sound;; *) exit 9;; esac`)
	assert.Empty(t, rep.Findings, "the check comes behind the superblock")
	assert.Contains(t, rep.Warnings[0], "Recovered")
	rep = mendBtrfs(`[ $1 = rescue ] && { echo no copy; exit 4; }; exit 0`)
	assert.Len(t, rep.Findings, 1, "nothing is checked behind a superblock that is lost")
	x := r.create("x2", spec("UDRW", on("XFS")))
	program("xfs_repair", `[ $# = 1 ] && { echo the log is dirty; exit 2; }; exit 0`)
	rep, err = x.Check(t.Context(), engine.CheckOptions{What: "volume", Repair: true})
	require.NoError(t, err)
	assert.Len(t, rep.Findings, 1, "status 2 of xfs_repair repairs nothing")
	r.clean()
}

func TestWorkAlikeOptions(t *testing.T) {
	o := WorkAlike(clock.NewReal(), "/usr/bin/dmgbench", "hdiutil")
	assert.Equal(t, []string{"/usr/bin/dmgbench", "hdiutil"}, o.Hdiutil)
	assert.Equal(t, []string{"/usr/bin/dmgbench", "hdiutil", "diskutil"}, o.Diskutil)
}

func TestLabels(t *testing.T) {
	fat := filesystemNamed("fat32")
	assert.Equal(t, "elevenlette", fat.labelFor("elevenletters"))
	assert.Equal(t, "tenletter1", fat.labelFor("tenletter1é"), "a whole character")
	assert.Equal(t, "dmgbench", fat.labelFor(""))
	assert.Zero(t, filesystemNamed("ReiserFS"))
}

func TestXattr(t *testing.T) {
	r := newRig(t, FakeConfig{Rules: []FakeRule{}})
	c := r.create("x", spec("UDSB"))
	if _, err := c.Xattr(t.Context(), "set", "user.test", "v"); err != nil {
		t.Skipf("no extended attributes here: %v", err)
	}
	rep, err := c.Xattr(t.Context(), "list", "", "")
	require.NoError(t, err)
	assert.Equal(t, "v", rep.Reported["user.test"])
	_, err = c.Xattr(t.Context(), "polish", "user.test", "")
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
}
