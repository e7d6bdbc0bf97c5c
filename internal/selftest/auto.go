package selftest

import (
	"context"
	"fmt"

	"dmgbench/internal/result"
)

// autoRule is where rounds = "auto" is tried.
type autoRule struct {
	// In per cent
	precision, mounts string
	// Limit is TOML of [run], "" for the default of 30 rounds
	limit, limitText string
}

func (r autoRule) name() string {
	return fmt.Sprintf("± %s %%, mounts %s %%, %s", r.precision, r.mounts, r.limitText)
}

func autoKeys(precision, limit string) string {
	return fmt.Sprintf("precision = \"%s%%\"\n%s", precision, limit)
}

// autoRules are from ones that stop at the first look to ones that a limit
// ends.
func (x *exam) autoRules() (out []autoRule) {
	limits := [][2]string{{"", "30 rounds"}, {"max_rounds = 12", "12 rounds"}, {`max_time = "15 s"`, "15 s"}}
	for _, limit := range limits {
		for _, precision := range []string{"2", "5"} {
			for _, mounts := range []string{"1", "3", "10"} {
				// At 5 % few runs get to that limit
				if limit[1] != "15 s" || precision == "2" {
					out = append(out, autoRule{precision, mounts, limit[0], limit[1]})
				}
			}
		}
	}
	return choose(x, out, []autoRule{{"5", "3", "", "30 rounds"}})
}

// autoEstimates have an interval over rounds in addition to the headline. The
// trimmed mean of four files is not one of them: its limit is not that of many
// files.
var autoEstimates = []string{"median", "theil-sen", "mean", "weighted", "latency"}

// autoRounds: do intervals keep their level where they themselves ended the
// run?
func (x *exam) autoRounds(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(500, 60))
	heads := Table{Title: "Coverage of the headlines (aggregate) in %, and how the runs ended",
		Head: []string{"wanted, scatter, limit", "all runs", "ended because precise", "ended by the limit",
			"runs ended because precise", "rounds, mean"}}
	others := newGrid("Coverage of the other estimates in %, which no rule waits for", heads.Head[0], autoEstimates...)
	for _, rule := range x.autoRules() {
		got, err := x.playRule(ctx, rule, others)
		if err != nil {
			return err
		}
		heads.Rows = append(heads.Rows, got.cells(rule.name()))
		d.bounds[0].take(rule.name(), got.all.mean(), got.all.shareErr(), int(got.all.n))
		for _, e := range autoEstimates {
			d.bounds[0].share(rule.name()+", "+e, *others.at(rule.name(), e))
		}
	}
	d.Tables = append(d.Tables, heads)
	d.add(others)
	return x.autoAlarms(ctx, d)
}

// autoCount is the outcome of the runs of one rule. Of both headlines of a run,
// which ended together, the mean counts.
type autoCount struct {
	all, early, late moments
	precise          share
	rounds           moments
}

func (c autoCount) cells(name string) []string {
	cell := func(m moments) string {
		if m.n == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f ± %.1f", m.mean(), m.shareErr())
	}
	return []string{name, cell(c.all), cell(c.early), cell(c.late), c.precise.String(),
		fmt.Sprintf("%.1f", c.rounds.mean())}
}

// autoOutcome is what one run shows.
type autoOutcome struct {
	// Share of the headlines whose interval holds the truth, in per cent
	held float64
	// By format
	others  [][]cover
	precise bool
	rounds  int
}

// playRule plays the runs of a rule, and adds the other estimates to others.
func (x *exam) playRule(ctx context.Context, rule autoRule, others *grid) (out autoCount, err error) {
	m := law(withLatency + "file_noise = 3%;mount_noise = " + rule.mounts + "%")
	formats, truth := fourFormats[:2], truths(m.Law, fewSizes)
	own := design{formats: formats, sizes: fewSizes, sets: 1, auto: autoKeys(rule.precision, rule.limit)}
	t := trial{design: own, law: m, runs: x.runs(500, 60), seed: []any{"auto", rule.name()}}
	all, err := observe(ctx, x, t, func(r *result.Result) autoOutcome {
		last := r.Auto.Decisions[len(r.Auto.Decisions)-1]
		one := autoOutcome{rounds: r.Rounds, precise: last.Stop == result.StopPrecise}
		for _, kind := range formats {
			if coverOf(r, kind, "aggregate", truth["aggregate"]).holds {
				one.held += 100 / float64(len(formats))
			}
			one.others = append(one.others, coversOf(r, kind, autoEstimates, truth))
		}
		return one
	})
	for _, one := range all {
		out.all.add(one.held)
		if one.precise {
			out.early.add(one.held)
		} else {
			out.late.add(one.held)
		}
		out.precise.add(one.precise)
		out.rounds.add(float64(one.rounds))
		for _, covers := range one.others {
			for k, name := range autoEstimates {
				others.at(rule.name(), name).add(covers[k].holds)
			}
		}
	}
	return out, err
}

// autoAlarms counts plans with a false verdict under rounds = "auto".
func (x *exam) autoAlarms(ctx context.Context, d *draft) error {
	g := newGrid(fmt.Sprintf("Plans of %d claims with any false verdict, %%, %d plans a figure",
		countClaims(nullClaims), x.runs(400, 30)), "scatter")
	for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"3"}) {
		for _, precision := range choose(x, []string{"2", "5"}, []string{"5"}) {
			row, column := "mounts "+noise+" %", "± "+precision+" %"
			own := nullDesign(0)
			own.sizes, own.auto = fewSizes[2:3], autoKeys(precision, "")
			t := trial{design: own, law: nullLaw("file_noise = 3%;mount_noise = " + noise + "%"), runs: x.runs(400, 30),
				seed: []any{"auto verdicts", precision, noise}, varied: true}
			if err := x.count(ctx, t, decidedClaims, g.at(row, column)); err != nil {
				return err
			}
			d.bounds[1].share(row+", "+column, *g.at(row, column))
		}
	}
	d.add(g)
	return nil
}
