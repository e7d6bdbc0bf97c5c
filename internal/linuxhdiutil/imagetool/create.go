package imagetool

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"
)

// newImage describes a new image, as the options of create and convert request
// it.
type newImage struct {
	format image.Format
	// size of the device and of its bands in bytes. A size of 0 is as large as
	// the folders need, a band of 0 the usual.
	size, band int64
	// level of the compression of a read-only image, 0 for the usual.
	level int
	// bare means no partition table: the volume takes the whole device.
	bare bool
	// filesystem is a name of package attach or ours; "" for none.
	filesystem string
	label      string
	// folders of the host that are copied into the volume, as absolute paths.
	folders    []string
	encryption container.Encryption
}

// create is the verb of hdiutil, and `diskutil image create blank`.
func (c *call) create() (err error) {
	if c.readsStdin() && !c.has("encryption") && !c.has("encrypt") { // which has no other purpose here
		want := cmp.Or(c.verb.optionName("encryption"), c.verb.optionName("encrypt"))
		return usageErrorf("a passphrase, and no encryption: want %s too", want)
	}
	layout := strings.ToUpper(c.value("layout"))
	b := newImage{bare: layout == "NONE"}
	if b.format, err = c.createFormat(); err == nil {
		b.encryption, err = c.encryption()
	}
	if err == nil {
		err = c.setImageKeys(&b)
	}
	for _, folder := range c.opts["srcfolder"] {
		path, e := c.absolute(folder)
		b.folders, err = append(b.folders, path), cmp.Or(err, e)
	}
	if err == nil {
		b.size, _, err = c.readSize()
	}
	switch {
	case err != nil:
		return err
	case layout != "" && layout != "GPTSPUD" && !b.bare:
		return refuse("layout %s is not supported: want GPTSPUD or NONE", layout)
	}
	if err := c.chooseContents(&b); err != nil {
		return err
	}
	path, err := c.makeImage(b, c.operands[0])
	attached := c.has("attach")
	if err == nil && !(attached && c.has("plist")) {
		err = c.printMade(path)
	}
	if err == nil && attached {
		c.operands = []string{path}
		if err = c.attach(); err != nil { // the image stays, if it has no volume to mount, for instance
			err = fmt.Errorf("%q was created and could not be attached: %w", path, err)
		}
	}
	return err
}

// printMade prints the path of a new image.
func (c *call) printMade(path string) error {
	if c.tool == "diskutil" {
		return c.printResult(dict{"image-path": path}, "%s created\n", path)
	}
	return c.printResult([]string{path}, "created: %s\n", path)
}

// createFormat is the format of create. For hdiutil -type is for empty images,
// -format for those with files, which are UDZO by default.
func (c *call) createFormat() (image.Format, error) {
	f, filled := byExtension(c.operands[0]), c.has("srcfolder")
	switch {
	case c.tool == "diskutil":
		return c.imageFormat(c.operands[0], byImage)
	case c.has("format") && !filled, c.has("type") && filled:
		return f, refuse("-format is for images with a -srcfolder; -type is for empty images")
	case filled && f.Name == image.UDRW:
		f.Name = image.UDZO
	case !filled:
		return formatNamed(cmp.Or(c.value("type"), f.CreateType, f.Name), byType)
	}
	return formatNamed(cmp.Or(c.value("format"), f.Name), byConversion)
}

// imageFormat is the format of `diskutil image create`.
func (c *call) imageFormat(operand string, name formatNamer) (image.Format, error) {
	return formatNamed(cmp.Or(c.value("format"), byExtension(operand).ImageType, image.Formats[0].ImageType), name)
}

// chooseContents chooses the file system and the label of the volume.
func (c *call) chooseContents(b *newImage) (err error) {
	switch name := c.value("fs"); {
	case c.tool == "diskutil" && strings.EqualFold(name, "none"):
		b.bare = true
		return nil
	case c.has("fs"):
		b.filesystem, err = c.chooseFilesystem(name)
	case len(b.folders) > 0:
		b.filesystem = ours
	case !c.has("layout"):
		b.filesystem = c.defaultFilesystem()
	}
	switch {
	case err != nil:
		return err
	case len(b.folders) > 0 && b.filesystem != ours:
		return refuse("a -srcfolder can be copied only into %s, not into %s: attach an empty image and copy into that",
			ours, b.filesystem)
	case b.filesystem == "" && c.has("volname"):
		return refuse("a volume's name without a file system: give -fs")
	case c.has("volname") || c.has("volumename"):
		b.label = cmp.Or(c.value("volname"), c.value("volumename"))
	case len(b.folders) == 1:
		// as Apple's tools name it
		b.label = exfat.CutLabel(strings.ToValidUTF8(filepath.Base(b.folders[0]), "_"))
	case c.tool == "diskutil":
		b.label = "Untitled"
	default:
		b.label = "untitled"
	}
	if f, _ := attach.FilesystemOf(b.filesystem); f.MaxLabel > 0 && len(b.label) > f.MaxLabel {
		c.warn("the name %q is too long for %s, which allows %d bytes: it is cut off", b.label, f.Name, f.MaxLabel)
	}
	return nil
}

