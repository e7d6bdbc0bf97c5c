package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

func atoi(s string) int      { n, _ := strconv.Atoi(s); return n }
func itoa(n int) string      { return strconv.Itoa(n) }
func boolText(b bool) string { return strconv.FormatBool(b) }

// tomlString writes a basic string of one line.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey quotes a key that cannot stand bare.
func tomlKey(s string) string {
	if bareKey.MatchString(s) {
		return s
	}
	return tomlString(s)
}

func tomlStrings(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = tomlString(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func parseUint(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 64); return n }
func uintText(n uint64) string  { return strconv.FormatUint(n, 10) }

func joinNames(names []string) string { return strings.Join(names, ", ") }

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return itoa(n) + " " + thing + "s"
}
