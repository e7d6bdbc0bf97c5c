package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
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

// specification is one defensible way to analyse the run, but for the estimator.
type specification struct {
	rule, rounds string
	s            *runData
}

// judgeRobustness judges every claim that was judged in all the ways that could be
// defended as well: each estimator of [panel], each outlier rule, with and
// without the first round. Within each way the claims are adjusted after Holm as
// they are for the verdict. A way that the files or rounds do not allow is
// counted as left out, never as agreeing.
func (s *runData) judgeRobustness(hs []*claimJudgement, out []result.Claim) {
	cs := make([]*claimState, len(hs))
	files := false
	for i, h := range hs {
		if h.applies && h.findings[0].missing == "" {
			cs[i] = &claimState{h: h, rates: s.anyEstimator(h.claim.Assert), files: s.ofFiles(h.claim.Assert), found: map[[3]string]finding{}}
			files = files || cs[i].files
		}
	}
	if !slices.ContainsFunc(cs, func(c *claimState) bool { return c != nil }) {
		return
	}
	worlds := s.specifications(files)
	for _, w := range worlds {
		for _, est := range s.estimatorOrder() {
			s.judgeIn(w, worlds, est, cs, out)
		}
	}
	for i := range out {
		if r := out[i].Robustness; r != nil {
			summarizeRobustness(r)
		}
	}
}

// estimatorOrder are the estimators of the multiverse, the headline first.
func (s *runData) estimatorOrder() []string {
	out := []string{s.headlineName()}
	for _, e := range panel {
		if e != out[0] {
			out = append(out, e)
		}
	}
	return out
}

// specifications makes the studies of all rounds, and of all rules if some claim is about files.
func (s *runData) specifications(files bool) (out []specification) {
	for _, rule := range outlierRules {
		if rule != ruleNone && !files {
			continue
		}
		filtered := s.withOutlierRule(rule)
		out = append(out, specification{rule, roundsAll, filtered})
		if first := s.firstRounds(); first != nil {
			out = append(out, specification{rule, roundsLater, filtered.withoutRounds(first)})
		}
	}
	return out
}

