package imagetool

import (
	"errors"
	"strconv"

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
	f, err := formatNamed(c.value("-format"), byConvert)
	if err != nil {
		return err
	}
	band, err := c.bandSize(f)
	if err != nil {
		return err
	}
	path, err := c.convertTo(c.operands[0], c.value("-o"), f, band)
	if err != nil {
		return err
	}
	return c.tellMade(path)
}

// convertTo makes another image with the same device. band is 0 for the format's usual.
func (c *call) convertTo(from, to string, f formatInfo, band int64) (path string, err error) {
	err = c.read(from, func(src place, img container.Image) error {
		p, err := c.target(to, f.extension)
		if err != nil {
			return err
		}
		defer p.close()
		path = p.path
		if path == src.path {
			return refuse("the new image is the old one")
		}
		return c.replacing(p, func(tmp place) error {
			spec := container.Spec{Format: containerFormat(f.name), Size: img.Size(), BandSize: band}
			if err := container.Create(tmp.dir, tmp.name, spec); err != nil {
				return err
			}
			dst, err := container.Open(tmp.dir, tmp.name, container.OpenOptions{})
			if err != nil {
				return err
			}
			return errors.Join(c.copyDevice(img, dst, present(src, img)), dst.Close())
		})
	})
	return path, err
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
