package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// invalid is why a value is refused, and what is accepted.
type invalid struct{ message, hint string }

// kind is a type of single values. Axes, selectors and case names hold values
// as canonical texts.
type kind struct {
	// name: as docs/plan-language.md names it
	name string
	// words: all accepted words of an enumeration
	words []string
	// zeroWord: the word that means 0, "" if there is none
	zeroWord string
	// node: the TOML type of the canonical text, a string unless set
	node nodeKind
	// JSON Schema of the value
	json map[string]any
	// parse accepts the canonical text, too.
	parse func(n *node) (any, *invalid)
}

// text is the canonical text of a value: the word for 0 where there is one, and ""
// for a size that is not set.
func (k *kind) text(v any) string {
	if day, ok := v.(time.Time); ok {
		return day.Format(time.DateOnly)
	}
	if reflect.ValueOf(v).IsZero() && (k.zeroWord != "" || k == sizeKind) {
		return k.zeroWord
	}
	return fmt.Sprint(v)
}

// read is the canonical text of a value of the plan; what is wrong with it is
// reported.
func (k *kind) read(r *reader, n *node) (text string, ok bool) {
	v, bad := k.parse(n)
	if bad != nil {
		r.invalidValue(n, bad)
		return "", false
	}
	return k.text(v), true
}

// nodeOf returns a canonical text as the tree of a plan has it.
func (k *kind) nodeOf(text string) *node {
	if text == k.zeroWord {
		return &node{kind: stringNode, text: text}
	}
	return &node{kind: k.node, text: text}
}

// toml writes a canonical text as a TOML value.
func (k *kind) toml(text string) string {
	if k.node == stringNode || text == k.zeroWord {
		return tomlString(text)
	}
	return text
}

// wrongType refuses a value of another TOML type than the wanted one.
func wrongType(n *node, want, hint string) *invalid {
	return &invalid{fmt.Sprintf("want %s, this is %s", want, n.kind), hint}
}

const (
	// maxText bounds a text of a plan, and maxLine one that heads a report or a
	// table, in bytes.
	maxText, maxLine = 10_000, 500
	// maxWait bounds each time of a plan: a mistyped unit must not keep a machine
	// for years.
	maxWait = 7 * units.Duration(24*3600e9)
)

// checkWait refuses times that are longer than maxWait.
func checkWait(v units.Duration) error {
	if v > maxWait {
		return fmt.Errorf("%s is too long; want at most %s", v, maxWait)
	}
	return nil
}

// checkSpan is checkWait that also refuses zero.
func checkSpan(v units.Duration) error {
	if err := checkPositive(v); err != nil {
		return err
	}
	return checkWait(v)
}

// textKind accepts the strings that pass ok; want describes them.
func textKind(want string, ok func(string) bool) *kind {
	return &kind{name: "text", json: map[string]any{"type": "string"}, parse: func(n *node) (any, *invalid) {
		switch {
		case n.kind != stringNode:
			return nil, wrongType(n, "text", "write "+want+", in quotes")
		case len(n.text) > maxText:
			return nil, &invalid{fmt.Sprintf("the text has %d bytes; want at most %d", len(n.text), maxText), ""}
		case !isPrintable(n.text) || !ok(n.text):
			return nil, &invalid{fmt.Sprintf("%q is not %s", n.text, want), ""}
		}
		return n.text, nil
	}}
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
	return fs.ValidPath(s) && s != "." && len(s) <= 200 && !strings.ContainsAny(s, "\\:\n\t")
}

const nameWords = "a name of letters, digits and . _ + -, at most 64"

// otherNames are what people call steps.
var otherNames = map[string]string{"reattach": "remount", "mount": "attach", "unmount": "detach", "eject": "detach",
	"wait": "settle", "sleep": "settle"}

