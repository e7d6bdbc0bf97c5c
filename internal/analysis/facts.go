package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// compareFact is something that runs may differ in.
type compareFact struct {
	name string
	// Of a [Difference]; "repetition" changes from run to run without changing what
	// is measured.
	kind string
	of   func(*result.Result) []string
	// Single: runs of one side that differ in it are worth a note.
	single bool
}

// compareFacts are in the order in which differences are listed.
var compareFacts = []compareFact{
	{"host", "machine", hostNames, true},
	{"model", "machine", ofHost(func(h result.Host) string { return cmp.Or(h.Model, h.Arch) }), true},
	{"cpu", "machine", ofHost(func(h result.Host) string { return h.CPU }), true},
	{"cores", "machine", ofHost(func(h result.Host) string {
		return strings.TrimPrefix(fmt.Sprint(h.CPUs), "0")
	}), true},
	{"memory", "machine", ofHost(func(h result.Host) string {
		return strings.TrimPrefix(units.Bytes(h.Memory).Human(), "0 B")
	}), true},
	{"virtual", "machine", ofHost(func(h result.Host) string { return cmp.Or(h.Virtual, "no") }), true},
	{"disk", "machine", diskFacts, false},
	{"power", "machine", ofHost(powerText), true},
	{"os", "system", ofHost(osText), true},
	{"os_version", "system", ofHost(func(h result.Host) string { return spaced(h.OS, h.OSVersion) }), false},
	{"os_build", "system", ofHost(func(h result.Host) string { return h.OSBuild }), false},
	{"kernel", "system", ofHost(func(h result.Host) string { return h.Kernel }), true},
	{"filevault", "system", ofHost(func(h result.Host) string { return h.FileVault }), true},
	{"tool", "tool", ofRun(func(r *result.Result) string { return spaced(r.Tool.Name, r.Tool.Version) }), true},
	{"engine", "tool", engineFacts, true},
	{"backend", "tool", ofTargets(func(t result.Target) string { return t.Backend }), false},
	{"mount", "protocol", ofTargets(func(t result.Target) string { return cmp.Or(t.Mount, "private") }), false},
	{"owners", "protocol", ofTargets(func(t result.Target) string { return t.Owners }), false},
	{"filesystem", "protocol", filesystemFacts, false},
	{"plan", "protocol", ofRun(func(r *result.Result) string { return r.Plan.Name }), false},
	{"scale", "protocol", ofDepartures("scale", "sets", "codec", "input"), false},
	{"workers", "protocol", workersFacts, false},
	{"cache", "protocol", ofSteps(func(st *result.Step) *result.Achieved { return st.Cache }), false},
	{"sync", "protocol", ofSteps(func(st *result.Step) *result.Achieved { return st.Sync }), false},
	{"digest", "repetition", ofRun(func(r *result.Result) string {
		return fmt.Sprintf("%.12s", r.Plan.Digest)
	}), false},
	{"seed", "repetition", ofRun(func(r *result.Result) string { return fmt.Sprint(r.Seed) }), false},
	{"rounds", "repetition", ofRun(func(r *result.Result) string { return fmt.Sprint(r.Rounds) }), false},
}

// CompareFacts are the names that [CompareOptions.By] accepts in addition to
// the keys of cases.
var CompareFacts = texts(compareFacts, func(f compareFact) string { return f.name })

// CompareOps are the names of quantities that can be compared.
func CompareOps() []string {
	return texts(plan.Quantities, func(q plan.QuantityInfo) string { return string(q.Name) })
}

func ofRun(of func(*result.Result) string) func(*result.Result) []string {
	return func(r *result.Result) []string { return []string{of(r)} }
}

func ofHost(of func(result.Host) string) func(*result.Result) []string {
	return func(r *result.Result) []string {
		return texts(r.Sessions, func(s result.Session) string { return of(s.Host) })
	}
}

// ofTargets reads the images of cases that were measured.
func ofTargets(of func(result.Target) string) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for _, c := range r.Cases {
			if c.Status == result.Done && c.Target.Kind != "directory" {
				out = appendUnique(out, of(c.Target))
			}
		}
		slices.Sort(out)
		return out
	}
}

func ofSteps(of func(*result.Step) *result.Achieved) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for _, c := range r.Cases {
			for k := range c.Steps {
				a := of(&c.Steps[k])
				switch {
				case a == nil || isCanary(&c.Steps[k]):
				case a.Asked == a.Achieved:
					out = appendUnique(out, a.Achieved)
				default:
					out = appendUnique(out, wording.Text("fact.achieved", a.Asked, cmp.Or(a.Achieved, "unknown")))
				}
			}
		}
		slices.Sort(out)
		return out
	}
}

