package plan

import (
	"slices"
	"strings"

	"dmgbench/internal/units"
)

// axis is what the plan varies under that name, and whether it does.
func (c *checker) axis(name string) ([]string, bool) {
	for _, a := range c.p.Axes {
		if a.Key == name {
			return a.Values, true
		}
	}
	for _, m := range c.p.Manual {
		if m.Name == name {
			return m.Values, true
		}
	}
	var values []string
	for _, s := range c.p.Extra {
		for _, k := range s {
			if k.Key == name && !slices.Contains(values, k.Values[0]) {
				values = append(values, k.Values[0])
			}
		}
	}
	return values, len(values) > 1
}

// along checks that something varies along the axis and that the values are on it.
// The extra names are axes that no setting makes; what is on them is checked elsewhere.
func (c *checker) along(n *node, name string, values []string, at *node, extra ...string) {
	if name == "" || slices.Contains(extra, name) {
		return
	}
	have, ok := c.axis(name)
	if !ok {
		names := slices.Clone(extra)
		for _, a := range c.p.Axes {
			names = append(names, a.Key)
		}
		for _, m := range c.p.Manual {
			names = append(names, m.Name)
		}
		c.hintName(c.problem(n.off, n.name, "the plan does not vary %q", name), name, "axes", names)
		return
	}
	for _, v := range values {
		if !slices.ContainsFunc(have, func(h string) bool { return sameValue(name, h, v) }) {
			c.problem(at.off, at.name, "the axis %q has no value %q", name, v).hintf("its values: %s", strings.Join(have, ", "))
		}
	}
}

// stepAxes are axes along the steps and files of one case.
var stepAxes = []string{"cycle", "phase", "file_size"}

// alongTest checks the axis of extreme, trend and spread.
func (c *checker) alongTest(n, detail *node, a *Assert, whole bool) {
	name := "along"
	if a.Kind == "spread" {
		name = "over"
	}
	if a.Along == "" || n.get("left") == nil || !slices.Contains([]string{"extreme", "trend", "spread"}, a.Kind) {
		return
	}
	at := detail.at(name)
	if i := slices.IndexFunc(a.Left.Where, func(k Choice) bool { return k.Key == a.Along }); i >= 0 &&
		len(a.Left.Where[i].Values) < 2 {
		c.problem(at.off, name, "left names one value of %q, so that nothing varies along it", a.Along).
			hintf("leave %s out of left", a.Along)
		return
	}
	if !whole || a.Left.Published || a.Left.Constant != nil {
		return
	}
	c.along(at, a.Along, a.At, detail.at("at"), stepAxes...)
	if slices.Contains(stepAxes, a.Along) {
		c.alongSteps(at, detail.at("at"), a)
	}
}

// alongSteps checks an axis of steps or files: whether the steps that the
// operand names are at two points of it, and whether the given points are on it.
func (c *checker) alongSteps(at, values *node, a *Assert) {
	info, ok := a.Left.Quantity.Info()
	if !ok {
		return
	}
	have := c.stepValues(&a.Left, info.Do, a.Along)
	if have == nil { // what the operand names is not there at all: that has been said
		return
	}
	if len(have) < 2 {
		c.problem(at.off, at.name, "the %s steps that left names do not vary %q", info.Do, a.Along).
			hintf("%s", map[string]string{
				"cycle": "cycles are the turns of a repeat", "phase": "give the steps phases of their own",
				"file_size": "the file sets have one size"}[a.Along])
		return
	}
	for _, v := range a.At {
		if !slices.ContainsFunc(have, func(h string) bool { return sameValue(a.Along, h, v) || h == anySize }) {
			p := c.problem(values.off, "at", "the axis %q has no value %q", a.Along, v)
			if len(have) <= 20 {
				p.hintf("its values: %s", strings.Join(have, ", "))
			}
		}
	}
}

// anySize represents sizes that are drawn.
const anySize = "any"

// stepValues are the points on an axis of steps or files at which an operand is
// measured, nil if it is not measured at all.
func (c *checker) stepValues(o *Operand, do, axis string) []string {
	pick, samples := o.Where.split()
	var out []string
	add := func(v string) {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		follow(k.Steps, 0, func(s *Step, cycles int) {
			if s.Do != do || len(samples["phase"]) > 0 && !slices.Contains(samples["phase"], s.Phase) {
				return
			}
			switch axis {
			case "phase":
				add(s.Phase)
			case "cycle":
				for n := range min(cycles, 10000) {
					add(itoa(n + 1))
				}
				if cycles == 0 {
					add("0")
				}
			case "file_size":
				c.sizesOf(k, s, add)
			}
		})
	}
	return out
}

// sizesOf adds the sizes of the files that a step may meet.
func (c *checker) sizesOf(k *Case, s *Step, add func(string)) {
	for _, f := range c.p.Files {
		if s.Do == "write" && f.Name != s.Files && (s.Files != "" || f.Name != k.Settings.Files) {
			continue
		}
		for _, p := range f.Parts {
			for _, text := range sizeTexts(p.Sizes) {
				add(text)
			}
			if p.Count > 0 { // drawn sizes are many
				add(anySize)
				add(sizeTexts([]units.Bytes{p.Low})[0])
			}
		}
	}
}

// follow visits steps with the number of cycles of the repeat around them, 0 outside one.
func follow(steps []Step, cycles int, visit func(s *Step, cycles int)) {
	for i := range steps {
		visit(&steps[i], cycles)
		inner := cycles
		if steps[i].Do == "repeat" {
			inner = steps[i].Times
		}
		follow(steps[i].Steps, inner, visit)
	}
}

// fileSteps are the kinds of step whose quantities have files to choose from.
var fileSteps = []string{"write", "read", "copy", "stream"}

// hasFile checks that file sizes and sets are among those written, and that the
// quantity has files at all.
func (c *checker) hasFile(n *node, samples map[string][]string, do, what string) {
	for _, key := range []string{"file_size", "set"} {
		if len(samples[key]) > 0 && !slices.Contains(fileSteps, do) {
			c.problem(n.at(key).off, key, "%s picks files, and %s comes from %s steps, which have none", key, what, do)
			return
		}
	}
	for _, want := range samples["file_size"] {
		hit := !slices.Contains([]string{"write", "read"}, do)
		for _, f := range c.p.Files {
			for _, part := range f.Parts {
				hit = hit || part.Count > 0 || slices.ContainsFunc(sizeTexts(part.Sizes),
					func(s string) bool { return sameValue("file_size", s, want) })
			}
		}
		if !hit {
			c.problem(n.at("file_size").off, "file_size", "no file set has files of %s", want)
		}
	}
	for _, want := range samples["set"] {
		most := 0
		for _, f := range c.p.Files {
			most = max(most, f.sets())
		}
		if atoi(want) < 1 || atoi(want) > most {
			c.problem(n.at("set").off, "set", "no file set has a set %s", want).hintf("sets are counted from 1 to %d", most)
		}
	}
}
