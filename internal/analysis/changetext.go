package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// effect writes a row in words: "12 % slower (8–16 %)", or "~" and what was seen.
func effect(r *CompareRow) string {
	switch r.Status {
	case RowChanged:
		return changeText(plan.Quantity(r.Op), r.Ratio, r.CI)
	case RowSame:
		return fmt.Sprintf("~ the same within %s", percentUp(max(math.Abs(r.CI.Low-1), math.Abs(r.CI.High-1))))
	case RowSessionUnknown:
		return "~ session effect unknown; seen: " + changeText(plan.Quantity(r.Op), r.Ratio, nil)
	}
	if r.CI == nil {
		return "~"
	}
	return "~ (" + signedSpan(r.CI.Low-1, r.CI.High-1) + ")"
}

// changeText is a ratio as a change: a share, or a multiple from twice on.
func changeText(q plan.Quantity, ratio float64, ci *result.CI) string {
	up, down, times := changeWords(q)
	switch {
	case ratio == 1:
		return "no change"
	case ratio >= 2:
		text := fmt.Sprintf("%s times as %s", show(ratio, "1"), times)
		if ci != nil { // a multiple is known to about as many digits as its lower end
			text += spanText(ci.Low, ci.High, ci.Low, "")
		}
		return text
	}
	word, size := up, ratio-1
	if ratio < 1 {
		word, size = down, 1-ratio
	}
	scale := 100 * size
	if ratio < nearlyNothing { // what is left has digits too: 99.63 %, not 100 %
		scale = 100 * ratio
	}
	text := decimals(100*size, scale) + " % " + word
	if ci == nil {
		return text
	}
	low, high := ci.Low-1, ci.High-1
	if ratio < 1 {
		low, high = 1-ci.High, 1-ci.Low
	}
	if low < 0 {
		return text + " (" + signedSpan(ci.Low-1, ci.High-1) + ")"
	}
	if ratio >= nearlyNothing {
		scale = 100 * max(low, high)
	}
	return text + spanText(100*low, 100*high, scale, " %")
}

// nearlyNothing is the ratio below which a decrease is so close to 100 % that what is left is printed instead.
const nearlyNothing = 0.05

// changeWords are the words for a quantity that is larger, smaller or a multiple.
func changeWords(q plan.Quantity) (up, down, times string) {
	switch {
	case rate(q):
		return "faster", "slower", "fast"
	case strings.HasSuffix(string(q), "_time"):
		return "longer", "shorter", "long"
	case quantityRows[q].bands:
		return "more", "fewer", "many"
	case q.Unit() == "B":
		return "larger", "smaller", "large"
	}
	return "higher", "lower", "high"
}

// percentUp rounds a share up, for "within".
func percentUp(share float64) string {
	x := 100 * share
	step := 1.0
	for step > x && step > 0.001 {
		step /= 10
	}
	if x >= 1 {
		step = 0.1
	}
	if x >= 10 {
		step = 1
	}
	return show(math.Ceil(x/step-1e-9)*step, "1") + " %"
}

// decimals writes x with digits that fit a number of the size of scale.
func decimals(x, scale float64) string {
	n := 0
	for s := math.Abs(scale); s > 0 && s < 10 && n < 4; s *= 10 {
		n++
	}
	text := strconv.FormatFloat(x, 'f', n, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// spanText writes " (8–16 %)" with one precision for both ends.
func spanText(low, high, scale float64, unit string) string {
	a, b := decimals(low, scale), decimals(high, scale)
	if a == b {
		return " (interval within these digits)"
	}
	return " (" + a + "–" + b + unit + ")"
}

// signedSpan writes "−3 to +4 %".
func signedSpan(low, high float64) string {
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

// addAnswers adds the outcome of each side in a sentence.
func (c *comparer) addAnswers() {
	base := c.sides[0].name
	for _, s := range c.sides[1:] {
		a := CompareAnswer{Side: s.name}
		var worst, best *CompareRow
		unknown, rows := 0, 0
		for i := range c.out.Rows {
			r := &c.out.Rows[i]
			if r.Side != s.name {
				continue
			}
			rows++
			switch {
			case r.Status == RowChanged && r.Better < 0:
				a.Worse++
				worst = largerEffect(worst, r)
			case r.Status == RowChanged && r.Better > 0:
				a.Better++
				best = largerEffect(best, r)
			case r.Status == RowSame || r.Status == RowChanged:
				a.Same++
			default:
				a.Open++
				if r.Status == RowSessionUnknown {
					unknown++
				}
			}
		}
		a.Text = s.name + " against " + base + ": " + answerText(a, rows, unknown, worst, best)
		c.out.Answers = append(c.out.Answers, a)
	}
}

func largerEffect(a, b *CompareRow) *CompareRow {
	if a == nil || math.Abs(math.Log(b.Ratio)) > math.Abs(math.Log(a.Ratio)) {
		return b
	}
	return a
}

func answerText(a CompareAnswer, rows, unknown int, worst, best *CompareRow) string {
	switch {
	case rows == 0:
		return "nothing could be paired"
	case unknown == rows:
		return "undecided: too few sessions to know how much sessions differ"
	}
	of := func(n int, word string, at *CompareRow) string {
		text := fmt.Sprintf("%s in %d of %d", word, n, rows)
		if at != nil {
			most := ", namely "
			if n > 1 {
				most = ", most of all "
			}
			text += fmt.Sprintf("%s%s, %s: %s", most, rowName(at), at.Op, at.Effect)
		}
		return text
	}
	var parts []string
	if a.Worse > 0 {
		parts = append(parts, of(a.Worse, "worse", worst))
	}
	if a.Better > 0 {
		parts = append(parts, of(a.Better, "better", best))
	}
	if a.Same > 0 {
		parts = append(parts, of(a.Same, "the same within the threshold", nil))
	}
	if a.Open > 0 {
		parts = append(parts, of(a.Open, "undecided", nil))
	}
	return strings.Join(parts, "; ")
}

// rowName is the case and phase of a row.
func rowName(r *CompareRow) string {
	out := caseWords(r.Case)
	if r.Phase != "" {
		out += ", " + r.Phase
	}
	if r.Cycle > 0 {
		out += fmt.Sprintf(", cycle %d", r.Cycle)
	}
	return out
}

// caseWords is the id of a case as people write it: "UDSB, AES-256".
func caseWords(id string) string {
	parts := strings.Split(id, ",")
	for i, p := range parts {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case !ok:
		case key == "encryption" && value == "none":
			parts[i] = "unencrypted"
		case key == "baseline" && value == "true":
			parts[i] = "native folder"
		case slices.Contains([]string{"format", "encryption", "filesystem", "place", "backend", "codec", "target"}, key):
			parts[i] = value
		default:
			parts[i] = strings.ReplaceAll(key, "_", " ") + " " + value
		}
	}
	return strings.Join(parts, ", ")
}
