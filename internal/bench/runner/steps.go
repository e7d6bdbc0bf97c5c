package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// What a step needs of the container it acts on.
const (
	needsContainer = ""
	needsVolume    = "volume" // an attached and mounted container
	needsNone      = "none"   // no container
)

// stepHandler is one row of [stepHandlers].
type stepHandler struct {
	needs string
	do    func(*stepRun, context.Context) error
	// replay follows the step as an earlier session executed it, without I/O on
	// files: it brings containers and liveFiles to the state that later steps
	// need. It is nil for steps that do not change that state.
	replay func(*stepRun)
	// reopen does the same for steps that make containers.
	reopen func(*stepRun, context.Context) error
	// timesFiles marks steps with samples of files; their kind is the quantity
	// group of the record.
	timesFiles bool
}

// stepHandlers is how each kind of step is executed, except repeat and pause,
// which [caseRun.runSteps] executes. It is filled by init because the handler
// of parallel refers to it.
var stepHandlers map[string]stepHandler

// The order of rows is that of the protocol: containers, actions on them,
// files.
func init() {
	derive := stepHandler{do: (*stepRun).deriveContainer, reopen: (*stepRun).reopenDerived}
	stepHandlers = map[string]stepHandler{
		"create":   {needs: needsNone, do: (*stepRun).create, reopen: (*stepRun).reopenMain},
		"attach":   {do: (*stepRun).attach, replay: (*stepRun).replayAttach},
		"detach":   {do: (*stepRun).detach, replay: func(s *stepRun) { s.h.att = nil }},
		"remount":  {do: (*stepRun).remount},
		"settle":   {do: (*stepRun).settle},
		"measure":  {do: (*stepRun).measure},
		"convert":  derive,
		"transfer": derive,
		"damage":   derive,
		"parallel": {needs: needsNone, do: (*stepRun).parallel, reopen: (*stepRun).replayParallel},

		"compact": action(needsContainer, func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Compact(ctx, engine.CompactOptions{AllowBattery: st.Battery == "allow"})
		}),
		"resize": action(needsContainer, func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Resize(ctx, int64(st.Size))
		}),
		"check": action(needsContainer, func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Check(ctx, engine.CheckOptions{What: st.What, Repair: st.Repair})
		}),
		"xattr": action(needsContainer, func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Xattr(ctx, st.Action, st.Attr, st.Value)
		}),
		"trim": action(needsVolume, func(ctx context.Context, h *handle, _ plan.Step) (engine.Report, error) {
			return h.att.Trim(ctx)
		}),
		"mkdir": action(needsVolume, func(_ context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return engine.Report{}, h.att.Volume().Mkdir(st.Dir)
		}),

		"write":  {needsVolume, fileStep((*stepRun).write), (*stepRun).replayWrite, nil, true},
		"read":   {needsVolume, fileStep((*stepRun).read), nil, nil, true},
		"verify": {needsVolume, fileStep((*stepRun).verify), nil, nil, false},
		"delete": {needsVolume, fileStep((*stepRun).delete), (*stepRun).replayDelete, nil, false},
		"copy":   {needsVolume, fileStep((*stepRun).copy), (*stepRun).replayNamed, nil, false},
		"stream": {needsVolume, fileStep((*stepRun).stream), (*stepRun).replayNamed, nil, true},
	}
}

// action is the handler of a step that is one timed call of the engine.
func action(needs string, call func(context.Context, *handle, plan.Step) (engine.Report, error)) stepHandler {
	return stepHandler{needs: needs, do: func(s *stepRun, ctx context.Context) error {
		return s.timeReport(func() (engine.Report, error) { return call(ctx, s.h, s.st) })
	}}
}

// stepRun is one step that is being executed or replayed.
type stepRun struct {
	x   *caseRun
	st  plan.Step
	h   *handle      // container that the step acts on; nil only for create and parallel
	rec *result.Step // nil while the step is replayed
}

// do executes one step by its handler.
func (x *caseRun) do(ctx context.Context, st plan.Step, rec *result.Step) error {
	handler, ok := stepHandlers[st.Do]
	if !ok {
		return fmt.Errorf("the runner has no step %q", st.Do)
	}
	s := &stepRun{x: x, st: st, rec: rec}
	if handler.needs == needsNone {
		return handler.do(s, ctx)
	}
	var err error
	switch s.h, err = x.container(st); {
	case err != nil:
		return err
	case s.h == nil:
		return errors.New("no container has been created")
	case handler.needs == needsVolume && (s.h.att == nil || s.h.att.Volume() == nil):
		return errors.New("the container is not mounted")
	}
	return handler.do(s, ctx)
}

