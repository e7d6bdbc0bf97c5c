package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// compareCell is one quantity of one case on one side: a value a round, the
// rounds in their sessions.
type compareCell struct {
	key    cellKey
	rounds []compareRound
	n      int
	looks  int // of its runs, the most; see [stats.Looks]
	marks  cellMarks
	mixed  string // why rounds of this side do not belong together
	weak   string // why there is no value
}

// compareRound is one value.
type compareRound struct {
	session string
	round   string // of which run
	v       float64
}

// cellMarks are what two cells have to agree in to be the same work.
type cellMarks struct {
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
		sessions := stretches(r)
		for i := range r.Cases {
			k := &r.Cases[i]
			id, ok := c.caseID(k, s, r)
			if !ok {
				continue
			}
			if k.Status != result.Done {
				s.lost = append(s.lost, Unpaired{Case: id, Side: s.name,
					Reason: fmt.Sprintf("the case was %s in run %s: %s", orElse(k.Status, "not finished"), r.Run, orElse(k.Reason, "no reason given"))})
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

// EveryCase is the id of a row whose case has no keys but those that make the sides.
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
	sub := indexed(k)
	for _, key := range sub.order {
		for _, q := range quantitiesOf(key.do) {
			if !slices.Contains(c.out.Ops, string(q)) || (q == "bands" || q == "bands_full") && k.Target.Format != "UDSB" {
				continue
			}
			ck := cellKey{id, key.phase, key.cycle, q}
			cell := s.cells[ck]
			if cell == nil {
				cell = &compareCell{key: ck}
				s.cells[ck] = cell
				s.order = append(s.order, ck)
			}
			cell.take(r, k, sub.steps[key], sessions, c.out.Estimator)
		}
	}
}

// take adds the rounds of one run.
func (cell *compareCell) take(r *result.Result, k *result.Case, steps []*result.Step, sessions map[int]string, est string) {
	cell.looks = max(cell.looks, replicated(r).looks)
	byRound := map[int][]*result.Step{}
	for _, st := range steps {
		byRound[st.Round] = append(byRound[st.Round], st)
	}
	for _, round := range sortedRounds(byRound) {
		own := byRound[round]
		marks := marksOf(cell.key.op, k, own)
		if len(cell.rounds) == 0 && cell.weak == "" {
			cell.marks = marks
		}
		if why := unlike(cell.marks, marks, "one round", "another"); why != "" {
			cell.mixed = orElse(cell.mixed, why)
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

func marksOf(q plan.Quantity, k *result.Case, steps []*result.Step) cellMarks {
	m := cellMarks{filesystem: k.Target.Filesystem, backend: k.Target.Backend}
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

// unlike says why two cells are not the same work, "" if they are.
func unlike(a, b cellMarks, left, right string) string {
	switch {
	case a.files != b.files:
		return fmt.Sprintf("not the same files: %s in %s, %s in %s", shortFiles(a.files), left, shortFiles(b.files), right)
	case a.workers != b.workers:
		return fmt.Sprintf("%s in %s, %s in %s", plural(a.workers, "worker"), left, plural(b.workers, "worker"), right)
	case a.sync != b.sync:
		return fmt.Sprintf("not flushed alike: %s in %s, %s in %s", orElse(a.sync, "unknown"), left, orElse(b.sync, "unknown"), right)
	case a.cache != b.cache:
		return fmt.Sprintf("not cached alike: %s in %s, %s in %s", orElse(a.cache, "unknown"), left, orElse(b.cache, "unknown"), right)
	case a.size != b.size:
		return fmt.Sprintf("images of %s in %s and of %s in %s", show(float64(a.size), "B"), left, show(float64(b.size), "B"), right)
	case a.live != b.live:
		return fmt.Sprintf("the volume held %s in %s and %s in %s", show(float64(a.live), "B"), left, show(float64(b.live), "B"), right)
	}
	return ""
}

// shortFiles cuts a long list of sizes.
func shortFiles(text string) string {
	parts := strings.Split(orElse(text, "none"), ", ")
	if len(parts) <= 3 {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s … %s (%d sizes)", parts[0], parts[len(parts)-1], len(parts))
}

// pair sets every cell of a side against the baseline's.
func (c *comparer) pair(s *compareSide) {
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
			lost(k, s.name, orElse(a.weak, b.weak))
		case a.mixed != "":
			lost(k, s.name, fmt.Sprintf("the rounds of %s are not the same work: %s", base.name, a.mixed))
		case b.mixed != "":
			lost(k, s.name, fmt.Sprintf("the rounds of %s are not the same work: %s", s.name, b.mixed))
		case unlike(a.marks, b.marks, base.name, s.name) != "":
			lost(k, s.name, unlike(a.marks, b.marks, base.name, s.name))
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
