package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

// checkSelected checks that a selector names a case with a step that yields the
// quantity.
func (c *checker) checkSelected(n *node, s Selector, q Quantity) {
	if info, ok := q.Info(); ok && c.whole {
		c.checkSelectedStep(n, s, info.Do, strconv.Quote(string(q)))
	}
}

// checkSelectedStep checks that a selector names a case with a step of a kind;
// what describes the figure in messages.
func (c *checker) checkSelectedStep(n *node, s Selector, do, what string) {
	pick, samples := s.split()
	var steps []*Step
	found, seen := false, map[*Step]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		found = true
		if len(k.Steps) > 0 && !seen[&k.Steps[0]] { // cases share their protocols
			seen[&k.Steps[0]] = true
			walk(k.Steps, func(st *Step) { steps = append(steps, st) })
		}
	}
	if found {
		c.checkSamples(n, samples, do, what, steps)
		c.checkFileSamples(n, samples, do, what)
		return
	}
	p := c.bad(n, "no case is %s", cmp.Or(pick.String(), "selected")).hintf("compare with [matrix]")
	isFigure := slices.ContainsFunc(c.publishedAt, func(t *node) bool { return t == n || t.get("where") == n })
	switch {
	case pick.names("target") || pick.names("baseline"):
		p.hintf("[run] baseline = true makes the baseline cases")
	case isFigure:
		p.hintf("compare with [matrix]; a figure without a case needs unmeasured = true")
	}
}

// checkSamples checks phase and cycle against the steps of the selected cases.
func (c *checker) checkSamples(n *node, samples map[string][]string, do, what string, steps []*Step) {
	var phases []string
	some, cycles := false, 0
	for _, s := range steps {
		if s.Do == do {
			some = true
			if s.Phase != "" && !slices.Contains(phases, s.Phase) {
				phases = append(phases, s.Phase)
			}
		}
		if s.Do == "repeat" {
			walk(s.Steps, func(in *Step) {
				if in.Do == do && (samples["phase"] == nil || slices.Contains(samples["phase"], in.Phase)) {
					cycles = max(cycles, s.Times)
				}
			})
		}
	}
	if !some {
		c.bad(n, "%s comes from %s steps, and the selected cases have none", what, do)
		return
	}
	for _, want := range samples["phase"] {
		if !slices.Contains(phases, want) {
			p := c.problem(n.at("phase").off, "phase", "no %s step of the selected cases has the phase %q", do, want)
			c.hintName(p, want, "phases of "+do, phases)
		}
	}
	for _, want := range samples["cycle"] {
		if countKind.of(want) < 1 || countKind.of(want) > cycles {
			p := c.problem(n.at("cycle").off, "cycle", "no %s step of the selected cases has a cycle %s", do, want)
			if p.hintf("none of these steps is inside a repeat"); cycles > 0 {
				p.hintf("the cycles of these steps are 1 to %d", cycles)
			}
		}
	}
}

// checkFileSamples checks that the quantity has files, and that file sizes and
// sets are among those written.
func (c *checker) checkFileSamples(n *node, samples map[string][]string, do, what string) {
	k := findStepKind(do)
	for _, key := range []string{"file_size", "set"} {
		if len(samples[key]) > 0 && !k.files {
			c.problem(n.at(key).off, key, "%s picks files, and %s comes from %s steps, which have none", key, what, do)
			return
		}
	}
	for _, want := range samples["file_size"] {
		found := do != "write" && do != "read" // others have files of inputs, too
		for _, f := range c.p.Files {
			for _, part := range f.Parts {
				found = found || part.Count > 0 || Choice{"file_size", sizeTexts(part.Sizes)}.matches(want)
			}
		}
		if !found {
			c.problem(n.at("file_size").off, "file_size", "no file set has files of %s", want)
		}
	}
	for _, want := range samples["set"] {
		most := 0
		for _, f := range c.p.Files {
			most = max(most, f.sets())
		}
		if countKind.of(want) < 1 || countKind.of(want) > most {
			c.problem(n.at("set").off, "set", "no file set has a set %s", want).
				hintf("sets are counted from 1 to %d", most)
		}
	}
}

// sizeTexts are sizes as selectors have them.
func sizeTexts(list []units.Bytes) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}
	return out
}

// axisValues are the values of the key in the plan; ok is false unless it
// varies.
func (c *checker) axisValues(name string) (values []string, ok bool) {
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
	for _, s := range c.p.Extra {
		if k := s.find(name); k != nil && !slices.Contains(values, k.Values[0]) {
			values = append(values, k.Values[0])
		}
	}
	return values, len(values) > 1
}

// checkAxis checks that the plan varies the axis, and that the values are on
// it. The extra names are axes of steps and files: their values are checked
// elsewhere.
func (c *checker) checkAxis(n *node, name string, values []string, at *node, extra ...string) {
	if name == "" || slices.Contains(extra, name) {
		return
	}
	have, ok := c.axisValues(name)
	if !ok {
		names := slices.Clone(extra)
		for _, a := range c.p.Axes {
			names = append(names, a.Key)
		}
		for _, m := range c.p.Manual {
			names = append(names, m.Name)
		}
		c.hintName(c.bad(n, "the plan does not vary %q", name), name, "axes", names)
		return
	}
	for _, v := range values {
		if !(Choice{name, have}).matches(v) {
			c.bad(at, "the axis %q has no value %q", name, v).hintf("its values: %s", strings.Join(have, ", "))
		}
	}
}

