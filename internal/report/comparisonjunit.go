package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"dmgbench/internal/analysis"
)

// JUnitOptions are for [ComparisonJUnit]. The time is a parameter so that the
// same comparison gives the same bytes.
type JUnitOptions struct {
	Time   time.Time // of the test suites
	Strict bool      // what is undecided is a failure, as for the exit status
}

// junitSuites is the root element.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

// junitSuite has the elements of JUnit XML in the order and with the attributes
// that both common schemas require: windyroad/JUnit-Schema, and junit-10.xsd of
// Jenkins.
type junitSuite struct {
	ID         int             `xml:"id,attr"`
	Package    string          `xml:"package,attr"`
	Name       string          `xml:"name,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Hostname   string          `xml:"hostname,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out"`
	Err        string          `xml:"system-err"`
	side       string
}

// junitProperty is a fact that differs between the sides.
type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// junitCase is one row, value or claim. Times are "0": nothing runs while a
// comparison is made.
type junitCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Skipped   *junitOutcome `xml:"skipped"`
	Failure   *junitOutcome `xml:"failure"`
}

// junitOutcome is a failure, or why a test was skipped; only failures have a
// type.
type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// ComparisonJUnit writes a comparison as JUnit XML: a test suite for each side,
// a test for each row, each value without a counterpart and each required
// claim.
func ComparisonJUnit(w io.Writer, c *analysis.Comparison, o JUnitOptions) error {
	var out junitSuites
	for i := range c.Sides[1:] {
		out.Suites = append(out.Suites, newJUnitSuite(c, i+1, o))
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the comparison: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, text); err != nil {
		return fmt.Errorf("writing the comparison as JUnit XML: %w", err)
	}
	return nil
}

// newJUnitSuite is the suite of the side at an index.
func newJUnitSuite(c *analysis.Comparison, at int, o JUnitOptions) junitSuite {
	side := c.Sides[at].Name
	s := junitSuite{ID: at - 1, Package: "dmgbench.compare", side: Plain(side, nameLength),
		Name:      Plain(side, nameLength) + " against " + Plain(c.Sides[0].Name, nameLength),
		Timestamp: o.Time.UTC().Format("2006-01-02T15:04:05"), Hostname: "localhost", Time: "0"}
	values := func(list []string) string { return strings.Join(plainList(list, factLength), " / ") }
	for _, d := range c.Differences {
		change := values(d.Values[0]) + " → " + values(d.Values[at])
		s.Properties = append(s.Properties, junitProperty{Plain(d.Fact, 40), change})
	}
	for _, r := range c.Rows {
		if r.Side == side {
			name := joinFacts(caseText(r.Case), PhaseName(r.Phase, r.Cycle), QuantityName(r.Op))
			message := changeText(r) + TextIf(r.Reason != "", " ("+Plain(r.Reason, 300)+")")
			s.add(name, r.Regressed, r.Undecided, o.Strict, junitOutcome{Message: message, Text: rowBasis(r)})
		}
	}
	for _, u := range c.Unpaired {
		if u.Undecided && u.Side == side {
			name := joinFacts(caseText(u.Case), PhaseName(u.Phase, u.Cycle), QuantityName(u.Op))
			s.add(name, false, true, o.Strict, junitOutcome{Message: Plain(u.Reason, 300)})
		}
	}
	for _, k := range c.Claims {
		if k.Required {
			message := FirstOf(Plain(k.Text, 300), "its verdict is not decided on both sides")
			s.add("claim: "+Plain(k.Says, 200), k.Changed, k.Undecided, o.Strict, junitOutcome{Message: message})
		}
	}
	for _, a := range c.Answers {
		if a.Side == side {
			s.Out = Plain(a.Text, 600)
		}
	}
	return s
}

// add adds a test. What is undecided is skipped, or with strict a failure.
func (s *junitSuite) add(name string, failed, undecided, strict bool, outcome junitOutcome) {
	s.Tests++
	k := junitCase{Name: name, Classname: "dmgbench.compare." + s.side, Time: "0"}
	switch {
	case failed, undecided && strict:
		outcome.Type = "undecided"
		if failed {
			outcome.Type = "regression"
		}
		k.Failure = &outcome
		s.Failures++
	case undecided:
		k.Skipped = &junitOutcome{Message: "undecided: " + outcome.Message}
		s.Skipped++
	}
	s.Cases = append(s.Cases, k)
}
