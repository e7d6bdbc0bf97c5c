package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// runRounds measures the remaining case-rounds: by manual settings, then
// rounds, then cases in shuffled order.
func (r *run) runRounds(ctx context.Context) error {
	if err := r.clearLeftovers(ctx); err != nil {
		return err
	}
	r.findKeptImages(ctx)
	if r.session > 1 && !r.pauseHeld { // images that are kept already occupy their space
		c := r.c
		c.Keep = false
		if err := checkRunSpace(c); err != nil {
			return err
		}
	}
	// For the progress: how much the whole run writes, and how much of it is
	// done.
	for _, c := range r.cases {
		r.roundWrites += int64(plan.Estimate(r.p, c).BytesWritten)
	}
	r.forecast = newForecast(r.p, r.cases)
	r.goal = r.p.Run.Rounds
	r.addEarlierWrites()
	// A container that a pause left must not be disturbed by writes to its
	// place.
	paused := r.state.Paused
	if paused == nil || paused.Container == "" {
		if err := r.precondition(ctx); errors.Is(err, syscall.ENOSPC) {
			return &stopError{err}
		} else if err != nil {
			return err
		}
	}
	// A pause inside a case comes first: its containers occupy the places.
	if paused != nil && paused.Case != "" {
		if err := r.runCaseRound(ctx, paused.Case, paused.Round, paused); err != nil {
			return err
		}
	}
	for _, setting := range r.manualCombinations() {
		if err := r.requireManual(setting); err != nil {
			return err
		}
		for round := 1; ; round++ {
			if more, err := r.needsRound(round); err != nil {
				return err
			} else if !more {
				break
			}
			if err := r.runRound(ctx, round, setting); err != nil {
				return err
			}
		}
	}
	return nil
}

// runRound runs the cases of one round and one manual setting that have not
// been measured yet.
func (r *run) runRound(ctx context.Context, round int, setting []plan.KeyValue) error {
	if r.state.Orders[round] == nil {
		r.state.Orders[round] = r.shuffledCases(round)
		order := &result.RoundStart{Round: round, Order: r.state.Orders[round]}
		if err := r.append(result.Record{Round: order}); err != nil {
			return err
		}
	}
	for _, id := range r.state.Orders[round] {
		c := r.findCase(id)
		if c == nil || !slices.Equal(c.Settings.Manual, setting) {
			continue
		}
		if r.done[caseRoundKey{id, round}] {
			continue // measured after the pause that this session continued
		}
		if r.hasEnded(id, round) {
			r.finished++
			r.forecast.finish(id)
			continue
		}
		if err := r.runCaseRound(ctx, id, round, nil); err != nil {
			return err
		}
	}
	return nil
}

// findCase is the case of that id, nil if the plan has none.
func (r *run) findCase(id string) *plan.Case {
	for i := range r.cases {
		if r.cases[i].ID == id {
			return &r.cases[i]
		}
	}
	return nil
}

// hasEnded reports whether this session need not measure a case-round: it ended
// earlier, and is not to be repeated.
func (r *run) hasEnded(id string, round int) bool {
	a := r.state.Final(id, round)
	return a != nil && a.End != nil && !(r.c.RetryFailed && a.Failed())
}

// isMeasured reports whether all rounds of a manual setting have ended.
func (r *run) isMeasured(setting []plan.KeyValue) bool {
	for _, c := range r.cases {
		for round := 1; round <= r.p.Run.Rounds; round++ {
			if slices.Equal(c.Settings.Manual, setting) && !r.hasEnded(c.ID, round) {
				return false
			}
		}
	}
	return true
}

// manualCombinations are the settings of the manual axes in plan order; one
// empty setting without axes.
func (r *run) manualCombinations() [][]plan.KeyValue {
	var out [][]plan.KeyValue
	for _, c := range r.cases {
		if !slices.ContainsFunc(out, func(t []plan.KeyValue) bool { return slices.Equal(t, c.Settings.Manual) }) {
			out = append(out, c.Settings.Manual)
		}
	}
	return out
}

