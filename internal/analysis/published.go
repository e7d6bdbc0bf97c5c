package analysis

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// publishedValue is the author's figure for an operand. Several cells give
// the mean of their figures.
func (s *runData) publishedValue(op plan.Operand) operandValue {
	figures, why := s.figures(op)
	if why.fails() {
		return operandValue{q: op.Quantity, unit: op.Quantity.Unit(), missing: why.missing, weak: why.weak}
	}
	return meanOf(op.Quantity, figures)
}

func meanOf(q plan.Quantity, figures []plan.Published) operandValue {
	out, n := figureValue(figures[0].Value), float64(len(figures))
	out.q, out.unit = q, q.Unit()
	if n == 1 {
		return out
	}
	out.span = span{}
	for _, p := range figures {
		f := figureValue(p.Value)
		out.low, out.high = out.low+f.low/n, out.high+f.high/n
		out.lowOpen, out.highOpen = out.lowOpen || f.lowOpen, out.highOpen || f.highOpen
		out.about = out.about || f.about
	}
	printed := mapped(figures, func(p plan.Published) string { return p.Value.Text })
	out.text = wording.Text("mean-of", strings.Join(printed, ", "))
	// A range among them is not a rounding: only its own ends are
	out.about = out.about && out.low == out.high
	return out
}

// figures finds the published figures that an operand names: those of its cell,
// from the source's own machine unless it names another, under the statistic
// that it names, the more special cell before the more general one. It drops
// figures of other machines and statistics where the source has its own, and
// refuses a mixture.
func (s *runData) figures(op plan.Operand) (out []plan.Published, why finding) {
	best := math.MinInt
	for _, p := range s.p.Published {
		isOther := op.Statistic != "" && p.Statistic != op.Statistic
		if p.Quantity != op.Quantity || isOther || !p.Matches(&op, s.p.Source) {
			continue
		}
		isNamed := func(c plan.Choice) bool { return p.Where.Names(c.Key) }
		special := -len(slices.DeleteFunc(slices.Clone(op.Where), isNamed))
		if special > best {
			best, out = special, nil
		}
		if special == best {
			out = append(out, p)
		}
	}
	switch {
	case len(out) == 0 && op.Quantity == "stream":
		return s.derivedRates(op)
	case len(out) == 0:
		name := spaced(op.Statistic, QuantityName(op.Quantity))
		return nil, missing("not-published", name, wording.Selector(op.Where))
	}
	for _, isOwn := range []func(plan.Published) bool{
		func(p plan.Published) bool { return p.On == (plan.On{}) },
		func(p plan.Published) bool { return p.Statistic == "" },
		func(p plan.Published) bool { return p.Statistic == s.headlineName() },
	} {
		if slices.ContainsFunc(out, isOwn) {
			out = slices.DeleteFunc(out, func(p plan.Published) bool { return !isOwn(p) })
		}
	}
	for _, p := range out[1:] {
		if p.On != out[0].On || p.Statistic != out[0].Statistic {
			return nil, weak("several-published", QuantityName(op.Quantity), wording.Selector(op.Where))
		}
	}
	return out, finding{}
}

// originText is the machine, system, tool and day of a figure in one line.
func (s *runData) originText(p plan.Published) string {
	on, date := p.Origin(s.p.Source), ""
	if !on.Date.IsZero() {
		date = on.Date.Format(time.DateOnly)
	}
	return wording.JoinFacts(on.Machine, on.OS, on.Tool, date)
}

// derivedRates are the rates of streaming that follow from printed times and
// the size of the input, as the author computes them: input size / time.
func (s *runData) derivedRates(op plan.Operand) ([]plan.Published, finding) {
	size := s.streamInput(op.Where)
	op.Quantity = "stream_time"
	times, why := s.figures(op)
	if size <= 0 || why.fails() {
		return nil, missing("not-published", QuantityName("stream"), wording.Selector(op.Where))
	}
	for i := range times {
		f := &times[i].Value
		rates := wording.Span{Low: size / f.High, High: size / f.Low, Unit: "B/s"}
		kind := map[string]string{"below": "above", "above": "below"}[f.Kind]
		*f = plan.Figure{Kind: cmp.Or(kind, f.Kind), Low: rates.Low, High: rates.High, Unit: "B/s",
			Text: wording.Text("derived", rates, wording.Size(size), f.Text)}
	}
	return times, finding{}
}

