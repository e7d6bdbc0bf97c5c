package report

import (
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// namelessKeys are the keys with values that need no key next to them: "UDSB",
// not "format UDSB".
var namelessKeys = []string{"format", "encryption", "filesystem", "place", "backend", "codec", "target"}

// NativeFolder is the name of the case without an image.
const NativeFolder = "native folder"

// caseNames gives every case, by id, the shortest name that is its own: the
// values of the keys in which cases differ. The table of cases has the full
// ids.
func caseNames(cases []result.Case) map[string]string {
	out := map[string]string{}
	unique, vary := Namer(" #"), VaryingKeys(cases) // names may be the same after cleaning
	for _, c := range cases {
		var parts []string
		if c.Baseline {
			parts = append(parts, NativeFolder)
		}
		for _, kv := range c.Keys {
			if slices.Contains(vary, kv[0]) && !(c.Baseline && (kv[0] == "target" || kv[0] == "format")) {
				parts = append(parts, CaseValue(kv[0], kv[1]))
			}
		}
		switch {
		case len(parts) > 0:
		case c.Target.Kind == "directory":
			parts = append(parts, NativeFolder)
		default:
			parts = append(parts, plan.FormatName(Plain(FirstOf(c.Target.Format, c.Target.Kind), 24)))
		}
		if _, here := plan.HereFor(c.Target.Place); here && !slices.Contains(vary, "place") {
			parts = append(parts, KeyValue("place", c.Target.Place)) // even where all cases share it
		}
		out[c.ID] = unique(FirstOf(glue(" · ", parts...), Plain(c.ID, 60)))
	}
	return out
}

// CaseNames gives every case of a plan, by id, the name that the report of its
// run will have.
func CaseNames(p *plan.Plan) map[string]string {
	var cases []result.Case
	for _, c := range p.Cases() {
		target := result.Target{Kind: c.Settings.Target, Place: c.Settings.Place, Format: c.Settings.Format}
		keys := Map(c.Keys, func(kv plan.KeyValue) [2]string { return [2]string{kv.Key, kv.Value} })
		cases = append(cases, result.Case{ID: c.ID, Baseline: c.Baseline, Target: target, Keys: keys})
	}
	return caseNames(cases)
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
	case key == "preallocate" && value == "true":
		return "preallocated"
	case key == "preallocate":
		return "as it grows"
	case slices.Contains(namelessKeys, key):
		return value
	case len(value) > 8 && AxisUnit(key) == "B": // such as 15400448 B
		if b, err := units.ParseBytes(value); err == nil {
			value = Human(float64(b), "B")
		}
	}
	return Plain(strings.ReplaceAll(key, "_", " "), 24) + " " + value
}

// VaryingKeys lists the keys that do not have one value in all cases, in the
// order of the cases. A baseline makes no difference by what it lacks.
func VaryingKeys(cases []result.Case) []string {
	var order []string
	values := map[string][]string{} // of the images
	images := 0
	for _, c := range cases {
		for _, kv := range c.Keys {
			if order = AppendNew(order, kv[0]); !c.Baseline {
				values[kv[0]] = append(values[kv[0]], kv[1])
			}
		}
		if !c.Baseline {
			images++
		}
	}
	return slices.DeleteFunc(order, func(key string) bool {
		all := values[key]
		differ := slices.ContainsFunc(all, func(value string) bool { return value != all[0] })
		return !differ && (len(all) == images || len(all) == 0)
	})
}

// PhaseName is the name of a phase with its cycle, which counts from 1; 0 is a
// phase without cycles.
func PhaseName(phase string, cycle int) string {
	return glue(" · ", Plain(phase, 40), TextIf(cycle > 0, "cycle "+strconv.Itoa(cycle)))
}

// PhaseSuffix is ", phase “new”" for headings, "" without a phase.
func PhaseSuffix(phase string) string {
	return TextIf(phase != "", ", phase “"+Plain(phase, 40)+"”")
}

// QuantityName is the name of a quantity in words: "attach_time" is "time to
// attach".
func QuantityName(op string) string {
	words := Plain(strings.ReplaceAll(op, "_", " "), 40)
	if do, ok := strings.CutSuffix(op, "_time"); ok {
		words = "time to " + Plain(do, 40)
	}
	return FirstOf(wording.Text("quantity."+op), words)
}

// StepName is the action with its phase: "write new", "detach".
func StepName(s result.Step) string {
	name := strings.TrimSpace(Plain(s.Do, 30) + TextIf(s.Phase != s.Do, " "+Plain(s.Phase, 40)))
	return name + TextIf(s.Cycle > 0, " (cycle "+strconv.Itoa(s.Cycle)+")")
}
