package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

// comparableRun is a run of two cases and two phases at the rates given in MB/s.
func comparableRun(run, system string, rates ...int64) *result.Result {
	r := &result.Result{Run: run, Rounds: 1, Plan: result.PlanRef{Name: "p", Digest: "0123456789abcdef"}, Status: result.Done,
		Tool:     result.Tool{Name: "dmgbench", Version: "1.0"},
		Sessions: []result.Session{{Index: 1, Host: result.Host{OS: "darwin", OSVersion: system, Model: "Mac16,11", CPU: "Apple M4 Pro"}, Engine: result.Engine{Title: "hdiutil (Apple, macOS " + system + ")"}}},
		Claims:   []result.Claim{{ID: "k", Says: "A sparse bundle writes faster", By: "author", Verdict: result.Holds, Reason: "it is so"}}}
	for i, format := range []string{"UDSB", "UDRW"} {
		c := result.Case{ID: "format=" + format + ",encryption=AES-256", Keys: [][2]string{{"format", format}, {"encryption", "AES-256"}}, Status: result.Done,
			Target: result.Target{Kind: "image", Format: format}, Rounds: []result.CaseRound{{Round: 1, Status: result.Done}}}
		for k, do := range []string{"write", "read"} {
			ns := 1e18 / (rates[(2*i+k)%len(rates)] * 1e6)
			c.Steps = append(c.Steps, result.Step{Index: k, Do: do, Phase: "new", Round: 1, Session: 1, DurationNS: ns,
				Samples: []result.Sample{{File: "f", Bytes: 1e9, DurationNS: ns, Set: 1}}})
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}

func comparison(t *testing.T) *analysis.Comparison {
	t.Helper()
	runs := []*result.Result{
		comparableRun("a1", "26.4", 5000, 6000, 1500, 2800), comparableRun("a2", "26.4", 5050, 6010, 1490, 2500), comparableRun("a3", "26.4", 4960, 5990, 1510, 3100),
		comparableRun("b1", "26.5", 4300, 6005, 3100, 2600), comparableRun("b2", "26.5", 4350, 6000, 3150, 3000), comparableRun("b3", "26.5", 4310, 6012, 3090, 2900),
	}
	runs[3].Claims[0].Verdict, runs[5].Seed = result.DoesNotHold, 7
	runs[4].Claims, runs[5].Claims = nil, nil
	for _, r := range runs[:3] { // a case that the others have not
		c := r.Cases[0]
		c.ID = "format=ASIF,encryption=AES-256"
		r.Cases = append(r.Cases, c)
	}
	c, err := analysis.Compare(runs, analysis.CompareOptions{By: []string{"os"}})
	require.NoError(t, err)
	require.Len(t, c.Notes, 2, "the plan of the runs is not here")
	c.Notes = nil
	c.Claims[0].Verdicts = []string{result.Holds, result.DoesNotHold}
	c.Claims[0].Text = "holds in macOS 26.4, does not hold in macOS 26.5"
	return c
}

func ledgerOf() *analysis.Ledger {
	four, five := comparableRun("a1", "26.4", 5000), comparableRun("b1", "26.5", 4300)
	five.Claims[0].Verdict, five.Claims[0].Reason = result.DoesNotHold, "it is so no longer"
	five.Departures = []result.Departure{{Kind: "scale", Text: "sizes times 0.1"}}
	l := analysis.NewLedger([]analysis.HistoryRun{{Result: four, Path: "a1/report.html"}, {Result: five, Path: "b1/report.html"}}, inFull)
	l.LeftOut = append(l.LeftOut, "c1: damaged")
	return l
}

func rendered(t *testing.T, f func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f(&b))
	return b.Bytes()
}

func TestGoldenComparison(t *testing.T) {
	c, l := comparison(t), ledgerOf()
	golden(t, "comparison.txt", rendered(t, func(w io.Writer) error { return Renderers.Document(w, ComparisonDocument(c), TextOptions{}) }))
	golden(t, "comparison.md", rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, ComparisonDocument(c)) }))
	golden(t, "ledger.txt", rendered(t, func(w io.Writer) error { return Renderers.Document(w, LedgerDocument(l), TextOptions{}) }))
	complete := *l
	complete.LeftOut = nil
	short := rendered(t, func(w io.Writer) error { return Renderers.Document(w, LedgerDocument(&complete), TextOptions{}) })
	assert.NotContains(t, strings.ToLower(string(short)), "not in this ledger")
	golden(t, "ledger.md", rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, LedgerDocument(l)) }))
}

func TestCaseText(t *testing.T) {
	assert.Equal(t, "the native folder, unencrypted", caseText("baseline=true,encryption=none"))
	assert.Equal(t, "UDSB, workers 4", caseText("format=UDSB,workers=4"))
}

