package runner

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// Run executes a plan from the start. The error is about the run as a whole;
// failed cases are in the journal and in the outcome's status.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if err := checkWritable(c); err != nil {
		return Outcome{}, err
	}
	if err := checkRunSpace(c); err != nil {
		return Outcome{}, err
	}
	auto, err := AutoRounds(c.Plan)
	if err != nil {
		return Outcome{}, err
	}
	id := newID(c.Clock.Wall())
	dir, err := result.CreateRun(c.Out, id)
	if err != nil {
		return Outcome{}, err
	}
	defer dir.Close()
	if c.Volatile {
		dir.Volatile()
	}
	if err := dir.WriteFile(result.PlanFile, c.Plan.Canonical()); err != nil {
		return Outcome{}, err
	}
	r := newRun(c, c.Plan, dir, &result.State{Run: result.RunStart{ID: id, Auto: auto}})
	if err := r.append(result.Record{Run: r.runStart()}); err != nil {
		return Outcome{}, err
	}
	return r.runSession(ctx)
}

// Resume continues an interrupted or paused run in the folder dir.
func Resume(ctx context.Context, dir string, c Config) (Outcome, error) {
	r, err := resumeRun(ctx, dir, c)
	if err != nil {
		return Outcome{}, err
	}
	defer r.dir.Close()
	state := r.state
	if state.Ended != nil && !(c.RetryFailed && state.FailedRounds() > 0) {
		if !c.Keep && !state.Run.Keep {
			unregisterEnded(c.StateDir, state.Run.ID)
		}
		return completeOutcome(dir, state), nil
	}
	if err := r.checkResume(); err != nil {
		return Outcome{}, err
	}
	r.pauseHeld = state.Paused != nil && state.Paused.Container != ""
	r.maybeAttached = true // until the session has looked for images of earlier ones
	return r.runSession(ctx)
}

// resumeRun opens and locks the run folder and reads its journal.
func resumeRun(ctx context.Context, dir string, c Config) (*run, error) {
	var say func(string)
	if c.Progress != nil {
		say = c.Progress.Message
	}
	var d *result.RunDir
	err := RetryWhileLocked(ctx, c.Clock, result.ErrBusy, say, func() (err error) {
		d, err = result.ResumeRun(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	recs, err := d.Journal()
	if err != nil {
		d.Close()
		return nil, err
	}
	state, err := result.Replay(recs)
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	c.Out, c.Identify, c.Keep = dir, state.Run.Identify, c.Keep || state.Run.Keep
	c.RetryFailed = c.RetryFailed || state.Retrying()
	return newRun(c, nil, d, state), nil
}

// runStart is the first record of the journal. It contains everything that is
// fixed for the whole run; paths are in it only with --identify.
func (r *run) runStart() *result.RunStart {
	s := &result.RunStart{
		ID: r.id, Tool: r.c.Tool, Seed: r.p.Run.Seed, Rounds: r.p.Run.Rounds, Identify: r.c.Identify, Keep: r.c.Keep,
		Auto: r.auto, Plan: result.PlanRef{Name: r.p.Name, Title: r.p.Title, Digest: r.p.Digest()},
	}
	s.Inputs, s.Departures = inputs(r.c)
	for _, name := range missingPlaces(r.c) {
		if _, here := plan.HereFor(name); here { // a change of the plan, which is a deviation already
			continue
		}
		s.Departures = append(s.Departures, result.Departure{Kind: "place",
			Text: fmt.Sprintf("no folder was given for place %q: the run folder is used", name)})
	}
	// Given marks the places that the user named: a resumed run must find them
	// again.
	for _, p := range allPlaces(r.c) {
		place := result.Place{Name: p.Name, Given: slices.Contains(r.c.Places, p)}
		if r.c.Identify {
			place.Path = p.Path
		}
		s.Places = append(s.Places, place)
	}
	for _, c := range r.cases {
		pc := result.PlanCase{ID: c.ID, Keys: [][2]string{}, Baseline: c.Baseline, Target: requestedTarget(c.Settings)}
		for _, kv := range c.Keys {
			pc.Keys = append(pc.Keys, [2]string{kv.Key, kv.Value})
		}
		s.Cases = append(s.Cases, pc)
	}
	return s
}

// shuffledCases is the order of the cases in one round. It depends on seed and
// round only.
func (r *run) shuffledCases(round int) []string {
	ids := make([]string, len(r.cases))
	for i, c := range r.cases {
		ids[i] = c.ID
	}
	rng := mathrand.New(mathrand.NewPCG(r.p.Run.Seed, uint64(round)))
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// completeOutcome is the outcome of resuming a run that has ended.
func completeOutcome(dir string, s *result.State) Outcome {
	out := Outcome{Dir: dir, Status: s.Ended.Status, Complete: true, Message: "the run is complete; no work is left"}
	if n := s.FailedRounds(); n > 0 {
		out.Message = fmt.Sprintf("the run has ended; %s failed; repeat with: dmgbench resume --retry-failed %s",
			units.Count(n, "case-round"), dir)
	}
	return out
}
