package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
	"dmgbench/internal/hostio"
)

// changed runs a command that changes the container in place. What it freed is
// what the host's blocks say, whatever the tool says.
func (c *image) changed(ctx context.Context, t *tale, k call) error {
	before, err := c.Usage(ctx)
	if err != nil {
		return err
	}
	k.object = c.file
	if _, err := c.e.d.run(ctx, t, k); err != nil {
		return err
	}
	// The tool may have replaced files; it was given this container, detached and looked at just before.
	if c.id, err = c.Identity(ctx); err != nil {
		return fmt.Errorf("%s %q: %w", k.doing, c.file, err)
	}
	after, err := c.Usage(ctx)
	t.r.Freed = max(0, before.Allocated-after.Allocated)
	return err
}

// Compact gives unused bands back. A bundle or sparse image with APFS or HFS+
// is what hdiutil compacts; other file systems give back nothing.
func (c *image) Compact(ctx context.Context, o engine.CompactOptions) (engine.Report, error) {
	if err := c.same(ctx, "compacting", true); err != nil {
		return engine.Report{}, err
	}
	if err := c.e.allows(c.choice, engine.Action{Do: "compact"}); err != nil {
		return engine.Report{}, err
	}
	var t tale
	var figures parse.Compacted
	err := c.changed(ctx, &t, call{
		doing: "compacting", bytes: c.size,
		build: argv.Compact{Image: c.path(), AllowBattery: o.AllowBattery, Passphrase: c.pass()},
		check: func(r proc.Result) error {
			figures, _ = parse.Compact(r.Stdout) // words of another language are no failure
			t.note("compact_output", parse.Talk(string(r.Stdout)).Last())
			return nil
		},
	})
	if figures.Line != "" {
		t.note("reclaimed", figures.Line)
	}
	return t.report(), err
}

// Resize changes the length of device, partition and volume. Apple's hdiutil
// resizes HFS+ only; for APFS diskutil does it, and the report says so.
func (c *image) Resize(ctx context.Context, size int64) (engine.Report, error) {
	if err := c.same(ctx, "resizing", true); err != nil {
		return engine.Report{}, err
	}
	if err := c.e.allows(c.choice, engine.Action{Do: "resize"}); err != nil {
		return engine.Report{}, err
	}
	var t tale
	build, want := c.resizing(&t, size)
	err := c.changed(ctx, &t, call{doing: "resizing", build: build, bytes: max(size, c.size), check: func(proc.Result) error {
		return c.resized(want)
	}})
	switch classOf(err) {
	case Unknown, Invalid, Internal, NoResult: // perhaps the size
		if err != nil {
			c.limits(ctx, &t)
		}
	}
	if err != nil {
		return t.report(), err
	}
	c.size = want
	if c.seen.size != 0 {
		c.size = c.seen.size
	}
	return t.report(), nil
}

// resizing is the command, and the size that it makes.
func (c *image) resizing(t *tale, size int64) (builder, int64) {
	hd := argv.Resize{Image: c.path(), Size: roundUp(size, argv.Sector), Passphrase: c.pass(), ImageOnly: c.fs.name == "none"}
	du := argv.ResizeImage{Image: c.path(), Size: roundUp(size, 4096), Passphrase: c.pass(), ImageOnly: c.fs.name == "none"}
	switch {
	case c.backend == backendDiskutil:
		return du, du.Size
	case c.e.byHdiutil(c.fs):
		return hd, hd.Size
	}
	t.note("resize_note", "resized by diskutil image: hdiutil resizes HFS+ only")
	return du, du.Size
}

// byHdiutil says whether hdiutil resizes images with this file system.
func (e *Engine) byHdiutil(f filesystem) bool {
	return e.o.Vendor == "dmgbench" || f.name == "none" || len(f.types) > 0 && f.types[0] == "hfs"
}

// resized reads the new size back, where the files tell it. Tools may round to 4 KiB.
func (c *image) resized(want int64) error {
	f, err := c.look()
	if err != nil {
		return err
	}
	if off := f.size - want; f.size != 0 && (off <= -4096 || off >= 4096) {
		return fmt.Errorf("%w: the image has %d bytes, %d were asked for", ErrNoResult, f.size, want)
	}
	c.seen = f
	return nil
}

