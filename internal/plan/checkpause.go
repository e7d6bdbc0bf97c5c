package plan

import (
	"fmt"
	"maps"
	"slices"
)

// harmed notes whether what a damage step does keeps engines from opening the
// container again: they know bundles and most images by their headers, and
// images other than plain ones by what stands at their end.
func (b *stage) harmed(s *Step) {
	if s.Do != "damage" {
		return
	}
	if s.Kind == "header" || s.Kind == "truncated" && !slices.Contains([]string{"UDRW", "UDSB"}, b.format) {
		b.harm = s.Kind
	}
}

// pausable reports a pause that could not be resumed: resume follows the steps
// before it without executing them, and opens every container again.
func (f *follower) pausable(s *Step) {
	if f.lost != nil {
		f.atStep(s, "pause", "pause: resume cannot tell how far the %s got that has to fail", f.lost.Do).
			hintf("it is on line %d; put the pause before it", f.lost.Line)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.stages)) {
		if b := f.stages[name]; b.harm != "" {
			what := fmt.Sprintf("the container %q", name)
			f.atStep(s, "pause", "pause: %s cannot be opened again after the damage %q", what, b.harm).
				hintf("put the pause before the damage, or harm it in another way: table, volume, band-missing")
			return
		}
	}
}
