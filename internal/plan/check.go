package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

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
	cells := 1.0 // before exclude; there may be too many for an integer
	for _, a := range c.p.Axes {
		cells *= float64(len(a.Values))
	}
	cells += float64(len(c.p.Extra))
	for _, m := range c.p.Manual {
		cells *= float64(len(m.Values))
	}
	if cells > maxCases {
		c.problem(matrix.key, "matrix", "the matrix has more than %d cases", maxCases)
		return false
	}
	if c.cases = c.p.Cases(); len(c.cases) == 0 {
		c.problem(matrix.key, "matrix", "the plan has no case: exclude leaves out every cell")
		return false
	}
	whole := *c.p
	whole.Exclude = nil
	all := sync.OnceValue(whole.Cases)
	for i, s := range c.p.Exclude {
		if !slices.ContainsFunc(all(), func(k Case) bool { return s.matchAll(k.Value) }) {
			c.bad(c.root.at("matrix", "exclude", i), "exclude: no cell of the matrix is %s", s)
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
		c.checkUnused()
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
	spec := image.Spec{Format: s.Format, Size: int64(units.RoundUp(s.Size, image.SectorSize))}
	if f.AnyBand {
		spec.BandSize = int64(s.BandSize)
	}
	if err := spec.Validate(); err != nil && s.Size > 0 && f.Writable() {
		c.bad(c.settingAt("size"), "size: %v", err)
	}
	if s.Size == 0 || !c.first("size", [2]any{s.Size, s.Filesystems}) {
		return
	}
	var bad []*Problem
	for _, fs := range s.Filesystems {
		words, bound, limit := "small", "at least %d B, partition table included", smallestImage(fs)
		if most := units.Bytes(image.FilesystemNamed(fs).MaxSize); most > 0 && s.Size > most {
			words, bound, limit = "large", "at most %d B", most
		} else if s.Size >= limit {
			continue
		}
		p := c.warn(c.settingAt("size").off, "size", "an image of %s is too %s for %s", s.Size, words, fs)
		bad = append(bad, p.hintf(bound, limit))
	}
	for _, p := range bad {
		p.Warning = len(bad) < len(s.Filesystems) // another file system of the preference can be made
	}
}

// minFileSize is the smallest file that can be timed on a device of 10 GB/s: it
// takes twenty times the third of a microsecond that the program itself needs for
// a file. docs/accuracy.md has the measurement, which dmgbench selftest repeats on
// any machine. The analysis checks the real times after a run.
const minFileSize = units.Bytes(64_000)

// checkFileSizes refuses files that are too small to be timed, in lists and in
// ranges. Scaling keeps sizes above the limit itself.
func (c *checker) checkFileSizes() {
	if slices.ContainsFunc(c.p.Changes, func(k Change) bool { return k.Kind == "scale" }) {
		return
	}
	for _, f := range c.p.Files {
		for i, part := range f.Parts {
			sizes := slices.Concat(part.Sizes, part.Range)
			if len(sizes) == 0 || slices.Min(sizes) >= minFileSize {
				continue
			}
			at := c.root.at("files", f.Name)
			if parts := at.get("parts"); parts != nil {
				at = parts.at(i)
			}
			key := "sizes"
			if len(part.Range) > 0 {
				key = "range"
			}
			at = at.at(key, slices.Index(sizes, slices.Min(sizes)))
			c.refuse(at, "files of %s in set %q are too small to be timed: the overhead of the program would show in "+
				"their rate", slices.Min(sizes), f.Name).
				hintf("use files of %s or more; dmgbench selftest measures the overhead", minFileSize)
		}
	}
}

// settingAt is the place of a setting of [image]: its axis, or its table.
func (c *checker) settingAt(name string) *node {
	if n := c.root.get("matrix").get(name); n != nil {
		return n
	}
	return c.root.at("image", name)
}

// checkUnused reports protocol blocks for no case, and cases without steps.
func (c *checker) checkUnused() {
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
	// keys: of cases and phases, samples: of cycles, sets and files, with their
	// values; of the numbers from 1 to most the first and the last
	keys, samples Selector
	most          map[string]int
	// anySize: files have sizes that are drawn, or are not of file sets
	anySize bool
}

// reachOf follows a selector through all cases to their steps of a kind.
func (c *checker) reachOf(where Selector, do string) *reach {
	r := &reach{do: do, keys: Selector{{Key: "phase"}}, samples: Selector{{Key: "file_size"}}, most: map[string]int{}}
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
					r.most["cycle"] = max(r.most["cycle"], cycles)
					r.addFiles(c.p, s, cmp.Or(s.Files, k.Settings.Files))
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
	for key, n := range r.most {
		r.samples = append(r.samples, Choice{key, []string{"1", "… " + strconv.Itoa(n)}[:min(n, 2)]})
	}
	return r
}

// addFiles adds the kinds of operation of a step, or the sets and sizes of its
// files.
func (r *reach) addFiles(p *Plan, s *Step, files string) {
	k := findStepKind(s.Do)
	if k.operations != nil {
		for _, kind := range k.operations(s) {
			r.samples.addValue("operation", kind)
		}
	}
	if !k.files {
		return
	}
	r.anySize = r.anySize || s.Do == "copy" || s.Do == "stream"
	sizes := &r.samples[0]
	for _, f := range p.Files {
		if s.Do == "write" && f.Name != files {
			continue
		}
		sets, _ := f.total()
		r.most["set"] = max(r.most["set"], sets)
		for _, part := range f.Parts {
			r.anySize = r.anySize || part.Count > 0
			sizes.Values = append(sizes.Values, namesOf(part.Sizes, (*units.Bytes).String)...)
		}
	}
	slices.Sort(sizes.Values)
	sizes.Values = slices.Compact(sizes.Values)
}

// values are those of a key.
func (r *reach) values(key string) []string {
	return cmp.Or(slices.Concat(r.keys, r.samples).Find(key), &Choice{}).Values
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
		if !c.hasValues(n.at(k.Key), r, k) {
			return nil
		}
	}
	return r
}

