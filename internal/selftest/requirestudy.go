package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/engine/simulated"
)

// turnedClaims turn round when UDSB, at first faster than UDRW, becomes slower.
var turnedClaims = []struct{ id, toml string }{{"faster", `left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"`}}

// ownScatters are what kinds of images differ by from session to session, each by itself, in per cent.
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
