package plan

import (
	"slices"
	"strings"
)

// maxCases bounds the product of the axes.
const maxCases = 10_000

// Value is what selectors see of a case: settings keys, manual axes and baseline.
// Keys that pick samples (phase, cycle, …) are unknown to it.
func (c *Case) Value(key string) (string, bool) {
	if key == "baseline" {
		return boolText(c.Baseline), true
	}
	return c.Settings.value(key)
}

// Cases expands the plan: manual axes outermost, then the matrix in the order of
// its axes without what exclude names, then [[case]] tables, then the baseline.
// Each case carries the steps of the protocol blocks that select it; cases with
// the same protocol share them.
func (p *Plan) Cases() []Case {
	turns := p.turns()
	var out []Case
	for _, turned := range turns {
		var group []Case
		for _, pairs := range p.product() {
			c := p.build(pairs, turned)
			if !slices.ContainsFunc(p.Exclude, func(s Selector) bool { return s.matchAll(c.Value) }) {
				group = append(group, c)
			}
		}
		for _, extra := range p.Extra {
			if c, ok := p.extra(extra, turned); ok {
				group = append(group, c)
			}
		}
		out = append(out, group...)
		if p.Run.Baseline {
			out = append(out, p.baselines(group)...)
		}
	}
	protocols := map[string][]Step{}
	for i := range out {
		id := p.protocolID(&out[i])
		if _, ok := protocols[id]; !ok {
			protocols[id] = p.stepsFor(&out[i])
		}
		out[i].Steps = protocols[id]
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

// protocolID is the same for cases with the same steps.
func (p *Plan) protocolID(c *Case) string {
	id := []byte(c.Settings.Target)
	for _, b := range p.Protocol {
		if b.When.matchAll(c.Value) {
			id = append(id, '1')
		} else {
			id = append(id, '0')
		}
	}
	return string(id)
}

// turns is every combination of the manual axes; one empty combination if there are none.
func (p *Plan) turns() [][]KeyValue {
	axes := make([]Axis, len(p.Manual))
	for i, m := range p.Manual {
		axes[i] = Axis{Key: m.Name, Values: m.Values}
	}
	return product(axes)
}

// product of the matrix; nil if the plan has only [[case]] tables.
func (p *Plan) product() [][]KeyValue {
	if len(p.Axes) == 0 && len(p.Extra) > 0 {
		return nil
	}
	return product(p.Axes)
}

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

// count is the number of cells before exclude, saturating past maxCases.
func (p *Plan) count() int {
	turns, cells := 1, 1
	for _, m := range p.Manual {
		turns = min(turns*max(len(m.Values), 1), maxCases*10)
	}
	for _, a := range p.Axes {
		cells = min(cells*len(a.Values), maxCases*10)
	}
	if len(p.Axes) == 0 && len(p.Extra) > 0 {
		cells = 0
	}
	return turns * (cells + len(p.Extra))
}

// build makes the case of some keys; the settings that they do not name are the plan's.
func (p *Plan) build(pairs, turned []KeyValue) Case {
	c := Case{Settings: p.Defaults, Keys: slices.Concat(turned, pairs)}
	c.Settings.Turned = turned
	for _, kv := range pairs {
		findSetting(kv.Key).set(&c.Settings, kv.Value)
	}
	if c.Settings.Target == "directory" {
		clearImageSettings(&c.Settings)
	}
	if len(c.Keys) == 0 {
		c.Keys = []KeyValue{{"target", c.Settings.Target}}
		if c.Settings.Target == "image" {
			c.Keys = []KeyValue{{"format", c.Settings.Format}}
		}
	}
	c.ID = caseID(c.Keys)
	return c
}

// clearImageSettings clears what a plain directory has not.
func clearImageSettings(s *Settings) {
	s.Format, s.ConvertTo, s.Size, s.BandSize, s.Filesystems, s.VolumeName, s.Backend, s.ServedBy = "", "", 0, 0, nil,
		"", "", ""
	s.Encryption = "none"
}

func caseID(keys []KeyValue) string {
	parts := make([]string, len(keys))
	for i, kv := range keys {
		parts[i] = kv.Key + "=" + kv.Value
	}
	return strings.Join(parts, ",")
}

// extra makes the case of a [[case]] table, if it is there for these turns.
func (p *Plan) extra(s Selector, turned []KeyValue) (Case, bool) {
	var pairs []KeyValue
	for _, c := range s {
		i := slices.IndexFunc(turned, func(t KeyValue) bool { return t.Key == c.Key })
		switch {
		case i < 0:
			pairs = append(pairs, KeyValue{c.Key, c.Values[0]})
		case !sameValue(c.Key, turned[i].Value, c.Values[0]):
			return Case{}, false
		}
	}
	return p.build(pairs, turned), true
}

// nativeKeys are the settings that mean something for a plain directory; a
// baseline case accompanies each combination of them.
var nativeKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// baselines are the native cases that accompany the images of one turn: one for each
// place and each way of working that an axis sets. Where the plan has that
// directory case itself, it is not measured twice.
func (p *Plan) baselines(group []Case) []Case {
	varied := []string{}
	for _, k := range nativeKeys {
		if slices.ContainsFunc(group, func(c Case) bool { return slices.ContainsFunc(c.Keys, func(kv KeyValue) bool { return kv.Key == k }) }) {
			varied = append(varied, k)
		}
	}
	seen := map[string]bool{}
	for i := range group {
		if group[i].Settings.Target == "directory" && !group[i].Settings.Preallocate {
			seen[nativeID(&group[i].Settings)] = true
		}
	}
	var out []Case
	for i := range group {
		s := group[i].Settings
		id := nativeID(&s)
		if s.Target == "directory" || seen[id] {
			continue
		}
		seen[id] = true
		out = append(out, baselineCase(s, varied))
	}
	return out
}

func nativeID(s *Settings) string {
	var b strings.Builder
	for _, k := range nativeKeys {
		b.WriteString(findSetting(k).get(s))
		b.WriteByte(0)
	}
	return b.String()
}

func baselineCase(s Settings, varied []string) Case {
	s.Target, s.Preallocate = "directory", false
	clearImageSettings(&s)
	c := Case{Settings: s, Baseline: true, Keys: append([]KeyValue{{"baseline", "true"}}, s.Turned...)}
	for _, k := range varied {
		c.Keys = append(c.Keys, KeyValue{k, findSetting(k).get(&s)})
	}
	c.ID = caseID(c.Keys)
	return c
}

// stepsFor is the protocol of one case.
func (p *Plan) stepsFor(c *Case) []Step {
	var out []Step
	for _, b := range p.Protocol {
		if b.When.matchAll(c.Value) {
			out = append(out, b.Steps...)
		}
	}
	if c.Settings.Target == "directory" {
		return nativeSteps(out)
	}
	return out
}

// nativeSteps keeps what means something for a plain directory: work on files,
// and attach and detach, which a directory answers at once. What makes another
// container or acts on one is dropped.
func nativeSteps(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		k := findStepKind(s.Do)
		if k == nil || !k.native || s.On != "" || s.Expect == "fail" {
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
