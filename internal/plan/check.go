package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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
		seen := map[string]bool{}
		for i := range root.at(part).items {
			name := root.at(part, i, "name")
			if name.kind == stringNode && seen[name.text] {
				c.bad(name, "the %s %q is given twice", part, name.text)
			}
			seen[name.text] = true
		}
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

// checkCases expands the cases and checks their settings and steps; false:
// there are too many or none.
func (c *checker) checkCases() bool {
	if c.p.Run.Auto && len(c.p.Manual) > 0 {
		c.bad(c.root.at("run", "rounds"), `rounds: "auto" is not possible with the manual axis %q, which the user `+
			`would have to set in every round`, c.p.Manual[0].Name).hintf("write a number")
	}
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
	whole := *c.p
	whole.Exclude = nil
	cells := whole.Cases()
	for i, s := range c.p.Exclude {
		if !slices.ContainsFunc(cells, func(k Case) bool { return s.matchAll(k.Value) }) {
			c.bad(c.root.at("matrix", "exclude", i), "exclude: no cell of the matrix is %s", s).
				hintf("remove it, or compare its values with the axes")
		}
	}
	seen := map[string]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		if seen[k.ID] {
			c.badKey(c.root.at("case"), "the case %q occurs twice", k.ID).
				hintf("an axis has a value twice, or a [[case]] repeats a cell of the matrix or another [[case]]")
		}
		seen[k.ID] = true
		if k.Settings.Target != "directory" {
			c.checkImage(&k.Settings, k.ID)
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

// checkUse reports protocol blocks for no case, and cases without steps.
func (c *checker) checkUse() {
	if len(c.p.Changes) > 0 {
		return
	}
	for i, b := range c.p.Protocol {
		if !slices.ContainsFunc(c.cases, func(k Case) bool { return b.When.matchAll(k.Value) }) {
			c.bad(c.root.at("protocol", i, "when"), "when: no case is %s", b.When)
		}
	}
	for i := range c.cases {
		k := &c.cases[i]
		if len(k.Steps) == 0 && !k.Baseline && c.root.get("protocol") != nil && c.first("no steps", "") {
			c.badKey(c.root.at("protocol"), "the case %q has no steps", k.ID)
		}
	}
}

// reach is what a selector selects of the plan: the cases, and their steps of
// one kind, with the values that these have.
type reach struct {
	do           string
	cases, steps int
	// keys: of cases and phases, in the order found, with their values
	keys Selector
	// most: highest cycle and set, which are counted from 1
	most  map[string]int
	sizes Choice
	// anySize: files have sizes that are drawn, or are not of file sets
	anySize bool
}

// reachOf follows a selector through all cases to their steps of a kind.
func (c *checker) reachOf(where Selector, do string) *reach {
	r := &reach{do: do, keys: Selector{{Key: "phase"}}, most: map[string]int{}, sizes: Choice{Key: "file_size"}}
	pick, samples := where.split()
	phases := samples.Find("phase")
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
				if phases == nil || slices.Contains(phases.Values, s.Phase) {
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
	r.most["cycle"] = max(r.most["cycle"], cycles)
	if !findStepKind(s.Do).files {
		return
	}
	r.anySize = r.anySize || s.Do == "copy" || s.Do == "stream"
	for _, f := range p.Files {
		if s.Do == "write" && f.Name != files {
			continue
		}
		sets, _ := f.total()
		r.most["set"] = max(r.most["set"], sets)
		for _, part := range f.Parts {
			r.anySize = r.anySize || part.Count > 0
			r.sizes.Values = append(r.sizes.Values, namesOf(part.Sizes, (*units.Bytes).String)...)
		}
	}
	slices.Sort(r.sizes.Values)
	r.sizes.Values = slices.Compact(r.sizes.Values)
}

// addValue adds a value of a key, once.
func (s *Selector) addValue(key, value string) {
	if s.Find(key) == nil {
		*s = append(*s, Choice{Key: key})
	}
	if c := s.Find(key); !slices.Contains(c.Values, value) {
		c.Values = append(c.Values, value)
	}
}

// has reports whether a key has the value somewhere. A step outside of every
// repeat is in cycle 0.
func (r *reach) has(key, value string) bool {
	switch key {
	case "cycle", "set":
		n, _ := countKind.of(value).(int64)
		return n <= int64(r.most[key]) && (n > 0 || key == "cycle")
	case "file_size":
		return r.anySize || r.sizes.Matches(value)
	}
	c := r.keys.Find(key)
	return c != nil && c.Matches(value)
}

// values are those of a key, for hints; more than the few that are listed are
// as many.
func (r *reach) values(key string) (list []string, count int) {
	switch key {
	case "cycle", "set":
		if r.most[key] > 0 {
			list = []string{"1 to " + strconv.Itoa(r.most[key])}
		}
		return list, r.most[key]
	case "file_size":
		list = r.sizes.Values
		if r.anySize {
			return list, len(list) + 2
		}
	default:
		if c := r.keys.Find(key); c != nil {
			list = c.Values
		}
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
	for _, k := range samples {
		for _, want := range k.Values {
			if !r.has(k.Key, want) {
				have, _ := r.values(k.Key)
				c.bad(n.at(k.Key), "no %s step of the selected cases has the %s %q", do, k.Key, want).
					suggest(want, "such values", have)
				return nil
			}
		}
	}
	return r
}

// checkAlong checks that the steps that where selects vary the axis, and have
// the values on it.
func (c *checker) checkAlong(at *node, where Selector, r *reach, along string, wanted []string) {
	list, count := r.values(along)
	if named := where.Find(along); named != nil {
		count = min(count, len(named.Values))
	}
	if count < 2 {
		c.bad(at, "the selected %s steps do not vary %q", r.do, along)
		return
	}
	for _, v := range wanted {
		if !r.has(along, v) {
			c.bad(at, "the axis %q has no value %q", along, v).suggest(v, "its values", list)
		}
	}
}

// checkAverages refuses an operand that is the mean over a key which it does
// not name. A list of values asks for their mean.
func (c *checker) checkAverages(n *node, o *Operand, r *reach, along string) {
	for _, k := range r.keys {
		if k.Key != along && !o.Where.Names(k.Key) && len(k.Values) > 1 {
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
