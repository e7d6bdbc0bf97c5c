package selftest

import (
	"context"
	"fmt"
	"strings"

	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/result"
)

// fourFormats are the cases of the plans that claims are judged on.
var fourFormats = []string{"UDRW", "UDSB", "UDSP", "ASIF"}

// fewSizes keep a simulated run quick: what is studied there are rounds, not files.
var fewSizes = []int64{10e6, 100e6, 400e6, 1000e6}

// nullClaims are claims with a truth exactly on their bound under [nullLaw],
// so that a verdict either way is a false alarm: three pairs of equal rates, a
// ratio, an equality, and rates against a constant.
var nullClaims = []struct{ id, toml string }{
	{"pair-1", `left = { write = { format = "UDRW" } }
right = { write = { format = "UDSB" } }
ratio = "> 1"`},
	{"pair-2", `left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = ">= 1"`},
	{"half", `left = { write = { format = "UDRW" } }
right = { write = { format = "UDSP" } }
ratio = ">= 2"`},
	{"half-again", `left = { write = { format = "UDSB" } }
right = { write = { format = "UDSP" } }
ratio = "< 2"`},
	{"about-equal", `left = { write = { format = "UDRW" } }
right = { write = { format = "ASIF" } }
equal = { within = "10%" }`},
	{"difference", `left = { write = { format = "UDRW" } }
right = { write = { format = "UDSP" } }
difference = "> 2.5 GB/s"`},
	{"bound-1", `left = { write = { format = "UDRW" } }
bound = ">= 5 GB/s"`},
	{"bound-2", `left = { write = { format = "UDSP" } }
bound = "< 2.5 GB/s"`},
}

// absoluteClaims hold rates of this session against a constant, where what the
// session was like does not cancel.
var absoluteClaims = map[string]bool{"difference": true, "bound-1": true, "bound-2": true}

// nullLaw is the law under which [nullClaims] lie on their bounds; tail is more of it.
func nullLaw(tail string) simulated.Machine {
	head := "write = 5 GB/s;read = 5 GB/s;step = 20 ms;" + tail + ";"
	return lawOf(head + "[UDSP];write = 2.5 GB/s;[ASIF];write = 4.5 GB/s")
}

func claimsTOML(list []struct{ id, toml string }) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "[[claim]]\nsays = \"Claim %s\"\nby = \"us\"\nscope = \"any\"\nid = %q\n%s\n", c.id, c.id, c.toml)
	}
	return b.String()
}

// disturbance is what the rounds and sessions of a study differ by.
type disturbance struct{ name, law string }

func disturbances(full bool) []disturbance {
	if !full {
		return []disturbance{{"sessions 3 %", "file_noise = 3%;mount_noise = 2%;session_noise = 3%"}}
	}
	var out []disturbance
	for _, s := range []string{"0", "1", "3", "10"} {
		out = append(out, disturbance{"sessions " + s + " %", "file_noise = 3%;mount_noise = 2%;session_noise = " + s + "%"})
	}
	for _, s := range []string{"0", "1", "10"} {
		out = append(out, disturbance{"mounts " + s + " %", "file_noise = 3%;mount_noise = " + s + "%"})
	}
	return append(out, disturbance{"mounts 2 %, outliers", "file_noise = 3%;mount_noise = 2%;outliers = 3% x 4"},
		disturbance{"mounts 2 %, drift", "file_noise = 3%;mount_noise = 2%;drift = 900%"})
}

// falseAlarms counts plans in which a verdict is given that is not so.
func (x *Exam) falseAlarms(ctx context.Context) (Study, error) {
	s := Study{ID: "verdicts", Title: "False verdicts of a plan",
		Asks: "The truth of every claim lies exactly on its bound. In how many plans is any verdict given, which is then false?"}
	b := within("at most 5 % of plans give a false verdict (Holm over their claims)", "%", -none, 5)
	table := keyed{}
	rounds := []int{3, 8}
	if !x.Full {
		rounds = []int{3}
	}
	var rows, columns []string
	for _, n := range rounds {
		columns = append(columns, fmt.Sprintf("%d rounds", n), fmt.Sprintf("of them ratios, %d rounds", n))
	}
	for _, d := range disturbances(x.Full) {
		rows = append(rows, d.name)
		for _, n := range rounds {
			all, relative, err := x.alarms(ctx, d, n)
			if err != nil {
				return s, err
			}
			table.at(d.name, fmt.Sprintf("%d rounds", n)).join(all)
			table.at(d.name, fmt.Sprintf("of them ratios, %d rounds", n)).join(relative)
			b.share(fmt.Sprintf("%s, %d rounds", d.name, n), all)
		}
	}
	s.How = fmt.Sprintf("%d plans a figure, each of %d claims over four formats: pairs of equal rates, a ratio of exactly 2, rates exactly 10 %% apart, a difference and bounds "+
		"that the rates meet exactly. One session; mounts scatter by 2 %% where nothing else is said, files by 3 %%.", x.runs(600, 60), len(nullClaims))
	s.Tables = []Table{table.table("Plans with any false verdict, %", "what differs", rows, columns)}
	likes, err := x.ownLikes(ctx)
	s.Tables, s.Promises = append(s.Tables, likes), []Promise{b.promise()}
	s.Says = []string{
		"In one session a rate held against a constant has to stand with 10 % allowed between sessions, since its rounds show nothing of what other sessions would be like.",
		"Shortfall: where a session favours one kind of image over another, all of its rounds do, and nothing in one session tells that from a difference of the images. " +
			"A verdict on cases of one session is a verdict on that session; the second table says what it is worth beyond. Pooling three or more sessions (report RUN RUN RUN) makes the session the unit, and keeps the promise again.",
	}
	return s, err
}

