package report

import (
	"fmt"
	"io"
	"time"

	"dmgbench/internal/analysis"
)

// JUnitOptions are for [ComparisonJUnit]. The time is a parameter so that the
// same comparison gives the same bytes.
type JUnitOptions struct {
	Time   time.Time // of the test suites
	Strict bool      // what is undecided is a failure, as for the exit status
}

// junitSuite is one side with its tests.
type junitSuite struct {
	ID           int
	Side, Answer string
	Properties   []Pair // facts that differ between the sides
	Cases        []junitCase
}

// junitCase is one row, value or claim; it is failed, undecided or neither.
type junitCase struct{ Name, Message, Basis, State, Type string }

// ComparisonJUnit writes a comparison as JUnit XML: a test suite for each side,
// a test for each row, each value without a counterpart and each required
// claim.
func ComparisonJUnit(w io.Writer, c *analysis.Comparison, o JUnitOptions) error {
	var suites []junitSuite
	for i := range c.Sides[1:] {
		suites = append(suites, newJUnitSuite(c, i+1, o))
	}
	text := Render("junit", map[string]any{"Suites": suites, "Baseline": Plain(c.Sides[0].Name, nameLength),
		"Time": o.Time.UTC().Format("2006-01-02T15:04:05")})
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the comparison as JUnit XML: %w", err)
	}
	return nil
}

// newJUnitSuite is the suite of the side at an index.
//
// The text of a failure is what the row rests on, so that a build server shows
// it without the report.
func newJUnitSuite(c *analysis.Comparison, at int, o JUnitOptions) junitSuite {
	side := c.Sides[at].Name
	s := junitSuite{ID: at - 1, Side: Plain(side, nameLength)}
	for _, d := range c.Differences {
		change := factText(d.Values[0]) + " → " + factText(d.Values[at])
		s.Properties = append(s.Properties, Pair{Plain(d.Fact, 40), change})
	}
	add := func(failed, undecided bool, k junitCase) {
		switch {
		case failed:
			k.State, k.Type = "failed", "regression"
		case undecided && o.Strict:
			k.State, k.Type = "failed", "undecided"
		case undecided:
			k.State = "undecided"
		}
		s.Cases = append(s.Cases, k)
	}
	for _, r := range c.Rows {
		if r.Side == side {
			message := changeText(r) + TextIf(r.Reason != "", " ("+Plain(r.Reason, 300)+")")
			add(r.Regressed, r.Undecided, junitCase{Name: junitName(r.Case, r.Phase, r.Op, r.Cycle), Message: message,
				Basis: rowBasis(r)})
		}
	}
	for _, u := range c.Unpaired {
		if u.Undecided && u.Side == side {
			add(false, true, junitCase{Name: junitName(u.Case, u.Phase, u.Op, u.Cycle), Message: Plain(u.Reason, 300)})
		}
	}
	for _, k := range c.Claims {
		if k.Required {
			message := FirstOf(Plain(k.Text, 300), "its verdict is not decided on both sides")
			add(k.Changed, k.Undecided, junitCase{Name: "claim: " + Plain(k.Says, 200), Message: message})
		}
	}
	for _, a := range c.Answers {
		if a.Side == side {
			s.Answer = Plain(a.Text, 600)
		}
	}
	return s
}

func junitName(id, phase, op string, cycle int) string {
	return joinFacts(caseText(id), PhaseName(phase, cycle), QuantityName(op))
}

// Count is the number of tests in a state.
func (s junitSuite) Count(state string) int {
	return countIf(s.Cases, func(k junitCase) bool { return k.State == state })
}
