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
func (s *runData) claims() []result.Claim {
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
		Verdict: f.verdict(h.adjusted[0]), Evidence: s.evidence(h)}
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
