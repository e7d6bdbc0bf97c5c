package result

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
	// Here is what this run's engine showed where the claim is about another's tools; never a verdict on them.
	Here string `json:"here,omitempty"`
	// Required is set where a comparison fails where the verdict changes.
	Required bool `json:"required,omitempty"`
	// Robustness is how far the verdict depends on how the run is analysed; none where the claim was not judged.
	Robustness *Robustness `json:"robustness,omitempty"`
}

// Robustness is how far a verdict depends on the way in which the run is
// analysed: every estimator of rates, outlier rule and choice of rounds that
// could be defended as well. It is evidence; the verdict does not rest on it.
type Robustness struct {
	Holds       int    `json:"holds"`
	DoesNotHold int    `json:"does_not_hold"`
	CannotTell  int    `json:"cannot_tell"`
	LeftOut     int    `json:"left_out"` // ways that the files or rounds do not allow
	Toward      int    `json:"toward"`   // ways in which the values satisfy the claim, told or not
	Text        string `json:"text"`
	// Estimators, Outliers and Rounds are what was combined; Most is the verdict of most ways, Odd are all others.
	Estimators []string `json:"estimators"`
	Outliers   []string `json:"outliers"`
	Rounds     []string `json:"rounds"`
	Most       string   `json:"most"`
	Odd        []Way    `json:"odd"`
}

// Way is one analysis, with not_measured for one that cannot be had; what makes
// no difference to the claim is left out.
type Way struct {
	Estimator string `json:"estimator,omitempty"`
	Outliers  string `json:"outliers,omitempty"`
	Rounds    string `json:"rounds"`
	Verdict   string `json:"verdict"`
}
