package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// Overrides are the flags of `run` that change a plan. Zero values change nothing.
type Overrides struct {
	Sets         int     // at most so many sets of each file set
	Scale        float64 // factor on file and image sizes
	Rounds       int
	Auto         bool // rounds are added until intervals are narrow
	Precision    units.Share
	MaxRounds    int
	Precondition string // none | steady
	MaxTime      units.Duration
	MaxWritten   units.Bytes
	Seed         *uint64
	Workers      int
	Filesystem   string
	Only         Selector // settings keys and manual axes
	Here         []string // places whose cases are measured in the run's own folder
}

// Apply gives the plan as executed and how it departs from the published one.
// p itself stays as it is. Flags that cannot be applied are *OverrideError, a
// selection that selects nothing is *SelectorError: both are bad usage.
func (p *Plan) Apply(o Overrides) (*Plan, []Change, error) {
	q := p.clone()
	for _, apply := range []func(*Plan, Overrides) error{
		(*Plan).applyOnly, (*Plan).applyHere, (*Plan).applyRun, (*Plan).applyFilesystem, (*Plan).applySets,
		(*Plan).applyScale,
	} {
		if err := apply(q, o); err != nil {
			return nil, nil, err
		}
	}
	if len(q.Changes) == 0 {
		return q, nil, nil
	}
	executed, problems := Parse(p.Name, q.Canonical())
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, nil, &OverrideError{Flag: q.Changes[len(q.Changes)-1].Kind, Value: "", Cause: errs[0].Message}
	}
	return executed, executed.Changes, nil
}

// clone is a copy that shares no slice that Apply changes: single values behind pointers are never changed.
func (p *Plan) clone() *Plan {
	q := *p
	q.Defaults.Filesystems = slices.Clone(p.Defaults.Filesystems)
	q.Axes = cloneEach(p.Axes, func(a *Axis) { a.Values = slices.Clone(a.Values) })
	q.Manual = cloneEach(p.Manual, func(m *Manual) { m.Values = slices.Clone(m.Values) })
	q.Exclude, q.Extra = cloneSelectors(p.Exclude), cloneSelectors(p.Extra)
	q.Files = cloneEach(p.Files, func(f *FileSet) {
		f.Parts = cloneEach(f.Parts, func(part *FilePart) { part.Sizes = slices.Clone(part.Sizes) })
	})
	q.Protocol = cloneEach(p.Protocol, func(b *Block) { b.When, b.Steps = b.When.clone(), cloneSteps(b.Steps) })
	q.Run.Require = slices.Clone(p.Run.Require)
	q.Inputs = slices.Clone(p.Inputs)
	q.Published = cloneEach(p.Published, func(f *Published) { f.Where = f.Where.clone() })
	q.Claims = cloneEach(p.Claims, func(c *Claim) { c.Assert = c.Assert.clone() })
	q.Fits = cloneEach(p.Fits, func(f *Fit) {
		f.Where, f.Points, f.Predict = f.Where.clone(), slices.Clone(f.Points), slices.Clone(f.Predict)
	})
	q.Relations = cloneEach(p.Relations, func(l *Relation) {
		l.X.Where, l.Y.Where, l.Over = l.X.Where.clone(), l.Y.Where.clone(), cloneSelectors(l.Over)
	})
	q.Tables = cloneEach(p.Tables, func(t *Table) {
		t.Columns, t.Rows = cloneEach(t.Columns, (*TableLine).cloneWhere), cloneEach(t.Rows, (*TableLine).cloneWhere)
	})
	q.Changes = slices.Clone(p.Changes)
	return &q
}

// cloneEach copies a list and gives each copy slices of its own.
func cloneEach[T any](list []T, own func(*T)) []T {
	out := slices.Clone(list)
	for i := range out {
		own(&out[i])
	}
	return out
}

func cloneSelectors(list []Selector) []Selector {
	return cloneEach(list, func(s *Selector) { *s = s.clone() })
}

func cloneSteps(steps []Step) []Step {
	return cloneEach(steps, func(s *Step) { s.Steps = cloneSteps(s.Steps) })
}

func (l *TableLine) cloneWhere() { l.Where = l.Where.clone() }

