package plan

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/units"
)

// safeBands is where Apple's sparse bundles were found to become unsafe
// (Oakley, 21 October 2024: "more than about 100,000").
const safeBands = 100_000

// checker looks at a plan as a whole.
type checker struct {
	*reader
	root  *node
	p     *Plan
	cases []Case
	once  map[string]bool // findings that one place gets once, whatever the case
	work  int             // file operations looked at so far
}

// check reports what is wrong between the parts of a plan. Parts in which
// decoding found errors are left alone: what follows from an error is no finding.
func (r *reader) check(root *node, p *Plan) {
	c := &checker{reader: r, root: root, p: p, once: map[string]bool{}}
	c.names()
	if !r.invalid["matrix"] && !r.invalid["case"] && !r.invalid["manual"] && !r.invalid["settings"] {
		if !c.expand() {
			return
		}
		c.settings()
		if !r.invalid["protocol"] {
			c.blocks()
			c.protocols()
		}
	}
	whole := c.cases != nil && !r.invalid["protocol"] && !r.invalid["files"] && len(p.Changes) == 0
	c.figures(whole)
	c.fits(whole)
	c.claims(whole)
	c.relations(whole)
	c.tables(whole)
}

// first reports whether this finding is the first of its kind at its place.
func (c *checker) first(code string, at any) bool {
	id := fmt.Sprintf("%s %v", code, at)
	if c.once[id] {
		return false
	}
	c.once[id] = true
	return true
}

// atStep reports a finding about a step.
func (c *checker) atStep(s *Step, code, format string, args ...any) *Problem {
	p := &Problem{Line: s.Line, Column: s.Column, Key: s.Do, Message: fmt.Sprintf(format, args...)}
	if !c.first(code, [2]int{s.Line, s.Column}) {
		return p
	}
	return c.report(p)
}

// expand makes the cases, unless there are absurdly many.
func (c *checker) expand() bool {
	if n := c.p.count(); n > maxCases {
		c.problem(c.root.at("matrix").key, "matrix", "the matrix has more than %d cases", maxCases).
			hintf("split the plan, or leave out axes")
		return false
	}
	c.cases = c.p.Cases()
	if len(c.cases) == 0 {
		c.problem(c.root.at("matrix").key, "matrix", "the plan has no case: exclude leaves out every cell")
		return false
	}
	c.excludes()
	seen := map[string]bool{}
	for i := range c.cases {
		if id := c.cases[i].ID; seen[id] && c.first("twice", id) {
			c.problem(c.extraAt(id).key, "case", "the case %q is there twice", id).
				hintf("a [[case]] repeats a cell of the matrix or another [[case]]")
		}
		seen[c.cases[i].ID] = true
	}
	return true
}

// extraAt is the last [[case]] table that makes the case of that name.
func (c *checker) extraAt(id string) *node {
	for i := range slices.Backward(c.p.Extra) {
		for _, turned := range c.p.turns() {
			if k, ok := c.p.extra(c.p.Extra[i], turned); ok && k.ID == id {
				return c.root.at("case", i)
			}
		}
	}
	return c.root.at("case")
}

// excludes reports exclusions that match no case.
func (c *checker) excludes() {
	for i, s := range c.p.Exclude {
		hit := false
		for _, turned := range c.p.turns() {
			for _, pairs := range c.p.product() {
				one := c.p.build(pairs, turned)
				hit = hit || s.matchAll(one.Value)
			}
		}
		if !hit && len(s) > 0 {
			at := c.root.at("matrix", "exclude", i)
			c.problem(at.off, "exclude", "exclude: no cell of the matrix is %s", s).
				hintf("remove it, or compare its values with the axes")
		}
	}
}

// names reports references to what does not exist, and names given twice.
func (c *checker) names() {
	c.autoManual()
	seen := map[string]bool{}
	for i, m := range c.p.Manual {
		if seen[m.Name] && m.Name != "" {
			c.problem(c.root.at("manual", i, "name").off, "name", "the manual axis %q is there twice", m.Name)
		}
		seen[m.Name] = true
	}
	if n := c.root.get("io").get("files"); n != nil {
		c.knownFiles(n, c.p.Defaults.Files)
	}
	for _, a := range c.p.Axes {
		if a.Key == "files" {
			for i, v := range a.Values {
				c.knownFiles(c.root.at("matrix", "files", i), v)
			}
		}
	}
	for i, s := range c.p.Extra {
		for _, k := range s {
			if k.Key == "files" {
				c.knownFiles(c.root.at("case", i, "files"), k.Values[0])
			}
		}
	}
}

// knownFiles reports a file set that does not exist.
func (c *checker) knownFiles(n *node, name string) {
	if name == "" || c.p.fileSet(name) != nil {
		return
	}
	c.hintName(c.problem(n.off, "files", "there is no file set %q", name), name, "file sets", c.fileSetNames())
}

func (c *checker) fileSetNames() []string {
	var out []string
	for _, f := range c.p.Files {
		out = append(out, f.Name)
	}
	return out
}

