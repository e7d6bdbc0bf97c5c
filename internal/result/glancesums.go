package result

import (
	"bytes"
	"slices"
)

// GlanceSummaries is [Glance] with the summaries that a first screen is made of: those of
// rates, of the size on disk, and with published figures; or all, where there is no rate.
// Of each there is its headline estimate alone, with its warnings and published figures
// whole; one without it is left out. Cases have their reason and target besides, and there are no claims.
func GlanceSummaries(dir string) (*Result, error) {
	return glance(dir, briefSummaries, quoted)
}

// quoted takes out of a result what [GlanceSummaries] does not give.
func quoted(r *Result) *Result {
	for i, c := range r.Cases {
		r.Cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline, Reason: c.Reason, Target: c.Target}
	}
	kept, main := []Summary{}, []Summary{}
	rates := false
	for _, s := range r.Summaries {
		i := slices.IndexFunc(s.Estimates, func(e Estimate) bool { return e.Name == s.Headline })
		if i < 0 {
			continue
		}
		s = Summary{Case: s.Case, Phase: s.Phase, Op: s.Op, Cycle: s.Cycle, N: s.N, Rounds: s.Rounds, Headline: s.Headline,
			Estimates: s.Estimates[i : i+1], Published: someOf(s.Published), Warnings: someOf(s.Warnings)}
		kept = append(kept, s)
		if rate := s.Estimates[0].Unit == rateUnit; rate || s.Op == sizeOnDisk || len(s.Published) > 0 {
			main, rates = append(main, s), rates || rate
		}
	}
	if rates {
		kept = main
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
	b = shorten(b, "cases", keepFields(`"id":`, `"baseline":`, `"target":`, `"status":`, `"reason":`))
	b = shorten(b, "claims", none)
	rates := false
	if main := shorten(b, "summaries", headlines(&rates)); rates {
		return main
	}
	return shorten(b, "summaries", headlines(nil))
}

// sizeOnDisk is the quantity of a container's size on the host.
const sizeOnDisk = "allocated"

// headlines keeps of a summary the names and numbers in one line, its headline estimate, and what was published and warned of; with
// rates, only of those that [GlanceSummaries] puts before others, and it is set where one is a rate.
func headlines(rates *bool) func(out, element []byte) []byte {
	return func(out, element []byte) []byte {
		return quotedElement(out, element, rates)
	}
}

func quotedElement(out, element []byte, rates *bool) []byte {
	main := false
	var headline, estimate, lists []byte
	fields(element, func(line, rest []byte) bool {
		if v, ok := bytes.CutPrefix(line, []byte(`"headline": `)); ok {
			headline = v
		}
		main = main || bytes.Equal(line, []byte(`"op": "`+sizeOnDisk+`"`)) || bytes.Equal(line, []byte(`"published": [`))
		switch {
		case bytes.Equal(line, []byte(`"estimates": [`)):
			estimate = named(rest, headline)
		case bytes.Equal(line, []byte(`"published": [`)), bytes.Equal(line, []byte(`"warnings": [`)):
			if end := bytes.Index(rest, []byte("\n      ]")); end >= 0 {
				lists = append(append(append(append(lists, ','), line...), rest[:end]...), ']')
			}
		}
		return false
	})
	rate := bytes.Contains(estimate, []byte("\n          \"unit\": \""+rateUnit+"\""))
	if estimate == nil || rates != nil && !rate && !main {
		return out
	}
	if rates != nil && rate {
		*rates = true
	}
	out = keepFields(`"case":`, `"phase":`, `"op":`, `"cycle":`, `"n":`, `"rounds":`, `"headline":`)(out, element)
	out = append(out[:len(out)-1], `,"estimates":[`...)
	return append(append(append(append(out, estimate...), ']'), lists...), '}')
}
