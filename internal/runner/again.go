package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// sameEngine refuses to go on with another engine than that of the session before: their numbers are not rounds of one case.
func sameEngine(dir string, s *result.State, now engine.Info) error {
	if len(s.Sessions) == 0 {
		return nil
	}
	was := s.Sessions[len(s.Sessions)-1].Engine
	if was.Name == now.Name && was.Vendor == now.Vendor {
		return nil
	}
	return &result.Error{Doing: "resuming run", File: dir, Err: fmt.Errorf("it was begun with %s, and this is %s", cmpOr(was.Title, was.Name), cmpOr(now.Title, now.Name)),
		Hint: "numbers of two engines are not rounds of one case: start a new run"}
}

// planAgain is the plan of a run folder under the name that it was run by, if it is still the one that was begun.
func planAgain(dir *result.RunDir, ran result.PlanRef) (*plan.Plan, error) {
	text, err := dir.ReadFile(result.PlanFile, plan.MaxSize)
	if err != nil {
		return nil, err
	}
	p, problems := plan.Parse(ran.Name+".toml", text)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	if !p.Is(ran.Digest, text) {
		return nil, fmt.Errorf("resuming %q: plan.toml was changed since the run began", dir.Path())
	}
	return p, nil
}

// changed says what is another than in the session before where rounds of both stand in one interval.
func (r *run) changed() (out []result.Warning) {
	if r.state == nil || len(r.state.Sessions) == 0 {
		return nil
	}
	if p := r.state.Paused; p != nil && p.Key != "" { // the user was asked to turn something, and cases of two settings share no interval
		return nil
	}
	last, info, host := r.state.Sessions[len(r.state.Sessions)-1], r.c.Engine.Info(), r.c.Host
	for _, f := range []struct{ what, was, is string }{
		{"machine", join(last.Host.Model, last.Host.CPU, last.Host.Arch), join(host.Model, host.CPU, host.Arch)},
		{"system", join(last.Host.OS, last.Host.OSVersion, last.Host.OSBuild), join(host.OS, host.OSVersion, host.OSBuild)},
		{"engine", join(last.Engine.Name, last.Engine.Version), join(info.Name, info.Version)},
	} {
		if f.was != f.is {
			out = append(out, result.Warning{Kind: "changed", Text: fmt.Sprintf("the %s of session %d is %q, and was %q before: its rounds stand beside the others", f.what, r.session, f.is, f.was)})
		}
	}
	for _, now := range host.Disks {
		i := slices.IndexFunc(last.Host.Disks, func(d result.Disk) bool { return d.Place == now.Place })
		if i < 0 {
			continue
		}
		was := last.Host.Disks[i]
		if was, is := join(was.Filesystem, was.Bus, was.Device, was.Medium), join(now.Filesystem, now.Bus, now.Device, now.Medium); was != is {
			out = append(out, result.Warning{Kind: "changed", Text: fmt.Sprintf("the disk of place %q is %q in session %d, and was %q before: its rounds stand beside the others", now.Place, is, r.session, was)})
		}
	}
	return out
}

func join(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }

// PlacesOf are the places of a run that is to be resumed: those of c, and those
// that the registry in its state directory knows. An error means that a place of
// the run is known no more.
func PlacesOf(c Config, run result.RunStart) ([]Place, error) { return placesAgain(c, run) }

// FolderOf is where the folder of a run was when its last session began, by the registry in the state directory; "" where that is not known.
func FolderOf(stateDir, id string) string {
	if stateDir == "" {
		return ""
	}
	e, err := readEntry(stateDir, id)
	if err != nil {
		return ""
	}
	return e.Folder
}

// inputsAgain finds the files that a run was given: those that are given anew, else those that the registry knows. Whoever went on
// without one would have its cases fail for good, or measured with something else.
func inputsAgain(c Config, p *plan.Plan, run result.RunStart) (map[string]string, error) {
	var known entry
	if c.StateDir != "" {
		known, _ = readEntry(c.StateDir, run.ID) // without an entry the files have to be given
	}
	fail := func(hint, format string, args ...any) (map[string]string, error) {
		return nil, &result.Error{Doing: "resuming run", File: c.Out, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	out := map[string]string{}
	for name, path := range c.Inputs {
		if !slices.ContainsFunc(p.Inputs, func(in plan.Input) bool { return in.Name == name }) {
			return fail("leave --input "+name+" out", "the plan asks for no file %q", name)
		}
		out[name] = path
	}
	for _, in := range p.Inputs {
		given, again := out[in.Name], "give it again with --input "+in.Name+"=PATH"
		if slices.ContainsFunc(run.Departures, func(d result.Departure) bool { return d.Kind == "input" && d.Text == standIn(in).Text }) {
			if given != "" {
				return fail("leave --input "+in.Name+" out, or start a new run", "it was begun without the file %q, and what stands in for it is another file", in.Name)
			}
			continue
		}
		if given == "" {
			given = known.Inputs[in.Name]
		}
		if given == "" && (!in.Optional || slices.Contains(run.Inputs, in.Name)) {
			return fail(again, "the file %q is not known any more", in.Name)
		}
		if given == "" {
			continue
		}
		if err := CheckInput(given); err != nil {
			return fail(again, "opening the file %q: %w", in.Name, err)
		}
		out[in.Name] = given
	}
	return out, nil
}

// CheckInput says why a file cannot be copied by a run; links are followed.
func CheckInput(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return withoutPath(err)
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

// inputs are the names of the files that were brought, and how they depart from those of the plan.
func inputs(c Config) (names []string, departures []result.Departure) {
	for _, in := range c.Plan.Inputs {
		path := c.Inputs[in.Name]
		if path == "" {
			if in.Optional {
				departures = append(departures, standIn(in))
			}
			continue
		}
		names = append(names, in.Name)
		info, err := os.Stat(path)
		if want := float64(in.Size); err == nil && want > 0 && math.Abs(float64(info.Size())-want) > sizeSlack*want {
			departures = append(departures, result.Departure{Kind: "input", Text: fmt.Sprintf("the file %q has %d B; the plan expects %s", in.Name, info.Size(), in.Size)})
		}
	}
	return names, departures
}

// sizeSlack is how far a file may be from the size that its plan expects, as a share: sizes are published in two or three figures.
const sizeSlack = 0.02

// standIn is the departure of a run without the file.
func standIn(in plan.Input) result.Departure {
	return result.Departure{Kind: "input", Text: fmt.Sprintf("no file %q was given: %s of made data, half of it compressible, stand in for it", in.Name, in.Size)}
}

// absoluteAll are the paths of files as another working directory finds them.
func absoluteAll(files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for name, path := range files {
		out[name] = absolute(filepath.Clean(path))
	}
	return out
}