// streamInput is the size of the author's file that the stream steps of the
// plan read, 0 where the plan does not fix one. A run at another scale reads
// another one.
func (s *runData) streamInput(sel plan.Selector) float64 {
	steps := s.protocol()
	stream, _ := find(steps, func(st plan.Step) bool { return st.Do == "stream" && allows(sel, "phase", st.Phase) })
	made, _ := find(steps, func(st plan.Step) bool { return st.Do == "copy" && st.To == stream.From })
	in, ok := find(s.p.Inputs, func(in plan.Input) bool { return in.Name == made.From })
	isScaled := slices.ContainsFunc(s.p.Changes, func(c plan.Change) bool { return c.Kind == "scale" })
	if !ok || in.PublishedSize == 0 && isScaled { // scaled by a version that did not keep it
		return 0
	}
	return float64(cmp.Or(in.PublishedSize, in.Size))
}

// publishedAlong spreads the author's figures over the values of an axis.
func (s *runData) publishedAlong(op plan.Operand, axis string) ([]point, finding) {
	var values []string
	for _, p := range s.p.Published {
		isOf := p.Quantity == op.Quantity || op.Quantity == "stream" && p.Quantity == "stream_time"
		if c := p.Where.Find(axis); c != nil && isOf {
			for _, v := range c.Values {
				if !hasValue(axis, values, v) {
					values = append(values, v)
				}
			}
		}
	}
	var out []point
	for _, v := range s.inOrder(axis, values) {
		if !allows(op.Where, axis, v) {
			continue
		}
		at := op
		at.Where = withChoice(op.Where, axis, v)
		figures, why := s.figures(at)
		if why.weak != "" {
			return nil, finding{weak: why.weak}
		}
		// A figure that names no value of the axis is not a point on it
		if slices.ContainsFunc(figures, func(p plan.Published) bool { return p.Where.Names(axis) }) {
			out = append(out, point{v, meanOf(op.Quantity, figures)})
		}
	}
	if len(out) == 0 && axis == "cycle" && !op.Where.Names(axis) {
		out = s.everyCycle(op)
	}
	if len(out) == 0 {
		return nil, missing("not-published-along", QuantityName(op.Quantity), axis, wording.Selector(op.Where))
	}
	return out, finding{}
}

// everyCycle are the first and the last cycle with the figure that the source
// prints for all of them: one that leaves the cycle open is meant for every
// cycle.
func (s *runData) everyCycle(op plan.Operand) []point {
	last := 0
	for _, b := range s.p.Protocol {
		for _, st := range b.Steps {
			if st.Do == "repeat" && hasStep(st.Steps, doOf(op.Quantity), op.Where) {
				last = max(last, st.Times)
			}
		}
	}
	x := s.publishedValue(op)
	if last < 2 || x.missing != "" || x.weak != "" {
		return nil
	}
	return []point{{"1", x}, {strconv.Itoa(last), x}}
}

// expected judges an outcome on the author's side: the protocol states by
// expect how each step ended for him.
func (s *runData) expected(a plan.Assert) finding {
	want := cmp.Or(a.Outcome, "ok")
	var steps []plan.Step
	for _, b := range s.p.Protocol {
		for _, st := range flatten(b.Steps) {
			if st.Do == a.Step && allows(a.Where, "phase", st.Phase) && caseOnly(a.Where).Covers(b.When) {
				steps = append(steps, st)
			}
		}
	}
	if len(steps) == 0 {
		return missing("no-step-planned", a.Step, wording.Selector(a.Where))
	}
	f := finding{dir: 1, need: wording.Say("need.outcome", a.Step, want),
		saw: wording.Say("seen.expected", want, wording.Count{N: len(steps), Noun: a.Step + " step"})}
	if slices.ContainsFunc(steps, func(st plan.Step) bool { return cmp.Or(st.Expect, "ok") != want }) {
		f.dir, f.saw = -1, wording.Say("seen.not-expected", want, a.Step)
	}
	f.evidence = []wording.Message{f.saw}
	return f
}

// comparePublished compares the published figures of a cell with what was
// measured. A figure of one file size gets an estimate of its own, named
// "aggregate@2 GB".
func (s *runData) comparePublished(c cell, q plan.Quantity, out *result.Summary) {
	out.Published = []result.PublishedValue{}
	for _, p := range s.p.Published {
		if p.Quantity != q || p.Unmeasured || !c.sub.matches(p.Where) || !c.key.matches(p.Where) {
			continue
		}
		name := cmp.Or(p.Statistic, out.Headline)
		e, ok := findEstimate(out.Estimates, name)
		if f := filterOf(p.Where); len(f) > 0 {
			name += "@" + filterText(f)
			if e, ok = findEstimate(out.Estimates, name); !ok {
				if e, ok = partEstimate(c, q, cmp.Or(p.Statistic, aggregate), name, f); ok {
					out.Estimates = append(out.Estimates, e)
				}
			}
		}
		v := s.publishedResult(p)
		if ok {
			v.Comparable = s.isComparable(c.sub.c.ID) && s.isTakenHere(p.On)
			setRatio(&v, &e, figureValue(p.Value).headline())
		}
		out.Published = append(out.Published, v)
	}
}

