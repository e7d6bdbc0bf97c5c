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
func (s *runData) verbs() []result.Verb {
	all := map[[2]string]*result.Verb{}
	for _, do := range containerVerbs {
		steps, _ := s.endedSteps(do, nil)
		for _, st := range steps {
			if st.Expect == "fail" {
				continue
			}
			for _, id := range []string{"", st.id} {
				v := all[[2]string{do, id}]
				if v == nil {
					v = &result.Verb{Do: do, Case: id}
					all[[2]string{do, id}] = v
				}
				countVerb(v, st.Step)
			}
		}
	}
	var out []result.Verb
	for _, v := range all {
		if v.Case != "" && v.Failed+v.Retried == 0 {
			continue
		}
		v.FailedCI, v.RetriedCI = shareCI(v.Failed, v.Steps), shareCI(v.Retried, v.Steps)
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b result.Verb) int {
		order := slices.Index(containerVerbs, a.Do) - slices.Index(containerVerbs, b.Do)
		return cmp.Or(order, cmp.Compare(a.Case, b.Case))
	})
	return out
}

// countVerb adds a step.
func countVerb(v *result.Verb, st *result.Step) {
	v.Steps++
	switch {
	case st.Error != "" && len(st.Findings) == 0:
		v.Failed++
		v.Reason = cmp.Or(v.Reason, st.Error)
	case st.Retries > 0 || st.RetryNS > 0: // results of older versions have the time alone
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
