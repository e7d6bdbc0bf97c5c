package runner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// checkResume finds the plan, places and inputs of the run that is resumed, and
// refuses to continue with another engine or plan: its numbers would not be
// rounds of the same cases.
func (r *run) checkResume() error {
	if err := r.checkSameEngine(r.c.Engine.Info()); err != nil {
		return err
	}
	p, err := r.readPlan()
	if err != nil {
		return err
	}
	r.setPlan(p)
	if r.c.Places, err = PlacesOf(r.c, r.state.Run); err != nil {
		return err
	}
	r.c.Inputs, err = r.findInputs()
	return err
}

// checkSameEngine refuses another engine than that of the session before.
// Another version of it is a warning of [run.changes].
func (r *run) checkSameEngine(now engine.Info) error {
	if len(r.state.Sessions) == 0 {
		return nil
	}
	was := r.state.Sessions[len(r.state.Sessions)-1].Engine
	if was.Name == now.Name && was.Vendor == now.Vendor {
		return nil
	}
	return r.resumeError("numbers of two engines are not rounds of one case: start a new run",
		"it was started with %s, and this is %s", cmp.Or(was.Title, was.Name), cmp.Or(now.Title, now.Name))
}

// resumeError is an error of this check, with a hint for the user.
func (r *run) resumeError(hint, format string, args ...any) error {
	return &result.Error{Doing: "resuming run", File: r.c.Out, Err: fmt.Errorf(format, args...), Hint: hint}
}

// readPlan reads plan.toml of the run folder, and fails if it was changed.
func (r *run) readPlan() (*plan.Plan, error) {
	ran := r.state.Run.Plan
	text, err := r.dir.ReadFile(result.PlanFile, plan.MaxSize)
	if err != nil {
		return nil, err
	}
	p, problems := plan.Parse(ran.Name+".toml", text)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	if !p.Is(ran.Digest, text) {
		return nil, fmt.Errorf("resuming %q: plan.toml was changed since the run started", r.dir.Path())
	}
	return p, nil
}

// changes are warnings about what differs from the session before, where
// intervals will contain rounds of both.
func (r *run) changes() (out []result.Warning) {
	if len(r.state.Sessions) == 0 {
		return nil
	}
	// At a pause for a manual axis the user changes the machine on request, and
	// no interval contains cases of two settings.
	if p := r.state.Paused; p != nil && p.Key != "" {
		return nil
	}
	add := func(what, is, was string) {
		if is != was {
			out = append(out, result.Warning{Kind: "changed", Text: fmt.Sprintf(
				"the %s is %q in session %d and was %q before: intervals contain rounds of both",
				what, is, r.session, was)})
		}
	}
	last, info, host := r.state.Sessions[len(r.state.Sessions)-1], r.c.Engine.Info(), r.c.Host
	old := last.Host
	add("machine", joinWords(host.Model, host.CPU, host.Arch), joinWords(old.Model, old.CPU, old.Arch))
	add("system", joinWords(host.OS, host.OSVersion, host.OSBuild), joinWords(old.OS, old.OSVersion, old.OSBuild))
	add("engine", joinWords(info.Name, info.Version), joinWords(last.Engine.Name, last.Engine.Version))
	disk := func(d result.Disk) string { return joinWords(d.Filesystem, d.Bus, d.Device, d.Medium) }
	for _, now := range host.Disks {
		if i := slices.IndexFunc(old.Disks, func(d result.Disk) bool { return d.Place == now.Place }); i >= 0 {
			add(fmt.Sprintf("disk of place %q", now.Place), disk(now), disk(old.Disks[i]))
		}
	}
	return out
}

// joinWords joins parts by one space and omits empty ones.
func joinWords(parts ...string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// PlacesOf are the places of a run that is to be resumed: those of c, and those
// that the registry contains. The error names places that neither contains; the
// journal does not contain paths.
func PlacesOf(c Config, run result.RunStart) ([]Place, error) {
	known, _ := readEntry(c.StateDir, run.ID) // without an entry the user has to name the folders
	out := slices.Clone(c.Places)
	var lost, flags []string
	for _, p := range run.Places {
		if !p.Given || slices.ContainsFunc(out, func(o Place) bool { return o.Name == p.Name }) {
			continue
		}
		if path := known.Places[p.Name]; path != "" {
			out = append(out, Place{Name: p.Name, Path: path})
			continue
		}
		lost = append(lost, strconv.Quote(p.Name))
		flags = append(flags, "--on "+strings.TrimPrefix(p.Name+"=DIR", "="))
	}
	if len(lost) > 0 {
		return nil, &result.Error{Doing: "resuming run", File: c.Out,
			Err:  fmt.Errorf("the folder of place %s is not known any more", strings.Join(lost, " and ")),
			Hint: "give it again with " + strings.Join(flags, " ")}
	}
	return out, nil
}

// findInputs are the input files of the run: those of this session's flags,
// else those of the registry. Without an input that the run started with, cases
// would fail for good or be measured with another file.
func (r *run) findInputs() (map[string]string, error) {
	known, _ := readEntry(r.c.StateDir, r.id) // without an entry the user has to name the files
	for name := range r.c.Inputs {
		if !slices.ContainsFunc(r.p.Inputs, func(in plan.Input) bool { return in.Name == name }) {
			return nil, r.resumeError("omit --input "+name, "the plan has no input %q", name)
		}
	}
	out := map[string]string{}
	// In the order of the plan, so that the first error is always the same.
	for _, in := range r.p.Inputs {
		path := r.c.Inputs[in.Name]
		if isGenerated := in.Optional && !slices.Contains(r.state.Run.Inputs, in.Name); isGenerated {
			if path != "" {
				return nil, r.resumeError("omit --input "+in.Name+", or start a new run",
					"it was started without the file %q, with generated data instead", in.Name)
			}
			continue
		}
		again := "give it again with --input " + in.Name + "=PATH"
		if path = cmp.Or(path, known.Inputs[in.Name]); path == "" {
			return nil, r.resumeError(again, "the file %q is not known any more", in.Name)
		}
		if err := CheckInput(path); err != nil {
			return nil, r.resumeError(again, "opening the file %q: %w", in.Name, err)
		}
		out[in.Name] = path
	}
	return out, nil
}

// CheckInput fails if a run cannot copy the file at path. Symbolic links are
// followed.
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

// sizeTolerance is how far the size of an input may be from the one that the
// plan expects, as a share of it: sources publish sizes with two or three
// digits.
const sizeTolerance = 0.02

// inputs are the names of the inputs that the user gave, and how they deviate
// from those of the plan.
func inputs(c Config) (names []string, deviations []result.Departure) {
	deviate := func(format string, args ...any) {
		deviations = append(deviations, result.Departure{Kind: "input", Text: fmt.Sprintf(format, args...)})
	}
	for _, in := range c.Plan.Inputs {
		path := c.Inputs[in.Name]
		if path == "" {
			if in.Optional {
				deviate("no file %q was given: %s of generated data, half of it compressible, replace it",
					in.Name, in.Size)
			}
			continue
		}
		names = append(names, in.Name)
		info, err := os.Stat(path)
		want := float64(in.Size)
		if err == nil && want > 0 && math.Abs(float64(info.Size())-want) > sizeTolerance*want {
			deviate("the file %q has %d B; the plan expects %s", in.Name, info.Size(), in.Size)
		}
	}
	return names, deviations
}
