package imagetool

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
	diskimage "dmgbench/internal/image"
)

// newImage describes a new image.
type newImage struct {
	format     formatInfo
	size, band int64  // bytes; 0 for the usual
	bare       bool   // no partition table
	filesystem string // "" for none
	label      string
	folders    []string // to be copied into it
	encryption container.Encryption
}

// spec is the container of the image.
func (b newImage) spec() container.Spec {
	return container.Spec{Format: containerFormat(b.format.name), Size: b.size, BandSize: b.band,
		Encryption: b.encryption}
}

// create is the verb of hdiutil.
func (c *call) create() error {
	b, err := c.createSpec()
	if err != nil {
		return err
	}
	path, err := c.makeImage(b, c.operands[0])
	if err != nil {
		return err
	}
	if c.has("-attach") {
		return c.attachMade(path, b.encryption.Passphrase)
	}
	return c.printMade(path)
}

// createBlank is `diskutil image create blank`.
func (c *call) createBlank() error {
	b := newImage{label: "Untitled"}
	var err error
	if b.format, err = c.imageFormat(c.operands[0], byImage); err != nil {
		return err
	}
	if !c.has("--size") {
		return misused("no size: want --size")
	}
	if b.encryption, err = c.newEncryption(); err != nil {
		return err
	}
	if b.size, err = c.readSize(sizeOption{"--size", parseDiskutilSize}); err != nil {
		return err
	}
	if c.has("--volumeName") {
		b.label = c.value("--volumeName")
	}
	switch name := c.value("--fs"); {
	case strings.EqualFold(name, "none"):
		b.bare = true
	case c.has("--fs"):
		b.filesystem, err = c.chooseFilesystem(name)
	default:
		b.filesystem = c.defaultFilesystem()
	}
	if err != nil {
		return err
	}
	path, err := c.makeImage(b, c.operands[0])
	if err != nil {
		return err
	}
	return c.printMade(path)
}

// imageFormat is the format of `diskutil image create`; column has its names.
func (c *call) imageFormat(operand string, column func(formatInfo) string) (formatInfo, error) {
	if c.has("--format") {
		return formatNamed(c.value("--format"), column)
	}
	if f := byExtension(operand); f.image != "" {
		return f, nil
	}
	return formats[0], nil
}

// printMade prints the path of a new image.
func (c *call) printMade(path string) error {
	if c.tool == "diskutil" {
		return c.printResult(dict{"image-path": path}, "%s created\n", path)
	}
	return c.printResult([]string{path}, "created: %s\n", path)
}

// createSpec reads the options of create.
func (c *call) createSpec() (b newImage, err error) {
	if b.format, err = c.createFormat(); err != nil {
		return b, err
	}
	if b.encryption, err = c.newEncryption(); err != nil {
		return b, err
	}
	if b.band, err = c.targetKeys(b.format); err != nil {
		return b, err
	}
	for _, folder := range c.opts["-srcfolder"] {
		path, err := c.absolute(folder)
		if err != nil {
			return b, err
		}
		b.folders = append(b.folders, path)
	}
	b.size, err = c.readSize(sizeOption{"-size", parseSize}, sizeOption{"-sectors", parseSectors},
		sizeOption{"-megabytes", parseMegabytes})
	if err == nil && b.size == 0 && len(b.folders) == 0 {
		err = misused("no size: want -size, -sectors, -megabytes or -srcfolder")
	}
	if err != nil {
		return b, err
	}
	switch layout := strings.ToUpper(c.value("-layout")); layout {
	case "", "GPTSPUD":
	case "NONE":
		b.bare = true
	default:
		return b, refuse("layout %s is not supported: want GPTSPUD or NONE", layout)
	}
	return b, c.chooseContents(&b)
}

// createFormat is the format of create: -type is for empty images, -format for those with files.
func (c *call) createFormat() (formatInfo, error) {
	f := byExtension(c.operands[0])
	switch filled := c.has("-srcfolder"); {
	case c.has("-format") && !filled:
		return f, refuse("-format is for images with a -srcfolder; -type is for empty ones")
	case c.has("-type") && filled:
		return f, refuse("-type is for empty images; -format is for those with a -srcfolder")
	case c.has("-format"):
		return formatNamed(c.value("-format"), byConversion)
	case c.has("-type"):
		return formatNamed(c.value("-type"), byType)
	case filled && f.name == container.UDRW:
		return formatNamed(diskimage.UDZO, byConversion)
	case f.typ == "":
		return f, refuse("format %s, of the name %q, is not made by this verb%s", f.name, c.operands[0], f.otherMaker())
	}
	return f, nil
}

// labelLimits are the longest labels in bytes; package attach cuts longer ones.
var labelLimits = map[string]int{"ext4": 16, "xfs": 12, "btrfs": 255, "FAT32": 11}