func (c *checker) hintName(p *Problem, name, what string, have []string) {
	switch near := Nearest(name, have); {
	case near != "":
		p.hintf("did you mean %q?", near)
	case len(have) == 0:
		p.hintf("the plan has no %s", what)
	default:
		p.hintf("%s: %s", what, strings.Join(have, ", "))
	}
}

// settings reports cases whose settings are incomplete or contradict each other.
func (c *checker) settings() {
	image := c.root.at("image")
	for i := range c.cases {
		s := &c.cases[i].Settings
		if s.Target == "directory" {
			continue
		}
		for _, k := range []struct {
			name    string
			missing bool
		}{{"format", s.Format == ""}, {"size", s.Size == 0}} {
			if k.missing && c.first("missing", k.name) {
				which := fmt.Sprintf("the image of the case %q", c.cases[i].ID)
				if len(c.p.Axes)+len(c.p.Extra)+len(c.p.Manual) == 0 { // there is but one
					which = "the image"
				}
				c.problem(image.key, k.name, "%s has no %s", which, k.name).
					hintf("set it in [image], or make it an axis of [matrix]")
			}
		}
		c.bands(s)
		c.checkMinimumSize(s)
		if formatOf(s.Format).ImageType != "" && formatOf(s.Format).CreateType == "" && s.Backend == "hdiutil" && c.first("backend", "") {
			c.problem(c.settingAt("backend").off, "backend", "hdiutil cannot make %s, the format of the case %q",
				s.Format, c.cases[i].ID).
				hintf("backend = \"diskutil\" or \"auto\"")
		}
	}
}

// bands warns of bundles of very many bands, and of band sizes without bundle.
func (c *checker) bands(s *Settings) {
	at := c.settingAt("band_size")
	f := formatOf(s.Format)
	if !f.Folder {
		if s.BandSize > 0 && c.first("no bands", s.Format) {
			c.warn(at.key, "band_size", "band_size has no meaning for %s", s.Format).
				hintf("leave these cells out with exclude, or use [[case]]")
		}
		return
	}
	band := units.Bytes(f.BandSize(int64(s.BandSize)))
	if n := roundUp(s.Size, band) / band; n > safeBands && !s.ManyBands && c.first("many", [2]units.Bytes{s.Size, band}) {
		c.warn(at.off, "band_size", "%s in bands of %s are %d bands when full; above about 100,000 sparse bundles have been found unsafe", s.Size, band, n).
			hintf("use larger bands, or set allow_many_bands = true in [image]")
	}
}

// settingAt is where a setting is given: axis, case or table.
func (c *checker) settingAt(name string) *node {
	s := findSetting(name)
	own := name
	if s.own != "" {
		own = s.own
	}
	if n := c.root.get("matrix").get(name); n != nil {
		return n
	}
	if n := c.root.get(s.group).get(own); n != nil {
		return n
	}
	if list := c.root.get("case"); list != nil {
		for _, it := range list.items {
			if n := it.get(name); n != nil {
				return n
			}
		}
	}
	return c.root.at(s.group)
}

// blocks reports protocol blocks that are for no case, and cases without steps.
func (c *checker) blocks() {
	for i, b := range c.p.Protocol {
		hit := slices.ContainsFunc(c.cases, func(k Case) bool { return b.When.matchAll(k.Value) })
		if !hit && len(c.p.Changes) == 0 {
			at := c.root.at("protocol", i, "when")
			c.problem(at.off, "when", "when: no case is %s", b.When)
		}
	}
	for i := range c.cases {
		if len(c.cases[i].Steps) == 0 && !c.cases[i].Baseline && c.root.get("protocol") != nil && c.first("no steps", "") {
			c.problem(c.root.at("protocol").key, "protocol", "the case %q has no steps", c.cases[i].ID)
		}
	}
	c.unused()
}

// unused warns of file sets and inputs that no step uses.
func (c *checker) unused() {
	used := map[string]bool{}
	for i := range c.cases {
		walk(c.cases[i].Steps, func(s *Step) {
			switch {
			case s.Do == "write" && s.Files == "":
				used["files "+c.cases[i].Settings.Files] = true
			case s.Do == "write":
				used["files "+s.Files] = true
			case s.Do == "copy":
				used["inputs "+s.From] = true
			}
		})
	}
	if len(c.p.Changes) > 0 || c.invalid["files"] {
		return
	}
	for _, f := range c.p.Files {
		if !used["files "+f.Name] {
			c.warn(c.root.at("files", f.Name).key, f.Name, "no step writes the file set %q", f.Name)
		}
	}
	for _, in := range c.p.Inputs {
		if !used["inputs "+in.Name] {
			c.warn(c.root.at("inputs", in.Name).key, in.Name, "no step uses the input %q", in.Name)
		}
	}
}

// walk visits steps and the steps inside repeat and parallel.
func walk(steps []Step, visit func(*Step)) {
	for i := range steps {
		visit(&steps[i])
		walk(steps[i].Steps, visit)
	}
}
