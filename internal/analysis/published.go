package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/stats"
)

// printedOperand is the author's figure for an operand. Several cells give
// the mean of their figures.
func (s *runData) printedOperand(op plan.Operand) operandValue {
	figures, why := s.figures(op)
	if why.missing != "" || why.weak != "" {
		return operandValue{q: op.Quantity, unit: op.Quantity.Unit(), missing: why.missing, weak: why.weak}
	}
	return meanOf(op.Quantity, figures)
}

func meanOf(q plan.Quantity, figures []plan.Published) operandValue {
	out := operandValue{q: q, unit: q.Unit(), fixed: true}
	var texts []string
	for _, p := range figures {
		f := figureSide(p.Value)
		out.low += f.low / float64(len(figures))
		out.high += f.high / float64(len(figures))
		out.lowOpen, out.highOpen = out.lowOpen || f.lowOpen, out.highOpen || f.highOpen
		out.about = out.about || f.about
		texts = append(texts, p.Value.Text)
	}
	out.text = strings.Join(texts, ", ")
	if len(figures) > 1 {
		out.text = "the mean of " + out.text
		// A range among them is not a rounding: only its own ends are.
		out.about = out.about && out.low == out.high
	} else {
		out.low, out.high = figureSide(figures[0].Value).low, figureSide(figures[0].Value).high
	}
	return out
}

// figures finds the published figures that an operand names: those of its cell,
// from the source's own machine unless it names another, under the statistic that
// it names, the more special cell before the more general one.
func (s *runData) figures(op plan.Operand) ([]plan.Published, finding) {
	var out []plan.Published
	best := -1
	for _, p := range s.p.Published {
		special, ok := compatible(p.Where, op.Where)
		if p.Quantity != op.Quantity || !ok || !s.takenOn(p, op.On) || op.Statistic != "" && p.Statistic != op.Statistic {
			continue
		}
		if special > best {
			best, out = special, nil
		}
		if special == best {
			out = append(out, p)
		}
	}
	if len(out) == 0 && op.Quantity == "stream" {
		return s.derivedRates(op)
	}
	if len(out) == 0 {
		what := strings.TrimSpace(op.Statistic + " " + nameOf(op.Quantity))
		return nil, finding{missing: fmt.Sprintf("the source prints no %s with %s", what, selectorText(op.Where))}
	}
	return s.ownFirst(out, op)
}

// ownFirst drops figures of other machines and statistics where the source has
// its own, and refuses a mixture.
func (s *runData) ownFirst(figures []plan.Published, op plan.Operand) ([]plan.Published, finding) {
	prefer := func(keep func(plan.Published) bool) {
		if own := slices.DeleteFunc(slices.Clone(figures), func(p plan.Published) bool { return !keep(p) }); len(own) > 0 {
			figures = own
		}
	}
	prefer(func(p plan.Published) bool { return p.On == (plan.On{}) })
	prefer(func(p plan.Published) bool { return p.Statistic == "" })
	prefer(func(p plan.Published) bool { return p.Statistic == s.headlineName() })
	for _, p := range figures[1:] {
		if p.On != figures[0].On || p.Statistic != figures[0].Statistic {
			return nil, finding{weak: fmt.Sprintf("the source prints several figures of the %s with %s: the claim has to name one",
				nameOf(op.Quantity), selectorText(op.Where))}
		}
	}
	return figures, finding{}
}

// takenOn reports whether the figure comes from what the operand names.
func (s *runData) takenOn(p plan.Published, on plan.On) bool {
	if on == (plan.On{}) {
		return true
	}
	have := s.where(p)
	return (on.Machine == "" || on.Machine == have.Machine) && (on.OS == "" || on.OS == have.OS) &&
		(on.Tool == "" || on.Tool == have.Tool) && (on.Date.IsZero() || on.Date.Equal(have.Date))
}

