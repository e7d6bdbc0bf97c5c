package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// useData is a use with the values of its candidates.
type useData struct {
	s    *runData
	plan plan.Use
	out  *result.Use
	// By criterion and candidate
	values [][]operandValue
	// Of all comparisons so far that are tests
	ps []float64
}

// uses answers which of its candidates to take, for each use of the plan. It
// takes the warnings of figures from the summaries.
func (s *runData) uses() (out []result.Use) {
	at := map[quantityKey]*result.Summary{}
	for i := range s.r.Summaries {
		at[keyOf(&s.r.Summaries[i])] = &s.r.Summaries[i]
	}
	for _, u := range s.p.Uses {
		t := s.newUseData(u)
		t.decide()
		t.out.Advice = mapped(u.Advice, t.judgeAdvice)
		t.out.Warnings = t.warnings(at)
		out = append(out, *t.out)
	}
	return out
}

// newUseData gathers the figures of all candidates by all criteria.
func (s *runData) newUseData(u plan.Use) *useData {
	t := &useData{s: s, plan: u, out: &result.Use{Name: u.Name, Says: u.Says, Choice: result.NotMeasured,
		Chosen: []string{}, DecidedBy: -1, Scope: s.useScope()}}
	t.out.Candidates = mapped(u.Candidates, func(k plan.Candidate) result.UseCandidate {
		picked := slices.DeleteFunc(slices.Clone(s.cases), func(sub *caseData) bool { return !sub.matches(k.Where) })
		return result.UseCandidate{Title: k.Title,
			Cases: mapped(picked, func(sub *caseData) string { return sub.c.ID })}
	})
	j := judge{s: s, est: s.headlineName(), strict: true}
	for _, x := range u.Decide {
		isSame := t.isSameEverywhere(x)
		t.out.Criteria = append(t.out.Criteria, result.UseCriterion{Title: x.Title, Op: string(x.Quantity),
			Unit: x.Quantity.Unit(), HigherIsBetter: x.Better == "higher", Matters: float64(x.Matters),
			SameEverywhere: isSame})
		name := meanRate
		if isPerFile(x.Quantity) || x.Quantity == "stream" {
			name = j.est
		}
		var row []operandValue
		for i, k := range u.Candidates {
			v := j.operand(plan.Operand{Quantity: x.Quantity, Where: slices.Concat(k.Where, x.Where)})
			f := result.UseFigure{Why: wording.Join(v.missing, v.weak)}
			if f.Why == "" {
				e := v.useEstimate(name)
				if isSame {
					e.CI, e.Why = nil, wording.Text("use.same-everywhere")
				}
				f.Estimate = &e
			}
			row, t.out.Candidates[i].Figures = append(row, v), append(t.out.Candidates[i].Figures, f)
		}
		t.values = append(t.values, row)
	}
	return t
}

// isSameEverywhere reports whether the figures by a criterion are the same on
// every machine: what our own writer of images changes in an image depends on the
// plan and its seed alone, as long as one worker writes.
func (t *useData) isSameEverywhere(x plan.Criterion) bool {
	info, _ := x.Quantity.Info()
	isOther := func(ss result.Session) bool { return ss.Engine.Name != "inprocess" }
	isUncertain := func(sub *caseData) bool {
		return sub.c.Target.Kind != "image" && slices.ContainsFunc(t.out.Candidates,
			func(k result.UseCandidate) bool { return slices.Contains(k.Cases, sub.c.ID) })
	}
	return info.Do == "manifest" && t.s.p.Defaults.Workers <= 1 &&
		!slices.ContainsFunc(t.s.r.Sessions, isOther) && !slices.ContainsFunc(t.s.cases, isUncertain)
}

// useEstimate is the estimate of an operand as candidates are compared: the
// geometric mean of its rounds also of sizes, so that figures of the same rounds
// divide to the mean of their ratios.
func (a operandValue) useEstimate(name string) result.Estimate {
	e := a.estimate(name)
	if isSpeed(a.unit) || len(a.values) == 0 || slices.Min(a.values) <= 0 {
		return e
	}
	sc := logScale.over(a.per)
	e.Value, e.CI, e.Why = sc.centre(a.values), nil, ""
	sc.roundInterval(&e, a.values)
	return e
}

// useScope limits the answers of engines of this program to its own images on
// the system that was measured; those of Apple's tools have no limit.
func (s *runData) useScope() string {
	if s.usesApple() {
		return ""
	}
	systems := texts(s.r.Sessions, func(ss result.Session) string {
		name := osName(ss.Host.OS)
		if strings.Contains(ss.Host.OSVersion, name) { // Debian GNU/Linux 12
			return ss.Host.OSVersion
		}
		return spaced(name, ss.Host.OSVersion)
	})
	system := cmp.Or(strings.Join(systems, " and "), wording.Text("unknown-system"))
	return wording.Text("use.scope", s.engineTitles(), system)
}

