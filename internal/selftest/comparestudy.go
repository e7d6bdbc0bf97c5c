package selftest

import (
	"context"
	"fmt"
	"slices"

	"dmgbench/internal/analysis"
	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// compareDesign is how many sessions stand on each side.
var compareDesigns = []int{1, 3, 5}

// comparing: what does compare say of two sides that are alike, and of two that are not?
func (x *Exam) comparing(ctx context.Context) (Study, error) {
	s := Study{ID: "compare", Title: "Comparisons of runs",
		Asks: "Runs of one machine are compared with later ones. How often is a change said where there is none, and how often one of 10 % where there is?"}
	alarm := within("`compare` calls at most 5 % of comparisons changed where nothing has, however much sessions differ", "%", -none, 5)
	one := within("with one session a side it calls nothing changed, and never a regression", "%", -none, 0)
	alike, slower, exits := keyed{}, keyed{}, keyed{}
	scatter, designs := []string{"0", "1", "3", "10"}, compareDesigns
	if !x.Full {
		scatter, designs = []string{"3"}, []int{1, 3}
	}
	var rows, columns []string
	for _, n := range designs {
		columns = append(columns, sessionsASide(n))
	}
	for _, sc := range scatter {
		row := "sessions " + sc + " %"
		rows = append(rows, row)
		for k, n := range designs {
			same, err := x.compared(ctx, sc, "5", n)
			if err != nil {
				return s, err
			}
			changed, err := x.compared(ctx, sc, "4.5", n)
			if err != nil {
				return s, err
			}
			alike.at(row, columns[k]).join(same.changed)
			slower.at(row, columns[k]).join(changed.changed)
			exits.at(row, columns[k]).join(changed.regressed)
			alarm.share(row+", "+columns[k], same.changed)
			if n == 1 {
				one.take(row+", both ways", max(same.changed.rate(), changed.changed.rate(), changed.regressed.rate()), 0, changed.changed.n)
			}
		}
	}
	s.How = fmt.Sprintf("%d comparisons a figure, each of four rows (two formats, writing and reading); three rounds a session, mounts scatter by 2 %%.", x.runs(200, 20))
	s.Tables = []Table{alike.table("Comparisons of equal sides with any row called changed, %", "scatter", rows, columns),
		slower.table("Comparisons in which the later side is 10 % slower, with any row called changed, %", "scatter", rows, columns),
		exits.table("Of the same comparisons, those that end with 5 (slower by more than 5 %), %", "scatter", rows, columns)}
	s.Promises = []Promise{alarm.promise(), one.promise()}
	s.Says = []string{"One session a side tells nothing, however many rounds it has; from three on a change that is larger than what sessions differ by is found."}
	return s, nil
}

// comparedShares count what was said of two sides.
type comparedShares struct{ changed, regressed share }

// compared plays sessions on both sides, the later at another rate, and compares them.
func (x *Exam) compared(ctx context.Context, scatter, rate string, n int) (out comparedShares, err error) {
	p, err := design{formats: fourFormats[:2], sizes: fewSizes, sets: 1, rounds: 3, read: true}.plan()
	if err != nil {
		return out, err
	}
	law := func(rate string) simulated.Machine {
		return lawOf("write = " + rate + " GB/s;read = " + rate + " GB/s;step = 20 ms;file_noise = 3%;mount_noise = 2%;session_noise = " + scatter + "%")
	}
	sides := []simulated.Machine{law("5"), law(rate)}
	all := make([][2]bool, x.runs(200, 20))
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		c, err := x.compareOnce(ctx, p, sides, n, x.seed("compare", scatter, rate, n, i))
		if err != nil {
			return err
		}
		all[i] = [2]bool{slices.ContainsFunc(c.Rows, func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged }), c.Regression}
		return nil
	})
	for _, one := range all {
		out.changed.add(one[0])
		out.regressed.add(one[1])
	}
	return out, err
}

func (x *Exam) compareOnce(ctx context.Context, p *plan.Plan, sides []simulated.Machine, n int, seed uint64) (*analysis.Comparison, error) {
	var runs []*result.Result
	for side, m := range sides {
		for k := range n {
			r, err := x.stage.measured(ctx, p, m, seed, 1+side*n+k)
			if err == nil && len(p.Claims) > 0 {
				err = analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
			}
			if err != nil {
				return nil, err
			}
			for i := range r.Sessions {
				r.Sessions[i].Host.OSBuild = fmt.Sprintf("build %d", side+1)
			}
			runs = append(runs, r)
		}
	}
	return analysis.Compare(runs, analysis.CompareOptions{By: []string{"os_build"}, Plans: map[string]*plan.Plan{runs[0].Plan.Digest: p}})
}
