package wording

import (
	"slices"
	"strings"

	"dmgbench/internal/plan"
)

// Selector writes a selector in full: "format UDSB, phase new".
type Selector plan.Selector

func (s Selector) String() string {
	if len(s) == 0 {
		return "any case"
	}
	parts := make([]string, len(s))
	for i, c := range s {
		parts[i] = strings.ReplaceAll(c.Key, "_", " ") + " " + strings.Join(c.Values, " or ")
	}
	return strings.Join(parts, ", ")
}

// Labels names selectors that are compared, each by what it differs in from the
// others.
func Labels(sels []plan.Selector) []string {
	var shared []string
	own := make([]string, len(sels))
	for _, key := range keysOf(sels) {
		texts := make([]string, len(sels))
		same := true
		for i, sel := range sels {
			if k := slices.IndexFunc(sel, func(c plan.Choice) bool { return c.Key == key }); k >= 0 {
				texts[i] = ChoiceText(key, sel[k].Values...)
			}
			same = same && texts[i] == texts[0]
		}
		if same {
			shared = append(shared, texts[0])
			continue
		}
		for i, t := range texts {
			own[i] = NonEmpty(own[i], t)
		}
	}
	for i := range own {
		switch {
		case own[i] != "":
		case len(shared) > 0:
			own[i] = strings.Join(shared, ", ")
		case len(sels) == 1 || len(sels[i]) == 0:
			own[i] = "every image"
		default:
			own[i] = "the same"
		}
	}
	return own
}

// keysOf lists the keys of all selectors, in the order of first mention.
func keysOf(sels []plan.Selector) (out []string) {
	for _, sel := range sels {
		for _, c := range sel {
			if !slices.Contains(out, c.Key) {
				out = append(out, c.Key)
			}
		}
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

// shownAlone are the keys of cases with values that need no key to be
// understood.
var shownAlone = []string{"format", "encryption", "filesystem", "place", "backend", "codec", "target"}

// Case writes the id of a case as people write it: "UDSB, AES-256".
func Case(id string) string {
	parts := strings.Split(id, ",")
	for i, p := range parts {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case !ok:
		case key == "encryption" && value == "none":
			parts[i] = "unencrypted"
		case key == "baseline" && value == "true":
			parts[i] = "native folder"
		case slices.Contains(shownAlone, key):
			parts[i] = value
		default:
			parts[i] = strings.ReplaceAll(key, "_", " ") + " " + value
		}
	}
	return strings.Join(parts, ", ")
}
