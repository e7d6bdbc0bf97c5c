package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from plans, volumes and hosts safe to show: valid UTF-8 on
// one line, without control characters (terminal escapes), without the
// characters that reorder or hide the text around them. Escaping for HTML or
// Markdown comes after.
func Clean(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			space = b.Len() > 0
			continue
		case unicode.IsControl(r) || hidden(r):
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden reports whether a character has no shape of its own but changes what
// is read: bidirectional controls, zero-width spaces, tags, interlinear marks.
// The Unicode report UTR 36 describes how such characters are used to deceive.
func hidden(r rune) bool {
	switch {
	case r == '\u00AD', r == '\u034F', r == '\u061C', r == '\u180E', r == '\uFEFF':
		return true
	case r >= '\u200B' && r <= '\u200F':
		return r != '\u200D' // the joiner holds emoji together
	case r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u206F':
		return true
	case r >= '\uFFF9' && r <= '\uFFFB', r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case r >= 0xE000 && r <= 0xF8FF: // private use: no agreed shape
		return true
	}
	return false
}

// Shorten is clean text of at most limit characters, cut between characters and
// marked by an ellipsis.
func Shorten(s string, limit int) string {
	s = Clean(s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)[:limit-1]
	for len(runes) > 0 {
		last := runes[len(runes)-1]
		if last != '\u200D' && !unicode.In(last, unicode.Mn, unicode.Me) && last != ' ' {
			break
		}
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// isolate keeps right-to-left text from reordering its neighbours where no
// element can do that: in pictures, on terminals and in Markdown.
func isolate(s string) string {
	for _, r := range s {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan,
			unicode.Mandaic, unicode.Adlam) {
			return "\u2068" + s + "\u2069"
		}
	}
	return s
}

// Plain is what pictures and terminals show of a foreign name.
func Plain(s string, limit int) string { return isolate(Shorten(s, limit)) }

// wide are the characters of two columns: Hangul, CJK, full-width forms and
// emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115F, 1}, {0x2E80, 0xA4CF, 1}, {0xAC00, 0xD7A3, 1}, {0xF900, 0xFAFF, 1},
		{0xFE30, 0xFE6F, 1}, {0xFF00, 0xFF60, 1}},
	R32: []unicode.Range32{{0x1F300, 0x1FAFF, 1}, {0x20000, 0x3FFFD, 1}},
}

// Width is the number of terminal columns that s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r == '\u200D' || r == '\u2068' || r == '\u2069' || unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.Is(wide, r):
			n += 2
		default:
			n++
		}
	}
	return n
}
