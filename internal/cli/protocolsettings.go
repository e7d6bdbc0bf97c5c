package cli

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
)

// This file says what holds for all cases of a plan, as a methods section does
// before its steps: the image, how files are written and read, what is fitted.

// onlyFolders reports whether no case of the plan has an image.
func onlyFolders(cases []plan.Case) bool {
	return !slices.ContainsFunc(cases, func(c plan.Case) bool { return c.Settings.Target != "directory" })
}

// image says what the images have in common; what is an axis stands above it.
func (t *protocol) image(p *plan.Plan) {
	d := p.Defaults
	if t.folder {
		t.item("  in ", "a native folder: there is no image")
		return
	}
	parts := nonempty(d.Format)
	if d.Size > 0 {
		parts = append(parts, d.Size.String())
	}
	if d.Encryption != "none" {
		parts = append(parts, d.Encryption)
	}
	if d.BandSize > 0 {
		parts = append(parts, "bands of "+d.BandSize.String())
	}
	if len(d.Filesystems) > 0 {
		parts = append(parts, strings.Join(d.Filesystems, ", else "))
	}
	if d.Place != "" {
		parts = append(parts, "at the place “"+d.Place+"”")
	}
	if len(parts) > 0 {
		t.item("  image, where nothing else is said: ", strings.Join(parts, ", "))
	}
}

// timed says how files are written, read and compressed where a step does not say otherwise.
func (t *protocol) timed(p *plan.Plan) {
	d := p.Defaults
	varied := func(key string) bool {
		return slices.ContainsFunc(p.Axes, func(a plan.Axis) bool { return a.Key == key })
	}
	said := func(key, text string) string {
		if varied(key) {
			return ""
		}
		return text
	}
	if does(p, "write", "read") {
		workers := "one file at a time"
		if d.Workers > 1 {
			workers = fmt.Sprintf("%d files at once", d.Workers)
		}
		block := "each in one call"
		if d.Block > 0 {
			block = "in calls of " + d.Block.String()
		}
		t.item("  timed: ", strings.Join(nonempty(said("workers", workers), said("block", block),
			said("sync", map[string]string{"none": "not flushed", "fsync": "each write with its fsync", "full": "each write flushed to the medium"}[d.Sync]),
			said("cache", map[string]string{"direct": "past the cache", "buffered": "through the cache", "cold": "through the cache, of which files are evicted before they are read"}[d.Cache])), ", "))
	}
	if does(p, "stream") {
		level, threads := "at its default level", "one thread a CPU"
		if d.Level > 0 {
			level = fmt.Sprintf("at level %d", d.Level)
		}
		if d.Threads > 0 {
			threads = fmt.Sprintf("%d threads", d.Threads)
		}
		t.item("  compressed: ", strings.Join(nonempty(said("codec", "by "+d.Codec), said("level", level), said("threads", threads)), ", "))
	}
}

// does reports whether any step of the protocol is of one of these kinds.
func does(p *plan.Plan, kinds ...string) bool {
	var within func([]plan.Step) bool
	within = func(steps []plan.Step) bool {
		return slices.ContainsFunc(steps, func(s plan.Step) bool { return slices.Contains(kinds, s.Do) || within(s.Steps) })
	}
	return slices.ContainsFunc(p.Protocol, func(b plan.Block) bool { return within(b.Steps) })
}

// fits says what is fitted to the figures.
func (t *protocol) fits(p *plan.Plan) {
	if len(p.Fits) == 0 {
		return
	}
	t.line("\nFITTED")
	words := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
	for i := range p.Fits {
		f := &p.Fits[i]
		model := map[string]string{"line": "a straight line", "power": "a power law", "two-lines": "two straight lines"}[f.Model]
		text := fmt.Sprintf("%s: %s of %s over %s", f.Name, model, words(string(f.Quantity)), words(f.Along))
		if len(f.Points) > 0 {
			text += " " + strings.Join(f.Points, ", ")
		}
		if len(f.Where) > 0 {
			text += ", where " + f.Where.Prose()
		}
		if len(f.Predict) > 0 {
			text += "; it predicts " + strings.Join(f.Predict, ", ")
		}
		t.item("  - ", text)
	}
}

// folderProse is what steps are where there is no image; "" for steps that are the same.
var folderProse = map[string]string{"create": "make the folder", "attach": "open the folder", "detach": "leave the folder", "remount": "open the folder again"}
