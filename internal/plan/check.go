package plan

import (
	"cmp"
	"fmt"
	"slices"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// safeBands is the number of bands above which Apple's sparse bundles were
// found to be unsafe (Oakley, 21 October 2024: "more than about 100,000").
const safeBands = 100_000

// checker checks a plan as a whole.
type checker struct {
	*reader
	// root: nil for a plan that flags have changed: findings then have no place
	root  *node
	p     *Plan
	cases []Case
	// once: findings that one place gets once, whatever the case
	once map[string]bool
	// work: file operations followed so far
	work int
	// whole: cases, steps and files are without errors: selections of them are
	// checked
	whole bool
}

// check reports what is wrong between the parts of a plan. Parts in which
// decoding found errors are not checked, since further findings there would
// follow from these errors.
func (r *reader) check(root *node, p *Plan) {
	c := &checker{reader: r, root: root, p: p, once: map[string]bool{}}
	if c.isValid("matrix", "case", "manual", "target", "image", "io", "stream") {
		if !c.checkCases() {
			return
		}
		c.whole = c.isValid("protocol", "files", "inputs") && len(p.Changes) == 0
	}
	for _, part := range []string{"manual", "fit", "relation", "table"} {
		c.checkUnique(part)
	}
	c.checkPublished()
	c.checkFits()
	c.checkClaims()
	c.checkRelations()
	c.checkTables()
}

// isValid reports whether decoding found no error in these parts of the plan.
func (c *checker) isValid(parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool {
		n := c.root.get(part)
		return n != nil && n.invalid
	})
}

// checkChanged is the first error of a plan that flags have changed, nil if
// there is none.
func (p *Plan) checkChanged() *Problem {
	c := &checker{reader: newReader(p.Name, nil), p: p, once: map[string]bool{}}
	c.checkCases()
	if errs := c.problems().Errors(); len(errs) > 0 {
		return &errs[0]
	}
	return nil
}

// checkCases expands the cases and checks their settings and steps; false:
// there are too many or none.
func (c *checker) checkCases() bool {
	if c.p.Run.Auto && len(c.p.Manual) > 0 {
		c.bad(c.root.at("run", "rounds"), `rounds: "auto" is not possible with the manual axis %q, which the user `+
			`would have to set in every round`, c.p.Manual[0].Name).hintf("write a number")
	}
	if !c.expand() {
		return false
	}
	for i := range c.cases {
		if s := &c.cases[i].Settings; s.Target != "directory" {
			c.checkImage(s, c.cases[i].ID)
		}
	}
	if c.isValid("protocol", "files", "inputs") {
		c.checkUse()
		c.checkProtocols()
	}
	return true
}

// first reports whether this finding is the first of its kind at its place.
func (c *checker) first(code string, at any) bool {
	id := fmt.Sprintf("%s %v", code, at)
	found := c.once[id]
	c.once[id] = true
	return !found
}

// atStep reports a finding about a step.
func (c *checker) atStep(s *Step, code, format string, args ...any) *Problem {
	p := &Problem{Line: s.Line, Column: s.Column, Key: s.Do, Message: fmt.Sprintf(format, args...)}
	if !c.first(code, [2]int{s.Line, s.Column}) {
		return p
	}
	return c.report(p)
}

// expand makes the cases.
func (c *checker) expand() bool {
	matrix := c.root.at("matrix")
	if c.p.cellCount() > maxCases {
		c.problem(matrix.key, "matrix", "the matrix has more than %d cases", maxCases).
			hintf("split the plan, or leave out axes")
		return false
	}
	if c.cases = c.p.Cases(); len(c.cases) == 0 {
		c.problem(matrix.key, "matrix", "the plan has no case: exclude leaves out every cell")
		return false
	}
	for i, s := range c.p.Exclude {
		if !c.p.excludes(s) {
			c.bad(c.root.at("matrix", "exclude", i), "exclude: no cell of the matrix is %s", s).
				hintf("remove it, or compare its values with the axes")
		}
	}
	seen := map[string]bool{}
	for i := range c.cases {
		id := c.cases[i].ID
		if seen[id] {
			c.badKey(c.root.at("case"), "the case %q occurs twice", id).
				hintf("an axis has a value twice, or a [[case]] repeats a cell of the matrix or another [[case]]")
		}
		seen[id] = true
	}
	return true
}