// where is what a figure was taken with: its own, else the source's.
func (s *runData) where(p plan.Published) plan.On {
	on := p.On
	if s.p.Source == nil {
		return on
	}
	own := s.p.Source.On
	on.Machine, on.OS, on.Tool = cmp.Or(on.Machine, own.Machine), cmp.Or(on.OS, own.OS), cmp.Or(on.Tool, own.Tool)
	if on.Date.IsZero() {
		on.Date = own.Date
	}
	if on.Date.IsZero() {
		on.Date = s.p.Source.Date
	}
	return on
}

// compatible reports whether a figure's cell is one that the selector means, and
// how many of the selector's keys it names. A figure that leaves a key open is
// meant for all its values, except that figures of the native directory, of one
// file size and of one set are only meant where they are named.
func compatible(cell, sel plan.Selector) (special int, ok bool) {
	for _, c := range sel {
		if have, ok := choiceOf(cell, c.Key); ok {
			if !slices.ContainsFunc(have.Values, func(v string) bool { return accepts(c, v) }) {
				return 0, false
			}
			special++
		}
	}
	if native(cell) != native(sel) {
		return 0, false
	}
	for _, key := range []string{"file_size", "set"} {
		_, a := choiceOf(cell, key)
		_, b := choiceOf(sel, key)
		if a != b {
			return 0, false
		}
	}
	return special, true
}

// native reports whether a selector means the plain directory.
func native(sel plan.Selector) bool {
	base, _ := choiceOf(sel, "baseline")
	target, _ := choiceOf(sel, "target")
	return slices.Contains(base.Values, "true") || slices.Contains(target.Values, "directory")
}

// derivedRates are the rates of streaming that follow from printed times and the
// size of the input, as the author computes them: input size / time.
func (s *runData) derivedRates(op plan.Operand) ([]plan.Published, finding) {
	missing := finding{missing: fmt.Sprintf("the source prints no %s with %s", nameOf(op.Quantity), selectorText(op.Where))}
	size := s.streamInput(op.Where)
	if size <= 0 {
		return nil, missing
	}
	op.Quantity = "stream_time"
	times, why := s.figures(op)
	if why.missing != "" || why.weak != "" {
		return nil, missing
	}
	out := slices.Clone(times)
	for i := range out {
		f := out[i].Value
		kind := map[string]string{"below": "above", "above": "below"}[f.Kind]
		low, high := size/f.High, size/f.Low
		out[i].Quantity = "stream"
		out[i].Value = plan.Figure{Kind: cmp.Or(kind, f.Kind), Low: low, High: high, Unit: "B/s",
			Text: fmt.Sprintf("%s (%s / %s)", showSpan(low, high, "B/s"), sizeText(int64(size)), f.Text)}
	}
	return out, finding{}
}

// streamInput is the size of the author's file that the stream steps of the plan
// read, 0 where the plan does not fix one. A run at another scale reads another one.
func (s *runData) streamInput(sel plan.Selector) float64 {
	var steps []plan.Step
	for _, b := range s.p.Protocol {
		steps = flatten(steps, b.Steps)
	}
	for _, st := range steps {
		if st.Do != "stream" || !(stepKey{do: st.Do, phase: st.Phase}).matches(withoutKey(sel, "cycle")) {
			continue
		}
		for _, from := range steps {
			i := slices.IndexFunc(s.p.Inputs, func(in plan.Input) bool { return in.Name == from.From })
			if from.Do == "copy" && from.To == st.From && i >= 0 {
				in := s.p.Inputs[i]
				if in.PublishedSize == 0 && slices.ContainsFunc(s.p.Changes, func(c plan.Change) bool { return c.Kind == "scale" }) {
					return 0 // scaled by a version that did not keep it
				}
				return float64(cmp.Or(in.PublishedSize, in.Size))
			}
		}
	}
	return 0
}

func flatten(out, steps []plan.Step) []plan.Step {
	for _, st := range steps {
		out = append(out, st)
		out = flatten(out, st.Steps)
	}
	return out
}

