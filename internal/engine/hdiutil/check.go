package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
	"dmgbench/internal/gpt"
	diskimage "dmgbench/internal/image"
)

// Check checks the container ("container"), the volume ("volume"), or both
// (""). The image may be attached without a mount: then the volume is checked
// on the device of that attachment.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (engine.Report, error) {
	check := c.checkDetached
	if c.open != nil && c.open.point == "" {
		check = c.CheckSame
	}
	if err := check(ctx, "checking"); err != nil {
		return engine.Report{}, err
	}
	var t reportBuilder
	var err error
	switch o.What {
	case "container", "":
		if err = c.checkContainer(ctx, &t); err == nil && o.What == "" {
			err = c.checkVolume(ctx, &t, o.Repair)
		}
	case "volume":
		err = c.checkVolume(ctx, &t, o.Repair)
	default:
		err = c.e.refuse(c.backend, "checking "+o.What, "check the container or the volume")
	}
	return t.take(), err
}

// checkContainer verifies the stored checksum of formats that have one. Of the
// others it checks encryption and structure, and whether the tool can read what
// describes the image.
func (c *image) checkContainer(ctx context.Context, t *reportBuilder) error {
	if c.format.UDIF && c.e.can.hdiutil {
		return c.ask(ctx, t, call{doing: "verifying", cmd: command.Verify(c.path(), c.passphrase()), bytes: c.size})
	}
	t.note("verify", "not applicable: "+c.format.Name+" stores no checksum")
	if c.passphrase() != nil && c.e.can.hdiutil && c.format.Name != diskimage.ASIF {
		encrypted := true
		err := c.ask(ctx, t,
			call{doing: "checking", cmd: command.IsEncrypted(c.path()), check: func(out []byte) (err error) {
				encrypted, err = command.ParseIsEncrypted(out)
				return err
			}})
		if err != nil || len(t.Findings) > 0 {
			return err
		}
		if !encrypted {
			t.addFinding("the tool finds the image not encrypted")
		}
	}
	if err := c.checkStructure(t); err != nil {
		return err
	}
	cmd := command.ImageInfo(c.path(), c.passphrase())
	if c.backend == backendDiskutil || !c.e.can.hdiutil {
		cmd = command.ImageInfoDiskutil(c.path(), c.passphrase())
	}
	return c.ask(ctx, t, call{doing: "checking", cmd: cmd, check: func(out []byte) error {
		i, err := command.ParseImageInfo(out)
		if err == nil {
			c.reportInfo(t, i)
		}
		return err
	}})
}

func (c *image) reportInfo(t *reportBuilder, i command.Image) {
	t.note("format", i.Format)
	t.note("scheme", i.Scheme)
	if i.Encrypted {
		t.note("encrypted", "yes")
	}
	if i.Size != 0 {
		t.note("size", strconv.FormatInt(i.Size, 10))
	}
	if i.Size != 0 && c.info.size != 0 && i.Size != c.info.size {
		t.addFinding(fmt.Sprintf("the tool finds a device of %d bytes, the container %d", i.Size, c.info.size))
	}
}

// ask runs a command that reads the container; a verdict on the image is a
// finding. While the image is attached it is run once, since the system keeps
// the file locked as long ("Resource temporarily unavailable").
func (c *image) ask(ctx context.Context, t *reportBuilder, k call) error {
	k.object = c.File
	if c.open != nil {
		k.tries = 1
	}
	_, err := c.e.d.run(ctx, t, k)
	if e, ok := errors.AsType[*ToolError](err); ok && c.open != nil && isTransient(err) {
		e.Hint = "detach the image before its container is checked"
	}
	return addVerdict(t, err)
}

// addVerdict turns a tool's verdict on the image into a finding. Errors that
// prevented the check stay errors.
func addVerdict(t *reportBuilder, err error) error {
	e, ok := errors.AsType[*ToolError](err)
	if !ok {
		return err
	}
	switch e.Class {
	case Busy, Locked, Missing, Deadline, Killed, Canceled, Permission, NotPermitted, NoHelper, NoDevice, NoSpace, Auth:
		return err
	}
	t.addFinding(e.Error())
	return nil
}

