package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// locations are the parsed values of --on and --input. Places and inputs are
// named by the plan, and the user assigns folders and files to the names.
type locations struct {
	places []runner.Place    // folders; a place without a name is for plans with one place
	here   []string          // names of places that are measured in the run folder
	inputs map[string]string // files, by the name that the plan gives them
}

// locations parses --on and, where the command has it, --input. A path of --on
// that contains an equals sign is written as =DIR or ./DIR, a folder that is
// named "here" as ./here.
func (a *app) locations() (l locations, err error) {
	seen := map[string]bool{}
	for _, arg := range a.list("on") {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, dir = "", arg
		}
		if seen[name] {
			return l, usageError("", "reading --on: place %q is given twice", name)
		}
		seen[name] = true
		if name != "" && dir == plan.Here {
			l.here = append(l.here, name)
			continue
		}
		fi, err := os.Stat(dir)
		if err == nil && !fi.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			return l, usageError("give an existing folder", "reading --on %q: %w", arg, err)
		}
		l.places = append(l.places, runner.Place{Name: name, Path: absolute(dir)})
	}
	if a.command.Name() != "doctor" {
		l.inputs, err = parseInputs(a.list("input"))
	}
	return l, err
}

// parseInputs parses NAME=PATH values. Whether the files exist is checked when
// a run needs them, so that a dry run works without them.
func parseInputs(args []string) (map[string]string, error) {
	inputs := map[string]string{}
	for _, arg := range args {
		name, path, _ := strings.Cut(arg, "=")
		if name == "" || path == "" || inputs[name] != "" {
			return nil, usageError("", "reading --input: %q is not NAME=PATH, or is given twice", arg)
		}
		inputs[name] = path
	}
	return inputs, nil
}

// matchInputs compares the given files with those that a plan declares: all
// that are required, and no others, because a misspelt name would be ignored.
func matchInputs(p *plan.Plan, inputs map[string]string) error {
	for _, in := range p.Inputs {
		if !in.Optional && inputs[in.Name] == "" {
			return usageError("give it with --input "+in.Name+"=PATH", "running plan %q: it needs the file %q: %s",
				p.Name, in.Name, cmp.Or(in.About, "an input"))
		}
	}
	for name := range inputs {
		if !slices.ContainsFunc(p.Inputs, func(in plan.Input) bool { return in.Name == name }) {
			return usageError("", "running plan %q: it asks for no file %q", p.Name, name)
		}
	}
	return nil
}

// matchPlaces gives the folders of --on the names of a plan's places. A folder
// without a name is for the only place of a plan if all cases are there. A
// place that no case uses is refused.
func matchPlaces(p *plan.Plan, given []runner.Place) ([]runner.Place, error) {
	out, names := slices.Clone(given), p.Places()
	for i, place := range out {
		if place.Name != "" && !slices.Contains(names, place.Name) {
			hint := "its places are " + strings.Join(names, ", ")
			if len(names) == 0 {
				hint = "the plan names no place; --on DIR without a name moves the images out of the run folder"
			}
			return nil, usageError(hint, "running plan %q: no case of it is at place %q", p.Name, place.Name)
		}
		inRunFolder := func(c plan.Case) bool { return c.Settings.Place == "" }
		if place.Name == "" && len(given) == 1 && len(names) == 1 && len(missingPlaces(p, nil)) == 1 &&
			!slices.ContainsFunc(p.Cases(), inRunFolder) {
			out[i].Name = names[0]
		}
	}
	return out, nil
}

// missingPlaces are the places of a plan without a folder, in the order of the
// plan. Places that are measured in the run folder with the user's consent need
// none.
func missingPlaces(p *plan.Plan, have []runner.Place) []string {
	return slices.DeleteFunc(p.Places(), func(name string) bool {
		_, here := plan.HereFor(name)
		return here || slices.ContainsFunc(have, func(pl runner.Place) bool { return pl.Name == name })
	})
}

// requirePlaces refuses a plan without a folder for each place: measured
// elsewhere, the values would have the name of a disk that they are not from.
func requirePlaces(p *plan.Plan, have []runner.Place) error {
	missing := missingPlaces(p, have)
	if len(missing) == 0 {
		return nil
	}
	hint := fmt.Sprintf("add %s; or %s to measure in the run folder, which is a deviation",
		onFlags(missing, "DIR"), onFlags(missing, plan.Here))
	return usageError(hint, "running plan %q: no folder was given for %s", p.Name, quotedList(missing))
}

// onFlags are the flags that give every place the folder dir, for hints: "--on
// a=DIR --on b=DIR".
func onFlags(names []string, dir string) string {
	return "--on " + strings.Join(names, "="+dir+" --on ") + "=" + dir
}

// quotedList is `"a" and "b"`.
func quotedList(names []string) string { return `"` + strings.Join(names, `" and "`) + `"` }

// resumePlaces gives the folders of --on the names that a run has for them. A
// place cannot change to the run folder or back.
func resumePlaces(p *plan.Plan, l locations, run result.RunStart) ([]runner.Place, error) {
	for _, name := range l.here {
		if !slices.Contains(p.Places(), plan.HereName(name)) {
			return nil, usageError("give the folder that the place is in now: --on "+name+"=DIR",
				"resuming with --on %s=%s: the run was not started with it", name, plan.Here)
		}
	}
	if slices.ContainsFunc(run.Places, func(p result.Place) bool { return p.Name == "" && p.Given }) {
		return l.places, nil
	}
	return matchPlaces(p, l.places)
}
