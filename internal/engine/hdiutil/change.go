package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
	diskimage "dmgbench/internal/image"
)

// change runs a command that changes the container in place. Freed is computed
// from the host's blocks, whatever the tool prints.
func (c *image) change(ctx context.Context, t *reportBuilder, k call) error {
	before, err := c.Usage(ctx)
	if err != nil {
		return err
	}
	k.object = c.File
	if _, err := c.e.d.run(ctx, t, k); err != nil {
		return err
	}
	// The tool may have replaced files; the container was checked just before.
	if err := c.Renew(); err != nil {
		return fmt.Errorf("%s %q: %w", k.doing, c.File, err)
	}
	after, err := c.Usage(ctx)
	t.Freed = max(0, before.Allocated-after.Allocated)
	return err
}

// Compact frees unused bands. hdiutil compacts bundles and sparse images with
// APFS or HFS+; with other file systems it frees none.
func (c *image) Compact(ctx context.Context, o engine.CompactOptions) (engine.Report, error) {
	if err := c.checkDetached(ctx, "compacting"); err != nil {
		return engine.Report{}, err
	}
	if err := c.e.allows(c.choice, engine.Action{Do: "compact"}); err != nil {
		return engine.Report{}, err
	}
	var t reportBuilder
	err := c.change(ctx, &t, call{
		doing: "compacting", bytes: c.size, cmd: command.Compact(c.path(), c.passphrase(), o.AllowBattery),
		check: func(out []byte) error {
			line, _ := command.ParseCompact(out) // in another language it is missing, which is no failure
			t.note("compact_output", command.ParseMessages(string(out)).Last())
			t.note("reclaimed", line)
			return nil
		},
	})
	return t.take(), err
}

// Resize changes the length of device, partition and volume. Apple's hdiutil
// resizes only HFS+; APFS is resized by diskutil, and the report says so.
func (c *image) Resize(ctx context.Context, size int64) (engine.Report, error) {
	if err := c.checkDetached(ctx, "resizing"); err != nil {
		return engine.Report{}, err
	}
	if err := c.e.allows(c.choice, engine.Action{Do: "resize"}); err != nil {
		return engine.Report{}, err
	}
	var t reportBuilder
	cmd, want := c.resizeCommand(&t, size)
	err := c.change(ctx, &t, call{doing: "resizing", cmd: cmd, bytes: max(size, c.size), check: func([]byte) error {
		return c.checkResized(want)
	}})
	if err != nil {
		switch classOf(err) {
		case Unknown, Invalid, Internal, NoResult: // perhaps because of the size
			c.reportLimits(ctx, &t)
		}
		return t.take(), err
	}
	c.size = want
	if c.info.size != 0 {
		c.size = c.info.size
	}
	return t.take(), nil
}

// resizeCommand returns the command and the size that it makes.
func (c *image) resizeCommand(t *reportBuilder, size int64) (command.Command, int64) {
	o := command.ResizeOptions{Image: c.path(), Size: roundUp(size, command.Sector), Passphrase: c.passphrase(),
		ImageOnly: c.fs.name == "none"}
	if c.backend == backendHdiutil && c.e.resizesByHdiutil(c.fs) {
		return command.Resize(o), o.Size
	}
	if c.backend == backendHdiutil {
		t.note("resize_note", "resized by diskutil image: hdiutil resizes HFS+ only")
	}
	o.Size = roundUp(size, command.DiskutilUnit)
	return command.ResizeDiskutil(o), o.Size
}

// checkResized reads the new size back, where the files show it. Tools may
// round to 4 KiB.
func (c *image) checkResized(want int64) error {
	i, err := c.inspect()
	if err != nil {
		return err
	}
	if off := i.size - want; i.size != 0 && (off <= -4096 || off >= 4096) {
		return fmt.Errorf("%w: the image has %d bytes, %d were asked for", ErrNoResult, i.size, want)
	}
	c.info = i
	return nil
}

// reportLimits reports the possible sizes after a resize that failed.
func (c *image) reportLimits(ctx context.Context, t *reportBuilder) {
	if !c.e.can.hdiutil || c.backend == backendDiskutil {
		return
	}
	_, err := c.e.d.run(ctx, &reportBuilder{}, call{doing: "asking limits of", object: c.File, tries: 1,
		cmd: command.Limits(c.path(), c.passphrase()), check: func(out []byte) error {
			l, err := command.ParseLimits(out)
			if err == nil {
				t.note("resize_min", strconv.FormatInt(l.Min, 10))
				t.note("resize_max", strconv.FormatInt(l.Max, 10))
			}
			return err
		}})
	if err != nil {
		t.note("resize_limits", "unknown: "+reasonOf(err))
	}
}

