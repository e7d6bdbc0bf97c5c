package cli

import (
	"strings"
	"unicode"
)

// printable takes control characters out of text that may come from a file, so
// that no name in a run folder can drive the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