func (a *Assert) clone() Assert {
	out := *a
	out.Left.Where, out.Right.Where, out.Where = a.Left.Where.clone(), a.Right.Where.clone(), a.Where.clone()
	out.Of = cloneEach(a.Of, func(o *Operand) { o.Where = o.Where.clone() })
	out.At = slices.Clone(a.At)
	out.Parts = cloneEach(a.Parts, func(part *Assert) { *part = part.clone() })
	return out
}

func (p *Plan) changed(kind, format string, args ...any) {
	p.Changes = append(p.Changes, Change{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (p *Plan) applyRun(o Overrides) error {
	if o.Seed != nil {
		if *o.Seed > math.MaxInt64 {
			return &OverrideError{"seed", strconv.FormatUint(*o.Seed, 10), "a seed is at most 9223372036854775807"}
		}
		p.Run.Seed = *o.Seed
	}
	if err := p.applyRounds(o); err != nil {
		return err
	}
	if err := p.applyPrecondition(o); err != nil {
		return err
	}
	return p.applyWorkers(o.Workers)
}

func (p *Plan) applyWorkers(n int) error {
	if n == 0 {
		return nil
	}
	if n < 0 || n > 1024 {
		return &OverrideError{"workers", itoa(n), "want 1 to 1024"}
	}
	same := p.Defaults.Workers == n
	p.Defaults.Workers = n
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			same = same && (s.Workers == 0 || s.Workers == n)
			if s.Workers > 0 {
				s.Workers = n
			}
		})
	}
	if !p.fix("workers", itoa(n)) || !same {
		p.changed("workers", "%s throughout", plural(n, "worker"))
	}
	return nil
}

// fix gives an axis and [[case]] tables one value, and reports whether they had it already.
func (p *Plan) fix(key, value string) bool {
	same := true
	for i, a := range p.Axes {
		if a.Key == key {
			same = same && len(a.Values) == 1 && sameValue(key, a.Values[0], value)
			p.Axes[i].Values = []string{value}
		}
	}
	for _, s := range p.Extra {
		for j := range s {
			if s[j].Key == key {
				same = same && sameValue(key, s[j].Values[0], value)
				s[j].Values = []string{value}
			}
		}
	}
	if !same {
		p.unique()
	}
	return same
}

// unique drops [[case]] tables that have become the same as others, and
// exclusions that no longer leave out anything.
func (p *Plan) unique() {
	seen := map[string]bool{}
	for _, pairs := range p.product() {
		seen[caseID(pairs)] = true
	}
	p.Extra = slices.DeleteFunc(p.Extra, func(s Selector) bool {
		id := s.String()
		old := seen[id]
		seen[id] = true
		return old
	})
	p.Exclude = slices.DeleteFunc(p.Exclude, func(s Selector) bool {
		for _, turned := range p.turns() {
			for _, pairs := range p.product() {
				if c := p.build(pairs, turned); s.matchAll(c.Value) {
					return false
				}
			}
		}
		return true
	})
}

func (p *Plan) applyFilesystem(o Overrides) error {
	if o.Filesystem == "" {
		return nil
	}
	filesystems := image.FilesystemNames()
	i := slices.IndexFunc(filesystems, func(f string) bool { return strings.EqualFold(f, o.Filesystem) })
	if i < 0 {
		return &OverrideError{"fs", strconv.Quote(o.Filesystem), "accepted: " + strings.Join(filesystems, ", ")}
	}
	fs := filesystems[i]
	same := p.Defaults.Filesystems[0] == fs
	p.Defaults.Filesystems = []string{fs}
	if same = p.fix("filesystem", fs) && same; !same {
		p.changed("fs", "file system %s", fs)
	}
	return nil
}

// applyOnly keeps the cases that the selector selects. Every key of a case has
// one value, so that keeping values of axes is equivalent.
func (p *Plan) applyOnly(o Overrides) error {
	if len(o.Only) == 0 {
		return nil
	}
	none := &SelectorError{Text: o.Only.String(), Cause: "no case of the plan is that"}
	if o.Only.names("baseline") {
		none.Cause = "the baseline stands beside other cases and cannot be selected alone"
		return none
	}
	var kept []Case
	all := 0
	for _, c := range p.Cases() {
		if c.Baseline {
			continue
		}
		all++
		if o.Only.Match(c.Value) {
			kept = append(kept, c)
		}
	}
	switch {
	case len(kept) == 0:
		if values := p.selectable(o.Only); values != "" {
			none.Cause += "; there are " + values
		}
		return none
	case len(kept) == all:
		return nil
	}
	p.keep(o.Only)
	p.changed("only", "only %s: %d of %d cases", o.Only, len(kept), all)
	return nil
}

