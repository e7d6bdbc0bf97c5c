package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
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
	visit(reflect.ValueOf(&q).Elem(), func(part any) bool { // gives q slices of its own
		if v := reflect.ValueOf(part).Elem(); v.Kind() == reflect.Slice && !v.IsNil() {
			own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(own, v)
			v.Set(own)
		}
		return true
	})
	for _, apply := range []func(*Plan, Overrides) error{
		(*Plan).applyOnly, (*Plan).applyHere, (*Plan).applyRun, (*Plan).applyWorkers, (*Plan).applyFilesystem,
		(*Plan).applySets, (*Plan).applyScale,
	} {
		if err := apply(&q, o); err != nil {
			return nil, nil, err
		}
	}
	if len(q.Changes) == 0 {
		return &q, nil, nil
	}
	c := &checker{reader: newReader(p.Name, nil), p: &q, once: map[string]bool{}}
	c.checkCases()
	if bad := c.problems().Errors(); len(bad) > 0 {
		return nil, nil, &OverrideError{Flag: q.Changes[len(q.Changes)-1].Kind, Cause: bad[0].Message}
	}
	if size := len(q.Canonical()); size > MaxSize { // a run folder could not be read
		return nil, nil, &OverrideError{Flag: q.Changes[0].Kind, Cause: tooLarge(int64(size)).Error()}
	}
	return &q, q.Changes, nil
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

// addChange records how the executed plan deviates; kind is one of those of
// [Change].
func (p *Plan) addChange(kind, format string, args ...any) {
	p.Changes = append(p.Changes, Change{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// applyRun applies the flags about rounds, preconditioning and the seed. TOML
// has no unsigned integers, so that a seed ends at 1<<63 - 1.
func (p *Plan) applyRun(o Overrides) error {
	if o.Seed != nil {
		if *o.Seed > math.MaxInt64 {
			return &OverrideError{"seed", strconv.FormatUint(*o.Seed, 10), "a seed is at most 9223372036854775807"}
		}
		p.Run.Seed = *o.Seed
	}
	before, run := p.Run, &p.Run
	if o.Rounds > 0 {
		run.Auto, run.Rounds, run.MaxRounds, run.MaxTime, run.MaxWritten = false, o.Rounds, 0, 0, 0
	}
	run.Precision = cmp.Or(o.Precision, run.Precision)
	switch {
	case o.Auto || run.Auto:
		run.MaxRounds = cmp.Or(o.MaxRounds, run.MaxRounds)
		run.MaxTime = cmp.Or(o.MaxTime, run.MaxTime)
		run.MaxWritten = cmp.Or(o.MaxWritten, run.MaxWritten)
		run.setAuto()
	case o.MaxRounds > 0 || o.MaxTime > 0 || o.MaxWritten > 0:
		return &OverrideError{"max-rounds, --max-time or --max-written", "", fmt.Sprintf(
			"they are limits of --rounds auto, and the plan has %s; add --rounds auto", run.describeRounds())}
	}
	if was, now := before.describeRounds(), run.describeRounds(); was != now {
		if !before.Auto && !run.Auto {
			was = strconv.Itoa(before.Rounds)
		}
		p.addChange("rounds", "%s, not %s", now, was)
	}
	switch o.Precondition {
	case "", cmp.Or(run.Precondition, "none"):
	case Steady:
		run.setSteady()
		p.addChange("precondition", "the disk is written to until its rate settles")
	case "none":
		run.Precondition, run.SteadyWindow, run.SteadyLimit, run.SteadyFile = "", 0, 0, 0
		run.SteadyTime, run.SteadyWritten = 0, 0
		p.addChange("precondition", "the disk is not written to until its rate settles")
	default:
		return &OverrideError{"precondition", o.Precondition, "want none or steady"}
	}
	return nil
}

// describeRounds is the number of rounds in words, with all limits of rounds =
// "auto". Two options with the same text run the same rounds.
func (o RunOptions) describeRounds() string {
	text := o.RoundsText()
	if !o.Auto {
		return text
	}
	text += fmt.Sprintf(", until every interval is within ± %s", o.Precision)
	if o.MaxTime > 0 {
		text += fmt.Sprintf(", for at most %s", o.MaxTime)
	}
	if o.MaxWritten > 0 {
		text += fmt.Sprintf(", writing at most %s", o.MaxWritten)
	}
	return text
}

// applyWorkers applies --workers to the settings, the cases and every step with
// a number of its own.
func (p *Plan) applyWorkers(o Overrides) error {
	if o.Workers == 0 {
		return nil
	}
	same := p.setEverywhere("workers", strconv.Itoa(o.Workers))
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Workers > 0 {
				same, s.Workers = same && s.Workers == o.Workers, o.Workers
			}
		})
	}
	if !same {
		p.addChange("workers", "%s throughout", units.Count(o.Workers, "worker"))
	}
	return nil
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
	if !p.setEverywhere("filesystem", names[i]) {
		p.addChange("fs", "file system %s", names[i])
	}
	return nil
}

