package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// Compare compares runs with each other. It is a pure function of them and
// needs a plan only for the claims of sides of several runs; runs that were
// only folded serve as well as analysed ones, except that they bring no
// verdicts.
//
// What is paired has the same case, phase, cycle and quantity, the same files,
// and the same settings in the plans of both sides, other than those that make
// the sides or are asked for ([CompareOptions.Across]); everything else is listed
// as unpaired with the reason. The unit of
// replication is the session, since whatever a session was like is in all its
// rounds: three sessions on both sides are compared by Welch's t of their
// logarithms, fewer by Student's t with one spread for both sides as long as
// that has two degrees of freedom. With one session a side a row is undecided,
// and shows what was seen. Sides that were measured in the same sessions (cases
// of one run, see [CompareOptions.By]) are paired in them.
func Compare(runs []*result.Result, o CompareOptions) (*Comparison, error) {
	c, err := newComparer(runs, o)
	if err != nil {
		return nil, fmt.Errorf("comparing runs: %w", err)
	}
	c.collectFacts()
	for _, side := range c.sides[1:] {
		c.pairCells(side)
	}
	out := c.out
	if len(out.Rows) == 0 && len(out.Unpaired) == 0 {
		return nil, fmt.Errorf("comparing runs: none of %v was measured: %w", out.Ops, ErrCompare)
	}
	c.decideRows()
	c.compareClaims()
	c.addAnswers()
	return out, nil
}

// compareClaims compares the verdicts of the sides, unless the sides are cases
// of the same runs.
func (c *comparer) compareClaims() {
	if len(c.keys) > 0 && len(c.facts) == 0 {
		return
	}
	for i, s := range c.sides {
		claims, sessions, why := c.judgeSide(s)
		if why != "" {
			c.note("note.claims-undecided", c.at(s.name), why)
		}
		for _, k := range claims {
			at := slices.IndexFunc(c.out.Claims, func(o ClaimChange) bool { return o.ID == k.ID })
			if at < 0 {
				at = len(c.out.Claims)
				c.out.Claims = append(c.out.Claims, ClaimChange{ID: k.ID, Says: k.Says,
					Verdicts: make([]string, len(c.sides)), Sessions: make([]int, len(c.sides))})
			}
			out := &c.out.Claims[at]
			out.Required = out.Required || k.Required
			out.Verdicts[i], out.Sessions[i] = k.Verdict, sessions
		}
	}
	for j := range c.out.Claims {
		c.describeChange(&c.out.Claims[j])
	}
}

// judgeSide gives the verdicts of a side and their number of sessions: those of
// its run, or of all its runs pooled, or why these could not be judged
// together. A verdict of a single run among several is never that of the side,
// since the runs that decide are those in which the session happened to favor
// one case.
func (c *comparer) judgeSide(s *compareSide) (claims []result.Claim, sessions int, why string) {
	if len(s.runs) == 1 {
		return s.runs[0].Claims, max(len(s.runs[0].Runs), 1), ""
	}
	for _, k := range slices.Concat(mapped(s.runs, func(r *result.Result) []result.Claim { return r.Claims })...) {
		if !slices.ContainsFunc(claims, func(o result.Claim) bool { return o.ID == k.ID }) {
			k.Verdict = result.CannotTell
			claims = append(claims, k)
		}
	}
	if len(claims) == 0 {
		return nil, len(s.runs), ""
	}
	pooled, err := judgePooled(c.o.Plans[s.runs[0].Plan.Digest], s.runs)
	if err != nil {
		return claims, len(s.runs), err.Error()
	}
	return pooled, len(s.runs), ""
}

// judgePooled gives the verdicts of several runs of a plan together.
func judgePooled(p *plan.Plan, runs []*result.Result) ([]result.Claim, error) {
	if p == nil {
		return nil, because("no-plan")
	}
	pooled, err := result.Pool(runs)
	if err != nil {
		return nil, err
	}
	err = Analyze(p, pooled, Options{SkipWarnings: true})
	return pooled.Claims, err
}

// isSameClaim reports whether the plans of the baseline and a side have the same
// test for a claim.
func (c *comparer) isSameClaim(id string, s *compareSide) bool {
	a, b := c.sides[0].runs[0].Plan.Digest, s.runs[0].Plan.Digest
	return a == b || plan.SameClaim(c.o.Plans[a], c.o.Plans[b], id)
}

