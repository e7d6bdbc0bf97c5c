package report

import (
	"maps"
	"slices"
	"strconv"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// The parts of the time that the same files take in the native folder, in an image and in an image that has one thing
// more. A part is a difference of two cases of the same round and work; what a run cannot tell apart stays one part.
const (
	partNative   = NativeFolder
	partReserved = "space reserved beforehand"
	partImage    = "image as a whole"
	partInside   = "harness, inside the clock"
	partOutside  = "harness, outside the clock"
)

// work is what a case did in one round for one direction and phase.
type work struct {
	bytes                 int64
	files, workers        int
	busy, inside, outside float64 // seconds: files under way; workers between files; around the clock
}

// costPart is one part of a case's time: the mean over the rounds, in seconds.
type costPart struct {
	name   string
	layers layer // 0 for directories and the harness
	e      result.Estimate
}

// costCase is one case with its parts, first to last.
type costCase struct {
	c      *result.Case
	parts  []costPart
	rounds int
	total  float64 // seconds inside the clock
}

// works gathers what a case did, by round; steps inside repeats are left out, since their cycles are no replicates.
func works(c *result.Case, p picture) map[int]work {
	out := map[int]work{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Op != p.op || s.Phase != p.phase || s.Cycle != 0 || s.Span == nil || !IsShown(c, s) || s.Span.LastDoneNS <= s.Span.GateNS {
			continue
		}
		w := out[s.Round]
		n := max(s.Workers, 1)
		span, idle := float64(s.Span.LastDoneNS-s.Span.GateNS)/1e9, float64(s.Span.IdleNS)/1e9/float64(n)
		w.bytes, w.files, w.workers = w.bytes+s.Span.Bytes, w.files+len(s.Samples), max(w.workers, n)
		w.busy, w.inside = w.busy+span-idle, w.inside+idle
		w.outside += max(float64(s.DurationNS)/1e9-span, 0)
		out[s.Round] = w
	}
	return out
}

// same reports whether two cases moved the same files in the same way.
func (w work) same(o work) bool {
	return w.bytes == o.bytes && w.files == o.files && w.workers == o.workers
}

// agree reports whether two cases agree in all keys but those named; a directory has no keys of images.
func agree(a, b *result.Case, but ...string) bool {
	if a.Target.Place != b.Target.Place {
		return false
	}
	keys := map[string]string{}
	for _, kv := range a.Keys {
		keys[kv[0]] = kv[1]
	}
	for _, kv := range b.Keys {
		if value, ok := keys[kv[0]]; ok && value != kv[1] && !slices.Contains(but, kv[0]) {
			return false
		}
	}
	return true
}

// costs splits the time of every case that has the same files in a native folder
// beside it; cases of one directory belong together.
func (v *View) costs(p picture) map[string][]costCase {
	all := map[string]map[int]work{}
	for i := range v.Result.Cases {
		all[v.Result.Cases[i].ID] = works(&v.Result.Cases[i], p)
	}
	find := func(of *result.Case, accept func(c *result.Case) bool) *result.Case {
		for i := range v.Result.Cases {
			c := &v.Result.Cases[i]
			if c.ID != of.ID && accept(c) && slices.ContainsFunc(slices.Collect(maps.Keys(all[of.ID])), func(round int) bool {
				w, ok := all[c.ID][round]
				return ok && w.same(all[of.ID][round])
			}) {
				return c
			}
		}
		return nil
	}
	out := map[string][]costCase{}
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		if len(all[c.ID]) == 0 {
			continue
		}
		native := c
		if !plainDirectory(c) {
			native = find(c, func(d *result.Case) bool { return plainDirectory(d) && agree(c, d) })
		}
		if native == nil {
			continue
		}
		chain := chainOf(c, native, find)
		if made, ok := v.split(c, chain, all); ok {
			out[native.ID] = append(out[native.ID], made)
		}
	}
	return out
}

