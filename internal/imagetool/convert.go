package imagetool

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"dmgbench/internal/container"
	diskimage "dmgbench/internal/image"
)

// convert is the verb of hdiutil.
func (c *call) convert() error {
	switch {
	case !c.has("-format"):
		return misused("no format: want -format")
	case !c.has("-o"):
		return misused("no new image: want -o")
	}
	f, err := formatNamed(c.value("-format"), byConversion)
	if err != nil {
		return err
	}
	band, err := c.targetKeys(f)
	if err != nil {
		return err
	}
	return c.convertTo(c.value("-o"), f, band)
}

// createFrom is `diskutil image create from`.
func (c *call) createFrom() error {
	f, err := c.imageFormat(c.operands[1], byFrom)
	if err != nil {
		return err
	}
	return c.convertTo(c.operands[1], f, 0)
}

// convertTo makes another image with the same device. band is 0 for the format's usual, in bytes.
func (c *call) convertTo(to string, f formatInfo, band int64) error {
	var made string
	err := c.withImage(c.operands[0], read, func(src *image) error {
		if err := c.warnOfRaw(src); err != nil {
			return err
		}
		p, err := c.target(to, f.extension)
		if err != nil {
			return err
		}
		defer p.close()
		if made = p.path; made == src.path {
			return refuse("the new image is the old one")
		}
		b := newImage{format: f, size: src.Size(), band: band}
		if b.encryption, err = c.encryption(); err != nil {
			return err
		}
		keepSums(src)
		return c.replace(p, func(tmp place) error {
			if f.readOnly {
				err = c.writeUDIF(tmp, src.Image, f, b.encryption)
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
func (c *call) writeContainer(to place, src *image, b newImage) error {
	if err := container.Create(to.dir, to.name, b.spec()); err != nil {
		return err
	}
	dst, err := container.Open(to.dir, to.name, container.OpenOptions{Passphrase: b.encryption.Passphrase})
	if err != nil {
		return err
	}
	o := container.CopyOptions{Present: storedRanges(src), Progress: c.newProgress(src.Size()).at}
	return errors.Join(container.Copy(c.ctx, dst, src.Image, o), dst.Close())
}

// storedRanges returns a function that reports whether a range of the device may be other than zero: where a bundle has
// bands. It is nil for other images.
func storedRanges(i *image) func(off, n int64) bool {
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
func (c *call) writeUDIF(to place, img container.Image, f formatInfo, e container.Encryption) error {
	level, tasks, err := c.compression(f)
	if err != nil {
		return err
	}
	p := c.newProgress(img.Size())
	return container.CreateUDIF(c.ctx, to.dir, to.name, img, container.UDIFSpec{Format: f.name, Level: level,
		Workers: tasks, Encryption: e, Progress: func(done, _ int64) { p.at(done) }})
}

// targetKeys checks the image keys of a new image and returns the size of its bands in bytes, 0 for the usual.
func (c *call) targetKeys(f formatInfo) (band int64, err error) {
	if f.readOnly {
		_, _, err = c.compression(f)
		return 0, err
	}
	for _, v := range c.opts["-imagekey"] {
		key, count, _ := strings.Cut(v, "=")
		band, err = parseSectors(count)
		switch {
		case key != "sparse-band-size":
			return 0, refuse("image key %q is not known: want sparse-band-size=SECTORS", v)
		case f.name != container.UDSB && f.name != container.UDSP:
			return 0, refuse("image key sparse-band-size is for sparse bundles and sparse images; this is %s", f.name)
		case err != nil || band < diskimage.MinBandSize || band > diskimage.MaxBandSize:
			return 0, refuse("bands of %s sectors: want %d to %d", count, diskimage.MinBandSize/sector,
				int64(diskimage.MaxBandSize)/sector)
		}
	}
	return band, nil
}

// levelKeys are the formats with levels, by the image keys that choose them.
var levelKeys = map[string]string{"zlib-level": diskimage.UDZO, "bzip2-level": diskimage.UDBZ}

// compression reads how a read-only image is compressed: its level, 0 for the usual, and how many chunks at once.
func (c *call) compression(f formatInfo) (level, tasks int, err error) {
	for _, v := range c.opts["-imagekey"] {
		key, value, _ := strings.Cut(v, "=")
		level, err = strconv.Atoi(value)
		switch {
		case levelKeys[key] == "":
			return 0, 0, refuse("image key %q is not known: want zlib-level=1 to 9, for UDZO, or bzip2-level=1 to 9, "+
				"for UDBZ", v)
		case f.name != levelKeys[key]:
			return 0, 0, refuse("image key %s is for %s; this is %s", key, levelKeys[key], f.name)
		case err != nil || level < 1 || level > 9:
			return 0, 0, refuse("%s %q: want 1 to 9", key, value)
		}
	}
	if c.has("-tasks") {
		if tasks, err = strconv.Atoi(c.value("-tasks")); err != nil || tasks < 1 || tasks > 1024 {
			return 0, 0, refuse("tasks %q: want a number from 1 to 1024", c.value("-tasks"))
		}
	}
	return level, tasks, nil
}
