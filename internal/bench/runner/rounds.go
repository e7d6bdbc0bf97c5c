package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// runRounds measures the remaining case-rounds: by manual settings, then
// rounds, then cases in shuffled order.
func (r *run) runRounds(ctx context.Context) error {
	if err := r.clearLeftovers(ctx); err != nil {
		return err
	}
	r.countWrites()
	r.forecast = newForecast(r.p, r.cases, r.announceCost(ctx))
	r.goal = r.p.Run.Rounds
	paused := r.state.Paused
	// A container that a pause left must not be disturbed by writes to its
	// place.
	if paused == nil || paused.Container == "" {
		if err := r.precondition(ctx); errors.Is(err, syscall.ENOSPC) {
			return &stopError{err}
		} else if err != nil {
			return err
		}
	}
	// A pause inside a case comes first: its containers occupy the places.
	if paused != nil {
		if c := r.findCase(paused.Case); c != nil {
			if err := r.runCaseRound(ctx, *c, paused.Round, paused); err != nil {
				return err
			}
		}
	}
	for _, setting := range r.manualCombinations() {
		if err := r.requireManual(setting); err != nil {
			return err
		}
		for round := 1; ; round++ {
			more, err := r.needsRound(round)
			if err == nil && more {
				err = r.runRound(ctx, round, setting)
			}
			if err != nil {
				return err
			} else if !more {
				break
			}
		}
	}
	return nil
}

// countWrites adds up how much a round writes, for the progress, and what
// earlier sessions wrote, with attempts that do not count.
func (r *run) countWrites() {
	for _, c := range r.cases {
		r.roundWrites += int64(plan.Estimate(r.p, c).BytesWritten)
	}
	for _, p := range r.state.Preconditions {
		for _, s := range p.Samples {
			r.writtenByAll += s.Bytes
		}
	}
	for _, a := range r.state.Attempts {
		for i := range a.Steps {
			r.writtenByAll += writtenBy(&a.Steps[i])
		}
	}
}

// runRound runs the cases of one round and one manual setting that have not
// been measured yet. Their order depends on seed and round only.
func (r *run) runRound(ctx context.Context, round int, setting []plan.KeyValue) error {
	order := r.state.Orders[round]
	if order == nil {
		for _, c := range r.cases {
			order = append(order, c.ID)
		}
		rng := mathrand.New(mathrand.NewPCG(r.p.Run.Seed, uint64(round)))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		r.state.Orders[round] = order
		r.append(result.Record{Round: &result.RoundStart{Round: round, Order: order}})
	}
	for _, id := range order {
		c := r.findCase(id)
		if c == nil || !slices.Equal(c.Settings.Manual, setting) {
			continue
		}
		if p := r.state.Paused; p != nil && p.Case == id && p.Round == round {
			continue // this session has continued the pause
		}
		if r.hasEnded(id, round) {
			r.finished++
			r.forecast.finish(id)
			continue
		}
		if err := r.runCaseRound(ctx, *c, round, nil); err != nil {
			return err
		}
	}
	return nil
}

// findCase is the case of that id, nil if the plan has none.
func (r *run) findCase(id string) *plan.Case {
	i := slices.IndexFunc(r.cases, func(c plan.Case) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &r.cases[i]
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
			return cmp.Or[error](r.commit(result.Record{Pause: pause}), &pausedError{text})
		}
	}
	return nil
}

// pauseMessage is an instruction with the command that continues the run.
func (r *run) pauseMessage(instruction string) string {
	return strings.TrimRight(instruction, ". ") + ", then continue with: " + r.resumeCommand()
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
	var needed []string
	if p := r.state.Paused; p != nil {
		for _, o := range p.Containers {
			needed = append(needed, o.Container)
		}
	}
	for _, a := range r.state.Attempts {
		if r.c.Keep && a.End != nil && a.End.Status == result.Done {
			needed = append(needed, a.Start.Container)
			r.findKeptImages(ctx, a)
		}
	}
	for _, f := range r.folders {
		// The name of a needed container has an extension, or that of a step of
		// the same case that made it from the container: base-NAME.
		err := f.clear(func(name string) bool {
			return slices.ContainsFunc(needed, func(base string) bool {
				rest, ok := strings.CutPrefix(name, base)
				return ok && base != "" && (rest == "" || rest[0] == '.' || rest[0] == '-')
			})
		})
		if err != nil {
			return fmt.Errorf("removing leftovers in %s: %w", f.title, err)
		}
	}
	return nil
}

// findKeptImages collects the command lines that open the images that an earlier
// session kept. It omits images that the user has removed since.
func (r *run) findKeptImages(ctx context.Context, a *result.Attempt) {
	c, f := r.findCase(a.Start.Case), r.places[a.Start.Place]
	if c == nil || f == nil {
		return
	}
	list, _ := f.dir.ReadDir(".") // what cannot be listed cannot be opened either
	for _, e := range list {
		if base, _, _ := strings.Cut(e.Name(), "."); base != a.Start.Container {
			continue
		}
		con, err := engineFor(r.c.Engine, c.Settings).Open(ctx, f.dir, e.Name(), specOf(c.Settings))
		if err == nil {
			r.kept = append(r.kept, con.OpenWith(filepath.Join(f.dir.Path(), con.Name()))...)
		}
	}
}

