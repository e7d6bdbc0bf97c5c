package hdiutil

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container"
	"dmgbench/internal/system/host"
)

func (r *rig) attachedImage(s engine.Spec) (*image, *attachment) {
	c := r.create("x", s)
	a := r.attach(c, engine.AttachOptions{})
	a.TakeReport()
	return c, a
}

func TestDetachBusyTwice(t *testing.T) {
	for _, eject := range []FakeRule{{Do: "busy"}, {Do: "fail", Text: "diskutil: Unable to eject", Status: 1}} {
		eject.Verb, eject.From = "eject", 1
		r := newRig(t, rules(eject, FakeRule{Verb: "detach", From: 1, To: 2, Do: "busy"}))
		_, a := r.attachedImage(spec("UDRW"))
		rep, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		require.Len(t, rep.Warnings, 3)
		assert.Contains(t, rep.Warnings[0], "by diskutil eject: ")
		assert.Contains(t, rep.Warnings[0], "Resource busy")
		assert.Contains(t, rep.Warnings[2], "again: ")
		assert.Equal(t, 1500*time.Millisecond, r.clock.Now())
		assert.Equal(t, r.clock.Now(), rep.Retried, "the pauses are in no duration")
		assert.Equal(t, "4", rep.Reported["detach_tries"])
		assert.Equal(t, 3, rep.Retries)
		r.clean()
	}
}

// Without force an image that is held stays attached and usable; with force it goes.
func TestDetachHeld(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 5, Do: "busy"}, FakeRule{Verb: "eject", From: 1, To: 2, Do: "busy"}))
	c, a := r.attachedImage(spec("UDRW"))
	put(t, a.Volume(), "x")
	rep, err := a.Detach(t.Context(), false)
	require.ErrorIs(t, err, syscall.EBUSY)
	assert.Len(t, r.verbs("detach"), politeTries)
	assert.Len(t, r.verbs("eject"), 1)
	assert.Len(t, rep.Warnings, politeTries)
	require.NotNil(t, a.Volume())
	there(t, a.Volume(), "x")
	_, err = c.Resize(t.Context(), 64<<20)
	require.ErrorIs(t, err, container.ErrInUse, "it is attached")
	rep, err = a.Detach(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, "hdiutil detach "+a.disk+" -force", r.last("detach"))
	assert.Contains(t, rep.Warnings[0], "by diskutil eject")
	assert.Contains(t, rep.Warnings[1], "with force")
	r.clean()
	require.NoError(t, c.Remove(t.Context()))
}

// hdiutil of macOS 27 that never detaches: diskutil does, at the second try and without a pause.
func TestDetachByEject(t *testing.T) {
	for _, do := range []string{"busy", "fail", "nothing"} {
		for _, force := range []bool{false, true} {
			r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, Do: do, Text: "hdiutil: detach: drive not detached", Status: 1}))
			_, a := r.attachedImage(spec("UDRW"))
			rep, err := a.Detach(t.Context(), force)
			require.NoError(t, err)
			require.Len(t, rep.Warnings, 1)
			assert.Contains(t, rep.Warnings[0], "by diskutil eject")
			assert.Zero(t, r.clock.Now())
			assert.Len(t, r.verbs("detach"), 1)
			assert.Equal(t, "2", rep.Reported["detach_tries"])
			r.clean()
		}
	}
}

func TestDetachRefusedForEver(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, Do: "busy"}, FakeRule{Verb: "eject", From: 1, Do: "busy"}))
	_, a := r.attachedImage(spec("UDRW"))
	_, err := a.Detach(t.Context(), true)
	var e *ToolError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, Busy, e.Class)
	assert.Contains(t, e.Hint, "hdiutil detach "+a.disk+" -force")
	require.Len(t, r.attached(), 1)
	require.DirExists(t, a.point, "what is mounted keeps its folder")
}

