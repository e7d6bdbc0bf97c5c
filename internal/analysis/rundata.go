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
	"dmgbench/internal/system/units"
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
	// skipWarnings leaves out the warnings of summaries
	skipWarnings bool
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

	// Values of single steps, shared with the same case in other analyses: the
	// estimators from lines take long, and every claim needs them again
	stepValues map[stepValueKey]stepsResult
}

// stepValueKey names the value of a single step, which no choice of rounds
// changes.
type stepValueKey struct {
	st  *result.Step
	q   plan.Quantity
	est string
}

// stepsResult is a quantity of the steps of one round, of n files or steps.
type stepsResult struct {
	v   float64
	n   int
	err error
}

// quantityKey finds one quantity of one cell.
type quantityKey struct {
	id, phase string
	cycle     int
	op        plan.Quantity
}

// stepKey finds the steps of one kind and phase; in each round there is one, or
// several where a protocol repeats an unlabelled step. With operation the steps
// have the operations of that kind alone.
type stepKey struct {
	do, phase string
	cycle     int
	operation string
}

func keyOfStep(st *result.Step) stepKey { return stepKey{do: st.Do, phase: st.Phase, cycle: st.Cycle} }

// label is the phase in summaries: "new", or of one kind of operation "new (stat)".
func (k stepKey) label() string {
	if k.operation == "" {
		return k.phase
	}
	return strings.TrimSpace(k.phase + " (" + k.operation + ")")
}

// ofOperations are a step, and views of it with the operations of one kind each.
func ofOperations(st *result.Step) (keys []stepKey, steps []*result.Step) {
	keys, steps = []stepKey{keyOfStep(st)}, []*result.Step{st}
	for i, o := range st.Operations {
		k, view := keys[0], *st
		k.operation, view.Operations = o.Kind, st.Operations[i:i+1]
		keys, steps = append(keys, k), append(steps, &view)
	}
	return keys, steps
}

func newRunData(p *plan.Plan, r *result.Result) (*runData, error) {
	s := &runData{p: p, r: r, planned: map[string]plan.Case{}, per: replicated(r)}
	for _, c := range p.Cases() {
		s.planned[c.ID] = c
	}
	seen := map[string]bool{}
	for i := range r.Cases {
		sub := indexCase(&r.Cases[i])
		if seen[sub.c.ID] {
			return nil, fmt.Errorf("analysing run %q: case %q occurs twice", r.Run, sub.c.ID)
		}
		seen[sub.c.ID] = true
		sub.per, sub.runs, sub.plan = s.per, r.Runs, s.planned[sub.c.ID]
		s.cases = append(s.cases, sub)
	}
	return s, nil
}

// indexCase is a case with the steps that are shown by their kind. Positions in
// the protocol decide their order, not the order of the records.
func indexCase(c *result.Case) *caseData {
	sub := &caseData{c: c, steps: map[stepKey][]*result.Step{}, stepValues: map[stepValueKey]stepsResult{}}
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
		keys, steps := ofOperations(st)
		for i, k := range keys {
			if len(sub.steps[k]) == 0 {
				first[k] = st.Index
				sub.order = append(sub.order, k)
			}
			first[k] = min(first[k], st.Index)
			sub.steps[k] = append(sub.steps[k], steps[i])
		}
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
	return keyOfCase(sub.c, key)
}

// keyOfCase is the value of a key of a case of a result.
func keyOfCase(c *result.Case, key string) (string, bool) {
	kv, ok := find(c.Keys, func(kv [2]string) bool { return kv[0] == key })
	return kv[1], ok
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
func sameValue(key, a, b string) bool { return plan.Choice{Key: key, Values: []string{a}}.Matches(b) }

// hasValue reports whether a list has a text of a key, by meaning.
func hasValue(key string, list []string, text string) bool {
	return plan.Choice{Key: key, Values: list}.Matches(text)
}

func withoutKeys(sel plan.Selector, keys ...string) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return slices.Contains(keys, c.Key) })
}

// withChoice is a selector with another choice for a key.
func withChoice(sel plan.Selector, key string, values ...string) plan.Selector {
	return append(withoutKeys(sel, key), plan.Choice{Key: key, Values: values})
}

// caseOnly is a selector without the keys that pick steps or samples.
func caseOnly(sel plan.Selector) plan.Selector {
	return withoutKeys(sel, "phase", "cycle", "file_size", "set", "batch", "operation")
}

// matches reports whether the selector picks the case. One that names neither
// baseline nor target never picks a baseline case.
func (sub *caseData) matches(sel plan.Selector) bool { return caseOnly(sel).Match(sub.value) }