// setEverywhere gives a setting one value in all cases, and reports whether all
// that have the setting had it already.
func (p *Plan) setEverywhere(key, value string) bool {
	s, same, named := findSetting(key), true, false
	for _, c := range p.Cases() {
		have := s.get(&c.Settings)
		same = same && (have == "" || have == value)
		named = named || slices.ContainsFunc(c.Keys, func(kv KeyValue) bool { return kv.Key == key })
	}
	s.set(&p.Defaults, value)
	if named && !same {
		p.listCases(func(c *Case) bool {
			for i := range c.Keys {
				if c.Keys[i].Key == key {
					c.Keys[i].Value = value
				}
			}
			return true
		})
	}
	return same
}

// listCases replaces the matrix by [[case]] tables: one for each case that keep
// accepts, with the keys that it leaves.
func (p *Plan) listCases(keep func(c *Case) bool) {
	seen, cases := map[string]bool{}, p.Cases()
	p.Axes, p.Exclude, p.Extra = nil, nil, nil
	for _, c := range cases {
		if c.Baseline || !keep(&c) || seen[caseID(c.Keys)] {
			continue
		}
		seen[caseID(c.Keys)] = true
		var s Selector
		for _, kv := range c.Keys {
			s = append(s, Choice{kv.Key, []string{kv.Value}})
		}
		p.Extra = append(p.Extra, s)
	}
}

// applyOnly keeps the cases that the selector selects.
func (p *Plan) applyOnly(o Overrides) error {
	if len(o.Only) == 0 {
		return nil
	}
	if o.Only.Names("baseline") {
		return &OverrideError{"only", o.Only.String(),
			"baseline cases accompany other cases and cannot be selected alone"}
	}
	all := p.Cases()
	all = slices.DeleteFunc(all, func(c Case) bool { return c.Baseline })
	kept := slices.DeleteFunc(slices.Clone(all), func(c Case) bool { return !o.Only.Match(c.Value) })
	switch {
	case len(kept) == 0:
		return &OverrideError{"only", o.Only.String(), "no case of the plan matches; dmgbench plans show lists them"}
	case len(kept) < len(all):
		p.addChange("only", "only %s: %d of %d cases", o.Only, len(kept), len(all))
		p.listCases(func(c *Case) bool { return o.Only.Match(c.Value) })
		for i := range p.Manual {
			if c := o.Only.Find(p.Manual[i].Name); c != nil {
				p.Manual[i].Values = slices.DeleteFunc(p.Manual[i].Values, func(v string) bool { return !c.Matches(v) })
			}
		}
	}
	return nil
}