// limits notes what sizes were possible, after a resize that failed.
func (c *image) limits(ctx context.Context, t *tale) {
	if !c.e.can.hdiutil || c.backend == backendDiskutil {
		return
	}
	var quiet tale
	_, err := c.e.d.run(ctx, &quiet, call{doing: "asking limits of", object: c.file, tries: 1,
		build: argv.Limits{Image: c.path(), Passphrase: c.pass()}, check: func(r proc.Result) error {
			l, err := parse.ResizeLimits(r.Stdout)
			if err == nil {
				t.note("resize_min", strconv.FormatInt(l.Min, 10))
				t.note("resize_max", strconv.FormatInt(l.Max, 10))
			}
			return err
		}})
	if err != nil {
		t.note("resize_limits", "unknown: "+said(err))
	}
}

// Convert makes another container of another format with the same content.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := c.same(ctx, "converting", true); err != nil {
		return nil, err
	}
	s = c.e.keyed(s)
	s.Filesystems, s.Size = []string{c.fs.name}, c.size
	to, err := c.e.target(c.choice, s)
	if err != nil {
		return nil, err
	}
	to.size = c.size
	k := to.kind
	target, err := passphrase(s)
	if err != nil {
		return nil, fmt.Errorf("converting %q: %w", c.file, err)
	}
	file := withExtension(name, k.ext)
	path := filepath.Join(dir.Path(), file)
	build := builder(argv.CreateFrom{Source: c.path(), Target: path, Format: k.image, SourcePass: c.pass(), TargetPass: target})
	if to.backend == backendHdiutil {
		b := argv.Convert{Source: c.path(), Target: path, Format: k.format, SourcePass: c.pass(), TargetPass: target}
		if target != nil {
			b.Encryption = s.Encryption
		}
		if k.format == "UDSB" {
			b.Band = s.BandSize
		}
		build = b
	}
	var t tale
	err = c.e.make(ctx, &t, dir, file, call{doing: "converting", build: build, bytes: c.size}, func(f found) error {
		return f.fits(k, s.Encryption)
	})
	if err != nil {
		return nil, err
	}
	return c.e.made(ctx, dir, file, s, to, &t)
}

// target chooses the tool of a conversion. The file system comes with the
// content, so that it does not matter whether the tool could make it; and
// hdiutil cannot read ASIF.
func (e *Engine) target(from choice, s engine.Spec) (choice, error) {
	k, ok := kinds[canonical(s.Format)]
	if !ok {
		return choice{}, e.refuse(from.backend, "format "+s.Format, adviceFormats)
	}
	s.Filesystems = []string{"none"}
	if from.kind.format == "ASIF" || k.format == "ASIF" {
		if s.Backend == backendHdiutil {
			return choice{}, e.refuse(backendHdiutil, "converting ASIF", "backend = \"auto\"")
		}
		s.Backend = backendDiskutil
	} else if s.Backend == "" || s.Backend == auto {
		s.Backend = from.backend
		if e.makes(from.backend, k) != nil {
			s.Backend = auto
		}
	}
	to, err := e.chooseKind(s, k)
	to.fs = from.fs
	return to, err
}

// Check looks at the container ("container"), at the volume ("volume"), or at
// both (""). The image may be attached, but not its volume mounted: then the
// volume is checked on the device that there is.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (engine.Report, error) {
	unmounted := c.open != nil && c.open.point == ""
	if err := c.same(ctx, "checking", !unmounted); err != nil {
		return engine.Report{}, err
	}
	var t tale
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
	return t.report(), err
}

