package analysis

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

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
		*l = append(*l, result.Departure{Kind: kind, Text: text})
		i = len(*l) - 1
	}
	if d := &(*l)[i]; id != "" && !slices.Contains(d.Cases, id) {
		d.Cases = append(d.Cases, id)
	}
}

// departures finds in what ways the run differs from what was published, beyond
// what the runner recorded. Cases with the same deviation share one.
func (s *runData) departures() []result.Departure {
	var out departureList
	for _, c := range s.p.Changes {
		switch c.Kind {
		case "place":
			for _, sub := range s.cases {
				if sub.plan.AtHere() {
					out.addText(sub.c.ID, c.Kind, c.Text)
				}
			}
		case "fs": // the same as an engine that makes another file system
			out.addText("", "filesystem", c.Text)
		default:
			out.addText("", c.Kind, c.Text)
		}
	}
	for _, c := range s.p.Choices {
		out.addText("", "choice", c)
	}
	if s.p.Source != nil {
		on := s.p.Source.On
		for _, ss := range s.r.Sessions {
			h := ss.Host
			if !isApple(ss.Engine) {
				out.add("", "engine", cmp.Or(ss.Engine.Title, ss.Engine.Name))
			}
			if on.Machine != "" && !isSameChip(on.Machine, h.CPU+" "+h.Model) {
				machine := strings.TrimSpace(h.Model + " " + h.CPU)
				out.add("", "machine", cmp.Or(machine, wording.Text("unknown-machine")), on.Machine)
			}
			if on.OS != "" && !isSameSystem(on.OS, h) {
				system := strings.TrimSpace(osName(h.OS) + " " + h.OSVersion)
				out.add("", "os", cmp.Or(system, wording.Text("unknown-system")), on.OS)
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
	known := append([]result.Departure{}, s.r.Departures...)
	for _, d := range out {
		if !slices.ContainsFunc(known, func(o result.Departure) bool { return reflect.DeepEqual(o, d) }) {
			known = append(known, d)
		}
	}
	return known
}

// isApple reports whether an engine drives Apple's own tools.
func isApple(e result.Engine) bool { return e.Vendor == "Apple" }

// usesApple reports whether every session measured Apple's own tools.
func (s *runData) usesApple() bool {
	return len(s.r.Sessions) > 0 &&
		!slices.ContainsFunc(s.r.Sessions, func(ss result.Session) bool { return !isApple(ss.Engine) })
}

var (
	chipName  = regexp.MustCompile(`\bM\d+( (Pro|Max|Ultra))?\b`)
	osVersion = regexp.MustCompile(`\d+`)
)

// isSameChip compares machines by their class, the processor: "Mac mini M4 Pro,
// 2 TB" and "Apple M4 Pro". Machines without an Apple chip must agree in full.
func isSameChip(published, here string) bool {
	if want := chipName.FindString(published); want != "" {
		return chipName.FindString(here) == want
	}
	return strings.Contains(here, published)
}

// isSameSystem compares systems by name and major version.
func isSameSystem(published string, h result.Host) bool {
	return strings.Contains(strings.ToLower(published), strings.ToLower(osName(h.OS))) &&
		osVersion.FindString(published) == osVersion.FindString(h.OSVersion)
}

func osName(goos string) string {
	switch goos {
	case "darwin", "macos":
		return "macOS"
	case "linux":
		return "Linux"
	}
	return goos
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
			if c := st.Cache; c != nil && isCacheMissed(k.do, *c) {
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

// isCacheMissed reports whether less was achieved of the cache than the plan
// wants.
func isCacheMissed(do string, c result.Achieved) bool {
	return c.Achieved != "direct" &&
		(c.Asked == "direct" || c.Asked == "cold" && do != "write" && c.Achieved != "buffered-cold")
}

// departuresOf are the deviations of all cases and those of one; of "" those of
// all cases alone.
func (s *runData) departuresOf(id string) []result.Departure {
	var all, own []result.Departure
	for _, d := range s.r.Departures {
		if len(d.Cases) == 0 {
			all = append(all, d)
		} else if slices.Contains(d.Cases, id) {
			own = append(own, d)
		}
	}
	return append(all, own...)
}
