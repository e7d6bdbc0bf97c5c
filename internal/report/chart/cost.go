package chart

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// The time that the same files take in the native folder, in an image, and in
// an image that has one thing more. A part is a difference of two cases of the
// same round and work; what a run cannot separate stays one part.
const (
	partInside  = "harness, inside the clock"
	partOutside = "harness, outside the clock"
)

// casesPerCost is how many waterfalls one picture has.
//
// A waterfall has up to seven bars, each of 18 CSS pixels.
const casesPerCost = 8

// work is what a case did in one round for one direction and phase.
type work struct {
	bytes                 int64
	files, workers        int
	busy, inside, outside float64 // seconds: files under way; workers between files; around the clock
}

// isSame reports whether two cases moved the same files in the same way.
func (w work) isSame(o work) bool {
	return w.bytes == o.bytes && w.files == o.files && w.workers == o.workers
}

// works gathers what each case did, by case and round. Steps inside repeats are
// left out: cycles do not replicate each other.
func (r *run) works(p picture) map[string]map[int]work {
	out := map[string]map[int]work{}
	for c, s := range r.Steps() {
		if s.Op != p.op || s.Phase != p.phase || s.Cycle != 0 || s.Span == nil || !report.IsShown(c, s) ||
			s.Span.LastDoneNS <= s.Span.GateNS || s.LacksFiles() {
			continue
		}
		if out[c.ID] == nil {
			out[c.ID] = map[int]work{}
		}
		w, n := out[c.ID][s.Round], max(s.Workers, 1)
		span, idle := float64(s.Span.LastDoneNS-s.Span.GateNS)/1e9, float64(s.Span.IdleNS)/1e9/float64(n)
		w.bytes, w.files, w.workers = w.bytes+s.Span.Bytes, w.files+len(s.Samples), max(w.workers, n)
		w.busy, w.inside = w.busy+span-idle, w.inside+idle
		w.outside += max(float64(s.DurationNS)/1e9-span, 0)
		out[c.ID][s.Round] = w
	}
	return out
}

// costPart is one part of the time of a case: the mean over the rounds, in
// seconds.
//
// Parts of one case add up to the time of the case, since they are plain means
// over the same rounds.
type costPart struct {
	name string
	time result.Estimate
}

// costCase is one case with its parts, first to last.
//
// Only rounds in which every case of its chain did the same work count.
type costCase struct {
	name   string
	parts  []costPart
	rounds int
	inside float64 // seconds inside the clock
	work   work    // of each round
}

// costs splits the time of every case that has the same files in a native
// folder, by the number of that folder: cases of one folder belong together.
func (r *run) costs(p picture) map[string][]costCase {
	all := r.works(p)
	find := func(of *result.Case, accept func(c *result.Case) bool) *result.Case {
		for i := range r.Result.Cases {
			c := &r.Result.Cases[i]
			for round, own := range all[of.ID] {
				if w, ok := all[c.ID][round]; ok && w.isSame(own) && c.ID != of.ID && accept(c) {
					return c
				}
			}
		}
		return nil
	}
	out := map[string][]costCase{}
	for i := range r.Result.Cases {
		c := &r.Result.Cases[i]
		native := c
		if !isNativeFolder(c) {
			native = find(c, func(d *result.Case) bool { return isNativeFolder(d) && agree(c, d) })
		}
		if len(all[c.ID]) == 0 || native == nil {
			continue
		}
		if split := r.split(c, chainOf(c, native, find), all); split.rounds > 0 {
			out[native.ID] = append(out[native.ID], split)
		}
	}
	return out
}

// A preallocated folder is a case of its own: reserving space beforehand is one
// of the parts.
func isNativeFolder(c *result.Case) bool {
	return c.Target.Kind == "directory" && !slices.Contains(c.Keys, [2]string{"preallocate", "true"})
}

