package result

// Summary is the estimates of one phase, direction and case.
type Summary struct {
	Case       string           `json:"case"`
	Phase      string           `json:"phase"`
	Op         string           `json:"op"` // a quantity of the plan language
	Cycle      int              `json:"cycle"`
	Operation  string           `json:"operation,omitempty"` // the kind of operations, "" for all of the step
	N          int              `json:"n"`
	Rounds     int              `json:"rounds"`
	Bytes      int64            `json:"bytes"`
	Headline   string           `json:"headline"` // name of the estimate to quote
	Estimates  []Estimate       `json:"estimates"`
	Published  []PublishedValue `json:"published"`
	Departures []string         `json:"departures"`
	Warnings   []Warning        `json:"warnings"`
	// BySession are the headline values of each single run of a pooled result.
	BySession []SessionValue `json:"by_session,omitempty"`
}

// SessionValue is the headline of a summary in one of the pooled runs.
type SessionValue struct {
	Run    string  `json:"run"`
	Value  float64 `json:"value"` // in the unit of the headline
	Rounds int     `json:"rounds"`
}

// Estimate is one number with what it needs to be trusted.
type Estimate struct {
	Name  string  `json:"name"` // aggregate | mean | median | trimmed | theil-sen | least-squares | latency | …
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // B/s | B | s | 1
	N     int     `json:"n"`
	CI    *CI     `json:"ci"`
	Why   string  `json:"why,omitempty"` // why there is no interval
}

// CI is an interval; it always names what was replicated.
type CI struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Level  float64 `json:"level"`
	Method string  `json:"method"`
	Unit   string  `json:"unit_of_replication"` // round | file within one mount | session
}

// PublishedValue is the published figure for a measured one.
type PublishedValue struct {
	Text       string  `json:"text"`
	Kind       string  `json:"kind"` // is | about | below | above | range
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Unit       string  `json:"unit"`
	Statistic  string  `json:"statistic"`
	On         string  `json:"on"`         // machine, OS, tool, date in one line
	Ratio      float64 `json:"ratio"`      // measured / published under the statistic that the source names
	Comparable bool    `json:"comparable"` // false: departures grey the ratio
	// Estimate is the name of the measured estimate in Ratio; empty where there
	// is none.
	Estimate string `json:"estimate,omitempty"`
}

// Fit is a fitted model of one quantity along an axis, measured and published.
type Fit struct {
	Name         string        `json:"name"`
	Model        string        `json:"model"`
	Along        string        `json:"along"`
	Op           string        `json:"op"`
	Points       [][2]float64  `json:"points"`
	Coefficients []Coefficient `json:"coefficients"`
	Predictions  [][2]float64  `json:"predictions"`
	Reason       string        `json:"reason"` // why there is none
}

// Coefficient of a fit.
type Coefficient struct {
	Name      string   `json:"name"`
	Value     float64  `json:"value"`
	CI        *CI      `json:"ci"`
	Published *float64 `json:"published"`
}

// Relation is one quantity against another over cases.
type Relation struct {
	Name     string          `json:"name"`
	XOp      string          `json:"x_op"`
	YOp      string          `json:"y_op"`
	Points   []RelationPoint `json:"points"`
	Spearman float64         `json:"spearman"`
	Reason   string          `json:"reason"`
}

// RelationPoint is one case of a relation.
type RelationPoint struct {
	Label   string  `json:"label"`
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	RankX   int     `json:"rank_x"`
	RankY   int     `json:"rank_y"`
	Outlier bool    `json:"outlier"`
}

// Verb is how often the steps of one kind on containers failed, or succeeded only
// after a failed try, over all rounds of all cases, or of one case. Steps that
// have to fail are left out.
type Verb struct {
	Do      string `json:"do"`
	Case    string `json:"case,omitempty"` // "": all
	Steps   int    `json:"steps"`
	Failed  int    `json:"failed"`
	Retried int    `json:"retried"`
	// FailedCI and RetriedCI are the intervals of the shares.
	FailedCI  *CI    `json:"failed_ci"`
	RetriedCI *CI    `json:"retried_ci"`
	Reason    string `json:"reason,omitempty"` // why the first that failed or was tried again did
}

// What a use came to.
const (
	ChosenOne   = "one"       // one candidate is better than every other
	ChosenEqual = "equal"     // several differ by less than matters
	Undecided   = "undecided" // the rounds leave it open
)

// Use answers which of several candidates to take for one use.
type Use struct {
	Name       string         `json:"name"`
	Says       string         `json:"says"`
	Criteria   []UseCriterion `json:"criteria"` // in the order in which they decide
	Candidates []UseCandidate `json:"candidates"`
	Choice     string         `json:"choice"` // one | equal | undecided | not_measured
	// Chosen are titles of candidates: the one, those that are equal, or those that
	// may be best.
	Chosen []string `json:"chosen"`
	// DecidedBy is the index of the criterion at which the choice ended, -1 for
	// not_measured.
	DecidedBy int    `json:"decided_by"`
	Reason    string `json:"reason"` // with the figures that decided
	Needs     string `json:"needs"`  // what would decide it, "" unless undecided
	// Scope limits the answer, for example to this program's images on this system.
	Scope    string      `json:"scope"`
	Advice   []UseAdvice `json:"advice"`
	Warnings []Warning   `json:"warnings"`
}

