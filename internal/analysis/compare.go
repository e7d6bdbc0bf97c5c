package analysis

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// ErrCompare is wrapped by every error of [Compare]: the runs or the options do
// not make a comparison.
var ErrCompare = errors.New("there are no runs to compare")

// CompareOptions select what is compared with what.
type CompareOptions struct {
	// By names the facts ([CompareFacts]) or the keys of cases that make the
	// sides; with none, every run is a side of its own.
	By []string
	// Baseline is the name of a side, or a run of it; "" is the first.
	Baseline string
	// Threshold is the share from which a change for the worse is a regression,
	// and within which two sides count as the same; 0 is [DefaultThreshold].
	Threshold float64
	// Ops are the quantities to compare; none are the rates, or all
	// where no rate was measured.
	Ops []plan.Quantity
	// Estimator of rates of files; "" is the headline of the baseline's plan.
	Estimator string
	// Names are what to call the runs, where their ids would not do; as many as
	// runs.
	Names []string
	// Plans are those that the runs executed, by digest. The claims of a side
	// of several runs are judged on all of them together, which takes the plan.
	Plans map[string]*plan.Plan
	// Sides are the names of the sides of the runs, one a run, where By is
	// empty.
	Sides []string
}

// DefaultThreshold is 5 %.
const DefaultThreshold = 0.05

// Comparison is several runs against each other. Lists are
// never nil.
type Comparison struct {
	Schema    int      `json:"schema"`
	By        []string `json:"by"`
	Threshold float64  `json:"threshold"`
	Level     float64  `json:"level"`
	Estimator string   `json:"estimator"`
	Ops       []string `json:"ops"`
	// The baseline first
	Sides       []CompareSide   `json:"sides"`
	Alike       []CompareFact   `json:"alike"`
	Differences []Difference    `json:"differences"`
	Notes       []string        `json:"notes"`
	Rows        []CompareRow    `json:"rows"`
	Unpaired    []Unpaired      `json:"unpaired"`
	Claims      []ClaimChange   `json:"claims"`
	Answers     []CompareAnswer `json:"answers"`
	Regression  bool            `json:"regression"`
	Undecided   bool            `json:"undecided"`
}

// CompareSide is one of the things that are compared: a run, or all runs that
// have the same facts.
type CompareSide struct {
	Name     string        `json:"name"`
	Runs     []string      `json:"runs"`
	Sessions int           `json:"sessions"`
	Rounds   int           `json:"rounds"`
	Facts    []CompareFact `json:"facts"`
}

// CompareFact is one thing that is known of the runs of a side; several values
// mean that the runs differ in it.
type CompareFact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Difference is a fact that is not the same on all sides.
type Difference struct {
	Fact string `json:"fact"`
	// Machine | system | tool | protocol | repetition
	Kind string `json:"kind"`
	// One list a side, in the order of the sides
	Values [][]string `json:"values"`
}

// Status of a row.
const (
	// The interval leaves 1 out, after Holm over all rows
	RowChanged = "changed"
	// The interval is within the threshold
	RowSame = "same"
	// Neither
	RowUnclear = "unclear"
	// Too few sessions to know how far sessions differ
	RowSessionUnknown = "session_unknown"
)

// CompareRow is one case, phase and quantity of a side against the baseline.
type CompareRow struct {
	Case  string `json:"case"`
	Phase string `json:"phase"`
	Cycle int    `json:"cycle"`
	Op    string `json:"op"`
	// Of the values: B/s | B | s | 1
	Unit string `json:"unit"`
	Side string `json:"side"`

	Base  CompareSample `json:"base"`
	Value CompareSample `json:"value"`

	// Value / base, of the sessions (or rounds) that both have where they share
	// some
	Ratio float64 `json:"ratio"`
	// Of the ratio
	CI *result.CI `json:"ci"`
	// Two-sided, of "the ratio is 1"
	P *float64 `json:"p"`
	// The same after Holm over all rows
	Holm *float64 `json:"p_holm"`
	// Of "the ratio is at the threshold", after Holm
	Worse *float64 `json:"p_worse"`
	// Changed | same | unclear | session_unknown
	Status string `json:"status"`
	// The change as text; starts with ~ where the row is undecided
	Effect string `json:"effect"`
	// Why the row is undecided
	Reason string `json:"reason"`
	// 1: the change seen is for the better, -1: for the worse, 0: none seen
	Better int `json:"better"`
	// Worse than the threshold, significantly
	Regressed bool `json:"regression"`
	// A change for the worse past the threshold is neither found nor excluded
	Undecided bool     `json:"undecided"`
	Warnings  []string `json:"warnings"`
}

// CompareSample is the values of one side in one row.
type CompareSample struct {
	// Geometric mean of the sessions
	Value    float64   `json:"value"`
	Sessions []float64 `json:"by_session"`
	Rounds   int       `json:"rounds"`
	// Files or steps
	N int `json:"n"`
}