// workersFacts are the numbers of workers of steps with timed files or
// operations, ascending.
func workersFacts(r *result.Result) []string {
	found := map[int]bool{}
	for _, c := range r.Cases {
		for k := range c.Steps {
			st := &c.Steps[k]
			if (len(st.Samples) > 0 || st.OperationsSpan != nil) && !isCanary(st) {
				found[workers(st)] = true
			}
		}
	}
	return mapped(sortedKeys(found), func(n int) string { return wording.Count{N: n, Noun: "worker"}.String() })
}

// hostNames are the names of machines, of runs that record them.
var hostNames = ofHost(func(h result.Host) string { return h.Name })

// spaced is two words, either of which may be empty.
func spaced(a, b string) string { return strings.TrimSpace(a + " " + b) }

func powerText(h result.Host) string {
	facts := []string{h.Power}
	if h.LowPower {
		facts = append(facts, wording.Text("fact.low-power"))
	}
	if isHot(h) {
		facts = append(facts, wording.Text("fact.thermal", h.Thermal))
	}
	return wording.JoinFacts(facts...)
}

// osText is the system with its build: "macOS 26.4 (25E240)".
func osText(h result.Host) string {
	out := spaced(osName(h.OS), h.OSVersion)
	if strings.Contains(strings.ToLower(h.OSVersion), strings.ToLower(osName(h.OS))) {
		out = h.OSVersion
	}
	if h.OSBuild != "" {
		out += " (" + h.OSBuild + ")"
	}
	return out
}

func diskFacts(r *result.Result) (out []string) {
	for _, s := range r.Sessions {
		for _, d := range s.Host.Disks {
			out = appendUnique(out, wording.JoinFacts(d.Device, d.Filesystem, d.Tool, d.Bus, d.Location))
		}
	}
	return out
}

// enginesOf are the engines that drove images, of all sessions and of their
// cases; the native folder's is on every run.
func enginesOf(r *result.Result) (out []result.Engine) {
	for _, s := range r.Sessions {
		out = append(append(out, s.Engine), s.Engines...)
	}
	return slices.DeleteFunc(out, func(e result.Engine) bool { return e.Name == "directory" })
}

func engineFacts(r *result.Result) []string {
	return texts(enginesOf(r), func(e result.Engine) string { return cmp.Or(e.Title, spaced(e.Name, e.Version)) })
}

// engineKind is the engine without its version, which goes with the system's.
func engineKind(title string) string {
	name, _, _ := strings.Cut(title, ",")
	return name
}

// filesystemFacts are the file systems in the images that were measured.
var filesystemFacts = ofTargets(func(t result.Target) string { return t.Filesystem })

// unscaled is the scale of a run without a deviation that changes how much was
// measured.
const unscaled = "as the plan has it"

// ofDepartures are the deviations of some kinds as text.
func ofDepartures(kinds ...string) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for _, d := range r.Departures {
			if slices.Contains(kinds, d.Kind) {
				out = appendUnique(out, d.Text)
			}
		}
		if out == nil {
			return []string{unscaled}
		}
		return out
	}
}

// scaleFacts are the deviations that change how much was measured, or which
// files and codecs.
var scaleFacts = ofDepartures("scale", "sets", "workers", "codec", "input")

// factsText is the values of some facts of a run in one line.
func factsText(r *result.Result, names ...string) string {
	return strings.Join(mapped(names, func(name string) string {
		i := slices.Index(CompareFacts, name)
		return cmp.Or(strings.Join(compareFacts[i].of(r), " + "), name+" unknown")
	}), ", ")
}

// machineText is the model of a run's machine and its processor.
func machineText(r *result.Result) string {
	model := factsText(r, "model")
	if cpu := factsText(r, "cpu"); cpu != "cpu unknown" && !strings.Contains(model, cpu) {
		model += ", " + cpu
	}
	return model
}

// startTime is the start of the first session, the zero time without one.
func startTime(r *result.Result) time.Time {
	if len(r.Sessions) == 0 {
		return time.Time{}
	}
	return r.Sessions[0].Started
}

// isHot reports whether a host slowed down, or may have, since it was hot.
func isHot(h result.Host) bool {
	return !slices.Contains([]string{"", "nominal", "none"}, strings.ToLower(h.Thermal))
}

func osName(goos string) string {
	return cmp.Or(map[string]string{"darwin": "macOS", "macos": "macOS", "linux": "Linux"}[goos], goos)
}
