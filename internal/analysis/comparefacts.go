package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// Kinds of a [Difference].
const (
	kindMachine    = "machine"
	kindSystem     = "system"
	kindTool       = "tool"
	kindProtocol   = "protocol"
	kindRepetition = "repetition" // changes from run to run without changing what is measured
)

// compareFact is something that runs may differ in.
type compareFact struct {
	name, kind string
	of         func(*result.Result) []string
}

// compareFacts are in the order in which differences are listed.
var compareFacts = []compareFact{
	{"model", kindMachine, ofHost(func(h result.Host) string { return cmp.Or(h.Model, h.Arch) })},
	{"cpu", kindMachine, ofHost(func(h result.Host) string { return h.CPU })},
	{"cores", kindMachine, ofHost(func(h result.Host) string { return countText(h.CPUs) })},
	{"memory", kindMachine, ofHost(func(h result.Host) string { return bytesText(h.Memory) })},
	{"virtual", kindMachine, ofHost(func(h result.Host) string { return cmp.Or(h.Virtual, "no") })},
	{"disk", kindMachine, diskFacts},
	{"power", kindMachine, ofHost(powerText)},
	{"os", kindSystem, ofHost(osText)},
	{"os_version", kindSystem, ofHost(func(h result.Host) string { return strings.TrimSpace(h.OS + " " + h.OSVersion) })},
	{"os_build", kindSystem, ofHost(func(h result.Host) string { return h.OSBuild })},
	{"kernel", kindSystem, ofHost(func(h result.Host) string { return h.Kernel })},
	{"filevault", kindSystem, ofHost(func(h result.Host) string { return h.FileVault })},
	{"tool", kindTool, func(r *result.Result) []string {
		return []string{strings.TrimSpace(r.Tool.Name + " " + r.Tool.Version)}
	}},
	{"engine", kindTool, engineFacts},
	{"backend", kindTool, ofTargets(func(t result.Target) string { return t.Backend })},
	{"filesystem", kindProtocol, ofTargets(func(t result.Target) string { return t.Filesystem })},
	{"plan", kindProtocol, func(r *result.Result) []string { return []string{r.Plan.Name} }},
	{"scale", kindProtocol, ofDepartures("scale", "sets", "codec", "input")},
	{"workers", kindProtocol, ofDepartures("workers")},
	{"cache", kindProtocol, ofSteps(func(st *result.Step) *result.Achieved { return st.Cache })},
	{"sync", kindProtocol, ofSteps(func(st *result.Step) *result.Achieved { return st.Sync })},
	{"digest", kindRepetition, func(r *result.Result) []string { return []string{fmt.Sprintf("%.12s", r.Plan.Digest)} }},
	{"seed", kindRepetition, func(r *result.Result) []string { return []string{fmt.Sprint(r.Seed)} }},
	{"rounds", kindRepetition, func(r *result.Result) []string { return []string{fmt.Sprint(r.Rounds)} }},
}

// CompareFacts are the names that [CompareOptions.By] accepts in addition to the keys of cases.
var CompareFacts = func() []string {
	out := make([]string, len(compareFacts))
	for i, f := range compareFacts {
		out[i] = f.name
	}
	return out
}()

// CompareOps are the names of quantities that can be compared.
func CompareOps() []string {
	out := make([]string, len(plan.Quantities))
	for i, q := range plan.Quantities {
		out[i] = string(q.Name)
	}
	return out
}

// Estimators are the names of estimators of a rate that can be quoted.
func Estimators() []string { return append(slices.Clone(panel), weighted) }

func ofHost(of func(result.Host) string) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for _, s := range r.Sessions {
			out = appendUnique(out, of(s.Host))
		}
		return out
	}
}

func ofTargets(of func(result.Target) string) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Status == result.Done && c.Target.Kind != "directory" {
				out = appendUnique(out, of(c.Target))
			}
		}
		slices.Sort(out)
		return out
	}
}

func ofSteps(of func(*result.Step) *result.Achieved) func(*result.Result) []string {
	return func(r *result.Result) (out []string) {
		for i := range r.Cases {
			for k := range r.Cases[i].Steps {
				if a := of(&r.Cases[i].Steps[k]); a != nil {
					out = appendUnique(out, achievedText(a))
				}
			}
		}
		slices.Sort(out)
		return out
	}
}

