package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// unitValues are the means of the logarithms of the rounds of each unit of
// replication, in the order of first appearance.
type unitValues struct {
	names  []string
	values []float64
}

// averageBy averages the rounds of a cell within the unit that of returns for them.
func (cell *compareCell) averageBy(of func(compareRound) string) unitValues {
	sum, n := map[string]float64{}, map[string]float64{}
	var out unitValues
	for _, r := range cell.rounds {
		name := of(r)
		if n[name] == 0 {
			out.names = append(out.names, name)
		}
		sum[name] += math.Log(r.v)
		n[name]++
	}
	for _, name := range out.names {
		out.values = append(out.values, sum[name]/n[name])
	}
	return out
}

func bySession(r compareRound) string { return r.session }
func byRound(r compareRound) string   { return r.round }

// sample is the values of a cell as they are printed.
func (cell *compareCell) sample() CompareSample {
	u := cell.averageBy(bySession)
	out := CompareSample{Rounds: len(cell.rounds), N: cell.n, Sessions: make([]float64, len(u.values))}
	all := 0.0
	for i, v := range u.values {
		out.Sessions[i] = math.Exp(v)
		all += v
	}
	out.Value = math.Exp(all / float64(len(u.values)))
	return out
}

// bothZero is why two cells have no ratio though they are the same.
const bothZero = "0 on both sides: there is no ratio"

// row compares two cells; why is the reason where they have no ratio.
func (c *comparer) row(a, b *compareCell, side string) (row CompareRow, why string) {
	row = CompareRow{Case: a.key.id, Phase: a.key.phase, Cycle: a.key.cycle, Op: string(a.key.op), Unit: a.key.op.Unit(), Side: side,
		Status: RowUnclear, Warnings: []string{}}
	values := func(cell *compareCell) (out []float64) {
		for _, r := range cell.rounds {
			out = append(out, r.v)
		}
		return out
	}
	x, y := values(a), values(b)
	if slices.Min(x) <= 0 || slices.Min(y) <= 0 {
		if slices.Max(x) == 0 && slices.Max(y) == 0 && slices.Min(x) == 0 && slices.Min(y) == 0 {
			return row, bothZero
		}
		return row, "a value that is not positive has no ratio"
	}
	row.Base, row.Value = a.sample(), b.sample()
	ct, per, err := contrast(a, b)
	if err != nil {
		c.fillUndecided(&row, a, b)
		return row, ""
	}
	row.Ratio = math.Exp(ct.Estimate)
	each := replicaOf(per, a, b)
	p := each.corrected(ct.P(0))
	row.P = &p
	worse := each.corrected(c.pWorse(ct, a.key.op))
	row.Worse = &worse
	row.CI = ratioInterval(ct, each, per)
	if per == perRound {
		row.Warnings = append(row.Warnings, fmt.Sprintf("both sides were measured in %s, round by round: what another session would show is not known",
			sameSessions(sharedBy(a, b, bySession), "one session")))
	}
	if own := row.Value.Value / row.Base.Value; math.Abs(own/row.Ratio-1) > 1e-9 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("the ratio is the mean over the %ss that both sides have, the values are means over all of their sessions", per))
	}
	c.addWarnings(&row, a.work, b.work)
	return row, ""
}

// replicaOf is what the values of two cells replicate. Rounds that were added until an
// interval was narrow are held to the level of their looks here as in the run's own report.
func replicaOf(per string, a, b *compareCell) replica {
	if per == perSession {
		return replica{unit: perSession}
	}
	return replica{unit: perRound, looks: max(a.looks, b.looks)}
}

// ratioInterval is the interval of the ratio with the logarithm ct, over units of replication; nil if there is none.
func ratioInterval(ct stats.Contrast, each replica, units string) *result.CI {
	iv, err := ct.Interval(each.level())
	if err != nil {
		return nil
	}
	iv.Low, iv.High, iv.Level = math.Exp(iv.Low), math.Exp(iv.High), level
	ci := ciOf(iv, units)
	ci.Method += each.kept()
	return ci
}

