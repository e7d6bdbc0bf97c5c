package hdiutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/system/host"
)

// A mount that the system announces late is waited for, and the wait is no retry.
func TestLateMountIsWaitedFor(t *testing.T) {
	r := newRig(t, rules())
	c, looks := r.create("x", spec("UDRW")), 0
	r.e.host.Mounts = func() ([]host.Mount, error) {
		if looks++; looks <= 20 {
			return nil, nil
		}
		return r.tool.mounts()
	}
	a := r.attach(c, engine.AttachOptions{})
	assert.Equal(t, 20*readyPoll, r.clock.Now())
	rep := a.TakeReport()
	assert.Empty(t, rep.Warnings)
	assert.Zero(t, rep.Retried, "it is part of attaching")
	assert.Len(t, r.verbs("attach"), 1)
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	r.clean()
}

// What is not there after 3 s is attached once more, which is a retry.
func TestMissingMountIsAttachedOnceMore(t *testing.T) {
	for _, noMount := range []bool{false, true} {
		for _, gone := range []bool{false, true} {
			r := newRig(t, rules())
			c := r.create("x", spec("UDRW"))
			isLate := func() bool {
				if gone && r.clock.Now() > readyTime/2 && len(r.verbs("attach")) == 1 {
					r.tool.Forget()
				}
				return len(r.verbs("attach")) < 2
			}
			r.e.host.Mounts = func() ([]host.Mount, error) {
				if isLate() {
					return nil, nil
				}
				return r.tool.mounts()
			}
			r.e.host.Exists = func(device string) bool { return !isLate() && r.tool.exists(device) }
			a := r.attach(c, engine.AttachOptions{NoMount: noMount})
			rep := a.TakeReport()
			require.NotEmpty(t, rep.Warnings)
			assert.Contains(t, rep.Warnings[0], "tried again")
			assert.Equal(t, readyTime, rep.Retried)
			assert.Equal(t, 1, rep.Retries)
			assert.Len(t, r.attached(), 1)
			_, err := a.Detach(t.Context(), false)
			require.NoError(t, err)
			r.clean()
		}
	}
}

// An attach whose program was ended may still be carried out, and a command that attaches for its work may leave an image.
func TestAttachedAfterTheToolWasEnded(t *testing.T) {
	for verb, do := range map[string]func(*rig, *image) error{
		"attach": func(r *rig, c *image) error {
			_, err := c.Attach(t.Context(), engine.AttachOptions{})
			return err
		},
		"resize": func(r *rig, c *image) error {
			_, err := c.Resize(t.Context(), 64<<20)
			return err
		},
	} {
		r := newRig(t, rules(FakeRule{Verb: verb, From: 1, To: 1, Do: "hang"}))
		c := r.create("x", spec("UDRW"))
		r.tool.later(time.Minute+lateTime-latePoll, func() { r.tool.Occupy(r.file("x.dmg"), "") })
		require.Error(t, do(r, c))
		assert.Len(t, r.verbs("detach"), 1, verb)
		r.clean()
		require.NoError(t, c.Remove(t.Context()))
	}
}

// An image that is attached only after clean has looked is detached, too.
func TestReleaseLooksAgain(t *testing.T) {
	r := newRig(t, rules())
	r.create("x", spec("UDRW"))
	r.tool.later(latePoll, func() { r.tool.Occupy(r.file("x.dmg"), "") })
	names, err := r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.Equal(t, []string{"x.dmg"}, names)
	assert.Equal(t, lateTime, r.clock.Now())
	r.clean()
}

// Lists that are cut off are no proof: the I/O registry is.
func TestRegistryProvesPresence(t *testing.T) {
	short := FakeRule{Verb: "info", From: 1, Do: "short"}
	r := newRig(t, rules(short, FakeRule{Verb: "detach", From: 1, To: 1, Do: "fail", Text: "hdiutil: detach failed - No such file or directory", Status: 1}))
	_, a := r.attachedImage(spec("UDRW"))
	rep, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Len(t, rep.Warnings, 1, "it was attached, and diskutil was asked")
	assert.Len(t, r.verbs("eject"), 1)
	r.clean()

	r = newRig(t, rules(short))
	r.attachedImage(spec("UDRW"))
	names, err := r.e.Release(t.Context(), r.e.o.WorkDir)
	require.NoError(t, err)
	assert.Equal(t, []string{"x.dmg"}, names, "mounted below the folder, by the table of mounts")
	assert.Empty(t, r.attached())

	// A registry that does not answer leaves what hdiutil lists, and a warning.
	r = newRig(t, rules(FakeRule{Verb: "registry", From: 1, Do: "garbage"}))
	_, a = r.attachedImage(spec("UDRW"))
	r.tool.Forget()
	rep, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(rep.Warnings, "\n"), "known from hdiutil alone")
	r.clean()
}

