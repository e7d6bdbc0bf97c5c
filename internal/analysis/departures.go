package analysis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// departures finds in what ways the run differs from what was published, beyond
// what the runner recorded. Cases with the same departure share one.
func (s *runData) departures() []result.Departure {
	var out departureList
	for _, c := range s.p.Changes {
		if c.Kind == "place" {
			for _, sub := range s.cases {
				if sub.plan.AtHere() {
					out.add(c.Kind, c.Text, sub.c.ID)
				}
			}
			continue
		}
		out.add(departureKind(c.Kind), c.Text, "")
	}
	for _, c := range s.p.Choices {
		out.add("choice", c, "")
	}
	s.hostDepartures(&out)
	for _, sub := range s.cases {
		s.caseDepartures(&out, sub)
	}
	return out.done(len(s.cases))
}

// departureKind is the kind of departure that a change on the command line is: the
// flag --fs gives the same one as an engine that makes another file system.
func departureKind(change string) string {
	if change == "fs" {
		return "filesystem"
	}
	return change
}

// departureList collects departures by kind and text.
type departureList struct{ list []result.Departure }

// add keeps a departure of one case, or of all with id "".
func (l *departureList) add(kind, text, id string) {
	i := slices.IndexFunc(l.list, func(d result.Departure) bool { return d.Kind == kind && d.Text == text })
	if i < 0 {
		l.list = append(l.list, result.Departure{Kind: kind, Text: text})
		i = len(l.list) - 1
	}
	if id != "" && !slices.Contains(l.list[i].Cases, id) {
		l.list[i].Cases = append(l.list[i].Cases, id)
	}
}

// done leaves out the list of cases where it names all of them.
func (l *departureList) done(cases int) []result.Departure {
	for i := range l.list {
		if len(l.list[i].Cases) == cases && cases > 1 {
			l.list[i].Cases = nil
		}
	}
	return l.list
}

// hostDepartures compares engine, machine and system with the source's.
func (s *runData) hostDepartures(out *departureList) {
	if s.p.Source == nil {
		return
	}
	on := s.p.Source.On
	for _, ss := range s.r.Sessions {
		if !isApple(ss.Engine) {
			out.add("engine", fmt.Sprintf("images were made and attached by %s, not by Apple's tools", cmp.Or(ss.Engine.Title, ss.Engine.Name)), "")
		}
		h := ss.Host
		if on.Machine != "" && !sameChip(on.Machine, h.CPU+" "+h.Model) {
			out.add("machine", fmt.Sprintf("measured on %s; published for %s", cmp.Or(strings.TrimSpace(h.Model+" "+h.CPU), "an unknown machine"), on.Machine), "")
		}
		if on.OS != "" && !sameSystem(on.OS, h) {
			out.add("os", fmt.Sprintf("measured on %s; published for %s", cmp.Or(strings.TrimSpace(osName(h.OS)+" "+h.OSVersion), "an unknown system"), on.OS), "")
		}
	}
}

// isApple reports whether an engine drives Apple's own tools.
func isApple(e result.Engine) bool { return e.Vendor == "Apple" }

// apple reports whether every session measured Apple's own tools.
func (s *runData) apple() bool {
	return len(s.r.Sessions) > 0 && !slices.ContainsFunc(s.r.Sessions, func(ss result.Session) bool { return !isApple(ss.Engine) })
}

// engineTitle names the engines of the run.
func (s *runData) engineTitle() string {
	var out []string
	for _, ss := range s.r.Sessions {
		if t := cmp.Or(ss.Engine.Title, ss.Engine.Name); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return "with no engine"
	}
	return strings.Join(out, " and ")
}

var chip = regexp.MustCompile(`\bM\d+( (Pro|Max|Ultra))?\b`)

// sameChip compares machines by their class, the processor: "Mac mini M4 Pro,
// 2 TB" and "Apple M4 Pro". Machines without an Apple chip must agree in full.
func sameChip(published, here string) bool {
	if want := chip.FindString(published); want != "" {
		return chip.FindString(here) == want
	}
	return strings.Contains(here, published)
}