// ownLikes counts false verdicts where each session favours kinds of images of its own.
func (x *Exam) ownLikes(ctx context.Context) (Table, error) {
	p, err := design{formats: fourFormats, sizes: fewSizes, sets: 1, rounds: 3, claims: claimsTOML(nullClaims)}.plan()
	table := keyed{}
	sessions, likes := []int{1, 3, 5}, []string{"0", "1", "3", "10"}
	if !x.Full {
		sessions, likes = []int{1, 3}, []string{"3"}
	}
	var rows, columns []string
	for _, n := range sessions {
		columns = append(columns, plural(n))
	}
	for _, own := range likes {
		rows = append(rows, own+" % between kinds and sessions")
		for k, n := range sessions {
			if err != nil {
				break
			}
			m := nullLaw("file_noise = 3%;mount_noise = 2%;own_noise = " + own + "%")
			hits := make([]bool, x.runs(400, 40))
			err = each(ctx, len(hits), func(ctx context.Context, i int) error {
				r, err := x.sessions(ctx, p, m, n, "own", own, n, i)
				if err == nil {
					hits[i] = falseVerdicts(r)[0]
				}
				return err
			})
			for _, h := range hits {
				table.at(rows[len(rows)-1], columns[k]).add(h)
			}
		}
	}
	return table.table("The same where a session favours kinds of images, 3 rounds a session, %", "scatter", rows, columns), err
}

// alarms plays plans with claims exactly on their bounds.
func (x *Exam) alarms(ctx context.Context, d disturbance, rounds int) (all, relative share, err error) {
	p, err := design{formats: fourFormats, sizes: fewSizes, sets: 1, rounds: rounds, claims: claimsTOML(nullClaims)}.plan()
	if err != nil {
		return all, relative, err
	}
	m := nullLaw(d.law)
	hits := make([][2]bool, x.runs(600, 60))
	err = each(ctx, len(hits), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("verdicts", d.name, rounds, i), i)
		if err != nil {
			return err
		}
		hits[i] = falseVerdicts(r)
		return nil
	})
	for _, h := range hits {
		all.add(h[0])
		relative.add(h[1])
	}
	return all, relative, err
}

// falseVerdicts reports whether any claim, and any that sets rates of one session
// against each other, was decided.
func falseVerdicts(r *result.Result) (out [2]bool) {
	for _, c := range r.Claims {
		if decided(c.Verdict) {
			out[0] = true
			out[1] = out[1] || !absoluteClaims[c.ID]
		}
	}
	return out
}

// power: how often is a true difference found?
func (x *Exam) power(ctx context.Context) (Study, error) {
	s := Study{ID: "power", Title: "Differences that are found",
		Asks: "One image is 5 or 10 % faster than another, and a claim says so. In how many runs is the verdict \"holds\"?"}
	rounds, noises := []int{3, 5, 10, 20}, []string{"1", "3", "10"}
	if !x.Full {
		rounds, noises = []int{5}, []string{"1"}
	}
	b := within("5 rounds find a difference of 10 % in 4 of 5 runs where mounts scatter by 1 %", "%", 80, none)
	wrong := within("of runs in which a difference of 5 or 10 % is there, at most 2.5 % say the opposite", "%", -none, 2.5)
	table := keyed{}
	var rows, columns []string
	for _, n := range rounds {
		columns = append(columns, fmt.Sprintf("%d rounds", n))
	}
	for _, effect := range []string{"5", "10"} {
		for _, noise := range noises {
			row := fmt.Sprintf("%s %% faster, mounts %s %%", effect, noise)
			rows = append(rows, row)
			for _, n := range rounds {
				found, opposite, err := x.found(ctx, effect, noise, n)
				if err != nil {
					return s, err
				}
				column := fmt.Sprintf("%d rounds", n)
				table.at(row, column).join(found)
				wrong.share(row+", "+column, opposite)
				if effect == "10" && noise == "1" && n == 5 {
					b.share(row+", "+column, found)
				}
			}
		}
	}
	s.How = fmt.Sprintf("%d runs a figure; files scatter by 5 %%, sessions by 3 %%, which cancels. One claim in the plan.", x.runs(400, 40))
	s.Tables = []Table{table.table("Runs with the verdict \"holds\", %", "effect and scatter", rows, columns)}
	s.Promises = []Promise{b.promise(), wrong.promise()}
	return s, nil
}

func (x *Exam) found(ctx context.Context, effect, noise string, rounds int) (found, opposite share, err error) {
	claim := []struct{ id, toml string }{{"faster", "left = { write = { format = \"UDSB\" } }\nright = { write = { format = \"UDRW\" } }\nratio = \"> 1\""}}
	p, err := design{formats: fourFormats[:2], sizes: fewSizes, sets: 1, rounds: rounds, claims: claimsTOML(claim)}.plan()
	if err != nil {
		return found, opposite, err
	}
	rate := map[string]string{"5": "5.25", "10": "5.5"}[effect]
	m := lawOf("write = 5 GB/s;read = 5 GB/s;step = 20 ms;file_noise = 5%;session_noise = 3%;mount_noise = " + noise + "%;[UDSB];write = " + rate + " GB/s")
	verdicts := make([]string, x.runs(400, 40))
	err = each(ctx, len(verdicts), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("power", effect, noise, rounds, i), i)
		if err == nil {
			verdicts[i] = verdictOf(r, "faster")
		}
		return err
	})
	for _, v := range verdicts {
		found.add(v == result.Holds)
		opposite.add(v == result.DoesNotHold)
	}
	return found, opposite, err
}

func plural(sessions int) string {
	if sessions == 1 {
		return "1 session"
	}
	return fmt.Sprintf("%d sessions pooled", sessions)
}
