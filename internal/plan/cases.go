package plan

import (
	"slices"
	"strconv"
	"strings"
)

// maxCases bounds the product of the axes.
const maxCases = 10_000

// Case is one cell of the plan's matrix with the steps that apply to it.
type Case struct {
	// ID is "key=value,…" in axis order; stable across runs of the plan.
	ID       string
	Keys     []KeyValue
	Settings Settings
	Steps    []Step
	// Baseline: the native folder that accompanies the images
	Baseline bool
}

// Value is what selectors see of a case: settings keys, manual axes and
// baseline. Keys that pick samples (phase, cycle, …) are unknown to it.
func (c *Case) Value(key string) (string, bool) {
	if key == "baseline" {
		return strconv.FormatBool(c.Baseline), true
	}
	return c.Settings.value(key)
}

// Cases expands the plan: manual axes outermost, then the matrix in the order
// of its axes without the excluded cells, then [[case]] tables, then the
// baseline. Each case has the steps of the protocol blocks that select it;
// cases with the same protocol share them.
func (p *Plan) Cases() []Case {
	var out []Case
	var cells [][]KeyValue
	if len(p.Axes) > 0 || len(p.Extra) == 0 {
		cells = product(p.Axes)
	}
	var manualAxes []Axis
	for _, m := range p.Manual {
		manualAxes = append(manualAxes, Axis{m.Name, m.Values})
	}
	for _, manual := range product(manualAxes) {
		var group []Case
		for _, cell := range cells {
			c := p.makeCase(cell, manual)
			if !slices.ContainsFunc(p.Exclude, func(s Selector) bool { return s.matchAll(c.Value) }) {
				group = append(group, c)
			}
		}
		for _, extra := range p.Extra {
			if c, ok := p.makeExtra(extra, manual); ok {
				group = append(group, c)
			}
		}
		out = append(out, group...)
		if p.Run.Baseline {
			out = append(out, baselineCases(group)...)
		}
	}
	protocols := map[string][]Step{}
	for i := range out {
		c, id := &out[i], p.protocolID(&out[i])
		if _, ok := protocols[id]; !ok {
			var steps []Step
			for _, b := range p.Protocol {
				if b.When.matchAll(c.Value) {
					steps = append(steps, b.Steps...)
				}
			}
			if c.Settings.Target == "directory" {
				steps = nativeSteps(steps)
			}
			protocols[id] = steps
		}
		c.Steps = protocols[id]
	}
	return out
}

// Places are the named places of all cases and steps, in plan order.
func (p *Plan) Places() []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, c := range p.Cases() {
		add(c.Settings.Place)
		walk(c.Steps, func(s *Step) { add(s.Place) })
	}
	return out
}

// CaseValues are the keys of the cases with their values, as --only takes them.
func (p *Plan) CaseValues() []Choice {
	var out Selector
	for _, c := range p.Cases() {
		for _, kv := range c.Keys {
			if !c.Baseline {
				out.addValue(kv.Key, kv.Value)
			}
		}
	}
	return out
}

// protocolID is the same for cases with the same steps.
func (p *Plan) protocolID(c *Case) string {
	id := c.Settings.Target
	for i, b := range p.Protocol {
		if b.When.matchAll(c.Value) {
			id += " " + strconv.Itoa(i)
		}
	}
	return id
}

// product is the cartesian product of the axes, the last axis varying fastest;
// without axes one empty cell.
func product(axes []Axis) [][]KeyValue {
	out := [][]KeyValue{nil}
	for _, a := range axes {
		next := make([][]KeyValue, 0, len(out)*len(a.Values))
		for _, head := range out {
			for _, v := range a.Values {
				next = append(next, append(slices.Clone(head), KeyValue{a.Key, v}))
			}
		}
		out = next
	}
	return out
}

// cellCount is the number of cells before exclude, which may be too large for
// an integer.
func (p *Plan) cellCount() float64 {
	manual, cells := 1.0, 1.0
	for _, m := range p.Manual {
		manual *= float64(len(m.Values))
	}
	for _, a := range p.Axes {
		cells *= float64(len(a.Values))
	}
	return manual * (cells + float64(len(p.Extra)))
}

