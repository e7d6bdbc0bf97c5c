package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// compareDesigns are the numbers of sessions on each side.
var compareDesigns = []int{1, 3, 5}

// comparing studies what compare reports of two sides that are alike, and of two that are not.
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

// comparedShares count what compare reported of two sides.
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

// turnedClaims turn round when UDSB, at first faster than UDRW, becomes slower.
var turnedClaims = []struct{ id, toml string }{{"faster", `left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"`}}

// ownScatters are what kinds of images differ by from session to session, each kind independently, in per cent.
func ownScatters(full bool) []string {
	if !full {
		return []string{"10"}
	}
	return []string{"0", "3", "10"}
}

// requiring: how often does compare end with 5 for a claim with require = true?
func (x *Exam) requiring(ctx context.Context) (Study, error) {
	s := Study{ID: "require", Title: "Claims that a comparison requires",
		Asks: "The claims of a plan have `require = true`. How often does `compare` end with 5 where nothing changed, and how often does it " +
			"find that a claim no longer holds?"}
	alarm := within("`compare` ends with 5 in at most 5 % of comparisons where nothing changed, claims with `require = true` included",
		"%", -none, 5)
	same, turned := keyed{}, keyed{}
	designs := compareDesigns
	if !x.Full {
		designs = []int{1, 3}
	}
	var rows, columns []string
	for _, n := range designs {
		columns = append(columns, sessionsASide(n))
	}
	for _, own := range ownScatters(x.Full) {
		row := own + " % between kinds and sessions"
		rows = append(rows, row)
		for k, n := range designs {
			null, _, err := x.exits(ctx, own, n, x.runs(600, 20), nullClaims, nullLaw, nullLaw)
			if err != nil {
				return s, err
			}
			same.at(row, columns[k]).join(null)
			alarm.share(row+", "+columns[k], null)
			_, changed, err := x.exits(ctx, own, n, x.runs(200, 20), turnedClaims, udsbLaw("5.5"), udsbLaw("4.5"))
			if err != nil {
				return s, err
			}
			turned.at(row, columns[k]).join(changed)
		}
	}
	s.How = fmt.Sprintf("Three rounds a session, mounts scatter by 2 %%. First table: %d comparisons a figure; the truth of each of %d claims "+
		"is exactly on its bound, as in [False verdicts of a plan](#%s). Second table: %d comparisons a figure; UDSB is 10 %% faster than UDRW "+
		"on one side and 10 %% slower on the other.",
		x.runs(600, 20), len(nullClaims), anchor("False verdicts of a plan"), x.runs(200, 20))
	s.Tables = []Table{same.table("Comparisons of equal sides that end with 5, %", "scatter", rows, columns),
		turned.table("Comparisons that find that a required claim no longer holds, %", "scatter", rows, columns)}
	s.Promises = []Promise{alarm.promise()}
	s.Says = []string{"The claims of a side are judged on its pooled sessions, with the session as the unit. Fewer than three sessions on a side " +
		"decide nothing about a claim."}
	return s, nil
}

// udsbLaw is a law under which UDSB is written at a rate in GB/s, UDRW at 5.
func udsbLaw(rate string) func(tail string) simulated.Machine {
	return func(tail string) simulated.Machine {
		return lawOf("write = 5 GB/s;read = 5 GB/s;step = 20 ms;" + tail + ";[UDSB];write = " + rate + " GB/s")
	}
}

func sessionsASide(n int) string { return strings.TrimSuffix(plural(n), " pooled") + " a side" }

// exits counts the comparisons of n sessions a side that end with 5, and those in which a claim changed.
func (x *Exam) exits(ctx context.Context, own string, n, times int, claims []struct{ id, toml string },
	before, after func(string) simulated.Machine) (exits, changed share, err error) {
	text := strings.ReplaceAll(claimsTOML(claims), "by = \"us\"\n", "by = \"us\"\nrequire = true\n")
	p, err := design{formats: fourFormats, sizes: fewSizes, sets: 1, rounds: 3, claims: text}.plan()
	if err != nil {
		return exits, changed, err
	}
	tail := "file_noise = 3%;mount_noise = 2%;own_noise = " + own + "%"
	sides := []simulated.Machine{before(tail), after(tail)}
	hits := make([][2]bool, times)
	err = each(ctx, len(hits), func(ctx context.Context, i int) error {
		c, err := x.compareOnce(ctx, p, sides, n, x.seed("require", own, len(claims), n, i))
		if err == nil {
			hits[i] = [2]bool{c.Regression, slices.ContainsFunc(c.Claims, func(k analysis.ClaimChange) bool { return k.Changed })}
		}
		return err
	})
	for _, h := range hits {
		exits.add(h[0])
		changed.add(h[1])
	}
	return exits, changed, err
}
