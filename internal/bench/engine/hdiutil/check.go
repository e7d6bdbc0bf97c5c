package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
)

// Check checks the container ("container"), the volume ("volume"), or both
// (""). The image may be attached without a mount: then the volume is checked
// on the device of that attachment.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (t engine.Report, err error) {
	check := c.CheckDetached
	if c.open != nil && c.open.point == "" {
		check = c.CheckSame
	}
	if err = check(ctx, "checking"); err == nil && o.What != "volume" {
		err = c.checkContainer(ctx, &t)
	}
	if o.What != "container" && err == nil {
		err = c.checkVolume(ctx, &t, o.Repair)
	}
	return t, err
}

// checkContainer verifies the stored checksum of formats that have one. Of the
// others it checks encryption and structure, and whether the tool can read what
// describes the image.
func (c *image) checkContainer(ctx context.Context, t *engine.Report) error {
	byHdiutil := c.e.can.present[backendHdiutil]
	if c.format.UDIF && byHdiutil {
		return c.ask(ctx, t, call{doing: "verifying", cmd: c.command("hdiutil verify"), bytes: c.size})
	}
	t.Note("verify", "not applicable: "+c.format.Name+" stores no checksum")
	if i, err := c.inspect(); err != nil {
		return engine.Gone(err)
	} else if err := checkMade(i, c.format, c.spec.Encryption); err != nil {
		t.Find(err.Error())
		return nil
	}
	if err := c.checkStructure(t); err != nil {
		return err
	}
	cmd := c.command("hdiutil imageinfo")
	if c.backend == backendDiskutil || !byHdiutil {
		cmd = c.command("diskutil image info") // the only command that reads ASIF
	}
	return c.ask(ctx, t, call{doing: "checking", cmd: cmd, check: func(out []byte) error {
		i, err := command.ParseImageInfo(out)
		t.Note("format", i.Format)
		t.Note("scheme", i.Scheme)
		if i.Encrypted {
			t.Note("encrypted", "yes")
		}
		if i.Size != 0 {
			t.Note("size", strconv.FormatInt(i.Size, 10))
		}
		if err == nil && i.Size != 0 && c.info.Size != 0 && i.Size != c.info.Size {
			t.Find(fmt.Sprintf("the tool finds a device of %d bytes, the container %d", i.Size, c.info.Size))
		}
		return err
	}})
}

// ask runs a command that reads the container; a verdict on the image is a
// finding. While the image is attached it is run once, since the system keeps
// the file locked as long ("Resource temporarily unavailable").
func (c *image) ask(ctx context.Context, t *engine.Report, k call) error {
	k.object = c.File
	if c.open != nil {
		k.tries = 1
	}
	err := c.e.run(ctx, t, k)
	if e, ok := errors.AsType[*ToolError](err); ok && c.open != nil && isTransient(err) {
		e.Hint = "detach the image before its container is checked"
	}
	return addVerdict(t, err)
}

// isVerdict reports whether a tool judged the image; other errors kept it from
// its check.
func isVerdict(err error) bool {
	e, ok := errors.AsType[*ToolError](err)
	return ok && slices.Contains(verdicts, e.Class)
}

// addVerdict turns a tool's verdict on the image into a finding. Errors that
// prevented the check stay errors.
func addVerdict(t *engine.Report, err error) error {
	if !isVerdict(err) {
		return err
	}
	t.Find(err.Error())
	return nil
}

// checkStructure checks the container's files and both partition tables of
// images of dmgbench. Apple's attach verifies them; here the check also finds a
// damaged table that a copy replaces.
func (c *image) checkStructure(t *engine.Report) error {
	if c.e.isApple() || c.open != nil { // the tool has open what is attached
		return nil
	}
	o := container.OpenOptions{ReadOnly: true, Passphrase: c.spec.Passphrase}
	list, err := container.Verify(c.Dir, c.File, o)
	for _, f := range list {
		t.Find(f.String())
	}
	if err == nil && c.fs.name != none {
		var img container.Image
		var warnings []gpt.Warning
		if img, err = container.Open(c.Dir, c.File, o); err == nil {
			_, warnings, err = gpt.Read(img)
			err = errors.Join(err, img.Close())
		}
		for _, w := range warnings {
			t.Find(string(w))
		}
	}
	switch isCorrupt := errors.Is(err, container.ErrCorrupt); {
	case gpt.IsUnusable(err), isCorrupt && len(list) == 0:
		t.Find(err.Error())
	case !isCorrupt && !errors.Is(err, errors.ErrUnsupported): // that is a format without a check
		return engine.Gone(err)
	}
	return nil
}

