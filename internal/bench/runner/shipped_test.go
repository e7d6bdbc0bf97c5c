package runner_test

import (
	"cmp"
	"html"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	reporthtml "dmgbench/internal/report/html"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// Every shipped plan is really run: small files, real containers and volumes.
func TestShippedPlansRun(t *testing.T) {
	rounds := 1
	if long {
		rounds = 3
	}
	for _, name := range plans.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runShipped(t, name, rounds)
			s.checkCases(rounds)
			s.checkPublished()
			s.checkClaims(rounds)
			s.checkPauses(name)
			s.checkReports()
			s.checkLeftovers()
		})
	}
}

// made are the formats of the in-process engine.
var made = []string{"UDRW", "UDSB", "UDSP", "ASIF"}

// converted are those that it makes of them.
var converted = append([]string{"UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", "UDTO"}, made...)

// unable says what the in-process engine cannot do of a case, as its reason to skip it has it.
func unable(c plan.Case) string {
	s := c.Settings
	switch {
	case s.Target == "directory":
		return ""
	case !slices.Contains(made, s.Format):
		return "format " + s.Format
	case s.Encryption != "none" && s.Format == "ASIF":
		return "encrypted ASIF, which has no published layout"
	case s.Backend != "auto":
		return "backend " + s.Backend
	case s.ServedBy != "auto":
		return "choosing what serves an image"
	case !slices.Contains(s.Filesystems, "exFAT"):
		return "file system " + s.Filesystems[0]
	}
	for _, st := range unrolled(c.Steps) {
		if st.Do == "convert" && !slices.Contains(converted, cmp.Or(st.Format, s.ConvertTo)) {
			return "format " + st.Format
		}
	}
	return ""
}

func (s *shipped) checkCases(rounds int) {
	t, cases := s.t, s.p.Cases()
	require.Len(t, s.r.Cases, len(cases))
	done := 0
	for i, c := range cases {
		got := s.r.Cases[i]
		require.Equal(t, c.ID, got.ID)
		if why := unable(c); why != "" {
			assert.Equal(t, result.Skipped, got.Status, c.ID)
			assert.Contains(t, got.Reason, "in-process does not support "+why, c.ID)
			assert.Contains(t, got.Reason, "; hint: ", c.ID)
			continue
		}
		require.Equal(t, result.Done, got.Status, "%s: %s", c.ID, got.Reason)
		done++
		for round := 1; round <= rounds; round++ {
			s.checkRound(c, got, round)
		}
	}
	assert.Positive(t, done, "something is measured on any machine")
}

// checkRound holds the steps of one case-round against the plan, and their bytes
// against what the dry run promises.
func (s *shipped) checkRound(c plan.Case, got result.Case, round int) {
	var steps []result.Step
	for _, st := range got.Steps {
		if st.Round == round && st.Do != "canary" {
			steps = append(steps, st)
		}
	}
	slices.SortFunc(steps, func(a, b result.Step) int { return cmp.Compare(a.Index, b.Index) })
	want := slices.DeleteFunc(unrolled(c.Steps), func(st cycled) bool { return st.Do == "pause" })
	require.Len(s.t, steps, len(want), c.ID)
	m := &model{t: s.t, p: s.p, c: c, live: map[string]int64{}, made: map[string]int64{}}
	for i, st := range want {
		m.step(st, steps[i])
	}
	e := plan.Estimate(s.p, c)
	var wrote, read int64
	for _, st := range e.Steps {
		switch st.Do {
		case "write":
			wrote += int64(st.Bytes)
		case "read":
			read += int64(st.Bytes)
		}
	}
	assert.Equal(s.t, wrote, m.wrote, "%s: bytes written, as the dry run says", c.ID)
	if !e.Approximate {
		assert.Equal(s.t, read, m.read, "%s: bytes read, as the dry run says", c.ID)
	}
}

