package analysis

import (
	"reflect"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
)

// asksFor are the tables and keys of settings, and the parts of [work], that
// differ together with a fact, table or key.
var asksFor = map[string][]string{
	"digest":   {"plan"},
	"plan":     {"target", "image", "io", "stream", "files", "inputs", "run", "steps"},
	"scale":    {"size", "file_size", "amount", "last_sets", "largest", "files", "inputs"},
	"baseline": {"target"},
	"target":   {"image"},
	"image":    {"size"},
	"io":       {"workers", "sync", "cache"},
	"stream":   {"codec", "threads"},
	"codec":    {"sizes"},
	"threads":  {"workers"},
	"files":    {"sizes"},
	"seed":     {"sizes"},
	"parts":    {"sizes"},
	"range":    {"sizes"},
	"count":    {"sizes"},
	"sets":     {"sizes"},
	"spread":   {"sizes"},
	"tree":     {"sizes"},
	"sizes":    {"live"},
	"steps":    {"live"},
}

// ask lets the sides differ in a fact, table or key.
func (c *comparer) ask(name string) {
	c.allowed[name] = true
	for _, more := range asksFor[name] {
		c.ask(more)
	}
}

// planned is a case as its plan has it, nil without the plan.
func (c *comparer) planned(k sideCase) *plan.Case {
	digest := k.run.Plan.Digest
	p := c.o.Plans[digest]
	if p == nil {
		return nil
	}
	if c.cases[digest] == nil {
		c.cases[digest] = map[string]*plan.Case{}
		for _, own := range p.Cases() {
			c.cases[digest][own.ID] = &own
		}
	}
	return c.cases[digest][k.ID]
}

// value is the value of a key of a case: its own, its target's or its plan's;
// "" without one, as of keys of images for a native folder.
func (c *comparer) value(k sideCase, key string) string {
	if v, ok := keyOfCase(k.Case, key); ok {
		return v
	}
	t := k.Target
	if t.Kind == "directory" && key != "target" && !slices.Contains(plan.NativeKeys, key) {
		return ""
	}
	made := map[string]string{"place": t.Place, "format": t.Format, "encryption": t.Encryption,
		"filesystem": t.Filesystem, "backend": t.Backend, "mount": t.Mount, "target": t.Kind}[key]
	if own := c.planned(k); made == "" && own != nil {
		made, _ = own.Value(key)
	}
	return made
}

// differences are the settings in which a measurement of two cases is not the
// same, up to the step of a kind and phase; with do = "", in all steps. Cases of
// one plan differ in what their ids show. A setting that is asked for in two
// ways and came to the same is not one of them. known is false where the plan of
// one is missing.
func (c *comparer) differences(a, b sideCase, do, phase string) (out []plan.Difference, known bool) {
	if a.run.Plan.Digest == b.run.Plan.Digest {
		return nil, true
	}
	x, y := c.planned(a), c.planned(b)
	if x == nil || y == nil {
		return nil, false
	}
	out = plan.CompareCases(c.o.Plans[a.run.Plan.Digest], x, c.o.Plans[b.run.Plan.Digest], y, do, phase)
	return slices.DeleteFunc(out, func(d plan.Difference) bool {
		return d.Of == "" && slices.Contains([]string{"filesystem", "backend", "mount"}, d.Key) &&
			c.value(a, d.Key) == c.value(b, d.Key)
	}), true
}

// apart is why a step of two cases was not measured with the same settings,
// other than those that are asked for; "" if it was.
func (c *comparer) apart(a, b sideCase, step stepKey, allowed map[string]bool) string {
	all, known := c.differences(a, b, step.do, step.phase)
	if !known {
		return wording.Text("compare.no-plan")
	}
	return strings.Join(texts(all, func(d plan.Difference) string {
		if allowed[d.Key] || allowed[d.Table] {
			return ""
		}
		return d.Name() + ": " + settingText(d.Key, d.Before) + " → " + settingText(d.Key, d.After)
	}), "; ")
}

// settingText is the value of a setting in words.
func settingText(key, value string) string {
	if key == "encryption" {
		return wording.ChoiceText(key, value)
	}
	return value
}

// sideID is the name of a case on its side: its id without the keys that make
// the sides, or that of the baseline's case with the same settings, whose plan
// may have other axes.
func (c *comparer) sideID(k sideCase) string {
	id, base, own := c.caseID(k.Case), c.sides[0], c.planned(k)
	if _, ok := base.first[id]; ok || own == nil {
		return id
	}
	for _, other := range base.ids {
		b := base.first[other]
		if b.run.Plan.Digest == k.run.Plan.Digest {
			continue
		}
		x := c.planned(b)
		if x != nil && x.Baseline == own.Baseline && reflect.DeepEqual(x.Settings, own.Settings) {
			return other
		}
	}
	return id
}

// setting is the difference of a name, which is added if there is none.
func (c *comparer) setting(name string) *Difference {
	is := func(d Difference) bool { return d.Fact == name }
	if !slices.ContainsFunc(c.out.Differences, is) {
		c.out.Differences = append(c.out.Differences,
			Difference{Fact: name, Kind: "setting", Values: make([][]string, len(c.sides)), Cases: []string{}})
	}
	return &c.out.Differences[slices.IndexFunc(c.out.Differences, is)]
}

// addSettings adds the settings that differ between cases of the baseline and
// those of the other sides, and the axes that have other values.
func (c *comparer) addSettings() {
	base, shared := c.sides[0], map[string]bool{}
	for i, s := range c.sides[1:] {
		for _, id := range s.ids {
			b, ok := base.first[id]
			if !ok {
				continue
			}
			shared[id] = true
			all, known := c.differences(b, s.first[id], "", "")
			s.isApart = s.isApart || !known
			for _, d := range all {
				e := c.setting(d.Name())
				e.Values[0] = appendUnique(e.Values[0], settingText(d.Key, d.Before))
				e.Values[i+1] = appendUnique(e.Values[i+1], settingText(d.Key, d.After))
				e.Cases = appendUnique(e.Cases, id)
				if !c.allowed[d.Key] && !c.allowed[d.Table] {
					e.Across, s.isApart = d.Key, true
				}
			}
		}
	}
	for i := range c.out.Differences {
		d := &c.out.Differences[i]
		if len(d.Cases) == len(shared) {
			d.Cases = []string{}
		}
		for k := range d.Values {
			if d.Values[k] == nil {
				d.Values[k] = d.Values[0]
			}
		}
	}
	c.addAxes()
}

// addAxes adds the axes of cases that have other values on some side. Where each
// side has one, it can be compared across.
func (c *comparer) addAxes() {
	var keys []string
	for _, s := range c.sides {
		for _, k := range s.cases {
			for _, kv := range k.Keys {
				keys = appendUnique(keys, kv[0])
			}
		}
	}
	for _, key := range keys {
		values := mapped(c.sides, func(s *compareSide) []string {
			images := slices.DeleteFunc(slices.Clone(s.cases), func(k sideCase) bool { return k.Baseline })
			out := texts(images, func(k sideCase) string { return settingText(key, c.value(k, key)) })
			slices.Sort(out)
			return out
		})
		isOther := func(v []string) bool { return !slices.Equal(v, values[0]) }
		if key == "baseline" || slices.Contains(c.keys, key) || !slices.ContainsFunc(values, isOther) {
			continue
		}
		e := c.setting(strings.ReplaceAll(key, "_", " "))
		if e.Values[0] != nil {
			continue
		}
		e.Values = values
		if !c.allowed[key] && !slices.ContainsFunc(values, func(v []string) bool { return len(v) != 1 }) {
			e.Across = key
		}
	}
}
