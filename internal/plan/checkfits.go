package plan

import (
	"slices"
	"strings"
)

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
				c.problem(detail.at("at").off, "at", "the fit %q predicts nothing at %s", f.Name, v).hintf("its predict: [%s]", strings.Join(f.Predict, ", "))
			}
		}
		if len(a.At) != 1 {
			c.problem(detail.at("at").off, "at", "a prediction is for one value")
		}
		if u := unitOf(&a.Left); u != "" && f.Quantity.Unit() != "" && u != f.Quantity.Unit() {
			c.problem(detail.off, "prediction", "the fit %q predicts a %s, the operand is a %s", f.Name, unitWord(f.Quantity.Unit()), unitWord(u))
		}
		c.bound(detail.at("bound"), a, "1")
		return
	}
	if have := coefficients[f.Model]; have != nil && a.Coefficient != "" && !slices.Contains(have, a.Coefficient) {
		c.hintName(c.problem(detail.at("name").off, "name", "the model %s has no coefficient %q", f.Model, a.Coefficient), a.Coefficient, "coefficients", have)
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
