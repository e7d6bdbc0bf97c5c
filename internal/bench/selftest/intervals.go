package selftest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// fileEstimates are the estimates of one mount that have an interval over its
// files.
var fileEstimates = []string{"median", "theil-sen", "mean", "trimmed", "aggregate",
	"least-squares", "weighted", "latency"}

// orderEstimates have intervals of order statistics: their printed level is a
// lower bound.
var orderEstimates = []string{"median", "theil-sen"}

// robustEstimates resist outliers, and have an interval where a mount has some.
var robustEstimates = []string{"median", "theil-sen", "trimmed"}

// nominal are the law's own values of the estimates that are recovered from
// noise.
var nominal = map[string]float64{"theil-sen": 5e9, "weighted": 5e9, "least-squares": 5e9, "latency": 200e-6}

// recovery: are rate and latency of the law found again?
func (x *exam) recovery(s *Study) {
	runs := choose(x, 300, 30)
	s.fillHow(runs)
	clean := Table{Title: "Without noise: farthest estimate from the law",
		Head: []string{"law", "estimate", "off by, parts in a million"}}
	names := []string{"theil-sen", "weighted", "least-squares", "latency"}
	dirty := Table{Title: "With noise: off the law's 5 GB/s and 200 µs, % " +
		"(mean ± Monte Carlo error; scatter of single runs in brackets)", Head: append([]string{"law"}, names...)}
	for _, l := range s.Laws {
		name, text := l[1], l[2]
		if l[0] == "clean" {
			worst, estimate := x.offExact(text)
			clean.Rows = append(clean.Rows, []string{name, estimate, plainNumber(worst)})
			s.Promises[0].take(name+", "+estimate, worst, 0, 1)
			continue
		}
		off := make([]moments, len(names)) // relative errors in per cent
		for _, r := range x.play(trial{design: design{Sizes: oneCall, Sets: 10, Rounds: 1}, runs: runs,
			law: law("write = 5 GB/s;read = 6 GB/s;latency = 200 us;" + text), seed: []any{"dirty", name}}) {
			for k, n := range names {
				off[k].add(100 * (estimate(r, "", n).Value/nominal[n] - 1))
			}
		}
		row := []string{name}
		for _, o := range off {
			row = append(row, fmt.Sprintf("%+.2f ± %.2f (%.2f)", o.mean(), o.err(), o.sd()))
		}
		dirty.Rows = append(dirty.Rows, row)
		if name != "noise 20 %" {
			s.Promises[1].take(name, off[0].mean(), off[0].err(), runs)
		}
		if name == "noise 5 %" {
			s.Promises[2].take(name, off[3].mean(), off[3].err(), runs)
		}
	}
	s.Tables = []Table{clean, dirty}
}

// offExact is the farthest relative error of all estimates under a law without
// noise, in parts in a million.
func (x *exam) offExact(text string) (worst float64, name string) {
	m := law(text)
	truth := truths(m.Law, oneCall)
	for _, r := range x.play(trial{design: design{Sizes: oneCall, Sets: 3, Rounds: 1}, law: m, runs: 1}) {
		for _, n := range fileEstimates {
			off := 1e6 * math.Abs(estimate(r, "", n).Value/truth[n]-1)
			if worst = max(worst, off); off == worst {
				name = n
			}
		}
	}
	return worst, name
}

// fileIntervals: do the intervals over the files of one mount cover the truth?
func (x *exam) fileIntervals(s *Study) {
	s.fillHow(choose(x, 1000, 60))
	// Samples of one size, and of the sixteen of the gold standard
	var samples []design
	for _, n := range choose(x, []int{2, 3, 6, 20, 40}, []int{2, 20}) {
		samples = append(samples, design{Sizes: []int64{100e6}, Sets: n, Rounds: 1})
	}
	for _, n := range choose(x, []int{2, 3, 5, 10}, []int{3}) {
		samples = append(samples, design{Sizes: goldSizes, Sets: n, Rounds: 1})
	}
	for _, l := range s.Laws {
		covered := newGrid("Coverage in %: "+l[0], "estimate")
		given := newGrid("Mounts in which the interval is given, %: "+l[0], "estimate")
		for _, sample := range samples {
			column, levels := sample.sample(), x.coverFiles(l, sample, covered, given)
			for _, e := range fileEstimates {
				k, where := *covered.at(e, column), fmt.Sprintf("%s, %s, %s", e, column, l[0])
				if slices.Contains(tooFew[column], e) {
					s.Promises[2].take("intervals of "+where, given.at(e, column).rate(), 0, given.at(e, column).n)
				}
				switch {
				case k.n == 0:
				case slices.Contains(orderEstimates, e):
					s.Promises[0].take(where, k.rate()-100*levels[e], k.err(), k.n)
				default:
					s.Promises[1].takeShare(where, k)
				}
			}
		}
		s.add(covered)
		if l[2] != "" {
			s.add(given)
		}
	}
}

