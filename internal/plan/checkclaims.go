package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// figures checks the published figures.
func (c *checker) figures(whole bool) {
	seen := map[string]bool{}
	for i := range c.p.Published {
		f := &c.p.Published[i]
		n := c.publishedAt[i]
		if c.p.Source == nil && c.first("source", "") {
			c.problem(n.key, "published", "published figures, but no [source]").hintf("say where they were published")
		}
		id := fmt.Sprint(f.Quantity, f.Where, f.Statistic, f.On)
		if seen[id] {
			c.problem(n.get(string(f.Quantity)).key, string(f.Quantity), "this cell has a figure for %q already", f.Quantity).
				hintf("several figures of one cell need an \"on\" or \"statistic\" of their own")
		}
		seen[id] = true
		where := n
		if w := n.get("where"); w != nil {
			where = w
		}
		if whole && !f.Unmeasured {
			c.selects(where, f.Where, f.Quantity)
		}
	}
}

// split parts a selector into what picks cases and what picks samples of them.
func (s Selector) split() (cases Selector, samples map[string][]string) {
	samples = map[string][]string{}
	for _, k := range s {
		if slices.ContainsFunc(sampleKeys, func(sk selectorKey) bool { return sk.name == k.Key }) {
			samples[k.Key] = k.Values
		} else {
			cases = append(cases, k)
		}
	}
	return cases, samples
}

// selects checks that a selector names a case that has a step which yields the quantity.
func (c *checker) selects(n *node, s Selector, q Quantity) {
	info, ok := q.Info()
	if !ok {
		return
	}
	c.selectsStep(n, s, info.Do, fmt.Sprintf("%q", q))
}

func (c *checker) selectsStep(n *node, s Selector, do, what string) {
	pick, samples := s.split()
	var steps []*Step
	hit, taken := false, map[*Step]bool{}
	for i := range c.cases {
		if !pick.Match(c.cases[i].Value) {
			continue
		}
		hit = true
		if own := c.cases[i].Steps; len(own) > 0 && !taken[&own[0]] { // cases share their protocols
			taken[&own[0]] = true
			walk(own, func(st *Step) { steps = append(steps, st) })
		}
	}
	if !hit {
		p := c.problem(n.off, n.name, "no case is %s", cmp.Or(pick.String(), "selected"))
		switch {
		case pick.names("target") || pick.names("baseline"):
			p.hintf("[run] baseline = true makes the baseline cases")
		case slices.Contains(c.publishedAt, n) || slices.ContainsFunc(c.publishedAt, func(t *node) bool { return t.get("where") == n }):
			p.hintf("compare with [matrix]; a figure without a case is kept with unmeasured = true")
		default:
			p.hintf("compare with [matrix]")
		}
		return
	}
	c.hasStep(n, samples, do, what, steps)
	c.hasFile(n, samples, do, what)
}

// hasStep checks phase and cycle against the steps of the selected cases.
func (c *checker) hasStep(n *node, samples map[string][]string, do, what string, steps []*Step) {
	phases := []string{}
	some := false
	for _, s := range steps {
		if s.Do == do {
			some = true
			if s.Phase != "" && !slices.Contains(phases, s.Phase) {
				phases = append(phases, s.Phase)
			}
		}
	}
	if !some {
		c.problem(n.off, n.name, "%s comes from %s steps, and the selected cases have none", what, do)
		return
	}
	for _, want := range samples["phase"] {
		if !slices.Contains(phases, want) {
			at := n
			if v := n.get("phase"); v != nil {
				at = v
			}
			c.hintName(c.problem(at.off, "phase", "no %s step of the selected cases has the phase %q", do, want), want, "phases of "+do, phases)
		}
	}
	for _, want := range samples["cycle"] {
		if last := cyclesOf(steps, do, samples["phase"]); atoi(want) < 1 || atoi(want) > last {
			p := c.problem(n.at("cycle").off, "cycle", "no %s step of the selected cases has a cycle %s", do, want)
			if p.hintf("none of these steps is inside a repeat"); last > 0 {
				p.hintf("the cycles of these steps are 1 to %d", last)
			}
		}
	}
}

// cyclesOf is the largest number of cycles that steps of a kind have, of these phases if any are named.
func cyclesOf(steps []*Step, do string, phases []string) int {
	n := 0
	for _, s := range steps {
		if s.Do != "repeat" {
			continue
		}
		walk(s.Steps, func(in *Step) {
			if in.Do == do && (len(phases) == 0 || slices.Contains(phases, in.Phase)) {
				n = max(n, s.Times)
			}
		})
	}
	return n
}

// where is the selector of a table, or the table.
func where(n *node) *node {
	if w := n.get("where"); w != nil {
		return w
	}
	return n
}