// makeCase is the case of some keys; the settings that they do not name are the
// plan's.
func (p *Plan) makeCase(cell, manual []KeyValue) Case {
	c := Case{Settings: p.Defaults, Keys: slices.Concat(manual, cell)}
	c.Settings.Manual = manual
	for _, kv := range cell {
		findSetting(kv.Key).set(&c.Settings, kv.Value)
	}
	if c.Settings.Target == "directory" {
		c.Settings.clearImage()
	}
	switch {
	case len(c.Keys) > 0:
	case c.Settings.Target == "image":
		c.Keys = []KeyValue{{"format", c.Settings.Format}}
	default:
		c.Keys = []KeyValue{{"target", c.Settings.Target}}
	}
	c.ID = caseID(c.Keys)
	return c
}

// clearImage clears the settings that a native folder does not have.
func (s *Settings) clearImage() {
	s.Format, s.ConvertTo, s.VolumeName, s.Backend, s.ServedBy = "", "", "", "", ""
	s.Size, s.BandSize, s.Filesystems, s.Encryption = 0, 0, nil, "none"
}

// caseID is the name of a case: its keys and values in order. Journals and
// results name cases by it.
func caseID(keys []KeyValue) string {
	parts := make([]string, len(keys))
	for i, kv := range keys {
		parts[i] = kv.Key + "=" + kv.Value
	}
	return strings.Join(parts, ",")
}

// makeExtra is the case of a [[case]] table, unless that is for other values of
// the manual axes.
func (p *Plan) makeExtra(s Selector, manual []KeyValue) (c Case, ok bool) {
	var cell []KeyValue
	for _, choice := range s {
		i := slices.IndexFunc(manual, func(kv KeyValue) bool { return kv.Key == choice.Key })
		switch {
		case i < 0:
			cell = append(cell, KeyValue{choice.Key, choice.Values[0]})
		case !choice.Matches(manual[i].Value):
			return Case{}, false
		}
	}
	return p.makeCase(cell, manual), true
}

// nativeKeys are the settings with a meaning for a native folder; a baseline
// case accompanies each combination of them.
var nativeKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// baselineCases are the native cases that accompany the images of a group: one
// for each place and each combination of native settings, named by the manual
// axes and the keys that vary. A directory case of the plan is not measured
// twice.
func baselineCases(group []Case) (out []Case) {
	varied, seen := map[string]bool{}, map[string]bool{}
	for i := range group {
		for _, kv := range group[i].Keys {
			varied[kv.Key] = true
		}
		if s := &group[i].Settings; s.Target == "directory" && !s.Preallocate {
			seen[s.nativeID()] = true
		}
	}
	for i := range group {
		s := group[i].Settings
		id := s.nativeID()
		if s.Target == "directory" || seen[id] {
			continue
		}
		seen[id] = true
		s.Target, s.Preallocate = "directory", false
		s.clearImage()
		c := Case{Settings: s, Baseline: true, Keys: append([]KeyValue{{"baseline", "true"}}, s.Manual...)}
		for _, k := range nativeKeys {
			if varied[k] {
				c.Keys = append(c.Keys, KeyValue{k, findSetting(k).get(&s)})
			}
		}
		c.ID = caseID(c.Keys)
		out = append(out, c)
	}
	return out
}

// nativeID is the same for settings between which a native folder cannot
// distinguish.
func (s *Settings) nativeID() (id string) {
	for _, k := range nativeKeys {
		id += findSetting(k).get(s) + "\x00"
	}
	return id
}

// nativeSteps keeps the steps that have a meaning for a native folder: work on
// files, and attach and detach, which a folder does at once. Steps that make
// another container or act on one are dropped.
func nativeSteps(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		if k := findStepKind(s.Do); k == nil || k.imageOnly || s.On != "" || s.Expect == "fail" {
			continue
		}
		if len(s.Steps) > 0 {
			s.Steps = nativeSteps(s.Steps)
			if len(s.Steps) == 0 || s.Do == "parallel" && len(s.Steps) < 2 {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}
