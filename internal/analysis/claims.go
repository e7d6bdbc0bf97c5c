package analysis

import (
	"cmp"
	"slices"
	"strings"

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
}

// claims judges every claim of the plan. The error of all verdicts of the plan
// together is held at [family]: the p values of all claims that are judged on
// rounds are adjusted after Holm, separately under each estimator.
func (s *runData) claims(robust bool) []result.Claim {
	hs := make([]*claimJudgement, len(s.p.Claims))
	for i, c := range s.p.Claims {
		h := &claimJudgement{claim: c, ests: s.estimators(c), applies: c.Scope != "apple" || s.usesApple()}
		for _, e := range h.ests {
			h.findings = append(h.findings, judge{s: s, est: e, strict: true}.assert(c.Assert))
		}
		hs[i] = h
	}
	tests := adjust(hs)
	out := make([]result.Claim, len(hs))
	for i, h := range hs {
		out[i] = s.claimResult(h, tests)
	}
	if robust {
		s.judgeRobustness(hs, out)
	}
	return out
}

// headlineFirst are the estimators of [panel] after the headline.
func (s *runData) headlineFirst() []string {
	head := s.headlineName()
	return append([]string{head}, slices.DeleteFunc(slices.Clone(panel), func(e string) bool { return e == head })...)
}

// estimators are what a claim is judged under. The author's claims about rates
// of files are judged under the statistic that he names, or under all of
// [panel] if he names none; where the plan's headline is another, it is among
// them. Claims of ours are judged under the headline of the plan.
func (s *runData) estimators(c plan.Claim) []string {
	free := slices.DeleteFunc(s.operands(c.Assert), func(op plan.Operand) bool { return !isOpenRate(op) })
	if len(free) == 0 || c.By != "author" {
		return []string{s.headlineName()}
	}
	if named := s.namedStatistic(free); named != "" {
		return []string{named}
	}
	return s.headlineFirst()
}

// isOpenRate reports whether an operand is a measured rate of files with no
// statistic of its own.
func isOpenRate(op plan.Operand) bool {
	return isPerFile(op.Quantity) && op.Statistic == "" && !op.Published
}

// namedStatistic is the one statistic that the source names for all figures of
// the operands, "" if it is silent about one or they differ.
func (s *runData) namedStatistic(ops []plan.Operand) string {
	var names []string
	for _, op := range ops {
		figures, why := s.figures(op)
		if why.fails() {
			return ""
		}
		for _, f := range figures {
			names = append(names, f.Statistic)
		}
	}
	if names = slices.Compact(names); len(names) != 1 {
		return ""
	}
	return names[0]
}

// adjust fills in the p values after Holm, and returns over how many claims. A
// claim with one estimator is the same test under all of them.
func adjust(hs []*claimJudgement) (tests int) {
	for k := range len(panel) + 1 {
		list := make([]finding, len(hs))
		for i, h := range hs {
			if h.applies {
				list[i] = h.findings[min(k, len(h.ests)-1)]
			}
		}
		adjusted, n := holm(list)
		for i, h := range hs {
			if k < len(h.ests) {
				h.adjusted = append(h.adjusted, adjusted[i])
			}
		}
		if k == 0 {
			tests = n
		}
	}
	return tests
}

// claimResult is a claim with its verdict, its reason and its evidence.
func (s *runData) claimResult(h *claimJudgement, tests int) result.Claim {
	c, f := h.claim, h.findings[0]
	why := reason(f, h.adjusted[0], tests)
	out := result.Claim{ID: c.ID, Says: c.Says, By: c.By, Scope: c.Scope, Required: c.Require,
		Verdict: f.verdict(h.adjusted[0]), Evidence: s.evidence(h)}
	switch {
	case !h.applies:
		// What was seen on an engine that the claim is not about
		out.Verdict, out.Here = result.NotMeasured, cmp.Or(f.saw.String(), why.String())
		why = wording.Say("reason.imitated", s.engineTitle())
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
	if len(count[verdict]) == total {
		key := "estimators.undecided"
		if isDecided(verdict) {
			key = "estimators.agree"
		}
		return verdict, wording.Say(key, why, tail, len(count[result.Holds]), total)
	}
	names := ""
	for _, v := range []string{result.Holds, result.DoesNotHold, result.CannotTell} {
		if len(count[v]) > 0 {
			names += wording.Text("estimators."+v, strings.Join(count[v], ", "))
		}
	}
	return result.CannotTell, wording.Say("estimators.differ", len(count[result.Holds]), total, names, tail, why)
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
	if !f.gap.IsZero() {
		gap = wording.Say("reason.gap", f.gap)
	}
	isHolm := f.sampled && p > family
	switch {
	case f.few && f.dir > 0:
		return wording.Say("reason.few-toward", f.saw, need, minRounds, f.per.name())
	case f.few && f.dir < 0:
		return wording.Say("reason.few-away", f.saw, need, minRounds, f.per.name())
	case f.few:
		return wording.Say("reason.few", f.saw, need, gap, minRounds, f.per.name())
	case f.dir != 0 && f.p <= family && isHolm:
		return wording.Say("reason.holm", f.saw, need, gap, tests, wording.P(f.p), wording.P(p).Short())
	case f.dir > 0 && f.p <= family:
		gap = wording.Message{}
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
	for i := 1; i < len(h.ests); i++ {
		f := h.findings[i]
		text := f.saw.String()
		if f.fails() {
			text = wording.Join(f.missing, f.weak)
		}
		out = append(out, wording.Text("of-case", h.ests[i], text))
	}
	kinds := texts(s.r.Departures, func(d result.Departure) string {
		if !slices.Contains(incomparable, d.Kind) {
			return ""
		}
		return d.Kind
	})
	if h.claim.By == "author" && len(kinds) > 0 {
		out = append(out, wording.Text("evidence.deviations", strings.Join(kinds, ", ")))
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
	s := &runData{p: p}
	var out []result.Claim
	for _, c := range p.Claims {
		if c.By != "author" {
			continue
		}
		f := judge{s: s, est: s.headlineName(), author: true}.assert(c.Assert)
		evidence := append([]string{}, texts(f.evidence, wording.Message.String)...)
		out = append(out, result.Claim{ID: c.ID, Says: c.Says, By: c.By, Scope: c.Scope,
			Verdict: f.verdict(0), Reason: reason(f, 0, 0).String(), Evidence: evidence})
	}
	return out
}
