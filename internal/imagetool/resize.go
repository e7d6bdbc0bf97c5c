package imagetool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// resizing is what either tool asks for.
type resizing struct {
	limits    bool // only show them
	imageOnly bool
	smallest  bool
	size      func() (int64, error) // bytes
	print     func(limits) error
}

// limits of an image's size, in bytes.
type limits struct{ min, current, max int64 }

// resize is the verb of hdiutil.
func (c *call) resize() error {
	given := c.has("-size") || c.has("-sectors")
	switch {
	case c.has("-size") && c.has("-sectors"):
		return misused("both -size and -sectors")
	case given && c.has("-limits"):
		return misused("a size and -limits")
	case !given && !c.has("-limits"):
		return misused("no size: want -size, -sectors or -limits")
	}
	return c.resizeTo(c.operands[0], resizing{
		limits: c.has("-limits"), imageOnly: c.has("-imageonly"),
		smallest: c.value("-size") == "min" || c.value("-sectors") == "min",
		size: func() (n int64, err error) {
			if c.has("-sectors") {
				n, err = parseCount(c.value("-sectors"), sector)
			} else {
				n, err = parseSize(c.value("-size"))
			}
			if err != nil {
				err = misused("%v", err)
			}
			return n, err
		},
		print: func(l limits) error {
			if c.has("-plist") {
				return c.printPlist(list{"min": l.min / sector, "current": l.current / sector, "max": l.max / sector})
			}
			_, err := fmt.Fprintf(c.out, "%d\t%d\t%d\n", l.min/sector, l.current/sector, l.max/sector)
			return err
		},
	})
}

func (c *call) resizeTo(operand string, r resizing) error {
	if r.limits {
		return c.read(operand, func(_ place, img container.Image) error {
			s, err := c.shapeOf(img, r.imageOnly)
			if err != nil {
				return err
			}
			if _, sealed := img.(container.Tabled); sealed { // there is no other size
				s.min, s.max = s.current, s.current
			}
			return r.print(s.limits)
		})
	}
	var size int64
	var err error
	if !r.smallest {
		if size, err = r.size(); err != nil {
			return err
		}
	}
	var s shape
	var path string
	progress := c.newProgress(0)
	err = c.change(operand, func(p place, img container.Image) error {
		path = p.path
		if s, err = c.shapeOf(img, r.imageOnly); err != nil {
			return err
		}
		if r.smallest {
			size = s.min
		}
		switch {
		case size < s.min:
			return refuse("%d sectors are too few: at least %d (%s)", size/sector, s.min/sector, s.why())
		case size > s.max:
			return refuse("%d sectors are too many: at most %d (%s)", size/sector, s.max/sector, s.why())
		case size < s.current:
			return s.shrink(c, img, size)
		}
		return s.grow(c, img, size)
	})
	if err == nil && s.foreign != "" { // at its present size, too: a resize that was killed may have left the volume smaller
		err = c.growAttached(path)
	}
	if err != nil {
		return err
	}
	progress.at(0)
	if r.limits = c.has("-plist") || c.has("--plist"); r.limits {
		return c.resizeTo(operand, r)
	}
	return nil
}

// shape is how an image is divided, and what that means for its size.
type shape struct {
	limits
	part    *gpt.Partition // nil: the volume takes the whole device
	move    bool           // partition or volume are resized with the image
	ours    bool           // an ExFAT volume is resized too
	foreign string         // a file system that a program of the host lets grow
	table   int64          // bytes that the backup table takes
	backup  bool           // which is the only whole one
}

func (s shape) why() string {
	switch {
	case s.ours:
		return "the volume's used clusters, and the room in its allocation table"
	case s.foreign != "":
		return s.foreign + " volumes only grow"
	}
	return "what is on the image"
}

// shapeOf finds the limits: an ExFAT volume shrinks to its highest used cluster and grows as
// far as its allocation table has room; other volumes grow where a program of the host can do
// it; -imageonly moves the backup partition table and nothing else. What is not understood is
// not cut: see taken.
func (c *call) shapeOf(img container.Image, imageOnly bool) (s shape, err error) {
	s.current, s.max, s.min = img.Size(), maxSize, sector
	t, warnings, err := gpt.Read(img)
	if err != nil && !errors.Is(err, gpt.ErrNoTable) {
		return s, err
	}
	if t != nil {
		s.table = int64(t.EntrySectors()+1) * sector
		s.min = roundUp(sector+s.table, 4096) + s.table + 4096
		s.backup = slices.Contains(warnings, gpt.WarnPrimary)
		if err := stale(img, t, warnings); err != nil {
			return s, err
		}
	}
	vol, p, err := volume(img)
	if err != nil || vol == nil {
		s.settle()
		return s, err
	}
	s.part = p
	k := attach.Identify(vol)
	begin, end := int64(0), vol.Size()
	if p != nil {
		begin, end = p.Offset(), p.Offset()+p.Size()
	}
	switch {
	case imageOnly && (p != nil || k.AppleName != ""):
		s.min = end + s.table
	case imageOnly:
	case k.AppleName == ours:
		v, err := exfat.Mount(vol, exfat.MountOptions{ReadOnly: true})
		if err != nil {
			return s, err
		}
		s.move, s.ours = true, true
		s.min, s.max = roundUp(begin+v.MinSize(), 4096)+s.table, (begin+v.MaxSize())/4096*4096+s.table
		if err := v.Unmount(); err != nil {
			return s, err
		}
	case k.AppleName != "":
		if err := c.env.Attacher.CanGrow(k.AppleName); err != nil {
			return s, refuse("%s volumes: %v; -imageonly resizes the image alone", k.AppleName, err)
		}
		s.move, s.foreign, s.min = true, k.AppleName, s.current
	case p != nil:
		s.move = true
		s.min = end + s.table
	}
	if p == nil && k.AppleName == "" {
		s.min, err = taken(img, imageOnly)
	}
	s.settle()
	return s, err
}

