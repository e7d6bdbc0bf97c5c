package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// fault is the reason why a value is refused, with a hint.
type fault struct{ message, hint string }

// scalar is a type of single values. A value that passes has a canonical text,
// which is what axes, selectors and case names hold.
type scalar struct {
	name  string // as docs/plan-language.md names it
	enum  []string
	bare  bool // written without quotes in TOML when the canonical text is a number or yes/no
	parse func(n *node) (string, *fault)
	json  map[string]any // JSON Schema of the value
}

func wrongType(n *node, want string) *fault {
	return &fault{fmt.Sprintf("want %s, this is %s", want, n.kind), ""}
}

// textOf reads a string node that also satisfies ok.
func textType(name, want string, ok func(string) bool) *scalar {
	return &scalar{name: name, json: map[string]any{"type": "string"}, parse: func(n *node) (string, *fault) {
		if n.kind != stringNode {
			return "", &fault{wrongType(n, "text").message, "write " + want + ", in quotes"}
		}
		if !printable(n.text) {
			return "", &fault{fmt.Sprintf("%q holds control characters", n.text), ""}
		}
		if strings.TrimSpace(n.text) == "" && !ok(n.text) {
			return "", &fault{"the text is empty", "want " + want}
		}
		if !ok(n.text) {
			return "", &fault{fmt.Sprintf("%q is not %s", n.text, want), ""}
		}
		return n.text, nil
	}}
}

var (
	nameRule   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
	volumeRule = regexp.MustCompile(`^[A-Za-z0-9_-]{1,11}$`)
)

// printable refuses control characters other than line breaks and tabs.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f })
}

// localPath accepts relative paths that stay where they start.
func localPath(s string) bool {
	if s == "" || len(s) > 200 || !printable(s) || strings.ContainsAny(s, "\\:\n\t") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "/"), func(p string) bool { return p == "" || p == "." || p == ".." })
}

var (
	anyText = textType("text", "text", printable)
	// someText is text with at least one word; lineText has one line, for lists and headings.
	someText = textType("text", "at least a word", func(s string) bool { return strings.TrimSpace(s) != "" })
	lineText = textType("text", "one line of text",
		func(s string) bool { return strings.TrimSpace(s) != "" && !strings.Contains(s, "\n") })
	nameText = textType("text", "a name of letters, digits and . _ + -, at most 64",
		func(s string) bool { return nameRule.MatchString(s) })
	placeText = textType("text", "a name of letters, digits and . _ + -, at most 64",
		func(s string) bool { _, here := HereFor(s); return s == "" || here || nameRule.MatchString(s) })
	volumeText = textType("text", "a label of at most 11 letters, digits, _ or -", volumeRule.MatchString)
	boundRaw   = textType("bound", "a bound such as \">= 2\" or \"0.9 to 1.1\"", printable)
	pathText   = textType("text", "a relative path inside the volume, such as \"folder/file\"", localPath)
)

// enumType accepts the listed words; alias maps other spellings to them.
func enumType(alias map[string]string, words ...string) *scalar {
	return &scalar{name: "enum", enum: words, json: map[string]any{"type": "string", "enum": words},
		parse: func(n *node) (string, *fault) {
			if n.kind != stringNode {
				return "", &fault{wrongType(n, "text").message, "accepted: " + strings.Join(words, ", ")}
			}
			if slices.Contains(words, n.text) {
				return n.text, nil
			}
			if to, ok := alias[n.text]; ok {
				return to, nil
			}
			hint := "accepted: " + strings.Join(words, ", ")
			if near := Nearest(n.text, words); near != "" {
				hint = fmt.Sprintf("did you mean %q? %s", near, hint)
			}
			return "", &fault{fmt.Sprintf("%q is not accepted here", n.text), hint}
		}}
}

// numberType accepts whole numbers in [low, high].
func numberType(low, high int64) *scalar {
	return &scalar{name: "number", bare: true, json: map[string]any{"type": "integer", "minimum": low, "maximum": high},
		parse: func(n *node) (string, *fault) {
			if n.kind != intNode {
				f := wrongType(n, "a whole number")
				if _, err := strconv.ParseInt(n.text, 10, 64); err == nil && n.kind == stringNode {
					f.hint = "write it without quotes"
				}
				return "", f
			}
			v, err := strconv.ParseInt(n.text, 0, 64)
			if err != nil || v < low || v > high {
				return "", &fault{fmt.Sprintf("%s is out of range", n.text), fmt.Sprintf("want %d to %d", low, high)}
			}
			return strconv.FormatInt(v, 10), nil
		}}
}

