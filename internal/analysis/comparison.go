package analysis

import (
	_ "embed"
	"errors"
	"fmt"

	"dmgbench/internal/plan"
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
	// Across names settings in which rows may differ that are compared: keys and
	// tables of plans, see [plan.SettingNames]
	Across []string
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
	// Plans are those that the runs executed, by digest: runs of different plans
	// are compared where their settings are the same, and the claims of a side of
	// several runs are judged on all of them together.
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
	Across    []string `json:"across"`
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
	// Machine | system | tool | protocol | repetition | setting
	Kind string `json:"kind"`
	// One list a side, in the order of the sides
	Values [][]string `json:"values"`
	// Of a setting of some cases only
	Cases []string `json:"cases"`
	// Rows with this setting are not compared unless [CompareOptions.Across] has
	// this name; "" where they are
	Across string `json:"across"`
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

//go:embed comparison.txt
var comparisonText string

// ComparisonSchema is the JSON Schema (draft 2020-12) of `compare --format
// json`, every property described.
func ComparisonSchema() []byte {
	b, err := result.SchemaOf[Comparison]("dmgbench comparison", "Several runs against each other. "+
		"Times are seconds, sizes bytes, rates bytes per second.", comparisonText, map[string][]any{
		"CompareRow.status": {RowChanged, RowSame, RowUnclear, RowSessionUnknown},
		"Difference.kind":   {"machine", "system", "tool", "protocol", "repetition", "setting"},
	})
	if err != nil {
		// The types are fixed: a test calls this
		panic(fmt.Sprintf("building the schema of comparisons: %v", err))
	}
	return b
}

// AcrossNames are the settings that keep rows apart, as [CompareOptions.Across]
// takes them, with those that it has.
func (c *Comparison) AcrossNames() []string {
	names := texts(c.Differences, func(d Difference) string { return d.Across })
	if len(names) == 0 {
		return nil
	}
	return append(names, c.Across...)
}

// Within are the ratios between which two sides count as the same in a
// quantity: from the one at which a change for the worse is a regression, 1
// less the threshold for rates and 1 plus the threshold for times and sizes, to
// its inverse.
func (c *Comparison) Within(q plan.Quantity) (low, high float64) {
	if isMoreBetter(q) {
		return 1 - c.Threshold, 1 / (1 - c.Threshold)
	}
	return 1 / (1 + c.Threshold), 1 + c.Threshold
}
