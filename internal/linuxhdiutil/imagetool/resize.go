package imagetool

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/units"
)

// resize is the verb of both tools: it resizes the image or prints the limits
// of its size. A volume that a program of the host grows is attached after the
// image and its partition have their new size, without mounting it; if the
// program fails, they keep that size, and the same resize tries it again.
func (c *call) resize() error {
	size, smallest, err := c.readSize()
	if err != nil {
		return err
	}
	if c.has("limits") || !c.has("size") && !c.has("sectors") {
		return c.printLimits()
	}
	var s shape
	var path string
	progress := c.newProgress(0)
	err = c.withImage(c.operands[0], change, func(i *imageFile) (err error) {
		path = i.path
		if s, err = c.shapeOf(i); err != nil {
			return err
		}
		if smallest {
			size = s.min
		}
		switch {
		case size < s.min:
			return refuse("%d sectors are too few: at least %d (%s)", size/sector, s.min/sector, s.why)
		case size > s.max:
			return refuse("%d sectors are too many: at most %d (%s)", size/sector, s.max/sector, s.why)
		}
		return s.resize(c, i.Image, size)
	})
	if err == nil && s.kind != "" && s.kind != ours { // also at its present size: a resize may have been killed
		err = c.withDevice(path, "growing its volume", func(a attach.Attached) error {
			if err := c.env.Attacher.Grow(c.ctx, a); err != nil {
				return fmt.Errorf("growing the volume (image and partition have their new size, the same resize "+
					"tries again): %w", err)
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	progress(0)
	if c.has("plist") {
		return c.printLimits()
	}
	return nil
}

// printLimits prints the limits of the size: in sectors for hdiutil, in bytes
// for diskutil. A read-only image has one size.
func (c *call) printLimits() error {
	return c.withImage(c.operands[0], read, func(i *imageFile) error {
		s, err := c.shapeOf(i)
		if err != nil {
			return err
		}
		if i.tables() != nil { // a read-only image
			s.min, s.max = s.current, s.current
		}
		unit, format := int64(1), "current: %[2]d\nmin: %[1]d\nmax: %[3]d\n"
		if c.tool == "hdiutil" {
			unit, format = sector, "%d\t%d\t%d\n"
		}
		low, current, high := s.min/unit, s.current/unit, s.max/unit
		return c.printResult(dict{"min": low, "current": current, "max": high}, format, low, current, high)
	})
}

// shape is how an image is divided, and what that means for its size. From the
// outside in an image has a container, a partition table with a backup at its
// end, a last partition and a volume; some of them may be missing.
type shape struct {
	// min, current and max are sizes of the device in bytes.
	min, current, max int64
	// last is the last partition, or the whole device without a table.
	last attach.Region
	// move means that the partition, or the volume without one, is resized with
	// the image.
	move bool
	// kind is the file system that is resized, too: ours in this process,
	// others grow by a program of the host; "" for none.
	kind string
	// table is how many bytes the backup table takes at the end of the device.
	table int64
	// why is the reason for the limits.
	why string
}

// start and end are where the last partition starts and ends, in bytes.
func (s shape) start() int64 { return s.last.First * sector }
func (s shape) end() int64   { return (s.last.First + s.last.Count) * sector }

// shapeOf finds the limits: an ExFAT volume shrinks to its highest used cluster
// and grows as far as its allocation table has room; other volumes grow where a
// program of the host can do it; -imageonly moves only the backup partition
// table.
func (c *call) shapeOf(i *imageFile) (s shape, err error) {
	s.current, s.max, s.min, s.why = i.Size(), maxSize, sector, "the contents of the image"
	defer func() { // the present size is always possible, and limits are whole sectors
		s.min, s.max = min(s.min, s.current), max(s.max, s.current)/sector*sector
	}()
	info, err := i.inspect()
	if err == nil {
		err = info.Damage
	}
	if err == nil {
		err = checkStaleTable(i, info)
	}
	if err != nil {
		return s, err
	}
	s.last = info.Last()
	if t := info.Table; t != nil {
		s.table = int64(t.EntrySectors()+1) * sector
		s.min = units.RoundUp(sector+s.table, 4096) + s.table + 4096
	}
	switch kind := s.last.Volume.AppleName; {
	case s.last.Count == 0: // a table without partitions
	case info.Table == nil && kind == "":
		s.min, err = usedSize(i, info, c.has("imageonly"))
	case c.has("imageonly"):
		s.min = s.end() + s.table
	case kind == ours:
		s.move, s.kind = true, kind
		s.why = "the volume's used clusters, and the room in its allocation table"
		err = s.withExFAT(i.Image, exfat.MountOptions{ReadOnly: true}, func(v *exfat.Volume) error {
			s.min = units.RoundUp(s.start()+v.MinSize(), 4096) + s.table
			s.max = (s.start()+v.MaxSize())/4096*4096 + s.table
			return nil
		})
	case kind != "":
		if err := c.env.Attacher.CheckGrow(kind); err != nil {
			return s, refuse("%s volumes: %v; -imageonly resizes the image alone", kind, err)
		}
		s.move, s.kind, s.min, s.why = true, kind, s.current, kind+" volumes only grow"
	default:
		s.move, s.min = true, s.end()+s.table
	}
	return s, err
}

// usedSize is the smallest size of a device that is not a volume and has no
// GUID table, in bytes. Unknown contents and partitions of another scheme are
// cut only with -imageonly, as its user knows them, and never within a
// partition; a blank device has no data to lose.
func usedSize(i *imageFile, info *attach.ImageInfo, imageOnly bool) (int64, error) {
	if blank, err := isBlank(i, 128<<10); err != nil || !blank && !imageOnly {
		return i.Size(), err
	}
	end := int64(sector)
	for _, r := range info.Regions {
		if info.Scheme != attach.SchemeNone && r.Hint != udif.FreeType {
			end = max(end, (r.First+r.Count)*sector)
		}
	}
	return end, nil
}

// withExFAT mounts the volume for the time of f.
func (s shape) withExFAT(img blockdev.Device, o exfat.MountOptions, f func(v *exfat.Volume) error) error {
	vol, err := s.last.Section(img)
	if err != nil {
		return err
	}
	v, err := exfat.Mount(vol, o)
	if err != nil {
		return err
	}
	return errors.Join(f(v), v.Unmount())
}

// checkStaleTable refuses a table if only its backup is left, with other data
// in the place of the first: most likely the whole device was given a file
// system, which restoring the table would overwrite.
func checkStaleTable(i *imageFile, info *attach.ImageInfo) error {
	if !slices.Contains(info.Warnings, gpt.WarnPrimary) || !slices.Contains(info.Warnings, gpt.WarnNoMBR) {
		return nil
	}
	if blank, err := isBlank(i, int64(2+info.Table.EntrySectors())*sector); err != nil || blank {
		return err
	}
	return refuse("only the backup of the partition table is left at the end, and the data at the start is not a " +
		"table: repair one of them first")
}

// resize shrinks from the inside out: volume, partition table, container. It
// grows from the outside in. So no layer ever reaches beyond the one below, and a
// resize that is killed between two of them can be repeated.
func (s *shape) resize(c *call, img container.Image, size int64) (err error) {
	length, index := size, -1 // of the last partition, or of the volume without one; -1: no partition moves
	if s.table > 0 {
		length = (size-s.table)/4096*4096 - s.start()
	}
	if s.table > 0 && s.move {
		index = s.last.Number - 1
	}
	volume := func() error {
		if s.kind != ours {
			return nil
		}
		return s.withExFAT(img, exfat.MountOptions{Now: c.env.Now}, func(v *exfat.Volume) error {
			return v.Resize(length)
		})
	}
	table := func() (err error) { // the backup goes to the end, and with it the end of the last partition
		if s.last.Count = length / sector; s.table > 0 {
			_, err = gpt.Resize(img, size, index)
		}
		return err
	}
	steps := []func() error{volume, table, func() error { return img.Resize(size) }}
	if size >= s.current {
		slices.Reverse(steps)
		if s.table > 0 { // if only the backup is whole: it is found at the end of the device, which will be elsewhere
			_, err = gpt.Resize(img, img.Size(), -1)
		}
	}
	for i := 0; i < len(steps) && err == nil; i++ {
		err = steps[i]()
	}
	return err
}

// compact deletes unused bands: those that an ExFAT volume does not use, and of
// other contents those that are all zeros. The three lines that it prints, and
// the keys of its property list, are Apple's.
func (c *call) compact(i *imageFile) error {
	if i.BandSize() == 0 {
		_, err := i.Compact(nil) // the error of a format without bands
		return err
	}
	text := func(format string, args ...any) {
		if !c.has("plist") {
			_ = c.printf(format, args...)
		}
	}
	text("Starting to compact…\n")
	progress := c.newProgress(0)
	free, possible, err := freeSpace(i)
	if err != nil {
		return err
	}
	var used func(off, n int64) bool
	if free != nil {
		used = free.Used
	} else if possible > 0 {
		c.warn("the volume was not unmounted cleanly: only bands of zeros are given back. Check it first.")
	}
	text("Reclaiming free space…\n")
	got, err := i.Compact(used)
	if err != nil {
		return err
	}
	progress(0)
	possible = max(got, possible)
	return c.printResult(dict{"reclaimed-bytes": got, "possible-bytes": possible},
		"Finishing compaction…\nReclaimed %s out of %s possible.\n", appleSize(got), appleSize(possible))
}

// freeSpace is what the ExFAT volume of a device does not use, and how many
// bytes that is. It is nil for other contents, and of a volume that was not
// unmounted cleanly, because its bitmap may lack the clusters of a file: then
// only zeros are known to be unused.
func freeSpace(i *imageFile) (exfat.Spans, int64, error) {
	info, err := i.inspect()
	if err != nil || info.Damage != nil || info.Last().Volume.AppleName != ours {
		return nil, 0, nil // an unknown table or content is left as it is
	}
	last := info.Last()
	vol, err := last.Section(i.Image)
	if err != nil {
		return nil, 0, err
	}
	free, possible, err := exfat.FreeSpace(vol, last.First*sector)
	if errors.Is(err, exfat.ErrNotExFAT) || errors.Is(err, exfat.ErrCorrupt) || errors.Is(err, exfat.ErrUnsupported) {
		return nil, 0, nil
	}
	return free, possible, err
}

// sector is the unit of sizes in lists and options.
const sector = container.SectorSize // bytes

// maxSize bounds sizes in bytes: what containers and offsets can hold.
const maxSize = image.MaxSize

// sizeStyle is how one tool reads sizes.
type sizeStyle struct {
	units map[string]int64 // bytes, by the name of the unit
	step  int64            // sizes are rounded up to a multiple of this, in bytes
	want  string           // after "is not a size: want"
}

// sizeStyles are the styles of the two tools: hdiutil's is that of mkfile(8),
// in which all multiples are binary.
var sizeStyles = map[string]sizeStyle{
	"hdiutil": {map[string]int64{"": 1, "b": sector, "B": sector}, sector,
		"a number and b (sectors of 512 bytes), k, m, g, t, p or e (binary multiples)"},
	"diskutil": {map[string]int64{"": 1, "B": 1, "S": sector, "UAM": sector}, 4096,
		"a number and B, K, M, G, T, P, E (decimal), Ki … Ei (binary) or S (sectors of 512 bytes)"},
}

// init adds the units that are multiples of each other.
func init() {
	binary, decimal := int64(1), int64(1)
	for letter := range strings.SplitSeq("KMGTPE", "") {
		binary, decimal = binary<<10, decimal*1000
		sizeStyles["hdiutil"].units[letter] = binary
		sizeStyles["hdiutil"].units[strings.ToLower(letter)] = binary
		for suffix, unit := range map[string]int64{"": decimal, "B": decimal, "i": binary, "iB": binary} {
			sizeStyles["diskutil"].units[letter+suffix] = unit
		}
	}
}

// sizePattern bounds the numbers, so that hostile arguments cost no memory.
var sizePattern = regexp.MustCompile(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)([A-Za-z]*)$`)

// parseSize reads a size as a tool does: a number, possibly with a fraction,
// and a unit. The result is in bytes, rounded up to whole steps of the tool. It
// is exact: no size passes through a floating-point number.
func parseSize(tool, s string) (int64, error) {
	style := sizeStyles[tool]
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		m = []string{"", "", "no unit"}
	}
	unit, ok := style.units[m[2]]
	if !ok {
		return 0, fmt.Errorf("%q is not a size: want %s", s, style.want)
	}
	number, _ := new(big.Rat).SetString(m[1]) // which the pattern allows
	number.Mul(number, big.NewRat(unit, style.step))
	steps, rest := new(big.Int).QuoRem(number.Num(), number.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		steps.Add(steps, big.NewInt(1))
	}
	switch {
	case steps.Sign() == 0:
		return 0, fmt.Errorf("the size %s is zero", s)
	case steps.Cmp(big.NewInt(maxSize/style.step)) > 0:
		return 0, fmt.Errorf("a size of %s is more than %d bytes", s, int64(maxSize))
	}
	return steps.Int64() * style.step, nil
}

// wholeNumber is the form of the numbers of -sectors and -megabytes.
var wholeNumber = regexp.MustCompile("^0*[1-9][0-9]*$")

// readSize returns the size in bytes that the options name, 0 if none does, and
// whether it is the smallest possible one, which resize takes.
func (c *call) readSize() (size int64, smallest bool, err error) {
	for key, unit := range map[string]string{"size": "", "sectors": "b", "megabytes": "m"} { // of which one is given
		switch text := c.value(key); {
		case !c.has(key):
			continue
		case text == "min" && strings.HasSuffix(c.verb.Name, "resize"):
			return 0, true, nil
		case unit != "" && !wholeNumber.MatchString(text):
			err = fmt.Errorf("%q is not a positive whole number", text)
		default:
			size, err = parseSize(c.tool, text+unit)
		}
		if err != nil {
			return 0, false, usageErrorf("option %s: %v", c.verb.optionName(key), err)
		}
	}
	return size, false, nil
}

// appleSize is a size as hdiutil prints it: binary multiples with at most one
// decimal, "4 MB", "1023.6 GB", "0 bytes".
func appleSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	v, unit := float64(n), ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB", "EB"} {
		if v /= 1024; v < 1023.95 {
			break
		}
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + unit
}