var osVersion = regexp.MustCompile(`\d+`)

// sameSystem compares systems by name and major version.
func sameSystem(published string, h result.Host) bool {
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

// caseDepartures compares what was made and done with what the plan asks for.
func (s *runData) caseDepartures(out *departureList, sub *caseData) {
	t, set, id := sub.c.Target, sub.plan.Settings, sub.c.ID
	measured := len(sub.order) > 0
	if measured && t.Kind == "image" && t.Filesystem != "" && len(set.Filesystems) > 0 && t.Filesystem != set.Filesystems[0] {
		out.add("filesystem", fmt.Sprintf("the images carry %s instead of %s", t.Filesystem, set.Filesystems[0]), id)
	}
	if measured && t.BandSize > 0 && t.BandSizeUsed > 0 && t.BandSize != t.BandSizeUsed {
		out.add("band-size", fmt.Sprintf("bands of %s were asked for, bands of %s were made", units.Bytes(t.BandSize), units.Bytes(t.BandSizeUsed)), id)
	}
	for _, k := range sub.order {
		for _, st := range sub.steps[k] {
			if c := st.Cache; c != nil && cacheMissed(k.do, *c) {
				out.add("cache", fmt.Sprintf("%s: %s", k.do, cacheText(*c)), id)
			}
			if y := st.Sync; y != nil && y.Asked != y.Achieved {
				out.add("sync", syncText(*y), id)
			}
			if x := st.Stream; x != nil && set.Codec != "" && x.Codec != "" && !s.namesCodec(x.Codec) && x.Codec != set.Codec {
				out.add("codec", fmt.Sprintf("%s compressed instead of %s", x.Codec, set.Codec), id)
			}
		}
	}
}

// cacheText words how files were accessed where that is not the access requested.
func cacheText(c result.Achieved) string {
	asked := c.Asked + " I/O requested"
	if c.Asked == "direct" {
		asked = "uncached I/O requested"
	}
	if c.Achieved == "unknown" {
		return asked + "; whether it took effect is unknown"
	}
	return asked + ", but it was " + c.Achieved
}

// namesCodec reports whether some step of the plan asks for the codec itself.
func (s *runData) namesCodec(codec string) bool {
	for _, b := range s.p.Protocol {
		for _, st := range flatten(nil, b.Steps) {
			if st.Codec == codec {
				return true
			}
		}
	}
	return false
}

// cacheMissed reports whether less was achieved of the cache than was asked.
func cacheMissed(do string, c result.Achieved) bool {
	switch c.Asked {
	case "direct":
		return c.Achieved != "direct"
	case "cold":
		return do != "write" && c.Achieved != "buffered-cold" && c.Achieved != "direct"
	}
	return false
}

func syncText(y result.Achieved) string {
	if y.Asked == "fsync" && y.Achieved == "full" {
		return "fsync flushes the drive's own cache on this system, which it does not do on macOS"
	}
	return fmt.Sprintf("flush %q was asked for, %q was achieved", y.Asked, y.Achieved)
}

// mergeDepartures adds departures to those that are known, each once.
func mergeDepartures(known, more []result.Departure) []result.Departure {
	out := slices.Clone(known)
	for _, d := range more {
		i := slices.IndexFunc(out, func(o result.Departure) bool {
			return o.Kind == d.Kind && o.Text == d.Text && slices.Equal(o.Cases, d.Cases)
		})
		if i < 0 {
			out = append(out, d)
		}
	}
	if out == nil {
		return []result.Departure{}
	}
	return out
}

// index notes which departures concern which case; "" is all cases.
func (s *runData) indexDepartures(list []result.Departure) {
	s.departed = map[string][]result.Departure{}
	for _, d := range list {
		if len(d.Cases) == 0 {
			s.departed[""] = append(s.departed[""], d)
		}
		for _, id := range d.Cases {
			s.departed[id] = append(s.departed[id], d)
		}
	}
}
