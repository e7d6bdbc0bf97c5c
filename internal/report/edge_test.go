package report

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
)

// keepRounds leaves the first n rounds of every case.
func keepRounds(r *result.Result, n int) {
	r.Rounds = n
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Rounds = slices.DeleteFunc(c.Rounds, func(x result.CaseRound) bool { return x.Round > n })
		c.Steps = slices.DeleteFunc(c.Steps, func(s result.Step) bool { return s.Round > n })
	}
}

// end gives every case and its rounds a status; without their steps if they were never begun.
func end(r *result.Result, status string, steps bool) {
	r.Status = status
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Status, c.Reason = status, "of some reason"
		for j := range c.Rounds {
			c.Rounds[j].Status, c.Rounds[j].Reason = status, "of some reason"
		}
		if !steps {
			c.Steps, c.Rounds = nil, nil
		}
	}
}

// shrink leaves two of three phases, one of two sets of files, and one sparse bundle: what is at the border is there all
// the same.
func shrink(r *result.Result) {
	r.Cases = slices.DeleteFunc(r.Cases, func(c result.Case) bool { return c.ID == "format=UDSB,encryption=AES-256" })
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Steps = slices.DeleteFunc(c.Steps, func(s result.Step) bool { return s.Phase == "part-full" })
	}
	eachStep(r, func(s *result.Step) {
		s.Samples = slices.DeleteFunc(s.Samples, func(f result.Sample) bool { return f.Set == 2 })
	})
}

func eachSample(r *result.Result, do func(s *result.Sample)) {
	for i := range r.Cases {
		for j := range r.Cases[i].Steps {
			for k := range r.Cases[i].Steps[j].Samples {
				do(&r.Cases[i].Steps[j].Samples[k])
			}
		}
	}
}

func eachStep(r *result.Result, do func(s *result.Step)) {
	for i := range r.Cases {
		for j := range r.Cases[i].Steps {
			do(&r.Cases[i].Steps[j])
		}
	}
}

// edges are results at the border of what there can be.
var edges = map[string]func(*result.Result){
	"one round":  func(r *result.Result) { keepRounds(r, 1) },
	"two rounds": func(r *result.Result) { keepRounds(r, 2) },
	"one file": func(r *result.Result) {
		keepRounds(r, 1)
		eachStep(r, func(s *result.Step) { s.Samples = s.Samples[:min(1, len(s.Samples))] })
	},
	"two files": func(r *result.Result) {
		eachStep(r, func(s *result.Step) { s.Samples = s.Samples[:min(2, len(s.Samples))] })
	},
	"no files":  func(r *result.Result) { eachStep(r, func(s *result.Step) { s.Samples = nil }) },
	"all equal": func(r *result.Result) { eachSample(r, func(s *result.Sample) { s.Bytes, s.DurationNS = 1e6, 1e6 }) },
	"no time": func(r *result.Result) {
		eachSample(r, func(s *result.Sample) { s.DurationNS = 0 })
		eachStep(r, func(s *result.Step) {
			s.DurationNS = 0
			if s.Span != nil {
				s.Span.LastDoneNS, s.Span.FirstDoneNS, s.Span.BusyNS = s.Span.GateNS, s.Span.GateNS, 0
			}
		})
	},
	"no bytes": func(r *result.Result) { eachSample(r, func(s *result.Sample) { s.Bytes = 0 }) },
	"backwards": func(r *result.Result) { // larger files take less time: no line rises
		eachSample(r, func(s *result.Sample) { s.DurationNS = 1e15 / s.Bytes })
	},
	"huge":    func(r *result.Result) { eachSample(r, func(s *result.Sample) { s.Bytes, s.DurationNS = 1<<62, 1 }) },
	"skipped": func(r *result.Result) { end(r, result.Skipped, false) },
	"failed": func(r *result.Result) {
		end(r, result.Failed, true)
		eachStep(r, func(s *result.Step) { s.Error = "no space left on device" })
	},
	"discarded":   func(r *result.Result) { end(r, result.Discarded, true) },
	"unfinished":  func(r *result.Result) { end(r, result.Discarded, false); r.Status = result.Unfinished },
	"no sessions": func(r *result.Result) { r.Sessions = nil },
	"no cases":    func(r *result.Result) { r.Cases = nil },
	"two hosts": func(r *result.Result) {
		other := r.Sessions[0]
		other.Index, other.Host = 2, result.Host{OS: "darwin", OSVersion: "26.4", CPU: "Apple M4 Pro"}
		other.Started, other.Finished = other.Started.Add(24*time.Hour), time.Time{}
		r.Sessions = append(r.Sessions, other)
		eachStep(r, func(s *result.Step) { s.Session = 1 + s.Round%2 })
	},
	"hostile": func(r *result.Result) {
		bad := "</script><script>alert(1)</script>\"'`__f__alert(2)__f__\u202egnp.exe\u05d0\U0001F469\u200D\U0001F680\x00\x1b[31m" + strings.Repeat("Ω", 300)
		r.Plan.Title, r.Plan.Name = bad, bad
		for i := range r.Cases {
			for j := range r.Cases[i].Keys {
				r.Cases[i].Keys[j][0] += bad
			}
			r.Cases[i].Reason, r.Cases[i].Target.Place = bad, bad
		}
		r.Warnings = append(r.Warnings, result.Warning{Kind: bad, Text: bad})
		eachStep(r, func(s *result.Step) { s.Phase = bad })
		eachSample(r, func(s *result.Sample) { s.File = bad })
	},
}