// matches reports whether the selector picks steps of the key: with one kind of
// operation only where it names that.
func (k stepKey) matches(sel plan.Selector) bool {
	return allows(sel, "phase", k.phase) && allows(sel, "cycle", strconv.Itoa(k.cycle)) &&
		sel.Names("operation") == (k.operation != "") && allows(sel, "operation", k.operation)
}

// allows reports whether a selector allows a text for a key.
func allows(sel plan.Selector, key, text string) bool {
	c := sel.Find(key)
	return c == nil || c.Matches(text)
}

// flatten are steps with the steps inside them.
func flatten(steps []plan.Step) (out []plan.Step) {
	for _, st := range steps {
		out = append(append(out, st), flatten(st.Steps)...)
	}
	return out
}

// hasStep reports whether a protocol has a step of a kind that the selector
// picks.
func hasStep(steps []plan.Step, do string, sel plan.Selector) bool {
	return slices.ContainsFunc(steps, func(st plan.Step) bool {
		return st.Do == do && allows(sel, "phase", st.Phase) || hasStep(st.Steps, do, sel)
	})
}

// cell is the steps of one case under one phase and cycle.
type cell struct {
	sub *caseData
	key stepKey
}

func (c cell) steps() []*result.Step { return c.sub.steps[c.key] }

// rounds groups the steps of a cell by round, ascending.
func (c cell) rounds() (numbers []int, steps map[int][]*result.Step) {
	steps = map[int][]*result.Step{}
	for _, st := range c.steps() {
		steps[st.Round] = append(steps[st.Round], st)
	}
	return sortedKeys(steps), steps
}

// cells finds what a selector picks for a quantity. missing is why that is
// not all of it, or why there is nothing; with strict, also why a case that it
// picks was not measured to its end.
func (s *runData) cells(q plan.Quantity, sel plan.Selector, strict bool) (cells []cell, missing string) {
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
		if strict || len(cells) == before {
			gone = appendUnique(gone, s.absent(sub, doOf(q), sel))
		}
	}
	slices.Sort(gone)
	switch {
	case len(gone) > 0:
		return nil, strings.Join(gone, "; ")
	case !picked:
		return nil, wording.Text("no-case", wording.Selector(sel))
	case len(cells) == 0:
		return nil, wording.Text("not-measured", QuantityName(q), wording.Selector(sel))
	}
	return cells, ""
}

// absent is why a case that the selector picks has no such steps; "" where the
// plan does not ask for any.
func (s *runData) absent(sub *caseData, do string, sel plan.Selector) string {
	if sub.plan.ID != "" && !hasStep(sub.plan.Steps, do, sel) {
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

// endedStep is a step of the case with the id.
type endedStep struct {
	*result.Step
	id string
}

// endedSteps are the steps of a kind that the selector picks, of the rounds
// that were run to an end, good or bad: steps of an interrupted round do not
// count. gone is why cases lack some.
func (s *runData) endedSteps(do string, sel plan.Selector) (out []endedStep, gone string) {
	for _, sub := range s.cases {
		if !sub.matches(sel) {
			continue
		}
		gone = wording.Join(gone, s.absent(sub, do, sel))
		ended := map[int]bool{}
		for _, r := range sub.c.Rounds {
			ended[r.Round] = r.Status == result.Done || r.Status == result.Failed
		}
		for i := range sub.c.Steps {
			st := &sub.c.Steps[i]
			if st.Do == do && ended[st.Round] && keyOfStep(st).matches(sel) {
				out = append(out, endedStep{st, sub.c.ID})
			}
		}
	}
	return out, gone
}

// protocol is all steps of the plan.
func (s *runData) protocol() []plan.Step {
	return slices.Concat(mapped(s.p.Protocol, func(b plan.Block) []plan.Step { return flatten(b.Steps) })...)
}

// find is the first element that is what is asked for, the zero value and false
// without one.
func find[T any](list []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return found, false
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// mapped is what is read from each element of a list.
func mapped[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}

// appendUnique adds a text that is not empty and not in the list.
func appendUnique(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// texts are the different texts that are read from a list, without empty ones.
func texts[T any](list []T, of func(T) string) (out []string) {
	for _, x := range list {
		out = appendUnique(out, of(x))
	}
	return out
}

// headlineName is the estimator to quote: the plan's, or the aggregate.
func (s *runData) headlineName() string { return cmp.Or(s.p.Run.Estimator, aggregate) }