// taken is how long a device has to stay that is no volume and has no GUID table: up to the end of the last
// partition of another scheme, which is all that is known of it. Content that nobody knows is cut with -imageonly
// alone, as whoever asks for that knows it; a blank device has nothing to lose. A hybrid has a CD's volume under the
// map, which goes on behind the partitions.
func taken(img container.Image, imageOnly bool) (int64, error) {
	layout, err := udif.ProbeLayout(img, img.Size())
	if err != nil {
		return 0, err
	}
	end := int64(sector)
	if layout.Scheme == udif.SchemeNone {
		blank, err := blankStart(img, 128<<10)
		if err == nil && !blank && !imageOnly {
			end = img.Size()
		}
		return end, err
	}
	if hybrid, err := onCD(img); err != nil || hybrid && !imageOnly {
		return img.Size(), err
	}
	for _, g := range layout.Regions {
		if !strings.HasPrefix(g.Name, " (Apple_Free : ") {
			end = max(end, int64(g.First+g.Sectors)*sector)
		}
	}
	return end, nil
}

// onCD says whether there is an ISO 9660 volume on the device, or one of UDF in the same place.
func onCD(img container.Image) (bool, error) {
	const at = 16*2048 + 1 // behind the type of the first volume descriptor
	mark := make([]byte, 5)
	if img.Size() < at+int64(len(mark)) {
		return false, nil
	}
	if n, err := img.ReadAt(mark, at); err != nil && n < len(mark) {
		return false, err
	}
	return string(mark) == "CD001" || string(mark) == "BEA01", nil
}

// stale refuses a table of which the backup alone is left, and something else in the place of the first: most likely the
// device was given a file system as a whole, which putting the table back would overwrite.
func stale(img container.Image, t *gpt.Table, warnings []gpt.Warning) error {
	if !slices.Contains(warnings, gpt.WarnPrimary) || !slices.Contains(warnings, gpt.WarnNoMBR) {
		return nil
	}
	if blank, err := blankStart(img, int64(2+t.EntrySectors())*sector); err != nil || blank {
		return err
	}
	return refuse("of the partition table only the backup at the end is left, and what stands at the start is no table: repair one of them first")
}

// blankStart says whether the first n bytes are zero, where file systems and partition tables have their signatures.
func blankStart(img container.Image, n int64) (bool, error) {
	head := make([]byte, min(n, img.Size()))
	if n, err := img.ReadAt(head, 0); err != nil && (n < len(head) || !errors.Is(err, io.EOF)) {
		return false, err
	}
	return bytes.Count(head, []byte{0}) == len(head), nil
}

// settle makes the present size one of the possible ones, and limits whole sectors.
func (s *shape) settle() {
	s.min, s.max = min(s.min, s.current), max(s.max, s.current)
	s.max = s.max / sector * sector
}

func roundUp(v, unit int64) int64 { return (v + unit - 1) / unit * unit }

// index is the partition that moves its end with the image, -1 for none.
func (s shape) index() int {
	if s.part == nil || !s.move {
		return -1
	}
	return s.part.Index
}

// shrink goes from the inside out, so that no layer ever reaches beyond the one below.
func (s shape) shrink(c *call, img container.Image, size int64) error {
	if s.ours {
		length := size
		if s.part != nil {
			length = (size-s.table)/4096*4096 - s.part.Offset()
		}
		vol, _, err := volume(img)
		if err != nil {
			return err
		}
		if err := resizeOurs(c, vol, length); err != nil {
			return err
		}
	}
	if s.table > 0 {
		if _, err := gpt.Resize(img, size, s.index()); err != nil {
			return err
		}
	}
	return img.Resize(size)
}

// grow goes from the outside in.
func (s shape) grow(c *call, img container.Image, size int64) error {
	if s.backup { // it is found at the end of the device alone, which will be elsewhere
		if _, err := gpt.Grow(img); err != nil {
			return err
		}
	}
	if err := img.Resize(size); err != nil {
		return err
	}
	if s.table > 0 {
		if _, err := gpt.Resize(img, size, s.index()); err != nil {
			return err
		}
	}
	if !s.ours {
		return nil
	}
	vol, _, err := volume(img)
	if err != nil {
		return err
	}
	return resizeOurs(c, vol, vol.Size())
}

func resizeOurs(c *call, vol blockdev.Device, size int64) error {
	v, err := exfat.Mount(vol, exfat.MountOptions{Now: c.env.Now})
	if err != nil {
		return err
	}
	return errors.Join(v.Resize(size), v.Unmount())
}

// growAttached lets a program of the host grow the volume of the larger image.
func (c *call) growAttached(path string) (err error) {
	a, err := c.env.Attacher.Attach(c.ctx, Request{Image: path, NoMount: true, Temporary: true, Keys: c.secrets.keys[path]})
	if err != nil {
		return err
	}
	defer func() {
		_, e := c.env.Attacher.Detach(detached(c.ctx), a, err != nil)
		err = errors.Join(err, e)
	}()
	if err := c.env.Attacher.Grow(c.ctx, a); err != nil {
		return fmt.Errorf("growing the volume (image and partition have their new size, the same resize tries again): %w", err)
	}
	return nil
}
