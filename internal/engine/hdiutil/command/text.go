package command

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Messages are the lines that a tool printed besides its result.
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
		cut := maxLine
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "…"
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
// own.
func FindNames(help string, candidates []string) []string {
	var found []string
	for _, c := range candidates {
		if hasWord(help, c) {
			found = append(found, c)
		}
	}
	return found
}

// FindSection returns the part of a help text about one option: from the first
// line that starts with it up to the next line that starts with another option.
// Without such a line it is the whole text.
func FindSection(help, option string) string {
	var b strings.Builder
	for line := range strings.Lines(help) {
		text := strings.TrimSpace(line)
		rest, own := strings.CutPrefix(text, option)
		if next, _ := utf8.DecodeRuneInString(rest); rest != "" && isWordRune(next) {
			own = false
		}
		switch {
		case b.Len() == 0 && !own:
			continue
		case b.Len() > 0 && strings.HasPrefix(text, "-") && !own:
			return b.String()
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return help
	}
	return b.String()
}

func hasWord(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if (start == 0 || !isWordRune(before)) && (end == len(text) || !isWordRune(after)) {
			return true
		}
		at = start + 1
	}
}

// isWordRune counts "+" as a letter: "HFS" is not a word of "HFS+".
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' }