// Convert makes another container of another format with the same content.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := c.checkDetached(ctx, "converting"); err != nil {
		return nil, err
	}
	s = c.e.withPassphrase(s)
	s.Filesystems, s.Size = []string{c.fs.name}, c.size
	to, err := c.e.chooseTarget(c.choice, s)
	if err != nil {
		return nil, err
	}
	to.size = c.size
	f := to.format
	target, err := passphraseOf(s)
	if err != nil {
		return nil, fmt.Errorf("converting %q: %w", c.File, err)
	}
	file := withExtension(name, f.Extension)
	o := command.ConvertOptions{Source: c.path(), Target: filepath.Join(dir.Path(), file), SourcePass: c.passphrase(),
		TargetPass: target}
	var cmd command.Command
	if to.backend == backendDiskutil {
		o.Format = f.ImageType
		cmd = command.CreateFrom(o)
	} else {
		o.Format = f.Name
		if target != nil {
			o.Encryption = s.Encryption
		}
		if f.Folder {
			o.Band = s.BandSize
		}
		cmd = command.Convert(o)
	}
	return c.e.makeImage(ctx, dir, file, s, to, call{doing: "converting", cmd: cmd, bytes: c.size})
}

// chooseTarget chooses the tool of a conversion. The file system comes with the
// content, whether or not the tool could make it. hdiutil cannot read ASIF.
func (e *Engine) chooseTarget(from choice, s engine.Spec) (choice, error) {
	f, ok := diskimage.FormatNamed(s.Format)
	if !ok {
		return choice{}, e.refuse(from.backend, "format "+s.Format, hintFormats())
	}
	s.Filesystems = []string{"none"}
	if from.format.Name == diskimage.ASIF || f.Name == diskimage.ASIF {
		if s.Backend == backendHdiutil {
			return choice{}, e.refuse(backendHdiutil, "converting ASIF", "backend = \"auto\"")
		}
		s.Backend = backendDiskutil
	} else if s.Backend == "" || s.Backend == auto {
		s.Backend = from.backend
		if e.checkFormat(from.backend, f) != nil {
			s.Backend = auto
		}
	}
	to, err := e.chooseFormat(s, f)
	to.fs = from.fs
	return to, err
}

// Damage damages the container on purpose. Kinds: "header" (the first sectors,
// the trailer of read-only formats, the bundle's Info.plist), "table" (both
// partition tables) of unencrypted writable formats, "volume" (the start of the
// partition, as far as it can be repaired) of all unencrypted formats,
// "band-missing", "truncated".
func (c *image) Damage(ctx context.Context, kind string) error {
	if err := c.checkDetached(ctx, "damaging"); err != nil {
		return err
	}
	err := c.e.allows(c.choice, engine.Action{Do: "damage", Kind: kind})
	if err != nil {
		return err
	}
	err = container.Corrupt(c.Dir, c.File, container.Corruption{Kind: kind, UDIF: c.info.format == "UDIF",
		Passphrase: c.passphrase(), Places: c.volumeStart})
	if _, ok := errors.AsType[*container.UnsupportedError](err); ok {
		err = c.e.refuse(c.backend, "damage "+kind+" of this container",
			"the volume of an unencrypted image can be damaged, and the table of a writable one")
	}
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.File, engine.Gone(err))
	}
	return nil
}

// ext4Copy is the offset of the first copy of an ext4 superblock in a volume
// with blocks of 4 KiB, in bytes. e2fsck cannot repair a volume without the
// first superblock that has no copy.
const ext4Copy = 128 << 20

// volumeStart returns what to overwrite (n bytes at each offset) so that the
// volume does not mount and can be repaired.
func (c *image) volumeStart(img container.Image) (places []int64, n int, err error) {
	t, _, err := gpt.Read(img)
	if err != nil {
		return nil, 0, err
	}
	last := len(t.Partitions) - 1 // an EFI partition would be the first
	if last < 0 {
		return nil, 0, gpt.ErrNoTable
	}
	start := t.Partitions[last].Offset()
	places = []int64{start}
	switch {
	case c.fs.name == "btrfs": // its first superblock is at 64 KiB
		places = append(places, start+64<<10)
	case c.fs.name == "ext4" && c.info.format != "UDIF" && t.Partitions[last].Size() <= ext4Copy:
		return nil, 0, c.e.refuse(c.backend, "damage volume of ext4 below 128 MiB",
			"make the image at least 160 MB: a smaller volume has no copy of its superblock and cannot be repaired")
	}
	return places, 4096, nil
}
