package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
		case slices.Contains(c.publishedAt, n) ||
			slices.ContainsFunc(c.publishedAt, func(t *node) bool { return t.get("where") == n }):
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
			c.hintName(c.problem(at.off, "phase", "no %s step of the selected cases has the phase %q", do, want), want,
				"phases of "+do, phases)
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
		c.checkUnpublished(n, k)
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
	c.checkDegenerate(n, a, whole)
	c.alongTest(n, detail, a, whole)
}

// constants reports a test that has only constants: it names no case.
func (c *checker) constants(n *node, a *Assert) {
	operands := slices.Clone(a.Of)
	for side, o := range map[string]Operand{"left": a.Left, "right": a.Right} {
		if n.get(side) != nil {
			operands = append(operands, o)
		}
	}
	if len(operands) > 0 && !slices.ContainsFunc(operands,
		func(o Operand) bool { return o.Constant == nil || o.Quantity != "" }) {
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
		if !slices.ContainsFunc(c.p.Published, func(f Published) bool { return o.takes(&f, c.p.Source) }) &&
			len(c.p.Changes) == 0 {
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

// Claims that cannot be decided are refused by check and run. They are no errors of the
// plan: reports of runs that were made with them can still be had.

// refuse reports a claim that cannot be decided.
func (c *checker) refuse(n *node, key, format string, args ...any) *Problem {
	p := c.warn(n.off, key, format, args...)
	p.Refused = true
	return p
}

// checkDegenerate reports sides that are the same, and operands that average what they do not name.
func (c *checker) checkDegenerate(n *node, a *Assert, whole bool) {
	left, right := n.get("left"), n.get("right")
	if left != nil && right != nil && operandTOML(&a.Left) == operandTOML(&a.Right) {
		c.refuse(right, "right", "left and right are the same: the test cannot fail").
			hintf("name on each side what is compared")
	}
	if !whole {
		return
	}
	for _, side := range []struct {
		at *node
		o  *Operand
	}{{left, &a.Left}, {right, &a.Right}} {
		if side.at != nil {
			c.checkAverages(side.at, side.o, a.Along)
		}
	}
	if list := n.at(a.Kind).get("of"); list != nil && list.kind == arrayNode {
		for i := range a.Of {
			c.checkAverages(list.at(i), &a.Of[i], a.Along)
		}
	}
}

// checkUnpublished reports an author's claim about quantities of which the source prints no figure:
// whether it is read rightly cannot be known. An outcome or a fit is held against itself.
func (c *checker) checkUnpublished(n *node, k *Claim) {
	if k.By != "author" || len(c.p.Changes) > 0 || c.invalid["published"] {
		return
	}
	if ops, sure := k.Assert.operands(); sure && len(ops) > 0 && !slices.ContainsFunc(ops, c.isPublished) {
		c.refuse(n.at("by"), "by", "an author's claim, and no published figure is of anything that it compares").
			hintf("add the figure as [[published]], with unmeasured = true if the plan has no such case, or say by = \"us\"")
	}
}

func (c *checker) isPublished(o Operand) bool {
	return slices.ContainsFunc(c.p.Published, func(f Published) bool { return o.takes(&f, c.p.Source) })
}

// operands are what a test and its parts compare; sure is false if it compares something else, too.
func (a *Assert) operands() (out []Operand, sure bool) {
	sure = !slices.Contains([]string{"outcome", "coefficient", "prediction"}, a.Kind)
	for _, o := range slices.Concat([]Operand{a.Left, a.Right}, a.Of) {
		if o.Quantity != "" {
			out = append(out, o)
		}
	}
	for i := range a.Parts {
		ops, known := a.Parts[i].operands()
		out, sure = append(out, ops...), sure && known
	}
	return out, sure
}

// checkAverages reports an operand that is the mean over a key which it does not name. A list of
// values asks for their mean.
func (c *checker) checkAverages(n *node, o *Operand, along string) {
	info, ok := o.Quantity.Info()
	if !ok || o.Published || o.Constant != nil {
		return
	}
	pick, samples := o.Where.split()
	var keys []string
	values := map[string][]string{}
	add := func(key, value string) {
		if key == along || o.Where.names(key) {
			return
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		if !slices.Contains(values[key], value) {
			values[key] = append(values[key], value)
		}
	}
	for i := range c.cases {
		k := &c.cases[i]
		if !pick.Match(k.Value) {
			continue
		}
		found := false
		for _, id := range stepIDs(k.Steps, 0) {
			if id.do == info.Do && (samples["phase"] == nil || slices.Contains(samples["phase"], id.phase)) {
				found = true
				add("phase", id.phase)
			}
		}
		for _, kv := range k.Keys {
			if found {
				add(kv.Key, kv.Value)
			}
		}
	}
	for _, key := range keys {
		if list := values[key]; len(list) > 1 {
			at := n
			if w := n.get(string(o.Quantity)); w != nil {
				at = w
			}
			c.refuse(at, cmp.Or(at.name, n.name), "this is the mean over %d values of %q, which it does not name", len(list),
				key).
				hintf("name one value, or those whose mean is meant: %s = [%s]", key, quotedValues(key, list))
			return
		}
	}
}

// quotedValues are values as a plan writes them.
func quotedValues(key string, values []string) string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		if t := choiceType(key); !t.bare && t != flagType {
			v = tomlString(v)
		}
		out = append(out, v)
	}
	return strings.Join(out, ", ")
}

// numericAxes are the axes that a fit can run along.
var numericAxes = []string{"threads", "workers", "level", "band_size", "block", "size", "file_size", "cycle"}

func (c *checker) fits(whole bool) {
	seen := map[string]bool{}
	for i := range c.p.Fits {
		f := &c.p.Fits[i]
		n := c.root.at("fit", i)
		if seen[f.Name] && f.Name != "" {
			c.problem(n.at("name").off, "name", "the fit %q is there twice", f.Name)
		}
		seen[f.Name] = true
		along := n.at("along")
		manual := slices.ContainsFunc(c.p.Manual, func(m Manual) bool { return m.Name == f.Along })
		switch {
		case f.Along == "":
		case !manual && !slices.Contains(numericAxes, f.Along):
			c.hintName(c.problem(along.off, "along", "a fit cannot run along %q", f.Along), f.Along, "numeric axes", numericAxes)
		case whole:
			c.along(along, f.Along, f.Points, n.at("points"), "file_size", "cycle")
		}
		if whole && f.Quantity != "" {
			c.selects(where(n), f.Where, f.Quantity)
		}
	}
}

// fitTest checks a coefficient or a prediction against the fit it names.
func (c *checker) fitTest(detail *node, a *Assert) {
	var names []string
	for i := range c.p.Fits {
		names = append(names, c.p.Fits[i].Name)
	}
	i := slices.Index(names, a.Fit)
	if i < 0 {
		if a.Fit != "" {
			c.hintName(c.problem(detail.at("fit").off, "fit", "there is no fit %q", a.Fit), a.Fit, "fits", names)
		}
		return
	}
	f := &c.p.Fits[i]
	if a.Kind == "prediction" {
		for _, v := range a.At {
			if !slices.ContainsFunc(f.Predict, func(p string) bool { return sameValue(f.Along, p, v) }) {
				c.problem(detail.at("at").off, "at", "the fit %q predicts nothing at %s", f.Name, v).
					hintf("its predict: [%s]", strings.Join(f.Predict, ", "))
			}
		}
		if len(a.At) != 1 {
			c.problem(detail.at("at").off, "at", "a prediction is for one value")
		}
		if u := unitOf(&a.Left); u != "" && f.Quantity.Unit() != "" && u != f.Quantity.Unit() {
			c.problem(detail.off, "prediction", "the fit %q predicts a %s, the operand is a %s", f.Name,
				unitWord(f.Quantity.Unit()), unitWord(u))
		}
		c.bound(detail.at("bound"), a, "1")
		return
	}
	if have := coefficients[f.Model]; have != nil && a.Coefficient != "" && !slices.Contains(have, a.Coefficient) {
		c.hintName(c.problem(detail.at("name").off, "name", "the model %s has no coefficient %q", f.Model, a.Coefficient),
			a.Coefficient, "coefficients", have)
		return
	}
	c.bound(detail.at("bound"), a, coefficientUnit(a.Coefficient, f.Quantity))
}

func (c *checker) relations(whole bool) {
	seen := map[string]bool{}
	for i := range c.p.Relations {
		l := &c.p.Relations[i]
		n := c.root.at("relation", i)
		if seen[l.Name] && l.Name != "" {
			c.problem(n.at("name").off, "name", "the relation %q is there twice", l.Name)
		}
		seen[l.Name] = true
		for j, s := range l.Over {
			at := n.at("over", j)
			if slices.ContainsFunc(l.Over[:j], func(other Selector) bool { return other.String() == s.String() }) {
				c.problem(at.off, "over", "over: the point %s is there twice", s)
			}
			for _, o := range []*Operand{&l.X, &l.Y} {
				here := *o
				here.Where = slices.Concat(o.Where, s)
				c.operand(at, &here, whole)
			}
		}
	}
}
