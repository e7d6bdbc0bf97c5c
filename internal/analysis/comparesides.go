package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// comparer makes one comparison.
type comparer struct {
	o     CompareOptions
	out   *Comparison
	sides []*compareSide
	// Of the runs, each unlike the others
	names []string
	// Of runs that make the sides
	facts []string
	// Of cases that make the sides
	keys []string
	// Keys that case ids are without: those, and axes that are compared across
	dropped []string
	// What sides may differ in, see [comparer.ask]
	allowed map[string]bool
	// Of plans, by digest and id
	cases map[string]map[string]*plan.Case
}

// compareSide is a side with what was measured of it.
type compareSide struct {
	name  string
	runs  []*result.Result
	cases []sideCase
	// The names of cases in their order, and the first case of each; see
	// [comparer.sideID]
	ids   []string
	first map[string]sideCase
	// By case without the keys that make the sides
	cells map[quantityKey]*compareCell
	order []quantityKey
	// Whether settings differ from the baseline's that were not asked for
	isApart bool
}

// sideCase is a case of a run.
type sideCase struct {
	run *result.Result
	*result.Case
}

// note adds what the reader has to know before any number.
func (c *comparer) note(key string, args ...any) {
	c.out.Notes = append(c.out.Notes, wording.Text(key, args...))
}

// refusal is an error about the runs or the options of a comparison.
type refusal string

func (r refusal) Error() string       { return string(r) }
func (r refusal) Is(other error) bool { return other == ErrCompare }

func refuse(key string, args ...any) error { return refusal(wording.Text(key, args...)) }

func newComparer(runs []*result.Result, o CompareOptions) (*comparer, error) {
	o.Threshold = cmp.Or(o.Threshold, DefaultThreshold)
	if !(o.Threshold > 0 && o.Threshold < 1) {
		return nil, refuse("compare.threshold", o.Threshold)
	}
	c := &comparer{o: o, out: &Comparison{Schema: 1, By: append([]string{}, o.By...),
		Across: append([]string{}, o.Across...), Threshold: o.Threshold,
		Level: level, Alike: []CompareFact{}, Differences: []Difference{},
		Notes: []string{}, Rows: []CompareRow{}, Unpaired: []Unpaired{}, Claims: []ClaimChange{},
		Answers: []CompareAnswer{}}, allowed: map[string]bool{}, cases: map[string]map[string]*plan.Case{}}
	if err := c.chooseSides(runs); err != nil {
		return nil, err
	}
	if err := c.splitRuns(runs); err != nil {
		return nil, err
	}
	isOfFiles := func(s result.Summary) bool { return isPerFile(plan.Quantity(s.Op)) }
	quoted, _ := find(c.sides[0].runs[0].Summaries, isOfFiles)
	c.out.Estimator = cmp.Or(o.Estimator, quoted.Headline, aggregate)
	ops := o.Ops
	isRateStep := func(st result.Step) bool { return isRate(plan.Quantity(st.Do)) }
	isRated := hasCase(runs, func(k result.Case) bool { return slices.ContainsFunc(k.Steps, isRateStep) })
	for _, q := range plan.Quantities {
		if len(o.Ops) == 0 && (isRate(q.Name) || !isRated) {
			ops = append(ops, q.Name)
		}
	}
	c.out.Ops = mapped(ops, func(q plan.Quantity) string { return string(q) })
	for _, s := range c.sides {
		c.collect(s)
	}
	return c, nil
}

// chooseSides reads what makes the sides, and what may differ between them. A
// key that is an axis of some run is no fact of runs.
func (c *comparer) chooseSides(runs []*result.Result) error {
	for _, name := range c.o.By {
		isAxis := func(k result.Case) bool { _, ok := keyOfCase(&k, name); return ok }
		hasValue := func(r *result.Result) bool {
			return slices.ContainsFunc(r.Cases, func(k result.Case) bool { return c.value(sideCase{r, &k}, name) != "" })
		}
		switch {
		case slices.Contains(CompareFacts, name) && !hasCase(runs, isAxis):
			c.facts = append(c.facts, name)
		case slices.ContainsFunc(runs, hasValue):
			c.keys = append(c.keys, name)
		default:
			return refuse("compare.no-key", name)
		}
		c.ask(name)
	}
	c.dropped = slices.Clone(c.keys)
	for _, name := range c.o.Across {
		if !slices.Contains(plan.SettingNames(), name) {
			return refuse("compare.no-setting", name)
		}
		hasSeveral := func(r *result.Result) bool {
			return len(texts(r.Cases, func(k result.Case) string { v, _ := keyOfCase(&k, name); return v })) > 1
		}
		if !slices.ContainsFunc(runs, hasSeveral) {
			c.dropped = append(c.dropped, name)
		}
		c.ask(name)
	}
	return nil
}