// UseCriterion is a quantity that decides.
type UseCriterion struct {
	Title          string  `json:"title"`
	Op             string  `json:"op"`
	Unit           string  `json:"unit"`
	HigherIsBetter bool    `json:"higher_is_better"`
	Matters        float64 `json:"matters"` // the ratio - 1 from which a difference matters
	// SameEverywhere marks figures that depend on the plan and its seed alone, not
	// on the machine: they are compared exactly, and repeating them changes nothing.
	SameEverywhere bool `json:"same_everywhere,omitempty"`
}

// UseCandidate is one of the images to choose from, with its figures in the
// order of the criteria.
type UseCandidate struct {
	Title   string      `json:"title"`
	Cases   []string    `json:"cases"`
	Figures []UseFigure `json:"figures"`
}

// UseFigure is what one candidate came to by one criterion.
type UseFigure struct {
	Estimate *Estimate `json:"estimate"`      // nil: not measured
	Why      string    `json:"why,omitempty"` // why there is none
	// Rank is "" where the criterion was not needed or the candidate had been
	// ruled out by one before.
	Rank string `json:"rank"`
	// Ratio is how many times worse than the best it is, the mean of N paired
	// rounds: 1.2 means 1.2 times the time, or the best has 1.2 times the rate.
	// Where a round has a zero it is the difference, named so, in the unit of the
	// quantity. It is nil of the best and of what was not compared.
	Ratio *Estimate `json:"ratio,omitempty"`
	// P is the p value of "as good as the best" after Holm's correction over the
	// comparisons of the use up to its criterion; nil without an interval.
	P *float64 `json:"p,omitempty"`
}

// Ranks of a [UseFigure] among those of its criterion.
const (
	RankBest      = "best"
	RankEqual     = "equal" // to the best, within what matters
	RankWorse     = "worse" // by what matters or more
	RankUndecided = "undecided"
)

// UseAdvice is what a source advises for the use.
type UseAdvice struct {
	Says      string `json:"says"`
	Source    string `json:"source"`
	Candidate string `json:"candidate"` // title
	// Verdict is holds, does_not_hold, cannot_tell, not_measured or other_criterion.
	Verdict string `json:"verdict"`
}

// OtherCriterion is the verdict of advice of which the source did not speak of
// the criterion that decided.
const OtherCriterion = "other_criterion"

// Verdicts of a claim.
const (
	Holds       = "holds"
	DoesNotHold = "does_not_hold"
	CannotTell  = "cannot_tell"
	NotMeasured = "not_measured"
)

// Claim is one judged sentence.
type Claim struct {
	ID       string   `json:"id"`
	Says     string   `json:"says"`
	By       string   `json:"by"`
	Scope    string   `json:"scope"`
	Verdict  string   `json:"verdict"`
	Reason   string   `json:"reason"`
	Evidence []string `json:"evidence"`
	// Here is what this run's engine showed where the claim is about another's
	// tools; never a verdict on them.
	Here string `json:"here,omitempty"`
	// Required is set where a comparison fails where the verdict changes.
	Required bool `json:"required,omitempty"`
}

// Table is one [[table]] of the plan, filled in: what an article prints.
type Table struct {
	Name    string      `json:"name"`
	Title   string      `json:"title"`
	Caption string      `json:"caption"`
	Columns []TableLine `json:"columns"`
	Rows    []TableLine `json:"rows"`
	// Cells are the rows' cells, one for each column.
	Cells [][]TableCell `json:"cells"`
}

// TableLine heads a row or a column. Op, Unit and Digits are those of the lines
// that name a quantity; the lines of the other side have none.
type TableLine struct {
	Title  string `json:"title"`
	Group  string `json:"group,omitempty"`
	Op     string `json:"op,omitempty"`   // a quantity of the plan language, [OpCoefficient] or [OpOutcome]
	Unit   string `json:"unit,omitempty"` // to print in; empty: what suits
	Digits *int   `json:"digits,omitempty"`
	// Printed lines take figures as they are printed, and have no measured
	// values.
	Printed bool `json:"printed,omitempty"`
}

// What a line of a table can have instead of a quantity.
const (
	OpCoefficient = "coefficient" // of the fit that each cell names
	OpOutcome     = "outcome"     // how a step ended
)

// TableCell is one figure. It has an estimate or an outcome, or in Why the
// reason why there is none; a cell that is only printed has neither.
type TableCell struct {
	Case      string          `json:"case,omitempty"`
	Phase     string          `json:"phase,omitempty"`
	Cycle     int             `json:"cycle,omitempty"`
	Rounds    int             `json:"rounds,omitempty"`
	Estimate  *Estimate       `json:"estimate,omitempty"`
	Why       string          `json:"why,omitempty"`
	Published *PublishedValue `json:"published,omitempty"`
	Warnings  []Warning       `json:"warnings,omitempty"`
	// Fit is the fit that the coefficient in the estimate is of.
	Fit     string        `json:"fit,omitempty"`
	Outcome *TableOutcome `json:"outcome,omitempty"`
}

// TableOutcome is how the steps of a cell ended.
type TableOutcome struct {
	Do     string `json:"do"`     // kind of step
	Text   string `json:"text"`   // in the words of the plan
	OK     int    `json:"ok"`     // so many ended well
	Failed int    `json:"failed"` // so many with an error, expected or not
}

// Warning is whatever weakens a number; it is shown wherever the number is.
type Warning struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}