// Unpaired is what was measured on one side and has no counterpart on the
// other.
type Unpaired struct {
	Case   string `json:"case"`
	Phase  string `json:"phase"`
	Cycle  int    `json:"cycle"`
	Op     string `json:"op"`
	Side   string `json:"side"`
	Reason string `json:"reason"`
	// Undecided: one side has a value, and the other has none to compare it
	// with.
	Undecided bool `json:"undecided"`
}

// ClaimChange is the verdicts on one claim, one a side.
type ClaimChange struct {
	ID       string `json:"id"`
	Says     string `json:"says"`
	Required bool   `json:"required"`
	// "" where the side has no such claim
	Verdicts []string `json:"verdicts"`
	// Pooled runs of each verdict
	Sessions []int `json:"sessions"`
	// From holds to does_not_hold, or back, with enough sessions on both sides
	Changed bool   `json:"changed"`
	Text    string `json:"text"`
	// Undecided: the claim is required, and its verdict is not decided on all
	// sides.
	Undecided bool `json:"undecided"`
}

// CompareAnswer is the outcome for one side in a sentence.
type CompareAnswer struct {
	Side   string `json:"side"`
	Text   string `json:"text"`
	Worse  int    `json:"worse"`
	Better int    `json:"better"`
	Same   int    `json:"same"`
	Open   int    `json:"open"`
}

// Compare compares runs with each other. It is a pure function of them and
// needs a plan only for the claims of sides of several runs; runs that were
// only folded serve as well as analysed ones, except that they bring no
// verdicts.
//
// What is paired has the same case, phase, cycle and quantity, and the same
// files; everything else is listed as unpaired with the reason. The unit of
// replication is the session, since whatever a session was like is in all its
// rounds: three sessions on both sides are compared by Welch's t of their
// logarithms, fewer by Student's t with one spread for both sides as long as
// that has two degrees of freedom. With one session a side a row is undecided,
// and shows what was seen. Sides that were measured in the same sessions (cases
// of one run, see [CompareOptions.By]) are paired in them.
func Compare(runs []*result.Result, o CompareOptions) (*Comparison, error) {
	c, err := newComparer(runs, o)
	if err != nil {
		return nil, fmt.Errorf("comparing runs: %w", err)
	}
	c.collectFacts()
	for _, side := range c.sides[1:] {
		c.pairCells(side)
	}
	out := c.out
	if len(out.Rows) == 0 && len(out.Unpaired) == 0 {
		return nil, fmt.Errorf("comparing runs: none of %v was measured: %w", out.Ops, ErrCompare)
	}
	c.decideRows()
	c.compareClaims()
	c.addAnswers()
	return out, nil
}

//go:embed comparison.txt
var comparisonText string

// ComparisonSchema is the JSON Schema (draft 2020-12) of `compare --format
// json`, every property described.
func ComparisonSchema() []byte {
	b, err := result.SchemaOf[Comparison]("dmgbench comparison", "Several runs against each other. "+
		"Times are seconds, sizes bytes, rates bytes per second.", comparisonText, map[string][]any{
		"CompareRow.status": {RowChanged, RowSame, RowUnclear, RowSessionUnknown},
		"Difference.kind":   {"machine", "system", "tool", "protocol", "repetition"},
	})
	if err != nil {
		// The types are fixed: a test calls this
		panic(fmt.Sprintf("building the schema of comparisons: %v", err))
	}
	return b
}

// compareClaims compares the verdicts of the sides, unless the sides are cases
// of the same runs.
func (c *comparer) compareClaims() {
	if len(c.keys) > 0 && len(c.facts) == 0 {
		return
	}
	for i, s := range c.sides {
		claims, sessions, why := c.judgeSide(s)
		if why != "" {
			c.note("note.claims-undecided", s.name, why)
		}
		for _, k := range claims {
			at := slices.IndexFunc(c.out.Claims, func(o ClaimChange) bool { return o.ID == k.ID })
			if at < 0 {
				at = len(c.out.Claims)
				c.out.Claims = append(c.out.Claims, ClaimChange{ID: k.ID, Says: k.Says,
					Verdicts: make([]string, len(c.sides)), Sessions: make([]int, len(c.sides))})
			}
			out := &c.out.Claims[at]
			out.Required = out.Required || k.Required
			out.Verdicts[i], out.Sessions[i] = k.Verdict, sessions
		}
	}
	for j := range c.out.Claims {
		c.describeChange(&c.out.Claims[j])
	}
}