// describeChange reports in what the verdicts on a claim differ from the
// baseline's. Only verdicts over at least [minRounds] sessions on both sides
// make a change: with fewer, the unit of a verdict is the round, and two
// sessions of the same machine may well differ.
func (c *comparer) describeChange(k *ClaimChange) {
	base := k.Verdicts[0]
	for i, v := range k.Verdicts[1:] {
		both := isDecided(base) && isDecided(v)
		flip := both && base != v
		apart := c.sides[i+1].isApart || !c.isSameClaim(k.ID, c.sides[i+1])
		enough := !apart && min(k.Sessions[0], k.Sessions[i+1]) >= minRounds
		unmeasured := base == result.NotMeasured && v == result.NotMeasured
		k.Undecided = k.Undecided || k.Required && !unmeasured && !(both && enough)
		k.Changed = k.Changed || flip && enough
		if base == v || base == "" || v == "" {
			continue
		}
		text := wording.Text("claim-change", wording.Text("verdict."+base), c.at(c.sides[0].name),
			wording.Text("verdict."+v), c.at(c.sides[i+1].name))
		switch {
		case apart:
			text = wording.Text("claim-change.plans", text)
		case flip && !enough:
			sessions := wording.Count{N: k.Sessions[0], Noun: "session"}
			text = wording.Text("claim-change.few", text, sessions, k.Sessions[i+1], minRounds)
		}
		k.Text = wording.Join(k.Text, text)
	}
	c.out.Undecided = c.out.Undecided || k.Undecided
	c.out.Regression = c.out.Regression || k.Required && k.Changed
}

// addAnswers adds the outcome of each side in a sentence: how many rows are
// worse, better, the same and undecided, with the largest change of each kind.
func (c *comparer) addAnswers() {
	for _, s := range c.sides[1:] {
		kinds := map[string][]*CompareRow{}
		rows, unknown := 0, 0
		for i := range c.out.Rows {
			r := &c.out.Rows[i]
			if r.Side != s.name {
				continue
			}
			kind := "answer.undecided"
			switch {
			case r.Status == RowChanged && r.Better < 0:
				kind = "answer.worse"
			case r.Status == RowChanged && r.Better > 0:
				kind = "answer.better"
			case r.Status == RowSame || r.Status == RowChanged:
				kind = "answer.same"
			case r.Status == RowSessionUnknown:
				unknown++
			}
			rows++
			kinds[kind] = append(kinds[kind], r)
		}
		text := ""
		for _, kind := range []string{"answer.worse", "answer.better", "answer.same", "answer.undecided"} {
			if n := len(kinds[kind]); n > 0 {
				part := wording.Text(kind, n, rows)
				if kind == "answer.worse" || kind == "answer.better" {
					part += largestChange(kinds[kind])
				}
				text = wording.Join(text, part)
			}
		}
		switch rows {
		case 0:
			text = wording.Text("answer.nothing")
		case unknown:
			text = wording.Text("answer.few-sessions")
		}
		c.out.Answers = append(c.out.Answers, CompareAnswer{Side: s.name, Worse: len(kinds["answer.worse"]),
			Better: len(kinds["answer.better"]), Same: len(kinds["answer.same"]), Open: len(kinds["answer.undecided"]),
			Text: wording.Text("answer", s.name, c.sides[0].name, text)})
	}
}

// largestChange names the row that changed most.
func largestChange(changed []*CompareRow) string {
	most := slices.MaxFunc(changed, func(a, b *CompareRow) int {
		return cmp.Compare(math.Abs(math.Log(a.Ratio)), math.Abs(math.Log(b.Ratio)))
	})
	cycle := ""
	if most.Cycle > 0 {
		cycle = fmt.Sprintf("cycle %d", most.Cycle)
	}
	name := wording.JoinFacts(wording.Case(most.Case), most.Phase, cycle)
	return wording.Text("answer.most", name, most.Op, most.Effect)
}

// unitValues are the means of the logarithms of the rounds of each unit of
// replication, in the order of first appearance.
type unitValues struct {
	names  []string
	values []float64
}

// averageBy averages the rounds of a cell within the unit that of returns for
// them.
func (cell *compareCell) averageBy(of func(compareRound) string) unitValues {
	names := mapped(cell.rounds, of)
	logs := mapped(cell.rounds, func(r compareRound) float64 { return math.Log(r.v) })
	groups, units := groupBy(names, logs), texts(names, strings.Clone)
	return unitValues{units, mapped(units, func(name string) float64 { return mean(groups[name]) })}
}

func bySession(r compareRound) string { return r.session }
func byRound(r compareRound) string   { return r.round }

// sample is the values of a cell as they are printed.
func (cell *compareCell) sample() CompareSample {
	u := cell.averageBy(bySession)
	return CompareSample{Value: math.Exp(mean(u.values)), Sessions: mapped(u.values, math.Exp),
		Rounds: len(cell.rounds), N: cell.n}
}