// needsRound reports whether a round is run. With rounds = "auto" the journal
// has the decision after the round before; a missing one is made now, from the
// journal.
func (r *run) needsRound(round int) (bool, error) {
	if r.auto == nil {
		return round <= r.p.Run.Rounds, nil
	}
	r.goal = nextLook(r.auto, round)
	if round == 1 || r.state.Orders[round] != nil {
		return true, nil
	}
	if i := slices.IndexFunc(r.state.Looks, func(l result.Look) bool { return l.Round == round-1 }); i >= 0 {
		return r.state.Looks[i].Stop == "", nil
	}
	look, err := r.decideRounds(round - 1)
	if err != nil || look == nil {
		return err == nil, err
	}
	r.state.Looks = append(r.state.Looks, *look)
	if look.Stop == "" { // the reason of the end is part of the report
		r.c.Progress.Message(look.Text)
	}
	r.append(result.Record{Look: look})
	return look.Stop == "", r.journalErr
}

// decideRounds judges the run after so many rounds. It is nil where no decision
// is needed: the plan does not look after this round, and no limit is reached.
func (r *run) decideRounds(done int) (look *result.Look, err error) {
	a := r.auto
	look = &result.Look{Round: done, ElapsedNS: r.now(), Written: r.writtenByAll}
	for _, s := range r.state.Sessions { // a lost session counts until its last record
		look.ElapsedNS += int64(max(0, s.Finished.Sub(s.Started)))
	}
	// Limits come before precision: a run that reaches one ends here in any
	// case, and the text reports how precise it is.
	switch last := a.Looks[len(a.Looks)-1]; {
	case done >= last && last < a.MaxRounds, a.MaxWritten > 0 && r.writtenByAll+bytesPerRound(r.p) > a.MaxWritten:
		look.Stop = result.StopWritten
	case done >= last:
		look.Stop = result.StopRounds
	case a.MaxTimeNS > 0 && look.ElapsedNS+look.ElapsedNS/int64(done) > a.MaxTimeNS:
		look.Stop = result.StopTime
	}
	if look.Stop == "" && !slices.Contains(a.Looks, done) {
		return nil, nil
	}
	// From the journal, not from memory: a resumed run makes the same decision.
	res, err := r.foldJournal()
	if err == nil {
		look.Judged, look.Wide, err = analysis.Widths(r.p, res)
	}
	switch {
	case look.Judged == 0:
		look.Stop = result.StopNothing
	case len(look.Wide) == 0:
		look.Stop = result.StopPrecise
	}
	want, widest := units.Share(a.Precision), 0.0
	for _, w := range look.Wide {
		widest = max(widest, w.Half)
	}
	wide := fmt.Sprintf("%d of %d intervals are wider than ± %s", len(look.Wide), look.Judged, want)
	if widest > 0 {
		wide += fmt.Sprintf(", the widest ± %.1f %%", 100*widest)
	}
	look.Text = fmt.Sprintf(lookTexts[look.Stop], units.Count(done, "round"), want, wide, a.MaxRounds,
		units.Duration(a.MaxTimeNS).Human(), units.Bytes(a.MaxWritten).Human())
	return look, err
}

// lookTexts are the lines about decisions by Look.Stop. Their values are the
// rounds, the precision, how wide the intervals are, and the limits of rounds,
// time and bytes.
var lookTexts = map[string]string{
	"":                 "after %[1]s %[3]s: continuing",
	result.StopPrecise: "ended after %[1]s: every interval is within ± %[2]s",
	result.StopNothing: "ended after %[1]s: no case gave a number that more rounds could make more certain",
	result.StopRounds:  "ended after %[1]s: no more than %[4]d are allowed, and %[3]s",
	result.StopTime:    "ended after %[1]s: another would end after the limit of %[5]s, and %[3]s",
	result.StopWritten: "ended after %[1]s: another would exceed the limit of %[6]s written, and %[3]s",
}

// precondition writes to every place until its rate is steady, once in a
// session: while it is idle, a drive empties its cache and cools down.
func (r *run) precondition(ctx context.Context) error {
	if r.p.Run.Precondition != plan.Steady {
		return nil
	}
	var done []*workFolder
	for _, c := range r.cases {
		f := r.places[c.Settings.Place]
		if f == nil || slices.Contains(done, f) {
			continue
		}
		done = append(done, f)
		rec := &result.Precondition{Session: r.session, Place: c.Settings.Place, Window: r.p.Run.SteadyWindow,
			Limit: float64(r.p.Run.SteadyLimit), Slope: -1}
		r.c.Progress.Message(fmt.Sprintf("writing to %s until its rate settles: at most %s and %s", f.title,
			r.p.Run.SteadyTime.Human(), r.p.Run.SteadyWritten.Human()))
		if err := r.preconditionPlace(ctx, f, rec); err != nil {
			return fmt.Errorf("writing to %s until its rate settles: %w", f.title, err)
		}
		for _, s := range rec.Samples {
			r.writtenByAll += s.Bytes
		}
		if err := r.commit(result.Record{Precondition: rec}); err != nil {
			return err
		}
		if !rec.Steady {
			r.warn("", "not-steady", rec.Text)
		}
	}
	return nil
}