// hasValues reports values that no step of the kind has. A step outside of every
// repeat is in cycle 0.
func (c *checker) hasValues(at *node, r *reach, wanted Choice) bool {
	key, have := wanted.Key, Choice{wanted.Key, r.values(wanted.Key)}
	for _, v := range wanted.Values {
		n, err := strconv.Atoi(v)
		isCounted := err == nil && n <= r.most[key] && (n > 0 || key == "cycle")
		if !isCounted && !have.Matches(v) && !(key == "file_size" && r.anySize) {
			c.bad(at, "no %s step of the selected cases has the %s %q", r.do, key, v).
				suggest(v, "such "+key+"s", have.Values)
			return false
		}
	}
	return true
}

// checkAlong checks that the steps that where selects vary the axis, and have
// the values on it.
func (c *checker) checkAlong(at *node, where Selector, r *reach, axis Choice) {
	count := len(r.values(axis.Key))
	if axis.Key == "file_size" && r.anySize {
		count = 2
	}
	if named := where.Find(axis.Key); named != nil {
		count = min(count, len(named.Values))
	}
	if count < 2 {
		c.bad(at, "the selected %s steps do not vary %q", r.do, axis.Key)
		return
	}
	c.hasValues(at, r, axis)
}

// refuse reports a claim that cannot be decided. check and run refuse the plan,
// but reports of runs that were made with it still work.
func (c *checker) refuse(n *node, format string, args ...any) *Problem {
	p := c.warn(n.off, n.name, "%s", fmt.Sprintf(format, args...))
	p.Refused = true
	return p
}

// unnamedMean is a key with several values that a selection does not name, so
// that what it selects is the mean over them; nil if there is none, or only the
// axis along. A list of values asks for their mean.
func (r *reach) unnamedMean(where Selector, along string) *Choice {
	return find(r.keys, func(k *Choice) bool {
		return k.Key != along && !where.Names(k.Key) && len(k.Values) > 1
	})
}

// refuseMean reports a mean over a key that its selection does not name.
func (c *checker) refuseMean(n *node, k *Choice) {
	c.refuse(n, "this is the mean over %d values of %q, which it does not name", len(k.Values), k.Key).
		hintf("name one value, or those of the mean: %s = [%s]", k.Key, k.valuesTOML())
}

// checkQuantity is checkSelected for the steps that yield a quantity.
func (c *checker) checkQuantity(n *node, where Selector, q Quantity) *reach {
	do := quantityIndex[q].Do
	isLatency := findStepKind(do).operations != nil && q.Unit() == "s" && string(q) != do+"_time"
	if isLatency && !where.Names("operation") {
		c.bad(n, "%q is of one kind of operation", q).hintf("name it: operation = \"read\"")
		return nil
	}
	return c.checkSelected(n, where, do, strconv.Quote(string(q)))
}

// smallestImage is the smallest image that a file system can be made in.
func smallestImage(filesystem string) units.Bytes {
	return units.Bytes(image.FilesystemNamed(filesystem).MinSize + image.PartitionTableSize)
}
