package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// invalid is why a value is refused, and what is accepted.
type invalid struct{ message, hint string }

// scalar is a type of single values. Axes, selectors and case names hold values
// as canonical texts.
type scalar struct {
	// name: as docs/plan-language.md names it
	name string
	// words: all accepted words of an enumeration
	words []string
	// node: how TOML writes the canonical text
	node nodeKind
	// JSON Schema of the value
	json map[string]any
	read func(n *node) (text string, bad *invalid)
}

// kind is a scalar with the Go type of its values.
type kind[V any] struct {
	*scalar
	parse func(n *node) (V, *invalid)
	// text: canonical
	text func(v V) string
}

// newKind makes a kind. parse must accept the canonical text that text writes.
func newKind[V any](s scalar, parse func(*node) (V, *invalid), text func(V) string) kind[V] {
	s.read = func(n *node) (string, *invalid) {
		v, bad := parse(n)
		if bad != nil {
			return "", bad
		}
		return text(v), nil
	}
	return kind[V]{&s, parse, text}
}

// of is the value of a canonical text.
func (k kind[V]) of(text string) V {
	v, _ := k.parse(&node{kind: k.node, text: text})
	return v
}

// toml writes a canonical text as a TOML value.
func (s *scalar) toml(text string) string {
	if s.node != stringNode {
		return text
	}
	return tomlString(text)
}

// wrongType refuses a value of another TOML type than the wanted one.
func wrongType(n *node, want, hint string) *invalid {
	return &invalid{fmt.Sprintf("want %s, this is %s", want, n.kind), hint}
}

// sameText is the canonical text of strings, which is the string itself.
func sameText(s string) string { return s }

// textKind accepts the strings that pass ok; want describes them.
func textKind(want string, ok func(string) bool) kind[string] {
	return newKind(scalar{name: "text", json: map[string]any{"type": "string"}}, func(n *node) (string, *invalid) {
		switch {
		case n.kind != stringNode:
			return "", wrongType(n, "text", "write "+want+", in quotes")
		case !isPrintable(n.text):
			return "", &invalid{fmt.Sprintf("%q contains control characters", n.text), ""}
		case ok(n.text):
			return n.text, nil
		case strings.TrimSpace(n.text) == "":
			return "", &invalid{"the text is empty", "want " + want}
		}
		return "", &invalid{fmt.Sprintf("%q is not %s", n.text, want), ""}
	}, sameText)
}

var (
	nameRule   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
	volumeRule = regexp.MustCompile(`^[A-Za-z0-9_-]{1,11}$`)
)

// isPrintable refuses control characters other than line breaks and tabs.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f })
}

// hasWord reports whether s contains more than blanks.
func hasWord(s string) bool { return strings.TrimSpace(s) != "" }

// isLocalPath accepts relative paths that stay inside the folder they start in.
func isLocalPath(s string) bool {
	if s == "" || len(s) > 200 || strings.ContainsAny(s, "\\:\n\t") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "/"), func(p string) bool { return p == "" || p == "." || p == ".." })
}

const nameWords = "a name of letters, digits and . _ + -, at most 64"

var (
	anyText    = textKind("text", isPrintable)
	someText   = textKind("at least a word", hasWord)
	lineText   = textKind("one line of text", func(s string) bool { return hasWord(s) && !strings.Contains(s, "\n") })
	nameText   = textKind(nameWords, nameRule.MatchString)
	volumeText = textKind("a label of at most 11 letters, digits, _ or -", volumeRule.MatchString)
	pathText   = textKind("a relative path inside the volume, such as \"folder/file\"", isLocalPath)
	placeText  = textKind(nameWords, func(s string) bool {
		_, here := HereFor(s)
		return s == "" || here || nameRule.MatchString(s)
	})
)

// enum accepts the listed words.
func enum(words ...string) kind[string] { return enumWithAliases(nil, words) }

// enumWithAliases also accepts the keys of aliases, and reads them as their
// values.
func enumWithAliases(aliases map[string]string, words []string) kind[string] {
	s := scalar{name: "enum", words: words, json: map[string]any{"type": "string", "enum": words}}
	accepted := "accepted: " + strings.Join(words, ", ")
	return newKind(s, func(n *node) (string, *invalid) {
		if n.kind != stringNode {
			return "", wrongType(n, "text", accepted)
		}
		if slices.Contains(words, n.text) {
			return n.text, nil
		}
		if word, ok := aliases[n.text]; ok {
			return word, nil
		}
		bad := &invalid{fmt.Sprintf("%q is not accepted here", n.text), accepted}
		if near := Nearest(n.text, words); near != "" {
			bad.hint = fmt.Sprintf("did you mean %q? %s", near, accepted)
		}
		return "", bad
	}, sameText)
}

// number accepts whole numbers in [low, high].
func number[V int | uint64](low, high int64) kind[V] {
	s := scalar{name: "number", node: intNode, json: map[string]any{"type": "integer", "minimum": low, "maximum": high}}
	return newKind(s, func(n *node) (V, *invalid) {
		v, err := strconv.ParseInt(n.text, 0, 64)
		switch {
		case n.kind == stringNode && err == nil:
			return 0, wrongType(n, "a whole number", "write it without quotes")
		case n.kind != intNode:
			return 0, wrongType(n, "a whole number", "")
		case err != nil || v < low || v > high:
			return 0, &invalid{n.text + " is out of range", fmt.Sprintf("want %d to %d", low, high)}
		}
		return V(v), nil
	}, func(v V) string { return strconv.FormatUint(uint64(v), 10) })
}

