package analysis

import (
	"cmp"
	"slices"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/result"
)

// containerVerbs are the kinds of step that act on a container as a whole, in
// the order in which they are listed.
var containerVerbs = []string{"create", "attach", "remount", "detach", "compact", "trim", "resize", "convert",
	"transfer", "check"}

// verbs count failures and retries of steps on containers, for all cases
// together and for each case that had one. Steps of interrupted rounds do not
// count, nor the findings of a check.
func (s *runData) verbs() (out []result.Verb) {
	for _, do := range containerVerbs {
		steps, _ := s.endedSteps(do, nil)
		steps = slices.DeleteFunc(steps, func(st endedStep) bool { return st.Expect == "fail" })
		ids := texts(steps, func(st endedStep) string { return st.id })
		slices.Sort(ids)
		for _, id := range slices.Concat([]string{""}, ids) { // "" is all cases together
			v := result.Verb{Do: do, Case: id}
			for _, st := range steps {
				if id == "" || id == st.id {
					countVerb(&v, st.Step)
				}
			}
			if v.Steps > 0 && (id == "" || v.Failed+v.Retried > 0) {
				v.FailedCI, v.RetriedCI = shareCI(v.Failed, v.Steps), shareCI(v.Retried, v.Steps)
				out = append(out, v)
			}
		}
	}
	return out
}

// countVerb adds a step.
func countVerb(v *result.Verb, st *result.Step) {
	v.Steps++
	switch {
	case st.Error != "" && len(st.Findings) == 0:
		v.Failed++
		v.Reason = cmp.Or(v.Reason, st.Error)
	// Results of older versions have the time alone, and less than 1 ms without a retry.
	case st.Retries > 0 || st.RetryNS >= 1e6:
		v.Retried++
		retry, _ := find(st.Warnings, func(w result.Warning) bool { return w.Kind == "engine" })
		v.Reason = cmp.Or(v.Reason, retry.Text)
	}
}

// shareCI is the interval of a share of steps.
func shareCI(k, n int) *result.CI {
	iv := stats.ShareInterval(k, n, level)
	return ciOf(iv, "step", iv.Method)
}
