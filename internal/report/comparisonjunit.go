package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"dmgbench/internal/analysis"
)

// JUnitOptions are for [ComparisonJUnit].
type JUnitOptions struct {
	Time   time.Time // of the test suites
	Strict bool      // what is undecided is a failure, as for the exit status
}

// The elements of JUnit XML, in the order and with the attributes that both common
// schemas require: windyroad/JUnit-Schema, and junit-10.xsd of Jenkins.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

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
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Skipped   *junitSkipped `xml:"skipped"`
	Failure   *junitFailure `xml:"failure"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// ComparisonJUnit writes a comparison as JUnit XML: a test suite for each side, a test for
// each row, each value that has no counterpart and each required claim.
func ComparisonJUnit(w io.Writer, c *analysis.Comparison, o JUnitOptions) error {
	var out junitSuites
	for i, side := range c.Sides[1:] {
		out.Suites = append(out.Suites, junitSuiteOf(c, i+1, side.Name, o))
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

func junitSuiteOf(c *analysis.Comparison, at int, side string, o JUnitOptions) junitSuite {
	s := junitSuite{ID: at - 1, Package: "dmgbench.compare", Name: Plain(side, 60) + " against " + Plain(c.Sides[0].Name, 60),
		Timestamp: o.Time.UTC().Format("2006-01-02T15:04:05"), Hostname: "localhost", Time: "0"}
	for _, d := range c.Differences {
		s.Properties = append(s.Properties, junitProperty{Plain(d.Fact, 40), strings.Join(plainList(d.Values[0], 80), " / ") + " → " +
			strings.Join(plainList(d.Values[at], 80), " / ")})
	}
	add := func(name string, failed, undecided bool, message, text string) {
		k := junitCase{Name: name, Classname: "dmgbench.compare." + Plain(side, 60), Time: "0"}
		switch {
		case failed:
			k.Failure = &junitFailure{message, "regression", text}
		case undecided && o.Strict:
			k.Failure = &junitFailure{message, "undecided", text}
		case undecided:
			k.Skipped = &junitSkipped{"undecided: " + message}
		}
		s.Cases = append(s.Cases, k)
	}
	for _, r := range c.Rows {
		if r.Side == side {
			message := effectText(r)
			if r.Reason != "" {
				message += " (" + Plain(r.Reason, 300) + ")"
			}
			add(strings.Join(NonEmpty([]string{caseText(r.Case), PhaseName(r.Phase, r.Cycle), QuantityName(r.Op)}), ", "), r.Regressed, r.Undecided, message, rowTitle(r))
		}
	}
	for _, u := range c.Unpaired {
		if u.Undecided && u.Side == side {
			add(strings.Join(NonEmpty([]string{caseText(u.Case), PhaseName(u.Phase, u.Cycle), QuantityName(u.Op)}), ", "), false, true, Plain(u.Reason, 300), "")
		}
	}
	for _, k := range c.Claims {
		if k.Required {
			add("claim: "+Plain(k.Says, 200), k.Changed, k.Undecided, FirstOf(Plain(k.Text, 300), "its verdict is not decided on both sides"), "")
		}
	}
	for _, k := range s.Cases {
		s.Tests++
		if k.Failure != nil {
			s.Failures++
		}
		if k.Skipped != nil {
			s.Skipped++
		}
	}
	for _, a := range c.Answers {
		if a.Side == side {
			s.Out = Plain(a.Text, 600)
		}
	}
	return s
}