func hasCase(runs []*result.Result, is func(result.Case) bool) bool {
	return slices.ContainsFunc(runs, func(r *result.Result) bool { return slices.ContainsFunc(r.Cases, is) })
}

// splitRuns puts runs, or cases of runs, into sides, the baseline first.
func (c *comparer) splitRuns(runs []*result.Result) error {
	// Of a run id, the number of the run that has it
	owner := map[string]int{}
	for i, r := range runs {
		name := cmp.Or(r.Run, fmt.Sprintf("run %d", i+1))
		if i < len(c.o.Names) {
			name = cmp.Or(c.o.Names[i], name)
		}
		own := name
		for n := 2; slices.Contains(c.names, own); n++ {
			own = fmt.Sprintf("%s (%d)", name, n)
		}
		c.names = append(c.names, own)
		// The sessions of a run that is given twice, also inside a pooled result,
		// would count as others, and a session does not differ from itself
		for _, id := range append(texts(r.Runs, func(p result.PooledRun) string { return p.Run }), r.Run) {
			if before, ok := owner[id]; ok && before != i && id != "" {
				return refuse("compare.twice", id, c.names[before], name)
			}
			owner[id] = i
		}
		for k := range r.Cases {
			if name := c.sideName(i, sideCase{r, &r.Cases[k]}); name != "" {
				s := c.findSide(name, r)
				s.cases = append(s.cases, sideCase{r, &r.Cases[k]})
			}
		}
		// A run without cases is a side as well
		if len(c.keys) == 0 {
			c.findSide(c.sideName(i, sideCase{run: r}), r)
		}
	}
	switch {
	case len(c.sides) == 1 && len(c.o.By) > 0:
		return refuse("compare.one-side", c.sides[0].name)
	case len(runs) > 1 && len(c.sides) == 1:
		plans := texts(runs, func(r *result.Result) string { return r.Plan.Name })
		return refuse("compare.one-folder", c.sides[0].name, wording.Count{N: len(runs), Noun: "run"},
			wording.Count{N: len(plans), Noun: "plan"})
	case len(c.sides) < 2:
		return refuse("compare.one-run")
	case c.o.Baseline == "":
		return nil
	}
	base, ok := find(c.sides, func(s *compareSide) bool {
		isOf := func(r *result.Result) bool { return r.Run == c.o.Baseline }
		return s.name == c.o.Baseline || slices.ContainsFunc(s.runs, isOf)
	})
	if !ok {
		have := texts(c.sides, func(s *compareSide) string { return fmt.Sprintf("%q", s.name) })
		return refuse("compare.no-baseline", c.o.Baseline, strings.Join(have, ", "))
	}
	others := slices.DeleteFunc(c.sides, func(s *compareSide) bool { return s == base })
	c.sides = append([]*compareSide{base}, others...)
	return nil
}

// sideName is the side of a case of the run of a number: facts of the run and
// values of keys, or what the run is called; "" without the value of a key.
func (c *comparer) sideName(i int, k sideCase) string {
	switch {
	case len(c.o.By) > 0:
	case i < len(c.o.Sides):
		return c.o.Sides[i]
	default:
		return c.names[i]
	}
	values := mapped(c.facts, func(name string) string { return sideText(name, factsText(k.run, name)) })
	for _, key := range c.keys {
		v := c.value(k, key)
		if v == "" {
			return ""
		}
		values = append(values, sideText(key, v))
	}
	return wording.JoinFacts(values...)
}

// selfEvident are the facts and keys whose values are names of sides as they are.
var selfEvident = []string{"host", "model", "cpu", "disk", "os", "os_version", "os_build", "kernel", "tool", "engine",
	"backend", "filesystem", "plan", "place", "format", "encryption"}