// preconditionPlace writes files of one size to a native folder, each after
// deleting the last, until the rate is steady or a limit is reached.
func (r *run) preconditionPlace(ctx context.Context, f *workFolder, rec *result.Precondition) error {
	return r.withNativeFolder(ctx, f, "precondition", func(vol workload.Volume) error {
		return r.settleRate(ctx, f, vol, rec)
	})
}

// withNativeFolder calls do with a native folder at a place. It removes the
// folder on every return path.
func (r *run) withNativeFolder(
	ctx context.Context, f *workFolder, name string, do func(workload.Volume) error,
) (err error) {
	con, err := nativeEngine(r.c.Engine).Create(ctx, f.dir, name, engine.Spec{})
	if err != nil {
		return err
	}
	var att engine.Attachment
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if att != nil {
			_, e := att.Detach(end, false)
			err = errors.Join(err, e)
		}
		err = errors.Join(err, con.Remove(end))
	}()
	if att, err = con.Attach(ctx, engine.AttachOptions{}); err != nil {
		return err
	}
	return do(att.Volume())
}

// settleRate writes files to a volume until its rate is steady or a limit is
// reached.
func (r *run) settleRate(ctx context.Context, f *workFolder, vol workload.Volume, rec *result.Precondition) error {
	start, o, limit := r.c.Clock.Now(), r.p.Run, ""
	for limit == "" {
		n, took := len(rec.Samples), r.c.Clock.Now()-start
		written := units.Bytes(n) * o.SteadyFile
		switch {
		case n >= o.SteadyWindow && math.Abs(rec.Slope) < rec.Limit:
			rec.Steady = true
			rec.Text = fmt.Sprintf("%s settled after %s and %s", f.title, units.Duration(took).Human(), written.Human())
			return nil
		case took >= o.SteadyTime.Std():
			limit = "within " + o.SteadyTime.Human()
		case written+o.SteadyFile > o.SteadyWritten:
			limit = "within " + o.SteadyWritten.Human() + " written"
		default:
			if err := r.addSteadySample(ctx, vol, rec); err != nil {
				return err
			}
		}
	}
	rec.Text = fmt.Sprintf("%s: its rate did not settle %s: over the last %d files it still changed by %.2g %% a file",
		f.title, limit, rec.Window, 100*math.Abs(rec.Slope))
	if n := len(rec.Samples); n < rec.Window {
		rec.Text = fmt.Sprintf("%s: its rate could not settle %s, which allows %d of the %d files of a window",
			f.title, limit, n, rec.Window)
	}
	return nil
}

// addSteadySample writes, flushes and deletes one file with the I/O settings of
// the plan, and computes the slope of the last window.
func (r *run) addSteadySample(ctx context.Context, vol workload.Volume, rec *result.Precondition) error {
	n := len(rec.Samples) + 1
	out, err := r.writeTrial(ctx, vol, "precondition", n, r.p.Run.SteadyFile)
	if err != nil {
		return err
	}
	s := result.SteadySample{Bytes: out.Bytes}
	for _, x := range out.Samples {
		s.DurationNS += x.DurationNS
	}
	if rec.Samples = append(rec.Samples, s); n >= rec.Window {
		rec.Slope = relativeSlope(rec.Samples[n-rec.Window:])
	}
	return nil
}

// writeTrial writes, flushes and deletes the n-th file that is no measurement of a
// case, with the I/O settings of the plan.
func (r *run) writeTrial(
	ctx context.Context, vol workload.Volume, name string, n int, size units.Bytes,
) (workload.Outcome, error) {
	data := workload.NewData(r.p.Run.Seed, n, name, "", 0)
	key := workload.Key{Seed: r.p.Run.Seed, Round: r.session, Step: name, Batch: n}
	items := equalFiles(1, size, key)
	o := r.baseOptions(data)
	o.Sync, o.Cache = hostio.SyncMode(r.p.Defaults.Sync), r.p.Defaults.Cache
	out, err := workload.Write(ctx, vol, items, o)
	if err != nil {
		return out, err
	}
	_, err = workload.Delete(ctx, vol, items, o)
	return out, err
}

// relativeSlope is the slope of the least-squares line of the rate over the
// number of the sample, as a share of the mean rate: what fio compares with the
// limit of steadystate=bw_slope.
func relativeSlope(samples []result.SteadySample) float64 {
	n := float64(len(samples))
	var sx, sy, sxx, sxy float64
	for i, s := range samples {
		x, y := float64(i), float64(s.Bytes)/float64(max(s.DurationNS, 1))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx) / (sy / n)
}
