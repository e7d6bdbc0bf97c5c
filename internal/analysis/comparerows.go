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
		warn("row.one-session", wording.Count{N: sharedBy(a, b, bySession), Noun: "shared session"})
	}
	if own := row.Value.Value / row.Base.Value; math.Abs(own/row.Ratio-1) > 1e-9 {
		warn("row.shared-units", per)
	}
	if x, y := a.target, b.target; x != y {
		warn("row.target", cmp.Or(x, "unknown"), cmp.Or(y, "unknown"))
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

// sharedBy is how many units of replication two cells have in common.
func sharedBy(a, b *compareCell, of func(compareRound) string) int {
	return len(commonDifferences(a.averageBy(of), b.averageBy(of)))
}

// contrast is the difference of the logarithms, b less a, over the units that
// both sides have several of.
func contrast(a, b *compareCell) (ct stats.Contrast, per string, err error) {
	x, y := a.averageBy(bySession), b.averageBy(bySession)
	// Sessions that only one side has are left out where the sides share some:
	// such sides are neither paired nor apart.
	if d := commonDifferences(x, y); len(d) > 0 {
		if ct, err = stats.MeanContrast(d); err == nil {
			return ct, perSession, nil
		}
		ct, err = stats.MeanContrast(commonDifferences(a.averageBy(byRound), b.averageBy(byRound)))
		return ct, perRound, err
	}
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

// commonDifferences are the differences y less x of the units that both have.
func commonDifferences(x, y unitValues) (d []float64) {
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
	if shared := sharedBy(a, b, bySession); shared > 0 {
		row.Reason = wording.Text("session-unknown.shared", wording.Count{N: shared, Noun: "shared session"},
			wording.Count{N: sharedBy(a, b, byRound), Noun: "round"})
	}
	x, y := a.averageBy(byRound), b.averageBy(byRound)
	if ct, err := stats.WelchContrast(y.values, x.values); err == nil && na == 1 && nb == 1 {
		row.CI = ratioInterval(ct, roundsOf(a, b), roundsOfSessions)
	}
}

// Within are the ratios between which two sides count as the same in a
// quantity: from the one at which a change for the worse is a regression, 1
// less the threshold for rates and 1 plus the threshold for times and sizes, to
// its inverse.
func (c *Comparison) Within(q plan.Quantity) (low, high float64) {
	if isMoreBetter(q) {
		return 1 - c.Threshold, 1 / (1 - c.Threshold)
	}
	return 1 / (1 + c.Threshold), 1 + c.Threshold
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
