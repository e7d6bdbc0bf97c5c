package imagetool

import (
	"cmp"
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/linuxhdiutil/attach"
)

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
	hint := ""
	if byConversion(f) == "" { // ASIF, which Apple's hdiutil does not make either
		hint = fmt.Sprintf("; %s is made by 'diskutil image create'", f.ImageType)
	}
	return f, refuse("format %s is not made by this verb: want one of %s%s", f.Name, formatWords(name), hint)
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

// parseCount reads a positive whole number of units, such as sectors, and
// returns it in bytes. unit is in bytes, too.
func parseCount(s string, unit int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n <= 0 || strings.HasPrefix(s, "+"):
		return 0, fmt.Errorf("%q is not a positive whole number", s)
	case n > maxSize/unit:
		return 0, fmt.Errorf("%s times %d bytes is more than %d", s, unit, int64(maxSize))
	}
	return n * unit, nil
}

// readSize returns the size in bytes that the options name, 0 if none does, and
// whether it is the smallest possible one, which resize takes.
func (c *call) readSize() (size int64, smallest bool, err error) {
	for _, key := range []string{"size", "sectors", "megabytes"} {
		switch text := c.value(key); {
		case !c.has(key):
			continue
		case text == "min" && strings.HasSuffix(c.verb.Name, "resize"):
			return 0, true, nil
		case key == "size":
			size, err = parseSize(c.tool, text)
		case key == "sectors":
			size, err = parseCount(text, sector)
		default:
			size, err = parseCount(text, 1<<20)
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
