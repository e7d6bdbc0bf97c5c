package text

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// methodsPlan has steps within steps and a block for some cases only.
const methodsPlan = `schema = 1
title = "Formats and encryption"
[source]
title = "an article"
author = "an author"
[image]
size = "4 GB"
[matrix]
format = ["UDRW", "UDSB"]
[files.set]
sizes = ["20 kB", "1 MB"]
sets = 2
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" },
  { do = "repeat", times = 3, steps = [ { do = "write", phase = "aged" }, { do = "delete", all = true } ] },
]
[[protocol]]
when = { format = "UDSB" }
steps = [ { do = "detach" }, { do = "compact", phase = "small" } ]
`

func methodsText(t *testing.T, p *plan.Plan, r *result.Result) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Methods(&b, p, r))
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, report.Width(strings.TrimSuffix(line, "\n")), 80, line)
	}
	return b.String()
}

func parsedPlan(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, problems := plan.Parse("methods", []byte(text))
	if problems != nil {
		require.Empty(t, problems.Errors())
	}
	return p
}

// The golden file has every sentence of the methods: where, cases, files, steps, figures, deviations.
func TestGoldenMethods(t *testing.T) {
	_, r := reporttest.Sample()
	got := methodsText(t, parsedPlan(t, methodsPlan), r)
	const path = "testdata/methods.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// What a run does not have leaves no sentence, and no empty one.
func TestMethodsLeaveOutWhatIsUnknown(t *testing.T) {
	p, r := reporttest.Sample()
	p.Source, p.Protocol = nil, nil
	one := func() string { return strings.Join(strings.Fields(methodsText(t, p, r)), " ") }
	assert.Contains(t, one(), "The run differs from the plan as written as follows. - in-process engine instead of Apple’s hdiutil.")
	assert.Contains(t, one(), "(read-write image (UDRW) · unencrypted; sparse bundle (UDSB) · unencrypted).")
	assert.NotContains(t, one(), "after Howard Oakley")
	assert.NotContains(t, one(), "went through these steps")
	assert.Contains(t, one(), "A control group limits this process to 1.5 processors.")
	assert.Contains(t, one(), "2 further warnings on single cases and figures: see the report.")
	r.Departures, r.Warnings, r.Plan.Digest = nil, nil, ""
	r.Sessions[0].Host.Disks, r.Sessions[0].Engine.Vendor = nil, "Apple"
	for i := range r.Summaries {
		r.Summaries[i].Warnings = nil
	}
	for i := range r.Cases {
		r.Cases[i].Status = result.Done
		for k := range r.Cases[i].Steps {
			s := &r.Cases[i].Steps[k]
			s.Warnings, s.Cache, s.Sync = nil, nil, nil
		}
	}
	for _, sentence := range []string{"differs from", "Not measured", "SHA-256", "Disk:", "Apple’s tools", "warning", "requested", ". ."} {
		assert.NotContains(t, one(), sentence)
	}
	for i := range r.Cases {
		r.Cases[i].Status, r.Cases[i].Rounds = result.Skipped, nil
	}
	assert.NotContains(t, one(), "measured in 3 rounds")
	assert.NotContains(t, one(), "files timed")
	assert.Contains(t, one(), "Not measured in full: ")
}

func TestHostileMethods(t *testing.T) {
	p, r := reporttest.Hostile()
	assert.NotContains(t, methodsText(t, p, r), "\x1b")
}

// A writer that fails is reported with what was written.
func TestWriteErrorsAreReported(t *testing.T) {
	p, r := reporttest.Sample()
	full := errors.New("no space left on device")
	w := failing{full}
	require.ErrorIs(t, Methods(w, p, r), full)
	require.ErrorIs(t, Run(w, p, r, Options{}), full)
	require.ErrorIs(t, RunMarkdown(w, p, r), full)
	require.ErrorIs(t, Document(w, report.Document{Title: "a title"}, Options{}), full)
	require.ErrorContains(t, DocumentMarkdown(w, report.Document{Title: "a title"}), `writing "a title": no space`)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
