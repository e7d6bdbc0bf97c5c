package command

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Messages are the lines that a tool printed in addition to its result.
type Messages struct {
	Deprecated []string // announcements of another command
	Lines      []string // all others, without progress
}

const deprecated = "deprecated. Please use 'diskutil"

var progress = regexp.MustCompile(`^(PERCENT:-?[0-9.]+|\[[ 0-9.]+% completed\]|[.…]+)$`)

// ParseMessages sorts the lines of an output.
func ParseMessages(text string) Messages {
	var m Messages
	for line := range strings.Lines(text) {
		line = cleanLine(line)
		switch {
		case line == "" || progress.MatchString(line):
		case !strings.Contains(line, deprecated):
			m.Lines = append(m.Lines, line)
		case !slices.Contains(m.Deprecated, line):
			m.Deprecated = append(m.Deprecated, line)
		}
	}
	return m
}

const maxLine = 400 // bytes of a line that are kept

// cleanLine replaces control characters and invalid UTF-8, and shortens a long
// line.
func cleanLine(line string) string {
	line = strings.ToValidUTF8(strings.TrimSpace(line), "�")
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return strings.TrimSpace(line)
}

// Last are the last two lines, which give the reason of a failure.
func (m Messages) Last() string {
	return strings.Join(m.Lines[max(0, len(m.Lines)-2):], "; ")
}

var errnoSuffix = regexp.MustCompile(`\((-?[0-9]{1,6})\)[.\s]*$`)

// Errno is the error number in parentheses at the end of the last line that has
// one, or 0. Unlike the words it is not translated.
func (m Messages) Errno() int {
	for _, line := range slices.Backward(m.Lines) {
		if m := errnoSuffix.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// FindNames returns the candidates that occur in a help text as words of their
// own. "+" counts as a letter: "HFS" is not a word of "HFS+".
func FindNames(help string, candidates []string) (found []string) {
	for _, c := range candidates {
		word := regexp.MustCompile(`(^|[^\pL\pN+])` + regexp.QuoteMeta(c) + `($|[^\pL\pN+])`)
		if word.MatchString(help) {
			found = append(found, c)
		}
	}
	return found
}

// FindSection returns the part of a help text about one option: from the first
// line that starts with it up to the next line that starts with another option.
// Without such a line it is the whole text.
func FindSection(help, option string) string {
	own := regexp.MustCompile(`^\s*` + option + `($|[^\pL\pN+])`)
	var b strings.Builder
	for line := range strings.Lines(help) {
		switch isOwn := own.MatchString(line); {
		case b.Len() == 0 && !isOwn:
			continue
		case b.Len() > 0 && !isOwn && strings.HasPrefix(strings.TrimSpace(line), "-"):
			return b.String()
		}
		b.WriteString(line)
	}
	return cmp.Or(b.String(), help)
}
