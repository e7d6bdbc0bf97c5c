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

// headlineName is the estimator to quote: the plan's, or the aggregate.
func (s *runData) headlineName() string { return cmp.Or(s.p.Run.Estimator, aggregate) }

// claimJudgement is one claim under every estimator that it is judged under.
type claimJudgement struct {
	claim    plan.Claim
	ests     []string // the headline first
	findings []finding
	adjusted []float64 // p values after Holm, one an estimator
	applies  bool      // false: of Apple's tools, which were not here
}

// claims judges every claim of the plan. The error of all verdicts of the plan
// together is held at [family]: the p values of all claims that are judged on
// rounds are adjusted after Holm, separately under each estimator.
func (s *runData) claims() []result.Claim {
	hs := make([]*claimJudgement, len(s.p.Claims))
	for i, c := range s.p.Claims {
		h := &claimJudgement{claim: c, ests: s.estimators(c), applies: c.Scope != "apple" || s.apple()}
		for _, e := range h.ests {
			h.findings = append(h.findings, judge{s: s, est: e, strict: true}.assert(c.Assert))
		}
		h.adjusted = make([]float64, len(h.ests))
		hs[i] = h
	}
	tests := adjust(hs)
	out := make([]result.Claim, 0, len(hs))
	for _, h := range hs {
		out = append(out, s.verdict(h, tests))
	}
	if s.robust {
		s.judgeRobustness(hs, out)
	}
	return out
}

// estimators are what a claim is judged under. The author's claims about rates
// of files are judged under the statistic that he names, or under all of
// [panel] if he names none; where the plan's headline is another, it is among
// them. Claims of ours are judged under the headline of the plan.
func (s *runData) estimators(c plan.Claim) []string {
	head := s.headlineName()
	free := slices.DeleteFunc(s.operands(c.Assert), func(op plan.Operand) bool {
		return !perFile(op.Quantity) || op.Statistic != "" || op.Published
	})
	if len(free) == 0 || c.By != "author" {
		return []string{head}
	}
	if named := s.namedStatistic(free); named != "" {
		return []string{named}
	}
	out := []string{head}
	for _, e := range panel {
		if e != head {
			out = append(out, e)
		}
	}
	return out
}

// namedStatistic is the one statistic that the source names for all figures of
// the operands, "" if it is silent about one or they differ.
func (s *runData) namedStatistic(ops []plan.Operand) string {
	name := ""
	for _, op := range ops {
		figures, why := s.figures(op)
		if why.missing != "" || why.weak != "" {
			return ""
		}
		for _, f := range figures {
			if f.Statistic == "" || name != "" && f.Statistic != name {
				return ""
			}
			name = f.Statistic
		}
	}
	return name
}

// adjust fills in the p values after Holm, and returns over how many claims.
func adjust(hs []*claimJudgement) (tests int) {
	for k := range len(panel) + 1 {
		var ps []float64
		var of []*claimJudgement
		for _, h := range hs {
			i := min(k, len(h.ests)-1) // a claim with one estimator is the same test under all of them
			if f := h.findings[i]; h.applies && f.sampled && !f.few && f.missing == "" && f.weak == "" {
				ps, of = append(ps, f.p), append(of, h)
			}
		}
		adjusted, err := stats.Holm(ps)
		for i, h := range of {
			if k >= len(h.ests) {
				continue
			}
			if h.adjusted[k] = 1; err == nil {
				h.adjusted[k] = adjusted[i]
			}
		}
		if k == 0 {
			tests = len(ps)
		}
	}
	return tests
}

// verdictOf is the verdict of one finding.
func verdictOf(f finding, p float64) string {
	switch {
	case f.missing != "":
		return result.NotMeasured
	case f.weak != "" || f.few || f.dir == 0 || f.sampled && p > family:
		return result.CannotTell
	case f.dir > 0:
		return result.Holds
	}
	return result.DoesNotHold
}

// verdict words the outcome of a hearing.
func (s *runData) verdict(h *claimJudgement, tests int) result.Claim {
	c, f := h.claim, h.findings[0]
	out := result.Claim{ID: c.ID, Says: c.Says, By: c.By, Scope: c.Scope, Verdict: verdictOf(f, h.adjusted[0]),
		Reason: reason(f, h.adjusted[0], tests), Evidence: s.evidence(h), Required: c.Require}
	if !h.applies {
		out.Verdict, out.Here = result.NotMeasured, seenHere(f, out.Reason)
		out.Reason = fmt.Sprintf("this engine imitates it: the claim is about Apple's own tools, and this run measured %s", s.engineTitle())
		return out
	}
	if len(h.ests) > 1 && f.missing == "" {
		out.Verdict, out.Reason = overEstimators(h, out.Verdict, out.Reason)
	}
	if out.Verdict == result.Holds || out.Verdict == result.DoesNotHold {
		out.Reason += s.scaledText()
	}
	return out
}

