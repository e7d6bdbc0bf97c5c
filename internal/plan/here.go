package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Here is what the user writes instead of a folder, as in --on usb4=here, to have
// the cases of a place measured in the run's own folder.
const Here = "here"

// HereName is the name that a place has in the plan as executed if its cases are
// measured in the run's own folder. Cases, tables and charts take their labels from
// it, so that figures of another disk never carry the name of the place.
func HereName(place string) string { return Here + " (not " + place + ")" }

// HereFor is the place of the published plan for a name of [HereName].
func HereFor(name string) (place string, ok bool) {
	rest, ok := strings.CutPrefix(name, Here+" (not ")
	if !ok {
		return "", false
	}
	place, ok = strings.CutSuffix(rest, ")")
	return place, ok && nameRule.MatchString(place)
}

// AtHere reports whether the case, or a step of it, is at such a place.
func (c *Case) AtHere() bool {
	_, here := HereFor(c.Settings.Place)
	walk(c.Steps, func(s *Step) {
		_, step := HereFor(s.Place)
		here = here || step
	})
	return here
}

// applyHere renames places, wherever the plan mentions them.
func (p *Plan) applyHere(o Overrides) error {
	if len(o.Here) == 0 {
		return nil
	}
	places := p.Places()
	var quoted []string
	for _, name := range o.Here {
		switch {
		case slices.Contains(places, name):
			quoted = append(quoted, fmt.Sprintf("%q", name))
		case !slices.Contains(places, HereName(name)): // else it is the plan of such a run
			return &OverrideError{"on", name + "=" + Here, "no case of the plan is at that place"}
		}
	}
	if len(quoted) == 0 {
		return nil
	}
	rename := func(names []string) []string {
		out := slices.Clone(names)
		for i, name := range out {
			if slices.Contains(o.Here, name) {
				out[i] = HereName(name)
			}
		}
		return out
	}
	p.Defaults.Place = rename([]string{p.Defaults.Place})[0]
	p.replaceInCases("place", rename)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) { s.Place = rename([]string{s.Place})[0] })
	}
	p.reselect("place", rename)
	p.changed("place", "cases of place %s were measured in the run's own folder", strings.Join(quoted, " and "))
	return nil
}
