package plan

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// Overrides are the flags of `run` that change a plan. Zero values have no
// effect.
type Overrides struct {
	// Sets: most sets of each file set
	Sets int
	// Scale: factor on file and image sizes
	Scale  float64
	Rounds int
	// Auto: rounds are added until intervals are narrow
	Auto      bool
	Precision units.Share
	MaxRounds int
	// Precondition: none | steady
	Precondition string
	MaxTime      units.Duration
	MaxWritten   units.Bytes
	Seed         *uint64
	Workers      int
	Filesystem   string
	// Only: settings keys and manual axes
	Only Selector
	// Here: places with cases that are measured in the run's own folder
	Here []string
}

// Change is one way in which the plan as executed deviates from the plan as
// published: fewer sets, other sizes, another file system. Only the canonical
// form of an executed plan has them: `report` and `resume` read the deviations
// from it.
type Change struct {
	Kind string `plan:"kind sets|scale|rounds|precondition|workers|fs|only|place !"`
	// Text: one sentence for people
	Text string `plan:"text words !"`
}

// Apply gives the plan as executed and its changes against the published one; p
// stays as it is. A flag that cannot be applied is an *OverrideError, a
// selection of no case a *SelectorError: both are bad usage.
func (p *Plan) Apply(o Overrides) (*Plan, []Change, error) {
	for _, flag := range []struct {
		name    string
		n, high int
	}{{"sets", o.Sets, 100_000}, {"rounds", o.Rounds, maxRounds}, {"max-rounds", o.MaxRounds, maxRounds},
		{"workers", o.Workers, 1024}} {
		if flag.n < 0 || flag.n > flag.high { // 0 is a flag that is not given
			return nil, nil, &OverrideError{flag.name, strconv.Itoa(flag.n), fmt.Sprintf("want 1 to %d", flag.high)}
		}
	}
	q := *p
	deepCopy(reflect.ValueOf(&q).Elem())
	for _, apply := range []func(*Plan, Overrides) error{
		(*Plan).applyOnly, (*Plan).applyHere, (*Plan).applySeed, (*Plan).applyRounds, (*Plan).applyPrecondition,
		(*Plan).applyWorkers, (*Plan).applyFilesystem, (*Plan).applySets, (*Plan).applyScale,
	} {
		if err := apply(&q, o); err != nil {
			return nil, nil, err
		}
	}
	if len(q.Changes) == 0 {
		return &q, nil, nil
	}
	if bad := q.checkChanged(); bad != nil {
		return nil, nil, &OverrideError{Flag: q.Changes[len(q.Changes)-1].Kind, Cause: bad.Message}
	}
	return &q, q.Changes, nil
}

// deepCopy gives v slices of its own. Values behind pointers stay shared: they
// are never changed.
func deepCopy(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		for i := range v.Len() {
			deepCopy(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				deepCopy(f)
			}
		}
	}
}