// split takes the rounds in which all cases of the chain did the same, and the
// mean of each difference over them.
//
// Differences are taken within a round: what all cases of a round share, such as
// a busy machine, cancels.
func (r *run) split(c *result.Case, chain []link, all map[string]map[int]work) costCase {
	own := all[c.ID]
	out := costCase{name: r.CaseName(c.ID)}
	var rounds []int
	for _, round := range slices.Sorted(maps.Keys(own)) {
		if !slices.ContainsFunc(chain, func(l link) bool {
			w, ok := all[l.c.ID][round]
			return !ok || !w.isSame(own[round])
		}) {
			rounds, out.work = append(rounds, round), own[round]
		}
	}
	out.rounds = len(rounds)
	add := func(name string, of func(round int) float64) {
		values, known := map[int]float64{}, false
		for _, round := range rounds {
			values[round] = of(round)
			known = known || values[round] != 0
		}
		if known { // without a unit these are plain means, which add up
			out.parts = append(out.parts, costPart{name, analysis.MeanOverRounds(r.Result, "", values)})
		}
	}
	for i, l := range chain {
		add(l.name, func(round int) float64 {
			t := all[l.c.ID][round].busy
			if i > 0 {
				t -= all[chain[i-1].c.ID][round].busy
			}
			return t
		})
	}
	add(partInside, func(round int) float64 { return own[round].inside })
	for _, p := range out.parts {
		out.inside += p.time.Value
	}
	add(partOutside, func(round int) float64 { return own[round].outside })
	return out
}

// costCharts draw where the time of the same files went, one waterfall a case.
func costCharts(r *run) []report.Chart {
	var out []report.Chart
	for n, p := range r.pictures() {
		part, costs := 0, r.costs(p)
		for i := range r.Result.Cases {
			group := costs[r.Result.Cases[i].ID]
			if len(group) < 2 { // a directory alone has nothing to be compared with
				continue
			}
			for some := range slices.Chunk(group, casesPerCost) {
				part++
				c := r.costChart(p, some)
				c.ID = fmt.Sprintf("cost-%d-%d", n+1, part)
				out = append(out, c)
			}
		}
	}
	return out
}

func (r *run) costChart(p picture, cases []costCase) report.Chart {
	c := report.Chart{Flipped: true, HeadedTips: true, Heading: "Where the time went: " + report.QuantityName(p.op) +
		report.PhaseSuffix(p.phase),
		X: report.Axis{Name: "time", Unit: "s", Low: new(0.0)}}
	c.Table.Columns = report.Columns("<case", "<part", "time", "share", "interval", "rounds")
	slots, top := 0, 0.0
	var ns, kinds []string
	var times []float64
	for row, one := range cases {
		c.Y.Categories = append(c.Y.Categories, one.name)
		slots, ns = max(slots, len(one.parts)), report.AppendNew(ns, report.Count(one.rounds, "round"))
		at := 0.0
		for slot, part := range one.parts {
			m := addPart(&c, one, row, slot, at)
			times = append(times, part.time.Value)
			if at += part.time.Value; m.CI != nil {
				top = max(top, min(m.CI.High, 1.5*at))
				kinds = report.AppendNew(kinds, report.DescribeInterval(m.CI))
			}
			top = max(top, at)
		}
	}
	c.Height = 30 + len(cases)*(18*slots+14)
	end := report.RoundUp(1.03 * top)
	c.X.High, c.X.Scale = &end, report.AxisScale("s", end, times...)
	for _, s := range c.Series {
		for i, m := range s.Marks {
			s.Marks[i].Label = signed(c.X.Scale.Number(m.X-m.From), m.Slot > 0)
		}
	}
	engines := report.Map(r.Result.Sessions, func(s result.Session) string {
		isApples := s.Engine.Vendor == "Apple" && s.Engine.Name != "simulated"
		return report.FirstOf(report.TextIf(isApples, "Apple"), s.Engine.Name)
	})
	caption(&c, "cost", data{"Files": cases[0].work.files, "Bytes": float64(cases[0].work.bytes), "Ns": ns,
		"Engines": report.AppendNew(nil, engines...), "Kinds": kinds}) // the work of all rounds and cases
	return c
}

// addPart adds one bar of a waterfall from a time in seconds on, with its row
// of the table.
func addPart(c *report.Chart, one costCase, row, slot int, from float64) report.Mark {
	part := one.parts[slot]
	m := report.Mark{X: from + part.time.Value, Y: float64(row), From: from, Slot: slot}
	time := signed(report.Human(part.time.Value, "s"), slot > 0)
	interval, share := "—", ""
	if ci := part.time.CI; ci != nil {
		moved := *ci
		moved.Low, moved.High = from+ci.Low, from+ci.High
		m.CI = &moved
		interval = signed(report.Human(ci.Low, "s"), false) + " to " + signed(report.Human(ci.High, "s"), false)
	}
	if part.name != partOutside && one.inside > 0 {
		share = report.Percent(part.time.Value / one.inside)
	}
	m.Tip = tip("cost-tip", data{"Case": one.name, "Part": part.name, "Time": time, "Share": share,
		"Interval": report.TextIf(m.CI != nil, interval), "Rounds": one.rounds})
	at := slices.IndexFunc(c.Series, func(s report.Series) bool { return s.Name == part.name })
	if at < 0 {
		at, c.Series = len(c.Series), append(c.Series, report.Series{Role: "part", Name: part.name})
	}
	c.Series[at].Marks = append(c.Series[at].Marks, m)
	c.Table.Rows = append(c.Table.Rows, report.TextRow(one.name, part.name, time, share, interval,
		strconv.Itoa(one.rounds)))
	return m
}