// A detach that hangs is ended, and the next way is tried.
func TestDetachHangs(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 1, Do: "hang"}))
	_, a := r.attachedImage(spec("UDRW"))
	rep, err := a.Detach(t.Context(), true)
	require.NoError(t, err)
	assert.Contains(t, rep.Warnings[0], "by diskutil eject")
	r.clean()
}

// Somebody else detached it: nothing of ours is detached, and it is said.
func TestDetachGoneAlready(t *testing.T) {
	r := newRig(t, FakeConfig{})
	_, a := r.attachedImage(spec("UDRW"))
	r.tool.Forget()
	rep, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Contains(t, rep.Warnings[0], "somebody else")
	assert.Empty(t, r.verbs("detach"))
	r.clean()
}

// Device numbers are used again: another image with our old number is not detached.
func TestDetachOfAnotherImageNever(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 1, Do: "busy"}))
	_, a := r.attachedImage(spec("UDRW"))
	old := a.disk
	r.tool.Renumber(50)
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	for _, line := range append(r.verbs("detach"), r.verbs("eject")...) {
		assert.NotContains(t, strings.Fields(line), old)
	}
	r.clean()
}

// An image that somebody has mounted elsewhere is neither used nor detached.
func TestAttachedElsewhere(t *testing.T) {
	for _, noMount := range []bool{false, true} {
		r := newRig(t, FakeConfig{})
		c := r.create("x", spec("UDRW"))
		point := filepath.Join(t.TempDir(), "Foreign")
		require.NoError(t, os.Mkdir(point, 0o700))
		r.tool.Occupy(r.file("x.dmg"), point)
		_, err := c.Attach(t.Context(), engine.AttachOptions{NoMount: noMount})
		require.ErrorIs(t, err, ErrNoResult)
		assert.Contains(t, err.Error(), "attached already")
		require.Len(t, r.attached(), 1, "still there")
		require.ErrorContains(t, c.Remove(t.Context()), "attached")
		require.FileExists(t, r.file("x.dmg"))
		left, err := os.ReadDir(r.e.o.WorkDir)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	// The same behind a failure: the list says that it is not ours.
	r := newRig(t, rules(FakeRule{Verb: "attach", From: 1, Do: "garbage"}))
	c := r.create("x", spec("UDRW"))
	r.tool.Occupy(r.file("x.dmg"), t.TempDir())
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorContains(t, err, "leaving")
	require.Len(t, r.attached(), 1)
}

// An image that a failed attach could not get rid of keeps its files.
func TestFailedAttachThatStays(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, Do: "busy"}, FakeRule{Verb: "eject", From: 1, Do: "busy"}))
	c := r.create("x", spec("UDRW"))
	r.e.host.Mounts = func() ([]host.Mount, error) { return nil, nil }
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, ErrNoResult)
	require.Len(t, r.attached(), 1)
	require.ErrorContains(t, c.Remove(t.Context()), "attached")
	require.FileExists(t, r.file("x.dmg"))
}

// A list that is cut short does not make a detach of what is mounted.
func TestMountedIsNotDetached(t *testing.T) {
	r := newRig(t, FakeConfig{})
	c, a := r.attachedImage(spec("UDRW"))
	require.ErrorContains(t, a.finish(), "a volume is mounted on it")
	require.Error(t, c.Remove(t.Context()))
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, c.Remove(t.Context()))
	r.clean()
}

// The tool says mounted, the system says no: an error, and nothing stays attached.
func TestMountTableDecides(t *testing.T) {
	r := newRig(t, FakeConfig{})
	c := r.create("x", spec("UDRW"))
	r.e.host.Mounts = func() ([]host.Mount, error) { return nil, nil }
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, ErrNoResult)
	r.clean()
	r.e.host.Mounts = func() ([]host.Mount, error) {
		list, err := r.tool.mounts()
		for i := range list {
			list[i].ReadOnly = true
		}
		return list, err
	}
	_, err = c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorContains(t, err, "read-only")
	r.clean()
	r.e.host.Mounts = func() ([]host.Mount, error) {
		list, err := r.tool.mounts()
		for i := range list {
			list[i].Type = "hfs"
		}
		return list, err
	}
	a := r.attach(c, engine.AttachOptions{})
	assert.Contains(t, a.TakeReport().Warnings[0], "mounted as hfs, APFS was asked for")
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	r.clean()
}

