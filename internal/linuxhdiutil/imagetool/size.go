package imagetool

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"dmgbench/internal/image/container"
)

// sector is the unit of sizes in lists and options.
const sector = container.SectorSize // bytes

// maxSize bounds sizes in bytes: what containers and offsets can hold.
const maxSize = 1 << 60

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
		return 0, fmt.Errorf("%q is not a size: want %s", s, style.want)
	}
	unit, ok := style.units[m[2]]
	if letter := strings.TrimRight(m[2], "iIbB"); !ok && letter != "" && style.units[letter] > 0 && tool == "hdiutil" {
		return 0, fmt.Errorf("%q is not a size of hdiutil: want %s, which is in binary multiples", s,
			m[1]+strings.ToLower(letter))
	}
	number, isNumber := new(big.Rat).SetString(m[1])
	if !ok || !isNumber {
		return 0, fmt.Errorf("%q is not a size: want %s", s, style.want)
	}
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
			return 0, false, misused("option %s: %v", c.verb.optionName(key), err)
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