// sharedBy is how many units of replication two cells have in common.
func sharedBy(a, b *compareCell, of func(compareRound) string) int {
	_, n := commonDifferences(a.averageBy(of), b.averageBy(of))
	return n
}

// sameSessions is "the same 2 sessions", or the text for one.
func sameSessions(n int, one string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("the same %d sessions", n)
}

// addWarnings are what weakens a row without forbidding it.
func (c *comparer) addWarnings(row *CompareRow, a, b workKey) {
	if a.filesystem != b.filesystem {
		row.Warnings = append(row.Warnings, fmt.Sprintf("file system %s against %s", a.filesystem, b.filesystem))
	}
	if a.backend != b.backend {
		row.Warnings = append(row.Warnings, fmt.Sprintf("backend %s against %s", cmp.Or(a.backend, "unknown"), cmp.Or(b.backend, "unknown")))
	}
	if row.CI != nil && row.CI.Method == stats.MethodPooled {
		row.Warnings = append(row.Warnings, fmt.Sprintf("%s against %d: the interval takes it that sessions vary alike on both sides",
			plural(len(row.Base.Sessions), "session"), len(row.Value.Sessions)))
	}
}

// contrast is the difference of the logarithms, b less a, over the units that
// both sides have several of.
func contrast(a, b *compareCell) (ct stats.Contrast, per string, err error) {
	x, y := a.averageBy(bySession), b.averageBy(bySession)
	if d, shared := commonDifferences(x, y); shared > 0 {
		if shared < len(x.names) || shared < len(y.names) { // one side has sessions of its own: neither paired nor apart
			x, y = restrictTo(x, y), restrictTo(y, x)
			d, _ = commonDifferences(x, y)
		}
		if ct, err = stats.MeanContrast(d); err == nil {
			return ct, perSession, nil
		}
		d, _ = commonDifferences(a.averageBy(byRound), b.averageBy(byRound))
		ct, err = stats.MeanContrast(d)
		return ct, perRound, err
	}
	pooled, err := stats.PooledContrast(y.values, x.values)
	if err != nil {
		return ct, perSession, err
	}
	if ct, err = stats.WelchContrast(y.values, x.values); err != nil {
		return pooled, perSession, nil
	}
	// Welch's test finds too much where few sessions are compared with many. The larger of the
	// two standard errors with Welch's degrees of freedom, the fewer, never does where both
	// sides vary alike; with as many on each side the two are the same.
	ct.SE = max(ct.SE, pooled.SE)
	return ct, perSession, nil
}

// commonDifferences are the differences y less x of the units that both have.
func commonDifferences(x, y unitValues) (d []float64, n int) {
	for i, name := range x.names {
		if j := slices.Index(y.names, name); j >= 0 {
			d = append(d, y.values[j]-x.values[i])
		}
	}
	return d, len(d)
}

// restrictTo keeps the units of x that y has as well.
func restrictTo(x, y unitValues) (out unitValues) {
	for i, name := range x.names {
		if slices.Contains(y.names, name) {
			out.names, out.values = append(out.names, name), append(out.values, x.values[i])
		}
	}
	return out
}

// fillUndecided is a row with too few sessions: what was seen, with an interval over
// the rounds labelled as such, and no test. Where a side has several sessions the ratio
// is over sessions, and an interval over rounds would be that of another number.
func (c *comparer) fillUndecided(row *CompareRow, a, b *compareCell) {
	row.Ratio = row.Value.Value / row.Base.Value
	row.Status = RowSessionUnknown
	na, nb := len(row.Base.Sessions), len(row.Value.Sessions)
	row.Reason = fmt.Sprintf("session effect unknown: %s against %d; three on a side, or two on both, would show how far sessions differ",
		plural(na, "session"), nb)
	if shared := sharedBy(a, b, bySession); shared > 0 {
		row.Reason = fmt.Sprintf("session effect unknown: both sides were measured in %s, with %s that both have; three sessions that both have would show how far "+
			"sessions differ, three rounds how far rounds do", sameSessions(shared, "the same session"), plural(sharedBy(a, b, byRound), "round"))
	}
	if na != 1 || nb != 1 {
		row.Reason += "; the ratio is over sessions, which are too few for an interval"
		return
	}
	x, y := a.averageBy(byRound), b.averageBy(byRound)
	ct, err := stats.WelchContrast(y.values, x.values)
	if err != nil {
		return
	}
	row.CI = ratioInterval(ct, replicaOf(perRound, a, b), roundsOfSessions)
}