// enum accepts the listed words, and RAW, diskutil's name for UDRW, if UDRW is
// listed.
func enum(words ...string) *kind {
	accepted := "accepted: " + strings.Join(words, ", ")
	return &kind{name: "word", words: words, json: map[string]any{"type": "string", "enum": words},
		parse: func(n *node) (any, *invalid) {
			if n.kind != stringNode {
				return nil, wrongType(n, "text", accepted)
			}
			word := n.text
			if word == rawFormat {
				word = image.UDRW
			}
			if slices.Contains(words, word) {
				return word, nil
			}
			hint := accepted
			if near := cmp.Or(otherNames[n.text], Nearest(n.text, words)); slices.Contains(words, near) {
				hint = fmt.Sprintf("did you mean %q?", near)
				if len(words) <= 6 { // so few are worth reading
					hint += " " + accepted
				}
			}
			return nil, &invalid{fmt.Sprintf("%q is not accepted here", n.text), hint}
		}}
}

// number accepts whole numbers in [low, high], and the word that means 0 if it
// is not "".
func number(low, high int64, word string) *kind {
	schema := map[string]any{"type": "integer", "minimum": low, "maximum": high}
	accepted := fmt.Sprintf("want %d to %d", low, high)
	if low == high {
		accepted = fmt.Sprintf("want %d", low)
	}
	if word != "" {
		schema = map[string]any{"anyOf": []any{schema, map[string]any{"const": word}}}
		accepted += fmt.Sprintf(", or %q", word)
	}
	return &kind{name: "number", node: intNode, zeroWord: word, json: schema, parse: func(n *node) (any, *invalid) {
		v, err := strconv.ParseInt(n.text, 0, 64)
		switch {
		case n.kind == stringNode && word != "" && n.text == word:
			return int64(0), nil
		case n.kind != intNode:
			return nil, wrongType(n, "a whole number", accepted)
		case err != nil || v < low || v > high:
			return nil, &invalid{n.text + " is out of range", accepted}
		}
		return v, nil
	}}
}

// quantityValue is a number with a unit.
type quantityValue interface {
	units.Bytes | units.Duration | units.Share
	String() string
}

