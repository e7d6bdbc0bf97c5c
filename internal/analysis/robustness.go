package analysis

import (
	"cmp"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// The outlier rules that a claim about files is judged under in addition to the
// verdict's own, which removes none.
const (
	ruleNone  = "none removed"
	ruleFirst = "without the first file"
	ruleTukey = "without files beyond Tukey's fences"
	ruleMAD   = "without files beyond 10 scaled MAD"
)

var outlierRules = []string{ruleNone, ruleFirst, ruleTukey, ruleMAD}

// The choices of rounds.
const (
	roundsAll   = "all rounds"
	roundsLater = "without the first round"
)

// way is one defensible analysis of the run: the files and rounds that count,
// and the estimator.
type way struct{ rule, rounds, est string }

// claimState is a claim with what has been found of it in every way so far.
type claimState struct {
	h *claimJudgement
	// Whether estimators and outlier rules make a difference to it
	rates, files bool
	found        map[way]finding
}

// judgeRobustness judges every claim that was judged in all other ways that are
// defensible: each estimator of [panel], each outlier rule, with and without
// the first round. Within each way the claims are adjusted after Holm as they
// are for the verdict. A way that the files or rounds do not allow is counted
// as left out, never as agreeing.
func (s *runData) judgeRobustness(hs []*claimJudgement, out []result.Claim) {
	states := make([]*claimState, len(hs))
	some, files := false, false
	for i, h := range hs {
		if h.applies && h.findings[0].missing == "" {
			states[i] = &claimState{h: h, rates: slices.ContainsFunc(s.operands(h.claim.Assert), isOpenRate),
				files: s.isOfFiles(h.claim.Assert), found: map[way]finding{}}
			some, files = true, files || states[i].files
		}
	}
	if !some {
		return
	}
	specifications := s.specifications(files)
	for _, rule := range outlierRules {
		for _, rounds := range []string{roundsAll, roundsLater} {
			for _, est := range s.headlineFirst() {
				if w := (way{rule, rounds, est}); specifications[way{rule, rounds, ""}] != nil {
					s.judgeWay(w, specifications, states, out)
				}
			}
		}
	}
	for i := range out {
		if r := out[i].Robustness; r != nil {
			summarizeRobustness(r)
		}
	}
}

// specifications are the runs with the files and rounds of each way: of all
// rounds, and of all rules if some claim is about files.
func (s *runData) specifications(files bool) map[way]*runData {
	out := map[way]*runData{}
	for _, rule := range outlierRules {
		if rule != ruleNone && !files {
			continue
		}
		filtered := s.withOutlierRule(rule)
		out[way{rule, roundsAll, ""}] = filtered
		if first := s.firstRounds(); first != nil {
			out[way{rule, roundsLater, ""}] = filtered.mapSteps(func(_ stepKey, st *result.Step) *result.Step {
				if first[st.Round] {
					return nil
				}
				return st
			})
		}
	}
	return out
}

// isOfFiles reports whether a test is about files that one worker timed, so
// that there are files to leave out.
func (s *runData) isOfFiles(a plan.Assert) bool {
	some := false
	for _, op := range s.operands(a) {
		if op.Published || !isPerFile(op.Quantity) {
			continue
		}
		cells, _ := s.cells(op.Quantity, op.Where)
		for _, c := range cells {
			for _, st := range c.steps() {
				if workers(st) > 1 {
					return false
				}
				some = true
			}
		}
	}
	return some
}

// firstRounds are the rounds that a careful reader might leave out as warming
// up: the first, or the first of every pooled run. It is nil where too few
// would be left.
func (s *runData) firstRounds() map[int]bool {
	out := map[int]bool{}
	for _, r := range s.r.Runs {
		if r.First == r.Last {
			return nil
		}
		out[r.First] = true
	}
	if len(out) == 0 {
		out[1] = true
	}
	if s.per.unit != perSession && s.r.Rounds-len(out) < minRounds {
		return nil
	}
	return out
}

// mapSteps is the run with the steps of its cases replaced; nil drops a step.
func (s *runData) mapSteps(change func(stepKey, *result.Step) *result.Step) *runData {
	out := *s
	out.cases = nil
	for _, sub := range s.cases {
		own := *sub
		own.steps, own.values, own.order = map[stepKey][]*result.Step{}, map[valuesKey][]roundValue{}, nil
		for _, k := range sub.order {
			for _, st := range sub.steps[k] {
				if st = change(k, st); st != nil {
					own.steps[k] = append(own.steps[k], st)
				}
			}
			if len(own.steps[k]) > 0 {
				own.order = append(own.order, k)
			}
		}
		out.cases = append(out.cases, &own)
	}
	return &out
}

// withOutlierRule is the run without the files that a rule removes.
func (s *runData) withOutlierRule(rule string) *runData {
	if rule == ruleNone {
		return s
	}
	return s.mapSteps(func(k stepKey, st *result.Step) *result.Step {
		if !isPerFile(plan.Quantity(k.do)) || workers(st) > 1 {
			return st
		}
		return dropOutliers(st, rule)
	})
}

// dropOutliers is a step without the files that the rule removes, and without
// any where the rule cannot be applied. The span loses the time of those files.
func dropOutliers(st *result.Step, rule string) *result.Step {
	out := *st
	out.Samples, out.Span = nil, nil
	samples := inOrderOfStep(st)
	removed, ok := outlierMask(samples, rule)
	if !ok {
		return &out
	}
	left := spanNS(st)
	for i, x := range samples {
		if removed[i] {
			left -= x.DurationNS
		} else {
			out.Samples = append(out.Samples, x)
		}
	}
	out.Span = &result.Span{LastDoneNS: max(left, 1), Bytes: sampleBytes(out.Samples)}
	return &out
}

// outlierMask marks the files, in the order of the step, that a rule removes.
// ok is false where they are too few for it.
func outlierMask(samples []result.Sample, rule string) (removed []bool, ok bool) {
	removed = make([]bool, len(samples))
	if rule == ruleFirst {
		if len(samples) >= 2 {
			removed[0] = true
		}
		return removed, len(samples) >= 2
	}
	excess := excessTimes(samples)
	if excess == nil {
		return nil, false
	}
	mid, scatter := median(excess), mad(excess)
	low, high := mid-stats.OutlierThreshold*scatter, mid+stats.OutlierThreshold*scatter
	if rule == ruleTukey {
		first, third := quantile(excess, 0.25), quantile(excess, 0.75)
		reach := 1.5 * (third - first)
		low, high, scatter = first-reach, third+reach, 1
	}
	// A file took no time
	if !finite(low, high) {
		return nil, false
	}
	for i, x := range excess {
		removed[i] = scatter > 0 && (x < low || x > high)
	}
	return removed, true
}

// reduce is a way without what makes no difference to the claim.
func (c *claimState) reduce(w way, head string) way {
	if !c.files {
		w.rule = ruleNone
	}
	if !c.rates {
		w.est = head
	}
	return w
}

// judgeWay judges all claims in one way, and adds the outcome to those to which
// it makes a difference.
func (s *runData) judgeWay(w way, specifications map[way]*runData, states []*claimState, out []result.Claim) {
	findings := make([]finding, len(states))
	for i, c := range states {
		if c == nil {
			continue
		}
		own := c.reduce(w, s.headlineName())
		f, ok := c.found[own]
		if !ok {
			run := specifications[way{own.rule, own.rounds, ""}]
			f = judge{s: run, est: own.est, strict: true}.assert(c.h.claim.Assert)
			c.found[own] = f
		}
		findings[i] = f
	}
	adjusted, _ := holm(findings)
	for i, c := range states {
		if c != nil && c.reduce(w, s.headlineName()) == w {
			c.addWay(&out[i], w, findings[i], adjusted[i])
		}
	}
}

// addWay adds the outcome of one way to a claim.
func (c *claimState) addWay(claim *result.Claim, w way, f finding, p float64) {
	if claim.Robustness == nil {
		claim.Robustness = &result.Robustness{Estimators: []string{}, Outliers: []string{}, Rounds: []string{},
			Odd: []result.Way{}}
	}
	r := claim.Robustness
	out := result.Way{Rounds: w.rounds, Verdict: f.verdict(p)}
	r.Rounds = appendUnique(r.Rounds, w.rounds)
	if c.rates {
		out.Estimator = w.est
		r.Estimators = appendUnique(r.Estimators, w.est)
	}
	if c.files {
		out.Outliers = w.rule
		r.Outliers = appendUnique(r.Outliers, w.rule)
	}
	if f.fails() {
		out.Verdict = result.NotMeasured
	} else if f.dir > 0 {
		r.Toward++
	}
	switch out.Verdict {
	case result.Holds:
		r.Holds++
	case result.DoesNotHold:
		r.DoesNotHold++
	case result.CannotTell:
		r.CannotTell++
	default:
		r.LeftOut++
	}
	// All, until they are summarized
	r.Odd = append(r.Odd, out)
}

// summarizeRobustness keeps the ways that are not as most, and describes the
// whole.
func summarizeRobustness(r *result.Robustness) {
	r.Most = result.NotMeasured
	most := 0
	for _, v := range []struct {
		verdict string
		n       int
	}{{result.Holds, r.Holds}, {result.DoesNotHold, r.DoesNotHold}, {result.CannotTell, r.CannotTell}} {
		if v.n > most {
			r.Most, most = v.verdict, v.n
		}
	}
	r.Odd = slices.DeleteFunc(r.Odd, func(w result.Way) bool { return w.Verdict == r.Most })
	r.Text = robustText(r)
}

// robustText describes how far a verdict depends on how the run is analysed.
func robustText(r *result.Robustness) string {
	n := r.Holds + r.DoesNotHold + r.CannotTell
	var text string
	switch {
	case n == 0:
		return wording.Text("robust.none")
	case n == 1:
		// There is one way to analyse it
		return ""
	case r.CannotTell == n:
		text = wording.Text("robust.undecided", n, r.Toward)
	default:
		text = wording.Text("robust.holds", r.Holds, n)
		if r.DoesNotHold > 0 && r.Holds > 0 {
			text += wording.Text("robust.does-not", r.DoesNotHold)
		}
		if r.CannotTell > 0 {
			text += wording.Text("robust.cannot", r.CannotTell)
		}
	}
	var odd []string
	for _, w := range r.Odd {
		if w.Verdict != result.NotMeasured {
			parts := slices.DeleteFunc([]string{w.Estimator, w.Outliers, w.Rounds}, func(t string) bool {
				return t == "" || t == ruleNone || t == roundsAll
			})
			// Of a claim that has only the choice of rounds
			odd = append(odd, cmp.Or(strings.Join(parts, " "), roundsAll))
		}
	}
	if len(odd) > 0 && len(odd) <= 3 {
		text = wording.Text("robust.otherwise", text, strings.Join(odd, "; "))
	}
	if r.LeftOut > 0 {
		text += wording.Text("robust.left-out", r.LeftOut)
	}
	return text
}