// An attachment outlives its file and keeps the path: a new image at that path is not taken for it, nor it for the new one.
func TestAttachmentOfAnotherFileAtThePath(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 1, Do: "busy"}))
	_, a := r.attachedImage(spec("UDRW"))
	r.tool.disks = append([]*FakeMount{{Image: r.file("x.dmg"), Kind: "apfs", Disk: 50}}, r.tool.disks...)
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, r.attached(), 1, "ours is detached, by its disk")
	assert.Equal(t, 50, r.attached()[0].Disk)

	// Ours is gone, and its path has another file, or none, whose attachment is somebody else's.
	for _, isReplaced := range []bool{true, false} {
		r = newRig(t, rules())
		_, a = r.attachedImage(spec("UDRW"))
		r.tool.Forget()
		require.NoError(t, os.Rename(r.file("x.dmg"), r.file("old.dmg")))
		if isReplaced {
			require.NoError(t, os.WriteFile(r.file("x.dmg"), nil, 0o600))
		}
		r.tool.Occupy(r.file("x.dmg"), "")
		rep, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		assert.Contains(t, rep.Warnings[0], "somebody else")
		assert.Len(t, r.attached(), 1)
	}
}

// Once diskutil did what hdiutil had refused, it is asked first: each refusal costs time.
func TestEjectComesFirstAfterARefusal(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, Do: "busy"}))
	c := r.create("x", spec("UDRW"))
	for i := range 3 {
		a := r.attach(c, engine.AttachOptions{})
		rep, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		assert.Equal(t, i == 0, rep.Retries == 1, "detach %d", i)
		assert.Equal(t, i == 0, len(rep.Warnings) == 1, "detach %d", i)
	}
	assert.Len(t, r.verbs("detach"), 1)
	assert.Len(t, r.verbs("eject"), 3)
	r.clean()
}

// hdiutil resizes first, diskutil where it refuses; a failure whose result is there is none.
func TestResizeByEitherTool(t *testing.T) {
	refused := FakeRule{Verb: "resize", From: 1, Do: "fail", Text: "hdiutil: resize failed - Operation not supported", Status: 1}
	missing := FakeRule{Verb: "resize", From: 1, Do: "fail-after", Text: "hdiutil: resize failed - No such file or directory", Status: 1}
	for name, test := range map[string]struct {
		rule              FakeRule
		byDiskutil        int
		warning, format   string
		retries, warnings int
	}{
		"done":                 {FakeRule{Verb: "none"}, 0, "", "UDSB", 0, 0},
		"refused":              {refused, 1, "diskutil was asked: hdiutil: resize failed - Operation not supported", "UDSB", 1, 1},
		"failed when done":     {missing, 0, "its result is there: hdiutil: resize failed - No such file", "UDSB", 0, 1},
		"size is not readable": {missing, 1, "diskutil was asked", "UDSP", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rules(test.rule))
			c := r.create("x", spec(test.format))
			rep, err := c.Resize(t.Context(), 64<<20)
			require.NoError(t, err)
			assert.Len(t, r.verbs("image resize"), test.byDiskutil)
			assert.Len(t, rep.Warnings, test.warnings)
			assert.Contains(t, strings.Join(rep.Warnings, "\n"), test.warning)
			assert.Equal(t, test.retries, rep.Retries)
			assert.EqualValues(t, 64<<20, c.Made().Size)
		})
	}
	r := newRig(t, rules(FakeRule{Verb: "resize", From: 1, Do: "busy"}))
	_, err := r.create("x", spec("UDRW")).Resize(t.Context(), 64<<20)
	require.Error(t, err)
	assert.Empty(t, r.verbs("image resize"), "a busy image is busy for diskutil, too")
}

// What counts is the size of the volume, which a tool may leave as it was.
func TestSizeOfTheVolumeAfterAResize(t *testing.T) {
	for _, size := range []int64{64 << 20, 32<<20 - 40960} {
		r := newRig(t, rules())
		c := r.create("x", spec("UDRW"))
		r.e.host.VolumeSize = func(string) (int64, error) { return size, nil }
		r.detach(r.attach(c, engine.AttachOptions{}))
		_, err := c.Resize(t.Context(), 64<<20)
		require.NoError(t, err)
		for i := range 2 {
			a := r.attach(c, engine.AttachOptions{})
			rep := a.TakeReport()
			assert.Equal(t, i == 0, rep.Reported["volume_size"] != "", "after the resize only")
			assert.Equal(t, i == 0 && size < 33<<20, strings.Contains(strings.Join(rep.Warnings, ""), "its volume still has"))
			r.detach(a)
		}
	}
}