// addRow compares two cells, or lists them as unpaired where they have no
// ratio.
func (c *comparer) addRow(a, b *compareCell, sideName string) {
	vs := mapped(slices.Concat(a.rounds, b.rounds), func(r compareRound) float64 { return r.v })
	switch low, high := slices.Min(vs), slices.Max(vs); {
	case low == 0 && high == 0:
		c.addUnpaired(a.key, sideName, wording.Text("both-zero"), false)
		return
	case low <= 0:
		c.addUnpaired(a.key, sideName, wording.Text("not-positive.row"), true)
		return
	}
	row := CompareRow{Case: a.key.id, Phase: a.key.phase, Cycle: a.key.cycle, Op: string(a.key.op),
		Unit: a.key.op.Unit(), Side: sideName, Base: a.sample(), Value: b.sample(), Status: RowUnclear,
		Warnings: []string{}}
	if ct, per, err := contrast(a, b); err != nil {
		row.fillUndecided(a, b)
	} else {
		each := replica{unit: per}
		if per == perRound {
			each = roundsOf(a, b)
		}
		p, worse := each.corrected(ct.P(0)), 1.0
		// 1 where the ratio is on the better side of the threshold
		if at := c.worseAt(a.key.op); at < 0 && ct.Estimate <= at || at > 0 && ct.Estimate >= at {
			worse = each.corrected(ct.P(at))
		}
		row.Ratio, row.P, row.Worse = math.Exp(ct.Estimate), &p, &worse
		row.CI = ratioInterval(ct, each, per)
		row.addWarnings(a, b, per)
	}
	c.out.Rows = append(c.out.Rows, row)
}

// addWarnings adds what a reader of a ratio over units of replication has to
// know.
func (row *CompareRow) addWarnings(a, b *compareCell, per string) {
	warn := func(key string, args ...any) { row.Warnings = append(row.Warnings, wording.Text(key, args...)) }
	if per == perRound {
		warn("row.one-session", wording.Count{N: len(commonDifferences(a, b, bySession)), Noun: "shared session"})
	}
	if own := row.Value.Value / row.Base.Value; math.Abs(own/row.Ratio-1) > 1e-9 {
		warn("row.shared-units", per)
	}
	if row.CI != nil && row.CI.Method == stats.MethodPooled {
		warn("row.pooled", wording.Count{N: len(row.Base.Sessions), Noun: "session"}, len(row.Value.Sessions))
	}
}

// roundsOf are the rounds of two cells as the unit of replication. Those that
// were added until an interval was narrow are held to the level of their looks
// here as in the run's own report.
func roundsOf(a, b *compareCell) replica {
	return replica{unit: perRound, looks: max(a.looks, b.looks)}
}

// ratioInterval is the interval of the ratio with the logarithm ct, over units
// of replication; nil without one.
func ratioInterval(ct stats.Contrast, each replica, units string) *result.CI {
	iv, err := ct.Interval(each.level())
	if err != nil {
		return nil
	}
	iv.Low, iv.High, iv.Level = math.Exp(iv.Low), math.Exp(iv.High), level
	return ciOf(iv, units, each.method(iv.Method))
}

// contrast is the difference of the logarithms, b less a, over the units that
// both sides have several of.
func contrast(a, b *compareCell) (ct stats.Contrast, per string, err error) {
	// Sessions that only one side has are left out where the sides share some:
	// such sides are neither paired nor apart.
	if d := commonDifferences(a, b, bySession); len(d) > 0 {
		if ct, err = stats.MeanContrast(d); err == nil {
			return ct, perSession, nil
		}
		ct, err = stats.MeanContrast(commonDifferences(a, b, byRound))
		return ct, perRound, err
	}
	x, y := a.averageBy(bySession), b.averageBy(bySession)
	pooled, err := stats.PooledContrast(y.values, x.values)
	if err != nil {
		return ct, perSession, err
	}
	if ct, err = stats.WelchContrast(y.values, x.values); err != nil {
		return pooled, perSession, nil
	}
	// Welch's test finds too much where few sessions are compared with many.
	// The larger of the two standard errors with Welch's degrees of freedom,
	// the fewer, never does where both sides vary alike; with as many on each
	// side the two are the same.
	ct.SE = max(ct.SE, pooled.SE)
	return ct, perSession, nil
}

// commonDifferences are the differences, b less a, of the units that both have.
func commonDifferences(a, b *compareCell, of func(compareRound) string) (d []float64) {
	x, y := a.averageBy(of), b.averageBy(of)
	for i, name := range x.names {
		if j := slices.Index(y.names, name); j >= 0 {
			d = append(d, y.values[j]-x.values[i])
		}
	}
	return d
}

