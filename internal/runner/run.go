package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

type caseSettings = plan.Settings

// run is one execution of one plan, in one session.
type run struct {
	c        Config
	p        *plan.Plan
	dir      *result.RunDir
	state    *result.State
	auto     *result.AutoRounds // nil where the plan has a number of rounds
	spent    int64              // bytes that steps and canaries of all sessions wrote
	aim      int                // rounds that there will be at least, for the progress
	id       string
	session  int
	holding  bool // the container of a pause is still wanted
	stuck    bool // a container is still attached, whatever was done
	doubt    bool // something may be attached below the run's folders
	started  time.Duration
	cases    []plan.Case
	places   map[string]*place
	buffers  workload.Buffers
	kept     []string
	written  int64
	toWrite  int64
	forecast forecast
	finished int
	done     map[caseRoundKey]bool // ended in this session
	told     map[string]bool       // warnings that the progress was told
	asked    map[string]string     // manual settings that the user resumed behind, by axis
}

// Run executes a plan from the beginning. The error is about the run as a whole;
// failing cases are in the journal and in the outcome's status.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if c.Progress == nil {
		c.Progress = silent{}
	}
	if err := writable(c); err != nil {
		return Outcome{}, err
	}
	if err := fits(c); err != nil {
		return Outcome{}, err
	}
	auto, err := Auto(c.Plan)
	if err != nil {
		return Outcome{}, err
	}
	id := newID(c.Clock.Wall())
	dir, err := result.CreateRun(c.Out, id)
	if err != nil {
		return Outcome{}, err
	}
	defer dir.Close()
	c.Warnings = append(slices.Clone(c.Warnings), dir.Warnings()...)
	if c.Volatile {
		dir.Volatile()
	}
	r := &run{c: c, p: c.Plan, dir: dir, id: id, cases: c.Plan.Cases(), session: 1, auto: auto}
	if err := dir.WriteFile("plan.toml", c.Plan.Canonical()); err != nil {
		return Outcome{}, err
	}
	if err := r.append(result.Record{Kind: result.KindRun, Run: r.start()}); err != nil {
		return Outcome{}, err
	}
	return r.drive(ctx)
}

// Resume goes on with an interrupted or paused run in the folder dir.
func Resume(ctx context.Context, dir string, c Config) (Outcome, error) {
	if c.Progress == nil {
		c.Progress = silent{}
	}
	var rd *result.RunDir
	err := Patiently(ctx, c.Clock, result.ErrBusy, c.Progress.Message, func() (err error) {
		rd, err = result.ResumeRun(dir)
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	defer rd.Close()
	recs, err := rd.Journal()
	if err != nil {
		return Outcome{}, err
	}
	state, err := result.Replay(recs)
	if err != nil {
		return Outcome{}, fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	if state.Ended != nil && !(c.RetryFailed && state.FailedRounds() > 0) {
		if !c.Keep && !state.Run.Keep {
			unregisterEnded(c.StateDir, state.Run.ID)
		}
		return complete(dir, state), nil
	}
	c.RetryFailed = c.RetryFailed || state.Retrying()
	if err := sameEngine(dir, state, c.Engine.Info()); err != nil {
		return Outcome{}, err
	}
	p, err := planAgain(rd, state.Run.Plan)
	if err != nil {
		return Outcome{}, err
	}
	c.Plan, c.Out, c.Identify, c.Keep = p, dir, state.Run.Identify, c.Keep || state.Run.Keep
	c.Warnings = append(slices.Clone(c.Warnings), rd.Warnings()...)
	r := &run{c: c, p: p, dir: rd, state: state, id: state.Run.ID, cases: p.Cases(), session: len(state.Sessions) + 1, asked: askedFor(recs), auto: state.Run.Auto}
	if r.c.Places, err = placesAgain(c, state.Run); err != nil {
		return Outcome{}, err
	}
	if r.c.Inputs, err = inputsAgain(c, p, state.Run); err != nil {
		return Outcome{}, err
	}
	r.holding = state.Paused != nil && state.Paused.Container != ""
	r.doubt = true // until it is known what an earlier session left
	return r.drive(ctx)
}

// newID is a safe name that no other run has.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

func (r *run) start() *result.RunStart {
	s := &result.RunStart{
		ID: r.id, Tool: r.c.Tool, Seed: r.p.Run.Seed, Rounds: r.p.Run.Rounds, Identify: r.c.Identify, Keep: r.c.Keep, Auto: r.auto,
		Plan: result.PlanRef{Name: r.p.Name, Title: r.p.Title, Digest: r.p.Digest()},
	}
	s.Inputs, s.Departures = inputs(r.c)
	for _, name := range missingPlaces(r.c) {
		if _, here := plan.HereFor(name); here { // a change of the plan, which is a departure already
			continue
		}
		s.Departures = append(s.Departures, result.Departure{Kind: "place", Text: fmt.Sprintf("no folder was given for place %q: it lies with the run", name)})
	}
	for _, p := range allPlaces(r.c) {
		place := result.Place{Name: p.Name, Given: slices.Contains(r.c.Places, p)}
		if r.c.Identify {
			place.Path = p.Path
		}
		s.Places = append(s.Places, place)
	}
	for _, c := range r.cases {
		pc := result.PlanCase{ID: c.ID, Keys: [][2]string{}, Baseline: c.Baseline, Target: target(c.Settings)}
		for _, kv := range c.Keys {
			pc.Keys = append(pc.Keys, [2]string{kv.Key, kv.Value})
		}
		s.Cases = append(s.Cases, pc)
	}
	return s
}

func cmpOr(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// append writes one record with the time of day.
func (r *run) append(rec result.Record) error {
	rec.At = r.c.Clock.Wall()
	return r.dir.Append(rec)
}

// tell says a warning when it happens, each text once, whatever its numbers.
func (r *run) tell(caseID, text string) {
	key := strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) {
			return -1
		}
		return c
	}, text)
	if r.told[key] {
		return
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[key] = true
	if caseID != "" {
		text = caseID + ": " + text
	}
	r.c.Progress.Warning(text)
}

// warn keeps a warning; one that cannot be kept stops the run at its next record.
func (r *run) warn(caseID, kind, text string) {
	r.tell(caseID, text)
	_ = r.append(result.Record{Kind: result.KindWarning, Warning: &result.WarningRecord{
		Case: caseID, Warning: result.Warning{Kind: kind, Text: text},
	}})
}

// order is the shuffled order of the cases in one round, from seed and round alone.
func (r *run) order(round int) []string {
	ids := make([]string, len(r.cases))
	for i, c := range r.cases {
		ids[i] = c.ID
	}
	rng := mathrand.New(mathrand.NewPCG(r.p.Run.Seed, uint64(round)))
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}
