// Package wording makes the sentences of results. Analysis finds kinds and
// values; here they become text: reasons, evidence, warnings, deviations and
// changes.
//
// sentences.txt has the sentences by key, and the types of this package write
// the values in them: an [Amount] with its unit, a [Span], a [Count] with its
// noun, a [Percent], a [P] value. A [Message] is a key with values and is
// written only where somebody reads it, since most findings of an analysis are
// compared and never shown.
package wording

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

//go:embed sentences.txt
var sentencesText string

var sentences = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(sentencesText) {
		if key, text, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && !strings.HasPrefix(key, "#") {
			out[key] = strings.TrimLeft(text, " ")
		}
	}
	return out
})

// Message is a sentence or a part of one: a key of sentences.txt and the values
// in it. The zero Message is empty.
type Message struct {
	key  string
	args []any
}

// Say is a message; the values are those of the verbs of the sentence, in their
// order.
func Say(key string, args ...any) Message { return Message{key, args} }

// Text writes a message at once.
func Text(key string, args ...any) string { return Say(key, args...).String() }

// String writes the message.
func (m Message) String() string {
	if m.key == "" {
		return ""
	}
	return fmt.Sprintf(sentences()[m.key], m.args...)
}

// IsZero reports whether there is no message.
func (m Message) IsZero() bool { return m.key == "" }

// With is the message with another first value.
func (m Message) With(v any) Message {
	args := slices.Clone(m.args)
	args[0] = v
	return Message{m.key, args}
}

// Join adds b to a with a semicolon. Parts that a has are not repeated, as
// several operands may share a reason.
func Join(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	for part := range strings.SplitSeq(b, "; ") {
		if !slices.Contains(strings.Split(a, "; "), part) {
			a += "; " + part
		}
	}
	return a
}

// NonEmpty are the texts of a list that are not empty.
func NonEmpty(list []string) (texts []string) {
	for _, s := range list {
		if s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// JoinFacts joins what is known of a thing with commas.
func JoinFacts(texts ...string) string { return strings.Join(NonEmpty(texts), ", ") }

// Amount is a value with its unit: B/s, B, s, 1/s, or 1.
type Amount struct {
	Value float64
	Unit  string
}

func (a Amount) String() string {
	v, sign := a.Value, ""
	if v < 0 && a.Unit != "1" {
		sign, v = "−", -v
	}
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "no number"
	case a.Unit == "B/s":
		return sign + units.Rate(math.Round(v)).Human()
	case a.Unit == "B":
		return sign + units.Bytes(math.Round(v)).Human()
	case a.Unit == "s":
		return sign + units.Duration(time.Duration(math.Round(v*1e9))).Human()
	case a.Unit == "1/s":
		return sign + units.Significant(v, 3) + " /s"
	case v == math.Trunc(v) && math.Abs(v) < 1e6:
		return strconv.Itoa(int(v))
	}
	return trimZeros(units.Significant(v, 3))
}

// Number is a pure number.
func Number(v float64) Amount { return Amount{v, "1"} }

// Span is two limits with one unit: "1.8 to 2.3".
type Span struct {
	Low, High float64
	Unit      string
}

func (s Span) String() string {
	a, b := Amount{s.Low, s.Unit}.String(), Amount{s.High, s.Unit}.String()
	if a == b {
		return a
	}
	return a + " to " + b
}

// Count is a number of things: "1 round", "3 rounds".
type Count struct {
	N    int
	Noun string
}

func (c Count) String() string { return units.Count(c.N, c.Noun) }

// Percent is a share.
type Percent float64

func (p Percent) String() string { return Number(100*float64(p)).String() + " %" }

// Size is a number of bytes as plans write it.
type Size int64

func (s Size) String() string { return units.Bytes(s).String() }

// P is a p value in a sentence: "p = 0.02", or "p below 0.0001".
type P float64

func (p P) String() string {
	text := "p = " + p.Short()
	return strings.Replace(text, "= below", "below", 1)
}

// Short is the p value alone: two digits, "below 0.0001", or "1".
func (p P) Short() string {
	if p < 0.0001 {
		return "below 0.0001"
	}
	return fmt.Sprintf("%.2g", float64(p))
}

// Bound is what a claim needs: "at least 2", "between 0.9 and 1.1".
type Bound plan.Bound

func (b Bound) String() string {
	low, high := !math.IsInf(b.Low, 0), !math.IsInf(b.High, 0)
	from, to := Amount{b.Low, b.Unit}.String(), Amount{b.High, b.Unit}.String()
	switch {
	case low && high:
		return "between " + from + " and " + to
	case low && b.LowOpen:
		return "more than " + from
	case low:
		return "at least " + from
	case high && b.HighOpen:
		return "less than " + to
	case high:
		return "at most " + to
	}
	return "any value"
}

// Method is how an interval was made: the distribution, the looks that could
// have been the last (from 2 on), and the standard deviation, as a share, that
// is allowed between sessions (0 for none).
type Method struct {
	Name    string
	Looks   int
	Session float64
}

func (m Method) String() string {
	text := m.Name
	if m.Looks >= 2 {
		text += fmt.Sprintf(", %d looks", m.Looks)
	}
	if m.Session > 0 {
		text += fmt.Sprintf(", %s allowed for what the session was like", Percent(m.Session))
	}
	return text
}

// Numbers is ascending numbers, the first few of many.
type Numbers []int

func (ns Numbers) String() string {
	const few = 6
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(ns[:min(few, len(ns))])), " ", ", "), "[]")
	if len(ns) > few {
		text += fmt.Sprintf(" and %d more", len(ns)-few)
	}
	return text
}