// ofFiles reports whether a test rests on files that one worker timed, so that
// there are files to leave out.
func (s *runData) ofFiles(a plan.Assert) bool {
	some := false
	for _, op := range s.operands(a) {
		if op.Published || !perFile(op.Quantity) {
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

// anyEstimator reports whether the estimator of rates is open.
func (s *runData) anyEstimator(a plan.Assert) bool {
	return slices.ContainsFunc(s.operands(a), func(op plan.Operand) bool {
		return perFile(op.Quantity) && op.Statistic == "" && !op.Published
	})
}

// firstRounds are the rounds that a careful reader might leave out as warming
// up: the first, or the first of every pooled run. It is nil where too few would be left.
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

// mapSteps is the study with its subjects' steps replaced.
func (s *runData) mapSteps(change func(stepKey, *result.Step) *result.Step) *runData {
	out := *s
	out.cases = nil
	for _, sub := range s.cases {
		own := *sub
		own.steps, own.memo, own.order = map[stepKey][]*result.Step{}, map[memoKey][]roundValue{}, nil
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

func (s *runData) withoutRounds(rounds map[int]bool) *runData {
	return s.mapSteps(func(_ stepKey, st *result.Step) *result.Step {
		if rounds[st.Round] {
			return nil
		}
		return st
	})
}

// withOutlierRule is the study with the files removed that a rule removes.
func (s *runData) withOutlierRule(rule string) *runData {
	if rule == ruleNone {
		return s
	}
	return s.mapSteps(func(k stepKey, st *result.Step) *result.Step {
		if !perFile(plan.Quantity(k.do)) || workers(st) > 1 {
			return st
		}
		return dropOutliers(st, rule)
	})
}

// dropOutliers is a step without the files that the rule removes, and without any
// where the rule cannot be applied. The span loses the time of those files.
func dropOutliers(st *result.Step, rule string) *result.Step {
	out := *st
	out.Samples, out.Span = nil, nil
	samples := slices.Clone(st.Samples)
	slices.SortFunc(samples, func(a, b result.Sample) int { return a.Order - b.Order })
	gone, ok := outlierMask(samples, rule)
	if !ok {
		return &out
	}
	left := spanNS(st)
	for i, x := range samples {
		if gone[i] {
			left -= x.DurationNS
			continue
		}
		out.Samples = append(out.Samples, x)
	}
	out.Span = &result.Span{LastDoneNS: max(left, 1), Bytes: sampleBytes(out.Samples)}
	return &out
}

// outlierMask marks the files, in the order of the step, a rule removes. ok
// is false where they are too few for it.
func outlierMask(samples []result.Sample, rule string) (gone []bool, ok bool) {
	gone = make([]bool, len(samples))
	if rule == ruleFirst {
		if len(samples) < 2 {
			return nil, false
		}
		gone[0] = true
		return gone, true
	}
	excess := excessTimes(samples)
	if excess == nil {
		return nil, false
	}
	if rule == ruleTukey {
		low, errLow := stats.Quantile(excess, 0.25)
		high, errHigh := stats.Quantile(excess, 0.75)
		if errLow != nil || errHigh != nil {
			return nil, false
		}
		reach := 1.5 * (high - low)
		for i, x := range excess {
			gone[i] = x < low-reach || x > high+reach
		}
		return gone, true
	}
	mid, errMid := stats.Median(excess)
	mad, errMAD := stats.MAD(excess)
	if errMid != nil || errMAD != nil {
		return nil, false
	}
	for i, x := range excess {
		gone[i] = mad > 0 && max(x-mid, mid-x) > stats.OutlierThreshold*mad
	}
	return gone, true
}

// claimState is a claim with what has been found of it in every way so far.
type claimState struct {
	h            *claimJudgement
	rates, files bool // whether estimators and outlier rules make a difference to it
	found        map[[3]string]finding
}

// reduceWay reduces a way to what makes a difference to the claim; own reports whether
// that is this very way.
func (c *claimState) reduceWay(w specification, est, head string) (rule, by string, own bool) {
	rule, by = w.rule, est
	if !c.files {
		rule = ruleNone
	}
	if !c.rates {
		by = head
	}
	return rule, by, rule == w.rule && by == est
}

// judgeIn judges all claims in one universe under one estimator.
func (s *runData) judgeIn(w specification, worlds []specification, est string, cs []*claimState, out []result.Claim) {
	var ps []float64
	at := make([]int, len(cs)) // place among the tests, from 1
	findings := make([]finding, len(cs))
	owns := make([]bool, len(cs))
	for i, c := range cs {
		if c == nil {
			continue
		}
		rule, by, own := c.reduceWay(w, est, s.headlineName())
		key := [3]string{rule, w.rounds, by}
		f, ok := c.found[key]
		if !ok {
			k := slices.IndexFunc(worlds, func(u specification) bool { return u.rule == rule && u.rounds == w.rounds })
			f = judge{s: worlds[k].s, est: by, strict: true}.assert(c.h.claim.Assert)
			c.found[key] = f
		}
		findings[i], owns[i] = f, own
		if f.sampled && !f.few && f.missing == "" && f.weak == "" {
			ps = append(ps, f.p)
			at[i] = len(ps)
		}
	}
	adjusted, err := stats.Holm(ps)
	for i, c := range cs {
		if c == nil || !owns[i] {
			continue
		}
		p := 0.0
		if at[i] > 0 {
			if p = 1; err == nil {
				p = adjusted[at[i]-1]
			}
		}
		addWay(&out[i], w, est, findings[i], p, c.rates, c.files)
	}
}

// addWay adds the outcome of one way to a claim.
func addWay(c *result.Claim, w specification, est string, f finding, p float64, rates, files bool) {
	if c.Robustness == nil {
		c.Robustness = &result.Robustness{Estimators: []string{}, Outliers: []string{}, Rounds: []string{}, Odd: []result.Way{}}
	}
	r := c.Robustness
	way := result.Way{Rounds: w.rounds, Verdict: verdictOf(f, p)}
	r.Rounds = appendUnique(r.Rounds, w.rounds)
	if rates {
		way.Estimator = est
		r.Estimators = appendUnique(r.Estimators, est)
	}
	if files {
		way.Outliers = w.rule
		r.Outliers = appendUnique(r.Outliers, w.rule)
	}
	if f.missing != "" || f.weak != "" {
		way.Verdict = result.NotMeasured
	} else if f.dir > 0 {
		r.Toward++
	}
	switch way.Verdict {
	case result.Holds:
		r.Holds++
	case result.DoesNotHold:
		r.DoesNotHold++
	case result.CannotTell:
		r.CannotTell++
	default:
		r.LeftOut++
	}
	r.Odd = append(r.Odd, way) // all, until settle
}

// summarizeRobustness keeps the ways that are not as most, and words the whole.
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

// robustText words how far a verdict depends on how the run is analysed.
func robustText(r *result.Robustness) string {
	n := r.Holds + r.DoesNotHold + r.CannotTell
	var text string
	switch {
	case n == 0:
		return "no other analysis can be had from these files and rounds"
	case n == 1:
		return "" // there is one way to analyse it
	case r.CannotTell == n:
		text = fmt.Sprintf("cannot be told in any of %d analyses (estimators and rules on outliers); %d of them point towards the claim", n, r.Toward)
	default:
		text = fmt.Sprintf("holds in %d of %d analyses", r.Holds, n)
		if r.DoesNotHold > 0 && r.Holds > 0 {
			text += fmt.Sprintf(", does not in %d", r.DoesNotHold)
		}
		if r.CannotTell > 0 {
			text += fmt.Sprintf(", cannot be told in %d", r.CannotTell)
		}
	}
	if odd := minority(r); odd != "" {
		text += " (" + odd + ")"
	}
	if r.LeftOut > 0 {
		text += fmt.Sprintf("; %d more take other files or rounds than these", r.LeftOut)
	}
	return text
}

// minority names the ways that are not as most, if they are few.
func minority(r *result.Robustness) string {
	var odd []string
	for _, w := range r.Odd {
		if w.Verdict == result.NotMeasured {
			continue
		}
		parts := slices.DeleteFunc([]string{w.Estimator, w.Outliers, w.Rounds}, func(t string) bool {
			return t == "" || t == ruleNone || t == roundsAll
		})
		odd = append(odd, cmp.Or(strings.Join(parts, " "), roundsAll)) // of a claim that has only the choice of rounds
	}
	if len(odd) == 0 || len(odd) > 3 {
		return ""
	}
	return "otherwise: " + strings.Join(odd, "; ")
}