var (
	flagKind = newKind(scalar{name: "yes/no", node: boolNode, json: map[string]any{"type": "boolean"}},
		func(n *node) (bool, *invalid) {
			if n.kind != boolNode {
				return false, wrongType(n, "true or false", "")
			}
			return n.text == "true", nil
		}, strconv.FormatBool)
	// dateKind accepts a TOML date without a time.
	dateKind = newKind(scalar{name: "date", node: dateNode, json: map[string]any{"type": "string", "format": "date"}},
		func(n *node) (time.Time, *invalid) {
			d, err := time.Parse(time.DateOnly, n.text)
			switch {
			case n.kind != dateNode:
				return d, wrongType(n, "a date", "write it as 2026-03-23, without quotes and time")
			case err != nil:
				return d, &invalid{n.text + " is not a day of the calendar", ""}
			}
			return d, nil
		}, func(d time.Time) string { return d.Format(time.DateOnly) })
)

// quantityValue is a number with a unit.
type quantityValue interface {
	units.Bytes | units.Duration | units.Share
	String() string
}

// unitKind accepts strings that parse understands and check accepts.
func unitKind[V quantityValue](name, example string, parse func(string) (V, error), check func(V) error) kind[V] {
	s := scalar{name: name, json: map[string]any{"type": "string"}}
	return newKind(s, func(n *node) (V, *invalid) {
		switch n.kind {
		case intNode, floatNode:
			return 0, &invalid{n.text + " has no unit", "write the value with its unit, in quotes: " + example}
		case stringNode:
		default:
			return 0, wrongType(n, "a "+name+" such as "+example, "")
		}
		v, err := parse(n.text)
		if err == nil && check != nil {
			err = check(v)
		}
		if err != nil {
			return 0, splitWant(err)
		}
		v, _ = parse(v.String()) // the value of the canonical text, which is rounded
		return v, nil
	}, V.String)
}

// splitWant divides the text of an error into what is wrong and, after "want",
// what is accepted.
func splitWant(err error) *invalid {
	message, hint, found := strings.Cut(err.Error(), "; want ")
	if !found {
		if message, hint, found = strings.Cut(err.Error(), ": want "); found {
			message += ": this is not understood"
		}
	}
	if found {
		hint = "want " + hint
	}
	return &invalid{message, hint}
}

// checkPositive refuses zero, which is never the intended value.
func checkPositive[V quantityValue](v V) error {
	if v <= 0 {
		return errors.New("the value is zero; want more than zero")
	}
	return nil
}

// maxSize bounds every size of a plan, so that sums of bounded sizes do not
// overflow.
const maxSize = units.Bytes(image.MaxSize)

// checkSize bounds the size of files and images.
func checkSize(v units.Bytes) error {
	if v > maxSize {
		return fmt.Errorf("%s is larger than any disk; want at most %s", v, maxSize)
	}
	return checkPositive(v)
}

// sizeWithWord is a size that also accepts a word, which means 0 bytes: the
// default.
func sizeWithWord(word string, check func(units.Bytes) error) kind[units.Bytes] {
	size := unitKind("size", `"8 MiB"`, units.ParseBytes, check)
	return newKind(*size.scalar, func(n *node) (units.Bytes, *invalid) {
		if n.kind == stringNode && n.text == word && word != "" {
			return 0, nil
		}
		return size.parse(n)
	}, func(v units.Bytes) string {
		if v == 0 {
			return word
		}
		return v.String()
	})
}

var (
	sizeKind  = sizeWithWord("", checkSize)
	blockKind = sizeWithWord("whole", checkSize)
	bandKind  = sizeWithWord("default", func(v units.Bytes) error { return image.CheckBandSize(int64(v)) })
	timeKind  = unitKind("time", `"10 s"`, units.ParseDuration, nil)
	spanKind  = unitKind("time", `"10 s"`, units.ParseDuration, checkPositive[units.Duration])
	shareKind = unitKind("share", `"20%"`, units.ParseShare, nil)
)

// looseKind accepts what a manual axis can have as a value: a name or a number.
var looseKind = newKind(scalar{name: "text or number", json: map[string]any{"type": []string{"string", "number"}}},
	func(n *node) (string, *invalid) {
		switch n.kind {
		case stringNode:
			if n.text == "" || len(n.text) > 64 || !isPrintable(n.text) || strings.ContainsAny(n.text, ",=\n\t") {
				return "", &invalid{strconv.Quote(n.text) + " cannot name a value",
					"want 1 to 64 characters, without , and ="}
			}
			return n.text, nil
		case intNode, floatNode:
			text := numberToken(n)
			if !isPlainNumber(strings.TrimPrefix(text, "-")) {
				return "", &invalid{n.text + " is not a plain number", ""}
			}
			return text, nil
		}
		return "", wrongType(n, "text or a number", "")
	}, sameText)

// numberToken is a TOML number without what only TOML writes: "+" and "_".
func numberToken(n *node) string { return strings.TrimPrefix(strings.ReplaceAll(n.text, "_", ""), "+") }

// isPlainNumber accepts digits with at most one point, without sign, exponent
// or name.
func isPlainNumber(s string) bool {
	if s == "" || len(s) > 40 || s[0] == '.' || s[len(s)-1] == '.' || strings.Count(s, ".") > 1 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
}

// Nearest is the word of words that is within a third of its length in edits of
// word, or "" if there is none.
func Nearest(word string, words []string) string {
	if len(word) > 64 { // too long for a misspelt key
		return ""
	}
	best, bestDistance := "", min(len(word)/3+2, max(2, len(word)-1)) // two letters of three stay
	for _, w := range words {
		if d := editDistance(strings.ToLower(word), strings.ToLower(w)); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// editDistance is the Damerau-Levenshtein distance (adjacent swaps count one)
// of two short words.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// plural counts things: "1 round", "3 rounds".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
