package parse

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compacted is what `hdiutil compact` says it did. Its figures are rounded and
// "possible" is free space of the volume, not of the host: for display, never for arithmetic.
type Compacted struct {
	Line                string
	Reclaimed, Possible float64 // bytes, as rounded by the tool
}

var reclaimedLine = regexp.MustCompile(`(?m)^Reclaimed ([0-9.]+) (bytes|KB|MB|GB|TB|PB|EB) out of ([0-9.]+) (bytes|KB|MB|GB|TB|PB|EB) possible\.\r?$`)

// Compact reads the line "Reclaimed 4 MB out of 1023.6 GB possible.".
func Compact(out []byte) (Compacted, error) {
	m := reclaimedLine.FindSubmatch(out)
	if m == nil {
		return Compacted{}, fmt.Errorf("%w: no line %q", ErrNoResult, "Reclaimed … out of … possible.")
	}
	c := Compacted{Line: strings.TrimSpace(string(m[0]))}
	for i, to := range []*float64{&c.Reclaimed, &c.Possible} {
		v, err := strconv.ParseFloat(string(m[1+2*i]), 64)
		if err != nil {
			return Compacted{}, fmt.Errorf("%w: %w", ErrNoResult, err)
		}
		*to = v * unit[string(m[2+2*i])]
	}
	return c, nil
}

// unit is binary: "1023.6 GB" is the free space of an image of 1 TiB.
var unit = map[string]float64{"bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50, "EB": 1 << 60}

// Said is a tool's talk, sorted.
type Said struct {
	Deprecated []string // lines that announce another command
	Words      []string // what else there is to read, progress left out
}

const deprecated = "deprecated. Please use 'diskutil"

var progress = regexp.MustCompile(`^(PERCENT:-?[0-9.]+|\[[ 0-9.]+% completed\]|[.…]+)$`)

// Talk sorts the lines that a tool printed beside its result.
func Talk(text string) Said {
	var s Said
	for line := range strings.Lines(text) {
		line = clean(line)
		switch {
		case line == "" || progress.MatchString(line):
		case strings.Contains(line, deprecated):
			if !slices.Contains(s.Deprecated, line) {
				s.Deprecated = append(s.Deprecated, line)
			}
		default:
			s.Words = append(s.Words, line)
		}
	}
	return s
}

const maxLine = 400 // bytes of a line that are kept

// clean takes control characters and broken text out of a line, and bounds it.
func clean(line string) string {
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

// Last are the last words, which tell why a command failed: at most the last two lines.
func (s Said) Last() string {
	return strings.Join(s.Words[max(0, len(s.Words)-2):], "; ")
}

var errnoSuffix = regexp.MustCompile(`\((-?[0-9]{1,6})\)[.\s]*$`)

// Errno is the error number in parentheses that ends one of the lines, or 0. It
// survives translation, which the words do not.
func (s Said) Errno() int {
	for _, line := range slices.Backward(s.Words) {
		if m := errnoSuffix.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// Names are those of the candidates that occur in a help text as words of their own.
func Names(help string, candidates []string) []string {
	var found []string
	for _, c := range candidates {
		if hasWord(help, c) {
			found = append(found, c)
		}
	}
	return found
}

// Section is what a help text says of one option: from the first line that begins with
// it up to the next line that begins with another option. Without such a line it is the whole text.
func Section(help, option string) string {
	var b strings.Builder
	for line := range strings.Lines(help) {
		text := strings.TrimSpace(line)
		rest, own := strings.CutPrefix(text, option)
		if next, _ := utf8.DecodeRuneInString(rest); rest != "" && inWord(next) {
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
		if (start == 0 || !inWord(before)) && (end == len(text) || !inWord(after)) {
			return true
		}
		at = start + 1
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' }
