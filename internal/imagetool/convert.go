package imagetool

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/image"
)

// convert is the verb of hdiutil, and `diskutil image create from`: it makes
// another image with the same device. Every byte of the device is copied, free
// space of volumes included. Afterwards the checksums that a UDIF source stores
// are compared with what was read; with a difference the new image is deleted,
// unless -noverify keeps it.
func (c *call) convert() (err error) {
	b, to := newImage{}, c.value("o")
	if c.tool == "diskutil" {
		to = c.operands[1]
		b.format, err = c.imageFormat(to, byFrom)
	} else if b.format, err = formatNamed(c.value("format"), byConversion); err == nil {
		err = c.setImageKeys(&b)
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
				err = c.writeUDIF(tmp, src.Image, b)
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

// writeContainer makes an image that can be written to, and copies what is not
// zero.
func (c *call) writeContainer(to place, src *imageFile, b newImage) error {
	if err := b.makeContainer(to); err != nil {
		return err
	}
	dst, err := b.open(to)
	if err != nil {
		return err
	}
	o := container.CopyOptions{Progress: c.newProgress(src.Size()).at}
	return errors.Join(container.Copy(c.ctx, dst, src.Image, o), dst.Close())
}

// writeUDIF makes a read-only image of the device of img.
func (c *call) writeUDIF(to place, img container.Image, b newImage) error {
	tasks := 0 // as many as there are processors
	if c.has("tasks") {
		var err error
		if tasks, err = strconv.Atoi(c.value("tasks")); err != nil || tasks < 1 || tasks > 1024 {
			return refuse("tasks %q: want a number from 1 to 1024", c.value("tasks"))
		}
	}
	p := c.newProgress(img.Size())
	return container.CreateUDIF(c.ctx, to.dir, to.name, img, container.UDIFSpec{Format: b.format.Name, Level: b.level,
		Workers: tasks, Encryption: b.encryption, Progress: func(done, _ int64) { p.at(done) }})
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
