package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// checkVolume attaches the image without mounting it, unless it is already, has
// the file system checked, and detaches again, whatever was found.
func (c *image) checkVolume(ctx context.Context, t *tale, repair bool) error {
	if c.fs.name == "none" {
		return c.e.refuse(c.backend, "checking the volume of an image without one", "check the container, or give the image a file system")
	}
	if c.open != nil {
		return c.checkDevice(ctx, t, c.open, repair)
	}
	at, err := c.Attach(ctx, engine.AttachOptions{NoMount: true, NoVerify: true, ReadOnly: !repair})
	if err != nil {
		return finding(t, err)
	}
	a := at.(*attachment)
	t.add(a.TakeReport())
	err = c.checkDevice(ctx, t, a, repair)
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	r, e := a.Detach(clean, false)
	t.add(r)
	if e != nil {
		r, e = a.Detach(clean, true)
		t.add(r)
	}
	return errors.Join(err, e)
}

func (c *image) checkDevice(ctx context.Context, t *tale, a *attachment, repair bool) error {
	if a.device.Device == "" {
		t.find("the image has no volume")
		return nil
	}
	if a.device.Store() { // fsck_apfs, which diskutil runs, takes it as well
		text := fmt.Sprintf("the APFS container on %s is damaged: the system made no disk of it", a.device.Device)
		if !repair {
			t.find(text)
		} else {
			t.warn("%s", text)
		}
	}
	return c.fsck(ctx, t, a.device, repair)
}

// fsck checks the volume on the device: by diskutil on a Mac, by the file system's own program elsewhere.
func (c *image) fsck(ctx context.Context, t *tale, device parse.Entity, repair bool) error {
	if c.e.o.Vendor != "dmgbench" {
		_, err := c.e.d.run(ctx, t, call{doing: "checking the volume of", object: c.file, bytes: c.size,
			build: argv.VerifyVolume{Device: device.Device, Repair: repair}})
		return finding(t, err)
	}
	if c.fs.fsck.program == "" {
		return c.e.refuse(c.backend, "checking "+c.fs.name, "check the container, or use ext4, XFS, btrfs, exFAT, FAT32 or HFS+")
	}
	program, err := exec.LookPath(c.fs.fsck.program)
	if err != nil {
		return c.e.refuse(c.backend, "checking "+c.fs.name, "install the package with "+c.fs.fsck.program)
	}
	steps := []mend{{args: c.fs.fsck.look}}
	if repair {
		steps = c.fs.fsck.repair
	}
	for _, m := range steps {
		if sound, err := c.runFsck(ctx, t, program, m, device.Device); err != nil || !sound {
			return err
		}
	}
	return nil
}

// runFsck runs the program once, and says whether the volume is sound as far as that goes.
func (c *image) runFsck(ctx context.Context, t *tale, program string, m mend, device string) (sound bool, err error) {
	args := append(strings.Fields(m.args), device)
	r, err := proc.Run(ctx, proc.Job{Path: program, Args: args, Dir: c.e.d.dir,
		Deadline: c.e.d.deadline("verifyVolume", c.size), Grace: c.e.d.grace})
	cmd := argv.Command{Tool: argv.Tool(c.fs.fsck.program), Verb: "fsck", Args: args}
	t.tool(c.fs.fsck.program+" fsck", 1, r, 0)
	t.note("fsck_output", parse.Talk(string(r.Stdout)).Last())
	switch {
	case err != nil:
		return false, failure("checking the volume of", c.file, cmd, r, err)
	case r.Status == 0:
	case slices.Contains(m.fixed, r.Status):
		t.warn("the volume was repaired: %s", parse.Talk(string(r.Stdout)).Last())
	default:
		t.r.Findings = append(t.r.Findings, failure("checking the volume of", c.file, cmd, r, nil).Error())
		return false, nil
	}
	return true, nil
}

// errNoTrim says that the system has no call for it, or refuses it.
var errNoTrim = fmt.Errorf("the system does not trim this volume: %w", errors.ErrUnsupported)

// Trim gives the volume's free space back to the container: by the system's own
// call where there is one, else by the work-alike's verb. macOS has neither: it
// trims when it mounts, and the report says so.
func (a *attachment) Trim(ctx context.Context) (engine.Report, error) {
	c := a.c
	if err := c.same(ctx, "trimming", false); err != nil {
		return engine.Report{}, err
	}
	if a.vol == nil || a.readOnly {
		return engine.Report{}, fmt.Errorf("trimming %q: the volume is not mounted for writing", c.file)
	}
	if c.e.o.Vendor != "dmgbench" {
		return engine.Report{Reported: map[string]string{"trim": "not asked for: macOS trims a volume of its own accord, when it mounts it"}}, nil
	}
	// Whatever the folder lies on would be trimmed, were our volume not there.
	if m, ok, err := c.e.host.mountedOn(a.point); err != nil || !ok || m.From != a.mounted.From {
		return engine.Report{}, errors.Join(fmt.Errorf("trimming %q: its volume is no longer mounted", c.file), err)
	}
	before, err := c.Usage(ctx)
	if err != nil {
		return engine.Report{}, err
	}
	var t tale
	n, err := int64(0), errNoTrim
	if c.e.host.Trim != nil {
		n, err = c.e.host.Trim(a.point)
	}
	if errors.Is(err, errors.ErrUnsupported) && c.pass() != nil && c.kind.format == "UDRW" {
		t.r.Warnings = append(t.r.Warnings, "free space was not given back: an encrypted raw image has no block that was never written")
		err = nil
	} else if errors.Is(err, errors.ErrUnsupported) {
		_, err = c.e.d.run(ctx, &t, call{doing: "trimming", object: c.file, build: argv.Trim{MountPoint: a.point}})
	} else if err == nil {
		t.note("trimmed", strconv.FormatInt(n, 10))
	}
	if err != nil {
		return t.report(), fmt.Errorf("trimming %q: %w", c.file, err)
	}
	after, err := c.Usage(ctx)
	t.r.Freed = max(0, before.Allocated-after.Allocated)
	return t.report(), err
}