// The text fits 80 columns, and no number stands before what differs.
func TestComparisonText(t *testing.T) {
	text := string(rendered(t, func(w io.Writer) error {
		return Renderers.Document(w, ComparisonDocument(comparison(t)), TextOptions{})
	}))
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, Width(strings.TrimRight(line, "\n")), 80, line)
	}
	assert.Less(t, strings.Index(text, "What differs"), strings.Index(text, "% slower"))
	assert.Contains(t, text, "Regression: 1 row is worse by more than 5 %")
	assert.Contains(t, text, "not measured on macOS 26.5 (ASIF, AES-256")
}

var classes = regexp.MustCompile(`class="([^"]*)"`)

// ourClasses are all that the pages of comparisons and ledgers use.
var ourClasses = strings.Fields("document rule sub skip said kicker lead alert muted small chart data number scroll ledger head warn bad good holds does_not_hold cannot_tell not_measured")

// Foreign text stays text on the pages as well.
func TestHostileComparison(t *testing.T) {
	evil := `</script><img src=x onerror=alert(1)>` + "\u202e`|*\x1b[31m"
	a, b := comparableRun("a"+evil, evil+"1", 100), comparableRun("b"+evil, evil+"2", 200)
	for i, r := range []*result.Result{a, b} {
		r.Claims[0].Says, r.Claims[0].ID, r.Plan.Name = evil, evil, evil
		r.Claims[0].Verdict = []string{result.Holds, evil}[i]
		r.Cases[0].ID = evil
		r.Cases[1].Steps[0].Phase = evil + fmt.Sprint(i)
	}
	c, err := analysis.Compare([]*result.Result{a, b}, analysis.CompareOptions{})
	require.NoError(t, err)
	l := analysis.NewLedger([]analysis.HistoryRun{{Result: a, Path: "javascript:alert(1)"}, {Result: b, Path: `"><script>`}}, inFull)
	for name, page := range map[string][]byte{
		"comparison": rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, ComparisonDocument(c)) }),
		"ledger":     rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, LedgerDocument(l)) }),
	} {
		assert.NotContains(t, strings.Replace(string(page), echarts.Script, "", 1), "<img", name)
		scripts := map[string]int{"comparison": 4}[name] + strings.Count(string(page), "<table>") // the data of two charts, the library, our own, and copies of tables
		assert.Equal(t, scripts, strings.Count(strings.Replace(string(page), echarts.Script, "", 1), "<script"), name)
		assert.NotContains(t, string(page), `href="javascript`, name)
		assert.Contains(t, string(page), "default-src &#39;none&#39;", name)
		for _, class := range classes.FindAllSubmatch(page, -1) {
			assert.Subset(t, append(ourClasses, "forms"), strings.Fields(string(class[1])), "%s: classes are ours, whatever a result says", name)
		}
	}
	for name, text := range map[string][]byte{
		"comparison": rendered(t, func(w io.Writer) error { return Renderers.Document(w, ComparisonDocument(c), TextOptions{}) }),
		"ledger":     rendered(t, func(w io.Writer) error { return Renderers.Document(w, LedgerDocument(l), TextOptions{}) }),
	} {
		assert.NotContains(t, string(text), "\x1b", name)
		assert.NotContains(t, string(text), "\u202e", name)
	}
	md := string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, ComparisonDocument(c)) })) + string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, LedgerDocument(l)) }))
	assert.NotContains(t, md, "<img")
}

// Of twenty sides the sentences name a few; every side has its row all the same.
func TestComparisonOfManySides(t *testing.T) {
	var runs []*result.Result
	for i := range 20 {
		runs = append(runs, comparableRun(fmt.Sprintf("r%02d", i), fmt.Sprintf("26.%d", i), 5000))
	}
	c, err := analysis.Compare(runs, analysis.CompareOptions{By: []string{"os"}})
	require.NoError(t, err)
	text := string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, ComparisonDocument(c)) }))
	assert.True(t, strings.HasPrefix(text, "# macOS 26.1, macOS 26.2, 17 more against macOS 26.0\n"), text[:80])
	assert.Equal(t, 1, strings.Count(text, "undecided: too few sessions"))
	for i := range 20 {
		assert.Contains(t, text, fmt.Sprintf("| r%02d |", i))
	}
}