// The system's own table lists the root.
func TestSystemMounts(t *testing.T) {
	list, err := systemMounts()
	require.NoError(t, err)
	_, ok, err := Host{Mounts: systemMounts}.mountedOn("/")
	require.NoError(t, err)
	assert.True(t, ok, "%d mounts", len(list))
	_, ok, err = Host{Mounts: systemMounts}.mountedOn(t.TempDir())
	require.NoError(t, err)
	assert.False(t, ok)
}

// On a Mac the table has /private/var where /var was asked for, and "Documents" for "documents".
func TestMountPointByAnotherName(t *testing.T) {
	dir := t.TempDir()
	real, other := filepath.Join(dir, "real"), filepath.Join(dir, "other")
	require.NoError(t, os.MkdirAll(filepath.Join(real, "mnt1"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(real, "mnt2"), 0o700))
	require.NoError(t, os.Symlink(real, other))
	h := Host{Mounts: func() ([]host.Mount, error) {
		return []host.Mount{{Source: "/dev/disk9s1", Point: filepath.Join(real, "mnt1"), Type: "apfs"}, {Source: "//server/share", Point: "/elsewhere/mnt1"}}, nil
	}}
	m, ok, err := h.mountedOn(filepath.Join(other, "mnt1"))
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "/dev/disk9s1", m.Source)
	_, ok, err = h.mountedOn(filepath.Join(other, "mnt2"))
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestTrim(t *testing.T) {
	r := newRig(t, FakeConfig{})
	_, a := r.attachedImage(spec("UDRW"))
	rep, err := a.Trim(t.Context())
	require.NoError(t, err)
	assert.Contains(t, rep.Reported["trim"], "macOS trims")
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	_, err = a.Trim(t.Context())
	require.Error(t, err)

	r = newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4"}})
	_, a = r.attachedImage(spec("UDRW", on("ext4")))
	_, err = a.Trim(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	r.e.host.Trim = func(_ context.Context, dir string) (int64, error) {
		assert.Equal(t, a.point, dir)
		return 12345, nil
	}
	rep, err = a.Trim(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "12345", rep.Reported["trimmed"])
	r.e.host.Trim = func(context.Context, string) (int64, error) { t.Error("the host was trimmed"); return 0, nil }
	r.e.host.Mounts = func() ([]host.Mount, error) { return nil, nil }
	_, err = a.Trim(t.Context())
	require.ErrorContains(t, err, "no longer mounted")
	r.e.host.Mounts = r.tool.mounts
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	r.clean()
}

// A device may outlive its image for a moment: what counts is the tool's list of images.
func TestNodeOfADetachedDeviceStays(t *testing.T) {
	r := newRig(t, FakeConfig{})
	r.e.host.Exists = func(string) bool { return true }
	_, a := r.attachedImage(spec("UDRW"))
	rep, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Empty(t, rep.Warnings)
	r.clean()
}

// Without a feature of the tools an engine can still detach: with limits of its own unless others are given.
func TestUnprobed(t *testing.T) {
	e, err := newUnprobed(Options{})
	require.NoError(t, err)
	assert.Equal(t, deadlineOf("attach", 0), e.o.Deadline("attach", 0))
	e, err = newUnprobed(Options{Deadline: func(string, int64) time.Duration { return time.Nanosecond }})
	require.NoError(t, err)
	assert.Equal(t, time.Nanosecond, e.o.Deadline("attach", 0))
	gone := Options{WorkDir: filepath.Join(t.TempDir(), "gone")}
	_, err = Attached(t.Context(), gone, t.TempDir())
	require.ErrorContains(t, err, "opening the folder for mount points")
	_, err = Release(t.Context(), gone, t.TempDir())
	require.ErrorContains(t, err, "opening the folder for mount points")
}
