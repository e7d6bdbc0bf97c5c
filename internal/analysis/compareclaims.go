package analysis

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// sideClaims are the verdicts of one side.
type sideClaims struct {
	claims   []result.Claim
	sessions int    // that the verdicts rest on
	why      string // why the runs of the side could not be judged together
}

// claims compares the verdicts of the sides.
func (c *comparer) claims() {
	if len(c.keys) > 0 && !slices.ContainsFunc(c.o.By, func(n string) bool { return slices.Contains(CompareFacts, n) }) {
		return // the sides are cases of the same runs
	}
	at := map[string]int{}
	for i, s := range c.sides {
		judged := c.judgeSide(s)
		if judged.why != "" {
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("the claims of %s are undecided: %s", s.name, judged.why))
		}
		for _, k := range judged.claims {
			j, ok := at[k.ID]
			if !ok {
				j = len(c.out.Claims)
				at[k.ID] = j
				c.out.Claims = append(c.out.Claims, ClaimChange{ID: k.ID, Says: k.Says, Verdicts: make([]string, len(c.sides)),
					Sessions: make([]int, len(c.sides))})
			}
			out := &c.out.Claims[j]
			out.Required = out.Required || k.Required
			out.Verdicts[i], out.Sessions[i] = k.Verdict, judged.sessions
		}
	}
	for j := range c.out.Claims {
		c.changed(&c.out.Claims[j])
	}
	for i, s := range c.sides {
		n := 0
		for _, k := range c.out.Claims {
			if k.Verdicts[i] == "" {
				n++
			}
		}
		if n > 0 {
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("%s has no verdict on %d of %s", s.name, n, plural(len(c.out.Claims), "claim")))
		}
	}
}

// judgeSide gives the verdicts of a side: those of its run, or of all its runs pooled.
// A verdict of a single run among several is never that of the side, since the runs that
// decide are those in which the session happened to favor one case.
func (c *comparer) judgeSide(s *compareSide) sideClaims {
	if len(s.runs) == 1 {
		r := s.runs[0]
		return sideClaims{claims: r.Claims, sessions: max(len(r.Runs), 1)}
	}
	out := sideClaims{sessions: len(s.runs)}
	for _, r := range s.runs {
		for _, k := range r.Claims {
			if !slices.ContainsFunc(out.claims, func(o result.Claim) bool { return o.ID == k.ID }) {
				k.Verdict = result.CannotTell
				out.claims = append(out.claims, k)
			}
		}
	}
	if len(out.claims) == 0 {
		return out
	}
	p := c.o.planOf(s.runs[0])
	if p == nil {
		out.why = "the plan of its runs is not here; give run folders, not their result.json alone"
		return out
	}
	pooled, err := result.Pool(s.runs)
	if err == nil {
		err = Decide(p, pooled)
	}
	if err != nil {
		out.why = err.Error()
		return out
	}
	out.claims = pooled.Claims
	return out
}

// planOf finds the plan that a run executed; nil if it was not given.
func (o CompareOptions) planOf(r *result.Result) *plan.Plan {
	return o.Plans[r.Plan.Digest]
}

func decisive(v string) bool { return v == result.Holds || v == result.DoesNotHold }

// changed says in what the verdicts on a claim differ from the baseline's. Only verdicts
// over at least [minRounds] sessions on both sides make a change: with fewer, the unit of
// a verdict is the round, and two sessions of the same machine may well differ.
func (c *comparer) changed(k *ClaimChange) {
	words := func(v string) string {
		if v == result.CannotTell {
			return "undecided"
		}
		return strings.ReplaceAll(v, "_", " ")
	}
	for i, v := range k.Verdicts[1:] {
		base := k.Verdicts[0]
		both := decisive(base) && decisive(v)
		flip := both && base != v
		enough := min(k.Sessions[0], k.Sessions[i+1]) >= minRounds
		unmeasured := base == result.NotMeasured && v == result.NotMeasured
		k.Undecided = k.Undecided || k.Required && !unmeasured && !(both && enough)
		k.Changed = k.Changed || flip && enough
		if base == v || base == "" || v == "" {
			continue
		}
		text := fmt.Sprintf("%s in %s, %s in %s", words(base), c.sides[0].name, words(v), c.sides[i+1].name)
		if flip && !enough {
			text += fmt.Sprintf(" (undecided: %s and %d, and a change takes %d on each side)", plural(k.Sessions[0], "session"), k.Sessions[i+1], minRounds)
		}
		k.Text = join(k.Text, text)
	}
}