// sideText is a value of a fact or key as the name of a side: "2 workers",
// "unencrypted", "sync none".
func sideText(name, value string) string {
	n, err := strconv.Atoi(value)
	switch {
	case name == "scale" && value == unscaled:
		return wording.Text("side.unscaled")
	case name == "workers" && err == nil:
		return wording.Count{N: n, Noun: "worker"}.String()
	case name == "workers", name == "scale":
		return value
	case slices.Contains(selfEvident, name):
		return settingText(name, value)
	}
	return strings.ReplaceAll(name, "_", " ") + " " + strings.TrimPrefix(value, name+" ") // "owners unknown"
}

// at is a side in a sentence: "on macOS 26.4", "with 2 workers", "in runs/before".
func (c *comparer) at(name string) string {
	isOther := func(name string) bool {
		f, _ := find(compareFacts, func(f compareFact) bool { return f.name == name })
		return f.kind != "machine" && f.kind != "system"
	}
	switch {
	case len(c.o.By) == 0:
		return "in " + name
	case slices.ContainsFunc(c.o.By, isOther):
		return "with " + name
	}
	return "on " + name
}

// findSide finds a side by its name, or makes it, and adds a run to it.
func (c *comparer) findSide(name string, r *result.Result) *compareSide {
	s, ok := find(c.sides, func(s *compareSide) bool { return s.name == name })
	if !ok {
		s = &compareSide{name: name, cells: map[quantityKey]*compareCell{}, first: map[string]sideCase{}}
		c.sides = append(c.sides, s)
	}
	if !slices.Contains(s.runs, r) {
		s.runs = append(s.runs, r)
	}
	return s
}

// compareCell is one quantity of one case on one side: a value a round, the
// rounds in their sessions.
type compareCell struct {
	key quantityKey
	// The first case, and the step, that it was measured in
	of     sideCase
	step   stepKey
	rounds []compareRound
	n      int
	// Of its runs, the most; see [stats.Looks]
	looks int
	work  work
	// Why its rounds give no value, or do not belong together
	weak string
}

// compareRound is one value.
type compareRound struct {
	session string
	// The run and its round
	round string
	v     float64
}

// collect reads the cells of a side.
func (c *comparer) collect(s *compareSide) {
	for _, k := range s.cases {
		id := c.sideID(k)
		if _, ok := s.first[id]; !ok {
			s.first[id], s.ids = k, append(s.ids, id)
		}
		sub, sessions := indexCase(k.Case), sessionNames(k.run)
		for _, key := range sub.order {
			for _, q := range quantitiesOf(key, k.Case) {
				if !slices.Contains(c.out.Ops, string(q)) {
					continue
				}
				ck := quantityKey{id, key.label(), key.cycle, q}
				x := s.cells[ck]
				if x == nil {
					x = &compareCell{key: ck, of: k, step: key}
					s.cells[ck] = x
					s.order = append(s.order, ck)
				}
				// Runs of one side are the same work, whatever the sides may differ in
				if why := c.apart(x.of, k, key, nil); why != "" {
					x.weak = wording.Text("compare.mixed", c.at(s.name), why)
				}
				x.addRun(c.at(s.name), k.run, cell{sub, key}, sessions, c.out.Estimator)
			}
		}
	}
}

// EveryCase is the id of a row for a case that has only the keys that make the
// sides.
const EveryCase = "every case"

// caseID names a case without the keys that make the sides.
func (c *comparer) caseID(k *result.Case) string {
	if len(c.dropped) == 0 {
		return k.ID
	}
	var parts []string
	for _, kv := range k.Keys {
		if !slices.Contains(c.dropped, kv[0]) {
			parts = append(parts, kv[0]+"="+kv[1])
		}
	}
	return cmp.Or(strings.Join(parts, ","), EveryCase)
}

// addRun adds the rounds of one run of a side, which is at in a sentence.
func (x *compareCell) addRun(at string, r *result.Result, of cell, sessions map[int]string, est string) {
	x.looks = max(x.looks, replicated(r).looks)
	rounds, steps := of.rounds()
	for _, round := range rounds {
		own := steps[round]
		w := workOf(x.key.op, of.sub.c, own)
		if x.work == nil {
			x.work = w
		}
		if why := x.work.difference(w, "in one round", "in another", nil); why != "" {
			x.weak = wording.Text("compare.mixed", at, why)
		}
		value := of.sub.stepsValue(x.key.op, est, own, nil)
		if value.err != nil {
			x.weak = wording.Text("compare.round", r.Run, round, value.err)
			continue
		}
		x.n += value.n
		name := fmt.Sprintf("%s\x00%d", r.Run, round)
		x.rounds = append(x.rounds, compareRound{sessions[own[0].Session], name, value.v})
	}
}

