package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

const sampleText = `
schema = 1
title = "Formats and encryption"
[source]
title = "an article"
author = "an author"
on = { machine = "Mac mini M4 Pro", os = "macOS 26.3.1" }
[image]
size = "4 GB"
[matrix]
format = ["UDRW", "UDSB"]
encryption = ["none", "AES-256"]
[files.set]
sizes = ["20 kB", "40 kB", "60 kB", "80 kB", "100 kB", "200 kB", "400 kB", "600 kB", "800 kB", "1 MB", "2 MB", "4 MB", "6 MB", "8 MB", "10 MB", "20 MB"]
sets = 2
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" },
  { do = "write", phase = "new" }, { do = "read", phase = "new" }, { do = "measure", phase = "new" },
  { do = "detach" },
]
[[published]]
where = { format = "UDSB", encryption = "none", phase = "new" }
statistic = "theil-sen"
write = "7.62 GB/s"
[[published]]
where = { format = "UDRW", encryption = "none", phase = "new", file_size = "20 MB" }
write = "6 GB/s"
[[claim]]
says = "Encrypted images are written to more slowly"
by = "us"
scope = "any"
left = { write = { format = "UDRW", encryption = "none", phase = "new" } }
right = { write = { format = "UDRW", encryption = "AES-256", phase = "new" } }
ratio = ">= 1.5"
[[fit]]
name = "time-on-size"
quantity = "write_time"
where = { format = "UDSB", encryption = "none", phase = "new" }
along = "file_size"
model = "line"
`

// analysedSample is the sample with what the analysis makes of it under a plan that was parsed.
func analysedSample(t *testing.T) (*plan.Plan, *result.Result) {
	t.Helper()
	p, r := bareSample(t)
	require.NoError(t, analysis.Analyze(p, r, analysis.Options{}))
	return p, r
}

// bareSample is the sample as it was folded, without any conclusion.
func bareSample(t *testing.T) (*plan.Plan, *result.Result) {
	t.Helper()
	p, problems := plan.Parse("sample", []byte(sampleText))
	if problems != nil {
		require.Empty(t, problems.Errors())
	}
	_, r := reporttest.Sample()
	r.Summaries, r.Claims, r.Departures, r.Warnings, r.Fits, r.Relations = nil, nil, nil, nil, nil, nil
	for i := range r.Cases {
		r.Cases[i].Warnings = nil
	}
	return p, r
}

// What the analysis fills in is what the report reads.
func TestAnalysedResult(t *testing.T) {
	t.Parallel()
	p, r := analysedSample(t)
	m := func() (*plan.Plan, *result.Result) { return p, r }
	out := text(t, m, TextOptions{Verbose: true})
	assert.Contains(t, out, "7.62 GB/s")
	assert.Contains(t, out, "Ratio of another statistic than the one shown")
	assert.Contains(t, out, "Encrypted images are written to more slowly")
	page := html(t, m)
	assert.Contains(t, page, "Ratio of another statistic than the one shown: Theil–Sen slope of time on size")
	assert.Contains(t, page, "all bytes over all time, 20 MB files only")
	parts := parse(page)
	require.NoError(t, parts.err)
	assert.NotEmpty(t, parts.elements)
	charts := Renderers.Charts(p, r)
	fit := index(charts, "fit-1")
	require.GreaterOrEqual(t, fit, 0)
	c := charts[fit]
	require.Len(t, c.Series, 2, "points and their line")
	assert.Len(t, c.Series[0].Marks, 96)
	var again bytes.Buffer
	require.NoError(t, Renderers.HTML(&again, p, r))
	assert.Equal(t, page, again.String())
	assert.Contains(t, page, "[[protocol]]", "the canonical text of the plan")
}

// The mark beside a bar is never a figure of a part of the files.
func TestBarsHoldOnlyWholeFigures(t *testing.T) {
	p, r := analysedSample(t)
	marks := map[string]bool{}
	for _, s := range r.Summaries {
		if v, _ := ComparableValue(&s); v > 0 {
			marks[s.Case+" "+s.Op] = true
		}
	}
	assert.Equal(t, map[string]bool{"format=UDSB,encryption=none write": true}, marks)
	require.NotNil(t, NewView(p, r))
}