// printedAlong spreads the author's figures over the values of an axis.
func (s *runData) printedAlong(op plan.Operand, axis string) ([]point, finding) {
	var values []string
	for _, p := range s.p.Published {
		if c, ok := choiceOf(p.Where, axis); ok && (p.Quantity == op.Quantity || op.Quantity == "stream" && p.Quantity == "stream_time") {
			for _, v := range c.Values {
				if !slices.ContainsFunc(values, func(w string) bool { return sameValue(axis, v, w) }) {
					values = append(values, v)
				}
			}
		}
	}
	var out []point
	for _, v := range s.inOrder(axis, values) {
		at := op
		at.Where = append(withoutKey(op.Where, axis), plan.Choice{Key: axis, Values: []string{v}})
		if fixed, ok := choiceOf(op.Where, axis); ok && !accepts(fixed, v) {
			continue
		}
		x := s.printedOperand(at)
		if x.weak != "" {
			return nil, finding{weak: x.weak}
		}
		if x.missing == "" && s.names(op.Quantity, at.Where, axis) {
			out = append(out, point{v, x})
		}
	}
	if len(out) == 0 && axis == "cycle" {
		out = s.everyCycle(op)
	}
	if len(out) == 0 {
		return nil, finding{missing: fmt.Sprintf("the source prints no %s along %s with %s", nameOf(op.Quantity), axis, selectorText(op.Where))}
	}
	return out, finding{}
}

// everyCycle are the first and the last cycle with the figure that the source
// prints for all of them: one that leaves the cycle open is meant for every cycle.
func (s *runData) everyCycle(op plan.Operand) []point {
	if _, fixed := choiceOf(op.Where, "cycle"); fixed {
		return nil
	}
	last := 0
	for _, b := range s.p.Protocol {
		for _, st := range b.Steps {
			for _, in := range flatten(nil, st.Steps) {
				if st.Do == "repeat" && in.Do == doOf(op.Quantity) && (stepKey{do: in.Do, phase: in.Phase}).matches(withoutKey(op.Where, "cycle")) {
					last = max(last, st.Times)
				}
			}
		}
	}
	x := s.printedOperand(op)
	if last < 2 || x.missing != "" || x.weak != "" {
		return nil
	}
	return []point{{"1", x}, {strconv.Itoa(last), x}}
}

// names reports whether a figure compatible with the selector names the axis: a
// figure of no value of the axis in particular is not a point on it.
func (s *runData) names(q plan.Quantity, sel plan.Selector, axis string) bool {
	return slices.ContainsFunc(s.p.Published, func(p plan.Published) bool {
		_, ok := compatible(p.Where, sel)
		_, named := choiceOf(p.Where, axis)
		return ok && named && (p.Quantity == q || q == "stream" && p.Quantity == "stream_time")
	})
}

func withoutKey(sel plan.Selector, key string) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return c.Key == key })
}

// expected judges an outcome on the author's side: the protocol states by expect
// how each step ended for him.
func (s *runData) expected(a plan.Assert) finding {
	want := cmp.Or(a.Outcome, "ok")
	f := finding{dir: 1, need: fmt.Sprintf("%s to end as %q", a.Step, want)}
	n := 0
	for _, b := range s.p.Protocol {
		if _, ok := compatible(b.When, caseOnly(a.Where)); !ok {
			continue
		}
		for _, st := range flatten(nil, b.Steps) {
			if st.Do != a.Step || !(stepKey{do: st.Do, phase: st.Phase}).matches(withoutKey(a.Where, "cycle")) {
				continue
			}
			n++
			if cmp.Or(st.Expect, "ok") != want {
				f.dir = -1
			}
		}
	}
	if n == 0 {
		return finding{missing: fmt.Sprintf("the protocol has no step %s with %s", a.Step, selectorText(a.Where))}
	}
	f.saw = fmt.Sprintf("the protocol expects %s of %s", want, plural(n, a.Step+" step"))
	if f.dir < 0 {
		f.saw = fmt.Sprintf("the protocol does not expect %s of every %s step", want, a.Step)
	}
	f.evidence = []string{f.saw}
	return f
}

func caseOnly(sel plan.Selector) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return slices.Contains(notOfCase, c.Key) })
}