// startTimer starts the timed span of a step: what the step itself takes,
// without the bookkeeping around it. The result ends the span.
func (s *stepRun) startTimer() (stop func()) {
	s.rec.StartNS = s.x.r.now()
	return func() { s.rec.DurationNS = s.x.r.now() - s.rec.StartNS }
}

// timeReport times a call of the engine and records its report.
func (s *stepRun) timeReport(call func() (engine.Report, error)) error {
	stop := s.startTimer()
	rep, err := call()
	stop()
	s.rec.BytesFreed = rep.Freed
	s.recordReport(rep)
	if err == nil && s.st.Do == "check" && len(rep.Findings) > 0 {
		return fmt.Errorf("%d problems, first: %s", len(rep.Findings), rep.Findings[0])
	}
	return err
}

// recordReport adds to the record what the engine reported: findings, retries
// inside the timed step, warnings, and the tool's own figures.
func (s *stepRun) recordReport(rep engine.Report) {
	if s.rec.Reported == nil && len(rep.Reported) > 0 {
		s.rec.Reported = map[string]string{}
	}
	maps.Copy(s.rec.Reported, rep.Reported)
	s.rec.RetryNS += int64(rep.Retried)
	s.rec.Findings = append(s.rec.Findings, rep.Findings...)
	for _, w := range rep.Warnings {
		s.warn("engine", "%s", w)
	}
}

// recordMade adds the report about a container or an attachment that was just
// made.
func (s *stepRun) recordMade(made any) {
	if t, ok := made.(engine.Reporter); ok {
		rep := t.TakeReport()
		rep.Findings = nil
		s.recordReport(rep)
	}
}

