package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// comparer makes one comparison.
type comparer struct {
	o     CompareOptions
	out   *Comparison
	sides []*compareSide
	keys  []string // of cases that make the sides
}

// compareSide is a side with what was measured of it.
type compareSide struct {
	name  string
	runs  []*result.Result
	ids   map[string]bool // of the runs, against taking one twice
	cells map[cellKey]*compareCell
	order []cellKey
	lost  []Unpaired // cases without values
}

// cellKey pairs cells of two sides.
type cellKey struct {
	id    string // of the case, without the keys that make the sides
	phase string
	cycle int
	op    plan.Quantity
}

func newComparer(runs []*result.Result, o CompareOptions) (*comparer, error) {
	if len(runs) == 0 {
		return nil, refuse("no run was given")
	}
	if o.Threshold == 0 {
		o.Threshold = DefaultThreshold
	}
	if !(o.Threshold > 0 && o.Threshold < 1) {
		return nil, refuse("the threshold %v is not a share between 0 and 1", o.Threshold)
	}
	c := &comparer{o: o, out: &Comparison{Schema: 1, By: append([]string{}, o.By...), Threshold: o.Threshold, Level: level, Ops: []string{},
		Sides: []CompareSide{}, Alike: []CompareFact{}, Differences: []Difference{}, Notes: []string{}, Rows: []CompareRow{}, Unpaired: []Unpaired{},
		Claims: []ClaimChange{}, Answers: []CompareAnswer{}}}
	var facts []string
	for _, name := range o.By {
		switch {
		case slices.Contains(CompareFacts, name):
			facts = append(facts, name)
		case hasKey(runs, name):
			c.keys = append(c.keys, name)
		default:
			return nil, refuse("no run has a %q", name)
		}
	}
	if err := c.split(runs, facts); err != nil {
		return nil, err
	}
	if err := c.baseline(); err != nil {
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
	for _, r := range runs {
		for i := range r.Cases {
			if _, ok := caseValue(&r.Cases[i], key); ok {
				return true
			}
		}
	}
	return false
}

// caseValue is the value of a key of a case: its own, or its target's.
func caseValue(c *result.Case, key string) (string, bool) {
	for _, kv := range c.Keys {
		if kv[0] == key {
			return kv[1], true
		}
	}
	t := c.Target
	v := map[string]string{"place": t.Place, "format": t.Format, "encryption": t.Encryption, "filesystem": t.Filesystem,
		"backend": t.Backend, "target": t.Kind}[key]
	return v, v != ""
}

// split puts runs, or cases of runs, into sides.
func (c *comparer) split(runs []*result.Result, facts []string) error {
	if err := c.distinct(runs); err != nil {
		return err
	}
	for i, r := range runs {
		head := c.runName(i, r)
		if len(facts) > 0 {
			head = factsText(r, facts)
		} else if len(c.keys) > 0 {
			head = ""
		}
		if i < len(c.o.Sides) && len(c.o.By) == 0 {
			head = c.o.Sides[i]
		}
		for _, name := range c.namesIn(r, head) {
			s := c.side(name, len(c.o.By) == 0 && len(c.o.Sides) == 0)
			s.ids[r.Run] = true
			s.runs = append(s.runs, r)
		}
	}
	if len(c.sides) < 2 {
		if len(c.o.By) > 0 && len(c.sides) == 1 {
			return refuse("all runs are %q", c.sides[0].name)
		}
		return refuse("one run is not compared with anything")
	}
	return nil
}

// distinct refuses a run that is there twice, also inside a pooled result: its sessions
// would count as others, and a session does not differ from itself.
func (c *comparer) distinct(runs []*result.Result) error {
	seen := map[string]string{} // names by run id
	for i, r := range runs {
		name := c.runName(i, r)
		ids := []string{r.Run}
		for _, p := range r.Runs {
			ids = append(ids, p.Run)
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if before, there := seen[id]; there && id != "" {
				return refuse("run %q is given twice, as %q and in %q", id, before, name)
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

// namesIn are the sides that a run has a part in: one, unless its cases make several.
func (c *comparer) namesIn(r *result.Result, head string) []string {
	if len(c.keys) == 0 {
		return []string{head}
	}
	var out []string
	for i := range r.Cases {
		if name, ok := c.sideOf(&r.Cases[i], head); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// sideOf is the name of the side of a case: what the run is, and the values of the keys.
func (c *comparer) sideOf(k *result.Case, head string) (string, bool) {
	parts := []string{}
	if head != "" {
		parts = append(parts, head)
	}
	for _, key := range c.keys {
		v, ok := caseValue(k, key)
		if !ok {
			return "", false
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, ", "), true
}

// operand finds a side by its name, or makes it; distinct makes another of that name.
func (c *comparer) side(name string, distinct bool) *compareSide {
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

// baseline puts the side that all others are set against first.
func (c *comparer) baseline() error {
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
		return refuse("%q is neither a run nor a side of these: %s", want, strings.Join(have, ", "))
	}
	s := c.sides[i]
	c.sides = slices.Insert(slices.Delete(c.sides, i, i+1), 0, s)
	return nil
}

// headlineOf is the estimator that the runs quote.
func headlineOf(runs []*result.Result) string {
	for _, r := range runs {
		for _, s := range r.Summaries {
			if perFile(plan.Quantity(s.Op)) && s.Headline != "" {
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
		if rate(q.Name) {
			rates = append(rates, q.Name)
		}
	}
	for _, s := range c.sides {
		for _, r := range s.runs {
			for i := range r.Cases {
				if slices.ContainsFunc(r.Cases[i].Steps, func(st result.Step) bool { return slices.Contains(rates, plan.Quantity(st.Do)) && !isCanary(&st) }) {
					return rates
				}
			}
		}
	}
	return all
}

// stretches numbers the sessions of a run as units of replication: those of one
// boot that follow each other within [samePause] are one, since an interrupted
// run that is resumed at once has not drawn another session.
func sessionNames(r *result.Result) map[int]string {
	out := map[int]string{}
	name, last := "", result.Session{}
	ss := slices.Clone(r.Sessions)
	slices.SortStableFunc(ss, func(a, b result.Session) int { return a.Index - b.Index })
	for i, s := range ss {
		run := cmp.Or(s.Run, r.Run)
		if i == 0 || run != cmp.Or(last.Run, r.Run) || s.Boot != last.Boot || s.Boot == "" || s.Started.Sub(last.Finished) > samePause || setBack(last, s) {
			name = fmt.Sprintf("%s\x00%d", run, s.Started.UnixNano())
			if s.Started.IsZero() {
				name = fmt.Sprintf("%s\x00%d", run, s.Index)
			}
		}
		out[s.Index], last = name, s
	}
	return out
}

// setBack reports whether a session started, by the clock, before the previous one ended. How long
// the pause was is then unknown. Corrections of a running clock by less than a second are usual.
func setBack(before, s result.Session) bool {
	return !s.Started.IsZero() && before.Finished.Sub(s.Started) > time.Second
}

// samePause is how long a run may rest without another session beginning for statistics.
const samePause = 10 * time.Minute

// compareCell is one quantity of one case on one side: a value a round, the
// rounds in their sessions.
type compareCell struct {
	key    cellKey
	rounds []compareRound
	n      int
	looks  int // of its runs, the most; see [stats.Looks]
	work   workKey
	mixed  string // why rounds of this side do not belong together
	weak   string // why there is no value
}

// compareRound is one value.
type compareRound struct {
	session string
	round   string // of which run
	v       float64
}

// workKey are what two cells have to agree in to be the same work.
type workKey struct {
	files      string // sizes of the files with their numbers
	live       int64  // bytes on the volume, where the files are not the step's own
	size       int64  // of the image
	workers    int
	cache      string
	sync       string
	filesystem string
	backend    string
}

// collect reads the cells of a side.
func (c *comparer) collect(s *compareSide) {
	for _, r := range s.runs {
		sessions := sessionNames(r)
		for i := range r.Cases {
			k := &r.Cases[i]
			id, ok := c.caseID(k, s, r)
			if !ok {
				continue
			}
			if k.Status != result.Done {
				s.lost = append(s.lost, Unpaired{Case: id, Side: s.name,
					Reason: fmt.Sprintf("the case was %s in run %s: %s", cmp.Or(k.Status, "not finished"), r.Run, cmp.Or(k.Reason, "no reason given"))})
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

// EveryCase is the id of a row for a case that has only the keys that make the sides.
const EveryCase = "every case"

// caseID names a case without the keys that make the sides; ok is false where
// the case belongs to another side.
func (c *comparer) caseID(k *result.Case, s *compareSide, r *result.Result) (string, bool) {
	if len(c.keys) == 0 {
		return k.ID, true
	}
	head := ""
	if facts := slices.DeleteFunc(slices.Clone(c.o.By), func(n string) bool { return !slices.Contains(CompareFacts, n) }); len(facts) > 0 {
		head = factsText(r, facts)
	}
	name, ok := c.sideOf(k, head)
	if !ok || name != s.name {
		return "", false
	}
	var parts []string
	for _, kv := range k.Keys {
		if !slices.Contains(c.keys, kv[0]) {
			parts = append(parts, kv[0]+"="+kv[1])
		}
	}
	return cmp.Or(strings.Join(parts, ","), EveryCase), true
}

func (c *comparer) collectCase(s *compareSide, r *result.Result, k *result.Case, id string, sessions map[int]string) {
	sub := indexCase(k)
	for _, key := range sub.order {
		for _, q := range quantitiesOf(key.do) {
			if !slices.Contains(c.out.Ops, string(q)) || quantityRows[q].bands && k.Target.Format != "UDSB" {
				continue
			}
			ck := cellKey{id, key.phase, key.cycle, q}
			cell := s.cells[ck]
			if cell == nil {
				cell = &compareCell{key: ck}
				s.cells[ck] = cell
				s.order = append(s.order, ck)
			}
			cell.addRun(r, k, sub.steps[key], sessions, c.out.Estimator)
		}
	}
}

// addRun adds the rounds of one run.
func (cell *compareCell) addRun(r *result.Result, k *result.Case, steps []*result.Step, sessions map[int]string, est string) {
	cell.looks = max(cell.looks, replicated(r).looks)
	byRound := map[int][]*result.Step{}
	for _, st := range steps {
		byRound[st.Round] = append(byRound[st.Round], st)
	}
	for _, round := range slices.Sorted(maps.Keys(byRound)) {
		own := byRound[round]
		marks := workOf(cell.key.op, k, own)
		if len(cell.rounds) == 0 && cell.weak == "" {
			cell.work = marks
		}
		if why := workDifference(cell.work, marks, "one round", "another"); why != "" {
			cell.mixed = cmp.Or(cell.mixed, why)
		}
		v, n, err := value(cell.key.op, est, own, nil)
		if err != nil {
			cell.weak = fmt.Sprintf("run %s, round %d: %v", r.Run, round, err)
			continue
		}
		cell.n += n
		cell.rounds = append(cell.rounds, compareRound{session: sessions[own[0].Session], round: fmt.Sprintf("%s\x00%d", r.Run, round), v: v})
	}
}

func workOf(q plan.Quantity, k *result.Case, steps []*result.Step) workKey {
	m := workKey{filesystem: k.Target.Filesystem, backend: k.Target.Backend}
	st := steps[0]
	if perFile(q) || fileTime(q) || q == "copy_time" {
		m.files, m.workers = filesText(steps), workers(st)
		if st.Cache != nil {
			m.cache = st.Cache.Achieved
		}
		if st.Sync != nil {
			m.sync = st.Sync.Achieved
		}
		return m
	}
	if st.Stream != nil {
		m.files = fmt.Sprintf("%s of input, %s", show(float64(st.Stream.In), "B"), st.Stream.Codec)
		m.workers = st.Stream.Threads
		return m
	}
	m.size, m.live = k.Target.Size, st.Live
	return m
}

// filesText names a set of files by its sizes: "10 × 2 MB, 10 × 4 MB".
func filesText(steps []*result.Step) string {
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
	for _, size := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d × %s", count[size], sizeText(size)))
	}
	return strings.Join(parts, ", ")
}

// workDifference reports why two cells are not the same work, "" if they are.
func workDifference(a, b workKey, left, right string) string {
	switch {
	case a.files != b.files:
		return fmt.Sprintf("not the same files: %s in %s, %s in %s", shortFiles(a.files), left, shortFiles(b.files), right)
	case a.workers != b.workers:
		return fmt.Sprintf("%s in %s, %s in %s", plural(a.workers, "worker"), left, plural(b.workers, "worker"), right)
	case a.sync != b.sync:
		return fmt.Sprintf("not flushed alike: %s in %s, %s in %s", cmp.Or(a.sync, "unknown"), left, cmp.Or(b.sync, "unknown"), right)
	case a.cache != b.cache:
		return fmt.Sprintf("not cached alike: %s in %s, %s in %s", cmp.Or(a.cache, "unknown"), left, cmp.Or(b.cache, "unknown"), right)
	case a.size != b.size:
		return fmt.Sprintf("images of %s in %s and of %s in %s", show(float64(a.size), "B"), left, show(float64(b.size), "B"), right)
	case a.live != b.live:
		return fmt.Sprintf("the volume held %s in %s and %s in %s", show(float64(a.live), "B"), left, show(float64(b.live), "B"), right)
	}
	return ""
}

// shortFiles cuts a long list of sizes.
func shortFiles(text string) string {
	parts := strings.Split(cmp.Or(text, "none"), ", ")
	if len(parts) <= 3 {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s … %s (%d sizes)", parts[0], parts[len(parts)-1], len(parts))
}

// pairCells sets every cell of a side against the baseline's.
func (c *comparer) pairCells(s *compareSide) {
	base := c.sides[0]
	lost := func(k cellKey, side, why string) {
		c.out.Unpaired = append(c.out.Unpaired, Unpaired{k.id, k.phase, k.cycle, string(k.op), side, why, why != bothZero})
	}
	for _, k := range base.order {
		a, b := base.cells[k], s.cells[k]
		switch {
		case b == nil:
			lost(k, s.name, "not measured in "+s.name)
		case a.weak != "" || b.weak != "":
			lost(k, s.name, cmp.Or(a.weak, b.weak))
		case a.mixed != "":
			lost(k, s.name, fmt.Sprintf("the rounds of %s are not the same work: %s", base.name, a.mixed))
		case b.mixed != "":
			lost(k, s.name, fmt.Sprintf("the rounds of %s are not the same work: %s", s.name, b.mixed))
		case workDifference(a.work, b.work, base.name, s.name) != "":
			lost(k, s.name, workDifference(a.work, b.work, base.name, s.name))
		default:
			if row, why := c.row(a, b, s.name); why != "" {
				lost(k, s.name, why)
			} else {
				c.out.Rows = append(c.out.Rows, row)
			}
		}
	}
	for _, k := range s.order {
		if base.cells[k] == nil {
			lost(k, s.name, "not measured in "+base.name)
		}
	}
	for _, u := range slices.Concat(base.lost, s.lost) {
		if !slices.Contains(c.out.Unpaired, u) {
			c.out.Unpaired = append(c.out.Unpaired, u)
		}
	}
}