// applySets lowers the number of sets. Steps that delete a number of sets or of
// the largest files delete the same share of the smaller number.
func (p *Plan) applySets(o Overrides) error {
	if o.Sets == 0 {
		return nil
	}
	type counts struct{ sets, files, setsBefore, filesBefore int }
	changed := map[string]counts{}
	var changes []string
	for _, f := range p.Files {
		var n counts
		n.setsBefore, n.filesBefore = f.total()
		for j := range f.Parts {
			f.Parts[j].Sets = min(f.Parts[j].Sets, o.Sets)
		}
		n.sets, n.files = f.total()
		changed[f.Name] = n
		if n.sets != n.setsBefore {
			changes = append(changes, fmt.Sprintf("%s of %s, not %d", units.Count(n.sets, "set"), f.Name, n.setsBefore))
		}
	}
	written := p.Defaults.Files
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Do == "write" {
				written = cmp.Or(s.Files, written)
			}
			if n, ok := changed[written]; ok && s.Do == "delete" {
				if s.LastSets > 0 && s.LastSets < n.setsBefore && n.sets == 1 && len(changes) > 0 {
					changes = append(changes, fmt.Sprintf("deleting %d of %d sets deletes the only one that is left",
						s.LastSets, n.setsBefore))
				}
				s.LastSets = shrink(s.LastSets, n.setsBefore, n.sets)
				s.Largest = shrink(s.Largest, n.filesBefore, n.files)
			}
		})
	}
	if len(changes) > 0 {
		p.addChange("sets", "%s", strings.Join(changes, "; "))
	}
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

const (
	// minFile is the smallest file that scaling makes: the time of a smaller
	// one is mostly that of system calls.
	minFile = units.Bytes(64) << 10
	// fileStep is the smallest difference between scaled sizes of files that
	// were different.
	fileStep = units.Bytes(4) << 10
	mib      = units.Bytes(1) << 20
)

// sizeMap maps published sizes to scaled ones.
type sizeMap map[units.Bytes]units.Bytes

// applyScale multiplies file and image sizes, and of trees the number of files.
// Sizes that were different stay different; images stay large enough for their
// file system and their files.
func (p *Plan) applyScale(o Overrides) error {
	if o.Scale == 0 || o.Scale == 1 {
		return nil
	}
	factor := strconv.FormatFloat(o.Scale, 'g', -1, 64)
	if !(o.Scale > 0 && o.Scale <= 1000) {
		return &OverrideError{"scale", factor, "want more than 0 and at most 1000"}
	}
	var sizes []units.Bytes
	p.eachFileSize(func(n *units.Bytes) { sizes = append(sizes, *n) })
	files := scaleSizes(sizes, o.Scale, 1, fileStep, func(units.Bytes) units.Bytes { return minFile })
	for i := range p.Inputs {
		if in := &p.Inputs[i]; files.of(in.Size) != in.Size {
			in.PublishedSize = cmp.Or(in.PublishedSize, in.Size)
		}
	}
	p.eachFileSize(func(n *units.Bytes) { *n = files.of(*n) })
	p.replaceValues("file_size", files.text)
	trees := p.scaleTrees(o.Scale)
	images := p.scaleImages(o.Scale)
	p.Defaults.Size = images.of(p.Defaults.Size)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) { s.Size = images.of(s.Size) })
	}
	p.replaceValues("size", images.text)
	limited, note := 0, ""
	for from, to := range files {
		if float64(to) > math.Round(float64(from)*o.Scale) {
			limited++
			note = fmt.Sprintf(" (%d of %s stop at %s)", limited, units.Count(len(files), "file size"), minFile)
		}
	}
	p.addChange("scale", "file and image sizes times %s%s%s", factor, note, trees)
	return nil
}

// of is the scaled size; a size that is not scaled stays.
func (m sizeMap) of(n units.Bytes) units.Bytes {
	if to, ok := m[n]; ok {
		return to
	}
	return n
}

// text is of for sizes written as text; other texts stay.
func (m sizeMap) text(value string) string {
	if n, err := units.ParseBytes(value); err == nil {
		return m.of(n).String()
	}
	return value
}

// eachFileSize visits every size that files have.
func (p *Plan) eachFileSize(change func(*units.Bytes)) {
	visit(reflect.ValueOf(&p.Files).Elem(), func(part any) bool {
		if size, ok := part.(*units.Bytes); ok {
			change(size)
		}
		return true
	})
	for i := range p.Inputs {
		change(&p.Inputs[i].Size)
	}
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Do == "random" {
				change(&s.FileSize)
				change(&s.Amount)
			}
		})
	}
}