// Several versions are one table for each quantity, with a column for each of them.
func TestComparisonOfVersionsIsOneTable(t *testing.T) {
	var runs []*result.Result
	for i, rates := range [][]int64{{5000, 6000}, {4300, 6010}, {5010, 5990}, {10000, 6000}} {
		for k := range int64(3) {
			r := comparableRun(fmt.Sprintf("r%d-%d", i, k), fmt.Sprintf("26.%d", i), rates[0]+k*10, rates[1]+k)
			if i == 2 {
				r.Cases = r.Cases[:1]
			}
			runs = append(runs, r)
		}
	}
	c, err := analysis.Compare(runs, analysis.CompareOptions{By: []string{"os"}})
	require.NoError(t, err)
	sections := rowSections(c)
	require.Len(t, sections, 2, "writing and reading")
	write := sections[0].Table
	assert.Equal(t, Columns("<", "macOS 26.0", "macOS 26.1", "macOS 26.2", "macOS 26.3"), write.Columns)
	var texts [][]string
	for _, row := range write.Rows {
		var line []string
		for _, c := range row {
			line = append(line, c.Text)
		}
		texts = append(texts, line)
	}
	assert.Equal(t, [][]string{{"UDSB", "5.01 GB/s", "4.31 GB/s (−14 % !)", "5.02 GB/s (=)", "10.0 GB/s (+100 %)"},
		{"UDRW", "5.01 GB/s", "4.31 GB/s (−14 % !)", "–", "10.0 GB/s (+100 %)"}}, texts)
	assert.Len(t, sections[0].Charts, 3)
	for _, b := range [][]byte{rendered(t, func(w io.Writer) error { return Renderers.Document(w, ComparisonDocument(c), TextOptions{}) }),
		rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, ComparisonDocument(c)) })} {
		assert.Equal(t, 2, strings.Count(string(b), "macOS 26.3 against"), "in the title and in the result, but no table of its own")
	}
	for line := range strings.Lines(string(rendered(t, func(w io.Writer) error { return Renderers.Document(w, ComparisonDocument(c), TextOptions{}) }))) {
		assert.LessOrEqual(t, Width(strings.TrimRight(line, "\n")), 80, line)
	}
}

// The only case that two plans share keeps its name.
func TestOnlyCaseKeepsItsName(t *testing.T) {
	a, b := comparableRun("a", "26.4", 5000), comparableRun("b", "26.5", 5000)
	a.Cases, b.Cases = a.Cases[:1], b.Cases[:1]
	c, err := analysis.Compare([]*result.Result{a, b}, analysis.CompareOptions{})
	require.NoError(t, err)
	assert.Equal(t, "UDSB, AES-256", rowSections(c)[0].Table.Rows[0][0].Text)
	c, err = analysis.Compare([]*result.Result{comparableRun("c", "26.4", 5000)}, analysis.CompareOptions{By: []string{"format", "encryption"}})
	require.NoError(t, err)
	assert.Equal(t, "new", rowSections(c)[0].Table.Rows[0][0].Text, "the keys of the case are the sides")
}

// The elements and attributes that the common schemas require, in their order.
func TestComparisonJUnit(t *testing.T) {
	c := comparison(t)
	c.Claims[0].Required, c.Claims[0].Changed = true, true
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := rendered(t, func(w io.Writer) error { return ComparisonJUnit(w, c, at, false) })
	type outcome struct {
		Message string `xml:"message,attr"`
	}
	var got struct {
		Suites []struct {
			Timestamp string `xml:"timestamp,attr"`
			Hostname  string `xml:"hostname,attr"`
			Tests     int    `xml:"tests,attr"`
			Failures  int    `xml:"failures,attr"`
			Errors    int    `xml:"errors,attr"`
			Skipped   int    `xml:"skipped,attr"`
			Cases     []struct {
				Name    string   `xml:"name,attr"`
				Failure *outcome `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(text, &got))
	require.Len(t, got.Suites, 1)
	s := got.Suites[0]
	assert.Equal(t, []any{7, 2, 3, 0, "2026-01-02T03:04:05", "localhost"}, []any{s.Tests, s.Failures, s.Skipped, s.Errors, s.Timestamp, s.Hostname})
	assert.Equal(t, "UDSB, AES-256, new, write", s.Cases[0].Name)
	assert.Equal(t, "14 % slower (12–15 %) !", s.Cases[0].Failure.Message)
	assert.Nil(t, s.Cases[1].Failure)
	order := regexp.MustCompile(`(?s)<testsuites>.*<testsuite id="0" package=".*<properties>.*</properties>.*<testcase name="[^"]*" classname="[^"]*" time="0">.*</testcase>\s*<system-out>[^<]+</system-out>\s*<system-err></system-err>`)
	assert.Regexp(t, order, string(text))
	strict := rendered(t, func(w io.Writer) error { return ComparisonJUnit(w, c, at, true) })
	assert.Equal(t, 3, strings.Count(string(strict), `type="undecided"`))
	assert.NotContains(t, string(strict), "<skipped")
}

// The summary of a large comparison has whole rows, those that regressed among them, and the number of all.
func TestSummaryIsBounded(t *testing.T) {
	c := comparison(t)
	row := c.Rows[1]
	row.Regressed = false
	c.Rows = nil
	for i := range 5000 {
		row.Case = fmt.Sprintf("format=UDSB,block=%d KiB", i+1)
		c.Rows = append(c.Rows, row)
		c.Unpaired = append(c.Unpaired, analysis.Unpaired{Case: row.Case, Op: "write", Reason: fmt.Sprintf("reason %d", i)})
	}
	c.Rows[4999].Regressed = true
	text := string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, SummaryDocument(c)) }))
	assert.Less(t, len(text), 100_000)
	assert.Contains(t, text, "300 of "+Grouped(5000)+" rows are shown, regressions first")
	assert.Equal(t, 300, strings.Count(text, "| block "))
	assert.Contains(t, text, "| block 5000 KiB |")
	assert.NotContains(t, text, "| block 300 KiB |")
	assert.Contains(t, text, "and 4952 more reasons")
	c.Rows = c.Rows[:300]
	assert.NotContains(t, string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, SummaryDocument(c)) })), "are shown")
}