func (t *useData) title(i int) string { return t.out.Candidates[i].Title }

// figure is the figure of a candidate by a criterion.
func (t *useData) figure(criterion, i int) *result.UseFigure {
	return &t.out.Candidates[i].Figures[criterion]
}

// amount writes the value of a figure.
func (t *useData) amount(criterion, i int) string {
	e := t.figure(criterion, i).Estimate
	return wording.WithNoun(t.out.Criteria[criterion].Op, wording.Amount{Value: e.Value, Unit: e.Unit}.String())
}

// say adds a sentence to the reason of the choice.
func (t *useData) say(key string, args ...any) {
	t.out.Reason = wording.Join(t.out.Reason, wording.Text(key, args...))
}

// decide goes through the criteria until one candidate is left, or one of them
// leaves open which are. Each further criterion is for those that are equal by
// all before it.
func (t *useData) decide() {
	var left []int
	missing := ""
	for i := range t.out.Candidates {
		if f := t.figure(0, i); f.Estimate != nil {
			left = append(left, i)
		} else {
			missing = wording.Join(missing, wording.Text("use.missing", t.title(i), f.Why))
		}
	}
	if len(left) < 2 {
		t.say("use.none", missing)
		return
	}
	for at := range t.plan.Decide {
		equal, open := t.compare(at, left)
		t.out.DecidedBy, t.out.Choice = at, result.ChosenEqual
		if len(open) > 0 {
			t.out.Choice = result.Undecided
		} else if len(equal) == 1 {
			t.out.Choice = result.ChosenOne
		}
		left = slices.Sorted(slices.Values(slices.Concat(equal, open)))
		t.out.Chosen = mapped(left, t.title)
		if t.out.Choice != result.ChosenEqual {
			return
		}
	}
}

// compare ranks the candidates that are left by a criterion, against the best
// of them. equal are the best and those that are equal to it, open those of
// which it is not known whether they are equal or worse.
func (t *useData) compare(at int, left []int) (equal, open []int) {
	x, values := t.plan.Decide[at], t.values[at]
	left = slices.DeleteFunc(slices.Clone(left), func(i int) bool {
		f := t.figure(at, i)
		if f.Estimate != nil {
			return false
		}
		f.Rank, open = result.RankUndecided, append(open, i)
		t.say("use.no-value", t.title(i), x.Title, f.Why)
		t.out.Needs = wording.Join(t.out.Needs, wording.Text("use.need.value", t.title(i), x.Title))
		return true
	})
	if len(left) == 0 {
		return nil, open
	}
	best := slices.MinFunc(left, func(i, j int) int {
		if x.Better == "higher" {
			i, j = j, i
		}
		return cmp.Compare(t.figure(at, i).Estimate.Value, t.figure(at, j).Estimate.Value)
	})
	t.figure(at, best).Rank, equal = result.RankBest, []int{best}
	before := len(t.ps)
	var others, tests []*useContrast
	for _, i := range slices.DeleteFunc(left, func(i int) bool { return i == best }) {
		c := newUseContrast(values[best], values[i], x, t.out.Criteria[at].SameEverywhere)
		c.i, others = i, append(others, c)
		if c.isTest() {
			tests, t.ps = append(tests, c), append(t.ps, c.p)
		}
	}
	for k, p := range stats.Holm(t.ps)[before:] {
		tests[k].p = p
	}
	for _, c := range others {
		switch c.rank(t.figure(at, c.i)); t.figure(at, c.i).Rank {
		case result.RankEqual:
			equal = append(equal, c.i)
		case result.RankUndecided:
			open = append(open, c.i)
		}
	}
	t.explain(at, best, others, equal, open)
	return equal, open
}

// explain adds what a criterion showed to the reason of the choice: of one
// candidate how far the next is from it, of several that they are equal, or
// what is open and what would decide it.
func (t *useData) explain(at, best int, others []*useContrast, equal, open []int) {
	title := t.plan.Decide[at].Title
	slices.SortStableFunc(others, func(a, b *useContrast) int { return cmp.Compare(a.centre(), b.centre()) })
	most, needs := 0, ""
	for _, c := range others {
		if slices.Contains(open, c.i) {
			t.say("use.open", title, t.title(best), t.amount(at, best), t.title(c.i), t.amount(at, c.i),
				c.describe(t.figure(at, c.i)))
			if n, text := c.needs(len(t.ps)); n > most {
				most, needs = n, text
			}
		}
	}
	t.out.Needs = wording.Join(t.out.Needs, needs)
	if len(equal) > 1 && len(open) == 0 {
		names := strings.Join(mapped(slices.Sorted(slices.Values(equal)), t.title), ", ")
		t.say("use.same", title, names, wording.Percent(t.plan.Decide[at].Matters))
	} else if len(others) > 0 && len(open) == 0 {
		next := others[0]
		t.say("use.best", title, t.title(best), t.amount(at, best), t.title(next.i), t.amount(at, next.i),
			next.describe(t.figure(at, next.i)))
	}
}

