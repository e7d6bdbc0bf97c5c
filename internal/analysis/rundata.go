package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// runData is a plan with its result, indexed.
type runData struct {
	p     *plan.Plan
	r     *result.Result
	cases []*caseData
	// planned are the steps of each case as the plan has them, by case id.
	planned map[string]plan.Case
	// per is what is replicated: the round, or the session where enough runs were pooled.
	per replica
	// robust asks for the robustness of verdicts.
	robust bool
	// departed are the departures that concern a case, by case id; "" is all cases.
	departed map[string][]result.Departure
}

// caseData is one case of the result with its settings and steps.
type caseData struct {
	c     *result.Case
	plan  plan.Case
	keys  map[string]string
	steps map[stepKey][]*result.Step // of rounds that are shown, without error
	order []stepKey
	memo  map[memoKey][]roundValue
	known map[stepValueKey]roundValue // shared with the same case in other analyses
	per   replica
	runs  []result.PooledRun
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
		sub := newCaseData(p, c, s.planned)
		sub.per, sub.runs = s.per, r.Runs
		s.cases = append(s.cases, sub)
	}
	return s, nil
}

func newCaseData(p *plan.Plan, c *result.Case, planned map[string]plan.Case) *caseData {
	sub := &caseData{c: c, keys: map[string]string{}, steps: map[stepKey][]*result.Step{}, memo: map[memoKey][]roundValue{},
		known: map[stepValueKey]roundValue{}}
	pc, ok := planned[c.ID]
	if !ok { // a case that the plan no longer has: its own keys are all that is known
		pc = plan.Case{Settings: p.Defaults, Baseline: c.Baseline}
		pc.Settings.Target, pc.Settings.Place, pc.Settings.Format = c.Target.Kind, c.Target.Place, c.Target.Format
	}
	sub.plan = pc
	for _, kv := range c.Keys {
		sub.keys[kv[0]] = kv[1]
	}
	sub.indexSteps()
	return sub
}

// indexCase is a case with its steps, for what needs no plan.
func indexCase(c *result.Case) *caseData {
	sub := &caseData{c: c, steps: map[stepKey][]*result.Step{}}
	sub.indexSteps()
	return sub
}

// indexSteps sorts the steps that are shown by what they are. Positions in the protocol
// decide their order, not the order of the records.
func (sub *caseData) indexSteps() {
	shown := map[int]bool{}
	for _, r := range sub.c.Rounds {
		shown[r.Round] = sub.c.Shows(r.Round)
	}
	for i := range sub.c.Steps {
		st := &sub.c.Steps[i]
		if !shown[st.Round] || st.Error != "" || isCanary(st) {
			continue
		}
		k := stepKey{st.Do, st.Phase, st.Cycle}
		if _, ok := sub.steps[k]; !ok {
			sub.order = append(sub.order, k)
		}
		sub.steps[k] = append(sub.steps[k], st)
	}
	slices.SortStableFunc(sub.order, func(a, b stepKey) int { return firstIndex(sub.steps[a]) - firstIndex(sub.steps[b]) })
}

func firstIndex(steps []*result.Step) int {
	first := steps[0].Index
	for _, st := range steps {
		first = min(first, st.Index)
	}
	return first
}

// value is the text of one selector key of the case.
func (sub *caseData) value(key string) (string, bool) {
	if v, ok := sub.plan.Value(key); ok {
		return v, true
	}
	v, ok := sub.keys[key]
	return v, ok
}

// sameValue compares two texts of one key as what they are: sizes by their
// bytes, RAW as the alias of UDRW.
func sameValue(key, a, b string) bool {
	return a == b || accepts(plan.Choice{Key: key, Values: []string{a}}, b)
}

func parseBytes(text string) (units.Bytes, error) { return units.ParseBytes(text) }

// choiceOf is the choice that the selector makes for a key.
func choiceOf(sel plan.Selector, key string) (plan.Choice, bool) {
	for _, c := range sel {
		if c.Key == key {
			return c, true
		}
	}
	return plan.Choice{}, false
}

// accepts reports whether a choice allows a text.
func accepts(c plan.Choice, text string) bool {
	return plan.Selector{c}.Match(func(key string) (string, bool) { return text, key == c.Key })
}

// notOfCase are the selector keys that pick steps or samples, not cases.
var notOfCase = []string{"phase", "cycle", "file_size", "set", "batch"}

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

// selectorText writes a selector for people: "format UDSB, phase new".
func selectorText(sel plan.Selector) string {
	if len(sel) == 0 {
		return "any case"
	}
	parts := make([]string, len(sel))
	for i, c := range sel {
		parts[i] = strings.ReplaceAll(c.Key, "_", " ") + " " + strings.Join(c.Values, " or ")
	}
	return strings.Join(parts, ", ")
}