// Every form of a comparison names the settings that differ, and those of some cases with the cases.
func TestFormsNameSettings(t *testing.T) {
	c := comparison(t)
	c.Differences = append([]analysis.Difference{{Fact: "band size", Kind: "setting", Values: [][]string{{"8 MiB"}, {"1 MiB"}}, Across: "band_size"},
		{Fact: "data of files few", Kind: "setting", Values: [][]string{{"random"}, {"zero"}}, Cases: []string{"format=UDSB"}}}, c.Differences...)
	c.Unpaired[0].Reason = "band size: 8 MiB → 1 MiB"
	for name, text := range map[string][]byte{
		"text":     rendered(t, func(w io.Writer) error { return Renderers.Document(w, ComparisonDocument(c), TextOptions{Width: 200}) }),
		"html":     rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, ComparisonDocument(c)) }),
		"markdown": rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, ComparisonDocument(c)) }),
		"summary":  rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, SummaryDocument(c)) }),
		"junit":    rendered(t, func(w io.Writer) error { return ComparisonJUnit(w, c, time.Time{}, false) }),
	} {
		assert.Contains(t, string(text), "8 MiB → 1 MiB", name)
		assert.Contains(t, string(text), "random → zero", name)
		if name != "junit" {
			assert.Contains(t, string(text), "data of files few: random → zero (UDSB)", name)
			assert.Regexp(t, "--across band.?_size", string(text), name)
		}
	}
}

// A ledger of a thousand runs stays a page: every run is on it, and the evidence of
// the newest of each verdict.
func TestLedgerOfManyRunsStaysSmall(t *testing.T) {
	var runs []analysis.HistoryRun
	evidence := strings.Repeat("a word of evidence ", 20)
	for i := range 1000 {
		verdict := result.Holds
		if i%10 == 0 {
			verdict = result.DoesNotHold
		}
		r := &result.Result{Run: fmt.Sprintf("run-%04d", i), Plan: result.PlanRef{Name: "p"}, Sessions: []result.Session{{Started: time.Unix(int64(i)*86400, 0)}}}
		for k := range 10 {
			r.Claims = append(r.Claims, result.Claim{ID: fmt.Sprint(k), Says: "It is so", Verdict: verdict, Reason: fmt.Sprintf("%04d: %s", i, evidence), Evidence: []string{evidence}})
		}
		runs = append(runs, analysis.HistoryRun{Result: r, Path: r.Run + "/report.html"})
	}
	l := analysis.NewLedger(runs, inFull)
	page := string(rendered(t, func(w io.Writer) error { return Renderers.DocumentHTML(w, LedgerDocument(l)) }))
	assert.Less(t, len(page), 3<<20)
	for i := range 1000 {
		assert.Equal(t, 10, strings.Count(page, fmt.Sprintf(`href="run-%04d/report.html"`, i)), i)
	}
	for i, want := range map[int]bool{999: true, 997: true, 995: false, 990: true, 970: true, 960: false, 0: false} {
		assert.Equal(t, want, strings.Contains(page, fmt.Sprintf("%04d: a word", i)), i)
	}
	assert.Contains(t, page, "97 earlier runs (a): does not hold, not counted; their reports have the evidence")
	text := string(rendered(t, func(w io.Writer) error { return Renderers.DocumentMarkdown(w, LedgerDocument(l)) }))
	assert.Contains(t, text, "run-0001")
}
