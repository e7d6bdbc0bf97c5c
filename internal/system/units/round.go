package units

import "strconv"

// RoundUp is the smallest multiple of unit that is at least v. Neither may be
// negative, and v + unit must fit the type.
func RoundUp[T ~int64 | ~uint64](v, unit T) T { return (v + unit - 1) / unit * unit }

// Count is a number with its noun: "1 round", "3 rounds".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