func achievedText(a *result.Achieved) string {
	if a == nil {
		return ""
	}
	if a.Asked == a.Achieved {
		return a.Achieved
	}
	return a.Asked + ", got " + cmp.Or(a.Achieved, "unknown")
}

func appendUnique(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func bytesText(n int64) string {
	if n == 0 {
		return ""
	}
	return units.Bytes(n).Human()
}

func powerText(h result.Host) string {
	out := h.Power
	if h.LowPower {
		out = strings.TrimPrefix(out+", low power mode", ", ")
	}
	if h.Thermal != "" && !strings.EqualFold(h.Thermal, "nominal") && !strings.EqualFold(h.Thermal, "none") {
		out = strings.TrimPrefix(out+", thermal pressure "+h.Thermal, ", ")
	}
	return out
}

// osText is the system with its build: "macOS 26.4 (25E240)".
func osText(h result.Host) string {
	name := h.OS
	switch name {
	case "darwin":
		name = "macOS"
	case "linux":
		name = "Linux"
	}
	version := h.OSVersion
	if strings.Contains(strings.ToLower(version), strings.ToLower(name)) {
		name = ""
	}
	out := strings.TrimSpace(name + " " + version)
	if h.OSBuild != "" {
		out += " (" + h.OSBuild + ")"
	}
	return out
}

func diskFacts(r *result.Result) (out []string) {
	for _, s := range r.Sessions {
		for _, d := range s.Host.Disks {
			out = appendUnique(out, strings.Join(slices.DeleteFunc([]string{d.Device, d.Filesystem, d.Bus, d.Location}, func(t string) bool { return t == "" }), ", "))
		}
	}
	return out
}

// engineFacts are the engines that drove images; the native directory's is on every run.
func engineFacts(r *result.Result) (out []string) {
	for _, s := range r.Sessions {
		for _, e := range append([]result.Engine{s.Engine}, s.Engines...) {
			if e.Name != "directory" {
				out = appendUnique(out, cmp.Or(e.Title, strings.TrimSpace(e.Name+" "+e.Version)))
			}
		}
	}
	return out
}

// scaled are the departures that change how much was measured, or which files and codecs.
var scaled = []string{"scale", "sets", "workers", "codec", "input"}

func scaleFacts(r *result.Result) []string { return ofDepartures(scaled...)(r) }

// ofDepartures are the departures of some kinds in words.
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

// factsText is the values of some facts of a run in one line.
func factsText(r *result.Result, names []string) string {
	var out []string
	for _, name := range names {
		i := slices.Index(CompareFacts, name)
		out = append(out, cmp.Or(strings.Join(compareFacts[i].of(r), " + "), name+" unknown"))
	}
	return strings.Join(out, ", ")
}

// collectFacts collects what is known of the sides, and in what they differ.
func (c *comparer) collectFacts() {
	for _, s := range c.sides {
		side := CompareSide{Name: s.name, Runs: []string{}, Facts: []CompareFact{}}
		sessions := map[string]bool{}
		for _, r := range s.runs {
			side.Runs = append(side.Runs, r.Run)
			side.Rounds += r.Rounds
			for _, name := range sessionNames(r) {
				sessions[name] = true
			}
		}
		side.Sessions = len(sessions)
		for _, f := range compareFacts {
			values := []string{}
			for _, r := range s.runs {
				for _, v := range f.of(r) {
					values = appendUnique(values, v)
				}
			}
			if len(values) > 0 {
				side.Facts = append(side.Facts, CompareFact{f.name, values})
			}
		}
		c.out.Sides = append(c.out.Sides, side)
	}
	c.differences()
}

func (s CompareSide) fact(name string) []string {
	for _, f := range s.Facts {
		if f.Name == name {
			return f.Values
		}
	}
	return []string{}
}

// differences lists the facts that are not the same on all sides. A fact that
// restrictTo words another one again is left out.
func (c *comparer) differences() {
	for _, f := range compareFacts {
		if f.name == "os_version" || f.name == "os_build" || f.name == "kernel" && c.differ("os") {
			continue
		}
		if !c.differ(f.name) {
			continue
		}
		d := Difference{Fact: f.name, Kind: f.kind}
		for _, s := range c.out.Sides {
			d.Values = append(d.Values, s.fact(f.name))
		}
		c.out.Differences = append(c.out.Differences, d)
	}
	c.collectAlike()
	c.notes()
	c.noteWarnings()
}

func (c *comparer) differ(fact string) bool {
	first := slices.Sorted(slices.Values(c.out.Sides[0].fact(fact)))
	return slices.ContainsFunc(c.out.Sides[1:], func(s CompareSide) bool {
		return !slices.Equal(first, slices.Sorted(slices.Values(s.fact(fact))))
	})
}

// sameEngines reports whether the engines of all sides differ only in their version.
func (c *comparer) sameEngines() bool {
	kinds := func(s CompareSide) (out []string) {
		for _, v := range s.fact("engine") {
			out = appendUnique(out, engineKind(v))
		}
		return slices.Sorted(slices.Values(out))
	}
	first := kinds(c.out.Sides[0])
	return !slices.ContainsFunc(c.out.Sides[1:], func(s CompareSide) bool { return !slices.Equal(first, kinds(s)) })
}

// notes adds what the reader has to know before any number.
func (c *comparer) notes() {
	note := func(format string, args ...any) { c.out.Notes = append(c.out.Notes, fmt.Sprintf(format, args...)) }
	var apart []string
	kinds := map[string]bool{}
	for _, d := range c.out.Differences {
		if d.Fact == "engine" && c.differ("os") && c.sameEngines() {
			continue // Apple's tools come with the system
		}
		if d.Kind != kindRepetition {
			apart = append(apart, d.Fact)
			kinds[d.Kind] = true
		}
	}
	if len(kinds) > 1 {
		note("the sides differ in %s: these runs do not show which of these a change comes from", strings.Join(apart, ", "))
	}
	if c.differ("digest") && len(apart) == 0 && !c.differ("seed") && !c.differ("rounds") {
		note("the plans as executed are not the same, though machine, system and tools are: compare the plan.toml of the runs")
	}
	for _, s := range c.out.Sides {
		for _, f := range s.Facts {
			i := slices.IndexFunc(compareFacts, func(k compareFact) bool { return k.name == f.Name })
			single := slices.Contains([]string{kindMachine, kindSystem, kindTool}, compareFacts[i].kind) && f.Name != "disk" && f.Name != "backend"
			if len(s.Runs) > 1 && len(f.Values) > 1 && single && f.Name != "os_version" && f.Name != "os_build" {
				note("the runs of %s are not alike in %s: %s", s.Name, f.Name, strings.Join(f.Values, "; "))
			}
		}
	}
	for _, s := range c.sides {
		for _, r := range s.runs {
			if r.Status == result.Unfinished {
				note("run %s is not finished: what is missing is not in these numbers", r.Run)
			}
		}
	}
}

// noteWarnings adds to the notes what the runs of one side were warned of and those of
// another were not, or not in the same words: a machine that was busy on one day
// looks like a change. One text of each kind represents the side.
func (c *comparer) noteWarnings() {
	type told struct {
		text string
		runs int
	}
	list := make([]map[string]*told, len(c.sides))
	var kinds []string
	for i, s := range c.sides {
		list[i] = map[string]*told{}
		for _, r := range s.runs {
			var own []string
			for _, w := range r.Warnings {
				if slices.Contains(own, w.Kind) {
					continue
				}
				own, kinds = append(own, w.Kind), appendUnique(kinds, w.Kind)
				if list[i][w.Kind] == nil {
					list[i][w.Kind] = &told{text: w.Text}
				}
				list[i][w.Kind].runs++
			}
		}
	}
	everywhere := func(kind string) bool {
		for i, s := range c.sides {
			if w := list[i][kind]; w == nil || w.runs < len(s.runs) || w.text != list[0][kind].text {
				return false
			}
		}
		return true
	}
	for i, s := range c.sides {
		for _, kind := range kinds {
			w := list[i][kind]
			if w == nil || everywhere(kind) {
				continue
			}
			of := ""
			if len(s.runs) > 1 {
				of = fmt.Sprintf(" (%d of %s)", w.runs, plural(len(s.runs), "run"))
			}
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("warned of in %s%s: %s", s.name, of, w.text))
		}
	}
}

// collectAlike are the facts that are the same on all sides and that a reader has to know
// of any number: where, under what, by which tool and plan.
func (c *comparer) collectAlike() {
	for _, name := range []string{"model", "cpu", "os", "engine", "plan", "scale", "workers"} {
		if values := c.out.Sides[0].fact(name); len(values) == 1 && values[0] != unscaled && !c.differ(name) {
			c.out.Alike = append(c.out.Alike, CompareFact{name, values})
		}
	}
}