// roundsOfSessions is the unit of an interval that does not contain how sessions differ.
const roundsOfSessions = "round within one session a side"

// Within are the ratios between which two sides count as the same in a quantity:
// from the one at which a change for the worse is a regression, 1 less the threshold
// for rates and 1 plus the threshold for times and sizes, to its inverse.
func (c *Comparison) Within(q plan.Quantity) (low, high float64) {
	if info, ok := q.Info(); ok && !info.HigherIsBetter {
		return 1 / (1 + c.Threshold), 1 + c.Threshold
	}
	return 1 - c.Threshold, 1 / (1 - c.Threshold)
}

// worseAt is the logarithm of the ratio from which on a change is a regression.
func (c *comparer) worseAt(q plan.Quantity) float64 {
	low, high := c.out.Within(q)
	if info, ok := q.Info(); ok && !info.HigherIsBetter {
		return math.Log(high)
	}
	return math.Log(low)
}

// pWorse is the p value of "the ratio is at the threshold", 1 where the ratio is
// on the better side of it.
func (c *comparer) pWorse(ct stats.Contrast, q plan.Quantity) float64 {
	at := c.worseAt(q)
	if at < 0 && ct.Estimate > at || at > 0 && ct.Estimate < at {
		return 1
	}
	return ct.P(at)
}

// decideRows gives every row its status, after Holm over all rows that were tested.
func (c *comparer) decideRows() {
	var tested []*CompareRow
	var ps, worse []float64
	for i := range c.out.Rows {
		if r := &c.out.Rows[i]; r.P != nil {
			tested, ps, worse = append(tested, r), append(ps, *r.P), append(worse, *r.Worse)
		}
	}
	adjusted, err := stats.Holm(ps)
	past, errPast := stats.Holm(worse)
	for i, r := range tested {
		if err != nil || errPast != nil { // a p value that is none
			r.P, r.Worse = nil, nil
			continue
		}
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
		r.Better = direction(plan.Quantity(r.Op), r.Ratio)
		if r.Status == RowUnclear {
			r.Reason = unclear(r, len(tested))
		}
		r.Effect = effect(r)
		r.Undecided = c.undecided(r)
	}
}

// undecided reports whether a row leaves open that it is worse than the threshold.
func (c *comparer) undecided(r *CompareRow) bool {
	if r.Regressed || r.Status == RowSame {
		return false
	}
	if r.Status != RowChanged || r.CI == nil || r.CI.Unit != perSession {
		return true
	}
	if at := math.Exp(c.worseAt(plan.Quantity(r.Op))); at < 1 {
		return r.CI.Low < at
	} else {
		return r.CI.High > at
	}
}

// unclear returns why a row that was tested is undecided.
func unclear(r *CompareRow, tests int) string {
	if r.P != nil && *r.P <= family && r.Holm != nil {
		return fmt.Sprintf("%d rows are tested together, and for that it is not clear enough (%s, after Holm %s)", tests, SayP(*r.P), ShowP(*r.Holm))
	}
	return "the interval contains 1, and reaches beyond the threshold"
}

// direction is 1 where a ratio is a change for the better.
func direction(q plan.Quantity, ratio float64) int {
	info, ok := q.Info()
	if !ok || ratio == 1 {
		return 0
	}
	if (ratio > 1) == info.HigherIsBetter {
		return 1
	}
	return -1
}
