package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"dmgbench/internal/system/units"
)

// reach is what a selector selects of the plan: the cases, and their steps of
// one kind, with the values that these have.
type reach struct {
	do           string
	cases, steps int
	// keys: of cases and phases, in the order found, with their values
	keys Selector
	// most: highest cycle and set, which are counted from 1
	most map[string]int
	// outside: steps outside of a repeat, which have cycle 0
	outside bool
	sizes   Choice
	// anySize: files have sizes that are drawn, or are not of file sets
	anySize bool
}

// reachOf follows a selector through all cases to their steps of a kind.
func (c *checker) reachOf(where Selector, do string) *reach {
	r := &reach{do: do, keys: Selector{{Key: "phase"}}, most: map[string]int{}, sizes: Choice{Key: "file_size"}}
	pick, samples := where.split()
	type followed struct {
		steps *Step
		files string
	}
	seen := map[followed]int{} // steps of the kind; cases share their protocols
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		r.cases++
		if len(k.Steps) == 0 {
			continue
		}
		id := followed{&k.Steps[0], k.Settings.Files}
		if _, ok := seen[id]; !ok {
			walkCycles(k.Steps, 0, func(s *Step, cycles int) {
				if s.Do != do {
					return
				}
				seen[id]++
				r.keys.addValue("phase", s.Phase)
				if samples["phase"] == nil || slices.Contains(samples["phase"], s.Phase) {
					r.addSamples(c.p, s, cmp.Or(s.Files, k.Settings.Files), cycles)
				}
			})
		}
		r.steps += seen[id]
		for _, kv := range k.Keys {
			if seen[id] > 0 {
				r.keys.addValue(kv.Key, kv.Value)
			}
		}
	}
	return r
}

// addSamples adds the cycles and files of a step.
func (r *reach) addSamples(p *Plan, s *Step, files string, cycles int) {
	r.most["cycle"], r.outside = max(r.most["cycle"], cycles), r.outside || cycles == 0
	if !findStepKind(s.Do).files {
		return
	}
	r.anySize = r.anySize || s.Do == "copy" || s.Do == "stream"
	for _, f := range p.Files {
		if s.Do == "write" && f.Name != files {
			continue
		}
		r.most["set"] = max(r.most["set"], f.sets())
		for _, part := range f.Parts {
			r.anySize = r.anySize || part.Count > 0
			r.sizes.Values = append(r.sizes.Values, sizeTexts(part.Sizes)...)
		}
	}
	slices.Sort(r.sizes.Values)
	r.sizes.Values = slices.Compact(r.sizes.Values)
}

// addValue adds a value of a key, once.
func (s *Selector) addValue(key, value string) {
	if s.find(key) == nil {
		*s = append(*s, Choice{Key: key})
	}
	if c := s.find(key); !slices.Contains(c.Values, value) {
		c.Values = append(c.Values, value)
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

// has reports whether a key has the value somewhere.
func (r *reach) has(key, value string) bool {
	switch key {
	case "cycle", "set":
		n, _ := countKind.of(value).(int64)
		return n >= 1 && n <= int64(r.most[key]) || n == 0 && key == "cycle" && r.outside
	case "file_size":
		return r.anySize || r.sizes.matches(value)
	}
	c := r.keys.find(key)
	return c != nil && c.matches(value)
}

// values are those of a key, for hints; more than the few that are listed are
// as many.
func (r *reach) values(key string) (list []string, count int) {
	switch key {
	case "cycle", "set":
		if n := r.most[key]; n > 0 {
			list, count = []string{"1 to " + strconv.Itoa(n)}, n
		}
		if r.outside && key == "cycle" {
			count++
		}
		return list, count
	case "file_size":
		list, count = r.sizes.Values, len(r.sizes.Values)
		if r.anySize {
			count += 2
		}
		return list, count
	}
	if c := r.keys.find(key); c != nil {
		list = c.Values
	}
	return list, len(list)
}

// checkSelected checks that a selector names a case with a step of a kind, and
// that the steps and files that it picks exist; what describes the figure in
// messages. The result is nil if they do not, or if the plan has other errors.
func (c *checker) checkSelected(n *node, where Selector, do, what string) *reach {
	if !c.whole || do == "" {
		return nil
	}
	r := c.reachOf(where, do)
	pick, samples := where.split()
	switch {
	case r.cases == 0:
		c.bad(n, "no case is %s", cmp.Or(pick.String(), "selected")).hintf("compare with [matrix]; [run] baseline = " +
			"true makes the baseline cases, and a figure without a case needs unmeasured = true")
		return nil
	case r.steps == 0:
		c.bad(n, "%s comes from %s steps, and the selected cases have none", what, do)
		return nil
	}
	ok := true
	for _, k := range sampleKeys {
		for _, want := range samples[k.name] {
			if !r.has(k.name, want) {
				have, _ := r.values(k.name)
				c.bad(n.at(k.name), "no %s step of the selected cases has the %s %q", do, k.name, want).
					hintName(want, "such values", have)
				ok = false
			}
		}
		if !ok && k.name == "phase" { // other steps would be those of the cycles and files
			break
		}
	}
	if !ok {
		return nil
	}
	return r
}

// checkAlong checks that the steps that where selects vary the axis, and have
// the values on it.
func (c *checker) checkAlong(at *node, where Selector, r *reach, along string, wanted []string) {
	list, count := r.values(along)
	if named := where.find(along); named != nil {
		count = min(count, len(named.Values))
	}
	if count < 2 {
		axes := []string{}
		for _, key := range append(r.keys, Choice{Key: "cycle"}, r.sizes) {
			if _, n := r.values(key.Key); n > 1 {
				axes = append(axes, key.Key)
			}
		}
		c.bad(at, "the selected %s steps do not vary %q", r.do, along).hintName(along, "axes", axes)
		return
	}
	for _, v := range wanted {
		if !r.has(along, v) {
			c.bad(at, "the axis %q has no value %q", along, v).hintName(v, "its values", list)
		}
	}
}

// checkAverages refuses an operand that is the mean over a key which it does
// not name. A list of values asks for their mean.
func (c *checker) checkAverages(n *node, o *Operand, r *reach, along string) {
	for _, k := range r.keys {
		if k.Key != along && !o.Where.names(k.Key) && len(k.Values) > 1 {
			at := n.at(string(o.Quantity))
			c.refuse(at, "this is the mean over %d values of %q, which it does not name", len(k.Values), k.Key).
				hintf("name one value, or those of the mean: %s = [%s]", k.Key, k.valuesTOML())
			return
		}
	}
}

// refuse reports a claim that cannot be decided. check and run refuse the plan,
// but reports of runs that were made with it still work.
func (c *checker) refuse(n *node, format string, args ...any) *Problem {
	p := c.warn(n.off, n.name, "%s", fmt.Sprintf(format, args...))
	p.Refused = true
	return p
}

// checkQuantity is checkSelected for the steps that yield a quantity.
func (c *checker) checkQuantity(n *node, where Selector, q Quantity) *reach {
	return c.checkSelected(n, where, quantityIndex[q].Do, strconv.Quote(string(q)))
}