// excludes reports whether the selector matches a cell of the matrix.
func (p *Plan) excludes(s Selector) bool {
	for _, manual := range p.manualCells() {
		for _, cell := range p.matrixCells() {
			if c := p.makeCase(cell, manual); s.matchAll(c.Value) {
				return true
			}
		}
	}
	return false
}

// checkUnique reports names that two tables of a list have.
func (c *checker) checkUnique(part string) {
	seen := map[string]bool{}
	for i := range c.root.at(part).items {
		at := c.root.at(part, i, "name")
		if at.kind == stringNode && seen[at.text] {
			c.bad(at, "the %s %q is given twice", part, at.text)
		}
		seen[at.text] = true
	}
}

// hintName hints at the existing name that was probably meant.
func (p *Problem) hintName(name, what string, have []string) *Problem {
	if len(have) == 0 {
		return p.hintf("the plan has no %s", what)
	}
	return p.suggest(name, what+": ", func() []string { return have })
}

// checkImage reports settings of an image that are incomplete or contradict
// each other.
func (c *checker) checkImage(s *Settings, id string) {
	for name, missing := range map[string]bool{"format": s.Format == "", "size": s.Size == 0} {
		if missing && c.first("missing", name) {
			c.problem(c.root.at("image").key, name, "the image of the case %q has no %s", id, name).
				hintf("set it in [image], or make it an axis of [matrix]")
		}
	}
	f, at := formatOf(s.Format), c.settingAt("band_size")
	band := bandSizeOf(f, s.BandSize)
	switch {
	case s.BandSize > 0 && !f.Folder && c.first("no bands", s.Format):
		c.warn(at.key, "band_size", "band_size has no meaning for %s", s.Format).
			hintf("leave these cells out with exclude, or use [[case]]")
	case f.Folder && units.RoundUp(s.Size, band)/band > safeBands && !s.ManyBands:
		c.warn(at.off, "band_size", "%s in bands of %s are %d bands when full; sparse bundles of more than "+
			"about 100,000 bands have been found unsafe", s.Size, band, units.RoundUp(s.Size, band)/band).
			hintf("use larger bands, or set allow_many_bands = true in [image]")
	}
	if s.Size == 0 || !c.first("size", [2]any{s.Size, s.Filesystems}) {
		return
	}
	least := smallestImage(s.Filesystems...)
	for _, fs := range s.Filesystems {
		if needs := smallestImage(fs); s.Size < needs {
			p := c.warn(c.settingAt("size").off, "size", "an image of %s is too small for %s", s.Size, fs).
				hintf("at least %d B: %s for the volume and the rest for the partition table", needs,
					needs-image.PartitionTableSize)
			p.Warning = s.Size >= least // another file system of the preference can be made
		}
	}
}

// settingAt is the place of a setting: its axis, or its table.
func (c *checker) settingAt(name string) *node {
	if n := c.root.get("matrix").get(name); n != nil {
		return n
	}
	s := findSetting(name)
	return c.root.at(s.group, s.own)
}

// checkUse reports protocol blocks for no case, cases without steps, and file
// sets and inputs that no step uses.
func (c *checker) checkUse() {
	if len(c.p.Changes) > 0 {
		return
	}
	for i, b := range c.p.Protocol {
		if !slices.ContainsFunc(c.cases, func(k Case) bool { return b.When.matchAll(k.Value) }) {
			c.bad(c.root.at("protocol", i, "when"), "when: no case is %s", b.When)
		}
	}
	used := map[string]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		if len(k.Steps) == 0 && !k.Baseline && c.root.get("protocol") != nil && c.first("no steps", "") {
			c.badKey(c.root.at("protocol"), "the case %q has no steps", k.ID)
		}
		walk(k.Steps, func(s *Step) {
			switch s.Do {
			case "write":
				used["files "+cmp.Or(s.Files, k.Settings.Files)] = true
			case "copy":
				used["inputs "+s.From] = true
			}
		})
	}
	for _, part := range []string{"files", "inputs"} {
		n := c.root.get(part)
		if n == nil {
			continue
		}
		for _, one := range n.pairs {
			if !used[part+" "+one.name] {
				c.warn(one.key, one.name, "no step uses %s.%s", part, one.name)
			}
		}
	}
}
