package analysis

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// docs/metrics.md has a word on every quantity, estimate, warning and departure.
func TestMetricsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(raw), "```", "") // fences are no names
	var want []string
	for _, q := range plan.Quantities {
		want = append(want, string(q.Name))
	}
	want = append(want, panel...)
	want = append(want, weighted, latency, minimum, maximum)
	want = append(want, inSource(t, "../report/wording/sentences.txt", `(?m)^warning\.([a-z-]+) `)...)
	want = append(want, inSource(t, "../report/wording/sentences.txt", `(?m)^departure\.([a-z-]+) `)...)
	want = append(want, recordedKinds(t)...)
	require.Greater(t, len(want), 100)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		for name := range strings.FieldsSeq(strings.ReplaceAll(m[1], ",", " ")) {
			named[name] = true
		}
	}
	for _, name := range want {
		assert.True(t, named[name], "%q is not in docs/metrics.md", name)
	}
}

// recordedKinds are the kinds of warnings and departures that stand in journals
// already: what runner, workload, host and run folder say of a run.
func recordedKinds(t *testing.T) (out []string) {
	for _, dir := range []string{"bench/runner", "bench/workload", "system/host", "result", "cli"} {
		entries, err := os.ReadDir("../" + dir)
		require.NoError(t, err)
		before := len(out)
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				out = append(out, inSource(t, "../"+dir+"/"+name, `(?:result\.|\b)(?:Warning|Departure)\{Kind: "([a-z-]+)"`)...)
				out = append(out, inSource(t, "../"+dir+"/"+name, `\bwarn\((?:rec, |"", |id, |x\.c\.ID, )?"([a-z-]+)", `)...)
				if dir == "system/host" {
					out = append(out, inSource(t, "../system/host/"+name, `\badd\("([a-z-]+)", `)...)
				}
			}
		}
		require.NotEqual(t, before, len(out), "no kind of warning was found in %s", dir)
	}
	return out
}

func inSource(t *testing.T, file, pattern string) (out []string) {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(raw), -1) {
		out = append(out, m[1])
	}
	return out
}

// Where plans/ are at hand, each author's claim holds on the author's own figures.
func TestShippedPlansHoldOnTheirOwnFigures(t *testing.T) {
	entries, err := os.ReadDir("../../plans")
	if err != nil || len(entries) == 0 {
		t.Skip("no plans are here")
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".toml") {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			p, err := plan.Load("../../plans/" + e.Name())
			require.NoError(t, err)
			for _, c := range JudgePublished(p) {
				assert.Equal(t, "holds", c.Verdict, "%s: %s: %s", c.ID, c.Says, c.Reason)
			}
			for _, f := range p.Fits {
				checkPrintedFit(t, p, f)
			}
		})
	}
}

// checkPrintedFit sets coefficients as printed against those of the printed points.
func checkPrintedFit(t *testing.T, p *plan.Plan, f plan.Fit) {
	got := fitPublished(p, f)
	if got.Reason != "" {
		return
	}
	for _, c := range got.Coefficients {
		if c.Published != nil {
			assert.InEpsilon(t, *c.Published, c.Value, 0.02, "%s %s", f.Name, c.Name)
		}
	}
}
