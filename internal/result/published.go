package result

import "iter"

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
	// Printed lines take figures as they are printed, and measure nothing.
	Printed bool `json:"printed,omitempty"`
}

// What a line of a table can ask for beside a quantity.
const (
	OpCoefficient = "coefficient" // of the fit that each cell names
	OpOutcome     = "outcome"     // how a step ended
)

// TableCell is one figure. It has an estimate or an outcome, or says in Why why
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
	// Fit is the fit whose coefficient the estimate is.
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

// tableColumns are those of the csv table "tables": a row for each cell of each
// table of the plan.
var tableColumns = []Column{
	{"run", "run id"}, {"plan", "name of the plan"}, {"table", "name of the table"}, {"table_title", "its heading"},
	{"row_group", "heading before neighbouring rows"}, {"row", "heading of the row"},
	{"column_group", "heading over neighbouring columns"}, {"column", "heading of the column"}, {"op", "quantity, coefficient or outcome"},
	{"case", "id of the case; empty: none was measured"}, {"phase", "label of the step"}, {"cycle", "from 1 inside a repeat, else 0"},
	{"rounds", "rounds behind the value"}, {"estimate", "name of the estimate"}, {"value", "in unit; empty: not measured"},
	{"unit", "B/s, B, s or 1, of all values of the row"}, {"ci_low", "in unit"}, {"ci_high", "in unit"}, {"ci_level", "0.95: 95 %"},
	{"ci_method", "how the interval was made"}, {"unit_of_replication", "what was replicated"},
	{"why", "why there is no value, or no interval"}, {"published", "figure as printed"}, {"published_low", "in unit"},
	{"published_high", "in unit; as published_low where one value is printed"}, {"published_on", "machine, system, tool and day of the figure"},
	{"ratio", "measured / published"}, {"comparable", "false: the departures or `on` say why not; empty: nothing to compare"}, {"warnings", "separated by ; "},
	{"fit", "fit whose coefficient the value is"}, {"outcome", "how the steps ended, in the words of the plan; empty: no outcome is asked for"},
	{"ok", "steps that ended well"}, {"failed", "steps that ended with an error, expected or not"},
}

func tableRows(r *Result) iter.Seq[row] {
	return func(yield func(row) bool) {
		for ti := range r.Tables {
			t := &r.Tables[ti]
			for i, cells := range t.Cells {
				for k := range cells {
					if i >= len(t.Rows) || k >= len(t.Columns) {
						continue // a result that somebody else made
					}
					var out row
					for _, text := range []string{r.Run, r.Plan.Name, t.Name, t.Title, t.Rows[i].Group, t.Rows[i].Title,
						t.Columns[k].Group, t.Columns[k].Title, t.Rows[i].Op + t.Columns[k].Op} {
						out.text(text)
					}
					tableCells(&out, &cells[k])
					if !yield(out) {
						return
					}
				}
			}
		}
	}
}

func tableCells(out *row, c *TableCell) {
	out.text(c.Case)
	out.text(c.Phase)
	out.int(int64(c.Cycle))
	out.int(int64(c.Rounds))
	e, p := c.Estimate, c.Published
	if e == nil {
		e = &Estimate{Why: c.Why}
		if p != nil {
			e.Unit = p.Unit
		}
	}
	out.text(e.Name)
	out.maybe(e.Value, c.Estimate != nil)
	out.text(e.Unit)
	out.interval(e.CI)
	out.text(e.Why)
	if p == nil {
		out.blank(6)
	} else {
		out.text(p.Text)
		out.float(p.Low)
		out.float(p.High)
		out.text(p.On)
		out.maybe(p.Ratio, p.Ratio > 0)
		if c.Estimate == nil {
			out.blank(1)
		} else {
			out.bool(p.Comparable)
		}
	}
	out.text(joinWarnings(c.Warnings))
	out.text(c.Fit)
	if c.Outcome == nil {
		out.blank(3)
		return
	}
	out.text(c.Outcome.Text)
	out.int(int64(c.Outcome.OK))
	out.int(int64(c.Outcome.Failed))
}