// checkContainer verifies the stored checksum of kinds that have one; of the
// others it asks whether the tool can read what describes the image.
func (c *image) checkContainer(ctx context.Context, t *tale) error {
	if c.kind.sums && c.e.can.hdiutil {
		_, err := c.e.d.run(ctx, t, call{doing: "verifying", object: c.file, build: argv.Verify{Image: c.path(), Passphrase: c.pass()}, bytes: c.size, tries: c.triesNow()})
		return finding(t, c.hintAttached(err))
	}
	t.note("verify", "not applicable: "+c.kind.format+" stores no checksum")
	if err := c.checkEncryption(ctx, t); err != nil {
		return finding(t, c.hintAttached(err))
	}
	if err := c.checkStructure(t); err != nil {
		return err
	}
	build := builder(argv.ImageInfo{Image: c.path(), Passphrase: c.pass()})
	if c.backend == backendDiskutil || !c.e.can.hdiutil {
		build = argv.ImageInfoDU{Image: c.path(), Passphrase: c.pass()}
	}
	var i parse.Image
	_, err := c.e.d.run(ctx, t, call{doing: "checking", object: c.file, build: build, tries: c.triesNow(), check: func(r proc.Result) (err error) {
		i, _, err = parse.ImageInfo(r.Stdout)
		return err
	}})
	if err != nil {
		return finding(t, c.hintAttached(err))
	}
	t.note("format", i.Format)
	t.note("scheme", i.Scheme)
	if i.Encrypted {
		t.note("encrypted", "yes")
	}
	if i.Size != 0 {
		t.note("size", strconv.FormatInt(i.Size, 10))
	}
	if i.Size != 0 && c.seen.size != 0 && i.Size != c.seen.size {
		t.r.Findings = append(t.r.Findings, fmt.Sprintf("the tool finds a device of %d bytes, the container says %d", i.Size, c.seen.size))
	}
	return nil
}

// triesNow is how often a tool is asked about the image's file at most: once while we have it attached, since the system
// keeps it locked for as long ("Resource temporarily unavailable").
func (c *image) triesNow() int {
	if c.open != nil {
		return 1
	}
	return 0
}

// hintAttached says what helps where the tool failed because we have the image attached.
func (c *image) hintAttached(err error) error {
	if e, ok := errors.AsType[*ToolError](err); ok && c.open != nil && transient(err) {
		e.Hint = "detach the image before its container is checked"
	}
	return err
}

// checkEncryption asks the tool whether an encrypted image is one.
func (c *image) checkEncryption(ctx context.Context, t *tale) error {
	if c.pass() == nil || !c.e.can.hdiutil || c.kind.format == "ASIF" {
		return nil
	}
	encrypted := false
	_, err := c.e.d.run(ctx, t, call{doing: "checking", object: c.file, build: argv.IsEncrypted{Image: c.path()}, tries: c.triesNow(), check: func(r proc.Result) (err error) {
		encrypted, err = parse.IsEncrypted(r.Stdout)
		return err
	}})
	if err == nil && !encrypted {
		t.r.Findings = append(t.r.Findings, "the tool finds the image not encrypted")
	}
	return err
}

// finding turns a tool's verdict about the image into a finding. That the tool could not do its work stays an error.
func finding(t *tale, err error) error {
	e, ok := errors.AsType[*ToolError](err)
	if !ok {
		return err
	}
	switch e.Class {
	case Busy, Locked, Missing, Deadline, Killed, Canceled, Permission, NotPermitted, NoHelper, NoDevice, NoSpace, Auth:
		return err
	}
	t.r.Findings = append(t.r.Findings, e.Error())
	return nil
}

// Damage harms the container: "header" (the first sectors, the trailer of
// read-only kinds, the bundle's Info.plist), "table" (both partition tables) of
// plain kinds that can be written to, "volume" (the start of the partition, as far
// as it can be repaired) of all plain kinds, "band-missing", "truncated".
func (c *image) Damage(ctx context.Context, kind string) error {
	if err := c.same(ctx, "damaging", true); err != nil {
		return err
	}
	err := c.e.allows(c.choice, engine.Action{Do: "damage", Kind: kind})
	if err != nil {
		return err
	}
	switch kind {
	case "header":
		err = files.RuinHeader(c.dir, c.file, c.seen.format == "UDIF")
	case "table", "volume":
		err = c.harmDevice(kind)
	case "band-missing":
		err = files.RemoveBand(ctx, c.dir, c.file)
	case "truncated":
		err = files.Truncate(ctx, c.dir, c.file)
	}
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.file, gone(err))
	}
	return nil
}
