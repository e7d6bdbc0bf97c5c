package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// finding is what the numbers show about one test, before the verdict.
type finding struct {
	// 1: they satisfy the test, -1: they do not, 0: neither
	dir int
	// Smallest error at which dir can be claimed; 0 where no value varies
	p float64

	// Too few rounds for any verdict
	few bool
	// What was replicated
	per replica
	// Rests on rounds, so that p counts among the tests of the plan
	sampled bool
	// What was not measured, or not published
	missing string
	// Why there is no such number
	weak string

	// What was seen
	saw wording.Message
	// What the claim needs
	need wording.Message
	// Where the interval is relative to that
	gap      wording.Message
	evidence []wording.Message
}

// fails reports whether there is no number to judge.
func (f finding) fails() bool { return f.missing != "" || f.weak != "" }

// tested reports whether the finding is one of the tests that Holm's correction
// counts.
func (f finding) tested() bool { return f.sampled && !f.few && !f.fails() }

// verdict is the verdict of a finding whose p value is p after correction.
func (f finding) verdict(p float64) string {
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

// holm corrects the p values of the findings that are tested over all of them,
// and counts these; others keep 0.
func holm(list []finding) (adjusted []float64, tests int) {
	tested := slices.DeleteFunc(slices.Clone(list), func(f finding) bool { return !f.tested() })
	ps := stats.Holm(mapped(tested, func(f finding) float64 { return f.p }))
	for _, f := range list {
		p := 0.0
		if f.tested() {
			p, ps = ps[0], ps[1:]
		}
		adjusted = append(adjusted, p)
	}
	return adjusted, len(tested)
}

func missing(key string, args ...any) finding { return finding{missing: wording.Text(key, args...)} }
func weak(key string, args ...any) finding    { return finding{weak: wording.Text(key, args...)} }

func needs(b plan.Bound) wording.Message { return wording.Say("text", wording.Bound(b)) }

// judgeRounds turns one value a round into a finding. phrase is what was seen;
// its value is filled in.
func judgeRounds(sc scale, xs []float64, b plan.Bound, phrase wording.Message) finding {
	f := finding{sampled: true, need: needs(b), per: sc.per}
	f.dir, f.p = sc.decide(xs, b)
	c := sc.centre(xs)
	if math.IsNaN(c) {
		return weak("no-centre")
	}
	value, times := wording.Amount{Value: c, Unit: b.Unit}, sc.times(len(xs))
	iv, err := sc.interval(xs)
	if err != nil {
		f.few, f.p = len(xs) < minRounds, 1
		f.saw = wording.Say("seen.few", phrase.With(value), times)
		f.evidence = []wording.Message{wording.Say("evidence.few", f.saw, times, minRounds)}
		return f
	}
	span := wording.Span{Low: iv.Low, High: iv.High, Unit: b.Unit}
	note := sc.method()
	note.Name = "95 % t interval"
	f.saw = wording.Say("seen.rounds", phrase.With(span), times, note)
	f.gap = gap(b, iv.Low, iv.High)
	f.evidence = []wording.Message{
		wording.Say("evidence.rounds", phrase.With(value), span, times, sc.method(), wording.P(f.p))}
	return f
}

// gap is where the interval from … to is relative to a bound; empty inside it.
func gap(b plan.Bound, from, to float64) wording.Message {
	low, high := holdsAbout(b, from), holdsAbout(b, to)
	below := from < b.Low || !low && from == b.Low
	above := to > b.High || !high && to == b.High
	key := "gap.above"
	switch {
	case low && high:
		return wording.Message{}
	case to < b.Low:
		key = "gap.all-below"
	case from > b.High:
		key = "gap.all-above"
	case below && above:
		key = "gap.both"
	case below:
		key = "gap.below"
	}
	return wording.Say(key)
}

// combine wants every part to hold (sign 1: one that does not decides) or,
// mirrored, one part (sign -1: one that holds decides). The verdict that all
// parts carry together has the largest of their p values (an
// intersection–union test); the one that a single part carries has the smallest
// times the number of parts (Bonferroni).
func combine(parts []finding, sign int) finding {
	var out finding
	var missing, weak string
	count, single := 0, -1
	for i, f := range parts {
		out.sampled, out.per = out.sampled || f.sampled, cmp.Or(out.per, f.per)
		out.evidence = append(out.evidence, f.evidence...)
		missing, weak = wording.Join(missing, f.missing), wording.Join(weak, f.weak)
		switch {
		case f.fails():
		case f.dir == -sign && (single < 0 || compareFirmness(f, parts[single]) < 0):
			single = i
		case f.dir == sign:
			count++
		}
	}
	switch {
	case single >= 0:
		f := parts[single]
		out.dir, out.p, out.few = -sign, min(1, f.p*float64(len(parts))), f.few
		out.saw, out.need, out.gap = f.saw, f.need, f.gap
	case missing != "" || weak != "":
		out.missing, out.weak = missing, weak
	case count == len(parts) && count > 0:
		out.dir, out.saw, out.need, out.gap = sign, parts[0].saw, parts[0].need, parts[0].gap
		for i, f := range parts {
			out.p, out.few = max(out.p, f.p), out.few || f.few
			if i > 0 {
				out.saw = wording.Say("text", wording.Join(out.saw.String(), f.saw.String()))
				out.need, out.gap = wording.Message{}, wording.Message{}
			}
		}
	default:
		for _, f := range parts {
			if f.dir == 0 {
				out.saw, out.need, out.gap, out.few, out.p = f.saw, f.need, f.gap, f.few, 1
			}
		}
	}
	return out
}

// compareFirmness orders findings by how firmly they decide, the firmest first.
func compareFirmness(a, b finding) int {
	last := map[bool]int{true: 1}
	return cmp.Or(last[a.few]-last[b.few], cmp.Compare(a.p, b.p))
}

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
	isOther := func(ss result.Session) bool { return !isApple(ss.Engine) }
	usesApple := len(s.r.Sessions) > 0 && !slices.ContainsFunc(s.r.Sessions, isOther)
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
	out := mapped(hs, func(h *claimJudgement) result.Claim { return s.claimResult(h, tests) })
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
		titles := texts(s.r.Sessions, func(ss result.Session) string { return cmp.Or(ss.Engine.Title, ss.Engine.Name) })
		why = wording.Say("reason.imitated", cmp.Or(strings.Join(titles, " and "), wording.Text("no-engine")))
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
			f := judge{s: s, author: true}.assert(c.Assert)
			h := claimJudgement{claim: c, ests: []string{""}, findings: []finding{f}, adjusted: []float64{0}, applies: true}
			out = append(out, s.claimResult(&h, 0))
		}
	}
	return out
}
