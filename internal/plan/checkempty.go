package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Claims that can say nothing are refused by check and run. They are no errors of the
// plan: reports of runs that were made with them can still be had.

// empty reports a claim that can say nothing.
func (c *checker) empty(n *node, key, format string, args ...any) *Problem {
	p := c.warn(n.off, key, format, args...)
	p.Refused = true
	return p
}

// emptyAssert reports sides that are the same, and operands that average what they do not name.
func (c *checker) emptyAssert(n *node, a *Assert, whole bool) {
	left, right := n.get("left"), n.get("right")
	if left != nil && right != nil && operandTOML(&a.Left) == operandTOML(&a.Right) {
		c.empty(right, "right", "left and right are the same: the test cannot fail").hintf("name on each side what is compared")
	}
	if !whole {
		return
	}
	for _, side := range []struct {
		at *node
		o  *Operand
	}{{left, &a.Left}, {right, &a.Right}} {
		if side.at != nil {
			c.averages(side.at, side.o, a.Along)
		}
	}
	if list := n.at(a.Kind).get("of"); list != nil && list.kind == arrayNode {
		for i := range a.Of {
			c.averages(list.at(i), &a.Of[i], a.Along)
		}
	}
}

// unpublished reports an author's claim about quantities of which the source prints no figure:
// whether it is read rightly cannot be known. An outcome or a fit is held against itself.
func (c *checker) unpublished(n *node, k *Claim) {
	if k.By != "author" || len(c.p.Changes) > 0 || c.marred["published"] {
		return
	}
	if ops, sure := k.Assert.operands(); sure && len(ops) > 0 && !slices.ContainsFunc(ops, c.isPublished) {
		c.empty(n.at("by"), "by", "an author's claim, and no published figure is of anything that it compares").
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

// averages reports an operand that is the mean over a key which it does not name. A list of
// values says that their mean is meant.
func (c *checker) averages(n *node, o *Operand, along string) {
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
			c.empty(at, cmp.Or(at.name, n.name), "this is the mean over %d values of %q, which it does not name", len(list), key).
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