// publishedResult is a figure as results have it, compared with nothing.
func (s *runData) publishedResult(p plan.Published) result.PublishedValue {
	return result.PublishedValue{Text: p.Value.Text, Kind: p.Value.Kind, Low: p.Value.Low, High: p.Value.High,
		Unit: p.Value.Unit, Statistic: p.Statistic, On: s.originText(p)}
}

// partEstimate is the estimate of a part of the files of a cell; false where no
// round gave it.
func partEstimate(c cell, q plan.Quantity, est, name string, f plan.Selector) (result.Estimate, bool) {
	x := gatherValues(q, []cell{c}, est, f)
	return x.estimate(name), x.weak == ""
}

// incomparable are the deviations after which the ratio to a published figure
// compares different things. Fewer rounds only make it less certain, and what
// the source leaves open may well be what it did.
var incomparable = []string{"engine", "filesystem", "scale", "sets", "machine", "os", "codec", "input", "format",
	"band-size", "cache", "sync", "workers", "files", "size", "encryption", "backend", "place"}

func (s *runData) isComparable(id string) bool {
	return !slices.ContainsFunc(s.departuresOf(id), func(d result.Departure) bool {
		return slices.Contains(incomparable, d.Kind)
	})
}

// isTakenHere reports whether the origin that a figure names in addition to the
// source's is that of this run: the machine and system of all its sessions, and
// a tool that is the source's own. The source's own origin is among the
// deviations.
func (s *runData) isTakenHere(on plan.On) bool {
	isOther := func(ss result.Session) bool {
		machine, system := isElsewhere(on, ss.Host)
		return machine || system
	}
	isTool := s.p.Source == nil || strings.Contains(s.p.Source.On.Tool, on.Tool)
	return isTool && !slices.ContainsFunc(s.r.Sessions, isOther)
}

// ofAnotherMachine is why a published rate or time is not compared with a
// measured one: the source took it on its own machine, which is not the one
// that was measured, so that the difference may be the machines'. Figures that
// the source took on another machine than its own are meant across machines,
// and so are sizes.
func (s *runData) ofAnotherMachine(op plan.Operand) string {
	figures, _ := s.figures(op)
	isOwn := func(p plan.Published) bool { return p.Origin(s.p.Source).Machine == s.p.Source.On.Machine }
	d, isOther := find(s.departuresOf(""), func(d result.Departure) bool { return d.Kind == "machine" })
	if s.p.Source == nil || !isSpeed(op.Quantity.Unit()) || !isOther || !slices.ContainsFunc(figures, isOwn) {
		return ""
	}
	return wording.Text("another-machine", d.Text)
}

// setRatio compares a measured estimate with the published value mid; false
// without one of them.
func setRatio(v *result.PublishedValue, e *result.Estimate, mid float64) bool {
	has := e != nil && mid != 0 && finite(mid)
	if has && finite(e.Value/mid) && !math.Signbit(e.Value/mid) {
		v.Ratio, v.Estimate = e.Value/mid, e.Name
	}
	return has
}

// departureList collects deviations by kind and text.
type departureList []result.Departure

// add keeps a deviation of one case, or of all with id "". The kind is also the
// key of its sentence.
func (l *departureList) add(id, kind string, args ...any) {
	l.addText(id, kind, wording.Text("departure."+kind, args...))
}

func (l *departureList) addText(id, kind, text string) {
	i := slices.IndexFunc(*l, func(d result.Departure) bool { return d.Kind == kind && d.Text == text })
	if i < 0 {
		*l = append(*l, result.Departure{Kind: kind, Text: text, Cases: appendUnique(nil, id)})
	} else if d := &(*l)[i]; len(d.Cases) > 0 { // else it is one of all cases
		d.Cases = appendUnique(d.Cases, id)
	}
}

// departures finds in what ways the run differs from what was published, in
// addition to what the runner recorded. Cases with the same deviation share one.
func (s *runData) departures() []result.Departure {
	out := append(departureList{}, s.r.Departures...)
	for _, c := range s.p.Changes {
		if c.Kind != "place" {
			// The same as an engine that makes another file system
			kind := cmp.Or(map[string]string{"fs": "filesystem"}[c.Kind], c.Kind)
			out.addText("", kind, c.Text)
			continue
		}
		for _, sub := range s.cases {
			if sub.plan.AtHere() {
				out.addText(sub.c.ID, c.Kind, c.Text)
			}
		}
	}
	for _, c := range s.p.Choices {
		out.addText("", "choice", c)
	}
	if s.p.Source != nil {
		on := s.p.Source.On
		for _, ss := range s.r.Sessions {
			h := ss.Host
			if ss.Engine.Vendor != "Apple" {
				out.add("", "engine", cmp.Or(ss.Engine.Title, ss.Engine.Name))
			}
			machine, system := isElsewhere(on, h)
			if machine {
				out.add("", "machine", cmp.Or(spaced(h.Model, h.CPU), wording.Text("unknown-machine")), on.Machine)
			}
			if system {
				out.add("", "os", cmp.Or(spaced(osName(h.OS), h.OSVersion), wording.Text("unknown-system")), on.OS)
			}
		}
	}
	for _, sub := range s.cases {
		s.caseDepartures(&out, sub)
	}
	// A list that names all cases is left out
	for i := range out {
		if n := len(s.cases); n > 1 && len(out[i].Cases) == n {
			out[i].Cases = nil
		}
	}
	return out
}