// requireManual pauses the run unless the user has set every manual axis to its
// wanted value.
func (r *run) requireManual(want []plan.KeyValue) error {
	if r.isMeasured(want) {
		return nil
	}
	for _, kv := range want {
		for _, m := range r.p.Manual {
			if m.Name != kv.Key || r.isSet(m, kv.Value) {
				continue
			}
			text := r.pauseMessage(strings.ReplaceAll(m.Instructions, "{value}", kv.Value))
			pause := &result.Pause{Message: text, Key: kv.Key, Value: kv.Value}
			if err := r.commit(result.Record{Pause: pause}); err != nil {
				return err
			}
			return &pausedError{text}
		}
	}
	return nil
}

// pauseMessage is an instruction with the command that continues the run.
func (r *run) pauseMessage(instruction string) string {
	return fmt.Sprintf("%s, then continue with: dmgbench resume %s", strings.TrimRight(instruction, ". "), r.dir.Path())
}

// isSet reports whether a manual axis has the value: by the facts of the host
// where the plan names one, else because the user resumed the run after the
// pause that requested it.
func (r *run) isSet(m plan.Manual, value string) bool {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		switch m.Check {
		case "cpus":
			return strconv.Itoa(r.c.Host.CPUs) == value
		case "memory":
			return strconv.FormatInt(r.c.Host.Memory, 10) == value
		}
	}
	v, ok := r.state.Manual[m.Name]
	return ok && v == value
}

// isContainerName reports whether name is the container base, with an extension
// or as the container base-NAME that a step of the same case made.
func isContainerName(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base)
	return ok && base != "" && (rest == "" || rest[0] == '.' || rest[0] == '-')
}

// keptEarlier are the case-rounds of earlier sessions for which --keep keeps
// the images.
func (r *run) keptEarlier() []*result.Attempt {
	var out []*result.Attempt
	for _, a := range r.state.Attempts {
		if r.c.Keep && a.End != nil && a.End.Status == result.Done {
			out = append(out, a)
		}
	}
	return out
}

// clearLeftovers removes what an interrupted session left in the run's folders,
// except the containers of a pause and kept images of finished cases. It
// detaches what that session left attached first.
func (r *run) clearLeftovers(ctx context.Context) error {
	if r.session > 1 {
		_, err := r.detachImages(ctx)
		if r.maybeAttached = err != nil; err != nil {
			return err
		}
	}
	var keep []string
	if p := r.state.Paused; p != nil {
		keep = append(keep, p.Container)
		for _, o := range p.Others {
			keep = append(keep, o.Container)
		}
	}
	for _, a := range r.keptEarlier() {
		keep = append(keep, a.Start.Container)
	}
	for _, f := range r.places {
		err := f.clear(func(name string) bool {
			return slices.ContainsFunc(keep, func(base string) bool { return isContainerName(name, base) })
		})
		if err != nil {
			return fmt.Errorf("removing leftovers in %s: %w", f.title, err)
		}
	}
	return nil
}

// findKeptImages collects the command lines that open the images that earlier
// sessions kept. It omits images that the user has removed since.
func (r *run) findKeptImages(ctx context.Context) {
	for _, a := range r.keptEarlier() {
		c, f := r.findCase(a.Start.Case), r.places[a.Start.Place]
		if c == nil || f == nil {
			continue
		}
		list, err := f.dir.ReadDir(".")
		if err != nil {
			continue
		}
		for _, e := range list {
			base, _, _ := strings.Cut(e.Name(), ".")
			if base != a.Start.Container {
				continue
			}
			con, err := engineFor(r.c.Engine, c.Settings).Open(ctx, f.dir, e.Name(), specOf(c.Settings))
			if err == nil {
				r.kept = append(r.kept, con.OpenWith(filepath.Join(f.dir.Path(), con.Name()))...)
			}
		}
	}
}
