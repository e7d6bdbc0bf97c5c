package selftest

import (
	"context"
	"fmt"

	"dmgbench/internal/result"
)

// autoRow is where rounds = "auto" is tried.
type autoRow struct {
	precision, mounts, limit string // limit is TOML of [run], "" for the default of 30 rounds
	says                     string // the limit in words
}

func (r autoRow) name() string {
	return fmt.Sprintf("± %s %%, mounts %s %%, %s", r.precision, r.mounts, r.says)
}

func (r autoRow) keys() string { return fmt.Sprintf("precision = \"%s%%\"\n%s", r.precision, r.limit) }

// autoRows are the rules, from ones that stop at the first look to ones that a limit ends.
func autoRows(full bool) (out []autoRow) {
	if !full {
		return []autoRow{{"5", "3", "", "30 rounds"}}
	}
	for _, limit := range []autoRow{{says: "30 rounds"}, {limit: "max_rounds = 12", says: "12 rounds"}, {limit: `max_time = "15 s"`, says: "15 s"}} {
		for _, precision := range []string{"2", "5"} {
			for _, mounts := range []string{"1", "3", "10"} {
				if limit.says != "15 s" || precision == "2" { // at 5 % few runs get to that limit
					out = append(out, autoRow{precision, mounts, limit.limit, limit.says})
				}
			}
		}
	}
	return out
}

// autoColumns are the columns of the first table; the last is not a share.
var autoColumns = []string{"all runs", "ended because precise", "ended by the limit", "runs ended because precise", "rounds, mean"}

// autoRounds: do intervals keep their level where they themselves ended the run?
func (x *Exam) autoRounds(ctx context.Context) (Study, error) {
	s := Study{ID: "auto", Title: "Rounds until it is precise enough",
		Asks: "With `--rounds auto` a run goes on until its intervals are narrow, and so ends where scatter happens to be small. Do they still hold the truth as often as they print?"}
	b := within("intervals of `--rounds auto` cover at least the 95 % that they print, under their own rule to stop", "%", 95, none)
	heads := Table{Title: "Coverage of the headlines (aggregate) in %, and how the runs ended", Head: append([]string{"wanted, scatter, limit"}, autoColumns...)}
	others := keyed{}
	var rows []string
	for _, row := range autoRows(x.Full) {
		rows = append(rows, row.name())
		got, err := x.autoRow(ctx, row, others)
		if err != nil {
			return s, err
		}
		heads.Rows = append(heads.Rows, got.cells(row.name()))
		b.take(row.name(), got.all.mean(), shareError(got.all), int(got.all.n))
		for _, e := range autoEstimates {
			b.share(row.name()+", "+e, *others.at(row.name(), e))
		}
	}
	alarm := within("with `--rounds auto` at most 5 % of plans give a false verdict (Holm over their claims)", "%", -none, 5)
	alarms, err := x.autoAlarms(ctx, alarm)
	s.How = fmt.Sprintf("%d runs a row of two formats, whose headlines both have to be narrow; four files a mount, which scatter by 3 %%. The run looks at its intervals after "+
		"5, 9, 17 and 30 rounds (5 and 12 where 12 are the most), or when the limit is reached.", x.runs(500, 60))
	s.Tables = []Table{heads, others.table("Coverage of the other estimates in %, which no rule waits for", "wanted, scatter, limit", rows, autoEstimates), alarms}
	s.Promises = []Promise{b.promise(), alarm.promise()}
	s.Says = []string{
		"The level is kept over all runs of a rule. Where few runs end before the limit, more of those miss, since it takes a scatter that is small by chance: " +
			"of runs that are repeated until one ends early, that one does not keep its level.",
		"Each of k looks is at the level 1 − 5 %/k, which is more than enough: the price is intervals that hold the truth more often than they say, and so are wider than they need be.",
		"A limit of time is reached sooner where files are slow; what that chooses does not show in these figures.",
	}
	return s, err
}

// autoEstimates have an interval over rounds in addition to the headline. The trimmed
// mean of four files is none of them: it tends to something else than that of many.
var autoEstimates = []string{"median", "theil-sen", "mean", "weighted", "latency"}