func (r *rig) detach(a *attachment) {
	_, err := a.Detach(r.t.Context(), false)
	require.NoError(r.t, err)
}

// The mode of the mount is what the table shows, and a fact of the image.
func TestMountModes(t *testing.T) {
	for _, format := range []string{"UDRW", "ASIF"} {
		for mode, all := range map[string][]bool{"": {true}, engine.MountPrivate: {false}, engine.MountFinder: {false, true}} {
			for _, owners := range all {
				r := newRig(t, FakeConfig{Owners: owners})
				c := r.create("x", spec(format, func(s *engine.Spec) { s.Mount = mode }))
				isPlain := mode != engine.MountFinder && format == "UDRW"
				assert.Equal(t, isPlain, strings.Contains(strings.Join(r.verbs("create"), ""), " -nospotlight "), "%s %s", format, mode)
				assert.Empty(t, c.Made().Mount)
				a := r.attach(c, engine.AttachOptions{})
				verb := map[string]string{"UDRW": "attach", "ASIF": "image attach"}[format]
				assert.Equal(t, mode != engine.MountFinder, strings.Contains(r.last(verb), "-nobrowse "), "%s %s", format, mode)
				assert.Empty(t, a.TakeReport().Warnings)
				made := c.Made()
				assert.Equal(t, mode == engine.MountFinder, made.Mount == engine.MountFinder)
				assert.Equal(t, map[bool]string{true: engine.OwnersKept, false: engine.OwnersIgnored}[owners], made.Owners)
				r.detach(a)
				r.detach(r.attach(c, engine.AttachOptions{NoMount: true}))
				assert.Contains(t, r.last(verb), "-nobrowse ", "nothing is mounted to browse")
				r.clean()
			}
		}
	}
	// The work-alike takes both, and nothing browses either.
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Names: []string{"ext4"}})
	c := r.create("x", spec("UDRW", on("ext4"), func(s *engine.Spec) { s.Mount = engine.MountFinder }))
	a := r.attach(c, engine.AttachOptions{})
	assert.Equal(t, engine.MountPrivate, c.Made().Mount)
	assert.Empty(t, c.Made().Owners)
	assert.Empty(t, a.TakeReport().Warnings)
	r.detach(a)
}

// fsck_apfs checks what diskutil cannot, and its verdict counts.
func TestQuickCheckWhereDiskutilCannot(t *testing.T) {
	fails := func(verb, text string) FakeRule {
		return FakeRule{Verb: verb, From: 1, Do: "fail", Text: text, Status: 8}
	}
	for name, test := range map[string]struct {
		rules    []FakeRule
		checks   int
		findings int
		fails    bool
	}{
		"diskutil checks":     {nil, 0, 0, false},
		"its verdict counts":  {[]FakeRule{fails("verifyVolume", "Error: -69845: File system verify or repair failed")}, 0, 1, false},
		"cannot":              {[]FakeRule{fails("verifyVolume", "Device not configured")}, 1, 0, false},
		"cannot, and damaged": {[]FakeRule{fails("verifyVolume", "Device not configured"), fails("fsck", "error: odd")}, 1, 1, false},
		"cannot, and neither": {[]FakeRule{fails("verifyVolume", "Device not configured"), {Verb: "fsck", From: 1, Do: "fail", Text: "error: odd", Status: 65}}, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rules(test.rules...))
			r.e.o.FsckAPFS = r.tool.Command("fsck_apfs")
			rep, err := r.create("x", spec("UDRW")).Check(t.Context(), engine.CheckOptions{What: "volume"})
			require.Equal(t, test.fails, err != nil, "%v", err)
			require.Len(t, r.verbs("fsck"), test.checks)
			assert.Len(t, rep.Findings, test.findings)
			if test.checks > 0 {
				assert.Equal(t, "fsck_apfs -q /dev/rdisk104s1", r.last("fsck"))
				assert.Contains(t, rep.Warnings[0], "fsck_apfs -q")
			}
			r.clean()
		})
	}
}

// A root folder that its owner keeps from us is a plain sentence, unless nothing is written.
func TestRootThatMayNotBeWritten(t *testing.T) {
	r := newRig(t, rules())
	c := r.create("x", spec("UDRW"))
	r.e.host.Writable = func(string) bool { return false }
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorContains(t, err, "this user may not write to the root folder of the volume")
	r.clean()
	r.detach(r.attach(c, engine.AttachOptions{ReadOnly: true}))
	r.clean()
	assert.True(t, writable(t.TempDir()))
	assert.False(t, writable(filepath.Join(t.TempDir(), "missing")))
	n, err := volumeSize(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, n)
	_, err = volumeSize(filepath.Join(t.TempDir(), "missing"))
	require.Error(t, err)
}
