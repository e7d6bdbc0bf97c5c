package result

import (
	"bytes"
	"slices"
)

// GlanceSummaries is [Glance] with every summary that has its headline estimate: that
// estimate alone, with the summary's warnings and published figures whole. Cases have
// their reason besides, and there are no claims.
func GlanceSummaries(dir string) (*Result, error) {
	return glance(dir, briefSummaries, quoted)
}

// quoted takes out of a result what [GlanceSummaries] does not give.
func quoted(r *Result) *Result {
	for i, c := range r.Cases {
		r.Cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline, Reason: c.Reason}
	}
	kept := []Summary{}
	for _, s := range r.Summaries {
		i := slices.IndexFunc(s.Estimates, func(e Estimate) bool { return e.Name == s.Headline })
		if i < 0 {
			continue
		}
		kept = append(kept, Summary{Case: s.Case, Phase: s.Phase, Op: s.Op, Cycle: s.Cycle, N: s.N, Rounds: s.Rounds, Headline: s.Headline,
			Estimates: s.Estimates[i : i+1], Published: someOf(s.Published), Warnings: someOf(s.Warnings)})
	}
	r.Summaries, r.Claims = kept, []Claim{}
	return r
}

// someOf is a list, or nil for none: a result that was cut down has nothing there.
func someOf[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// briefSummaries is brief for [GlanceSummaries].
func briefSummaries(b []byte) []byte {
	none := func(out, _ []byte) []byte { return out }
	b = shorten(b, "cases", keepFields(`"id":`, `"baseline":`, `"status":`, `"reason":`))
	b = shorten(b, "claims", none)
	return shorten(b, "summaries", headlines)
}

// headlines keeps of a summary the names and numbers in one line, its headline estimate, and what was published and warned of.
func headlines(out, element []byte) []byte {
	var headline, estimate, lists []byte
	fields(element, func(line, rest []byte) {
		if v, ok := bytes.CutPrefix(line, []byte(`"headline": `)); ok {
			headline = v
		}
		switch {
		case bytes.Equal(line, []byte(`"estimates": [`)):
			estimate = named(rest, headline)
		case bytes.Equal(line, []byte(`"published": [`)), bytes.Equal(line, []byte(`"warnings": [`)):
			if end := bytes.Index(rest, []byte("\n      ]")); end >= 0 {
				lists = append(append(append(append(lists, ','), line...), rest[:end]...), ']')
			}
		}
	})
	if estimate == nil {
		return out
	}
	out = keepFields(`"case":`, `"phase":`, `"op":`, `"cycle":`, `"n":`, `"rounds":`, `"headline":`)(out, element)
	out = append(out[:len(out)-1], `,"estimates":[`...)
	return append(append(append(append(out, estimate...), ']'), lists...), '}')
}