// makeImage makes the image under a temporary name and gives it its own name
// when it is complete. The folders are listed before anything is made, so that
// a link in them, or a folder that is missing, leaves no trace. It returns the
// absolute path of the image.
func (c *call) makeImage(b newImage, operand string) (path string, err error) {
	p, err := c.target(operand, b.format.Extension)
	if err != nil {
		return "", err
	}
	defer p.close()
	var t tree
	if len(b.folders) > 0 {
		old, _ := p.dir.Lstat(p.name) // nil without one
		t, err = readTree(c.ctx, b.folders, old)
		defer t.close()
		if err != nil {
			return "", err
		}
		var list []string
		for n, what := range lossNames {
			if t.lost[n] > 0 {
				list = append(list, fmt.Sprintf("%s of %d", what, t.lost[n]))
			}
		}
		if len(list) > 0 {
			c.warn("%s does not keep, of so many files and folders: %s", ours, strings.Join(list, ", "))
		}
		b.size = cmp.Or(b.size, t.imageSize())
	}
	c.newProgress(0)
	err = c.replace(p, func(tmp place) (err error) {
		if !b.format.UDIF {
			return c.makeFilled(tmp, b, t)
		}
		// A read-only image is converted from a raw one, which exists next to it
		// meanwhile.
		raw, rw := tmp.sibling(tmp.name+rawSuffix), b
		rw.format = image.Formats[0]
		defer func() { err = errors.Join(err, removeIfExists(raw)) }()
		if err := c.makeFilled(raw, rw, t); err != nil {
			return err
		}
		img, err := b.open(raw)
		if err != nil {
			return err
		}
		return errors.Join(c.writeCopy(tmp, img, b), img.Close())
	})
	return p.path, err
}

// makeContainer makes the empty container and opens it.
func (b newImage) makeContainer(p place) (container.Image, error) {
	spec := container.Spec{Format: b.format.Name, Size: b.size, BandSize: b.band, Encryption: b.encryption}
	if spec.Format == image.UDTO { // the bytes of both are the same
		spec.Format = image.UDRW
	}
	if err := container.Create(p.dir, p.name, spec); err != nil {
		return nil, err
	}
	return b.open(p)
}

// open opens what makeContainer has made.
func (b newImage) open(p place) (container.Image, error) {
	return container.Open(p.dir, p.name, container.OpenOptions{Passphrase: b.encryption.Passphrase})
}

// makeFilled makes a container, partitions and formats it, and copies the
// folders into it. ExFAT is made in this process through the open container;
// for other file systems the image is attached without mounting, and a program
// of the host formats the partition.
func (c *call) makeFilled(p place, b newImage, t tree) error {
	img, err := b.makeContainer(p)
	if err != nil {
		return err
	}
	err = errors.Join(c.fill(img, b, t), img.Close())
	if err != nil || b.filesystem == "" || b.filesystem == ours {
		return err
	}
	return c.withDevice(p.path, "making its file system", func(a attach.Attached) error {
		return c.env.Attacher.Make(c.ctx, a.Partition, b.filesystem, b.label)
	})
}

