package analysis

import (
	"slices"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
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

// claimState is a claim with what has been found of it in every way so far.
type claimState struct {
	assert plan.Assert
	out    *result.Robustness
	// Whether estimators and outlier rules make a difference to it
	rates, files bool
	// Without verdicts
	found map[result.Way]finding
}

// judgeRobustness judges every claim that was judged in all other ways that are
// defensible: each estimator of [panel], each outlier rule, with and without
// the first round. Within each way the claims are adjusted after Holm as they
// are for the verdict. A way that the files or rounds do not allow is counted
// as left out, never as agreeing.
func (s *runData) judgeRobustness(hs []*claimJudgement, out []result.Claim) {
	var states []*claimState
	for i, h := range hs {
		if h.applies && h.findings[0].missing == "" {
			out[i].Robustness = &result.Robustness{Estimators: []string{}, Outliers: []string{}, Rounds: []string{},
				Odd: []result.Way{}}
			states = append(states, &claimState{assert: h.claim.Assert, out: out[i].Robustness,
				found: map[result.Way]finding{}, files: s.isOfFiles(h.claim.Assert),
				rates: slices.ContainsFunc(s.operands(h.claim.Assert), isOpenRate)})
		}
	}
	first := s.firstRounds()
	isOfFiles := slices.ContainsFunc(states, func(c *claimState) bool { return c.files })
	for _, rule := range outlierRules {
		if len(states) == 0 || rule != ruleNone && !isOfFiles {
			continue
		}
		run := s.mapSteps(func(st *result.Step) *result.Step { return dropOutliers(st, rule) })
		run.judgeWays(rule, roundsAll, states)
		if first != nil {
			run.mapSteps(func(st *result.Step) *result.Step {
				if first[st.Round] {
					return nil
				}
				return st
			}).judgeWays(rule, roundsLater, states)
		}
	}
	for _, c := range states {
		summarizeRobustness(c.out)
	}
}

// judgeWays judges all claims by a run with the files and rounds of some ways,
// under every estimator, and adds the outcomes to those to which the way makes
// a difference. A way that makes none to a claim is one that came before.
func (s *runData) judgeWays(rule, rounds string, states []*claimState) {
	for _, est := range s.headlineFirst() {
		findings, ways := make([]finding, len(states)), make([]result.Way, len(states))
		isKnown := make([]bool, len(states))
		for i, c := range states {
			w := result.Way{Rounds: rounds}
			if c.files {
				w.Outliers = rule
			}
			if c.rates {
				w.Estimator = est
			}
			ways[i] = w
			if findings[i], isKnown[i] = c.found[w]; !isKnown[i] {
				findings[i] = judge{s: s, est: est, strict: true}.assert(c.assert)
				c.found[w] = findings[i]
			}
		}
		adjusted, _ := holm(findings)
		for i, c := range states {
			if isKnown[i] {
				continue
			}
			w, f, r := ways[i], findings[i], c.out
			w.Verdict = f.verdict(adjusted[i])
			r.Rounds, r.Estimators = appendUnique(r.Rounds, rounds), appendUnique(r.Estimators, w.Estimator)
			r.Outliers = appendUnique(r.Outliers, w.Outliers)
			if f.fails() {
				w.Verdict = result.NotMeasured
			} else if f.dir > 0 {
				r.Toward++
			}
			// All, until they are summarized
			r.Odd = append(r.Odd, w)
		}
	}
}

// summarizeRobustness counts the ways, keeps those that are not as most, and
// describes how far a verdict depends on how the run is analysed.
func summarizeRobustness(r *result.Robustness) {
	n := map[string]int{}
	for _, w := range r.Odd {
		n[w.Verdict]++
	}
	r.Holds, r.DoesNotHold, r.CannotTell = n[result.Holds], n[result.DoesNotHold], n[result.CannotTell]
	r.LeftOut = n[result.NotMeasured]
	verdicts := []string{result.Holds, result.DoesNotHold, result.CannotTell}
	r.Most = slices.MaxFunc(verdicts, func(a, b string) int { return n[a] - n[b] })
	if n[r.Most] == 0 {
		r.Most = result.NotMeasured
	}
	r.Odd = slices.DeleteFunc(r.Odd, func(w result.Way) bool { return w.Verdict == r.Most })
	all := r.Holds + r.DoesNotHold + r.CannotTell
	if all == 0 {
		r.Text = wording.Text("robust.none")
	}
	if all < 2 { // there is at most one way to analyse it
		return
	}
	toward := r.Toward
	if r.CannotTell < all {
		toward = 0
	}
	r.Text = wording.Text("robust.holds", r.Holds, all)
	for _, more := range []struct {
		key string
		n   int
	}{{"robust.does-not", r.DoesNotHold}, {"robust.cannot", r.CannotTell}, {"robust.toward", toward},
		{"robust.left-out", r.LeftOut}} {
		if more.n > 0 {
			r.Text += wording.Text(more.key, more.n)
		}
	}
}

// isOfFiles reports whether a test is about files that one worker timed, so
// that there are files to leave out.
func (s *runData) isOfFiles(a plan.Assert) bool {
	var steps []*result.Step
	for _, op := range s.operands(a) {
		if !op.Published && isPerFile(op.Quantity) {
			cells, _ := s.cells(op.Quantity, op.Where, false)
			for _, c := range cells {
				steps = append(steps, c.steps()...)
			}
		}
	}
	return len(steps) > 0 && !slices.ContainsFunc(steps, func(st *result.Step) bool { return workers(st) > 1 })
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
func (s *runData) mapSteps(change func(*result.Step) *result.Step) *runData {
	out := *s
	out.cases = nil
	for _, sub := range s.cases {
		own := *sub
		own.steps = map[stepKey][]*result.Step{}
		for k, steps := range sub.steps {
			for _, st := range steps {
				if st = change(st); st != nil {
					own.steps[k] = append(own.steps[k], st)
				}
			}
		}
		own.order = slices.DeleteFunc(slices.Clone(sub.order), func(k stepKey) bool { return len(own.steps[k]) == 0 })
		out.cases = append(out.cases, &own)
	}
	return &out
}

// dropOutliers is a step without the files that a rule removes, and without any
// where the rule cannot be applied. The span loses the time of those files.
// Rates of several workers keep theirs.
func dropOutliers(st *result.Step, rule string) *result.Step {
	if rule == ruleNone || !isPerFile(plan.Quantity(st.Do)) || workers(st) > 1 {
		return st
	}
	out := *st
	out.Samples, out.Span = nil, nil
	samples := inOrderOfStep(st)
	removed := outlierMask(samples, rule)
	if removed == nil {
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

// outlierMask marks the files, in the order of the step, that a rule removes;
// nil where they are too few for it.
func outlierMask(samples []result.Sample, rule string) []bool {
	removed, excess := make([]bool, len(samples)), excessTimes(samples)
	switch {
	case rule == ruleFirst && len(samples) >= 2:
		removed[0] = true
		return removed
	case rule == ruleFirst, excess == nil:
		return nil
	}
	mid, reach := median(excess), stats.OutlierThreshold*mad(excess)
	low, high := mid-reach, mid+reach
	if rule == ruleTukey {
		first, third := quantile(excess, 0.25), quantile(excess, 0.75)
		low, high = first-1.5*(third-first), third+1.5*(third-first)
	}
	// A file took no time
	if !finite(low, high) {
		return nil
	}
	for i, x := range excess {
		removed[i] = (rule == ruleTukey || reach > 0) && (x < low || x > high)
	}
	return removed
}
