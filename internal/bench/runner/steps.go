package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// stepHandler is one row of [stepHandlers]: one of do, call and files.
type stepHandler struct {
	needs string
	do    func(*stepRun, context.Context) error
	// call is one timed call of the engine.
	call func(*stepRun, context.Context) (engine.Report, error)
	// files is timed work on the files of a volume.
	files func(*stepRun, context.Context, workload.Options) (workload.Outcome, error)
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
	stepHandlers = map[string]stepHandler{
		"create":   {needs: needsNone, do: (*stepRun).create},
		"attach":   {do: (*stepRun).attach},
		"detach":   {do: (*stepRun).detach},
		"remount":  {do: (*stepRun).remount},
		"settle":   {do: (*stepRun).settle},
		"measure":  {do: (*stepRun).measure},
		"convert":  {do: (*stepRun).deriveContainer},
		"transfer": {do: (*stepRun).deriveContainer},
		"damage":   {do: (*stepRun).deriveContainer},
		"manifest": {do: (*stepRun).manifest},
		"copy_out": {needs: needsVolume, do: (*stepRun).copyOut},
		"recover":  {do: (*stepRun).recover},
		"parallel": {needs: needsNone, do: (*stepRun).parallel},
		"random":   {needs: needsVolume, do: (*stepRun).random},

		"compact": {call: func(s *stepRun, ctx context.Context) (engine.Report, error) {
			return s.h.con.Compact(ctx, engine.CompactOptions{AllowBattery: s.st.Battery == "allow"})
		}},
		"resize": {call: func(s *stepRun, ctx context.Context) (engine.Report, error) {
			return s.h.con.Resize(ctx, int64(s.st.Size))
		}},
		"check": {call: func(s *stepRun, ctx context.Context) (engine.Report, error) {
			return s.h.con.Check(ctx, engine.CheckOptions{What: s.st.What, Repair: s.st.Repair})
		}},
		"xattr": {call: func(s *stepRun, ctx context.Context) (engine.Report, error) {
			return s.h.con.Xattr(ctx, s.st.Action, s.st.Attr, s.st.Value)
		}},
		"trim": {needs: needsVolume, call: func(s *stepRun, ctx context.Context) (engine.Report, error) {
			return s.h.att.Trim(ctx)
		}},
		"mkdir": {needs: needsVolume, call: func(s *stepRun, _ context.Context) (engine.Report, error) {
			return engine.Report{}, s.volume().Mkdir(s.st.Dir)
		}},

		"write":  {needs: needsVolume, files: (*stepRun).write, timesFiles: true},
		"read":   {needs: needsVolume, files: (*stepRun).read, timesFiles: true},
		"verify": {needs: needsVolume, files: (*stepRun).verify},
		"delete": {needs: needsVolume, files: (*stepRun).delete},
		"edit":   {needs: needsVolume, files: (*stepRun).edit},
		"tree":   {needs: needsVolume, files: (*stepRun).tree},
		"copy":   {needs: needsVolume, files: (*stepRun).copy},
		"stream": {needs: needsVolume, files: (*stepRun).stream, timesFiles: true},
	}
}

// do executes one step by its handler.
func (x *caseRun) do(ctx context.Context, st plan.Step, rec *result.Step) error {
	handler, ok := stepHandlers[st.Do]
	if !ok {
		return fmt.Errorf("the runner has no step %q", st.Do)
	}
	s := &stepRun{x: x, st: st, h: x.containers[st.On], rec: rec}
	switch {
	case handler.needs == needsNone:
	case s.h == nil:
		return fmt.Errorf("no step has made the container %q", st.On)
	case handler.needs == needsVolume && (s.h.att == nil || s.h.att.Volume() == nil):
		return errors.New("the container is not mounted")
	}
	switch {
	case handler.files != nil:
		return s.timeFiles(ctx, handler.files)
	case handler.call != nil:
		return s.timeReport(func() (engine.Report, error) { return handler.call(s, ctx) })
	}
	return handler.do(s, ctx)
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
	s.rec.Retries += rep.Retries
	s.rec.DurationNS -= int64(rep.Asked)
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
	addWarning(s.rec, kind, format, args...)
}