// tooFew are the estimates that must not have an interval over the files of a
// sample.
var tooFew = map[string][]string{"2 of one size": fileEstimates, "3 of one size": {"trimmed", "median"},
	"32 of 16 sizes": fileEstimates[1:]} // all but the median

// coverFiles plays runs of one sample under a law, and counts the intervals
// that are given and those that contain the truth. It returns the highest level
// that the intervals of each estimate print. Estimates that do not resist
// outliers are compared with the calm law, which has none.
func (x *exam) coverFiles(row []string, own design, covered, given *grid) map[string]float64 {
	name, calmLaw, outliers := row[0], row[1], row[2]
	m := law(withLatency + calmLaw + ";" + outliers)
	truth, calm := truths(m.Law, own.Sizes), truths(law(withLatency+calmLaw).Law, own.Sizes)
	column, levels := own.sample(), map[string]float64{}
	results := x.play(trial{design: own, law: m, runs: choose(x, 1000, 60), seed: []any{"files", name, column}})
	for _, e := range fileEstimates {
		if !slices.Contains(robustEstimates, e) {
			truth[e] = calm[e]
		}
		covered := covered.at(e, column)
		for _, r := range results {
			ci := estimate(r, "", e).CI
			if given.at(e, column).add(ci != nil); ci != nil {
				covered.add(holds(ci, truth[e]))
				levels[e] = max(levels[e], ci.Level)
			}
		}
	}
	return levels
}

// roundIntervals: do the intervals over rounds and sessions cover the truth?
// The rows of laws end with the number of rounds and of sessions.
func (x *exam) roundIntervals(s *Study) {
	runs := choose(x, 1000, 60)
	s.fillHow(runs)
	g := newGrid("Coverage in %", "design", fileEstimates...)
	last := len(s.Laws) - 1 // of the short form
	for _, l := range choose(x, s.Laws[:last], s.Laws[last:]) {
		row, m := l[0], law(withLatency+"file_noise = 3%;"+l[1])
		truth := truths(m.Law, goldSizes)
		results := x.play(trial{design: design{Sizes: goldSizes, Sets: 3, Rounds: number(l[2])}, law: m, runs: runs,
			seed: []any{"rounds", row}, pooled: number(l[3])})
		for _, e := range fileEstimates {
			for _, r := range results {
				if ci := estimate(r, "", e).CI; ci != nil && ci.Unit != "file within one mount" {
					g.at(row, e).add(holds(ci, truth[e]))
				}
			}
			g.check(&s.Promises[0], row, e)
		}
	}
	s.add(g)
}

// tooNarrow ends the method of an interval over files that change between two
// speeds (docs/metrics.md).
const tooNarrow = "too narrow: files at two speeds"