var broken = regexp.MustCompile(`\bNaN\b|[+-]Inf\b|\bundefined\b|<nil>|%!|\[object`)

// brokenIn finds what is broken in a text; the expression, which is slow, is for texts that have a part of it.
func brokenIn(text string) string {
	for _, part := range []string{"NaN", "Inf", "undefined", "<nil>", "%!", "[object"} {
		if strings.Contains(text, part) {
			return broken.FindString(text)
		}
	}
	return ""
}

// Whatever a run came to, its result can be stored and exported, and its report
// prints no broken number and no empty picture.
func TestEdges(t *testing.T) {
	t.Parallel()
	for name, change := range edges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := bareSample(t)
			shrink(r)
			change(r)
			require.NoError(t, analysis.Analyze(p, r, analysis.Options{}))
			m := func() (*plan.Plan, *result.Result) { return p, r }
			page := html(t, m)
			parts := parse(page)
			require.NoError(t, parts.err)
			for what, out := range map[string]string{"page": parts.shown, "text": text(t, m, TextOptions{Verbose: true}), "markdown": markdown(t, m)} {
				assert.Empty(t, brokenIn(out), what)
			}
			for _, c := range Renderers.Charts(p, r) {
				assert.Positive(t, c.Size(), c.ID)
				assert.NotEmpty(t, c.Table.Rows, c.ID)
				for _, a := range []Axis{c.X, c.Y} {
					assert.False(t, a.Low != nil && a.High != nil && !(*a.High > *a.Low), "%s: axis from %v to %v", c.ID, a.Low, a.High)
				}
				spec, err := Renderers.Encode(&c)
				require.NoError(t, err, c.ID)
				assert.Empty(t, brokenIn(string(spec)), c.ID)
			}
			_, err := r.MarshalIndent()
			require.NoError(t, err)
			for _, format := range export.Formats {
				assert.NoError(t, export.Write(io.Discard, []*result.Result{r}, format, ""), format)
			}
		})
	}
}

// Ten thousand files are analysed and rendered in seconds, into a page that can be mailed.
func TestManyFilesAreFast(t *testing.T) {
	p, r := reporttest.Large(10_000)
	r.Summaries, r.Fits, r.Claims = nil, nil, nil
	began := time.Now()
	require.NoError(t, analysis.Analyze(p, r, analysis.Options{}))
	var page bytes.Buffer
	require.NoError(t, Renderers.HTML(&page, p, r))
	assert.Less(t, page.Len(), 3_000_000)
	assert.Less(t, time.Since(began), 20*time.Second, "a guard against squares, not a measurement")
	t.Logf("%d bytes in %v", page.Len(), time.Since(began))
}
