package result

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
	// Printed lines take figures as they are printed, and have no measured values.
	Printed bool `json:"printed,omitempty"`
}

// What a line of a table can have instead of a quantity.
const (
	OpCoefficient = "coefficient" // of the fit that each cell names
	OpOutcome     = "outcome"     // how a step ended
)

// TableCell is one figure. It has an estimate or an outcome, or in Why the reason why
// there is none; a cell that is only printed has neither.
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