var (
	chipName  = regexp.MustCompile(`\bM\d+( (Pro|Max|Ultra))?\b`)
	osVersion = regexp.MustCompile(`\d+`)
)

// isElsewhere reports whether figures were taken on another machine than a
// host, and on another system. Machines are compared by their class, the
// processor: "Mac mini M4 Pro, 2 TB" and "Apple M4 Pro", and must agree in full
// without an Apple chip; systems by name and major version.
func isElsewhere(on plan.On, h result.Host) (machine, system bool) {
	here := h.CPU + " " + h.Model
	machine = !strings.Contains(here, on.Machine)
	if chip := chipName.FindString(on.Machine); chip != "" {
		machine = chipName.FindString(here) != chip
	}
	isNamed := strings.Contains(strings.ToLower(on.OS), strings.ToLower(osName(h.OS)))
	isSame := isNamed && osVersion.FindString(on.OS) == osVersion.FindString(h.OSVersion)
	return machine, on.OS != "" && !isSame
}

// caseDepartures compares what was made and done with what the plan wants.
func (s *runData) caseDepartures(out *departureList, sub *caseData) {
	t, set, id := sub.c.Target, sub.plan.Settings, sub.c.ID
	// Nothing was measured
	if len(sub.order) == 0 {
		return
	}
	if t.Kind == "image" && t.Filesystem != "" && len(set.Filesystems) > 0 && t.Filesystem != set.Filesystems[0] {
		out.add(id, "filesystem", t.Filesystem, set.Filesystems[0])
	}
	if t.BandSize > 0 && t.BandSizeUsed > 0 && t.BandSize != t.BandSizeUsed {
		out.add(id, "band-size", units.Bytes(t.BandSize), units.Bytes(t.BandSizeUsed))
	}
	for _, k := range sub.order {
		for _, st := range sub.steps[k] {
			if c := st.Cache; c != nil && c.Achieved != "direct" && (c.Asked == "direct" ||
				c.Asked == "cold" && k.do != "write" && c.Achieved != "buffered-cold") {
				requested := strings.Replace(c.Asked, "direct", "uncached", 1)
				text := wording.Text("departure.cache", k.do, requested, c.Achieved)
				if c.Achieved == "unknown" {
					text = wording.Text("departure.cache.unknown", k.do, requested)
				}
				out.addText(id, "cache", text)
			}
			if y := st.Sync; y != nil && y.Asked != y.Achieved {
				out.add(id, "sync", y.Asked, y.Achieved)
			}
			// Some step of the plan may name the codec itself
			x := st.Stream
			if x != nil && set.Codec != "" && x.Codec != "" && x.Codec != set.Codec &&
				!slices.ContainsFunc(s.protocol(), func(st plan.Step) bool { return st.Codec == x.Codec }) {
				out.add(id, "codec", x.Codec, set.Codec)
			}
		}
	}
}

// departuresOf are the deviations of all cases and those of one; of "" those of
// all cases alone.
func (s *runData) departuresOf(id string) []result.Departure {
	return slices.DeleteFunc(slices.Clone(s.r.Departures), func(d result.Departure) bool {
		return len(d.Cases) > 0 && !slices.Contains(d.Cases, id)
	})
}

// point is one value of an axis with the operand there.
type point struct {
	at string
	operandValue
}

// inOrder sorts values of an axis: as the plan lists them, numbers and sizes by
// their worth, phases as the protocol has them.
func (s *runData) inOrder(axis string, values []string) []string {
	var listed []string
	if axis == "phase" {
		listed = texts(s.protocol(), func(st plan.Step) string { return st.Phase })
	}
	for _, m := range s.p.Manual {
		if m.Name == axis {
			listed = m.Values
		}
	}
	if a := plan.Selector(s.p.Axes).Find(axis); a != nil {
		listed = a.Values
	}
	rank := func(v string) int {
		return slices.IndexFunc(listed, func(w string) bool { return sameValue(axis, v, w) })
	}
	return slices.SortedStableFunc(slices.Values(values), func(a, b string) int {
		x, okX := number(a)
		y, okY := number(b)
		if !okX || !okY {
			x, y = 0, 0
		}
		return cmp.Or(rank(a)-rank(b), cmp.Compare(x, y))
	})
}