// fill writes the partition table, unless there is to be none, and what this
// process can make of the volume: an ExFAT volume with a random serial number.
// The partition starts at 1 MiB (20 KiB in images below 4 MiB) and ends on a
// multiple of 4096 bytes. The allocation table has room for growth, because a
// resize cannot move the clusters that follow it.
func (c *call) fill(img container.Image, b newImage, t tree) (err error) {
	f, _ := attach.FilesystemOf(b.filesystem)
	o, part := exfat.FormatOptions{Label: b.label}, blockdev.Device(img)
	if !b.bare {
		var ids [32]byte
		_, _ = io.ReadFull(c.env.Random, ids[:])
		part, o.PartitionOffset, err = gpt.WriteSingle(img, gpt.GUID(ids[:16]), cmp.Or(f.Type, gpt.LinuxData),
			gpt.GUID(ids[16:]), 0)
		if err != nil {
			return err
		}
	}
	switch {
	case b.filesystem != ours && part.Size() < f.MinSize:
		return refuse("%s needs %d bytes at least, the image has %d for it", appleName(f), f.MinSize, part.Size())
	case b.filesystem != ours:
		return nil
	case !utf8.ValidString(b.label):
		return refuse("the name %q is not valid UTF-8", b.label)
	}
	var serial [4]byte
	_, _ = io.ReadFull(c.env.Random, serial[:])
	o.Serial, o.MaxSize = binary.LittleEndian.Uint32(serial[:]), growth*part.Size()
	if err := exfat.Format(part, o); err != nil {
		return err
	}
	return t.copyTo(c, part)
}

// growth is how many times its first size an ExFAT volume can grow to: its FAT
// is made that long.
const growth = 4

// withDevice attaches an image without mounting it, calls f, and detaches it.
// It is for programs of the host that need a device. doing describes the work
// in errors.
func (c *call) withDevice(path, doing string, f func(a attach.Attached) error) (err error) {
	r := attach.Request{Image: path, NoMount: true, Temporary: true}
	err = c.withImage(path, peek, func(i *imageFile) (err error) {
		r.Info, err = i.inspect()
		r.Keys = c.secrets.keys[path]
		return err
	})
	if err != nil {
		return err
	}
	a, err := c.env.Attacher.Attach(c.ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		if _, e := c.env.Attacher.Detach(context.WithoutCancel(c.ctx), a, err != nil); e != nil {
			err = errors.Join(err, fmt.Errorf("detaching %q after %s: %w", path, doing, e))
		}
	}()
	return f(a)
}

// convert is the verb of hdiutil, and `diskutil image create from`: it makes
// another image with the same device. Every byte of the device is copied, free
// space of volumes included. Afterwards the checksums that a UDIF source stores
// are compared with what was read; with a difference the new image is deleted,
// unless -noverify keeps it.
func (c *call) convert(src *imageFile) (err error) {
	b, to := newImage{size: src.Size()}, c.value("o")
	if c.tool == "diskutil" {
		to = c.operands[1]
		b.format, err = c.imageFormat(to, byFrom)
	} else if b.format, err = formatNamed(c.value("format"), byConversion); err == nil {
		err = c.setImageKeys(&b)
	}
	if err != nil {
		return err
	}
	p, err := c.target(to, b.format.Extension)
	if err != nil {
		return err
	}
	defer p.close()
	if src.contains(p.path) {
		return refuse("the new image is the old one, or inside it")
	}
	if b.encryption, err = c.encryption(); err == nil {
		err = c.replace(p, func(tmp place) error {
			if err := c.writeCopy(tmp, src.Image, b); err != nil {
				return err
			}
			return c.compareSums(src, "noverify")
		})
	}
	if err != nil {
		return err
	}
	return c.printMade(p.path)
}

// writeCopy makes an image with the content of img; one that can be written to
// gets what is not zero.
func (c *call) writeCopy(to place, img container.Image, b newImage) error {
	progress := c.newProgress(img.Size())
	if !b.format.UDIF {
		dst, err := b.makeContainer(to)
		if err != nil {
			return err
		}
		return errors.Join(container.Copy(c.ctx, dst, img, progress), dst.Close())
	}
	tasks, err := strconv.Atoi(cmp.Or(c.value("tasks"), "0")) // 0: as many as there are processors
	if err != nil || tasks < 0 || tasks > 1024 || tasks == 0 && c.has("tasks") {
		return refuse("tasks %q: want a number from 1 to 1024", c.value("tasks"))
	}
	return container.CreateUDIF(c.ctx, to.dir, to.name, img, container.UDIFSpec{Format: b.format.Name, Level: b.level,
		Workers: tasks, Encryption: b.encryption, Progress: func(done, _ int64) { progress(done) }})
}

// imageKeys are the image keys of new images: the formats that have them, and
// the range of their values, as of hdiutil(1). Sizes of bands are in sectors.
var imageKeys = map[string]struct {
	formats   string
	low, high int64
}{
	"sparse-band-size": {"sparse bundles and sparse images", image.MinBandSize / sector, image.MaxBandSize / sector},
	"zlib-level":       {image.UDZO, 1, 9},
	"bzip2-level":      {image.UDBZ, 1, 9},
}

