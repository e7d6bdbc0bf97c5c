package analysis

import (
	"cmp"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// claimJudgement is one claim under every estimator that it is judged under.
type claimJudgement struct {
	claim plan.Claim
	// The headline first
	ests     []string
	findings []finding
	// P values after Holm, one an estimator
	adjusted []float64
	// False: of Apple's tools, which were not here
	applies bool

	// Whether estimators and outlier rules make a difference to it
	rates, files bool
	// In every way so far, which have no verdict here
	found  map[result.Way]finding
	robust *result.Robustness
}

// claims judges every claim of the plan. The error of all verdicts of the plan
// together is held at [family]: the p values of all claims that are judged on
// rounds are adjusted after Holm, separately under each estimator.
func (s *runData) claims(robust bool) []result.Claim {
	usesApple := s.usesApple()
	hs := mapped(s.p.Claims, func(c plan.Claim) *claimJudgement {
		h := &claimJudgement{claim: c, ests: s.estimators(c), applies: c.Scope != "apple" || usesApple}
		h.findings = mapped(h.ests, func(est string) finding {
			return judge{s: s, est: est, strict: true}.assert(c.Assert)
		})
		return h
	})
	// Over how many claims each was adjusted, under the headline
	tests := 0
	for k := range len(panel) + 1 {
		adjusted, n := holm(mapped(hs, func(h *claimJudgement) finding {
			if !h.applies {
				return finding{}
			}
			// A claim with one estimator is the same test under all of them
			return h.findings[min(k, len(h.ests)-1)]
		}))
		for i, h := range hs {
			if k < len(h.ests) {
				h.adjusted = append(h.adjusted, adjusted[i])
			}
		}
		if k == 0 {
			tests = n
		}
	}
	if robust {
		s.judgeRobustness(hs)
	}
	return mapped(hs, func(h *claimJudgement) result.Claim { return s.claimResult(h, tests) })
}

// usesApple reports whether all sessions measured Apple's own tools.
func (s *runData) usesApple() bool {
	isOther := func(ss result.Session) bool { return ss.Engine.Vendor != "Apple" }
	return len(s.r.Sessions) > 0 && !slices.ContainsFunc(s.r.Sessions, isOther)
}

// engineTitles names the engines of all sessions.
func (s *runData) engineTitles() string {
	titles := texts(s.r.Sessions, func(ss result.Session) string { return cmp.Or(ss.Engine.Title, ss.Engine.Name) })
	return cmp.Or(strings.Join(titles, " and "), wording.Text("no-engine"))
}

// headlineFirst are the estimators of [panel] after the headline.
func (s *runData) headlineFirst() []string {
	head := s.headlineName()
	return append([]string{head}, slices.DeleteFunc(slices.Clone(panel), func(e string) bool { return e == head })...)
}

// estimators are what a claim is judged under. The author's claims about rates
// of files are judged under the statistic that he names for all figures of the
// operands, or under all of [panel] if he names none; where the plan's headline
// is another, it is among them. Claims of ours are judged under the headline of
// the plan.
func (s *runData) estimators(c plan.Claim) []string {
	free := slices.DeleteFunc(s.operands(c.Assert), func(op plan.Operand) bool { return !isOpenRate(op) })
	if len(free) == 0 || c.By != "author" {
		return []string{s.headlineName()}
	}
	var names []string
	for _, op := range free {
		figures, why := s.figures(op)
		names = append(names, mapped(figures, func(f plan.Published) string { return f.Statistic })...)
		if why.fails() {
			names = append(names, "")
		}
	}
	if names = slices.Compact(names); len(names) == 1 && names[0] != "" {
		return names
	}
	return s.headlineFirst()
}

// isOpenRate reports whether an operand is a measured rate of files with no
// statistic of its own.
func isOpenRate(op plan.Operand) bool {
	return isPerFile(op.Quantity) && op.Statistic == "" && !op.Published
}

// claimResult is a claim with its verdict, its reason and its evidence.
func (s *runData) claimResult(h *claimJudgement, tests int) result.Claim {
	c, f := h.claim, h.findings[0]
	why := reason(f, h.adjusted[0], tests)
	out := result.Claim{ID: c.ID, Says: c.Says, By: c.By, Scope: c.Scope, Required: c.Require,
		Verdict: f.verdict(h.adjusted[0]), Evidence: s.evidence(h), Robustness: h.robust}
	switch {
	case !h.applies:
		// What was seen on an engine that the claim is not about
		out.Verdict, out.Here = result.NotMeasured, cmp.Or(f.saw.String(), why.String())
		why = wording.Say("reason.imitated", s.engineTitles())
	case len(h.ests) > 1 && f.missing == "":
		out.Verdict, why = overEstimators(h, out.Verdict, why)
	}
	out.Reason = why.String()
	d, isScaled := find(s.r.Departures, func(d result.Departure) bool { return d.Kind == "scale" })
	if isScaled && isDecided(out.Verdict) {
		// What does not grow with sizes weighs more in a small run, so that its
		// verdict is about small images.
		out.Reason = wording.Text("reason.scaled", out.Reason, d.Text)
	}
	return out
}

// overEstimators wants the same verdict under every estimator that the files
// allow. One that depends on the choice is undecided.
func overEstimators(h *claimJudgement, verdict string, why wording.Message) (string, wording.Message) {
	count := map[string][]string{}
	var left []string
	for i, f := range h.findings {
		if f.weak != "" && h.findings[0].weak == "" {
			left = append(left, h.ests[i])
			continue
		}
		v := f.verdict(h.adjusted[i])
		count[v] = append(count[v], h.ests[i])
	}
	total := len(h.ests) - len(left)
	var tail wording.Message
	if len(left) > 0 {
		tail = wording.Say("estimators.left", strings.Join(left, " and "))
	}
	names := ""
	for _, v := range []string{result.Holds, result.DoesNotHold, result.CannotTell} {
		if len(count[v]) > 0 {
			names += wording.Text("estimators."+v, strings.Join(count[v], ", "))
		}
	}
	switch {
	case len(count[verdict]) < total:
		return result.CannotTell, wording.Say("estimators.differ", len(count[result.Holds]), total, names, tail, why)
	case isDecided(verdict):
		return verdict, wording.Say("estimators.agree", why, tail, len(count[result.Holds]), total)
	}
	return verdict, wording.Say("estimators.undecided", why, tail)
}

// reason is what led to the verdict under one estimator.
func reason(f finding, p float64, tests int) wording.Message {
	if f.fails() {
		return wording.Say("text", cmp.Or(f.missing, f.weak))
	}
	var need, gap wording.Message
	if !f.need.IsZero() {
		need = wording.Say("reason.need", f.need)
	}
	if !f.gap.IsZero() && !(f.dir > 0 && f.p <= family && (!f.sampled || p <= family)) {
		gap = wording.Say("reason.gap", f.gap)
	}
	switch {
	case f.few && f.dir == 0:
		return wording.Say("reason.few", f.saw, need, gap, minRounds, f.per.name())
	case f.few:
		way := map[int]string{1: "that way", -1: "the other way"}[f.dir]
		return wording.Say("reason.few-seen", f.saw, need, way, minRounds, f.per.name())
	case f.dir != 0 && f.p <= family && f.sampled && p > family:
		return wording.Say("reason.holm", f.saw, need, gap, tests, wording.P(f.p), wording.P(p).Short())
	}
	return wording.Say("reason", f.saw, need, gap)
}

// evidence lists the numbers of a verdict, those of the other estimators in
// short.
func (s *runData) evidence(h *claimJudgement) []string {
	f := h.findings[0]
	out := append([]string{}, texts(f.evidence, wording.Message.String)...)
	if h.applies && f.tested() {
		out = append(out, wording.Text("evidence.holm", wording.P(h.adjusted[0])))
	}
	for i, f := range h.findings[1:] {
		text := f.saw.String()
		if f.fails() {
			text = wording.Join(f.missing, f.weak)
		}
		out = append(out, wording.Text("of-case", h.ests[i+1], text))
	}
	return out
}

// JudgePublished judges the claims by the author on the author's own published
// figures. A claim that does not hold there is misread, and its plan is wrong.
//
// A printed figure means an interval: exact ones for a point, "below",
// "above" and ranges for all of their values, which have to satisfy the claim
// together. "about x" means x ± 5 %, and one value in it is enough. A claim
// about a figure that the source does not print is not_measured, with a reason
// that names the figure.
func JudgePublished(p *plan.Plan) []result.Claim {
	s := &runData{p: p, r: &result.Result{}}
	var out []result.Claim
	for _, c := range p.Claims {
		if c.By == "author" {
			h := claimJudgement{claim: c, ests: []string{""}, adjusted: []float64{0}, applies: true}
			h.findings = []finding{judge{s: s, author: true}.assert(c.Assert)}
			out = append(out, s.claimResult(&h, 0))
		}
	}
	return out
}

// tests are the kinds of tests of claims, by their names in plans.
var tests map[string]func(judge, plan.Assert) finding

// tests of tests refer to the table
func init() {
	tests = map[string]func(judge, plan.Assert) finding{
		"ratio":       func(j judge, a plan.Assert) finding { return j.pair(a, judgeRatio) },
		"difference":  func(j judge, a plan.Assert) finding { return j.pair(a, judgeDifference) },
		"equal":       judge.equal,
		"bound":       judge.bound,
		"order":       judge.order,
		"rank":        judge.rank,
		"extreme":     onAxis(judge.extreme),
		"trend":       onAxis(judge.trend),
		"spread":      onAxis(judge.spread),
		"coefficient": judge.coefficient,
		"prediction":  judge.prediction,
		"outcome":     judge.outcome,
		"all":         func(j judge, a plan.Assert) finding { return combine(mapped(a.Parts, j.assert), 1) },
		"any":         func(j judge, a plan.Assert) finding { return combine(mapped(a.Parts, j.assert), -1) },
	}
}

// assert evaluates one test.
func (j judge) assert(a plan.Assert) finding { return tests[a.Kind](j, a) }

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

// judgeRobustness judges every claim that was judged in all other ways that are
// defensible: each estimator of [panel], each outlier rule, with and without
// the first round. Within each way the claims are adjusted after Holm as they
// are for the verdict. A way that the files or rounds do not allow is counted
// as left out, never as agreeing.
func (s *runData) judgeRobustness(hs []*claimJudgement) {
	hs = slices.DeleteFunc(slices.Clone(hs), func(h *claimJudgement) bool {
		return !h.applies || h.findings[0].missing != ""
	})
	isOfFiles := false
	for _, h := range hs {
		none := []string{}
		h.robust = &result.Robustness{Estimators: none, Outliers: none, Rounds: none, Odd: []result.Way{}}
		h.found, h.files = map[result.Way]finding{}, s.isOfFiles(h.claim.Assert)
		h.rates = slices.ContainsFunc(s.operands(h.claim.Assert), isOpenRate)
		isOfFiles = isOfFiles || h.files
	}
	first := s.firstRounds()
	for _, rule := range outlierRules {
		if len(hs) == 0 || rule != ruleNone && !isOfFiles {
			continue
		}
		run := s.mapSteps(func(st *result.Step) *result.Step { return dropOutliers(st, rule) })
		run.judgeWays(rule, roundsAll, hs)
		if first != nil {
			run.mapSteps(func(st *result.Step) *result.Step {
				if first[st.Round] {
					return nil
				}
				return st
			}).judgeWays(rule, roundsLater, hs)
		}
	}
	for _, h := range hs {
		summarizeRobustness(h.robust)
	}
}

// judgeWays judges all claims by a run with the files and rounds of some ways,
// under every estimator, and adds the outcomes to those to which the way makes
// a difference. A way that makes none to a claim is one that came before.
func (s *runData) judgeWays(rule, rounds string, hs []*claimJudgement) {
	for _, est := range s.headlineFirst() {
		findings, ways := make([]finding, len(hs)), make([]result.Way, len(hs))
		isKnown := make([]bool, len(hs))
		for i, h := range hs {
			w := result.Way{Rounds: rounds}
			if h.files {
				w.Outliers = rule
			}
			if h.rates {
				w.Estimator = est
			}
			ways[i] = w
			if findings[i], isKnown[i] = h.found[w]; !isKnown[i] {
				findings[i] = judge{s: s, est: est, strict: true}.assert(h.claim.Assert)
				h.found[w] = findings[i]
			}
		}
		adjusted, _ := holm(findings)
		for i, h := range hs {
			if isKnown[i] {
				continue
			}
			w, f, r := ways[i], findings[i], h.robust
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
	samples := slices.DeleteFunc(inOrderOfStep(st), func(x result.Sample) bool { return x.Stopped })
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
