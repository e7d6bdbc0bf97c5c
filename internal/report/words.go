package report

import (
	"fmt"
	"slices"
	"strings"
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
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(int64(n)) + " " + noun + "s"
}

// joinAnd joins one or two texts.
func joinAnd(list []string) string { return strings.Join(list, " and ") }

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

// joinFacts joins what is known of a thing with commas.
func joinFacts(list ...string) string { return strings.Join(NonEmpty(list), ", ") }
