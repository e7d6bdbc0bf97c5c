package imagetool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// blank is what a new image is to be.
type blank struct {
	format     string // UDRW, UDSB or UDTO
	size, band int64  // bytes
	bare       bool   // no partition table
	filesystem string // "" for none
	label      string
	folders    []string // to be copied into it
	encryption container.Encryption
}

// create is the verb of hdiutil.
func (c *call) create() error {
	b, f, err := c.createSpec()
	if err != nil {
		return err
	}
	path, err := c.make(b, f, c.operands[0])
	if err != nil {
		return err
	}
	if c.has("-attach") {
		return c.attachMade(path, b.encryption.Passphrase)
	}
	return c.tellMade(path)
}

// tellMade prints what create and convert have made.
func (c *call) tellMade(path string) error {
	if c.has("-plist") {
		return c.printPlist([]string{path})
	}
	_, err := fmt.Fprintf(c.out, "created: %s\n", path)
	return err
}

// createSpec reads the options of create.
func (c *call) createSpec() (b blank, f formatInfo, err error) {
	if f, err = c.createFormat(); err != nil {
		return b, f, err
	}
	b.format = f.name
	if err := c.plainStdin(); err != nil {
		return b, f, err
	}
	if b.encryption, err = c.encryption(); err != nil {
		return b, f, err
	}
	if b.band, err = c.imageKeys(f); err != nil {
		return b, f, err
	}
	for _, folder := range c.opts["-srcfolder"] {
		path, err := c.absolute(folder)
		if err != nil {
			return b, f, err
		}
		b.folders = append(b.folders, path)
	}
	if b.size, err = c.createSize(len(b.folders) > 0); err != nil {
		return b, f, err
	}
	switch layout := strings.ToUpper(c.value("-layout")); layout {
	case "", "GPTSPUD":
	case "NONE":
		b.bare = true
	default:
		return b, f, refuse("layout %s is not there yet: GPTSPUD or NONE", layout)
	}
	b.label = c.value("-volname")
	if err := c.contents(&b); err != nil {
		return b, f, err
	}
	if limit := labelLimits[b.filesystem]; limit > 0 && len(b.label) > limit {
		c.warn("the name %q is too long for %s, which holds %d bytes: it is cut off", b.label, b.filesystem, limit)
	}
	return b, f, nil
}

// labelLimits are the longest names of volumes in bytes, where package attach cuts longer ones.
var labelLimits = map[string]int{"ext4": 16, "xfs": 12, "btrfs": 255, "FAT32": 11}

// contents chooses the file system and the name of the volume.
func (c *call) contents(b *blank) (err error) {
	switch {
	case c.has("-fs"):
		b.filesystem, err = c.filesystem(c.value("-fs"))
	case len(b.folders) > 0:
		b.filesystem = ours
	case !c.has("-layout"):
		b.filesystem = c.defaultFilesystem()
	}
	if err == nil && len(b.folders) > 0 && b.filesystem != ours {
		err = refuse("a -srcfolder can be copied into %s only, not into %s: attach an empty image and copy into that", ours, b.filesystem)
	}
	if err == nil && !c.has("-volname") {
		b.label = "untitled"
		if len(b.folders) == 1 {
			b.label = folderLabel(b.folders[0])
		}
	}
	if err == nil && b.filesystem == "" && c.has("-volname") {
		err = refuse("a volume's name without a file system: give -fs")
	}
	return err
}

func (c *call) createFormat() (formatInfo, error) {
	said := byExtension(c.operands[0])
	switch filled := c.has("-srcfolder"); {
	case c.has("-format") && !filled:
		return said, refuse("-format is for images with a -srcfolder; -type is for empty ones")
	case c.has("-type") && filled:
		return said, refuse("-type is for empty images; -format is for those with a -srcfolder")
	case c.has("-format"):
		return formatNamed(c.value("-format"), byConversion)
	case c.has("-type"):
		return formatNamed(c.value("-type"), byType)
	case filled && said.name == container.UDRW:
		return formatNamed("UDZO", byConversion)
	case !said.here() || said.typ == "":
		return said, refuse("format %s, which the name %q says, is not made by this verb%s", said.name, c.operands[0], said.elsewhere())
	}
	return said, nil
}

// createSize is the one size that has to be given, in bytes; 0 when the content decides.
func (c *call) createSize(filled bool) (int64, error) {
	var size int64
	var err error
	given := 0
	for _, way := range []struct {
		name string
		read func(string) (int64, error)
	}{
		{"-size", parseSize},
		{"-sectors", func(s string) (int64, error) { return parseCount(s, sector) }},
		{"-megabytes", func(s string) (int64, error) { return parseCount(s, 1<<20) }},
	} {
		if c.has(way.name) {
			given++
			if size, err = way.read(c.value(way.name)); err != nil {
				return 0, misused("option %s: %v", way.name, err)
			}
		}
	}
	switch {
	case given > 1:
		return 0, misused("more than one of -size, -sectors, -megabytes")
	case given == 0 && !filled:
		return 0, misused("no size: want -size, -sectors, -megabytes or -srcfolder")
	}
	return size, nil
}

// bandSize reads the image key of verbs that make images.
func (c *call) bandSize(f formatInfo) (int64, error) {
	var band int64
	for _, v := range c.opts["-imagekey"] {
		key, count, _ := strings.Cut(v, "=")
		n, err := parseCount(count, sector)
		switch {
		case key != "sparse-band-size":
			return 0, refuse("image key %q is not known: want sparse-band-size=SECTORS", v)
		case f.name != "UDSB" && f.name != "UDSP":
			return 0, refuse("image key sparse-band-size is for sparse bundles and sparse images; this is %s", f.name)
		case err != nil || n < container.MinBandSize || n > container.MaxBandSize:
			return 0, refuse("bands of %s sectors: want %d to %d", count, container.MinBandSize/sector, int64(container.MaxBandSize)/sector)
		}
		band = n
	}
	return band, nil
}