// judgeAdvice decides whether the figures agree with what a source recommends, if
// the criterion that excluded its candidate, or that decided, is one that the
// source speaks of.
func (t *useData) judgeAdvice(a plan.Advice) result.UseAdvice {
	out := result.UseAdvice{Says: a.Says, Source: a.Source, Candidate: a.Candidate, Verdict: result.Holds}
	own, _ := find(t.out.Candidates, func(k result.UseCandidate) bool { return k.Title == a.Candidate })
	by := slices.IndexFunc(own.Figures, func(f result.UseFigure) bool { return f.Rank == result.RankWorse })
	if by < 0 { // no criterion has excluded it
		by = t.out.DecidedBy
	}
	switch {
	case t.out.Choice == result.NotMeasured || own.Figures[0].Estimate == nil:
		out.Verdict = result.NotMeasured
	case len(a.Criteria) > 0 && !slices.Contains(a.Criteria, t.plan.Decide[by].Title):
		out.Verdict = result.OtherCriterion
	case !slices.Contains(t.out.Chosen, a.Candidate):
		out.Verdict = result.DoesNotHold
	case t.out.Choice == result.Undecided:
		out.Verdict = result.CannotTell
	}
	return out
}

// warnings are what weakens the figures that decided: a scaled run, candidates
// without a figure, different file systems, and the warnings of the figures
// themselves with the candidates that have them, unless all do.
func (t *useData) warnings(at map[quantityKey]*result.Summary) []result.Warning {
	var found, out warningList
	owners, made := map[result.Warning][]string{}, map[string][]string{} // by warning, and by file system
	for i, k := range t.plan.Candidates {
		for n, x := range t.plan.Decide {
			switch f := t.figure(n, i); {
			case f.Estimate == nil && n <= max(t.out.DecidedBy, 0):
				out.put(result.Warning{Kind: "candidate", Text: wording.Text("use.missing", k.Title, f.Why)})
			case f.Rank != "":
				cells, _ := t.s.cells(x.Quantity, slices.Concat(k.Where, x.Where), true)
				for _, c := range cells {
					// An engine may not make the same one in every format. A candidate that names
					// its file system is meant to have it.
					if g := c.sub.c.Target; g.Kind == "image" && !k.Where.Names("filesystem") {
						made[g.Filesystem] = appendUnique(made[g.Filesystem], k.Title)
					}
					sum := at[quantityKey{c.sub.c.ID, c.key.label(), c.key.cycle, x.Quantity}]
					for _, w := range cmp.Or(sum, &result.Summary{}).Warnings {
						found.put(w)
						owners[w] = appendUnique(owners[w], k.Title)
					}
				}
			}
		}
	}
	if len(made) > 1 {
		list := mapped(slices.Sorted(maps.Keys(made)),
			func(name string) string { return wording.Text("of-case", name, strings.Join(made[name], ", ")) })
		out.put(result.Warning{Kind: "filesystem", Text: wording.Text("use.filesystems", strings.Join(list, "; "))})
	}
	for _, d := range t.s.r.Departures {
		if d.Kind == "scale" {
			out.put(result.Warning{Kind: d.Kind, Text: d.Text})
		}
	}
	for _, w := range found {
		if names := owners[w]; len(names) < len(t.plan.Candidates) {
			w.Text = wording.Text("of-case", strings.Join(names, ", "), w.Text)
		}
		out.put(w)
	}
	return out.shortened()
}

// useContrast is a candidate against the best: one value a round, above none
// where the candidate is worse.
type useContrast struct {
	// The candidate
	i  int
	sc scale
	xs []float64
	// Of a ratio 1, else that of the quantity
	unit string
	// Value of equal candidates, and the least that matters
	none, matters float64
	// That of none, after Holm once it is known
	p float64
	// See [result.UseCriterion.SameEverywhere]
	sameEverywhere bool
}