func addWarning(rec *result.Step, kind, format string, args ...any) {
	rec.Warnings = append(rec.Warnings, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// create makes the case's own container.
func (s *stepRun) create(ctx context.Context) error {
	x := s.x
	before, err := usageOf(ctx, x.place.backing)
	if err != nil {
		return err
	}
	defer s.startTimer()()
	con, err := x.eng.Create(ctx, x.place.dir, x.base, x.spec)
	if err != nil {
		return err
	}
	x.containers[""] = x.adopt(con, x.place, containerState{Spec: x.spec, Before: before})
	s.recordMade(con)
	return nil
}

// attach attaches the container, with the defaults of the engine where the plan
// does not set the options. A failed attach may have taken retries, which are
// recorded, too.
func (s *stepRun) attach(ctx context.Context) error {
	isSet := func(b *bool, value bool) bool { return b != nil && *b == value }
	noVerify := isSet(s.st.Verify, false) || s.st.Verify == nil && s.x.c.Settings.Verify == "off"
	opts := engine.AttachOptions{ReadOnly: isSet(s.st.ReadOnly, true), NoMount: isSet(s.st.Mount, false),
		NoVerify: noVerify, Cache: s.x.spec.Cache}
	stop := s.startTimer()
	att, err := s.h.con.Attach(ctx, opts)
	stop()
	if err == nil { // one that fails leaves an earlier attachment
		s.h.att, s.h.Options = att, opts
	}
	s.recordMade(s.h.att)
	s.h.attachNS = s.rec.DurationNS - s.rec.RetryNS
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
		s.recordReport(engine.Report{Reported: part.rec.Reported, Retried: time.Duration(part.rec.RetryNS),
			Retries: part.rec.Retries})
		s.rec.Warnings = append(s.rec.Warnings, part.rec.Warnings...)
		from := s.x.r.now()
		att, err := s.h.con.Attach(ctx, s.h.Options)
		if err != nil {
			return err
		}
		s.h.att, s.h.attachNS = att, s.x.r.now()-from
		busy += s.h.attachNS
		retried := s.rec.RetryNS
		s.recordMade(att)
		s.h.attachNS -= s.rec.RetryNS - retried
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
// that is then damaged. It contains the same files.
func (s *stepRun) deriveContainer(ctx context.Context) (err error) {
	x, f, state := s.x, s.x.place, containerState{Spec: s.h.Spec, liveFiles: s.h.clone()}
	if s.st.Place != "" {
		if f, err = x.r.placeNamed(s.st.Place); err != nil {
			return err
		}
	}
	as := cmp.Or(s.st.As, s.st.Do) // the name that later steps use
	var con engine.Container
	stop := s.startTimer()
	if s.st.Do == "convert" {
		state.Spec = convertedSpec(x.spec, x.c.Settings, s.st)
		con, err = s.h.con.Convert(ctx, f.dir, x.base+"-"+as, state.Spec)
	} else {
		con, err = s.h.con.Transfer(ctx, f.dir, x.base+"-"+as)
	}
	if err == nil {
		x.containers[as] = x.adopt(con, f, state)
		s.recordMade(con)
		if s.st.Do == "damage" {
			err = s.damage(ctx, x.containers[as])
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
	h := x.adopt(con, x.place, containerState{})
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
		o := x.options(plan.Step{Do: op, Workers: 1})
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

// parallel executes steps on files at the same time: they wait for each other
// at a gate before their first timed span. Each has its own view of the files on
// all containers, and the i-th one numbers its batch on the case's own container
// i further on. What they did is merged when all of them have ended.
func (s *stepRun) parallel(ctx context.Context) error {
	x := s.x
	if x.containers[""] == nil {
		return errors.New("no step has made a container")
	}
	before := map[string]liveFiles{}
	for name, h := range x.containers {
		before[name] = h.clone()
	}
	views := make([]*stepRun, len(s.st.Steps))
	errs := make([]error, len(views))
	work := make([]func(context.Context, *workload.Gate) error, len(views))
	for i, st := range s.st.Steps {
		view, rec := *x, x.newRecord(st)
		view.containers = map[string]*handle{}
		for name, h := range x.containers {
			own := *h
			own.liveFiles = h.clone()
			view.containers[name] = &own
		}
		view.containers[""].Batches += i
		views[i] = &stepRun{x: &view, st: st, rec: &rec}
		work[i] = func(ctx context.Context, g *workload.Gate) error {
			view.gate = g
			if errs[i] = view.do(ctx, st, &rec); st.Expect == "fail" {
				return nil // record checks whether it failed
			}
			return errs[i]
		}
	}
	// The block's record has the time from its start to the end of its last
	// step; each step has a record of its own.
	stop := s.startTimer()
	err := workload.Parallel(ctx, work...)
	stop()
	for i, v := range views {
		for name, was := range before {
			x.containers[name].merge(&was, &v.x.containers[name].liveFiles)
		}
		err = cmp.Or(err, x.record(ctx, v.st, *v.rec, errs[i]))
	}
	return err
}

// merge adds what a copy of l has more than l had when it was made.
func (l *liveFiles) merge(before, own *liveFiles) {
	l.Live = append(l.Live, own.Live[len(before.Live):]...)
	for _, it := range own.Named {
		if !slices.Contains(before.Named, it) {
			l.Named = append(workload.Without(l.Named, []workload.Item{it}), it)
		}
	}
	if l.Sets == nil {
		l.Sets = map[int]string{}
	}
	maps.Copy(l.Sets, own.Sets)
	l.Batches = max(l.Batches, own.Batches)
	l.Edited += own.Edited - before.Edited
}
