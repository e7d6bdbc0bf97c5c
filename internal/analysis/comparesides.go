package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
)

// compareSide is a side with what was measured of it.
type compareSide struct {
	name string
	runs []*result.Result
	// Of the runs, against taking one twice
	ids   map[string]bool
	cells map[cellKey]*compareCell
	order []cellKey
	// Cases without values
	lost []Unpaired
}

// cellKey pairs cells of two sides.
type cellKey struct {
	// Of the case, without the keys that make the sides
	id    string
	phase string
	cycle int
	op    plan.Quantity
}

// refuse is an error about the runs or the options of a comparison.
func refuse(key string, args ...any) error {
	return fmt.Errorf("%s: %w", wording.Text(key, args...), ErrCompare)
}

func newComparer(runs []*result.Result, o CompareOptions) (*comparer, error) {
	o.Threshold = cmp.Or(o.Threshold, DefaultThreshold)
	switch {
	case len(runs) == 0:
		return nil, refuse("compare.no-run")
	case !(o.Threshold > 0 && o.Threshold < 1):
		return nil, refuse("compare.threshold", o.Threshold)
	}
	c := &comparer{o: o, out: &Comparison{Schema: 1, By: append([]string{}, o.By...), Threshold: o.Threshold,
		Level: level, Ops: []string{}, Sides: []CompareSide{}, Alike: []CompareFact{}, Differences: []Difference{},
		Notes: []string{}, Rows: []CompareRow{}, Unpaired: []Unpaired{}, Claims: []ClaimChange{},
		Answers: []CompareAnswer{}}}
	for _, name := range o.By {
		switch {
		case isCompareFact(name):
			c.facts = append(c.facts, name)
		case hasKey(runs, name):
			c.keys = append(c.keys, name)
		default:
			return nil, refuse("compare.no-key", name)
		}
	}
	if err := c.splitRuns(runs); err != nil {
		return nil, err
	}
	if err := c.putBaselineFirst(); err != nil {
		return nil, err
	}
	c.out.Estimator = cmp.Or(o.Estimator, headlineOf(c.sides[0].runs))
	for _, op := range c.ops() {
		c.out.Ops = append(c.out.Ops, string(op))
	}
	for _, s := range c.sides {
		c.collect(s)
	}
	return c, nil
}

// hasKey reports whether a case of any run has the key.
func hasKey(runs []*result.Result, key string) bool {
	return slices.ContainsFunc(runs, func(r *result.Result) bool {
		return slices.ContainsFunc(r.Cases, func(c result.Case) bool { return caseValue(&c, key) != "" })
	})
}

// caseValue is the value of a key of a case: its own, or its target's; ""
// without one.
func caseValue(c *result.Case, key string) string {
	for _, kv := range c.Keys {
		if kv[0] == key {
			return kv[1]
		}
	}
	t := c.Target
	return map[string]string{"place": t.Place, "format": t.Format, "encryption": t.Encryption,
		"filesystem": t.Filesystem, "backend": t.Backend, "target": t.Kind}[key]
}

// splitRuns puts runs, or cases of runs, into sides.
func (c *comparer) splitRuns(runs []*result.Result) error {
	if err := c.refuseTwins(runs); err != nil {
		return err
	}
	for i, r := range runs {
		names := []string{c.runName(i, r)}
		switch {
		case len(c.keys) > 0:
			names = nil
			for k := range r.Cases {
				names = appendUnique(names, c.sideOf(&r.Cases[k], r))
			}
		case len(c.facts) > 0:
			names[0] = factsText(r, c.facts...)
		case i < len(c.o.Sides):
			names[0] = c.o.Sides[i]
		}
		for _, name := range names {
			s := c.findSide(name, len(c.o.By) == 0 && len(c.o.Sides) == 0)
			s.ids[r.Run] = true
			s.runs = append(s.runs, r)
		}
	}
	switch {
	case len(c.sides) == 1 && len(c.o.By) > 0:
		return refuse("compare.one-side", c.sides[0].name)
	case len(c.sides) < 2:
		return refuse("compare.one-run")
	}
	return nil
}