// newUseContrast pairs a candidate with the best by rounds: by their ratios, or
// where one has none by their differences. Of figures that are the same
// everywhere, another run would have the same mean: it is compared exactly.
func newUseContrast(best, other operandValue, x plan.Criterion, sameEverywhere bool) *useContrast {
	var ratios, gaps []float64
	for i, r := range best.rounds {
		if j, ok := slices.BinarySearch(other.rounds, r); ok {
			good, bad := best.values[i], other.values[j]
			if x.Better == "higher" {
				good, bad = bad, good
			}
			ratios, gaps = append(ratios, divide(bad, good)), append(gaps, bad-good)
		}
	}
	share := float64(x.Matters)
	c := &useContrast{sc: logScale.over(best.per), xs: ratios, unit: "1", none: 1, matters: 1 + share, p: 1}
	if !finite(ratios...) || len(ratios) > 0 && slices.Min(ratios) <= 0 {
		c = &useContrast{sc: plainScale.over(best.per), xs: gaps, unit: best.unit,
			matters: share * math.Abs(best.headline()), p: 1}
	}
	c.sameEverywhere = sameEverywhere
	if sameEverywhere {
		c.xs = slices.Repeat([]float64{c.centre()}, len(c.xs))
	}
	if c.isTest() {
		c.p = c.sc.pAt(c.xs, c.none)
	} else if !c.isFew() && c.xs[0] != c.none {
		c.p = 0 // exact
	}
	return c
}

func (c *useContrast) isFew() bool { return len(c.xs) < minRounds }

// isTest reports whether the rounds vary, so that there is an error to correct.
func (c *useContrast) isTest() bool { return !c.isFew() && slices.Min(c.xs) != slices.Max(c.xs) }

func (c *useContrast) centre() float64 { return c.sc.centre(c.xs) }

// rank fills in the figure of the candidate. A difference that is certain and
// matters makes it worse, an interval within what matters equal.
func (c *useContrast) rank(f *result.UseFigure) {
	f.Rank = result.RankUndecided
	if len(c.xs) == 0 {
		return
	}
	name := map[string]string{logScale.name: "ratio", plainScale.name: "difference"}[c.sc.name]
	f.Ratio = &result.Estimate{Name: name, Value: c.centre(), Unit: c.unit, N: len(c.xs)}
	c.sc.roundInterval(f.Ratio, c.xs)
	ci := f.Ratio.CI
	if ci == nil {
		return
	}
	f.P = &c.p
	most, least := c.limits()
	switch v := f.Ratio.Value; {
	case c.p <= family && (v >= most || near(v, most)):
		f.Rank = result.RankWorse
	case ci.Low > least && ci.High < most || ci.Low == c.none && ci.High == c.none:
		f.Rank = result.RankEqual
	}
}

// limits are the differences from which the candidate is worse, or better, by
// what matters.
func (c *useContrast) limits() (most, least float64) {
	return c.matters, c.sc.from(2*c.sc.to(c.none) - c.sc.to(c.matters))
}

// describe writes how far a candidate is from the best.
func (c *useContrast) describe(f *result.UseFigure) wording.Message {
	r := f.Ratio
	if r == nil {
		return wording.Say("no-pairs")
	}
	value, n := wording.Amount{Value: r.Value, Unit: r.Unit}, c.sc.times(r.N)
	text := wording.Say("use.ratio", value)
	if r.Name == "difference" {
		text = wording.Say("use.difference", value)
	}
	switch {
	case r.CI == nil:
		return wording.Say("use.few", text, r.Why)
	case c.sameEverywhere:
		return wording.Say("use.exact-everywhere", text)
	case !c.isTest():
		return wording.Say("use.exact", text, n)
	}
	interval := wording.Span{Low: r.CI.Low, High: r.CI.High, Unit: r.Unit}
	return wording.Say("use.interval", text, interval, n, wording.P(*f.P))
}

// mostReplicates is how many rounds anybody may be advised to run.
const mostReplicates = 100

// needs writes how many rounds would show that the candidate is worse, with as
// many tests as now, or equal, whichever of the two the centre points to, by the
// scatter of the rounds. n is mostReplicates + 1 where so many are not enough.
func (c *useContrast) needs(tests int) (n int, text string) {
	if c.isFew() {
		return minRounds, c.sc.times(minRounds).String()
	}
	m, errs, err := c.sc.errors(c.sc.all(c.xs))
	distance, level := m-c.sc.to(c.none), 1-family/float64(max(tests, 1))
	if most, least := c.limits(); c.centre() < most {
		distance, level = min(c.sc.to(most)-m, m-c.sc.to(least)), 1-family
	}
	for n = len(c.xs) + 1; err == nil && n <= mostReplicates; n++ {
		half := errs[0].se * math.Sqrt(float64(len(c.xs))/float64(n))
		if stats.StudentQuantile((1+level)/2, float64(n-1))*half <= distance {
			return n, wording.Text("use.need.rounds", c.sc.times(n))
		}
	}
	return mostReplicates + 1, wording.Text("use.need.many", c.sc.times(mostReplicates))
}