// chooseContents chooses the file system and the label of the volume.
func (c *call) chooseContents(b *newImage) (err error) {
	switch {
	case c.has("-fs"):
		b.filesystem, err = c.chooseFilesystem(c.value("-fs"))
	case len(b.folders) > 0:
		b.filesystem = ours
	case !c.has("-layout"):
		b.filesystem = c.defaultFilesystem()
	}
	switch {
	case err != nil:
		return err
	case len(b.folders) > 0 && b.filesystem != ours:
		return refuse("a -srcfolder can be copied only into %s, not into %s: attach an empty image and copy into that",
			ours, b.filesystem)
	case b.filesystem == "" && c.has("-volname"):
		return refuse("a volume's name without a file system: give -fs")
	case c.has("-volname"):
		b.label = c.value("-volname")
	case len(b.folders) == 1:
		b.label = folderLabel(b.folders[0])
	default:
		b.label = "untitled"
	}
	if limit := labelLimits[b.filesystem]; limit > 0 && len(b.label) > limit {
		c.warn("the name %q is too long for %s, which allows %d bytes: it is cut off", b.label, b.filesystem, limit)
	}
	return nil
}

// makeImage makes the image under a temporary name and gives it its own name when it is complete.
func (c *call) makeImage(b newImage, operand string) (path string, err error) {
	p, err := c.target(operand, b.format.extension)
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
		t.lost.warn(c)
		b.size = cmp.Or(b.size, t.imageSize(b.bare))
	}
	c.newProgress(0)
	err = c.replace(p, func(tmp place) error {
		if b.format.readOnly {
			return c.makeReadOnly(tmp, b, t)
		}
		return c.makeFilled(tmp, b, t)
	})
	return p.path, err
}

// makeReadOnly converts a raw image, which exists next to the new one meanwhile.
func (c *call) makeReadOnly(p place, b newImage, t tree) (err error) {
	raw := p.sibling(p.name[:stemLength] + ".cdr")
	defer func() {
		if e := container.Remove(raw.dir, raw.name); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	f := b.format
	b.format = formatInfoOf(container.UDRW)
	if err := c.makeFilled(raw, b, t); err != nil {
		return err
	}
	o := container.OpenOptions{ReadOnly: true, Passphrase: b.encryption.Passphrase}
	img, err := container.Open(raw.dir, raw.name, o)
	if err != nil {
		return err
	}
	return errors.Join(c.writeUDIF(p, img, f, b.encryption), img.Close())
}

// makeFilled makes a container, partitions and formats it, and copies the folders into it.
func (c *call) makeFilled(p place, b newImage, t tree) error {
	if err := container.Create(p.dir, p.name, b.spec()); err != nil || b.bare && b.filesystem == "" {
		return err
	}
	img, err := container.Open(p.dir, p.name, container.OpenOptions{Passphrase: b.encryption.Passphrase})
	if err != nil {
		return err
	}
	part, err := c.partition(img, b)
	if err == nil && b.filesystem == ours {
		if err = c.formatExFAT(part, b.label); err == nil {
			err = t.copyTo(c, part)
		}
	} else if f, ok := c.filesystem(b.filesystem); err == nil && ok && part.Size() < f.MinSize {
		err = refuse("%s needs %d bytes at least, the image has %d for it", appleName(f), f.MinSize, part.Size())
	}
	if err = errors.Join(err, img.Close()); err != nil || b.filesystem == "" || b.filesystem == ours {
		return err
	}
	r := attach.Request{Image: p.path, Passphrase: b.encryption.Passphrase}
	return c.withDevice(r, "making its file system", func(a attach.Attached) error {
		return c.env.Attacher.Make(c.ctx, a.Partition, b.filesystem, b.label)
	})
}

// partition writes the partition table and returns its partition, or the whole device where there is to be no table.
func (c *call) partition(img container.Image, b newImage) (blockdev.Device, error) {
	if b.bare {
		return img, nil
	}
	var ids [2]gpt.GUID
	for n := range ids {
		if _, err := io.ReadFull(c.env.Random, ids[n][:]); err != nil {
			return nil, err
		}
		ids[n][7], ids[n][8] = ids[n][7]&0x0f|0x40, ids[n][8]&0x3f|0x80 // version 4 of RFC 9562
	}
	t, err := gpt.Single(img.Size(), ids[0], c.partitionType(b.filesystem), ids[1], "disk image", 0)
	if err != nil {
		return nil, err
	}
	if err := gpt.Write(img, t); err != nil {
		return nil, err
	}
	return blockdev.Section(img, t.Partitions[0].Offset(), t.Partitions[0].Size())
}

// growth is how many times its first size an ExFAT volume can grow to: its FAT is made that long.
const growth = 4

// formatExFAT makes an empty ExFAT volume with a random serial number. Its allocation table has room for growth, because
// a resize cannot move the clusters that follow the table.
func (c *call) formatExFAT(part blockdev.Device, label string) error {
	if !utf8.ValidString(label) {
		return refuse("the name %q is not valid UTF-8", label)
	}
	if n := utf16Len(label); n > maxExFATLabel {
		return refuse("the name %q is too long for %s: %d UTF-16 units, at most %d", label, ours, n, maxExFATLabel)
	}
	var serial [4]byte
	if _, err := io.ReadFull(c.env.Random, serial[:]); err != nil {
		return err
	}
	o := exfat.FormatOptions{Label: label, Serial: binary.LittleEndian.Uint32(serial[:]), MaxSize: growth * part.Size()}
	if ph, ok := part.(blockdev.Phaser); ok {
		o.PartitionOffset = ph.ExtentPhase()
	}
	return exfat.Format(part, o)
}