// signed gives a number its sign, with plus also that of one that is not below 0.
//
// The minus sign is the typographic one (U+2212), as in the tables of
// comparisons.
func signed(number string, plus bool) string {
	below, isNegative := strings.CutPrefix(number, "-")
	switch {
	case isNegative:
		return "−" + below
	case plus:
		return "+" + number
	}
	return number
}

// layer is one thing that a file in an image passes through and a file in a
// native folder does not.
type layer uint8

const (
	layerRaw        layer = 1 << iota // an image and the file system in it: all images have these
	layerHelper                       // a process that serves the image, where the kernel alone could serve a raw one
	layerFormat                       // another format than the raw one
	layerEncryption                   // encryption
)

// layersOf are the layers of an image. Where the run did not record what served
// it, it is not a layer of its own.
//
// "loop" and "kernel" are served by the kernel alone: no process is between file and image.
func layersOf(c *result.Case) layer {
	out := layerRaw
	if by := c.Target.ServedBy; by != "" && by != "loop" && by != "kernel" {
		out |= layerHelper
	}
	if c.Target.Format != "UDRW" {
		out |= layerFormat
	}
	if c.Target.Encryption != "none" && c.Target.Encryption != "" {
		out |= layerEncryption
	}
	return out
}

// name names the layers that are one part of the time of a case.
func (l layer) name(c *result.Case) string {
	names := []string{"raw image and file system", "helper process", "format", "encryption"}
	if strings.HasPrefix(c.Target.ServedBy, "fuse") {
		names[1] = "FUSE"
	}
	var words []string
	for i, name := range names {
		if l&(layerRaw<<i) != 0 {
			words = append(words, name)
		}
	}
	return strings.Join(words, ", ")
}

// link is one part of the time of a case: what the case c of the link took more
// than that of the link before.
type link struct {
	name string
	c    *result.Case
}

// chainOf is the way from the native folder to a case over the cases that have
// only its lower layers, each as the case has them. A layer that no case isolates is one part with the next one.
func chainOf(c, native *result.Case, find func(*result.Case, func(*result.Case) bool) *result.Case) []link {
	chain := []link{{name: report.NativeFolder, c: native}}
	switch {
	case c == native:
		return chain
	case c.Target.Kind == "directory":
		return append(chain, link{name: "space reserved beforehand", c: c})
	}
	own, before := layersOf(c), layer(0)
	// A case without the layer, or a layer that no case isolates, adds no link.
	for _, top := range []layer{layerRaw, layerHelper, layerFormat, layerEncryption} {
		below := own & (top | (top - 1))
		if own&top == 0 {
			continue
		}
		d := c
		if below != own {
			d = find(c, func(d *result.Case) bool { return hasOnly(c, d, below) })
		}
		if d != nil {
			chain = append(chain, link{(below &^ before).name(c), d})
			before = below
		}
	}
	return chain
}

// hasOnly reports whether d is c with no more than these of its layers.
//
// Keys that go with a layer that it lacks may differ: an unencrypted case has
// no key size.
func hasOnly(c, d *result.Case, layers layer) bool {
	if d.Target.Kind != "image" || d.Target.Filesystem != c.Target.Filesystem || layersOf(d) != layers {
		return false
	}
	except := []string{"encryption", "served_by"}
	if layers&layerFormat == 0 {
		except = append(except, "format", "band_size")
	} else if d.Target.Format != c.Target.Format {
		return false
	}
	return (layers&layerHelper == 0 || c.Target.ServedBy == d.Target.ServedBy) && agree(c, d, except...)
}

// agree reports whether two cases agree in all keys that both have, with
// exceptions.
func agree(a, b *result.Case, except ...string) bool {
	return a.Target.Place == b.Target.Place && !slices.ContainsFunc(b.Keys, func(kv [2]string) bool {
		return !slices.Contains(except, kv[0]) &&
			slices.ContainsFunc(a.Keys, func(own [2]string) bool { return own[0] == kv[0] && own[1] != kv[1] })
	})
}
