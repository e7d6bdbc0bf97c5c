package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// givenPlaces are the values of --on: folders, and places that are measured in the run's own folder.
type givenPlaces struct {
	dirs []runner.Place
	here []string
}

// readPlaces reads --on: NAME=DIR, NAME=here, or DIR for the place without a name. A folder
// whose path has an equals sign is given as =DIR or ./DIR, one that is called "here" as ./here.
func readPlaces(args []string) (givenPlaces, error) {
	var given givenPlaces
	seen := map[string]bool{}
	for _, arg := range args {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, dir = "", arg
		}
		if seen[name] {
			return given, &usageError{err: fmt.Errorf("reading --on: place %q is given twice", name)}
		}
		seen[name] = true
		if name != "" && dir == plan.Here {
			given.here = append(given.here, name)
			continue
		}
		fi, err := os.Stat(dir)
		if err == nil && !fi.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			return given, &usageError{err: fmt.Errorf("reading --on %q: %w", arg, err), hint: "give a folder that is there"}
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return given, err
		}
		given.dirs = append(given.dirs, runner.Place{Name: name, Path: abs})
	}
	return given, nil
}

// placesOf are the folders for the places of a plan. A folder without a name is that
// of the only place of a plan whose cases are all there. A place that no case uses is refused: it would be measured nowhere.
func placesOf(p *plan.Plan, given []runner.Place) ([]runner.Place, error) {
	out, names := slices.Clone(given), p.Places()
	for i, pl := range out {
		if pl.Name != "" && !slices.Contains(names, pl.Name) {
			return nil, &usageError{err: fmt.Errorf("running plan %q: no case of it is at place %q", p.Name, pl.Name), hint: placesHint(names)}
		}
		_, here := plan.HereFor(strings.Join(names, " "))
		if pl.Name == "" && len(given) == 1 && len(names) == 1 && !here && !atRunFolder(p) {
			out[i].Name = names[0]
		}
	}
	return out, nil
}

// placesHint names the places of a plan.
func placesHint(names []string) string {
	if len(names) == 0 {
		return "the plan names no place; --on DIR without a name moves the images that are in the run folder otherwise"
	}
	return "its places are " + strings.Join(names, ", ")
}

// atRunFolder reports whether some case of the plan is at no named place.
func atRunFolder(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Cases(), func(c plan.Case) bool { return c.Settings.Place == "" })
}

// missingPlaces are the places of a plan for which there is neither a folder nor consent to do without.
func missingPlaces(p *plan.Plan, have []runner.Place) []string {
	return slices.DeleteFunc(p.Places(), func(name string) bool {
		_, here := plan.HereFor(name)
		return here || slices.ContainsFunc(have, func(pl runner.Place) bool { return pl.Name == name })
	})
}

// askForPlaces refuses to measure a place that nobody gave: its figures would carry the name of a disk that they are not of.
func askForPlaces(p *plan.Plan, have []runner.Place) error {
	missing := missingPlaces(p, have)
	if len(missing) == 0 {
		return nil
	}
	places := fmt.Sprintf("place %q", missing[0])
	if len(missing) > 1 {
		places = "places " + quotedList(missing)
	}
	return &usageError{err: fmt.Errorf("running plan %q: no folder was given for %s", p.Name, places),
		hint: fmt.Sprintf("add %s; or %s to measure in the run folder, which is a deviation", onFlags(missing, "DIR"), onFlags(missing, plan.Here))}
}

// onFlags is what to type for some places.
func onFlags(names []string, dir string) string {
	flags := make([]string, len(names))
	for i, name := range names {
		flags[i] = "--on " + name + "=" + dir
	}
	return strings.Join(flags, " ")
}

// resumePlaces gives the folders of --on the names that the run has for them, and refuses to change where a place is measured.
func resumePlaces(c *runner.Config, here []string, run result.RunStart) error {
	for _, name := range here {
		if !slices.Contains(c.Plan.Places(), plan.HereName(name)) {
			return &usageError{err: fmt.Errorf("resuming with --on %s=%s: the run was not begun with it", name, plan.Here),
				hint: "give the folder that the place is in now: --on " + name + "=DIR"}
		}
	}
	unnamed := slices.IndexFunc(run.Places, func(p result.Place) bool { return p.Name == "" && p.Given })
	if unnamed >= 0 {
		return nil
	}
	var err error
	c.Places, err = placesOf(c.Plan, c.Places)
	return err
}
