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
	// Required says that a comparison fails where the verdict changes.
	Required bool `json:"required,omitempty"`
}
