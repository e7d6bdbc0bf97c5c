package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/internal/wording"
)

// runData is a plan with its result, indexed.
type runData struct {
	p     *plan.Plan
	r     *result.Result
	cases []*caseData
	// planned are the steps of each case as the plan has them, by case id.
	planned map[string]plan.Case
	// per is what is replicated: the round, or the session where enough runs
	// were pooled.
	per replica
	// departed are the deviations that concern a case, by case id; "" is all
	// cases.
	departed map[string][]result.Departure
}

// caseData is one case of the result with its settings and steps.
type caseData struct {
	c    *result.Case
	plan plan.Case
	// Of rounds that are shown, without error
	steps map[stepKey][]*result.Step
	// Of the protocol
	order []stepKey
	per   replica
	runs  []result.PooledRun

	// Of whole steps
	values map[valuesKey][]roundValue
	// Shared with the same case in other analyses
	stepValues map[stepValueKey]roundValue
}

// stepKey finds the steps of one kind and phase; in each round there is one, or
// several where a protocol repeats an unlabelled step.
type stepKey struct {
	do, phase string
	cycle     int
}

func newRunData(p *plan.Plan, r *result.Result) (*runData, error) {
	s := &runData{p: p, r: r, planned: map[string]plan.Case{}, per: replicated(r)}
	for _, c := range p.Cases() {
		s.planned[c.ID] = c
	}
	seen := map[string]bool{}
	for i := range r.Cases {
		c := &r.Cases[i]
		if seen[c.ID] {
			return nil, fmt.Errorf("analysing run %q: case %q occurs twice", r.Run, c.ID)
		}
		seen[c.ID] = true
		sub := indexCase(c)
		sub.per, sub.runs = s.per, r.Runs
		var ok bool
		// A case that the plan no longer has: only its own keys are known
		if sub.plan, ok = s.planned[c.ID]; !ok {
			sub.plan = plan.Case{Settings: p.Defaults, Baseline: c.Baseline}
			sub.plan.Settings.Target, sub.plan.Settings.Place = c.Target.Kind, c.Target.Place
			sub.plan.Settings.Format = c.Target.Format
		}
		s.cases = append(s.cases, sub)
	}
	return s, nil
}

// indexCase is a case with the steps that are shown by their kind. Positions in
// the protocol decide their order, not the order of the records.
func indexCase(c *result.Case) *caseData {
	sub := &caseData{c: c, steps: map[stepKey][]*result.Step{}, values: map[valuesKey][]roundValue{},
		stepValues: map[stepValueKey]roundValue{}}
	shown := map[int]bool{}
	for _, r := range c.Rounds {
		shown[r.Round] = c.Shows(r.Round)
	}
	first := map[stepKey]int{}
	for i := range c.Steps {
		st := &c.Steps[i]
		if !shown[st.Round] || st.Error != "" || isCanary(st) {
			continue
		}
		k := stepKey{st.Do, st.Phase, st.Cycle}
		if at, ok := first[k]; !ok {
			first[k] = st.Index
			sub.order = append(sub.order, k)
		} else {
			first[k] = min(at, st.Index)
		}
		sub.steps[k] = append(sub.steps[k], st)
	}
	slices.SortStableFunc(sub.order, func(a, b stepKey) int { return first[a] - first[b] })
	return sub
}

// isCanary reports whether a step is the canary's write or read, which the case
// does not measure.
func isCanary(st *result.Step) bool { return st.Do == "canary" }

// value is the text of one selector key of the case.
func (sub *caseData) value(key string) (string, bool) {
	if v, ok := sub.plan.Value(key); ok {
		return v, true
	}
	for _, kv := range sub.c.Keys {
		if kv[0] == key {
			return kv[1], true
		}
	}
	return "", false
}

// number reads the value of a numeric axis: a plain number, or a size in bytes.
func number(text string) (float64, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil && finite(v) {
		return v, true
	}
	b, err := units.ParseBytes(text)
	return float64(b), err == nil
}

// sameValue compares two texts of one key by meaning: sizes by their
// bytes, RAW as the alias of UDRW.
func sameValue(key, a, b string) bool {
	return a == b || accepts(plan.Choice{Key: key, Values: []string{a}}, b)
}

// choiceOf is the choice that the selector makes for a key.
func choiceOf(sel plan.Selector, key string) (plan.Choice, bool) {
	for _, c := range sel {
		if c.Key == key {
			return c, true
		}
	}
	return plan.Choice{}, false
}

func withoutKey(sel plan.Selector, key string) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return c.Key == key })
}

// accepts reports whether a choice allows a text.
func accepts(c plan.Choice, text string) bool {
	return plan.Selector{c}.Match(func(key string) (string, bool) { return text, key == c.Key })
}

// notOfCase are the selector keys that pick steps or samples, not cases.
var notOfCase = []string{"phase", "cycle", "file_size", "set", "batch"}

func caseOnly(sel plan.Selector) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return slices.Contains(notOfCase, c.Key) })
}

