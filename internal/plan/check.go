package plan

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/units"
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
	c.checkNames()
	if !r.invalid["matrix"] && !r.invalid["case"] && !r.invalid["manual"] && !r.invalid["settings"] && !c.checkCases() {
		return
	}
	c.whole = c.cases != nil && !r.invalid["protocol"] && !r.invalid["files"] && len(p.Changes) == 0
	c.checkPublished()
	c.checkFits()
	c.checkClaims()
	c.checkRelations()
	c.checkTables()
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
	if !c.expand() {
		return false
	}
	c.checkSettings()
	if !c.invalid["protocol"] {
		c.checkBlocks()
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
		if len(s) > 0 && !c.p.excludes(s) {
			c.problem(c.root.at("matrix", "exclude", i).off, "exclude", "exclude: no cell of the matrix is %s", s).
				hintf("remove it, or compare its values with the axes")
		}
	}
	seen := map[string]bool{}
	for i := range c.cases {
		if id := c.cases[i].ID; seen[id] && c.first("twice", id) {
			c.problem(c.findExtra(id).key, "case", "the case %q occurs twice", id).
				hintf("a [[case]] repeats a cell of the matrix or another [[case]]")
		}
		seen[c.cases[i].ID] = true
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

// findExtra is the last [[case]] table that makes the case of that name.
func (c *checker) findExtra(id string) *node {
	for i := range slices.Backward(c.p.Extra) {
		for _, manual := range c.p.manualCells() {
			if k, ok := c.p.makeExtra(c.p.Extra[i], manual); ok && k.ID == id {
				return c.root.at("case", i)
			}
		}
	}
	return c.root.at("case")
}

// checkNames reports references to what does not exist, and names given twice.
func (c *checker) checkNames() {
	c.checkManualRounds()
	c.checkUnique("manual", "manual axis", len(c.p.Manual), func(i int) string { return c.p.Manual[i].Name })
	if n := c.root.get("io").get("files"); n != nil {
		c.checkFileSet(n, c.p.Defaults.Files)
	}
	for _, a := range c.p.Axes {
		for i, v := range a.Values {
			if a.Key == "files" {
				c.checkFileSet(c.root.at("matrix", "files", i), v)
			}
		}
	}
	for i, s := range c.p.Extra {
		if k := s.find("files"); k != nil {
			c.checkFileSet(c.root.at("case", i, "files"), k.Values[0])
		}
	}
}

// checkUnique reports names that two tables of a list have.
func (c *checker) checkUnique(key, what string, n int, name func(i int) string) {
	seen := map[string]bool{}
	for i := range n {
		if id := name(i); seen[id] && id != "" {
			c.problem(c.root.at(key, i, "name").off, "name", "the %s %q is given twice", what, id)
		}
		seen[name(i)] = true
	}
}

// checkFileSet reports a file set that does not exist.
func (c *checker) checkFileSet(n *node, name string) {
	if name != "" && c.p.fileSet(name) == nil {
		c.hintName(c.problem(n.off, "files", "there is no file set %q", name), name, "file sets", c.fileSetNames())
	}
}

// fileSetNames are the names of the file sets, for hints.
func (c *checker) fileSetNames() []string {
	var out []string
	for _, f := range c.p.Files {
		out = append(out, f.Name)
	}
	return out
}

// hintName hints at the existing name that was probably meant.
func (c *checker) hintName(p *Problem, name, what string, have []string) {
	if len(have) == 0 {
		p.hintf("the plan has no %s", what)
		return
	}
	p.suggest(name, what+": ", have)
}

// checkSettings reports cases with settings that are incomplete or contradict
// each other.
func (c *checker) checkSettings() {
	for i := range c.cases {
		s := &c.cases[i].Settings
		if s.Target == "directory" {
			continue
		}
		for name, missing := range map[string]bool{"format": s.Format == "", "size": s.Size == 0} {
			if missing && c.first("missing", name) {
				which := fmt.Sprintf("the image of the case %q", c.cases[i].ID)
				if len(c.p.Axes)+len(c.p.Extra)+len(c.p.Manual) == 0 { // there is only one
					which = "the image"
				}
				c.problem(c.root.at("image").key, name, "%s has no %s", which, name).
					hintf("set it in [image], or make it an axis of [matrix]")
			}
		}
		c.checkBands(s)
		c.checkImageSize(s)
		f := formatOf(s.Format)
		if f.ImageType != "" && f.CreateType == "" && !f.ReadOnly && s.Backend == "hdiutil" && c.first("backend", "") {
			c.problem(c.settingAt("backend").off, "backend", "hdiutil cannot make %s, the format of the case %q",
				s.Format,
				c.cases[i].ID).hintf("backend = \"diskutil\" or \"auto\"")
		}
	}
}

// checkBands warns of bundles with very many bands, and of band sizes without a
// bundle.
func (c *checker) checkBands(s *Settings) {
	at, f := c.settingAt("band_size"), formatOf(s.Format)
	if !f.Folder {
		if s.BandSize > 0 && c.first("no bands", s.Format) {
			c.warn(at.key, "band_size", "band_size has no meaning for %s", s.Format).
				hintf("leave these cells out with exclude, or use [[case]]")
		}
		return
	}
	band := bandSizeOf(f, s.BandSize)
	if n := roundUp(s.Size, band) / band; n > safeBands && !s.ManyBands &&
		c.first("many", [2]units.Bytes{s.Size, band}) {
		c.warn(at.off, "band_size", "%s in bands of %s are %d bands when full; sparse bundles of more than "+
			"about 100,000 bands have been found unsafe", s.Size, band, n).
			hintf("use larger bands, or set allow_many_bands = true in [image]")
	}
}

// settingAt is the place of a setting: axis, table or case.
func (c *checker) settingAt(name string) *node {
	s := findSetting(name)
	if n := c.root.get("matrix").get(name); n != nil {
		return n
	}
	group := c.root.at(s.group)
	if n := group.get(s.nameInTable()); n != nil {
		return n
	}
	if cases := c.root.get("case"); cases != nil {
		for _, it := range cases.items {
			if n := it.get(name); n != nil {
				return n
			}
		}
	}
	return group
}

// checkBlocks reports protocol blocks for no case, cases without steps, and
// file sets and inputs that no step uses.
func (c *checker) checkBlocks() {
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
				used["files "+firstWord(s.Files, k.Settings.Files)] = true
			case "copy":
				used["inputs "+s.From] = true
			}
		})
	}
	for _, f := range c.p.Files {
		if !used["files "+f.Name] && !c.invalid["files"] {
			c.warn(c.root.at("files", f.Name).key, f.Name, "no step writes the file set %q", f.Name)
		}
	}
	for _, in := range c.p.Inputs {
		if !used["inputs "+in.Name] && !c.invalid["files"] {
			c.warn(c.root.at("inputs", in.Name).key, in.Name, "no step uses the input %q", in.Name)
		}
	}
}

// checkManualRounds refuses rounds = "auto" with manual axes: the user would
// have to set the axis in every round, since all cases of a round have to be
// measured before the next round is decided on.
func (c *checker) checkManualRounds() {
	if c.p.Run.Auto && len(c.p.Manual) > 0 {
		c.bad(c.root.at("run", "rounds"),
			`rounds: "auto" is not possible with the manual axis %q, which the user would have `+
				`to set in every round`, c.p.Manual[0].Name).hintf("write a number")
	}
}

// listShort names the first few of a list.
func listShort(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