// checkVolume attaches the image without mounting it, unless it is attached,
// checks the file system, and detaches again, whatever the check found.
func (c *image) checkVolume(ctx context.Context, t *engine.Report, repair bool) error {
	if c.fs.name == none {
		return c.e.refuse(c.backend, "checking the volume of an image without one",
			"check the container, or give the image a file system")
	}
	if c.open != nil {
		return c.checkDevice(ctx, t, c.open, repair)
	}
	if _, err := c.Attach(ctx, engine.AttachOptions{NoMount: true, NoVerify: true, ReadOnly: !repair}); err != nil {
		return addVerdict(t, err)
	}
	a := c.open
	t.Add(a.TakeReport())
	err := c.checkDevice(ctx, t, a, repair)
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	start := c.e.o.Clock.Now()
	r, e := a.Detach(clean, false)
	if e != nil { // the last try failed, too
		r.Retried, r.Retries, r.Asked = c.e.o.Clock.Now()-start, r.Retries+1, 0
		t.Add(r)
		r, e = a.Detach(clean, true)
	}
	t.Add(r)
	return errors.Join(err, e)
}

// checkDevice checks the file system on the device of an attachment: by diskutil
// on a Mac or, where that cannot, by fsck_apfs, since the devices of an image
// belong to the user who attached it; on Linux by the file system's own program.
func (c *image) checkDevice(ctx context.Context, t *engine.Report, a *attachment, repair bool) error {
	device := a.device.Device
	if device == "" {
		t.Find("the image has no volume")
		return nil
	}
	if a.device.IsStore() { // fsck_apfs, which diskutil runs, accepts it as well
		report := t.Find
		if repair {
			report = func(text string) { t.Warn("%s", text) }
		}
		report(fmt.Sprintf("the APFS container on %s is damaged: the system made no disk of it", device))
	}
	if !c.e.isApple() {
		return c.fsck(ctx, t, device, repair)
	}
	line := "diskutil verifyVolume"
	if repair {
		line = "diskutil repairVolume"
	}
	k := call{doing: "checking the volume of", object: c.File, bytes: c.size,
		cmd: command.New(line, command.Args{Device: device})}
	start, before := c.e.o.Clock.Now(), *t
	err := c.e.run(ctx, t, k)
	wasPrevented := err != nil && !isVerdict(err) && ctx.Err() == nil
	if wasPrevented && !repair && c.fs.isType("apfs") && len(c.e.o.FsckAPFS) > 0 {
		t.Warn("the volume was checked by fsck_apfs -q, which is quicker than a full check: %s", reasonOf(err))
		t.Retried, t.Retries, t.Asked = before.Retried+c.e.o.Clock.Now()-start, t.Retries+1, before.Asked
		k.cmd = command.QuickCheck(device)
		err = c.e.run(ctx, t, k)
		e, ok := errors.AsType[*ToolError](err)
		if ok && e.Class == Unknown && e.Status > 0 && e.Status < minSysexit {
			t.Find(e.Error())
			return nil
		}
	}
	return addVerdict(t, err)
}

// minSysexit is the lowest status of sysexits(3), by which a program tells that
// it could not do its work.
const minSysexit = 64

// fsck checks the volume by the file system's own program.
func (c *image) fsck(ctx context.Context, t *engine.Report, device string, repair bool) error {
	if c.fs.fsck.program == "" {
		return c.e.refuse(c.backend, "checking "+c.fs.name,
			"check the container, or use ext4, XFS, btrfs, exFAT, FAT32 or HFS+")
	}
	program, err := exec.LookPath(c.fs.fsck.program)
	if err != nil {
		return c.e.refuse(c.backend, "checking "+c.fs.name, "install the package with "+c.fs.fsck.program)
	}
	runs := []repairCommand{{args: c.fs.fsck.check}}
	if repair {
		runs = c.fs.fsck.repair
	}
	for _, run := range runs {
		args := append(strings.Fields(run.args), device)
		r, err := c.e.runProgram(ctx, "verifyVolume", c.size, program, args, nil)
		k := call{doing: "checking the volume of", object: c.File,
			cmd: command.Command{Tool: command.Tool(c.fs.fsck.program), Verb: "fsck", Args: args}}
		addRun(t, "fsck", 1, r)
		last := command.ParseMessages(string(r.Stdout)).Last()
		t.Note("fsck_output", last)
		switch {
		case err != nil:
			return newToolError(k, r, err)
		case r.Status == 0:
		case slices.Contains(run.fixed, r.Status):
			t.Warn("the volume was repaired: %s", last)
		default:
			// The next program is not run: the second one of btrfs opens no volume
			// without a superblock.
			t.Find(newToolError(k, r, nil).Error())
			return nil
		}
	}
	return nil
}
