package imagetool

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"dmgbench/internal/container"
)

// sector is the unit of sizes in lists and options.
const sector = container.SectorSize // bytes

// maxSize bounds sizes in bytes: what containers and offsets can hold.
const maxSize = 1 << 60

// The sizes that the two tools accept. The numbers are bounded, so that hostile arguments cost no memory.
var (
	hdiutilSize  = regexp.MustCompile(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)([bkmgtpeBKMGTPE]?)$`)
	diskutilSize = regexp.MustCompile(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)(B|S|UAM|[KMGTPE](?:i?B?)?)?$`)
)

// parseSize reads a size as hdiutil does, in the style of mkfile(8): a number, possibly with a fraction, and b for
// sectors of 512 bytes or k, m, g, t, p, e for binary multiples; without a letter it is bytes. The result is in bytes,
// rounded up to a whole sector.
func parseSize(s string) (int64, error) {
	m := hdiutilSize.FindStringSubmatch(s)
	if short := strings.TrimRight(s, "iIbB"); m == nil && short != s && hdiutilSize.MatchString(short) {
		return 0, fmt.Errorf("%q is not a size of hdiutil: want %s, which is in binary multiples", s,
			strings.ToLower(short))
	}
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: want a number and b (sectors of 512 bytes), k, m, g, t, p or e "+
			"(binary multiples)", s)
	}
	unit := int64(1)
	switch l := strings.ToLower(m[2]); l {
	case "":
	case "b":
		unit = sector
	default:
		unit = 1 << (10 * (strings.Index("kmgtpe", l) + 1))
	}
	return scaleSize(s, m[1], unit, sector)
}

// parseDiskutilSize reads a size as diskutil does: no unit or B for bytes, K, M, G, T, P, E for decimal and Ki … Ei for
// binary multiples (with or without a B), S or UAM for sectors of 512 bytes. The result is in bytes, rounded up to
// 4096.
func parseDiskutilSize(s string) (int64, error) {
	m := diskutilSize.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: want a number and B, K, M, G, T, P, E (decimal), Ki … Ei (binary) "+
			"or S (sectors of 512 bytes)", s)
	}
	unit := int64(1)
	switch u := strings.TrimSuffix(m[2], "B"); {
	case u == "":
	case u == "S" || u == "UAM":
		unit = sector
	default:
		base := int64(1000)
		if strings.HasSuffix(u, "i") {
			base = 1024
		}
		for range strings.Index("KMGTPE", u[:1]) + 1 {
			unit *= base
		}
	}
	return scaleSize(s, m[1], unit, 4096)
}

// scaleSize multiplies a decimal number by a unit and rounds up to whole steps, all in bytes. It is exact: no size
// passes through a floating-point number.
func scaleSize(s, number string, unit, step int64) (int64, error) {
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	r.Mul(r, big.NewRat(unit, step))
	steps, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		steps.Add(steps, big.NewInt(1))
	}
	switch {
	case steps.Sign() == 0:
		return 0, fmt.Errorf("the size %s is zero", s)
	case steps.Cmp(big.NewInt(maxSize/step)) > 0:
		return 0, fmt.Errorf("a size of %s is more than %d bytes", s, int64(maxSize))
	}
	return steps.Int64() * step, nil
}

// parseCount reads a positive whole number of units, such as sectors, and returns it in bytes.
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

// parseSectors and parseMegabytes read counts of fixed units.
func parseSectors(s string) (int64, error)   { return parseCount(s, sector) }
func parseMegabytes(s string) (int64, error) { return parseCount(s, 1<<20) }

// sizeOption is an option that has a size as its value.
type sizeOption struct {
	name string
	read func(string) (int64, error)
}

// readSize returns the size in bytes of the one option of the list that is given, 0 if none is.
func (c *call) readSize(options ...sizeOption) (size int64, err error) {
	var given, names []string
	for _, o := range options {
		names = append(names, o.name)
		if !c.has(o.name) {
			continue
		}
		if given = append(given, o.name); c.value(o.name) == "min" && strings.HasSuffix(c.verb.name, "resize") {
			continue // of resize: the smallest size
		}
		if size, err = o.read(c.value(o.name)); err != nil {
			return 0, misused("option %s: %v", o.name, err)
		}
	}
	if len(given) > 1 {
		return 0, misused("more than one of %s", strings.Join(names, ", "))
	}
	return size, nil
}

// roundUp returns the smallest multiple of unit that is at least v.
func roundUp(v, unit int64) int64 { return (v + unit - 1) / unit * unit }

// appleSize is a size as hdiutil prints it: binary multiples with at most one decimal, "4 MB", "1023.6 GB", "0 bytes".
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