// setImageKeys takes over the image keys of a new image. Keys that do not fit
// the format are errors: the user would measure or ship another image than
// requested.
func (c *call) setImageKeys(b *newImage) error {
	for _, v := range c.opts["imagekey"] {
		key, text, _ := strings.Cut(v, "=")
		k, known := imageKeys[key]
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case !known:
			return refuse("image key %q is not known: want %s", v,
				strings.Join(slices.Sorted(maps.Keys(imageKeys)), ", "))
		case k.formats != b.format.Name && !(key == "sparse-band-size" && b.format.AnyBand):
			return refuse("image key %s is for %s; this is %s", key, k.formats, b.format.Name)
		case err != nil || n < k.low || n > k.high:
			return refuse("%s %q: want %d to %d", key, text, k.low, k.high)
		case key == "sparse-band-size":
			b.band = n * sector
		default:
			b.level = int(n)
		}
	}
	return nil
}

// formatNamer is the name that a verb has for a format, "" for a format that it
// does not make.
type formatNamer func(f image.Format) string

// byType are the names of `hdiutil create -type`.
func byType(f image.Format) string { return f.CreateType }

// byFrom are the names of `diskutil image create from --format`.
func byFrom(f image.Format) string { return f.ImageType }

// byImage are the names of `diskutil image create blank --format`.
func byImage(f image.Format) string {
	if f.UDIF {
		return ""
	}
	return f.ImageType
}

// byConversion are the names of `hdiutil convert -format`.
func byConversion(f image.Format) string {
	if f.UDIF || f.CreateType != "" {
		return f.Name
	}
	return ""
}

// formatWords lists the formats that a verb makes, for help and messages.
func formatWords(name formatNamer) string {
	var words []string
	for _, f := range image.Formats {
		if w := name(f); w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}

// formatNamed finds a format by the name that a verb has for it.
func formatNamed(word string, name formatNamer) (image.Format, error) {
	for _, f := range image.Formats {
		if n := name(f); n != "" && strings.EqualFold(n, word) {
			return f, nil
		}
	}
	f, ok := image.FormatNamed(word)
	if !ok {
		return f, refuse("format %q is not known: want one of %s", word, formatWords(name))
	}
	return f, refuse("format %s is not made by this verb: want one of %s", f.Name, formatWords(name))
}

// byExtension is the format that belongs to a file name, else UDRW. Of the
// formats with .dmg that is UDRW, the first in the registry: the others are
// only made by convert.
func byExtension(name string) image.Format {
	extension := filepath.Ext(filepath.Clean(name)) // of "x.sparsebundle/" too, as shells complete it
	i := slices.IndexFunc(image.Formats, func(f image.Format) bool { return strings.EqualFold(extension, f.Extension) })
	return image.Formats[max(i, 0)]
}

// ours is the file system that this process makes without privileges.
const ours = "ExFAT"

// appleName is what -fs calls a file system of package attach.
func appleName(f attach.FS) string { return cmp.Or(f.AppleName, f.Name) }

// chooseFilesystem returns the file system of a name, or why it cannot be made:
// it is never replaced by another one. The error distinguishes file systems
// that are not made here, missing programs and missing rights.
func (c *call) chooseFilesystem(name string) (string, error) {
	f, ok := attach.FindFilesystem(c.env.Attacher.Filesystems(), name)
	switch {
	case strings.EqualFold(name, ours):
		return ours, nil
	case !ok:
		return "", refuse("file system %s cannot be made on this system; possible here: %s", printable(name),
			strings.Join(c.makeable(), ", "))
	case !f.Present && f.Tool != "":
		return "", refuse("file system %s needs the program %s, of the package %s", appleName(f), f.Tool, f.Package)
	case !c.env.Attacher.Loops():
		return "", refuse("file system %s needs loop devices and the rights of root; %s needs neither", appleName(f),
			ours)
	}
	return f.Name, nil
}

// makeable are the file systems that create can make and attach can mount on
// this machine. A file system that the kernel does not mount can still be made,
// for other machines.
func (c *call) makeable() []string {
	list := []string{ours}
	for _, f := range c.env.Attacher.Filesystems() {
		if name := appleName(f); f.Present && f.MountableByKernel && name != ours && c.env.Attacher.Loops() {
			list = append(list, name)
		}
	}
	return list
}

// defaultFilesystem is ext4 for root with loop devices and mkfs.ext4, where the
// kernel mounts it; else ExFAT.
func (c *call) defaultFilesystem() string {
	if c.env.UID == 0 && slices.Contains(c.makeable(), "ext4") {
		return "ext4"
	}
	return ours
}
