package imagetool

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"dmgbench/internal/container"
)

const sector = container.SectorSize

// maxSize bounds sizes in bytes: what containers and offsets can carry.
const maxSize = 1 << 60

var (
	hdiutilSize  = regexp.MustCompile(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)([bkmgtpeBKMGTPE]?)$`)
	diskutilSize = regexp.MustCompile(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)(B|S|UAM|[KMGTPE](?:i?B?)?)?$`)
)

// parseSize reads a size as hdiutil does, in the style of mkfile(8): a number, possibly
// with a fraction, and b for sectors of 512 bytes or k, m, g, t, p, e for binary
// multiples; without a letter it is bytes. The result is in bytes, rounded up to a whole sector.
func parseSize(s string) (int64, error) {
	m := hdiutilSize.FindStringSubmatch(s)
	if short := strings.TrimRight(s, "iIbB"); m == nil && short != s && hdiutilSize.MatchString(short) {
		return 0, fmt.Errorf("%q is no size of hdiutil: want %s, which is in binary multiples", s, strings.ToLower(short))
	}
	if m == nil {
		return 0, fmt.Errorf("%q is no size: want a number and b (sectors of 512 bytes), k, m, g, t, p or e (binary multiples)", s)
	}
	unit := int64(1)
	switch l := strings.ToLower(m[2]); l {
	case "":
	case "b":
		unit = sector
	default:
		unit = 1 << (10 * (strings.Index("kmgtpe", l) + 1))
	}
	return scaled(s, m[1], unit, sector)
}

// parseDiskutilSize reads a size as diskutil does: nothing or B for bytes, K, M, G, T, P, E
// for decimal and Ki … Ei for binary multiples (with or without a B), S or UAM for
// sectors of 512 bytes. The result is in bytes, rounded up to 4096.
func parseDiskutilSize(s string) (int64, error) {
	m := diskutilSize.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no size: want a number and B, K, M, G, T, P, E (decimal), Ki … Ei (binary) or S (sectors of 512 bytes)", s)
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
	return scaled(s, m[1], unit, 4096)
}

// scaled is exact: no size passes through a floating-point number.
func scaled(s, number string, unit, step int64) (int64, error) {
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("%q is no size", s)
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	steps := new(big.Int).Add(r.Num(), new(big.Int).Sub(new(big.Int).Mul(r.Denom(), big.NewInt(step)), big.NewInt(1)))
	steps.Quo(steps, new(big.Int).Mul(r.Denom(), big.NewInt(step)))
	switch {
	case steps.Sign() == 0:
		return 0, fmt.Errorf("a size of %s is nothing", s)
	case steps.Cmp(big.NewInt(maxSize/step)) > 0:
		return 0, fmt.Errorf("a size of %s is more than %d bytes", s, int64(maxSize))
	}
	return steps.Int64() * step, nil
}

// parseCount reads a positive whole number of units, such as sectors.
func parseCount(s string, unit int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n <= 0 || strings.HasPrefix(s, "+"):
		return 0, fmt.Errorf("%q is no positive whole number", s)
	case n > maxSize/unit:
		return 0, fmt.Errorf("%s times %d bytes is more than %d", s, unit, int64(maxSize))
	}
	return n * unit, nil
}

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
