package analysis

import (
	"math"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// transientWarning says that the rates of the rounds have a trend: what was
// measured had not settled. Fewer than six rounds cannot show one at [modeP].
func (s *study) transientWarning(w *warningList, c cell, q plan.Quantity) {
	if len(s.r.Runs) > 0 { // rounds of pooled runs are in no one order of time
		return
	}
	rates := gather(q, []cell{c}, aggregate, nil).values
	t, err := stats.Trend(rates)
	over := drifted(rates)
	if err != nil || t.P > modeP || over < canaryTrend {
		return
	}
	way := "faster"
	if t.Coefficient < 0 {
		way = "slower"
	}
	w.add("transient", "over %s it became %s by %s (%s): speed was still drifting", plural(len(rates), "round"), way, percent(over), SayP(t.P))
}

// batchTransient says the same of the files of one step, by their times over what
// their sizes let expect.
func batchTransient(w *warningList, st *result.Step, excess []float64) {
	if len(excess) < minForModes {
		return
	}
	at, factors := make([]float64, len(excess)), make([]float64, len(excess))
	for i, e := range excess {
		at[i], factors[i] = float64(i), math.Exp(e)
	}
	t, err := stats.Trend(factors)
	l, errLine := stats.FitTheilSen(at, excess)
	if err != nil || errLine != nil || t.P > modeP {
		return
	}
	change := l.Slope * float64(len(excess)-1)
	if math.Abs(change) < math.Log(worthSaying) {
		return
	}
	w.add("transient", "round %d: by the end of the step files took %s times as long as at its beginning (%s): speed was still drifting",
		st.Round, show(math.Exp(change), "1"), SayP(t.P))
}