// scaleSizes maps sizes in rising order to multiples of unit: each is at least
// least(size), and apart from the one below it.
func scaleSizes(sizes []units.Bytes, factor float64, unit, apart units.Bytes,
	least func(units.Bytes) units.Bytes) sizeMap {
	out, next := sizeMap{}, units.Bytes(0)
	for _, n := range slices.Compact(slices.Sorted(slices.Values(sizes))) {
		if n > 0 {
			to := units.Bytes(math.Round(min(float64(n)*factor, 1<<60)))
			out[n] = units.RoundUp(max(to, least(n), next), unit)
			next = out[n] + apart
		}
	}
	return out
}

// scaleImages maps nominal sizes of images: scaled, in whole MiB, with room for
// the file system (to be useful, and where the case damages it to be repaired)
// and for the most live bytes of any case plus a tenth.
func (p *Plan) scaleImages(factor float64) sizeMap {
	need := map[units.Bytes]units.Bytes{p.Defaults.Size: 0}
	for _, c := range p.Cases() {
		if c.Settings.Target == "directory" {
			continue
		}
		damaged := false
		walk(c.Steps, func(s *Step) { damaged = damaged || s.Do == "damage" && s.Kind == "volume" })
		least := units.Bytes(float64(Estimate(p, c).LivePeak) * 1.1 / min(float64(p.Run.FitsIn), 1))
		for _, name := range c.Settings.Filesystems {
			f := image.FilesystemNamed(name)
			least = max(least, units.Bytes(f.UsefulSize))
			if damaged {
				least = max(least, units.Bytes(f.RepairableSize))
			}
		}
		need[c.Settings.Size] = max(need[c.Settings.Size], least)
		walk(c.Steps, func(s *Step) { need[s.Size] = max(need[s.Size], least) }) // 0 without a resize: not scaled
	}
	return scaleSizes(slices.Collect(maps.Keys(need)), factor, mib, mib,
		func(n units.Bytes) units.Bytes { return need[n] })
}

// replaceValues changes the values of a key wherever axes, selectors, fits,
// claims and tables of the plan name them.
func (p *Plan) replaceValues(key string, change func(string) string) {
	all := func(values []string) {
		for i := range values {
			values[i] = change(values[i])
		}
	}
	fits := map[string]bool{} // along the key
	for _, f := range p.Fits {
		fits[f.Name] = f.Along == key
	}
	visit(reflect.ValueOf(p).Elem(), func(part any) bool {
		switch x := part.(type) {
		case *Choice:
			if x.Key == key {
				all(x.Values)
			}
		case *Fit:
			if x.Along == key {
				all(x.Points)
				all(x.Predict)
			}
		case *Assert:
			if x.Along == key || fits[x.Fit] {
				all(x.At)
			}
		case *TableLine:
			if c := x.Where.Find(key); c != nil {
				before := slices.Clone(c.Values)
				all(c.Values)
				x.retitle(*c, before)
			}
			return false
		}
		return true
	})
}

// visit calls f with pointers to v and all that is inside of it, except behind
// pointers; it does not descend into those for which f returns false.
func visit(v reflect.Value, f func(part any) bool) {
	if !v.CanSet() || !f(v.Addr().Interface()) {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			visit(v.Field(i), f)
		}
	}
}

var sizeInTitle = regexp.MustCompile(`\d ?[kKMGT]i?B\b`)

// retitle adds to a title the size or place that is run, where the plan as
// written has another. A line without a title has its selection.
func (l *TableLine) retitle(now Choice, before []string) {
	switch what := map[string]string{"file_size": "files", "size": "images"}[now.Key]; {
	case l.Title == "" || slices.Equal(now.Values, before):
	case now.Key == "place":
		l.Title += " (here, not " + strings.Join(before, " or ") + ")"
	case sizeInTitle.MatchString(l.Title):
		l.Title += " (here " + what + " of " + strings.Join(now.Values, " or ") + ")"
	}
}