// checkStructure checks the container's files and both partition tables of
// images of dmgbench. Apple's attach verifies them; here the check also finds a
// damaged table that a copy replaces.
func (c *image) checkStructure(t *reportBuilder) error {
	if c.e.isApple() || c.open != nil { // the tool has open what is attached
		return nil
	}
	list, err := container.Verify(c.Dir, c.File, container.OpenOptions{Passphrase: c.passphrase()})
	if errors.Is(err, errors.ErrUnsupported) { // a format without a check
		return nil
	}
	if err != nil {
		return engine.Gone(err)
	}
	for _, f := range list {
		t.addFinding(f.String())
	}
	img, err := container.Open(c.Dir, c.File, container.OpenOptions{ReadOnly: true, Passphrase: c.passphrase()})
	switch {
	case err == nil:
		return errors.Join(c.checkTable(t, img), img.Close())
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case !errors.Is(err, container.ErrCorrupt):
		return engine.Gone(err)
	case len(list) == 0:
		t.addFinding(err.Error())
	}
	return nil
}

func (c *image) checkTable(t *reportBuilder, img blockdev.Device) error {
	if c.fs.name == "none" {
		return nil
	}
	_, warnings, err := gpt.Read(img)
	switch {
	case errors.Is(err, gpt.ErrNoTable), errors.Is(err, gpt.ErrDamaged),
		errors.Is(err, gpt.ErrInvalid), errors.Is(err, gpt.ErrTooSmall):
		t.addFinding(err.Error())
		return nil
	case err != nil:
		return err
	}
	for _, w := range warnings {
		t.addFinding(string(w))
	}
	return nil
}

// checkVolume attaches the image without mounting it, unless it is attached,
// checks the file system, and detaches again, whatever the check found.
func (c *image) checkVolume(ctx context.Context, t *reportBuilder, repair bool) error {
	if c.fs.name == "none" {
		return c.e.refuse(c.backend, "checking the volume of an image without one",
			"check the container, or give the image a file system")
	}
	if c.open != nil {
		return c.checkDevice(ctx, t, c.open, repair)
	}
	at, err := c.Attach(ctx, engine.AttachOptions{NoMount: true, NoVerify: true, ReadOnly: !repair})
	if err != nil {
		return addVerdict(t, err)
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

func (c *image) checkDevice(ctx context.Context, t *reportBuilder, a *attachment, repair bool) error {
	if a.device.Device == "" {
		t.addFinding("the image has no volume")
		return nil
	}
	if a.device.IsStore() { // fsck_apfs, which diskutil runs, accepts it as well
		text := fmt.Sprintf("the APFS container on %s is damaged: the system made no disk of it", a.device.Device)
		if repair {
			t.warn("%s", text)
		} else {
			t.addFinding(text)
		}
	}
	if c.e.isApple() {
		_, err := c.e.d.run(ctx, t, call{doing: "checking the volume of", object: c.File, bytes: c.size,
			cmd: command.VerifyVolume(a.device.Device, repair)})
		return addVerdict(t, err)
	}
	return c.fsck(ctx, t, a.device.Device, repair)
}

// fsck checks the volume by the file system's own program.
func (c *image) fsck(ctx context.Context, t *reportBuilder, device string, repair bool) error {
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
		if sound, err := c.runFsck(ctx, t, program, run, device); err != nil || !sound {
			return err
		}
	}
	return nil
}

// runFsck runs the program once and reports whether it left the volume sound.
func (c *image) runFsck(ctx context.Context, t *reportBuilder, program string, run repairCommand,
	device string) (sound bool, err error) {
	args := append(strings.Fields(run.args), device)
	r, err := command.Run(ctx, command.Job{Path: program, Args: args, Dir: c.e.d.dir,
		Deadline: c.e.d.deadline("verifyVolume", c.size), Grace: c.e.d.grace})
	k := call{doing: "checking the volume of", object: c.File,
		cmd: command.Command{Tool: command.Tool(c.fs.fsck.program), Verb: "fsck", Args: args}}
	t.addRun("fsck", 1, r, 0)
	last := command.ParseMessages(string(r.Stdout)).Last()
	t.note("fsck_output", last)
	switch {
	case err != nil:
		return false, newToolError(k, r, err)
	case r.Status == 0:
	case slices.Contains(run.fixed, r.Status):
		t.warn("the volume was repaired: %s", last)
	default:
		t.addFinding(newToolError(k, r, nil).Error())
		return false, nil
	}
	return true, nil
}