// warn adds a warning to the record of the step.
func (s *stepRun) warn(kind, format string, args ...any) {
	s.rec.Warnings = append(s.rec.Warnings, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// create makes the case's own container.
func (s *stepRun) create(ctx context.Context) error {
	x := s.x
	defer s.startTimer()()
	con, err := x.eng.Create(ctx, x.place.dir, x.base, x.spec)
	if err != nil {
		return err
	}
	x.containers[""] = x.adopt(con, x.place, x.spec)
	s.recordMade(con)
	return nil
}

// attachOptions are the options of the step, with the defaults of the engine
// where the plan does not set them.
func (s *stepRun) attachOptions() engine.AttachOptions {
	isSet := func(b *bool, value bool) bool { return b != nil && *b == value }
	return engine.AttachOptions{
		ReadOnly: isSet(s.st.ReadOnly, true), NoMount: isSet(s.st.Mount, false), NoVerify: isSet(s.st.Verify, false),
		Cache: s.x.spec.Cache,
	}
}

// attach attaches the container. A failed attach may have taken retries, which
// are recorded, too.
func (s *stepRun) attach(ctx context.Context) error {
	opts, stop := s.attachOptions(), s.startTimer()
	att, err := s.h.con.Attach(ctx, opts)
	stop()
	if err == nil { // one that fails leaves an earlier attachment
		s.h.att, s.h.opts = att, opts
	}
	s.recordMade(s.h.att)
	return err
}

// detach detaches the container. Then, outside the timed span, it drops the
// container's pages from the host's cache.
func (s *stepRun) detach(ctx context.Context) error {
	h := s.h
	if h.att == nil {
		return errors.New("the container is not attached")
	}
	if err := s.timeReport(func() (engine.Report, error) { return h.att.Detach(ctx, false) }); err != nil {
		return err
	}
	if p, ok := h.att.(engine.PostDetachReporter); ok {
		s.recordReport(engine.Report{Reported: p.ReportAfterDetach(ctx).Reported})
	}
	h.att = nil
	if s.x.c.Settings.Cache != "buffered" {
		if err := h.con.Evict(ctx); err != nil {
			s.warn("cache", "evicting the container: %v", err)
		}
	}
	return nil
}

// remount detaches and attaches. Its duration is without the waiting after each
// attach.
func (s *stepRun) remount(ctx context.Context) error {
	start, busy := s.x.r.now(), int64(0)
	for range max(s.st.Times, 1) {
		// A record of its own, as detach sets its duration and findings.
		part := &stepRun{x: s.x, st: s.st, h: s.h, rec: &result.Step{}}
		if err := part.detach(ctx); err != nil {
			return err
		}
		busy += part.rec.DurationNS
		s.recordReport(engine.Report{Reported: part.rec.Reported, Retried: time.Duration(part.rec.RetryNS)})
		s.rec.Warnings = append(s.rec.Warnings, part.rec.Warnings...)
		from := s.x.r.now()
		att, err := s.h.con.Attach(ctx, s.h.opts)
		if err != nil {
			return err
		}
		s.h.att = att
		busy += s.x.r.now() - from
		s.recordMade(att)
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	s.rec.StartNS, s.rec.DurationNS = start, busy
	return nil
}

// wait sleeps as long as the step prescribes.
func (s *stepRun) wait(ctx context.Context) error {
	r := s.x.r
	r.forecast.slept += s.st.AtLeast.Std()
	return r.c.Clock.Sleep(ctx, s.st.AtLeast.Std())
}

// How settle decides that the allocated size is stable: this many equal
// readings at this interval.
const (
	settleReadings = 3
	settlePoll     = time.Second
)

// settle waits at_least, then until the allocated size is stable, but not
// longer than at_most.
func (s *stepRun) settle(ctx context.Context) error {
	clock := s.x.r.c.Clock
	start := clock.Now()
	defer s.startTimer()()
	if err := s.wait(ctx); err != nil || !s.st.UntilStable {
		return err
	}
	for last, same := int64(-1), 0; same < settleReadings; {
		if limit := s.st.AtMost.Std(); limit > 0 && clock.Now()-start >= limit {
			s.warn("settle", "the allocated size still changed after %s", s.st.AtMost)
			return nil
		}
		u, err := s.h.con.Usage(ctx)
		if err != nil {
			return err
		}
		if same++; u.Allocated != last {
			last, same = u.Allocated, 0
		}
		if err := clock.Sleep(ctx, settlePoll); err != nil {
			return err
		}
	}
	return nil
}

// measure records sizes on disk and free space, whether the container is
// attached or not.
func (s *stepRun) measure(ctx context.Context) error {
	defer s.startTimer()()
	// The size on the host is read also while the container is attached; it
	// may not contain writes that the volume still caches.
	d, err := diskUse(ctx, s.h.con)
	if err != nil {
		return err
	}
	d.Attached = s.h.att != nil
	if d.Attached && s.h.att.Volume() != nil {
		if d.VolumeFree, err = s.h.att.Volume().Free(); err != nil {
			return err
		}
	}
	if !isSimulated(s.x.r.c.Engine) {
		if free, _, _, err := s.h.place.dir.FreeSpace(); err == nil {
			d.HostFree = free
		}
	}
	s.rec.Disk = d
	return nil
}

// diskUse is what a container occupies; the free space of volume and host is
// unknown.
func diskUse(ctx context.Context, c engine.Container) (*result.DiskUse, error) {
	u, err := c.Usage(ctx)
	return &result.DiskUse{Allocated: u.Allocated, Apparent: u.Apparent, Sparse: u.Sparse, Bands: u.Bands,
		BandsFull: u.BandsFull, VolumeFree: -1, HostFree: -1}, err
}

// deriveContainer makes another container from h: converted, copied, or a copy
// that is then damaged.
func (s *stepRun) deriveContainer(ctx context.Context) error {
	f, spec, err := s.derivedSpec()
	if err != nil {
		return err
	}
	name := s.x.base + "-" + s.derivedName()
	var con engine.Container
	stop := s.startTimer()
	if s.st.Do == "convert" {
		con, err = s.h.con.Convert(ctx, f.dir, name, spec)
	} else {
		con, err = s.h.con.Transfer(ctx, f.dir, name)
	}
	if err == nil {
		s.registerDerived(s.x.adopt(con, f, spec))
		s.recordMade(con)
		if s.st.Do == "damage" {
			err = con.Damage(ctx, s.st.Kind)
		}
	}
	stop()
	if err != nil || s.st.Do == "damage" {
		return err
	}
	made, err := diskUse(ctx, con)
	if err == nil {
		s.rec.Made = made
	}
	return err
}

// derivedName is the name by which later steps refer to the container that this
// one makes.
func (s *stepRun) derivedName() string { return cmp.Or(s.st.As, s.st.Do) }

// derivedSpec is the place and the spec of the container that the step makes
// from h.
func (s *stepRun) derivedSpec() (f *workFolder, spec engine.Spec, err error) {
	f, spec = s.x.place, s.h.spec
	if s.st.Place != "" {
		f, err = s.x.r.placeNamed(s.st.Place)
	}
	if s.st.Do == "convert" {
		spec = convertedSpec(s.x.spec, s.x.c.Settings, s.st)
	}
	return f, spec, err
}

// registerDerived adds a container that was derived from h, with the files that
// both contain.
func (s *stepRun) registerDerived(derived *handle) {
	derived.liveFiles = s.h.clone()
	s.x.containers[s.derivedName()] = derived
}

// The canary is a short native write and read before each case. Its drift along
// the run is caused by the machine, not by the image. It takes about 0.1 s on a
// SATA SSD.
const (
	canaryFiles = 4
	canaryBytes = 4_000_000 // of each file
)

// canary writes and reads files in a native folder, as two steps of the case
// that its summaries omit.
func (x *caseRun) canary(ctx context.Context) error {
	con, err := nativeEngine(x.r.c.Engine).Create(ctx, x.place.dir, "canary", engine.Spec{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("making the canary: %w", err)
	}
	h := x.adopt(con, x.place, x.spec)
	if h.att, err = con.Attach(ctx, engine.AttachOptions{Cache: x.spec.Cache}); err != nil {
		return fmt.Errorf("opening the canary: %w", err)
	}
	key := workload.Key{Seed: x.r.p.Run.Seed, Round: x.round, Step: "canary", Batch: 1}
	items := equalFiles(canaryFiles, canaryBytes, key)
	// The canary is a step without a handler, as plans cannot contain it.
	st := plan.Step{Do: "canary", Phase: "canary"}
	for _, op := range []string{"write", "read"} {
		rec := x.newRecord(st)
		rec.Op = op
		o, err := x.options(plan.Step{Do: op, Workers: 1})
		if err != nil {
			return err
		}
		transfer := workload.Write
		if op == "read" {
			transfer = workload.Read
		}
		s := &stepRun{x: x, st: st, h: h, rec: &rec}
		stop := s.startTimer()
		out, err := transfer(ctx, s.volume(), items, o)
		stop()
		s.recordFiles(out, o)
		if err := x.record(ctx, plan.Step{Do: "canary"}, rec, err); err != nil {
			return err
		}
	}
	return errors.Join(x.undo.run(ctx)...)
}

// equalFiles are n files of one size in bytes, for the canary and for
// preconditioning.
func equalFiles(n int, size units.Bytes, key workload.Key) []workload.Item {
	set := plan.FileSet{Name: key.Step, Parts: []plan.FilePart{{Sizes: []units.Bytes{size}, Sets: n}}}
	return workload.Items(set, key)
}

// parallelStep is one step of a parallel block. It has its own view of the
// files on the case's container; its changes are merged when all steps of the
// block have ended.
type parallelStep struct {
	x   *caseRun // a copy with a gate and a copy of main
	st  plan.Step
	rec result.Step
	err error
	// Files of main before the block: later ones are of this step.
	live, named int
}

// splitParallel makes the views for the steps of a block. The i-th one numbers
// its batch i further on.
func (x *caseRun) splitParallel(steps []plan.Step) []*parallelStep {
	out := make([]*parallelStep, len(steps))
	for i, st := range steps {
		view, p := *x, &parallelStep{st: st}
		if main := x.containers[""]; main != nil {
			own := *main
			own.liveFiles = main.clone()
			own.batches += i
			view.containers = maps.Clone(x.containers)
			view.containers[""], p.live, p.named = &own, len(own.live), len(own.named)
		}
		p.x, out[i] = &view, p
	}
	return out
}

// merge adds the files that a step of a parallel block has made.
func (x *caseRun) merge(p *parallelStep) {
	main, made := x.containers[""], p.x.containers[""]
	if main == nil {
		return
	}
	main.addBatch(made.live[p.live:], x.fileSet(p.st))
	main.named = append(main.named, made.named[p.named:]...)
	main.batches = max(main.batches, made.batches)
}

// parallel executes steps on files at the same time: they wait for each other
// at a gate before their first timed span.
func (s *stepRun) parallel(ctx context.Context) error {
	x := s.x
	steps := x.splitParallel(s.st.Steps)
	work := make([]func(context.Context, *workload.Gate) error, len(steps))
	for i, p := range steps {
		p.rec = x.newRecord(p.st)
		work[i] = func(ctx context.Context, g *workload.Gate) error {
			p.x.gate = g
			if p.err = p.x.do(ctx, p.st, &p.rec); p.st.Expect == "fail" {
				return nil // record checks whether it failed
			}
			return p.err
		}
	}
	// The block's record has the time from its start to the end of its last
	// step; each step has a record of its own.
	stop := s.startTimer()
	err := workload.Parallel(ctx, work...)
	stop()
	for _, p := range steps {
		x.merge(p)
		if e := x.record(ctx, p.st, p.rec, p.err); e != nil && err == nil {
			err = e
		}
	}
	return err
}
