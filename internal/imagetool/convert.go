package imagetool

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/image"
)

// convert is the verb of hdiutil, and `diskutil image create from`: it makes another image with the same device.
func (c *call) convert() (err error) {
	b, to := newImage{}, c.value("o")
	if c.tool == "diskutil" {
		to = c.operands[1]
		b.format, err = c.imageFormat(to, byFrom)
	} else if b.format, err = formatNamed(c.value("format"), byConversion); err == nil {
		b.band, err = c.targetKeys(b.format)
	}
	if err != nil {
		return err
	}
	var made string
	err = c.withImage(c.operands[0], read, func(src *imageFile) error {
		if err := c.warnOfRaw(src); err != nil {
			return err
		}
		p, err := c.target(to, b.format.Extension)
		if err != nil {
			return err
		}
		defer p.close()
		if made = p.path; made == src.path {
			return refuse("the new image is the old one")
		}
		b.size = src.Size()
		if b.encryption, err = c.encryption(); err != nil {
			return err
		}
		keepSums(src)
		return c.replace(p, func(tmp place) error {
			if b.format.UDIF {
				err = c.writeUDIF(tmp, src.Image, b.format, b.encryption)
			} else {
				err = c.writeContainer(tmp, src, b)
			}
			return cmp.Or(err, c.checkRead(src))
		})
	})
	if err != nil {
		return err
	}
	return c.printMade(made)
}

// writeContainer makes an image that can be written to, and copies what is not zero.
func (c *call) writeContainer(to place, src *imageFile, b newImage) error {
	if err := b.makeContainer(to); err != nil {
		return err
	}
	dst, err := b.open(to)
	if err != nil {
		return err
	}
	o := container.CopyOptions{Present: storedRanges(src), Progress: c.newProgress(src.Size()).at}
	return errors.Join(container.Copy(c.ctx, dst, src.Image, o), dst.Close())
}

// storedRanges returns a function that reports whether a range of the device may be other than zero: where a bundle has
// bands. It is nil for other images.
func storedRanges(i *imageFile) func(off, n int64) bool {
	band := i.BandSize()
	entries, err := i.dir.ReadDir(i.name + "/bands")
	if band == 0 || err != nil {
		return nil
	}
	have := map[int64]bool{}
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 16, 64); err == nil {
			have[n] = true
		}
	}
	return func(off, n int64) bool {
		for i := off / band; i <= (off+n-1)/band; i++ {
			if have[i] {
				return true
			}
		}
		return false
	}
}

// writeUDIF makes a read-only image.
func (c *call) writeUDIF(to place, img container.Image, f image.Format, e container.Encryption) error {
	level, tasks, err := c.compression(f)
	if err != nil {
		return err
	}
	p := c.newProgress(img.Size())
	return container.CreateUDIF(c.ctx, to.dir, to.name, img, container.UDIFSpec{Format: f.Name, Level: level,
		Workers: tasks, Encryption: e, Progress: func(done, _ int64) { p.at(done) }})
}

// targetKeys checks the image keys of a new image and returns the size of its bands in bytes, 0 for the usual.
func (c *call) targetKeys(f image.Format) (band int64, err error) {
	if f.UDIF {
		_, _, err = c.compression(f)
		return 0, err
	}
	for _, v := range c.opts["imagekey"] {
		key, count, _ := strings.Cut(v, "=")
		band, err = parseCount(count, sector)
		switch {
		case key != "sparse-band-size":
			return 0, refuse("image key %q is not known: want sparse-band-size=SECTORS", v)
		case !f.AnyBand:
			return 0, refuse("image key sparse-band-size is for sparse bundles and sparse images; this is %s", f.Name)
		case err != nil || image.CheckBandSize(band) != nil:
			return 0, refuse("bands of %s sectors: want %d to %d", count, image.MinBandSize/sector,
				int64(image.MaxBandSize)/sector)
		}
	}
	return band, nil
}

// levelKeys are the formats with levels, by the image keys that choose them.
var levelKeys = map[string]string{"zlib-level": image.UDZO, "bzip2-level": image.UDBZ}

// compression reads how a read-only image is compressed: its level, 0 for the usual, and how many chunks at once.
func (c *call) compression(f image.Format) (level, tasks int, err error) {
	for _, v := range c.opts["imagekey"] {
		key, value, _ := strings.Cut(v, "=")
		level, err = strconv.Atoi(value)
		switch {
		case levelKeys[key] == "":
			return 0, 0, refuse("image key %q is not known: want zlib-level=1 to 9, for UDZO, or bzip2-level=1 to 9, "+
				"for UDBZ", v)
		case f.Name != levelKeys[key]:
			return 0, 0, refuse("image key %s is for %s; this is %s", key, levelKeys[key], f.Name)
		case err != nil || level < 1 || level > 9:
			return 0, 0, refuse("%s %q: want 1 to 9", key, value)
		}
	}
	if c.has("tasks") {
		if tasks, err = strconv.Atoi(c.value("tasks")); err != nil || tasks < 1 || tasks > 1024 {
			return 0, 0, refuse("tasks %q: want a number from 1 to 1024", c.value("tasks"))
		}
	}
	return level, tasks, nil
}