// unitKind accepts strings that parse understands and check accepts, and the
// word that means 0.
func unitKind[V quantityValue](name, word, example string, parse func(string) (V, error), check func(V) error) *kind {
	parseNode := func(n *node) (any, *invalid) {
		switch {
		case n.kind != stringNode:
			return nil, wrongType(n, "a "+name+" such as "+example, "")
		case n.text == word && word != "":
			return V(0), nil
		}
		v, err := parse(n.text)
		if err == nil && check != nil {
			err = check(v)
		}
		if err != nil {
			return nil, &invalid{message: err.Error()}
		}
		v, _ = parse(v.String()) // the value of the canonical text, which is rounded
		return v, nil
	}
	return &kind{name: name, zeroWord: word, json: map[string]any{"type": "string"}, parse: parseNode}
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

// checkSize refuses sizes of files and images that are zero or above maxSize.
func checkSize(v units.Bytes) error {
	if v > maxSize {
		return fmt.Errorf("%s is larger than any disk; want at most %s", v, maxSize)
	}
	return checkPositive(v)
}

// numberToken is the text of a TOML number without a leading + and without
// underscores.
func numberToken(n *node) string { return strings.TrimPrefix(strings.ReplaceAll(n.text, "_", ""), "+") }

// rawFormat is the name that diskutil has for UDRW.
const rawFormat = "RAW"

var (
	flagKind = &kind{name: "yes/no", node: boolNode, json: map[string]any{"type": "boolean"},
		parse: func(n *node) (any, *invalid) {
			if n.kind != boolNode {
				return nil, wrongType(n, "true or false", "")
			}
			return n.text == "true", nil
		}}
	dateKind = &kind{name: "date", node: dateNode, json: map[string]any{"type": "string", "format": "date"},
		parse: func(n *node) (any, *invalid) {
			d, err := time.Parse(time.DateOnly, n.text)
			if n.kind != dateNode || err != nil {
				return nil, &invalid{n.text + " is not a day", "write it as 2026-03-23, without quotes and time"}
			}
			return d, nil
		}}
	sizeKind = unitKind("size", "", `"8 MiB"`, units.ParseBytes, checkSize)
	bandKind = unitKind("size", "default", `"8 MiB"`, units.ParseBytes,
		func(v units.Bytes) error { return image.CheckBandSize(int64(v)) })
	countKind = number(0, 1<<40, "")
	// looseKind is what a manual axis can have as a value: a name or a number.
	looseKind = &kind{name: "text or number", json: map[string]any{"type": []string{"string", "number"}},
		parse: func(n *node) (any, *invalid) {
			text := numberToken(n)
			switch isNumber := n.kind == intNode || n.kind == floatNode; {
			case !isNumber && n.kind != stringNode:
				return nil, wrongType(n, "text or a number", "")
			case isNumber && !units.IsDecimal(strings.TrimPrefix(text, "-")):
				return nil, &invalid{n.text + " is not a plain number", ""}
			case isNumber:
				return text, nil
			case n.text == "" || len(n.text) > 64 || !isPrintable(n.text) || strings.ContainsAny(n.text, ",=\n\t"):
				return nil, &invalid{strconv.Quote(n.text) + " cannot name a value",
					"want 1 to 64 characters, without , and ="}
			}
			return n.text, nil
		}}
	nameText       = textKind(nameWords, nameRule.MatchString)
	anyFormat      = enum(image.FormatNames(nil)...)
	writableFormat = enum(image.FormatNames(image.Format.Writable)...)
)

// kinds maps each name in the struct tags of plan keys to its kind; init adds
// those that depend on registries.
var kinds = map[string]*kind{
	"text":  textKind("text", isPrintable),
	"words": textKind("a text of at least one word", hasWord),
	"line": textKind(fmt.Sprintf("one line of text, of at most %d bytes", maxLine), func(s string) bool {
		return hasWord(s) && !strings.Contains(s, "\n") && len(s) <= maxLine
	}),
	"name":  nameText,
	"bound": textKind("a bound such as \">= 2\" or \"0.9 to 1.1\"", isPrintable),
	"label": textKind("a label of at most 11 letters, digits, _ or -", volumeRule.MatchString),
	"path":  textKind("a relative path inside the volume, such as \"folder/file\"", isLocalPath),
	"place": textKind(nameWords, func(s string) bool {
		_, here := HereFor(s)
		return s == "" || here || nameRule.MatchString(s)
	}),
	"loose": looseKind, "size": sizeKind, "band": bandKind, "rounds": number(1, maxRounds, auto),
	"block": unitKind("size", "whole", `"8 MiB"`, units.ParseBytes, checkSize),
	"time":  unitKind("time", "", `"10 s"`, units.ParseDuration, checkWait),
	"span":  unitKind("time", "", `"10 s"`, units.ParseDuration, checkSpan),
	"share": unitKind("share", "", `"20%"`, units.ParseShare, nil), "writable": writableFormat, "format": anyFormat,
	"encryption": enum(image.Encryptions...), "filesystem": enum(image.FilesystemNames()...),
	"sync": enum("none", "fsync", "full"), "cache": enum("direct", "buffered", "cold"),
	"codec": enum("zstd", "s2", "gzip", "lzfse"), "estimator": enum(estimators...),
	"statistic":   enum(append(slices.Clone(estimators), "minimum", "maximum")...),
	"unit":        enum(displayUnits...),
	"coefficient": enum(coefficientNames...),
}

// kindsOfTypes are the kinds of Go types, for tags that name none.
var kindsOfTypes = map[reflect.Type]*kind{
	reflect.TypeFor[bool](): flagKind, reflect.TypeFor[units.Bytes](): sizeKind,
	reflect.TypeFor[units.Share](): kinds["share"], reflect.TypeFor[time.Time](): dateKind,
}

// findKind returns the kind of a tag: a name, the words of an enumeration
// ("ok|fail"; "nominal|" is the one word nominal), limits ("1..9"), or "" for that
// of the Go type. It panics for any other tag.
func findKind(tag string, t reflect.Type) *kind {
	if k := kinds[tag]; k != nil {
		return k
	}
	if strings.Contains(tag, "|") {
		return enum(strings.Split(strings.TrimSuffix(tag, "|"), "|")...)
	}
	if low, high, ok := strings.Cut(tag, ".."); ok {
		least, _ := strconv.ParseInt(low, 10, 64)
		most, _ := strconv.ParseInt(high, 10, 64)
		return number(least, most, "")
	}
	if k := kindsOfTypes[t]; k != nil && tag == "" {
		return k
	}
	panic(fmt.Sprintf("no kind of value %q for %s", tag, t))
}

// Nearest returns the entry of words with the fewest edits from word, ignoring
// case, or "" if none is close: at most len(word)/3+1 edits, and one less for a
// word with another first letter.
func Nearest(word string, words []string) string {
	if len(word) < 2 || len(word) > 64 { // not a misspelt key
		return ""
	}
	best, bestDistance := "", min(len(word)/3+2, max(2, len(word)-1)) // two letters of three stay
	for _, w := range words {
		d := editDistance(strings.ToLower(word), strings.ToLower(w))
		isNear := w != "" && strings.EqualFold(word[:1], w[:1]) || d <= len(word)/3
		if isNear && d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance of two short words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a[:i] from every b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := min(row[j]+1, row[j+1]+1, diagonal+1)
			if a[i] == b[j] {
				d = diagonal
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// QuantityInfo is one row of the registry of quantities.
type QuantityInfo struct {
	Name Quantity
	// B/s | 1/s | s | B | 1
	Unit string
	// Do is the kind of step that yields it: "write", "measure", "stream", …
	Do string
	// Better: higher | lower, "" of what is neither
	Better string
	Doc    string
}

// Quantities lists every quantity that figures, claims, fits and summaries can
// name: the rows of keys.md and, after the rates, DO_time for each timed kind of
// step.
var Quantities []QuantityInfo

var quantityIndex = map[Quantity]QuantityInfo{}

// readQuantities fills the registry, for which the kinds of step have to be
// known.
func readQuantities() {
	for _, row := range docRows["quantities"] {
		Quantities = append(Quantities, QuantityInfo{Quantity(row[0]), row[1], row[2], row[3], row[4]})
	}
	times := slices.IndexFunc(Quantities, func(q QuantityInfo) bool { return q.Do == "convert" })
	for _, k := range slices.Backward(stepKinds) {
		if !k.untimed {
			Quantities = slices.Insert(Quantities, times,
				QuantityInfo{Quantity(k.do + "_time"), "s", k.do, "lower", "time of the step " + k.do})
		}
	}
	for _, q := range Quantities {
		quantityIndex[q.Name] = q
	}
}

// Info describes the quantity; ok is false for an unknown name.
func (q Quantity) Info() (info QuantityInfo, ok bool) {
	info, ok = quantityIndex[q]
	return info, ok
}

// Unit is B/s, 1/s, s, B or 1, and "" for an unknown name.
func (q Quantity) Unit() string { return quantityIndex[q].Unit }

// unitWords name the base units in messages.
var unitWords = map[string]string{"B/s": "rate", "1/s": "number a second", "s": "time", "B": "size", "1": "pure number"}

// aboutMargin is the share that "about" accepts on either side in a bound.
const aboutMargin = 0.15

// parseValue reads one number in a unit: B/s, s, B, 1/s ("1200 /s"), or 1 (a
// number or a percentage). Seconds are parsed as nanoseconds, in which durations are exact.
func parseValue(text, unit string) (v float64, err error) {
	text = strings.TrimSpace(text)
	number := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "−"))
	switch {
	case unit == "B/s":
		v, err = asFloat(units.ParseRate(number))
	case unit == "s":
		v, err = asFloat(units.ParseDuration(number))
		v /= 1e9
	case unit == "B":
		v, err = asFloat(units.ParseBytes(number))
	case unit == "1/s":
		body, isRate := strings.CutSuffix(number, "/s")
		if v, err = strconv.ParseFloat(strings.TrimSpace(body), 64); !isRate || !units.IsDecimal(strings.TrimSpace(body)) {
			err = fmt.Errorf("parsing %q: want a number a second such as \"1200 /s\"", number)
		}
	case strings.HasSuffix(number, "%"):
		v, err = asFloat(units.ParseShare(number))
	case units.IsDecimal(number):
		v, err = strconv.ParseFloat(number, 64)
	default:
		err = fmt.Errorf("parsing %q: want a pure number such as 2, 0.78 or \"57%%\"", number)
	}
	if number != text {
		v = -v
	}
	return v, err
}

func asFloat[V ~int64 | ~float64](v V, err error) (float64, error) { return float64(v), err }

// ParseFigure reads a number as an author prints it, in the unit of its
// quantity (B/s, 1/s, s, B or 1): "6.13 GB/s", "about
// 2.2 GB/s", "below 0.92 GB/s", "above 2.6 GB/s", "6 GB/s to 7 GB/s". Low and High are in base units.
func ParseFigure(text, unit string) (Figure, error) {
	f := Figure{Kind: "is", Unit: unit, Text: strings.TrimSpace(text)}
	body := f.Text
	for _, kind := range []string{"about", "below", "above"} {
		if rest, ok := strings.CutPrefix(body, kind+" "); ok {
			f.Kind, body = kind, rest
		}
	}
	low, high, isRange := strings.Cut(body, " to ")
	var err error
	if f.Low, err = parseValue(low, unit); err != nil {
		return Figure{}, err
	}
	if !isRange {
		f.High = f.Low
		return f, nil
	}
	if f.High, err = parseValue(high, unit); err != nil {
		return Figure{}, err
	}
	switch {
	case f.Kind != "is":
		return Figure{}, fmt.Errorf("parsing %q: a range cannot be %s", text, f.Kind)
	case f.Low >= f.High:
		return Figure{}, fmt.Errorf("parsing %q: a range goes from the smaller to the larger value", text)
	}
	f.Kind = "range"
	return f, nil
}

// ParseBound reads an accepted interval in a unit (B/s, 1/s, s, B or 1): ">= 2", "<
// 0.5", "0.9 to 1.1" (both ends included), "about 2" (± 15 %).
func ParseBound(text, unit string) (Bound, error) {
	b := Bound{Low: math.Inf(-1), High: math.Inf(1), Unit: unit, Text: strings.TrimSpace(text)}
	for _, op := range []string{">=", "≥", "<=", "≤", ">", "<"} {
		rest, ok := strings.CutPrefix(b.Text, op)
		if !ok {
			continue
		}
		v, err := parseValue(rest, unit)
		if op[0] == '>' || op == "≥" {
			b.Low, b.LowOpen = v, op == ">"
		} else {
			b.High, b.HighOpen = v, op == "<"
		}
		return b, err
	}
	f, err := ParseFigure(b.Text, unit)
	isNumber := strings.ContainsAny(b.Text[:min(1, len(b.Text))], "0123456789.-−") || strings.HasPrefix(b.Text, "about ")
	switch {
	case err != nil && isNumber:
		return Bound{}, err
	case err != nil:
		return Bound{}, fmt.Errorf("parsing %q: want a bound such as \">= 2\", \"< 0.5\", \"0.9 to 1.1\" or \"about 2\"", text)
	case f.Kind == "range":
		b.Low, b.High = f.Low, f.High
	case f.Kind == "about":
		low, high := f.Low*(1-aboutMargin), f.Low*(1+aboutMargin)
		b.Low, b.High = min(low, high), max(low, high)
	default:
		return Bound{}, fmt.Errorf("parsing %q: want a bound such as \">= 2\", \"0.9 to 1.1\" or \"about 2\"", text)
	}
	return b, nil
}

// Holds reports whether v is inside the bound.
func (b Bound) Holds(v float64) bool {
	if math.IsNaN(v) || v < b.Low || v > b.High {
		return false
	}
	return (v != b.Low || !b.LowOpen) && (v != b.High || !b.HighOpen)
}

// tomlString writes a basic string of one line, in which JSON and TOML agree.
func tomlString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("writing text: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// tomlKey quotes a key that needs quotes.
func tomlKey(s string) string {
	if bareKey.MatchString(s) {
		return s
	}
	return tomlString(s)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