// flagType accepts true and false.
var flagType = &scalar{name: "yes/no", bare: true, json: map[string]any{"type": "boolean"},
	parse: func(n *node) (string, *fault) {
		if n.kind != boolNode {
			return "", wrongType(n, "true or false")
		}
		return n.text, nil
	}}

// dateType accepts a plain TOML day.
var dateType = &scalar{name: "date", bare: true, json: map[string]any{"type": "string", "format": "date"},
	parse: func(n *node) (string, *fault) {
		if n.kind != dateNode {
			return "", &fault{wrongType(n, "a date").message, "write it as 2026-03-23, without quotes and time"}
		}
		d, err := time.Parse(time.DateOnly, n.text)
		if err != nil {
			return "", &fault{fmt.Sprintf("%s is no day of the calendar", n.text), ""}
		}
		return d.Format(time.DateOnly), nil
	}}

// unitType accepts text that read understands; words are accepted as they are.
func unitType(name string, read func(string) (string, error), words ...string) *scalar {
	return &scalar{name: name, json: map[string]any{"type": "string"}, parse: func(n *node) (string, *fault) {
		if n.kind == intNode || n.kind == floatNode {
			return "", &fault{fmt.Sprintf("%s has no unit", n.text),
				"write the value with its unit, in quotes: " + example(name)}
		}
		if n.kind != stringNode {
			return "", wrongType(n, "a "+name+" such as "+example(name))
		}
		if slices.Contains(words, n.text) {
			return n.text, nil
		}
		text, err := read(n.text)
		if err != nil {
			message, hint := splitWant(err)
			return "", &fault{message, hint}
		}
		return text, nil
	}}
}

// splitWant parts the text of an error into what is wrong and, after "want",
// what would be right.
func splitWant(err error) (message, hint string) {
	message, hint, found := strings.Cut(err.Error(), "; want ")
	if !found {
		if message, hint, found = strings.Cut(err.Error(), ": want "); found {
			message += ": this is not understood"
		}
	}
	if found {
		hint = "want " + hint
	}
	return message, hint
}

func example(name string) string {
	return map[string]string{"size": `"8 MiB"`, "time": `"10 s"`, "share": `"20%"`}[name]
}

func readTime(s string) (string, error) { v, err := units.ParseDuration(s); return v.String(), err }
func readShare(s string) (string, error) {
	v, err := units.ParseShare(s)
	return v.String(), err
}

// positive refuses zero, which is never the intended size.
func positive(read func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		v, err := read(s)
		if err == nil && strings.HasPrefix(v, "0 ") {
			return "", fmt.Errorf("%q is nothing; want more than zero", s)
		}
		return v, err
	}
}

// maxSize bounds every size of a plan: no disk holds an exabyte, and sums of
// what is bounded do not overflow.
const maxSize = units.Bytes(1e18)

func readSizeBounded(s string) (string, error) {
	v, err := units.ParseBytes(s)
	if err == nil && v > maxSize {
		return "", fmt.Errorf("%s is more than any disk holds; want at most %s", v, maxSize)
	}
	return v.String(), err
}

var (
	sizeType  = unitType("size", positive(readSizeBounded))
	blockType = unitType("size", positive(readSizeBounded), "whole")
	bandType  = unitType("size", readBand, "default")
	timeType  = unitType("time", readTime)
	spanType  = unitType("time", positive(readTime))
	shareType = unitType("share", readShare)
)

func readBand(s string) (string, error) {
	v, err := units.ParseBytes(s)
	if err == nil {
		err = image.CheckBandSize(int64(v))
	}
	return v.String(), err
}

// Nearest is the word of words that is within a third of its length in edits of word, or "" if there is none.
func Nearest(word string, words []string) string {
	if len(word) > 64 { // nobody meant a short one
		return ""
	}
	best, bestDistance := "", min(len(word)/3+2, max(2, len(word)-1)) // of three letters two stay
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance (adjacent swaps count one) of two short words.
func distance(a, b string) int {
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

func atoi(s string) int      { n, _ := strconv.Atoi(s); return n }
func itoa(n int) string      { return strconv.Itoa(n) }
func boolText(b bool) string { return strconv.FormatBool(b) }

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