// checkPublished: each published figure stands beside each measured cell that it is about.
func (s *shipped) checkPublished() {
	for _, f := range s.p.Published {
		if f.Unmeasured {
			continue
		}
		settings := slices.DeleteFunc(slices.Clone(f.Where), func(c plan.Choice) bool {
			return slices.Contains([]string{"phase", "cycle", "file_size", "set"}, c.Key)
		})
		for i, c := range s.p.Cases() {
			if s.r.Cases[i].Status != result.Done || !settings.Match(c.Value) {
				continue
			}
			beside := slices.ContainsFunc(s.r.Summaries, func(x result.Summary) bool {
				return x.Case == c.ID && x.Op == string(f.Quantity) && slices.ContainsFunc(x.Published, func(v result.PublishedValue) bool {
					return v.Text == f.Value.Text && !v.Comparable
				})
			})
			assert.True(s.t, beside, "%s %s where %s stands beside %s, greyed", f.Quantity, f.Value.Text, f.Where, c.ID)
		}
	}
}

func (s *shipped) checkClaims(rounds int) {
	require.Len(s.t, s.r.Claims, len(s.p.Claims))
	for i, want := range s.p.Claims {
		got := s.r.Claims[i]
		require.Equal(s.t, []string{want.ID, want.Says}, []string{got.ID, got.Says})
		assert.NotEmpty(s.t, got.Reason, want.ID)
		switch {
		case want.Scope == "apple":
			assert.Equal(s.t, result.NotMeasured, got.Verdict, want.ID)
			assert.Contains(s.t, got.Reason, "Apple's own tools", want.ID)
		case s.p.Name == "layers" && slices.Contains([]string{"image-write", "helper-write", "helper-read", "bands-write"}, want.ID):
			assert.Equal(s.t, result.NotMeasured, got.Verdict, want.ID)
			assert.Contains(s.t, got.Reason, "choosing what serves an image", want.ID)
		case onOutcomes(want.Assert):
			assert.Equal(s.t, result.Holds, got.Verdict, "%s: %s", want.ID, got.Reason)
		case rounds < 3:
			assert.Equal(s.t, result.CannotTell, got.Verdict, "%s: %s", want.ID, got.Reason)
			assert.Contains(s.t, got.Reason, "3 rounds", "%s: %s", want.ID, got.Reason)
		default:
			assert.NotEqual(s.t, result.NotMeasured, got.Verdict, "%s: %s", want.ID, got.Reason)
		}
	}
}

// onOutcomes says whether a claim is about outcomes of steps alone: one round judges it.
func onOutcomes(a plan.Assert) bool {
	return a.Kind == "outcome" ||
		len(a.Parts) > 0 && !slices.ContainsFunc(a.Parts, func(part plan.Assert) bool { return !onOutcomes(part) })
}

// checkPauses: a plan pauses for its manual axes and its pause steps, and for nothing else.
func (s *shipped) checkPauses(name string) {
	want := map[string]int{
		"thread-scaling-2024":  5,     // the host, and four numbers of virtual cores
		"virtual-machine-2026": 3 + 2, // three systems; the virtual ones are restarted before the read
	}
	if long {
		want["virtual-machine-2026"] = 3 + 2*3
	}
	assert.Len(s.t, s.pauses, want[name], "%v", s.pauses)
}

func (s *shipped) checkReports() {
	render := map[string]func(io.Writer) error{
		"html":     func(w io.Writer) error { return reporthtml.Run(w, s.p, s.r) },
		"markdown": func(w io.Writer) error { return text.RunMarkdown(w, s.p, s.r) },
		"text":     func(w io.Writer) error { return text.Run(w, s.p, s.r, text.Options{}) },
	}
	for name, f := range render {
		flat := strings.Join(strings.Fields(html.UnescapeString(s.same(name, f))), " ")
		assert.Contains(s.t, flat, s.p.Title, name)
		if name == "html" {
			for _, c := range s.p.Claims {
				assert.Contains(s.t, flat, strings.Join(strings.Fields(c.Says), " "), name)
			}
		}
	}
}

// checkLeftovers: of a run nothing stays but plan and journal in its folder.
func (s *shipped) checkLeftovers() {
	var left []string
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(s.dir, path)
			left = append(left, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(s.t, err)
	left = slices.DeleteFunc(left, func(name string) bool { return strings.HasPrefix(name, "run/.") })
	assert.Equal(s.t, []string{"run/journal.jsonl", "run/plan.toml"}, left)
}