// scaledText reminds of sizes that are not the plan's: what does not grow with them weighs more in a small run, so that
// its verdict is about small images.
func (s *runData) scaledText() string {
	for _, d := range s.r.Departures {
		if d.Kind == "scale" {
			return "; seen with " + d.Text
		}
	}
	return ""
}

// seenHere is what was seen on an engine that the claim does not speak of.
func seenHere(f finding, reason string) string {
	switch {
	case f.saw != "":
		return f.saw
	case f.missing != "":
		return "nothing, as " + reason
	}
	return reason
}

// overEstimators wants the same verdict under every estimator that the files
// allow. One that depends on the choice is none.
func overEstimators(h *claimJudgement, verdict, why string) (string, string) {
	count := map[string][]string{}
	var left []string
	for i, f := range h.findings {
		if f.weak != "" && h.findings[0].weak == "" {
			left = append(left, h.ests[i])
			continue
		}
		v := verdictOf(f, h.adjusted[i])
		count[v] = append(count[v], h.ests[i])
	}
	total := len(h.ests) - len(left)
	tail := ""
	if len(left) > 0 {
		tail = fmt.Sprintf("; %s cannot be had from these files", strings.Join(left, " and "))
	}
	if len(count[verdict]) == total {
		switch verdict {
		case result.Holds:
			return verdict, fmt.Sprintf("%s; it holds under %d of %d estimators of the rate%s", why, total, total, tail)
		case result.DoesNotHold:
			return verdict, fmt.Sprintf("%s; it holds under 0 of %d estimators of the rate%s", why, total, tail)
		}
		return verdict, why + tail
	}
	text := fmt.Sprintf("estimator: the claim holds under %d of %d estimators of the rate", len(count[result.Holds]), total)
	for _, v := range []struct{ verdict, says string }{{result.Holds, "holds under"}, {result.DoesNotHold, "does not under"},
		{result.CannotTell, "cannot be told under"}} {
		if names := count[v.verdict]; len(names) > 0 {
			text += fmt.Sprintf("; %s %s", v.says, strings.Join(names, ", "))
		}
	}
	return result.CannotTell, text + tail + ", and the source does not say which one it used; " + why
}

// reason writes in words what led to the verdict under one estimator.
func reason(f finding, p float64, tests int) string {
	needs := ""
	if f.need != "" {
		needs = ": the claim needs " + f.need
	}
	gap := ""
	if f.gap != "" {
		gap = ", " + f.gap
	}
	switch {
	case f.missing != "":
		return f.missing
	case f.weak != "":
		return f.weak
	case f.few && f.dir > 0:
		return fmt.Sprintf("%s%s, and what was seen points that way, but a verdict takes %d %ss", f.saw, needs, minRounds, f.per.name())
	case f.few && f.dir < 0:
		return fmt.Sprintf("%s%s, and what was seen points the other way, but a verdict takes %d %ss", f.saw, needs, minRounds, f.per.name())
	case f.few:
		return fmt.Sprintf("%s%s%s, and a verdict takes %d %ss", f.saw, needs, gap, minRounds, f.per.name())
	case f.dir == 0 || f.p > family:
		return f.saw + needs + gap
	case f.sampled && p > family:
		return fmt.Sprintf("%s%s%s, but %d claims are judged together, and for that it is not clear enough (%s, after Holm %s)",
			f.saw, needs, gap, tests, SayP(f.p), ShowP(p))
	case f.dir > 0:
		return f.saw + needs
	}
	return f.saw + needs + gap
}

// evidence lists the numbers that a verdict rests on, those of the other estimators in
// short.
func (s *runData) evidence(h *claimJudgement) []string {
	out := []string{}
	for _, line := range h.findings[0].evidence {
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if f := h.findings[0]; h.applies && f.sampled && !f.few && f.missing == "" && f.weak == "" {
		out = append(out, fmt.Sprintf("%s after Holm over the claims of this plan", SayP(h.adjusted[0])))
	}
	for i := 1; i < len(h.ests); i++ {
		f := h.findings[i]
		line := h.ests[i] + ": " + f.saw
		if f.weak != "" || f.missing != "" {
			line = h.ests[i] + ": " + join(f.missing, f.weak)
		}
		out = append(out, line)
	}
	if kinds := s.incomparableKinds(); h.claim.By == "author" && len(kinds) > 0 {
		out = append(out, "this run departs from what was published in: "+strings.Join(kinds, ", "))
	}
	return out
}

// incomparableKinds are the kinds of departure after which figures cannot be compared.
func (s *runData) incomparableKinds() []string {
	var out []string
	for _, d := range s.r.Departures {
		if slices.Contains(incomparable, d.Kind) && !slices.Contains(out, d.Kind) {
			out = append(out, d.Kind)
		}
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
		evidence := slices.Compact(append([]string{}, f.evidence...))
		out = append(out, result.Claim{ID: c.ID, Says: c.Says, By: c.By, Scope: c.Scope,
			Verdict: verdictOf(f, 0), Reason: reason(f, 0, 0), Evidence: evidence})
	}
	return out
}
