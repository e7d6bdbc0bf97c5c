package analysis

import (
	"cmp"
	"fmt"
	"maps"
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
	{"filesystem", "protocol", filesystemFacts, false},
	{"plan", "protocol", ofRun(func(r *result.Result) string { return r.Plan.Name }), false},
	{"scale", "protocol", ofDepartures("scale", "sets", "codec", "input"), false},
	{"workers", "protocol", ofDepartures("workers"), false},
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
				if a := of(&c.Steps[k]); a != nil && a.Asked == a.Achieved {
					out = appendUnique(out, a.Achieved)
				} else if a != nil {
					out = appendUnique(out, wording.Text("fact.achieved", a.Asked, cmp.Or(a.Achieved, "unknown")))
				}
			}
		}
		slices.Sort(out)
		return out
	}
}

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
	return wording.NonEmpty(facts...)
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
			out = appendUnique(out, wording.NonEmpty(d.Device, d.Filesystem, d.Bus, d.Location))
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

// sideFacts is a side with what is known of its runs; notes are about those
// that are unlike each other.
func (c *comparer) sideFacts(s *compareSide) CompareSide {
	out := CompareSide{Name: s.name, Runs: []string{}, Facts: []CompareFact{}}
	var sessions []string
	for _, r := range s.runs {
		out.Runs = append(out.Runs, r.Run)
		out.Rounds += r.Rounds
		sessions = slices.AppendSeq(sessions, maps.Values(sessionNames(r)))
		if r.Status == result.Unfinished {
			c.note("note.unfinished", r.Run)
		}
	}
	out.Sessions = len(texts(sessions, strings.Clone))
	for _, f := range compareFacts {
		values := texts(slices.Concat(mapped(s.runs, f.of)...), strings.Clone)
		if len(values) > 0 {
			out.Facts = append(out.Facts, CompareFact{f.name, values})
		}
		if len(s.runs) > 1 && len(values) > 1 && f.single {
			c.note("note.unlike", s.name, f.name, strings.Join(values, "; "))
		}
	}
	return out
}

// collectFacts collects what is known of the sides, and in what they differ.
func (c *comparer) collectFacts() {
	c.out.Sides = mapped(c.sides, c.sideFacts)
	var apart, kinds []string
	isOtherSystem := c.differ("os")
	// Apple's tools come with the system
	engines := texts(c.out.Sides, func(s CompareSide) string { return strings.Join(texts(s.fact("engine"), engineKind), ",") })
	isSameEngine := isOtherSystem && len(engines) < 2
	for _, f := range compareFacts {
		// The version and the build are in "os", and the kernel goes with it
		if f.name == "os_version" || f.name == "os_build" || f.name == "kernel" && isOtherSystem || !c.differ(f.name) {
			continue
		}
		values := mapped(c.out.Sides, func(s CompareSide) []string { return s.fact(f.name) })
		c.out.Differences = append(c.out.Differences, Difference{Fact: f.name, Kind: f.kind, Values: values})
		if f.kind != "repetition" && !(f.name == "engine" && isSameEngine) {
			apart, kinds = append(apart, f.name), appendUnique(kinds, f.kind)
		}
	}
	// What a reader has to know of any number: where, under what, by which tool
	// and plan
	for _, name := range []string{"model", "cpu", "os", "engine", "plan", "scale", "workers"} {
		if values := c.out.Sides[0].fact(name); len(values) == 1 && values[0] != unscaled && !c.differ(name) {
			c.out.Alike = append(c.out.Alike, CompareFact{name, values})
		}
	}
	// No single difference explains a change
	if len(kinds) > 1 {
		c.note("note.differ", strings.Join(apart, ", "))
	}
	if c.differ("digest") && len(apart) == 0 && !c.differ("seed") && !c.differ("rounds") {
		c.note("note.other-plans")
	}
	c.noteWarnings()
}

func (s CompareSide) fact(name string) []string {
	f, _ := find(s.Facts, func(f CompareFact) bool { return f.Name == name })
	return append([]string{}, f.Values...)
}

// differ reports whether some side has not the same values of a fact as the
// baseline, in any order.
func (c *comparer) differ(fact string) bool {
	values := mapped(c.out.Sides, func(s CompareSide) []string { return slices.Sorted(slices.Values(s.fact(fact))) })
	return slices.ContainsFunc(values, func(v []string) bool { return !slices.Equal(v, values[0]) })
}

// noteWarnings adds to the notes what the runs of one side were warned of and
// those of another were not, or not in the same words: a machine that was busy
// on one day looks like a change. The first text of each kind represents the
// side.
func (c *comparer) noteWarnings() {
	isEverywhere := func(w result.Warning) bool {
		return !slices.ContainsFunc(c.sides, func(s *compareSide) bool {
			return slices.ContainsFunc(s.runs, func(r *result.Result) bool { return !slices.Contains(r.Warnings, w) })
		})
	}
	for _, s := range c.sides {
		kinds := map[string]bool{}
		for _, r := range s.runs {
			for _, w := range r.Warnings {
				if !kinds[w.Kind] && !isEverywhere(w) {
					kinds[w.Kind] = true
					c.note("note.warned", s.name, w.Text)
				}
			}
		}
	}
}

// isHot reports whether a host slowed down, or may have, since it was hot.
func isHot(h result.Host) bool {
	return !slices.Contains([]string{"", "nominal", "none"}, strings.ToLower(h.Thermal))
}