func (c *checker) claims(whole bool) {
	seen := map[string]int{}
	for i := range c.p.Claims {
		k := &c.p.Claims[i]
		n := c.root.at("claim", i)
		seen[k.ID]++
		if seen[k.ID] > 1 {
			if id := n.get("id"); id != nil {
				c.problem(id.off, "id", "the id %q is there twice", k.ID)
			} else {
				k.ID = fmt.Sprintf("%s-%d", k.ID, seen[k.ID])
			}
		}
		if k.By == "author" && c.p.Source == nil && c.first("claim source", "") {
			c.problem(n.at("by").off, "by", "an author's claim, but no [source]").hintf("say who the author is, or by = \"us\"")
		}
		c.assert(n, &k.Assert, whole)
		c.unpublished(n, k)
	}
}

// assert checks one test and reads its bound, whose unit is known only now.
func (c *checker) assert(n *node, a *Assert, whole bool) {
	if a.Kind == "" {
		return
	}
	detail := n.at(a.Kind)
	unit := ""
	for _, side := range []struct {
		name string
		o    *Operand
	}{{"left", &a.Left}, {"right", &a.Right}} {
		if at := n.get(side.name); at != nil {
			unit = c.sameUnit(at, unit, side.o)
			c.operand(at, side.o, whole)
		}
	}
	if list := detail.get("of"); list != nil && list.kind == arrayNode {
		for i := range a.Of {
			unit = c.sameUnit(list.at(i), unit, &a.Of[i])
			c.operand(list.at(i), &a.Of[i], whole)
		}
	}
	switch a.Kind {
	case "ratio":
		c.bound(detail, a, "1")
	case "difference", "bound":
		c.bound(detail, a, unit)
	case "spread":
		c.bound(detail.at("bound"), a, "1")
	case "all", "any":
		for i := range a.Parts {
			c.assert(detail.at(i), &a.Parts[i], whole)
		}
	case "outcome":
		if whole && a.Step != "" {
			c.selectsStep(where(detail), a.Where, a.Step, "the outcome")
		}
	case "coefficient", "prediction":
		c.fitTest(detail, a)
	case "rank":
		field := len(a.Of)
		if !slices.ContainsFunc(a.Of, func(o Operand) bool { return operandTOML(&o) == operandTOML(&a.Left) }) {
			field++ // left stands beside the others
		}
		if a.Rank > field {
			c.problem(detail.at("is").off, "is", "rank %d of %s", a.Rank, plural(field, "operand"))
		}
	}
	c.constants(n, a)
	c.emptyAssert(n, a, whole)
	c.alongTest(n, detail, a, whole)
}

// constants reports a test of nothing but constants: it names no case.
func (c *checker) constants(n *node, a *Assert) {
	operands := slices.Clone(a.Of)
	for side, o := range map[string]Operand{"left": a.Left, "right": a.Right} {
		if n.get(side) != nil {
			operands = append(operands, o)
		}
	}
	if len(operands) > 0 && !slices.ContainsFunc(operands, func(o Operand) bool { return o.Constant == nil || o.Quantity != "" }) {
		c.problem(n.at(a.Kind).key, a.Kind, "the test compares constants, and names nothing that is measured or published")
	}
}

// unitOf is the unit of an operand, "" if it is not known.
func unitOf(o *Operand) string {
	if o.Constant != nil {
		return o.Constant.Unit
	}
	return o.Quantity.Unit()
}

func (c *checker) sameUnit(n *node, unit string, o *Operand) string {
	mine := unitOf(o)
	if unit != "" && mine != "" && mine != unit {
		c.problem(n.off, n.name, "the operands of a test have different units: %s and %s", unitWord(unit), unitWord(mine))
		return unit
	}
	return cmp.Or(unit, mine)
}

func unitWord(unit string) string {
	return map[string]string{"B/s": "rate", "s": "time", "B": "size", "1": "pure number"}[unit]
}

// operand checks what one side of a test names.
func (c *checker) operand(n *node, o *Operand, whole bool) {
	at := n
	if w := n.get(string(o.Quantity)); w != nil {
		at = w
	}
	switch {
	case o.Quantity == "":
	case o.Published:
		if !slices.ContainsFunc(c.p.Published, func(f Published) bool { return o.takes(&f, c.p.Source) }) && len(c.p.Changes) == 0 {
			c.problem(at.off, n.name, "no published %q figure is %s", o.Quantity, cmp.Or(o.Where.String(), "there"))
		}
	case whole:
		c.selects(at, o.Where, o.Quantity)
	}
}

// bound reads a bound in its unit.
func (c *checker) bound(n *node, a *Assert, unit string) {
	if unit == "" || a.Bound.Text == "" {
		return
	}
	b, err := ParseBound(a.Bound.Text, unit)
	if err != nil {
		c.valueError(n, err)
		return
	}
	a.Bound = b
}