// number reads the value of a numeric axis: a plain number, or a size in bytes.
func number(text string) (float64, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, true
	}
	if b, err := parseBytes(text); err == nil {
		return float64(b), true
	}
	return 0, false
}

// aboutTolerance is how far the true value of a figure printed as "about" may
// lie from it.
const aboutTolerance = 0.05

// judgePrinted judges two printed figures. A figure means an interval: exact
// ones for a point, "below", "above" and ranges for all their values, and every
// one of these has to satisfy the bound. "about 2" means 2 ± 5 %, and
// one value that satisfies the bound is enough: the author rounded, and the claim
// is his.
func judgePrinted(a, b operandValue, bound plan.Bound, op func(x, y float64) float64, unit string, phrase func(string) string) finding {
	bound.Unit = unit
	f := finding{need: boundText(bound)}
	wideLow, wideHigh, open := imageOf(a.widened(), b.widened(), op)
	f.saw = phrase(showSpan(wideLow, wideHigh, unit)) + ", as published"
	f.evidence = []string{f.saw}
	if math.IsNaN(wideLow) || math.IsNaN(wideHigh) {
		return finding{weak: "the printed figures leave it open", evidence: f.evidence}
	}
	f.gap = gapText(bound, stats.Interval{Low: wideLow, High: wideHigh})
	switch {
	case inside(wideLow, wideHigh, open, bound):
		f.dir = 1
		return f
	case apartFrom(wideLow, wideHigh, open, bound):
		f.dir = -1
		return f
	}
	for _, x := range a.readings() {
		for _, y := range b.readings() {
			low, high, open := imageOf(x, y, op)
			if inside(low, high, open, bound) {
				f.dir, f.gap = 1, ""
				if a.about || b.about {
					f.saw += fmt.Sprintf(", \"about\" read as ± %s", percent(aboutTolerance))
				}
				return f
			}
		}
	}
	f.p = 1
	return f
}

// span is an interval of numbers; open means that neither end belongs to it.
type span struct {
	low, high float64
	open      bool
}

// widened is everything that the figure can mean.
func (a operandValue) widened() span {
	s := span{a.low, a.high, a.lowOpen || a.highOpen}
	if a.about {
		d := aboutTolerance * math.Abs(a.low)
		s.low, s.high = a.low-d, a.high+d
	}
	return s
}

// readings are the values that an "about" may be read as; anything else has one
// reading, the whole interval.
func (a operandValue) readings() []span {
	if !a.about {
		return []span{a.widened()}
	}
	w := a.widened()
	var out []span
	const steps = 20
	for i := range steps + 1 {
		v := w.low + (w.high-w.low)*float64(i)/steps
		out = append(out, span{low: v, high: v})
	}
	return append(out, span{low: a.low, high: a.low})
}

// imageOf is the interval of op over two intervals. op is monotone in each of its
// arguments (a difference, or a ratio of values that are not negative), so that the
// ends decide.
func imageOf(a, b span, op func(x, y float64) float64) (low, high float64, open bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range []float64{a.low, a.high} {
		for _, y := range []float64{b.low, b.high} {
			v := op(x, y)
			if math.IsNaN(v) {
				return math.NaN(), math.NaN(), true
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high, a.open || b.open
}

// inside reports whether the whole interval satisfies the bound. An open end may
// touch a strict bound.
func inside(low, high float64, open bool, b plan.Bound) bool {
	if open && low < high {
		return low >= b.Low && high <= b.High
	}
	ok := func(v float64) bool {
		return holdsAbout(b, v) || math.IsInf(v, 1) && math.IsInf(b.High, 1) || math.IsInf(v, -1) && math.IsInf(b.Low, -1)
	}
	return ok(low) && ok(high)
}

// apartFrom reports whether no value of the interval satisfies the bound.
func apartFrom(low, high float64, open bool, b plan.Bound) bool {
	if high < b.Low || low > b.High {
		return true
	}
	return high == b.Low && (open || b.LowOpen) || low == b.High && (open || b.HighOpen)
}
