package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/system/safetext"
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
		case unicode.IsControl(r) || safetext.IsHidden(r):
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

// Shorten is clean text of at most limit characters, cut between characters and
// marked by an ellipsis.
func Shorten(s string, limit int) string {
	s = Clean(s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimRightFunc(string([]rune(s)[:limit-1]), func(last rune) bool {
		return last == '\u200D' || last == ' ' || unicode.In(last, unicode.Mn, unicode.Me)
	}) + "…"
}

// Plain is what pictures and terminals show of a foreign name: shortened, and
// right-to-left text isolated from its neighbours, which it would reorder where
// no element can prevent that.
func Plain(s string, limit int) string {
	s = Shorten(s, limit)
	isRightToLeft := func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko,
			unicode.Samaritan, unicode.Mandaic, unicode.Adlam)
	}
	if strings.ContainsFunc(s, isRightToLeft) {
		return "\u2068" + s + "\u2069"
	}
	return s
}

// Map applies a function to each element of a list.
func Map[T, U any](list []T, of func(T) U) []U {
	var out []U
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

// FlatMap applies a function to each element of a list, and joins the lists that
// it returns.
func FlatMap[T, U any](list []T, of func(T) []U) []U { return slices.Concat(Map(list, of)...) }

// Where are the elements of a list that satisfy test.
func Where[T any](list []T, test func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !test(x) })
}

// plainList makes each text of a list safe to print, see [Plain].
func plainList(list []string, limit int) []string {
	return Map(list, func(s string) string { return Plain(s, limit) })
}

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

// keepLetters keeps of a name what is harmless in the name of a file or in an id:
// the letters a to z and A to Z, digits and some more characters.
//
// Ids are used in fragments of links and in selectors of scripts.
func keepLetters(s string, limit int, more string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(more, r) {
			return r
		}
		return -1
	}, Shorten(s, limit))
}

// Slug is a name as a part of an id; it need not be unique.
func Slug(s string) string { return keepLetters(s, 40, "_") }

// Namer returns a function that keeps the first of several equal names, and
// numbers the others after a separator: "size", "size-2".
func Namer(separator string) func(name string) string {
	taken := map[string]bool{}
	return func(name string) string {
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = name + separator + strconv.Itoa(n)
		}
		taken[unique] = true
		return unique
	}
}

// FirstOf is the first text that is not blank, "" if there is none.
func FirstOf(options ...string) string {
	for _, s := range options {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// TextIf is text if the condition holds, else "". The text is made in any case:
// it must not depend on the condition.
func TextIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// AppendNew appends what the list does not have.
func AppendNew[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// glue joins the texts that are not empty.
func glue(separator string, texts ...string) string {
	return strings.Join(wording.NonEmpty(texts), separator)
}

// firstFew are at most limit entries. Of a longer list the last of them is the
// number of those left out: "and 4 more places".
func firstFew(list []string, limit int, noun string) []string {
	if len(list) <= limit {
		return list
	}
	more := fmt.Sprintf("and %d more %s", len(list)-limit+1, noun)
	return append(list[:limit-1:limit-1], strings.TrimRight(more, " "))
}

// groupBy lists the values of some things by a text, in the order in which the
// texts come first.
func groupBy[T any](all []T, of func(T) (text, value string)) (texts []string, values map[string][]string) {
	values = map[string][]string{}
	for _, x := range all {
		text, value := of(x)
		texts, values[text] = AppendNew(texts, text), AppendNew(values[text], value)
	}
	return texts, values
}

// countIf counts the elements that satisfy test.
func countIf[T any](list []T, test func(T) bool) int { return len(Where(list, test)) }

// Count is a number with its noun: "1 case", "12 cases".
//
// The plural adds an s: all nouns of the report are regular.
func Count(n int, noun string) string {
	return Grouped(n) + " " + noun + TextIf(n != 1, "s")
}

// Grouped writes an integer with thin spaces between thousands.
//
// The narrow no-break space (U+202F) is the separator of ISO 80000-1, and is
// read alike in all countries.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	out := ""
	for len(s) > 3 && s[len(s)-4] != '-' {
		out = "\u202F" + s[len(s)-3:] + out
		s = s[:len(s)-3]
	}
	return s + out
}

// Capitalize starts a text with a capital.
func Capitalize(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}