// matches reports whether the selector picks the case. One that names neither
// baseline nor target never picks a baseline case.
func (sub *caseData) matches(sel plan.Selector) bool { return caseOnly(sel).Match(sub.value) }

// matches reports whether the selector picks steps of the key.
func (k stepKey) matches(sel plan.Selector) bool {
	if c, ok := choiceOf(sel, "phase"); ok && !accepts(c, k.phase) {
		return false
	}
	c, ok := choiceOf(sel, "cycle")
	return !ok || accepts(c, strconv.Itoa(k.cycle))
}

// picksStep reports whether a selector, whatever cycle it names, picks a step
// of the plan.
func picksStep(sel plan.Selector, st plan.Step) bool {
	return stepKey{phase: st.Phase}.matches(withoutKey(sel, "cycle"))
}

// flatten adds steps and the steps inside them.
func flatten(out, steps []plan.Step) []plan.Step {
	for _, st := range steps {
		out = append(out, st)
		out = flatten(out, st.Steps)
	}
	return out
}

// hasStep reports whether a protocol has a step of a kind that the selector
// picks.
func hasStep(steps []plan.Step, do string, sel plan.Selector) bool {
	return slices.ContainsFunc(flatten(nil, steps), func(st plan.Step) bool {
		return st.Do == do && picksStep(sel, st)
	})
}

// cell is the steps of one case under one phase and cycle.
type cell struct {
	sub *caseData
	key stepKey
}

func (c cell) steps() []*result.Step { return c.sub.steps[c.key] }

// byRound groups the steps of a cell by round, or by a number of it, ascending.
func (c cell) byRound(of func(round int) int) (rounds []int, steps map[int][]*result.Step) {
	steps = map[int][]*result.Step{}
	for _, st := range c.steps() {
		r := of(st.Round)
		steps[r] = append(steps[r], st)
	}
	return slices.Sorted(maps.Keys(steps)), steps
}

// replicates groups the steps of a cell by the unit of replication: the
// round, or the session where enough were pooled.
func (c cell) replicates() (rounds []int, steps map[int][]*result.Step) {
	return c.byRound(func(round int) int { return c.sub.per.replicate(c.sub.runs, round) })
}

// cells finds what a selector picks for a quantity. missing is why that is
// not all of it, or why there is nothing.
func (s *runData) cells(q plan.Quantity, sel plan.Selector) (cells []cell, missing string) {
	picked := false
	var gone []string
	for _, sub := range s.cases {
		if !sub.matches(sel) {
			continue
		}
		picked = true
		before := len(cells)
		for _, k := range sub.order {
			if k.do == doOf(q) && k.matches(sel) {
				cells = append(cells, cell{sub, k})
			}
		}
		if len(cells) == before {
			gone = append(gone, s.absent(sub, doOf(q), sel))
		}
	}
	switch why := sortedReasons(gone); {
	case why != "":
		return nil, why
	case !picked:
		return nil, wording.Text("no-case", wording.Selector(sel))
	case len(cells) == 0:
		return nil, wording.Text("not-measured", nameOf(q), wording.Selector(sel))
	}
	return cells, ""
}

// absent is why a case that the selector picks has no such steps; "" where the
// plan does not ask for any.
func (s *runData) absent(sub *caseData, do string, sel plan.Selector) string {
	if pc, ok := s.planned[sub.c.ID]; ok && !hasStep(pc.Steps, do, sel) {
		return ""
	}
	switch sub.c.Status {
	case result.Done:
		return ""
	case result.Skipped, result.Failed, result.Discarded:
		return strings.TrimSuffix(wording.Text("case-was", sub.c.ID, sub.c.Status, sub.c.Reason), ": ")
	}
	return wording.Text("case-unfinished", sub.c.ID)
}

// unmeasured are the cases that the selector picks and that were not measured
// to the end, with the reasons; "" if all were.
func (s *runData) unmeasured(q plan.Quantity, sel plan.Selector) string {
	var gone []string
	for _, sub := range s.cases {
		if sub.matches(sel) {
			gone = append(gone, s.absent(sub, doOf(q), sel))
		}
	}
	return sortedReasons(gone)
}

// sortedReasons joins the reasons that are not empty.
func sortedReasons(list []string) string {
	list = slices.DeleteFunc(list, func(t string) bool { return t == "" })
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// protocol is all steps of the plan.
func (s *runData) protocol() (steps []plan.Step) {
	for _, b := range s.p.Protocol {
		steps = flatten(steps, b.Steps)
	}
	return steps
}

// roundValue is a quantity in one round of a cell.
type roundValue struct {
	round int
	v     float64
	n     int
	err   error
}

// valuesKey names values of a case that do not change.
type valuesKey struct {
	key stepKey
	q   plan.Quantity
	est string
}

// stepValueKey names the value of a single step, which no choice of rounds
// changes.
type stepValueKey struct {
	st  *result.Step
	q   plan.Quantity
	est string
}