// roundsOfSessions is the unit of an interval that does not contain how
// sessions differ.
const roundsOfSessions = "round within one session a side"

// fillUndecided is a row with too few sessions: what was seen, with an interval
// over the rounds labelled as such, and no test. Where a side has several
// sessions the ratio is over sessions, and an interval over rounds would be
// that of another number.
func (row *CompareRow) fillUndecided(a, b *compareCell) {
	row.Ratio = row.Value.Value / row.Base.Value
	row.Status = RowSessionUnknown
	na, nb := len(row.Base.Sessions), len(row.Value.Sessions)
	row.Reason = wording.Text("session-unknown", wording.Count{N: na, Noun: "session"}, nb)
	if shared := len(commonDifferences(a, b, bySession)); shared > 0 {
		row.Reason = wording.Text("session-unknown.shared", wording.Count{N: shared, Noun: "shared session"},
			wording.Count{N: len(commonDifferences(a, b, byRound)), Noun: "round"})
	}
	x, y := a.averageBy(byRound), b.averageBy(byRound)
	if ct, err := stats.WelchContrast(y.values, x.values); err == nil && na == 1 && nb == 1 {
		row.CI = ratioInterval(ct, roundsOf(a, b), roundsOfSessions)
	}
}

// worseAt is the logarithm of the ratio from which on a change is a regression.
func (c *comparer) worseAt(q plan.Quantity) float64 {
	low, high := c.out.Within(q)
	if isMoreBetter(q) {
		return math.Log(low)
	}
	return math.Log(high)
}

// decideRows gives every row its status, after Holm over all rows that were
// tested.
func (c *comparer) decideRows() {
	var tested []*CompareRow
	var ps, worse []float64
	for i := range c.out.Rows {
		if r := &c.out.Rows[i]; r.P != nil {
			tested, ps, worse = append(tested, r), append(ps, *r.P), append(worse, *r.Worse)
		}
	}
	adjusted, past := stats.Holm(ps), stats.Holm(worse)
	for i, r := range tested {
		r.Holm, r.Worse = &adjusted[i], &past[i]
		low, high := c.out.Within(plan.Quantity(r.Op))
		switch {
		case adjusted[i] <= family:
			r.Status = RowChanged
		case r.CI != nil && r.CI.Low >= low && r.CI.High <= high:
			r.Status = RowSame
		}
		r.Regressed = past[i] <= family && r.Status == RowChanged && r.CI.Unit == perSession
	}
	for i := range c.out.Rows {
		r := &c.out.Rows[i]
		if r.Better = cmp.Compare(r.Ratio, 1); !isMoreBetter(plan.Quantity(r.Op)) {
			r.Better = -r.Better
		}
		if r.Status == RowUnclear {
			r.Reason = wording.Text("unclear")
			if r.P != nil && *r.P <= family && r.Holm != nil {
				r.Reason = wording.Text("unclear.holm", len(tested), wording.P(*r.P), wording.P(*r.Holm).Short())
			}
		}
		r.Effect = effect(r)
		r.Undecided = c.isUndecided(r)
		c.out.Undecided = c.out.Undecided || r.Undecided
		c.out.Regression = c.out.Regression || r.Regressed
	}
}

// isUndecided reports whether a row leaves open that it is worse than the
// threshold.
func (c *comparer) isUndecided(r *CompareRow) bool {
	if r.Regressed || r.Status == RowSame {
		return false
	}
	if r.Status != RowChanged || r.CI == nil || r.CI.Unit != perSession {
		return true
	}
	at := math.Exp(c.worseAt(plan.Quantity(r.Op)))
	return at < 1 && r.CI.Low < at || at >= 1 && r.CI.High > at
}

// effect writes a row as text: "12 % slower (8–16 %)", or "~" and what was
// seen.
func effect(r *CompareRow) string {
	words := changeWords(plan.Quantity(r.Op))
	switch {
	case r.Status == RowSessionUnknown:
		return wording.Text("effect.session-unknown", words.Change(r.Ratio, nil))
	case r.CI == nil:
		return "~"
	case r.Status == RowChanged:
		return words.Change(r.Ratio, &wording.Span{Low: r.CI.Low, High: r.CI.High})
	case r.Status == RowSame:
		return wording.Text("effect.same", wording.PercentUp(max(math.Abs(r.CI.Low-1), math.Abs(r.CI.High-1))))
	}
	return wording.Text("effect.interval", wording.SignedSpan(r.CI.Low-1, r.CI.High-1))
}