// twoSpeedIntervals: what are the intervals of median and Theil–Sen worth where
// files are at two speeds?
func (x *exam) twoSpeedIntervals(s *Study) {
	runs := choose(x, 1000, 60)
	s.fillHow(runs)
	g := newGrid("Runs of 1 round with the label, and coverage of the intervals, in %", "estimate and law",
		"labelled", "1 round, labelled", "1 round, not labelled")
	for _, l := range choose(x, s.Laws, s.Laws[:1]) {
		name, m := l[0], law(withLatency+"file_noise = 5%;"+l[1])
		truth := truths(m.Law, goldSizes)
		for _, n := range choose(x, []int{1, 3, 5, 10}, []int{1, 3}) {
			results := x.play(trial{design: design{Sizes: goldSizes, Sets: 10, Rounds: n}, law: m, runs: runs,
				seed: []any{"speeds", name, n}})
			for _, e := range orderEstimates {
				row := e + ", " + name
				for _, r := range results {
					ci, column := estimate(r, "", e).CI, units.Count(n, "round")
					if n == 1 {
						label := ci != nil && strings.HasSuffix(ci.Method, tooNarrow)
						column += map[bool]string{true: ", labelled", false: ", not labelled"}[label]
						g.at(row, "labelled").add(label)
					}
					if ci != nil {
						g.at(row, column).add(holds(ci, truth[e]))
					}
				}
				if n > 1 {
					g.check(&s.Promises[1], row, units.Count(n, "round"))
				}
			}
		}
		for _, e := range orderEstimates {
			if row := e + ", " + name; strings.Contains(name, "× 2") {
				s.Promises[0].takeShare(row, *g.at(row, "labelled"))
			}
		}
	}
	s.add(g)
}

// number is a number of studies.toml.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("reading a number of the selftest: %v", err))
	}
	return n
}

// autoDesign is a plan that ends its rounds by its intervals.
func autoDesign(precision, limit string) design {
	return design{Sizes: fewSizes, Sets: 1, Auto: fmt.Sprintf("precision = \"%s%%\"\n%s", precision, limit)}
}

// autoEstimates have an interval over rounds in addition to the headline. The
// trimmed mean of four files is not one of them: its limit is not that of many
// files.
var autoEstimates = []string{"median", "theil-sen", "mean", "weighted", "latency"}

// autoRounds: do intervals keep their level where they themselves ended the
// run? The rows of laws are rules to stop, from ones that stop at the first look
// to ones that a limit ends: a name, a law, the precision in per cent and the
// limit, TOML.
func (x *exam) autoRounds(s *Study) {
	s.fillHow(choose(x, 500, 30))
	heads := Table{Title: "Coverage of the headlines (aggregate) in %, and how the runs ended",
		Head: []string{"wanted, scatter, limit", "all runs", "ended because precise", "ended by the limit",
			"runs ended because precise", "rounds, mean"}}
	others := newGrid("Coverage of the other estimates in %, which no rule waits for", heads.Head[0], autoEstimates...)
	for _, rule := range choose(x, s.Laws, [][]string{s.Laws[4]}) {
		heads.Rows = append(heads.Rows, x.playRule(rule, others, &s.Promises[0]))
		for _, e := range autoEstimates {
			others.check(&s.Promises[0], rule[0], e)
		}
	}
	s.Tables = append(s.Tables, heads)
	s.add(others, x.autoAlarms(&s.Promises[1]))
}

// playRule plays the runs of a rule, counts the other estimates in others, and
// returns the row about the headlines. Of both headlines of a run, which ended
// together, the mean counts.
func (x *exam) playRule(rule []string, others *grid, promise *Promise) []string {
	name, m, own := rule[0], law(withLatency+"file_noise = 3%;"+rule[1]), autoDesign(rule[2], rule[3])
	own.Formats = fourFormats[:2]
	truth := truths(m.Law, fewSizes)
	var all, early, late, rounds moments
	var precise share
	for _, r := range x.play(trial{design: own, law: m, runs: choose(x, 500, 30), seed: []any{"auto", name}}) {
		held := 0.0 // share of the headlines whose interval holds the truth, in per cent
		for _, kind := range own.Formats {
			if holds(estimate(r, kind, "aggregate").CI, truth["aggregate"]) {
				held += 100 / float64(len(own.Formats))
			}
			for _, e := range autoEstimates {
				others.at(name, e).add(holds(estimate(r, kind, e).CI, truth[e]))
			}
		}
		all.add(held)
		rounds.add(float64(r.Rounds))
		isPrecise := r.Auto.Decisions[len(r.Auto.Decisions)-1].Stop == result.StopPrecise
		precise.add(isPrecise)
		if isPrecise {
			early.add(held)
		} else {
			late.add(held)
		}
	}
	promise.take(name, all.mean(), all.shareErr(), int(all.n))
	row := []string{name}
	for _, m := range []moments{all, early, late} {
		cell := "–"
		if m.n > 0 {
			cell = fmt.Sprintf("%.1f ± %.1f", m.mean(), m.shareErr())
		}
		row = append(row, cell)
	}
	return append(row, precise.String(), fmt.Sprintf("%.1f", rounds.mean()))
}