// Faster writes the logarithm of a time over the expected one: "2 times
// faster", "3 times slower".
func Faster(log float64) string {
	if log < 0 {
		return Number(math.Exp(-log)).String() + " times faster"
	}
	return Number(math.Exp(log)).String() + " times slower"
}

func trimZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// ChangeWords are the words for a quantity that is larger, smaller or a
// multiple: "faster", "slower", "fast".
type ChangeWords struct{ Up, Down, Times string }

// The ratios beyond which a change is written as a multiple: a decrease close
// to 100 % hides what is left.
const (
	smallChange = 0.05
	largeChange = 2
)

// Change writes a ratio as a change: a share, or a multiple. ci is its interval,
// nil for none.
func (w ChangeWords) Change(ratio float64, ci *Span) string {
	switch {
	case ratio == 1:
		return "no change"
	case ratio >= largeChange || ratio < smallChange:
		text := fmt.Sprintf("%s times as %s", Number(ratio), w.Times)
		if ci != nil { // a multiple is known to about as many digits as its lower end
			text += rangeText(ci.Low, ci.High, ci.Low, "")
		}
		return text
	}
	word, sign := w.Up, 1.0
	if ratio < 1 {
		word, sign = w.Down, -1
	}
	size := 100 * sign * (ratio - 1)
	text := decimals(size, size) + " % " + word
	if ci == nil {
		return text
	}
	low, high := 100*sign*(ci.Low-1), 100*sign*(ci.High-1)
	if low, high = min(low, high), max(low, high); low < 0 {
		return text + " (" + SignedSpan(ci.Low-1, ci.High-1) + ")"
	}
	return text + rangeText(low, high, high, " %")
}

// PercentUp rounds a share up to two digits, for "within".
func PercentUp(share float64) string {
	x := 100 * share
	step := math.Pow(10, math.Floor(math.Log10(max(x, 0.001)))-1)
	return Number(math.Ceil(x/step-1e-9)*step).String() + " %"
}

// rateNouns are what the operations of quantities are done to or are.
var rateNouns = map[string]string{"tree": " files/s", "random": " operations/s"}

// WithNoun adds to a rate of operations what is counted: "5.7 k files/s".
func WithNoun(quantity, text string) string {
	number, isRate := strings.CutSuffix(text, "/s")
	noun := rateNouns[quantity]
	if !isRate || noun == "" {
		return text
	}
	return number + noun
}

// decimals writes x with digits that fit a number of the size of scale.
func decimals(x, scale float64) string {
	n := 0
	for s := math.Abs(scale); s > 0 && s < 10 && n < 4; s *= 10 {
		n++
	}
	return trimZeros(strconv.FormatFloat(x, 'f', n, 64))
}

// rangeText writes " (8–16 %)" with one precision for both ends.
func rangeText(low, high, scale float64, unit string) string {
	a, b := decimals(low, scale), decimals(high, scale)
	if a == b {
		return " (interval within these digits)"
	}
	return " (" + a + "–" + b + unit + ")"
}

// SignedSpan writes two shares as changes: "−3 to +4 %".
func SignedSpan(low, high float64) string {
	scale := 100 * max(math.Abs(low), math.Abs(high))
	sign := func(v float64) string {
		text := decimals(math.Abs(v), scale)
		switch {
		case strings.Trim(text, "0.") == "":
			return "0"
		case v < 0:
			return "−" + text
		}
		return "+" + text
	}
	return sign(100*low) + " to " + sign(100*high) + " %"
}

// Selector writes a selector in full: "format UDSB, phase new".
type Selector plan.Selector

func (s Selector) String() string {
	parts := make([]string, len(s))
	for i, c := range s {
		parts[i] = strings.ReplaceAll(c.Key, "_", " ") + " " + strings.Join(c.Values, " or ")
	}
	return cmp.Or(strings.Join(parts, ", "), "any case")
}

// Labels names selectors that are compared, each by what it differs in from the
// others.
func Labels(sels []plan.Selector) []string {
	all, uses := make([][]string, len(sels)), map[string]int{}
	for i, sel := range sels {
		for _, c := range sel {
			text := ChoiceText(c.Key, c.Values...)
			all[i] = append(all[i], text)
			uses[text]++
		}
	}
	out := make([]string, len(sels))
	for i, texts := range all {
		isShared := func(text string) bool { return uses[text] == len(sels) }
		own := slices.DeleteFunc(slices.Clone(texts), isShared)
		out[i] = cmp.Or(JoinFacts(own...), JoinFacts(texts...), "every image")
	}
	return out
}

// ChoiceText writes the values of one selector key: "UDSB", "unencrypted",
// "phase new".
func ChoiceText(key string, values ...string) string {
	text := strings.Join(values, " or ")
	switch {
	case text == "":
		return ""
	case key == "encryption":
		return strings.ReplaceAll(text, "none", "unencrypted")
	case key == "target" && text == "directory" || key == "baseline" && text == "true":
		return "the native folder"
	case key == "format" || key == "target" || key == "baseline",
		key == "place" && strings.HasPrefix(text, plan.Here+" (not "):
		return text
	case key == "file_size":
		return text + " files"
	case key == "place":
		return "on " + text
	}
	return strings.ReplaceAll(key, "_", " ") + " " + text
}

// Case writes the id of a case as people write it: "UDSB, AES-256".
func Case(id string) string {
	parts := strings.Split(id, ",")
	for i, p := range parts {
		if key, value, ok := strings.Cut(p, "="); ok {
			parts[i] = ChoiceText(key, value)
		}
	}
	return strings.Join(parts, ", ")
}