// addChange records how the executed plan deviates; kind is one of those of
// [Change].
func (p *Plan) addChange(kind, format string, args ...any) {
	p.Changes = append(p.Changes, Change{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// applySeed applies --seed. TOML has no unsigned integers, so that a seed ends
// at 1<<63 - 1.
func (p *Plan) applySeed(o Overrides) error {
	switch {
	case o.Seed == nil:
	case *o.Seed > math.MaxInt64:
		return &OverrideError{"seed", strconv.FormatUint(*o.Seed, 10), "a seed is at most 9223372036854775807"}
	default:
		p.Run.Seed = *o.Seed
	}
	return nil
}

// applyRounds applies the flags about rounds.
func (p *Plan) applyRounds(o Overrides) error {
	before, run := p.Run, &p.Run
	if o.Rounds > 0 {
		run.Auto, run.Rounds, run.MaxRounds, run.MaxTime, run.MaxWritten = false, o.Rounds, 0, 0, 0
	}
	run.Precision = cmp.Or(o.Precision, run.Precision)
	if o.Auto || run.Auto {
		run.MaxRounds = cmp.Or(o.MaxRounds, run.MaxRounds)
		run.MaxTime = cmp.Or(o.MaxTime, run.MaxTime)
		run.MaxWritten = cmp.Or(o.MaxWritten, run.MaxWritten)
		run.setAuto()
	} else {
		for flag, given := range map[string]bool{"max-rounds": o.MaxRounds > 0, "max-time": o.MaxTime > 0,
			"max-written": o.MaxWritten > 0} {
			if given {
				return &OverrideError{flag, "", fmt.Sprintf(
					"it is a limit of --rounds auto, and the plan has %s; add --rounds auto", run.RoundsText())}
			}
		}
	}
	was, now := describeRounds(before), describeRounds(*run)
	if was != now {
		if !before.Auto && !run.Auto {
			was = strconv.Itoa(before.Rounds)
		}
		p.addChange("rounds", "%s, not %s", now, was)
	}
	return nil
}

// describeRounds is the number of rounds with all limits of rounds = "auto".
// Two options with the same text run the same rounds.
func describeRounds(o RunOptions) string {
	if !o.Auto {
		return o.RoundsText()
	}
	text := fmt.Sprintf("%s, until every interval is within ± %s", o.RoundsText(), o.Precision)
	if o.MaxTime > 0 {
		text += fmt.Sprintf(", for at most %s", o.MaxTime)
	}
	if o.MaxWritten > 0 {
		text += fmt.Sprintf(", writing at most %s", o.MaxWritten)
	}
	return text
}

// applyPrecondition applies --precondition; the value that the plan has is not
// a change.
func (p *Plan) applyPrecondition(o Overrides) error {
	switch run := &p.Run; {
	case o.Precondition == "" || o.Precondition == run.Precondition || o.Precondition == "none" &&
		run.Precondition == "":
	case o.Precondition == Steady:
		run.setSteady()
		p.addChange("precondition", "the disk is written to until its rate settles")
	case o.Precondition == "none":
		run.Precondition, run.SteadyWindow, run.SteadyLimit, run.SteadyFile = "", 0, 0, 0
		run.SteadyTime, run.SteadyWritten = 0, 0
		p.addChange("precondition", "the disk is not written to until its rate settles")
	default:
		return &OverrideError{"precondition", o.Precondition, "want none or steady"}
	}
	return nil
}

// applyWorkers applies --workers to the settings, the axis and every step with
// a number of its own.
func (p *Plan) applyWorkers(o Overrides) error {
	n := o.Workers
	if n == 0 {
		return nil
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
	if !p.setEverywhere("workers", strconv.Itoa(n)) || !same {
		p.addChange("workers", "%s throughout", units.Count(n, "worker"))
	}
	return nil
}

// setEverywhere gives an axis and [[case]] tables one value, and reports
// whether they had it already.
func (p *Plan) setEverywhere(key, value string) bool {
	same := true
	set := func(values *[]string) {
		same = same && len(*values) == 1 && sameValue(key, (*values)[0], value)
		*values = []string{value}
	}
	for i := range p.Axes {
		if p.Axes[i].Key == key {
			set(&p.Axes[i].Values)
		}
	}
	for _, s := range p.Extra {
		if k := s.find(key); k != nil {
			set(&k.Values)
		}
	}
	if !same {
		p.dropRedundant()
	}
	return same
}

// dropRedundant drops [[case]] tables that have become the same as others, and
// exclusions that match no cell any more.
func (p *Plan) dropRedundant() {
	seen := map[string]bool{}
	for _, cell := range p.matrixCells() {
		seen[caseID(cell)] = true
	}
	p.Extra = slices.DeleteFunc(p.Extra, func(s Selector) bool {
		id := s.String()
		known := seen[id]
		seen[id] = true
		return known
	})
	p.Exclude = slices.DeleteFunc(p.Exclude, func(s Selector) bool { return !p.excludes(s) })
}

// applyFilesystem applies --fs. The first of the preference is not a change,
// but the others are no longer used.
func (p *Plan) applyFilesystem(o Overrides) error {
	if o.Filesystem == "" {
		return nil
	}
	names := image.FilesystemNames()
	i := slices.IndexFunc(names, func(f string) bool { return strings.EqualFold(f, o.Filesystem) })
	if i < 0 {
		return &OverrideError{"fs", strconv.Quote(o.Filesystem), "accepted: " + strings.Join(names, ", ")}
	}
	same := p.Defaults.Filesystems[0] == names[i]
	p.Defaults.Filesystems = []string{names[i]}
	if !p.setEverywhere("filesystem", names[i]) || !same {
		p.addChange("fs", "file system %s", names[i])
	}
	return nil
}

// applyOnly keeps the cases that the selector selects.
func (p *Plan) applyOnly(o Overrides) error {
	if len(o.Only) == 0 {
		return nil
	}
	if o.Only.names("baseline") {
		return &SelectorError{o.Only.String(), "baseline cases accompany other cases and cannot be selected alone"}
	}
	kept, all := 0, 0
	for _, c := range p.Cases() {
		if !c.Baseline {
			all++
			if o.Only.Match(c.Value) {
				kept++
			}
		}
	}
	switch {
	case kept == 0:
		return &SelectorError{o.Only.String(), fmt.Sprintf("no case of the plan matches; there are %s",
			Selector(p.CaseValues()))}
	case kept < all:
		p.keepOnly(o.Only)
		p.addChange("only", "only %s: %d of %d cases", o.Only, kept, all)
	}
	return nil
}

// keepOnly drops values of axes, which is the same as dropping cases: every key
// of a case has one value.
func (p *Plan) keepOnly(only Selector) {
	p.Extra = slices.DeleteFunc(p.Extra, func(s Selector) bool {
		return !slices.ContainsFunc(p.manualCells(), func(manual []KeyValue) bool {
			c, ok := p.makeExtra(s, manual)
			return ok && only.matchAll(c.Value)
		})
	})
	plain := p.makeCase(nil, nil)
	lost := slices.ContainsFunc(only, func(c Choice) bool { // a key that is not an axis has one value everywhere
		return !p.varies(c.Key) && !(Selector{c}).matchAll(plain.Value)
	})
	keep := func(key string, values *[]string) {
		if c := only.find(key); c != nil {
			*values = slices.DeleteFunc(*values, func(v string) bool { return !c.matches(v) })
		}
	}
	for i := range p.Axes {
		keep(p.Axes[i].Key, &p.Axes[i].Values)
		lost = lost || len(p.Axes[i].Values) == 0
	}
	for i := range p.Manual {
		keep(p.Manual[i].Name, &p.Manual[i].Values)
	}
	if lost {
		p.Axes = nil
	}
	p.dropRedundant()
}

// varies reports whether a key is an axis, of the matrix or manual.
func (p *Plan) varies(key string) bool {
	return slices.ContainsFunc(p.Axes, func(a Axis) bool { return a.Key == key }) ||
		slices.ContainsFunc(p.Manual, func(m Manual) bool { return m.Name == key })
}

// applySets lowers the number of sets. Steps that delete a number of sets or of
// the largest files delete the same share of the smaller number.
func (p *Plan) applySets(o Overrides) error {
	if o.Sets == 0 {
		return nil
	}
	type counts struct{ sets, files int }
	before, after := map[string]counts{}, map[string]counts{}
	var changes []string
	for _, f := range p.Files {
		was := counts{f.sets(), f.count()}
		for j := range f.Parts {
			f.Parts[j].Sets = min(f.Parts[j].Sets, o.Sets)
		}
		now := counts{f.sets(), f.count()}
		before[f.Name], after[f.Name] = was, now
		if now.sets != was.sets {
			changes = append(changes, fmt.Sprintf("%s of %s, not %d", units.Count(now.sets, "set"), f.Name, was.sets))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	written := p.Defaults.Files
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Do == "write" {
				written = cmp.Or(s.Files, written)
			}
			was, ok := before[written]
			if s.Do != "delete" || !ok {
				return
			}
			now := after[written]
			if s.LastSets > 0 && s.LastSets < was.sets && now.sets == 1 {
				changes = append(changes,
					fmt.Sprintf("deleting %d of %d sets deletes the only one that is left", s.LastSets,
						was.sets))
			}
			s.LastSets = shrink(s.LastSets, was.sets, now.sets)
			s.Largest = shrink(s.Largest, was.files, now.files)
		})
	}
	p.addChange("sets", "%s", strings.Join(changes, "; "))
	return nil
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

// Here is the folder in --on usb4=here: the cases of the place are measured in
// the run's own folder.
const Here = "here"

// HereName is the name that such a place has in the plan as executed. Cases,
// tables and charts take their labels from it, so that figures of another disk
// never have the name of the place.
func HereName(place string) string { return Here + " (not " + place + ")" }

// HereFor is the place of the published plan for a name of [HereName].
func HereFor(name string) (place string, ok bool) {
	place, ok = strings.CutPrefix(name, Here+" (not ")
	if !ok {
		return "", false
	}
	place, ok = strings.CutSuffix(place, ")")
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
	var quoted []string
	for _, name := range o.Here {
		switch places := p.Places(); {
		case slices.Contains(places, name):
			quoted = append(quoted, strconv.Quote(name))
		case !slices.Contains(places, HereName(name)): // else it is the plan of such a run
			return &OverrideError{"on", name + "=" + Here, "no case of the plan is at that place"}
		}
	}
	if len(quoted) == 0 {
		return nil
	}
	rename := func(name string) string {
		if slices.Contains(o.Here, name) {
			return HereName(name)
		}
		return name
	}
	p.Defaults.Place = rename(p.Defaults.Place)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) { s.Place = rename(s.Place) })
	}
	p.replaceValues("place", rename)
	p.addChange("place", "cases of place %s were measured in the run's own folder", strings.Join(quoted, " and "))
	return nil
}