// autoAlarms counts plans with a false verdict under rounds = "auto".
func (x *exam) autoAlarms(promise *Promise) *grid {
	runs := choose(x, 400, 20)
	g := newGrid(fmt.Sprintf("Plans of %d claims with any false verdict, %%, %d plans a figure",
		countClaims(nullClaims), runs), "scatter")
	for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"3"}) {
		for _, precision := range choose(x, []string{"2", "5"}, []string{"5"}) {
			row, column, own := "mounts "+noise+" %", "± "+precision+" %", autoDesign(precision, "")
			own.Formats, own.Sizes, own.Claims = fourFormats, fewSizes[2:3], nullClaims
			for _, r := range x.play(trial{design: own, law: nullLaw("file_noise = 3%;mount_noise = " + noise + "%"),
				runs: runs, seed: []any{"auto verdicts", precision, noise}, varied: true}) {
				decided, _ := decidedClaims(r)
				g.at(row, column).add(decided)
			}
			g.check(promise, row, column)
		}
	}
	return g
}

// maxCall is the most bytes of one call, as the workload makes them.
const maxCall = 1 << 30

const (
	// filesPerSize is how many files of a size stand for ever more of them:
	// estimates of them are within 0.002 % of their limits.
	filesPerSize = 2000
	// filesInPairs is the same for the slopes between all pairs of files, in
	// all: within 0.05 %.
	filesInPairs = 960
)

// truths are what the estimators of a rate tend to with ever more files of the
// same sizes under a law: their values for files whose times are spread evenly
// over the distribution that the law gives them.
//
// Only laws with file noise, outliers and a slow mode have such a limit; a slow
// first file, a cliff or a drift depend on the position of a file in its step.
func truths(l simulated.Law, sizes []int64) map[string]float64 {
	bytes, seconds := spreadFiles(l, sizes, filesPerSize)
	rates, weights := make([]float64, len(bytes)), make([]float64, len(bytes))
	for i, b := range bytes {
		rates[i], weights[i] = b/seconds[i], 1/(b*b)
	}
	out := map[string]float64{}
	meanBytes, _ := stats.Mean(bytes)
	meanSeconds, _ := stats.Mean(seconds)
	out["aggregate"] = meanBytes / meanSeconds
	out["mean"], _ = stats.Mean(rates)
	out["median"], _ = stats.Median(rates)
	out["trimmed"], _ = stats.TrimmedMean(rates, 0.2)
	if plain, err := stats.FitLine(bytes, seconds); err == nil {
		out["least-squares"] = 1 / plain.Slope
	}
	if w, err := stats.FitWeightedLine(bytes, seconds, weights); err == nil {
		out["weighted"], out["latency"] = 1/w.Slope, w.Intercept
	}
	if t, err := stats.FitTheilSen(spreadFiles(l, sizes, filesInPairs/len(sizes))); err == nil {
		out["theil-sen"] = 1 / t.Slope
	}
	return out
}

// spreadFiles are sizes and times of about n files of each size: normal ones,
// outliers, those of the slow mode, and both, each at equally likely values of
// the noise, which is log-normal with the mean 1.
func spreadFiles(l simulated.Law, sizes []int64, n int) (bytes, seconds []float64) {
	for _, slow := range [][2]float64{{1 - l.Slow, 1}, {l.Slow, l.SlowFactor}} { // shares with factors of times
		for _, far := range [][2]float64{{1 - l.Outliers, 1}, {l.Outliers, l.OutlierFactor}} {
			files := math.Round(float64(n) * slow[0] * far[0])
			for i := range int(files) {
				noise := l.FileNoise * math.Sqrt2 * math.Erfinv((2*float64(i)+1)/files-1)
				factor := slow[1] * far[1] * math.Exp(noise-l.FileNoise*l.FileNoise/2)
				for _, b := range sizes {
					calls := float64((b + maxCall - 1) / maxCall)
					bytes = append(bytes, float64(b))
					seconds = append(seconds, factor*(calls*l.Latency.Seconds()+float64(b)/l.Write))
				}
			}
		}
	}
	return bytes, seconds
}
