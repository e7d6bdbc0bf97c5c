package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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

// NonEmpty removes the empty texts from a list.
func NonEmpty(in []string) []string {
	return slices.DeleteFunc(in, func(s string) bool { return s == "" })
}

// AppendNew appends what the list does not have.
func AppendNew[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Count is a number with its noun: "1 case", "12 cases".
//
// The plural adds an s: all nouns of the report are regular.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(n) + " " + noun + "s"
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

// plainList makes each text of a list safe to print, see [Plain].
func plainList(list []string, limit int) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Plain(s, limit)
	}
	return out
}

// glue joins the texts that are not empty.
func glue(separator string, texts ...string) string { return strings.Join(NonEmpty(texts), separator) }

// joinFacts joins what is known of a thing with commas.
func joinFacts(texts ...string) string { return glue(", ", texts...) }

// countIf counts the elements that satisfy test.
func countIf[T any](list []T, test func(T) bool) int {
	n := 0
	for _, x := range list {
		if test(x) {
			n++
		}
	}
	return n
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
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return strings.ToUpper(string(first)) + s[size:]
}