// work is what two cells have to agree in to be the same work, as text: the key
// of the sentence about it, and the value.
type work [][2]string

func workOf(q plan.Quantity, k *result.Case, steps []*result.Step) work {
	st := steps[0]
	achieved := func(a *result.Achieved) string {
		if a == nil {
			a = &result.Achieved{}
		}
		return cmp.Or(a.Achieved, "unknown")
	}
	switch {
	case isPerFile(q) || isFileTime(q) || q == "copy_time":
		// The set of files by its sizes: "10 × 2 MB, 10 × 4 MB"
		count := map[int64]int{}
		for _, st := range steps {
			for i := range st.Samples {
				count[st.Samples[i].Bytes]++
			}
			if len(st.Samples) == 0 && st.Span != nil {
				count[st.Span.Bytes]++
			}
		}
		sizes := mapped(sortedKeys(count), func(size int64) string {
			return fmt.Sprintf("%d × %s", count[size], wording.Size(size))
		})
		return work{{"sizes", cmp.Or(strings.Join(sizes, ", "), "none")},
			{"workers", wording.Count{N: workers(st), Noun: "worker"}.String()},
			{"sync", achieved(st.Sync)}, {"cache", achieved(st.Cache)}}
	case st.Stream != nil:
		return work{{"sizes", wording.Text("input", wording.Size(st.Stream.In), st.Stream.Codec)},
			{"workers", wording.Count{N: st.Stream.Threads, Noun: "worker"}.String()}}
	}
	return work{{"size", wording.Size(k.Target.Size).String()}, {"live", wording.Size(st.Live).String()}}
}

// difference is why two cells are not the same work except for what was asked
// for, "" if they are; left and right are where they were measured.
func (a work) difference(b work, left, right string, allowed map[string]bool) string {
	for i, x := range a {
		if y := b[i]; y != x && !allowed[x[0]] {
			return wording.Text("work."+x[0], x[1], left, y[1], right)
		}
	}
	return ""
}

func (c *comparer) addUnpaired(k quantityKey, sideName, why string, undecided bool) {
	c.out.Undecided = c.out.Undecided || undecided
	c.out.Unpaired = append(c.out.Unpaired, Unpaired{k.id, k.phase, k.cycle, string(k.op), sideName, why, undecided})
}

// pairCells compares every cell of a side with the baseline's.
func (c *comparer) pairCells(s *compareSide) {
	base := c.sides[0]
	for _, k := range base.order {
		a, b := base.cells[k], s.cells[k]
		why := wording.Text("compare.not-measured", c.at(s.name))
		if b != nil {
			why = cmp.Or(a.weak, b.weak, c.apart(a.of, b.of, a.step, c.allowed),
				a.work.difference(b.work, c.at(base.name), c.at(s.name), c.allowed))
		}
		if why != "" {
			c.addUnpaired(k, s.name, why, true)
		} else {
			c.addRow(a, b, s.name)
		}
	}
	for _, k := range s.order {
		if base.cells[k] == nil {
			c.addUnpaired(k, s.name, wording.Text("compare.not-measured", c.at(base.name)), true)
		}
	}
	// Cases that were not measured to the end
	for _, side := range []*compareSide{base, s} {
		for _, k := range side.cases {
			u := Unpaired{Case: c.caseID(k.Case), Side: side.name, Reason: wording.Text("compare.case-was",
				cmp.Or(k.Status, "not finished"), k.run.Run, cmp.Or(k.Reason, "no reason given"))}
			if k.Status != result.Done && !slices.Contains(c.out.Unpaired, u) {
				c.out.Unpaired = append(c.out.Unpaired, u)
			}
		}
	}
}