// judgeSide gives the verdicts of a side and their number of sessions: those of
// its run, or of all its runs pooled, or why these could not be judged
// together. A verdict of a single run among several is never that of the side,
// since the runs that decide are those in which the session happened to favor
// one case.
func (c *comparer) judgeSide(s *compareSide) (claims []result.Claim, sessions int, why string) {
	if len(s.runs) == 1 {
		return s.runs[0].Claims, max(len(s.runs[0].Runs), 1), ""
	}
	for _, r := range s.runs {
		for _, k := range r.Claims {
			if !slices.ContainsFunc(claims, func(o result.Claim) bool { return o.ID == k.ID }) {
				k.Verdict = result.CannotTell
				claims = append(claims, k)
			}
		}
	}
	p := c.o.Plans[s.runs[0].Plan.Digest]
	switch {
	case len(claims) == 0:
		return nil, len(s.runs), ""
	case p == nil:
		return claims, len(s.runs), wording.Text("no-plan")
	}
	pooled, err := result.Pool(s.runs)
	if err == nil {
		err = Analyze(p, pooled, Options{SkipRobustness: true})
	}
	if err != nil {
		return claims, len(s.runs), err.Error()
	}
	return pooled.Claims, len(s.runs), ""
}

// describeChange reports in what the verdicts on a claim differ from the
// baseline's. Only verdicts over at least [minRounds] sessions on both sides
// make a change: with fewer, the unit of a verdict is the round, and two
// sessions of the same machine may well differ.
func (c *comparer) describeChange(k *ClaimChange) {
	base := k.Verdicts[0]
	for i, v := range k.Verdicts[1:] {
		both := isDecided(base) && isDecided(v)
		flip := both && base != v
		enough := min(k.Sessions[0], k.Sessions[i+1]) >= minRounds
		unmeasured := base == result.NotMeasured && v == result.NotMeasured
		k.Undecided = k.Undecided || k.Required && !unmeasured && !(both && enough)
		k.Changed = k.Changed || flip && enough
		if base == v || base == "" || v == "" {
			continue
		}
		text := wording.Text("claim-change", wording.Text("verdict."+base), c.sides[0].name,
			wording.Text("verdict."+v), c.sides[i+1].name)
		if flip && !enough {
			sessions := wording.Count{N: k.Sessions[0], Noun: "session"}
			text = wording.Text("claim-change.few", text, sessions, k.Sessions[i+1], minRounds)
		}
		k.Text = wording.Join(k.Text, text)
	}
	c.out.Undecided = c.out.Undecided || k.Undecided
	c.out.Regression = c.out.Regression || k.Required && k.Changed
}

// addAnswers adds the outcome of each side in a sentence: how many rows are
// worse, better, the same and undecided, with the largest change of each kind.
func (c *comparer) addAnswers() {
	for _, s := range c.sides[1:] {
		kinds := map[string][]*CompareRow{}
		rows, unknown := 0, 0
		for i := range c.out.Rows {
			r := &c.out.Rows[i]
			if r.Side != s.name {
				continue
			}
			kind := "answer.undecided"
			switch {
			case r.Status == RowChanged && r.Better < 0:
				kind = "answer.worse"
			case r.Status == RowChanged && r.Better > 0:
				kind = "answer.better"
			case r.Status == RowSame || r.Status == RowChanged:
				kind = "answer.same"
			case r.Status == RowSessionUnknown:
				unknown++
			}
			rows++
			kinds[kind] = append(kinds[kind], r)
		}
		text := ""
		for _, kind := range []string{"answer.worse", "answer.better", "answer.same", "answer.undecided"} {
			if n := len(kinds[kind]); n > 0 {
				part := wording.Text(kind, n, rows)
				if kind == "answer.worse" || kind == "answer.better" {
					part += largestChange(kinds[kind])
				}
				text = wording.Join(text, part)
			}
		}
		switch rows {
		case 0:
			text = wording.Text("answer.nothing")
		case unknown:
			text = wording.Text("answer.few-sessions")
		}
		c.out.Answers = append(c.out.Answers, CompareAnswer{Side: s.name, Worse: len(kinds["answer.worse"]),
			Better: len(kinds["answer.better"]), Same: len(kinds["answer.same"]), Open: len(kinds["answer.undecided"]),
			Text: wording.Text("answer", s.name, c.sides[0].name, text)})
	}
}

// largestChange names the row that changed most.
func largestChange(changed []*CompareRow) string {
	most := slices.MaxFunc(changed, func(a, b *CompareRow) int {
		return cmp.Compare(math.Abs(math.Log(a.Ratio)), math.Abs(math.Log(b.Ratio)))
	})
	cycle := ""
	if most.Cycle > 0 {
		cycle = fmt.Sprintf("cycle %d", most.Cycle)
	}
	name := wording.NonEmpty(wording.Case(most.Case), most.Phase, cycle)
	return wording.Text("answer.most", name, most.Op, most.Effect)
}

func isDecided(verdict string) bool { return verdict == result.Holds || verdict == result.DoesNotHold }