// stepAxes are axes along the steps and files of one case, with a hint for
// cases that do not vary them.
var stepAxes = map[string]string{
	"cycle": "cycles are the repetitions of a repeat", "phase": "give the steps phases of their own",
	"file_size": "the file sets have one size",
}

// checkAlong checks the axis of extreme, trend and spread.
func (c *checker) checkAlong(detail *node, a *Assert) {
	name := "along"
	if a.Kind == "spread" {
		name = "over"
	}
	at := detail.at(name)
	if k := a.Left.Where.find(a.Along); k != nil && len(k.Values) < 2 {
		c.bad(at, "left names one value of %q, so that it does not vary", a.Along).
			hintf("leave %s out of left", a.Along)
		return
	}
	if !c.whole || a.Left.Published || a.Left.Constant != nil || a.Along == "" {
		return
	}
	hint, ofSteps := stepAxes[a.Along]
	if !ofSteps {
		c.checkAxis(at, a.Along, a.At, detail.at("at"), "phase", "cycle", "file_size")
		return
	}
	info, ok := a.Left.Quantity.Info()
	have := c.stepValues(&a.Left, info.Do, a.Along)
	if !ok || have == nil { // the operand is not measured, which is reported elsewhere
		return
	}
	if len(have) < 2 {
		c.bad(at, "the %s steps that left names do not vary %q", info.Do, a.Along).hintf("%s", hint)
		return
	}
	for _, v := range a.At {
		if !slices.Contains(have, anySize) && !(Choice{a.Along, have}).matches(v) {
			p := c.bad(detail.at("at"), "the axis %q has no value %q", a.Along, v)
			if len(have) <= 20 {
				p.hintf("its values: %s", strings.Join(have, ", "))
			}
		}
	}
}

// anySize represents sizes that are drawn.
const anySize = "any"

// stepValues are the points on an axis of steps or files at which an operand is
// measured, nil if it is not measured.
func (c *checker) stepValues(o *Operand, do, axis string) []string {
	pick, samples := o.Where.split()
	var out []string
	add := func(values ...string) {
		for _, v := range values {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		walkCycles(k.Steps, 0, func(s *Step, cycles int) {
			if s.Do != do || len(samples["phase"]) > 0 && !slices.Contains(samples["phase"], s.Phase) {
				return
			}
			switch axis {
			case "phase":
				add(s.Phase)
			case "cycle":
				for n := range min(cycles, 10000) {
					add(strconv.Itoa(n + 1))
				}
				if cycles == 0 {
					add("0")
				}
			case "file_size":
				add(c.sizesOf(k, s)...)
			}
		})
	}
	return out
}

// sizesOf are the sizes of the files that a step may meet.
func (c *checker) sizesOf(k *Case, s *Step) []string {
	var out []string
	for _, f := range c.p.Files {
		if s.Do == "write" && f.Name != firstWord(s.Files, k.Settings.Files) {
			continue
		}
		for _, p := range f.Parts {
			out = append(out, sizeTexts(p.Sizes)...)
			if p.Count > 0 { // drawn sizes are many
				out = append(out, anySize, p.Low.String())
			}
		}
	}
	return out
}

// checkAverages refuses an operand that is the mean over a key which it does
// not name. A list of values asks for their mean.
func (c *checker) checkAverages(n *node, o *Operand, along string) {
	info, ok := o.Quantity.Info()
	if !ok || o.Published || o.Constant != nil {
		return
	}
	pick, samples := o.Where.split()
	var values Selector
	add := func(key, value string) {
		if key == along || o.Where.names(key) {
			return
		}
		if values.find(key) == nil {
			values = append(values, Choice{Key: key})
		}
		if k := values.find(key); !slices.Contains(k.Values, value) {
			k.Values = append(k.Values, value)
		}
	}
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		found := false
		walk(k.Steps, func(s *Step) {
			if s.Do == info.Do && (samples["phase"] == nil || slices.Contains(samples["phase"], s.Phase)) {
				found = true
				add("phase", s.Phase)
			}
		})
		for _, kv := range k.Keys {
			if found {
				add(kv.Key, kv.Value)
			}
		}
	}
	for _, k := range values {
		if len(k.Values) > 1 {
			at := n.at(string(o.Quantity))
			c.refuse(at, cmp.Or(at.name, n.name), "this is the mean over %d values of %q, which it does not name",
				len(k.Values), k.Key).hintf("name one value, or those of the mean: %s = [%s]", k.Key, k.valuesTOML())
			return
		}
	}
}

// refuse reports a claim that cannot be decided. check and run refuse the plan,
// but reports of runs that were made with it still work.
func (c *checker) refuse(n *node, key, format string, args ...any) *Problem {
	p := c.warn(n.off, key, format, args...)
	p.Refused = true
	return p
}
