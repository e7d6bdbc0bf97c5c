package report

import (
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// Warning is a warning with the places where it was found.
type Warning struct {
	Where, Kind, Text string
	Run               bool // about the run as a whole
	places            int  // where it was found
}

// listedPlaces is how many places of a warning are named.
const listedPlaces = 6

// warningKey is what makes two warnings the same.
type warningKey struct{ kind, text string }

// collectWarnings lists every warning of the run with its places, each warning
// once.
//
// Places are named in the order of the result.
func (v *View) collectWarnings() {
	at := map[warningKey]int{}
	var places [][]string
	add := func(where string, w result.Warning) {
		k := warningKey{Plain(w.Kind, 40), Plain(w.Text, 600)}
		i, ok := at[k]
		if !ok {
			i = len(v.Warnings)
			at[k] = i
			v.Warnings, places = append(v.Warnings, Warning{Kind: k.kind, Text: k.text}), append(places, nil)
		}
		places[i] = AppendNew(places[i], where)
	}
	for _, w := range v.Result.Warnings {
		add("the run", w)
	}
	for i := range v.Warnings {
		v.Warnings[i].Run = true
	}
	repeated := v.repeatedWarnings()
	for _, c := range v.Result.Cases {
		for _, w := range c.Warnings {
			add(v.CaseName(c.ID), w)
		}
		for _, s := range c.Steps {
			for _, w := range s.Warnings {
				if !repeated[warningKey{w.Kind, w.Text}] {
					add(joinFacts(v.CaseName(c.ID), StepName(s), "round "+strconv.Itoa(s.Round)), w)
				}
			}
		}
	}
	for _, s := range v.Result.Summaries {
		for _, w := range s.Warnings {
			if !repeated[warningKey{w.Kind, w.Text}] {
				add(joinFacts(v.CaseName(s.Case), QuantityName(s.Op), PhaseName(s.Phase, s.Cycle)), w)
			}
		}
	}
	for i, list := range places {
		v.Warnings[i].places = len(list)
		v.Warnings[i].Where = strings.Join(firstFew(list, listedPlaces, "places"), "; ")
	}
}

// repeatedWarnings are the warnings of steps and figures that a case or the run
// has as well: a case has "write new: …" where the figure has "…".
func (v *View) repeatedWarnings() map[warningKey]bool {
	out := map[warningKey]bool{}
	for _, w := range v.Result.Warnings {
		out[warningKey{w.Kind, w.Text}] = true
	}
	for _, c := range v.Result.Cases {
		for _, w := range c.Warnings {
			out[warningKey{w.Kind, w.Text}] = true
			if _, text, ok := strings.Cut(w.Text, ": "); ok {
				out[warningKey{w.Kind, text}] = true
			}
		}
	}
	return out
}