// selectable lists what the cases have of the keys of a selector, or of all keys where they have none of these.
func (p *Plan) selectable(only Selector) string {
	values := p.CaseValues()
	var parts []string
	for _, v := range values {
		if only.names(v.Key) {
			parts = append(parts, v.Key+"="+strings.Join(v.Values, "|"))
		}
	}
	if len(parts) == 0 {
		for _, v := range values {
			parts = append(parts, v.Key+"="+strings.Join(v.Values, "|"))
		}
	}
	return strings.Join(parts, ", ")
}

// CaseValues are the keys of the cases with their values, as --only takes them.
func (p *Plan) CaseValues() []Choice {
	var out []Choice
	for _, c := range p.Cases() {
		for _, kv := range c.Keys {
			i := slices.IndexFunc(out, func(o Choice) bool { return o.Key == kv.Key })
			if i < 0 {
				i = len(out)
				out = append(out, Choice{Key: kv.Key})
			}
			if !c.Baseline && !slices.Contains(out[i].Values, kv.Value) {
				out[i].Values = append(out[i].Values, kv.Value)
			}
		}
	}
	return slices.DeleteFunc(out, func(c Choice) bool { return len(c.Values) == 0 })
}

func (p *Plan) keep(only Selector) {
	wants := func(key, value string) bool {
		i := slices.IndexFunc(only, func(c Choice) bool { return c.Key == key })
		return i < 0 || slices.ContainsFunc(only[i].Values, func(v string) bool { return sameValue(key, value, v) })
	}
	p.Extra = slices.DeleteFunc(p.Extra, func(s Selector) bool {
		for _, turned := range p.turns() {
			if c, ok := p.extra(s, turned); ok && only.matchAll(c.Value) {
				return false
			}
		}
		return true
	})
	drop := func(a Axis) []string {
		return slices.DeleteFunc(slices.Clone(a.Values), func(v string) bool { return !wants(a.Key, v) })
	}
	bare := p.build(nil, nil)
	lost := slices.ContainsFunc(only, func(c Choice) bool { // a key that is no axis has one value everywhere
		return !p.varies(c.Key) && !(Selector{c}).matchAll(bare.Value)
	})
	for i, a := range p.Axes {
		p.Axes[i].Values = drop(a)
		lost = lost || len(p.Axes[i].Values) == 0
	}
	for i, m := range p.Manual {
		p.Manual[i].Values = drop(Axis{m.Name, m.Values})
	}
	if lost {
		p.Axes = nil
	}
	p.unique()
}

// varies reports whether a key is an axis, of the matrix or manual.
func (p *Plan) varies(key string) bool {
	return slices.ContainsFunc(p.Axes, func(a Axis) bool { return a.Key == key }) ||
		slices.ContainsFunc(p.Manual, func(m Manual) bool { return m.Name == key })
}

// applySets lowers the number of sets. Steps that delete a number of sets or of
// the largest files delete the same share of what is left.
func (p *Plan) applySets(o Overrides) error {
	if o.Sets == 0 {
		return nil
	}
	if o.Sets < 0 {
		return &OverrideError{"sets", itoa(o.Sets), "want 1 or more"}
	}
	before, after := map[string]FileSet{}, map[string]FileSet{}
	var parts []string
	for i, f := range p.Files {
		before[f.Name] = FileSet{Name: f.Name, Parts: slices.Clone(f.Parts)}
		for j := range f.Parts {
			p.Files[i].Parts[j].Sets = min(f.Parts[j].Sets, o.Sets)
		}
		after[f.Name] = p.Files[i]
		if was, is := before[f.Name].sets(), p.Files[i].sets(); is != was {
			parts = append(parts, fmt.Sprintf("%s of %s, not %d", plural(is, "set"), f.Name, was))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	written := p.Defaults.Files
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Do == "write" && s.Files != "" {
				written = s.Files
			}
			old, ok := before[written]
			if s.Do != "delete" || !ok {
				return
			}
			now := after[written]
			if s.LastSets > 0 && s.LastSets < old.sets() && now.sets() == 1 {
				parts = append(parts, fmt.Sprintf("deleting %d of %d sets deletes the only one that is left", s.LastSets,
					old.sets()))
			}
			s.LastSets = shrink(s.LastSets, old.sets(), now.sets())
			s.Largest = shrink(s.Largest, old.count(), now.count())
		})
	}
	p.changed("sets", "%s", strings.Join(parts, "; "))
	return nil
}