// make makes the image under a temporary name and gives it its own when it is complete.
func (c *call) make(b blank, f formatInfo, operand string) (path string, err error) {
	p, err := c.target(operand, f.extension)
	if err != nil {
		return "", err
	}
	defer p.close()
	var t tree
	if len(b.folders) > 0 {
		if t, err = readTree(c.ctx, b.folders); err != nil {
			return "", err
		}
		defer t.close()
		t.lost.remark(c)
		if b.size == 0 {
			b.size = t.imageSize(b.bare)
		}
	}
	c.newProgress(0)
	err = c.replacing(p, func(tmp place) error {
		if f.readOnly {
			return c.makeReadOnly(tmp, b, f, t)
		}
		return c.makeFilled(tmp, b, f, t)
	})
	return p.path, err
}

func (c *call) makeFilled(p place, b blank, f formatInfo, t tree) error {
	spec := container.Spec{Format: containerFormat(f.name), Size: b.size, BandSize: b.band, Encryption: b.encryption}
	if err := container.Create(p.dir, p.name, spec); err != nil {
		return err
	}
	return c.fill(p, b, t)
}

// makeReadOnly converts a raw image that is beside the new one as long as this takes.
func (c *call) makeReadOnly(p place, b blank, f formatInfo, t tree) (err error) {
	raw := p
	raw.name = p.name[:len(stemPrefix)+16] + ".cdr" // the stem of the temporary name
	raw.path = p.dir.Path() + "/" + raw.name
	defer func() {
		if e := container.Remove(raw.dir, raw.name); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := c.makeFilled(raw, b, infoOf(container.UDRW), t); err != nil {
		return err
	}
	img, err := container.Open(raw.dir, raw.name, container.OpenOptions{ReadOnly: true, Passphrase: b.encryption.Passphrase})
	if err != nil {
		return err
	}
	return errors.Join(c.writeUDIF(p, img, f, b.encryption), img.Close())
}

// fill partitions and formats a new container, and copies folders into it.
func (c *call) fill(p place, b blank, t tree) error {
	if b.bare && b.filesystem == "" {
		return nil
	}
	img, err := container.Open(p.dir, p.name, container.OpenOptions{Passphrase: b.encryption.Passphrase})
	if err != nil {
		return err
	}
	err = c.divide(img, b, func(part blockdev.Device) error {
		if b.filesystem != ours {
			return c.roomFor(b.filesystem, part.Size())
		}
		if err := c.formatOurs(part, b); err != nil {
			return err
		}
		return t.copyTo(c, part)
	})
	if err = errors.Join(err, img.Close()); err != nil || b.filesystem == "" || b.filesystem == ours {
		return err
	}
	return c.formatAttached(p, b)
}

// divide writes the partition table and gives its partition, or the whole device, to f.
func (c *call) divide(img container.Image, b blank, f func(part blockdev.Device) error) error {
	if b.bare {
		return f(img)
	}
	var ids [2]gpt.GUID
	for n := range ids {
		if _, err := io.ReadFull(c.env.Random, ids[n][:]); err != nil {
			return err
		}
		ids[n][7], ids[n][8] = ids[n][7]&0x0f|0x40, ids[n][8]&0x3f|0x80 // version 4 of RFC 9562
	}
	t, err := gpt.Single(img.Size(), ids[0], c.partitionType(b.filesystem), ids[1], "disk image", 0)
	if err != nil {
		return err
	}
	if err := gpt.Write(img, t); err != nil {
		return err
	}
	p := t.Partitions[0]
	part, err := blockdev.Section(img, p.Offset(), p.Size())
	if err != nil {
		return err
	}
	return f(part)
}

// growth is how many times its first size an ExFAT volume can grow to: its FAT is made that long.
const growth = 4

func (c *call) formatOurs(part blockdev.Device, b blank) error {
	if !utf8.ValidString(b.label) {
		return refuse("the name %q is not valid UTF-8", b.label)
	}
	if n := units16(b.label); n > 11 {
		return refuse("the name %q is too long for %s: %d UTF-16 units, at most 11", b.label, ours, n)
	}
	var serial [4]byte
	if _, err := io.ReadFull(c.env.Random, serial[:]); err != nil {
		return err
	}
	o := exfat.FormatOptions{Label: b.label, Serial: binary.LittleEndian.Uint32(serial[:]), MaxSize: growth * part.Size()}
	if ph, ok := part.(blockdev.Phaser); ok {
		o.PartitionOffset = ph.ExtentPhase()
	}
	return exfat.Format(part, o)
}

// formatAttached lets a program of the host format the partition, which takes a device.
func (c *call) formatAttached(p place, b blank) (err error) {
	a, err := c.env.Attacher.Attach(c.ctx, Request{Image: p.path, NoMount: true, Temporary: true, Passphrase: b.encryption.Passphrase})
	if err != nil {
		return err
	}
	defer func() {
		if _, e := c.env.Attacher.Detach(detached(c.ctx), a, err != nil); e != nil {
			err = errors.Join(err, fmt.Errorf("detaching %q after making its file system: %w", p.path, e))
		}
	}()
	return c.env.Attacher.Make(c.ctx, a, b.filesystem, b.label)
}
