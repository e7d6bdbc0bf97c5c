package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// selfExplaining are the keys with values that need no name; others are shown with their key.
var selfExplaining = []string{"format", "encryption", "filesystem", "place", "backend", "codec", "target"}

// NativeFolder is the name of the case without an image.
const NativeFolder = "native folder"

// labels gives every case the shortest name that distinguishes it from the others: the
// values of the keys in which cases differ. Full ids are in the table of cases.
func labels(cases []result.Case) map[string]string {
	out := map[string]string{}
	taken := map[string]bool{}
	vary := VaryingKeys(cases)
	for _, c := range cases {
		name := label(c, vary)
		if taken[name] || name == "" {
			name = Plain(c.ID, 60)
		}
		for n := 2; taken[name]; n++ { // ids may differ only in what cleaning removed
			name = Plain(c.ID, 56) + " #" + Human(float64(n), "1")
		}
		taken[name] = true
		out[c.ID] = name
	}
	return out
}

// CaseNames gives every case of a plan the name that the report of its run will have, by id.
func CaseNames(p *plan.Plan) map[string]string {
	var cases []result.Case
	for _, c := range p.Cases() {
		rc := result.Case{ID: c.ID, Baseline: c.Baseline,
			Target: result.Target{Kind: c.Settings.Target, Place: c.Settings.Place, Format: c.Settings.Format}}
		for _, kv := range c.Keys {
			rc.Keys = append(rc.Keys, [2]string{kv.Key, kv.Value})
		}
		cases = append(cases, rc)
	}
	return labels(cases)
}

func label(c result.Case, vary []string) string {
	var parts []string
	if c.Baseline {
		parts = append(parts, NativeFolder)
	}
	for _, kv := range c.Keys {
		if !slices.Contains(vary, kv[0]) || c.Baseline && (kv[0] == "target" || kv[0] == "format") {
			continue
		}
		parts = append(parts, CaseValue(kv[0], kv[1]))
	}
	if len(parts) == 0 {
		if c.Target.Kind == "directory" {
			parts = append(parts, NativeFolder)
		} else {
			parts = append(parts, plan.FormatName(Plain(FirstOf(c.Target.Format, c.Target.Kind), 24)))
		}
	}
	if _, here := plan.HereFor(c.Target.Place); here && !slices.Contains(vary, "place") {
		parts = append(parts, KeyValue("place", c.Target.Place)) // even where all cases share it
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// CaseValue writes one setting for the name of a case, formats in words.
func CaseValue(key, value string) string {
	if key == "format" {
		return plan.FormatName(Plain(value, 40))
	}
	return KeyValue(key, value)
}

// KeyValue writes one setting in words: "AES-256", "unencrypted", "workers 4".
func KeyValue(key, value string) string {
	value = Plain(value, 40)
	switch {
	case key == "encryption" && value == "none":
		return "unencrypted"
	case key == "preallocate":
		return map[bool]string{true: "preallocated", false: "as it grows"}[value == "true"]
	case slices.Contains(selfExplaining, key):
		return value
	case len(value) > 8 && IsByteAxis(key): // 15400448 B
		if b, err := units.ParseBytes(value); err == nil {
			value = Human(float64(b), "B")
		}
	}
	return Plain(strings.ReplaceAll(key, "_", " "), 24) + " " + value
}

// VaryingKeys lists the keys that do not have one value in all cases; what a baseline lacks makes no difference.
func VaryingKeys(cases []result.Case) []string {
	var order []string
	values := map[string]map[string]bool{}
	images := 0
	seen := map[string]int{}
	for _, c := range cases {
		if !c.Baseline {
			images++
		}
		for _, kv := range c.Keys {
			if values[kv[0]] == nil {
				values[kv[0]] = map[string]bool{}
				order = append(order, kv[0])
			}
			if !c.Baseline {
				seen[kv[0]]++
				values[kv[0]][kv[1]] = true
			}
		}
	}
	return slices.DeleteFunc(order, func(key string) bool {
		return len(values[key]) < 2 && (seen[key] == images || seen[key] == 0)
	})
}

// PhaseName adds the cycle to the name of a phase.
func PhaseName(phase string, cycle int) string {
	phase = Plain(phase, 40)
	if cycle > 0 {
		return strings.Join(NonEmpty([]string{phase, "cycle " + Human(float64(cycle), "1")}), " · ")
	}
	return phase
}

// QuantityName turns the name of a quantity into words: "attach_time" is "time to attach".
func QuantityName(op string) string {
	switch op {
	case "free":
		return "free on volume"
	case "host_free":
		return "free on host"
	case "live":
		return "live files"
	case "allocated":
		return "size on disk"
	case "apparent":
		return "apparent size"
	case "reclaimed":
		return "freed by compact"
	case "trimmed":
		return "freed by trim"
	case "convert_ratio":
		return "files / converted"
	case "stream_out":
		return "compressed size"
	case "bands_full":
		return "full bands"
	}
	if do, ok := strings.CutSuffix(op, "_time"); ok {
		return "time to " + Plain(do, 40)
	}
	return Plain(strings.ReplaceAll(op, "_", " "), 40)
}

// Capitalize starts a text with a capital.
func Capitalize(s string) string {
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(string(first)) + s[size:]
}

// PhaseSuffix is ", phase “new”" for headings, "" without a phase.
func PhaseSuffix(phase string) string {
	return TextIf(phase != "", ", phase “"+Plain(phase, 40)+"”")
}