// sets is the number of sets of the part that has most.
func (fs FileSet) sets() int {
	n := 0
	for _, p := range fs.Parts {
		n = max(n, p.Sets)
	}
	return n
}

// count is the number of files of one write.
func (fs FileSet) count() int {
	n := 0
	for _, p := range fs.Parts {
		n += (len(p.Sizes) + p.Count) * p.Sets
	}
	return n
}

// shrink keeps n the same share of now as it was of old: at least one, and not
// all unless it was.
func shrink(n, old, now int) int {
	if n == 0 || old == now {
		return n
	}
	if n >= old {
		return now
	}
	return max(min(int(math.Round(float64(n)*float64(now)/float64(old))), now-1), 1)
}

// Change is one way in which the plan as executed departs from the plan as
// published: fewer sets, other sizes, another file system.
type Change struct {
	Kind string // sets | scale | rounds | precondition | workers | fs | only | place
	Text string // one sentence for people
}

// changeTable describes [[change]], which only the canonical form of an executed
// plan holds: `report` and `resume` read the departures from it.
var changeTable = table[Change]{name: "[[change]]", keys: []key[Change]{
	enumKey("kind", func(c *Change) *string { return &c.Kind }, "sets", "scale", "rounds", "precondition", "workers",
		"fs", "only", "place").must(),
	textKey("text", someText, func(c *Change) *string { return &c.Text }).must(),
}}

// Here is what the user writes instead of a folder, as in --on usb4=here, to have
// the cases of a place measured in the run's own folder.
const Here = "here"

// HereName is the name that a place has in the plan as executed if its cases are
// measured in the run's own folder. Cases, tables and charts take their labels from
// it, so that figures of another disk never carry the name of the place.
func HereName(place string) string { return Here + " (not " + place + ")" }

// HereFor is the place of the published plan for a name of [HereName].
func HereFor(name string) (place string, ok bool) {
	rest, ok := strings.CutPrefix(name, Here+" (not ")
	if !ok {
		return "", false
	}
	place, ok = strings.CutSuffix(rest, ")")
	return place, ok && nameRule.MatchString(place)
}

// AtHere reports whether the case, or a step of it, is at such a place.
func (c *Case) AtHere() bool {
	_, here := HereFor(c.Settings.Place)
	walk(c.Steps, func(s *Step) {
		_, step := HereFor(s.Place)
		here = here || step
	})
	return here
}

// applyHere renames places, wherever the plan mentions them.
func (p *Plan) applyHere(o Overrides) error {
	if len(o.Here) == 0 {
		return nil
	}
	places := p.Places()
	var quoted []string
	for _, name := range o.Here {
		switch {
		case slices.Contains(places, name):
			quoted = append(quoted, fmt.Sprintf("%q", name))
		case !slices.Contains(places, HereName(name)): // else it is the plan of such a run
			return &OverrideError{"on", name + "=" + Here, "no case of the plan is at that place"}
		}
	}
	if len(quoted) == 0 {
		return nil
	}
	rename := func(names []string) []string {
		out := slices.Clone(names)
		for i, name := range out {
			if slices.Contains(o.Here, name) {
				out[i] = HereName(name)
			}
		}
		return out
	}
	p.Defaults.Place = rename([]string{p.Defaults.Place})[0]
	p.replaceInCases("place", rename)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) { s.Place = rename([]string{s.Place})[0] })
	}
	p.reselect("place", rename)
	p.changed("place", "cases of place %s were measured in the run's own folder", strings.Join(quoted, " and "))
	return nil
}