func plainDirectory(c *result.Case) bool {
	return c.Target.Kind == "directory" && !slices.Contains(c.Keys, [2]string{"preallocate", "true"})
}

func unencrypted(c *result.Case) bool {
	return c.Target.Encryption == "none" || c.Target.Encryption == ""
}

// split takes the rounds that all of the chain did alike, and the mean of each difference over them.
func (v *View) split(c *result.Case, chain []link, all map[string]map[int]work) (costCase, bool) {
	own := all[c.ID]
	var rounds []int
	for _, round := range slices.Sorted(maps.Keys(own)) {
		if !slices.ContainsFunc(chain, func(l link) bool { w, ok := all[l.c.ID][round]; return !ok || !w.same(own[round]) }) {
			rounds = append(rounds, round)
		}
	}
	if len(rounds) == 0 {
		return costCase{}, false
	}
	out := costCase{c: c, rounds: len(rounds)}
	add := func(name string, layers layer, of func(round int) float64) {
		values, any := map[int]float64{}, false
		for _, round := range rounds {
			values[round] = of(round)
			any = any || values[round] != 0
		}
		if any {
			out.parts = append(out.parts, costPart{name, layers, analysis.MeanOverRounds(v.Result, "", values)}) // no unit: plain means, that add up
		}
	}
	for i, l := range chain {
		add(l.name, l.layers, func(round int) float64 {
			t := all[l.c.ID][round].busy
			if i > 0 {
				t -= all[chain[i-1].c.ID][round].busy
			}
			return t
		})
	}
	add(partInside, 0, func(round int) float64 { return own[round].inside })
	for _, p := range out.parts {
		out.total += p.e.Value
	}
	add(partOutside, 0, func(round int) float64 { return own[round].outside })
	return out, true
}

// wayIn says what lies between a file and the container with the engines of this run, and what that leaves in one part.
func (v *View) wayIn() string {
	said := map[string]bool{}
	out := ""
	for _, s := range v.Result.Sessions {
		text := ""
		switch {
		case s.Engine.Name == "simulated":
			text = "The times were drawn from stated laws: no part is anything that a disk did."
		case s.Engine.Vendor == "Apple":
			text = "macOS mounts the images: its driver, its mount and the file system cannot be told apart from outside, and there is no FUSE."
		case s.Engine.Name == "inprocess":
			text = "In process there is no mount and no FUSE: the file system and the format run in this program. The engine hdiutil on Linux has both."
		case s.Engine.Name == "hdiutil":
			text = "On Linux an unencrypted raw image is a loop device by itself unless a helper was asked for, and every other container is served by FUSE, as a rule to a loop device" +
				TextIf(v.servedUnsaid(), ": FUSE is part of the format, and of the encryption of a raw image") + ". The engine inprocess has neither FUSE nor mount."
		}
		if text != "" && !said[text] {
			said[text] = true
			out += " " + text
		}
	}
	return out
}

// servedUnsaid reports whether an image was measured of which the run does not say what served it.
func (v *View) servedUnsaid() bool {
	return slices.ContainsFunc(v.Result.Cases, func(c result.Case) bool { return c.Target.Kind == "image" && servedBy(&c) == "" })
}

// costLacks says why there is nothing to tell apart, "" where there is or where no image was written to.
func (v *View) costLacks(sets []fileSet) string {
	images, directories := 0, 0
	for _, s := range sets {
		if i, ok := v.Order[s.caseID]; ok && v.Result.Cases[i].Target.Kind == "image" {
			images++
		} else if ok && plainDirectory(&v.Result.Cases[i]) {
			directories++
		}
	}
	switch {
	case images == 0:
		return ""
	case directories == 0:
		return "This run has no native folder beside its " + strconv.Itoa(images) + " sets of files in images, so that what harness, format and file system cost cannot be told apart: baseline = true in the plan's [run] adds one."
	}
	return "No round of this run has the same files in the native folder and in an image, so that what harness, format and file system cost cannot be told apart."
}
