package imagetool

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"dmgbench/internal/container"
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
	band, err := c.imageKeys(f)
	if err != nil {
		return err
	}
	path, err := c.convertTo(c.operands[0], c.value("-o"), f, band)
	if err != nil {
		return err
	}
	return c.tellMade(path)
}

// imageKeys checks what else is said of a new image, and returns the size of its bands in bytes, 0 for the usual.
func (c *call) imageKeys(f formatInfo) (band int64, err error) {
	if !f.readOnly {
		return c.bandSize(f)
	}
	_, _, err = c.compression(f)
	return 0, err
}

// convertTo makes another image with the same device. band is 0 for the format's usual.
func (c *call) convertTo(from, to string, f formatInfo, band int64) (path string, err error) {
	err = c.read(from, func(src place, img container.Image) error {
		if err := c.remarkRaw(src, img); err != nil {
			return err
		}
		p, err := c.target(to, f.extension)
		if err != nil {
			return err
		}
		defer p.close()
		path = p.path
		if path == src.path {
			return refuse("the new image is the old one")
		}
		e, err := c.encryption()
		if err != nil {
			return err
		}
		keepSums(img)
		return c.replacing(p, func(tmp place) error {
			spec := container.Spec{Format: containerFormat(f.name), Size: img.Size(), BandSize: band, Encryption: e}
			if f.readOnly {
				err = c.writeUDIF(tmp, img, f, e)
			} else {
				err = c.writeOther(tmp, img, spec, present(src, img))
			}
			return cmp.Or(err, c.checkRead(img))
		})
	})
	return path, err
}

// writeOther makes an image that can be written to.
func (c *call) writeOther(to place, img container.Image, s container.Spec, present func(off, n int64) bool) error {
	if err := container.Create(to.dir, to.name, s); err != nil {
		return err
	}
	dst, err := container.Open(to.dir, to.name, container.OpenOptions{Passphrase: s.Encryption.Passphrase})
	if err != nil {
		return err
	}
	return errors.Join(c.copyDevice(img, dst, present), dst.Close())
}

// writeUDIF makes a read-only image.
func (c *call) writeUDIF(to place, img container.Image, f formatInfo, e container.Encryption) error {
	level, tasks, err := c.compression(f)
	if err != nil {
		return err
	}
	p := c.newProgress(img.Size())
	return container.CreateUDIF(c.ctx, to.dir, to.name, img, container.UDIFSpec{Format: f.name, Level: level, Workers: tasks, Encryption: e,
		Progress: func(done, _ int64) { p.at(done) }})
}

// levelKeys are the formats that have levels, by the image keys that choose them.
var levelKeys = map[string]string{"zlib-level": "UDZO", "bzip2-level": "UDBZ"}

// compression reads how a read-only image is compressed.
func (c *call) compression(f formatInfo) (level, tasks int, err error) {
	for _, v := range c.opts["-imagekey"] {
		key, value, _ := strings.Cut(v, "=")
		n, err := strconv.Atoi(value)
		switch {
		case levelKeys[key] == "":
			return 0, 0, refuse("image key %q is not known: want zlib-level=1 to 9, for UDZO, or bzip2-level=1 to 9, for UDBZ", v)
		case f.name != levelKeys[key]:
			return 0, 0, refuse("image key %s is for %s; this is %s", key, levelKeys[key], f.name)
		case err != nil || n < 1 || n > 9:
			return 0, 0, refuse("%s %q: want 1 to 9", key, value)
		}
		level = n
	}
	if c.has("-tasks") {
		if tasks, err = strconv.Atoi(c.value("-tasks")); err != nil || tasks < 1 || tasks > 1024 {
			return 0, 0, refuse("tasks %q: want a number from 1 to 1024", c.value("-tasks"))
		}
	}
	return level, tasks, nil
}

// present says where an image may hold something else than zeros: where a bundle has bands.
func present(p place, img container.Image) func(off, n int64) bool {
	all := func(int64, int64) bool { return true }
	band := img.BandSize()
	if band == 0 {
		return all
	}
	entries, err := p.dir.ReadDir(p.name + "/bands")
	if err != nil {
		return all
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