// refuseTwins refuses a run that is given twice, also inside a pooled result:
// its sessions would count as others, and a session does not differ from
// itself.
func (c *comparer) refuseTwins(runs []*result.Result) error {
	// Names by run id
	seen := map[string]string{}
	for i, r := range runs {
		name := c.runName(i, r)
		ids := []string{r.Run}
		for _, p := range r.Runs {
			ids = append(ids, p.Run)
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if before, there := seen[id]; there && id != "" {
				return refuse("compare.twice", id, before, name)
			}
			seen[id] = name
		}
	}
	return nil
}

func (c *comparer) runName(i int, r *result.Result) string {
	if i < len(c.o.Names) && c.o.Names[i] != "" {
		return c.o.Names[i]
	}
	return cmp.Or(r.Run, fmt.Sprintf("run %d", i+1))
}

// sideOf is the name of the side of a case, made of facts of its run and the
// values of the keys; "" without one of these.
func (c *comparer) sideOf(k *result.Case, r *result.Result) string {
	var parts []string
	if len(c.facts) > 0 {
		parts = append(parts, factsText(r, c.facts...))
	}
	for _, key := range c.keys {
		v := caseValue(k, key)
		if v == "" {
			return ""
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, ", ")
}

// findSide finds a side by its name, or makes it; with distinct it makes
// another of that name.
func (c *comparer) findSide(name string, distinct bool) *compareSide {
	same := 0
	for _, s := range c.sides {
		if s.name == name {
			if !distinct {
				return s
			}
			same++
			name = fmt.Sprintf("%s (%d)", strings.TrimSuffix(name, fmt.Sprintf(" (%d)", same)), same+1)
		}
	}
	s := &compareSide{name: name, ids: map[string]bool{}, cells: map[cellKey]*compareCell{}}
	c.sides = append(c.sides, s)
	return s
}

// putBaselineFirst moves the side that all others are compared with to the
// front.
func (c *comparer) putBaselineFirst() error {
	want := c.o.Baseline
	if want == "" {
		return nil
	}
	i := slices.IndexFunc(c.sides, func(s *compareSide) bool { return s.name == want })
	if i < 0 {
		i = slices.IndexFunc(c.sides, func(s *compareSide) bool { return s.ids[want] })
	}
	if i < 0 {
		var have []string
		for _, s := range c.sides {
			have = append(have, fmt.Sprintf("%q", s.name))
		}
		return refuse("compare.no-baseline", want, strings.Join(have, ", "))
	}
	s := c.sides[i]
	c.sides = slices.Insert(slices.Delete(c.sides, i, i+1), 0, s)
	return nil
}

// headlineOf is the estimator that the runs quote.
func headlineOf(runs []*result.Result) string {
	for _, r := range runs {
		for _, s := range r.Summaries {
			if isPerFile(plan.Quantity(s.Op)) && s.Headline != "" {
				return s.Headline
			}
		}
	}
	return aggregate
}

// ops are the quantities to compare.
func (c *comparer) ops() []plan.Quantity {
	if len(c.o.Ops) > 0 {
		return c.o.Ops
	}
	var rates, all []plan.Quantity
	for _, q := range plan.Quantities {
		all = append(all, q.Name)
		if isRate(q.Name) {
			rates = append(rates, q.Name)
		}
	}
	isRated := func(st result.Step) bool { return slices.Contains(rates, plan.Quantity(st.Do)) }
	hasRate := func(k result.Case) bool { return slices.ContainsFunc(k.Steps, isRated) }
	for _, s := range c.sides {
		if slices.ContainsFunc(s.runs, func(r *result.Result) bool { return slices.ContainsFunc(r.Cases, hasRate) }) {
			return rates
		}
	}
	return all
}

// compareCell is one quantity of one case on one side: a value a round, the
// rounds in their sessions.
type compareCell struct {
	key    cellKey
	rounds []compareRound
	n      int
	// Of its runs, the most; see [stats.Looks]
	looks int
	work  work
	// Why rounds of this side do not belong together
	mixed string
	// Why there is no value
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
	for _, r := range s.runs {
		sessions := sessionNames(r)
		for i := range r.Cases {
			k := &r.Cases[i]
			if len(c.keys) > 0 && c.sideOf(k, r) != s.name {
				continue
			}
			id := c.caseID(k)
			if k.Status != result.Done {
				s.lost = append(s.lost, Unpaired{Case: id, Side: s.name, Reason: wording.Text("compare.case-was",
					cmp.Or(k.Status, "not finished"), r.Run, cmp.Or(k.Reason, "no reason given"))})
			}
			c.collectCase(s, r, k, id, sessions)
		}
	}
	for _, cell := range s.cells {
		if cell.weak != "" {
			cell.rounds = nil
		}
	}
}

// EveryCase is the id of a row for a case that has only the keys that make the
// sides.
const EveryCase = "every case"

// caseID names a case without the keys that make the sides.
func (c *comparer) caseID(k *result.Case) string {
	if len(c.keys) == 0 {
		return k.ID
	}
	var parts []string
	for _, kv := range k.Keys {
		if !slices.Contains(c.keys, kv[0]) {
			parts = append(parts, kv[0]+"="+kv[1])
		}
	}
	return cmp.Or(strings.Join(parts, ","), EveryCase)
}

func (c *comparer) collectCase(s *compareSide, r *result.Result, k *result.Case, id string, sessions map[int]string) {
	sub := indexCase(k)
	for _, key := range sub.order {
		for _, q := range quantitiesOf(key.do, k) {
			if !slices.Contains(c.out.Ops, string(q)) {
				continue
			}
			ck := cellKey{id, key.phase, key.cycle, q}
			if s.cells[ck] == nil {
				s.cells[ck] = &compareCell{key: ck}
				s.order = append(s.order, ck)
			}
			s.cells[ck].addRun(r, cell{sub, key}, sessions, c.out.Estimator)
		}
	}
}

// addRun adds the rounds of one run.
func (x *compareCell) addRun(r *result.Result, of cell, sessions map[int]string, est string) {
	x.looks = max(x.looks, replicated(r).looks)
	rounds, steps := of.byRound(func(round int) int { return round })
	for _, round := range rounds {
		own := steps[round]
		w := workOf(x.key.op, of.sub.c, own)
		if len(x.rounds) == 0 && x.weak == "" {
			x.work = w
		}
		x.mixed = cmp.Or(x.mixed, x.work.difference(w, "one round", "another"))
		v, n, err := stepsValue(x.key.op, est, own, nil)
		if err != nil {
			x.weak = wording.Text("compare.round", r.Run, round, err)
			continue
		}
		x.n += n
		x.rounds = append(x.rounds, compareRound{sessions[own[0].Session], fmt.Sprintf("%s\x00%d", r.Run, round), v})
	}
}

// work is what two cells have to agree in to be the same work.
type work struct {
	// Sizes of the files with their numbers
	files string
	// Bytes on the volume, where the files are not the step's own
	live int64
	// Of the image
	size       int64
	workers    int
	cache      string
	sync       string
	filesystem string
	backend    string
}

func workOf(q plan.Quantity, k *result.Case, steps []*result.Step) work {
	w := work{filesystem: k.Target.Filesystem, backend: k.Target.Backend}
	st := steps[0]
	switch {
	case isPerFile(q) || isFileTime(q) || q == "copy_time":
		w.files, w.workers = sizesText(steps), workers(st)
		if st.Cache != nil {
			w.cache = st.Cache.Achieved
		}
		if st.Sync != nil {
			w.sync = st.Sync.Achieved
		}
	case st.Stream != nil:
		w.files = wording.Text("input", bytesAmount(st.Stream.In), st.Stream.Codec)
		w.workers = st.Stream.Threads
	default:
		w.size, w.live = k.Target.Size, st.Live
	}
	return w
}

func bytesAmount(n int64) wording.Amount { return wording.Amount{Value: float64(n), Unit: "B"} }

// sizesText names a set of files by its sizes: "10 × 2 MB, 10 × 4 MB".
func sizesText(steps []*result.Step) string {
	count := map[int64]int{}
	for _, st := range steps {
		for i := range st.Samples {
			count[st.Samples[i].Bytes]++
		}
		if len(st.Samples) == 0 && st.Span != nil {
			count[st.Span.Bytes]++
		}
	}
	var parts []string
	for _, size := range sortedKeys(count) {
		parts = append(parts, fmt.Sprintf("%d × %s", count[size], wording.Size(size)))
	}
	return strings.Join(parts, ", ")
}

// difference is why two cells are not the same work, "" if they are; left and
// right name them.
func (a work) difference(b work, left, right string) string {
	say := func(key string, x, y any) string { return wording.Text("work."+key, x, left, y, right) }
	switch {
	case a.files != b.files:
		return say("files", shortSizes(a.files), shortSizes(b.files))
	case a.workers != b.workers:
		return say("workers", wording.Count{N: a.workers, Noun: "worker"}, wording.Count{N: b.workers, Noun: "worker"})
	case a.sync != b.sync:
		return say("sync", cmp.Or(a.sync, "unknown"), cmp.Or(b.sync, "unknown"))
	case a.cache != b.cache:
		return say("cache", cmp.Or(a.cache, "unknown"), cmp.Or(b.cache, "unknown"))
	case a.size != b.size:
		return say("size", bytesAmount(a.size), bytesAmount(b.size))
	case a.live != b.live:
		return wording.Text("work.live", bytesAmount(a.live), left, bytesAmount(b.live), right)
	}
	return ""
}

// shortSizes cuts a long list of sizes.
func shortSizes(text string) string {
	parts := strings.Split(cmp.Or(text, "none"), ", ")
	if len(parts) <= 3 {
		return strings.Join(parts, ", ")
	}
	return wording.Text("sizes", parts[0], parts[len(parts)-1], len(parts))
}

func (c *comparer) addUnpaired(k cellKey, sideName, why string, undecided bool) {
	c.out.Unpaired = append(c.out.Unpaired, Unpaired{k.id, k.phase, k.cycle, string(k.op), sideName, why, undecided})
}

// pairCells compares every cell of a side with the baseline's.
func (c *comparer) pairCells(s *compareSide) {
	base := c.sides[0]
	for _, k := range base.order {
		a, b := base.cells[k], s.cells[k]
		why := ""
		switch {
		case b == nil:
			why = wording.Text("compare.not-measured", s.name)
		case a.weak != "" || b.weak != "":
			why = cmp.Or(a.weak, b.weak)
		case a.mixed != "":
			why = wording.Text("compare.mixed", base.name, a.mixed)
		case b.mixed != "":
			why = wording.Text("compare.mixed", s.name, b.mixed)
		default:
			why = a.work.difference(b.work, base.name, s.name)
		}
		if why != "" {
			c.addUnpaired(k, s.name, why, true)
			continue
		}
		c.addRow(a, b, s.name)
	}
	for _, k := range s.order {
		if base.cells[k] == nil {
			c.addUnpaired(k, s.name, wording.Text("compare.not-measured", base.name), true)
		}
	}
	for _, u := range slices.Concat(base.lost, s.lost) {
		if !slices.Contains(c.out.Unpaired, u) {
			c.out.Unpaired = append(c.out.Unpaired, u)
		}
	}
}
