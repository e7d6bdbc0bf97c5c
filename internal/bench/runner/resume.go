package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
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
	add := func(what string, nowParts, oldParts []string) {
		if is, was := joinWords(nowParts), joinWords(oldParts); is != was {
			out = append(out, result.Warning{Kind: "changed", Text: fmt.Sprintf(
				"the %s is %q in session %d and was %q before: intervals contain rounds of both",
				what, is, r.session, was)})
		}
	}
	last, info, host := r.state.Sessions[len(r.state.Sessions)-1], r.c.Engine.Info(), r.c.Host
	old := last.Host
	add("machine", []string{host.Model, host.CPU, host.Arch}, []string{old.Model, old.CPU, old.Arch})
	add("system", []string{host.OS, host.OSVersion, host.OSBuild}, []string{old.OS, old.OSVersion, old.OSBuild})
	add("engine", []string{info.Name, info.Version}, []string{last.Engine.Name, last.Engine.Version})
	disk := func(d result.Disk) []string { return []string{d.Filesystem, d.Bus, d.Device, d.Medium} }
	for _, now := range host.Disks {
		if i := slices.IndexFunc(old.Disks, func(d result.Disk) bool { return d.Place == now.Place }); i >= 0 {
			add(fmt.Sprintf("disk of place %q", now.Place), disk(now), disk(old.Disks[i]))
		}
	}
	return out
}

// joinWords joins parts by one space and omits empty ones.
func joinWords(parts []string) string {
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

// pauseRun is the step pause, a checkpoint: the containers stay, the session
// ends. The journal has the containers that the run needs to continue.
func (x *caseRun) pauseRun(ctx context.Context, st plan.Step) error {
	if x.hasSlept() { // the next session could not find out
		return errSlept
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
			continue
		}
		p.Others = append(p.Others, result.PausedContainer{As: name, Place: h.place.name, Container: h.con.Name(),
			Identity: id})
	}
	if err := x.r.commit(result.Record{Pause: p}); err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = p.Container != ""
	return &pausedError{p.Message}
}

// replay follows a step that an earlier session executed, by [stepHandlers]. A
// container that the step made is opened again and must be the one that was
// left. After the last replayed step, containers are attached again.
func (x *caseRun) replay(ctx context.Context, st plan.Step) error {
	// Indexes continue as in the earlier session, since the pause is one of
	// them.
	x.index += 1 + len(st.Steps) // the steps of a parallel block have numbers of their own
	h, err := x.container(st)
	if err == nil {
		err = (&stepRun{x: x, st: st, h: h}).replay(ctx)
	}
	if err != nil || x.isReplaying() {
		return err
	}
	return x.reattach(ctx)
}

// replay replays one step, also one of a parallel block.
func (s *stepRun) replay(ctx context.Context) error {
	handler := stepHandlers[s.st.Do]
	switch {
	case s.st.Expect == "fail": // of a failed step, only the number of its batch remains
		if s.st.Do == "write" && s.h != nil {
			s.h.batches++
		}
	case handler.reopen != nil:
		return handler.reopen(s, ctx)
	case handler.replay != nil:
		handler.replay(s)
	}
	return nil
}

// replayParallel replays the steps of a block one after another.
func (s *stepRun) replayParallel(ctx context.Context) error {
	for _, p := range s.x.splitParallel(s.st.Steps) {
		h, err := p.x.container(p.st)
		if err != nil || h == nil {
			continue
		}
		if err := (&stepRun{x: p.x, st: p.st, h: h}).replay(ctx); err != nil {
			return err
		}
		s.x.merge(p)
	}
	return nil
}

// replayAttach marks the container as attached; reattach attaches it if no
// later step detached it.
func (s *stepRun) replayAttach() { s.h.opts, s.h.att = s.attachOptions(), replayedAttachment{} }

// replayWrite draws the same files as the executed step, since names and sizes
// depend on seed, round, step and batch only.
func (s *stepRun) replayWrite() { s.h.addBatch(s.drawBatch(), s.x.fileSet(s.st)) }

// replayDelete removes the same selection as the executed step.
func (s *stepRun) replayDelete() { s.h.remove(s.h.selected(s.st, s.key())) }

// replayNamed adds the file of a copy or stream step; reattach finds its size.
func (s *stepRun) replayNamed() { s.h.named = append(s.h.named, workload.Item{Name: s.st.To}) }

// reopenMain opens the case's own container that the pause left.
func (s *stepRun) reopenMain(ctx context.Context) error {
	x := s.x
	left := result.PausedContainer{Container: x.pause.Container, Identity: x.pause.Identity}
	main, err := x.reopen(ctx, x.place, left, x.spec)
	if err == nil {
		x.containers[""] = main
	}
	return err
}

// reopenDerived opens a container that a convert, transfer or damage step made
// before the pause.
func (s *stepRun) reopenDerived(ctx context.Context) error {
	others := s.x.pause.Others
	i := slices.IndexFunc(others, func(o result.PausedContainer) bool { return o.As == s.derivedName() })
	if i < 0 {
		return fmt.Errorf("replaying %s: the journal has no container %q at the pause", s.st.Do, s.st.As)
	}
	f, spec, err := s.derivedSpec()
	if err != nil {
		return err
	}
	derived, err := s.x.reopen(ctx, f, others[i], spec)
	if err == nil {
		s.registerDerived(derived)
	}
	return err
}

// reopen opens a container that a pause left, if it has not changed.
func (x *caseRun) reopen(
	ctx context.Context, f *workFolder, left result.PausedContainer, spec engine.Spec,
) (*handle, error) {
	con, err := x.eng.Open(ctx, f.dir, left.Container, spec)
	if err != nil {
		return nil, fmt.Errorf("opening the container that the pause left: %w", err)
	}
	id, err := f.fingerprint(con.Name())
	if err == nil && id != left.Identity {
		err = fmt.Errorf("opening %q after the pause: it was changed meanwhile: %w", con.Name(), engine.ErrGone)
	}
	if err != nil {
		return nil, err
	}
	return x.adopt(con, f, spec), nil
}

// reattach attaches the containers that were attached at the pause, and reads
// from their volumes the sizes of the files that copy and stream steps made.
func (x *caseRun) reattach(ctx context.Context) error {
	var attached []*handle
	for _, h := range x.handles() {
		if h.att != nil {
			h.att, attached = nil, append(attached, h)
		}
	}
	if err := ctx.Err(); err != nil { // the pause is still valid
		return err
	}
	if len(attached) > 0 {
		// Attaching changes containers. A run that is killed or interrupted from
		// now on cannot continue at the pause: the record of a step start ends it.
		start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: x.index - 1, Do: "pause"}
		if err := x.r.commit(result.Record{StepStart: start}); err != nil {
			return &journalError{err}
		}
		x.r.pauseHeld = false
	}
	for _, h := range attached {
		att, err := h.con.Attach(ctx, h.opts)
		if err != nil {
			return err
		}
		h.att = att
		if att.Volume() == nil {
			continue
		}
		for _, it := range slices.Clone(h.named) {
			if err := h.addNamed(att.Volume(), it.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayedAttachment represents an attachment of an earlier session while its
// steps are replayed.
type replayedAttachment struct{ engine.Attachment }

// Detach succeeds, as no image is attached.
func (replayedAttachment) Detach(context.Context, bool) (engine.Report, error) {
	return engine.Report{}, nil
}
