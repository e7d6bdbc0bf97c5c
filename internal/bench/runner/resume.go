package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	// Another version of the engine is a warning of [run.changes].
	now := r.c.Engine.Info()
	if n := len(r.state.Sessions); n > 0 {
		was := r.state.Sessions[n-1].Engine
		if was.Name != now.Name || was.Vendor != now.Vendor {
			return r.resumeError("numbers of two engines are not rounds of one case: start a new run",
				"it was started with %s, and this is %s", cmp.Or(was.Title, was.Name), cmp.Or(now.Title, now.Name))
		}
	}
	ran := r.state.Run.Plan
	text, err := r.dir.ReadFile(result.PlanFile, plan.MaxSize)
	if err != nil {
		return err
	}
	p, problems := plan.Parse(ran.Name+".toml", text)
	if len(problems.Errors()) > 0 {
		return problems
	}
	if !p.Is(ran.Digest, text) {
		return fmt.Errorf("resuming %q: plan.toml was changed since the run started", r.dir.Path())
	}
	r.setPlan(p)
	if r.c.Places, err = PlacesOf(r.c, r.state.Run); err == nil {
		r.c.Inputs, err = r.findInputs()
	}
	return err
}

// resumeError is an error of this check, with a hint for the user.
func (r *run) resumeError(hint, format string, args ...any) error {
	return &result.Error{Doing: "resuming run", File: r.c.Out, Err: fmt.Errorf(format, args...), Hint: hint}
}

// changes are warnings about what differs from the session before, where
// intervals will contain rounds of both.
func (r *run) changes() (out []result.Warning) {
	// At a pause for a manual axis the user changes the machine on request, and
	// no interval contains cases of two settings.
	if p := r.state.Paused; len(r.state.Sessions) == 0 || p != nil && p.Key != "" {
		return nil
	}
	last, info := r.state.Sessions[len(r.state.Sessions)-1], r.c.Engine.Info()
	is, was := facts(r.c.Host, info.Name, info.Version), facts(last.Host, last.Engine.Name, last.Engine.Version)
	for _, what := range slices.Sorted(maps.Keys(is)) {
		if old, ok := was[what]; ok && old != is[what] {
			out = append(out, result.Warning{Kind: "changed", Text: fmt.Sprintf(
				"the %s is %q in session %d and was %q before: intervals contain rounds of both",
				what, is[what], r.session, old)})
		}
	}
	return out
}

// facts are what sessions of one run should have in common, by what they are about.
func facts(host result.Host, engineName, version string) map[string]string {
	join := func(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }
	all := map[string]string{
		"machine": join(host.Model, host.CPU, host.Arch),
		"system":  join(host.OS, host.OSVersion, host.OSBuild),
		"engine":  join(engineName, version),
	}
	for _, d := range host.Disks {
		all[fmt.Sprintf("disk of place %q", d.Place)] = join(d.Filesystem, d.Bus, d.Device, d.Medium)
	}
	return all
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
			out = append(out, Place{Name: p.Name, Path: path, Backing: known.Backing[p.Name]})
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
		path, again := cmp.Or(r.c.Inputs[in.Name], known.Inputs[in.Name]), "give it again with --input "+in.Name+"=PATH"
		isGenerated := in.Optional && !slices.Contains(r.state.Run.Inputs, in.Name)
		switch {
		case isGenerated && r.c.Inputs[in.Name] != "":
			return nil, r.resumeError("omit --input "+in.Name+", or start a new run",
				"it was started without the file %q, with generated data instead", in.Name)
		case isGenerated:
			continue
		case path == "":
			return nil, r.resumeError(again, "the file %q is not known any more", in.Name)
		}
		if err := CheckInput(path); err != nil {
			return nil, r.resumeError(again, "opening the file %q: %w", in.Name, err)
		}
		out[in.Name] = path
	}
	return out, nil
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

// pauseRun is the step pause, a checkpoint: the containers stay, the session
// ends. The journal has the containers that the run needs to continue.
func (x *caseRun) pauseRun(ctx context.Context, st plan.Step) error {
	if x.hasSlept() { // the next session could not find out
		return errSlept
	}
	for _, h := range x.containers {
		h.Attached = h.att != nil
	}
	if err := x.detachAll(ctx); err != nil {
		return err
	}
	p := &result.Pause{Case: x.c.ID, Round: x.round, Step: x.index + 1, Place: x.c.Settings.Place,
		Message: x.r.pauseMessage(st.Message)}
	for _, name := range slices.Sorted(maps.Keys(x.containers)) {
		h := x.containers[name]
		id, err := h.place.fingerprint(h.con.Name())
		if err != nil {
			return err
		}
		if name == "" {
			p.Container, p.Identity = h.con.Name(), id
		}
		state, _ := json.Marshal(h.containerState) // strings and numbers never fail
		p.Containers = append(p.Containers, result.PausedContainer{As: name, Place: h.place.name,
			Container: h.con.Name(), Identity: id, State: state})
	}
	if err := x.r.commit(result.Record{Pause: p}); err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = p.Container != ""
	return &pausedError{p.Message}
}

// restore opens the containers that a pause left, if they have not changed, and
// attaches those that were attached at the pause.
func (x *caseRun) restore(ctx context.Context) error {
	var attached []*handle
	for _, left := range x.pause.Containers {
		var state containerState
		f, err := x.r.placeNamed(left.Place)
		if err == nil {
			err = json.Unmarshal(left.State, &state)
		}
		var con engine.Container
		if err == nil {
			con, err = x.eng.Open(ctx, f.dir, left.Container, state.Spec)
		}
		id := ""
		if err == nil {
			id, err = f.fingerprint(left.Container)
		}
		if err == nil && id != left.Identity {
			err = fmt.Errorf("it was changed meanwhile: %w", engine.ErrGone)
		}
		if err != nil {
			return fmt.Errorf("opening %q after the pause: %w", left.Container, err)
		}
		h := x.adopt(con, f, state)
		x.containers[left.As] = h
		if h.Attached {
			attached = append(attached, h)
		}
	}
	if err := ctx.Err(); err != nil || len(attached) == 0 { // the pause is still valid
		return err
	}
	// Attaching changes containers. A run that is killed or interrupted from now
	// on cannot continue at the pause: the record of a step start ends it.
	start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: x.pause.Step - 1, Do: "pause"}
	if err := x.r.commit(result.Record{StepStart: start}); err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = false
	for _, h := range attached {
		var err error
		if h.att, err = h.con.Attach(ctx, h.Options); err != nil {
			return err
		}
	}
	return nil
}
