package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

func sizeText(n int64) string { return units.Bytes(n).String() }

// show writes a value in its unit for people.
func show(v float64, unit string) string {
	sign := ""
	if v < 0 && unit != "1" {
		sign, v = "−", -v
	}
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "no number"
	case unit == "B/s":
		return sign + units.Rate(math.Round(v)).Human()
	case unit == "B":
		return sign + units.Bytes(math.Round(v)).Human()
	case unit == "s":
		return sign + units.Duration(time.Duration(math.Round(v*1e9))).Human()
	case v == math.Trunc(v) && math.Abs(v) < 1e6:
		return strconv.Itoa(int(v))
	}
	text := units.Significant(v, 3)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// showSpan writes two limits with one unit: "1.8 to 2.3".
func showSpan(low, high float64, unit string) string {
	a, b := show(low, unit), show(high, unit)
	if a == b {
		return a
	}
	return a + " to " + b
}

// boundText writes what a claim needs: "at least 2", "between 0.9 and 1.1".
func boundText(b plan.Bound) string {
	low, high := !math.IsInf(b.Low, 0), !math.IsInf(b.High, 0)
	from, to := exact(b.Low, b.Unit), exact(b.High, b.Unit)
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

// exact writes a limit that a plan sets: as the plan would where that is short,
// else rounded.
func exact(v float64, unit string) string {
	text := ""
	if math.Abs(v) < 1e18 && v >= 0 {
		switch unit {
		case "B/s":
			text = units.Rate(math.Round(v)).String()
		case "B":
			text = units.Bytes(math.Round(v)).String()
		case "s":
			text = units.Duration(time.Duration(math.Round(v * 1e9))).String()
		}
	}
	if text == "" || len(text) > len("1234.567 MB/s") {
		return show(v, unit)
	}
	return text
}

// plural writes "1 round" or "3 rounds".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func percent(share float64) string { return show(100*share, "1") + " %" }

// timesPhrase words how a compares with b where their ratio is in ratio.
func timesPhrase(a, b operandValue, ratio string) string {
	if a.q == "allocated" && b.q == "apparent" {
		return fullSizePhrase(a.label, b.label, ratio)
	}
	if a.q != b.q {
		return fmt.Sprintf("the %s of %s is %s times the %s of %s", nameOf(a.q), a.label, ratio, nameOf(b.q), b.label)
	}
	do, timed := strings.CutSuffix(string(a.q), "_time")
	switch {
	case a.q == "write" || a.q == "read":
		return fmt.Sprintf("%s %ss %s times as fast as %s", a.label, a.q, ratio, b.label)
	case a.q == "stream":
		return fmt.Sprintf("%s compresses %s times as fast as %s", a.label, ratio, b.label)
	case timed:
		return fmt.Sprintf("%s takes %s times as long to %s as %s", a.label, ratio, do, b.label)
	case a.q == "allocated":
		return fmt.Sprintf("%s takes up %s times the space of %s", a.label, ratio, b.label)
	}
	return fmt.Sprintf("the %s of %s is %s times that of %s", nameOf(a.q), a.label, ratio, b.label)
}

// fullSizePhrase words how the size on disk compares with the full size of the image: "UDRW, when created, takes up its full size (ratio 1.00)".
func fullSizePhrase(a, b, ratio string) string {
	of := "the full size of " + b
	if a == b {
		of = "its full size"
	}
	if name, phase, ok := strings.Cut(a, ", phase "); ok {
		a = name + ", when " + phase + ","
	}
	if ratio == "1" {
		return fmt.Sprintf("%s takes up %s (ratio 1.00)", a, of)
	}
	return fmt.Sprintf("%s takes up %s times %s", a, ratio, of)
}

// labels names selectors that are compared by what they differ in,
// and gives what all of them share.
func labels(sels []plan.Selector) (own []string, shared string) {
	var common []string
	own = make([]string, len(sels))
	for _, key := range keysOf(sels) {
		texts := make([]string, len(sels))
		same := true
		for i, sel := range sels {
			c, _ := choiceOf(sel, key)
			texts[i] = choiceText(key, c.Values)
			same = same && texts[i] == texts[0]
		}
		if same {
			common = append(common, texts[0])
			continue
		}
		for i, t := range texts {
			if t != "" {
				own[i] = strings.TrimPrefix(own[i]+", "+t, ", ")
			}
		}
	}
	shared = strings.Join(common, ", ")
	for i := range own {
		if own[i] == "" {
			own[i] = "the same"
			if shared != "" {
				own[i] = shared
			} else if len(sels) == 1 || len(sels[i]) == 0 {
				own[i] = "every image"
			}
		}
	}
	return own, shared
}

// keysOf lists the keys of all selectors, in the order of first mention.
func keysOf(sels []plan.Selector) []string {
	var out []string
	seen := map[string]bool{}
	for _, sel := range sels {
		for _, c := range sel {
			if !seen[c.Key] {
				seen[c.Key] = true
				out = append(out, c.Key)
			}
		}
	}
	return out
}

func choiceText(key string, values []string) string {
	text := strings.Join(values, " or ")
	switch {
	case text == "":
		return ""
	case key == "format":
		return text
	case key == "encryption":
		return strings.ReplaceAll(text, "none", "unencrypted")
	case key == "target" && text == "directory" || key == "baseline" && text == "true":
		return "the native folder"
	case key == "target" || key == "baseline":
		return text
	case key == "phase":
		return "phase " + text
	case key == "file_size":
		return text + " files"
	case key == "place" && strings.HasPrefix(text, plan.Here+" (not "):
		return text
	case key == "place":
		return "on " + text
	}
	return strings.ReplaceAll(key, "_", " ") + " " + text
}