// autoCount is what came of the runs of one rule; of both headlines of a run, which
// ended together, the mean counts.
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
		return fmt.Sprintf("%.1f ± %.1f", m.mean(), shareError(m))
	}
	return []string{name, cell(c.all), cell(c.early), cell(c.late), c.precise.String(), fmt.Sprintf("%.1f", c.rounds.mean())}
}

// shareError is the standard error of a mean of shares in per cent, never less than
// that of as many draws that are all alike.
func shareError(m moments) float64 {
	return max(m.err(), share{int(m.n), int(m.n)}.err())
}

// autoOutcome is what one run shows.
type autoOutcome struct {
	held    float64 // share of the headlines whose interval holds the truth, in per cent
	others  [2][5]bool
	precise bool
	rounds  int
}

func (x *Exam) autoRow(ctx context.Context, row autoRow, others keyed) (out autoCount, err error) {
	d := design{formats: fourFormats[:2], sizes: fewSizes, sets: 1, auto: row.keys()}
	p, err := d.plan()
	if err != nil {
		return out, err
	}
	m := lawOf("write = 5 GB/s;read = 5 GB/s;latency = 200 us;step = 20 ms;file_noise = 3%;mount_noise = " + row.mounts + "%")
	truth := truths(m.Law, d.sizes)
	all := make([]autoOutcome, x.runs(500, 60))
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("auto", row.name(), i), 1)
		if err == nil {
			all[i] = autoOutcomeOf(r, d.formats, truth)
		}
		return err
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
		for _, seen := range one.others {
			for k, name := range autoEstimates {
				others.at(row.name(), name).add(seen[k])
			}
		}
	}
	return out, err
}

// autoOutcomeOf sets a run against the truth.
func autoOutcomeOf(r *result.Result, formats []string, truth map[string]float64) (out autoOutcome) {
	out.precise, out.rounds = r.Auto.Decisions[len(r.Auto.Decisions)-1].Stop == result.StopPrecise, r.Rounds
	holds := func(kind, name string) bool {
		e, ok := estimateOf(r, kind, "write", name)
		return ok && e.CI != nil && e.CI.Low <= truth[name] && truth[name] <= e.CI.High
	}
	for f, kind := range formats {
		if holds(kind, "aggregate") {
			out.held += 100 / float64(len(formats))
		}
		for k, name := range autoEstimates {
			out.others[f][k] = holds(kind, name)
		}
	}
	return out
}

// autoAlarms counts plans with a false verdict under rounds = "auto".
func (x *Exam) autoAlarms(ctx context.Context, b *bound) (Table, error) {
	precisions, noises := []string{"2", "5"}, []string{"1", "3", "10"}
	if !x.Full {
		precisions, noises = []string{"5"}, []string{"3"}
	}
	table := keyed{}
	var rows, columns []string
	for _, precision := range precisions {
		columns = append(columns, "± "+precision+" %")
	}
	for _, noise := range noises {
		rows = append(rows, "mounts "+noise+" %")
		for k, precision := range precisions {
			p, err := design{formats: fourFormats, sizes: fewSizes[2:3], sets: 1, auto: autoRow{precision: precision}.keys(), claims: claimsTOML(nullClaims)}.plan()
			if err != nil {
				return Table{}, err
			}
			m := nullLaw("file_noise = 3%;mount_noise = " + noise + "%")
			hits := make([]bool, x.runs(400, 30))
			err = each(ctx, len(hits), func(ctx context.Context, i int) error {
				r, err := x.stage.play(ctx, p, m, x.seed("auto verdicts", precision, noise, i), i)
				if err == nil {
					hits[i] = falseVerdicts(r)[0]
				}
				return err
			})
			if err != nil {
				return Table{}, err
			}
			for _, h := range hits {
				table.at(rows[len(rows)-1], columns[k]).add(h)
			}
			b.share(rows[len(rows)-1]+", "+columns[k], *table.at(rows[len(rows)-1], columns[k]))
		}
	}
	return table.table(fmt.Sprintf("Plans of %d claims with any false verdict, %%, %d plans a figure", len(nullClaims), x.runs(400, 30)), "scatter", rows, columns), nil
}