// sideFacts is a side with what is known of its runs; notes are about those
// that are unlike each other.
func (c *comparer) sideFacts(s *compareSide) CompareSide {
	out := CompareSide{Name: s.name, Runs: []string{}, Facts: []CompareFact{}}
	var sessions []string
	for _, r := range s.runs {
		out.Runs = append(out.Runs, r.Run)
		out.Rounds += r.Rounds
		sessions = slices.AppendSeq(sessions, maps.Values(sessionNames(r)))
		if r.Status == result.Unfinished {
			c.note("note.unfinished", r.Run)
		}
	}
	out.Sessions = len(texts(sessions, strings.Clone))
	for _, f := range compareFacts {
		values := texts(slices.Concat(mapped(s.runs, f.of)...), strings.Clone)
		if len(values) > 0 {
			out.Facts = append(out.Facts, CompareFact{f.name, values})
		}
		if len(s.runs) > 1 && len(values) > 1 && f.single {
			c.note("note.unlike", c.at(s.name), f.name, strings.Join(values, "; "))
		}
	}
	return out
}

// collectFacts collects what is known of the sides, and in what they differ.
func (c *comparer) collectFacts() {
	c.out.Sides = mapped(c.sides, c.sideFacts)
	c.addSettings()
	apart, kinds := mapped(c.out.Differences, func(d Difference) string { return d.Fact }), []string{}
	switch {
	case len(apart) > 0:
		kinds = append(kinds, "protocol")
	case c.differ("digest"):
		c.note("note.same-settings")
	}
	isOtherSystem := c.differ("os")
	// Apple's tools come with the system
	engines := texts(c.out.Sides, func(s CompareSide) string {
		return strings.Join(texts(s.fact("engine"), engineKind), ",")
	})
	isSameEngine := isOtherSystem && len(engines) < 2
	for _, f := range compareFacts {
		// The version and the build are in "os", and the kernel goes with it
		if f.name == "os_version" || f.name == "os_build" || f.name == "kernel" && isOtherSystem || !c.differ(f.name) ||
			slices.Contains(apart, f.name) {
			continue
		}
		values := mapped(c.out.Sides, func(s CompareSide) []string { return s.fact(f.name) })
		c.out.Differences = append(c.out.Differences, Difference{Fact: f.name, Kind: f.kind, Values: values,
			Cases: []string{}})
		if f.kind != "repetition" && !(f.name == "engine" && isSameEngine) {
			apart, kinds = append(apart, f.name), appendUnique(kinds, f.kind)
		}
	}
	// What a reader has to know of any number: where, under what, by which tool
	// and plan
	for _, name := range []string{"model", "cpu", "os", "engine", "plan", "scale"} {
		isSame := !c.differ(name) && !(name == "plan" && c.differ("digest"))
		if values := c.out.Sides[0].fact(name); len(values) == 1 && values[0] != unscaled && isSame {
			c.out.Alike = append(c.out.Alike, CompareFact{name, values})
		}
	}
	// No single difference explains a change
	if len(kinds) > 1 {
		c.note("note.differ", strings.Join(apart, ", "))
	}
	c.noteWarnings()
}

func (s CompareSide) fact(name string) []string {
	f, _ := find(s.Facts, func(f CompareFact) bool { return f.Name == name })
	return append([]string{}, f.Values...)
}

// differ reports whether some side has not the same values of a fact as the
// baseline, in any order.
func (c *comparer) differ(fact string) bool {
	values := mapped(c.out.Sides, func(s CompareSide) []string { return slices.Sorted(slices.Values(s.fact(fact))) })
	return slices.ContainsFunc(values, func(v []string) bool { return !slices.Equal(v, values[0]) })
}

// noteWarnings adds to the notes what the runs of one side were warned of and
// those of another were not, or not in the same words: a machine that was busy
// on one day looks like a change. The first text of each kind represents the
// side.
func (c *comparer) noteWarnings() {
	isEverywhere := func(w result.Warning) bool {
		return !slices.ContainsFunc(c.sides, func(s *compareSide) bool {
			return slices.ContainsFunc(s.runs, func(r *result.Result) bool { return !slices.Contains(r.Warnings, w) })
		})
	}
	for _, s := range c.sides {
		kinds := map[string]bool{}
		for _, r := range s.runs {
			for _, w := range r.Warnings {
				if !kinds[w.Kind] && !isEverywhere(w) {
					kinds[w.Kind] = true
					c.note("note.warned", c.at(s.name), w.Text)
				}
			}
		}
	}
}
