package analysis

import (
	"cmp"
	"math"
	"slices"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// finding is what the numbers show about one test, before the verdict.
type finding struct {
	// 1: they satisfy the test, -1: they do not, 0: neither
	dir int
	// Smallest error at which dir can be claimed; 0 where no value varies
	p float64

	// Too few rounds for any verdict
	few bool
	// What was replicated
	per replica
	// Rests on rounds, so that p counts among the tests of the plan
	sampled bool
	// What was not measured, or not published
	missing string
	// Why there is no such number
	weak string

	// What was seen
	saw wording.Message
	// What the claim needs
	need wording.Message
	// Where the interval is relative to that
	gap      wording.Message
	evidence []wording.Message
}

// fails reports whether there is no number to judge.
func (f finding) fails() bool { return f.missing != "" || f.weak != "" }

// tested reports whether the finding is one of the tests that Holm's correction
// counts.
func (f finding) tested() bool { return f.sampled && !f.few && !f.fails() }

// verdict is the verdict of a finding whose p value is p after correction.
func (f finding) verdict(p float64) string {
	switch {
	case f.missing != "":
		return result.NotMeasured
	case f.weak != "" || f.few || f.dir == 0 || f.sampled && p > family:
		return result.CannotTell
	case f.dir > 0:
		return result.Holds
	}
	return result.DoesNotHold
}

// holm corrects the p values of the findings that are tested over all of them,
// and counts these; others keep 0.
func holm(list []finding) (adjusted []float64, tests int) {
	tested := slices.DeleteFunc(slices.Clone(list), func(f finding) bool { return !f.tested() })
	ps := stats.Holm(mapped(tested, func(f finding) float64 { return f.p }))
	for _, f := range list {
		p := 0.0
		if f.tested() {
			p, ps = ps[0], ps[1:]
		}
		adjusted = append(adjusted, p)
	}
	return adjusted, len(tested)
}

func missing(key string, args ...any) finding { return finding{missing: wording.Text(key, args...)} }

func weak(key string, args ...any) finding { return finding{weak: wording.Text(key, args...)} }

func needs(b plan.Bound) wording.Message { return wording.Say("text", wording.Bound(b)) }

// judgeRounds turns one value a round into a finding. phrase is what was seen;
// its value is filled in.
func judgeRounds(sc scale, xs []float64, b plan.Bound, phrase wording.Message) finding {
	f := finding{sampled: true, need: needs(b), per: sc.per}
	f.dir, f.p = sc.decide(xs, b)
	c := sc.centre(xs)
	if math.IsNaN(c) {
		return weak("no-centre")
	}
	value, times := wording.Amount{Value: c, Unit: b.Unit}, sc.times(len(xs))
	iv, err := sc.interval(xs)
	if err != nil {
		f.few, f.p = len(xs) < minRounds, 1
		f.saw = wording.Say("seen.few", phrase.With(value), times)
		f.evidence = []wording.Message{wording.Say("evidence.few", f.saw, times, minRounds)}
		return f
	}
	span := wording.Span{Low: iv.Low, High: iv.High, Unit: b.Unit}
	note := sc.method()
	note.Name = "95 % t interval"
	f.saw = wording.Say("seen.rounds", phrase.With(span), times, note)
	f.gap = gap(b, iv.Low, iv.High)
	f.evidence = []wording.Message{
		wording.Say("evidence.rounds", phrase.With(value), span, times, sc.method(), wording.P(f.p))}
	return f
}

// gap is where the interval from … to is relative to a bound; empty inside it.
func gap(b plan.Bound, from, to float64) wording.Message {
	low, high := holdsAbout(b, from), holdsAbout(b, to)
	key := "gap.above"
	switch {
	case low && high:
		return wording.Message{}
	case to < b.Low:
		key = "gap.all-below"
	case from > b.High:
		key = "gap.all-above"
	case !low && !high:
		key = "gap.both"
	case !low:
		key = "gap.below"
	}
	return wording.Say(key)
}

// combine wants every part to hold (sign 1: one that does not decides) or,
// mirrored, one part (sign -1: one that holds decides). The verdict that all
// parts carry together has the largest of their p values (an
// intersection–union test); the one that a single part carries has the smallest
// times the number of parts (Bonferroni).
func combine(parts []finding, sign int) finding {
	var out finding
	var missing, weak string
	count, single := 0, -1
	for i, f := range parts {
		out.sampled, out.per = out.sampled || f.sampled, cmp.Or(out.per, f.per)
		out.evidence = append(out.evidence, f.evidence...)
		missing, weak = wording.Join(missing, f.missing), wording.Join(weak, f.weak)
		switch {
		case f.fails():
		case f.dir == -sign && (single < 0 || compareFirmness(f, parts[single]) < 0):
			single = i
		case f.dir == sign:
			count++
		}
	}
	switch {
	case single >= 0:
		f := parts[single]
		out.dir, out.p, out.few = -sign, min(1, f.p*float64(len(parts))), f.few
		out.saw, out.need, out.gap = f.saw, f.need, f.gap
	case missing != "" || weak != "":
		out.missing, out.weak = missing, weak
	case count == len(parts) && count > 0:
		out.dir, out.saw, out.need, out.gap = sign, parts[0].saw, parts[0].need, parts[0].gap
		for i, f := range parts {
			out.p, out.few = max(out.p, f.p), out.few || f.few
			if i > 0 {
				out.saw = wording.Say("text", wording.Join(out.saw.String(), f.saw.String()))
				out.need, out.gap = wording.Message{}, wording.Message{}
			}
		}
	default:
		for _, f := range parts {
			if f.dir == 0 {
				out.saw, out.need, out.gap, out.few, out.p = f.saw, f.need, f.gap, f.few, 1
			}
		}
	}
	return out
}

// compareFirmness orders findings by how firmly they decide, the firmest first.
func compareFirmness(a, b finding) int {
	last := map[bool]int{true: 1}
	return cmp.Or(last[a.few]-last[b.few], cmp.Compare(a.p, b.p))
}

func isDecided(verdict string) bool { return verdict == result.Holds || verdict == result.DoesNotHold }
