package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// timeFiles times work on the files of a volume and records its outcome.
func (s *stepRun) timeFiles(
	ctx context.Context, work func(*stepRun, context.Context, workload.Options) (workload.Outcome, error),
) error {
	o := s.x.options(s.st)
	// Counters of the disk contain the traffic of other programs, too; the report
	// compares them with the bytes of the files.
	before, unknown := s.x.deviceBytes()
	stop := s.startTimer()
	out, err := work(s, ctx, o)
	stop()
	s.recordFiles(out, o)
	if s.st.Do != "copy_out" {
		s.h.Edited += writtenBy(s.rec) - s.rec.Written // an edit adds what it changed
	}
	if err == nil && s.st.To != "" { // of copy and stream
		made := workload.Item{Name: path.Clean(s.st.To), Size: writtenBy(s.rec)}
		s.h.Named = append(workload.Without(s.h.Named, []workload.Item{made}), made)
	}
	if before != nil {
		if s.rec.Device, unknown = s.x.deviceBytes(); s.rec.Device != nil {
			s.rec.Device.Read -= before.Read
			s.rec.Device.Written -= before.Written
		}
	}
	s.rec.DeviceWhy = unknown
	if err == nil && len(out.Findings) > 0 {
		return fmt.Errorf("%d files are not as written, first: %s", len(out.Findings), out.Findings[0])
	}
	return err
}

// volume is the mounted volume that the step works on.
func (s *stepRun) volume() workload.Volume { return s.h.att.Volume() }

// recordFiles adds the outcome of work on files to the record.
func (s *stepRun) recordFiles(out workload.Outcome, o workload.Options) {
	rec, start := s.rec, int64(s.x.r.started)
	rec.Samples, rec.Span, rec.Cache, rec.Sync, rec.QoS = out.Samples, out.Span, out.Cache, out.Sync, out.QoS
	for i := range rec.Samples { // the workload's clock is the program's, the record's is the session's
		rec.Samples[i].StartNS -= start
	}
	if p := rec.Span; p != nil {
		p.GateNS, p.FirstDoneNS, p.LastDoneNS = p.GateNS-start, p.FirstDoneNS-start, p.LastDoneNS-start
	}
	rec.Stream, rec.Workers, rec.Written = out.Stream, o.Workers, out.Written
	rec.Operations, rec.OperationsSpan = out.Operations, out.OperationsSpan
	if s.x.gate == nil { // in a parallel block the counter contains the flushes of all its steps
		rec.Flushes = out.Flushes
	}
	rec.Findings = append(rec.Findings, out.Findings...)
	rec.Warnings = append(rec.Warnings, out.Warnings...)
}

// deviceBytes are what the disk of the place has transferred so far; nil and
// the reason if that is unknown. It may start a program of the system, so it is
// never called in a timed span.
func (x *caseRun) deviceBytes() (*result.DeviceBytes, string) {
	switch {
	case x.gate != nil:
		return nil, "several steps run at once"
	case isSimulated(x.r.c.Engine):
		return nil, "the simulated engine has no disk"
	}
	rd, wr, err := host.DeviceBytes(x.place.dir.Path())
	if err != nil {
		return nil, err.Error()
	}
	return &result.DeviceBytes{Read: rd, Written: wr}, ""
}

// key identifies a random choice of the step: the same in every case, so that
// cases can be compared in pairs.
func (s *stepRun) key() workload.Key {
	return workload.Key{Seed: s.x.r.p.Run.Seed, Round: s.x.round, Step: cmp.Or(s.st.Phase, s.st.Do), Batch: s.h.Batches}
}

// fileSet is the file set that a step uses: its own, that of the case, or the
// first one of the plan.
func (x *caseRun) fileSet(st plan.Step) plan.FileSet {
	return x.fileSetNamed(cmp.Or(st.Files, x.c.Settings.Files))
}

// fileSetNamed is the file set of that name, the first one for "".
func (x *caseRun) fileSetNamed(name string) plan.FileSet {
	for _, f := range x.r.p.Files {
		if name == "" || f.Name == name {
			return f
		}
	}
	return plan.FileSet{Name: name}
}

// data are the bytes of a file set in this round of the case.
func (x *caseRun) data(set plan.FileSet) *workload.Data {
	return workload.NewData(x.r.p.Run.Seed, x.round, x.c.ID, set.Data, float64(set.Compressible))
}

// options are the settings of the case with the overrides of the step.
func (x *caseRun) options(st plan.Step) workload.Options {
	s := x.c.Settings
	o := x.r.baseOptions(x.data(x.fileSet(st)))
	o.Workers, o.Block = cmp.Or(st.Workers, s.Workers), int64(cmp.Or(st.Block, s.Block))
	o.Sync, o.Cache = hostio.SyncMode(cmp.Or(st.Sync, s.Sync)), cmp.Or(st.Cache, s.Cache)
	o.QoS, o.Preallocate, o.Gate = s.QoS, s.Preallocate, x.gate
	o.Progress = func(p workload.Progress) { x.reportStatus(st, p, false) }
	return o
}

// baseOptions are what all work on files has in common.
func (r *run) baseOptions(data *workload.Data) workload.Options {
	return workload.Options{Clock: r.c.Clock, Data: data, Workers: 1, Memory: r.c.Memory, Buffers: &r.buffers,
		Virtual: r.c.Virtual}
}

// write draws and writes a new batch of files.
func (s *stepRun) write(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	s.h.Batches++
	set := s.x.fileSet(s.st)
	items := workload.Items(set, s.key())
	out, err := workload.Write(ctx, s.volume(), items, o)
	if err == nil {
		s.h.addBatch(items, set)
	}
	return out, err
}

// batch are the files that a read or verify step reads, in order; those of trees
// are verified, but not read one by one.
func (s *stepRun) batch() []workload.Item {
	items := s.h.Live
	if s.st.Do == "read" && len(s.h.Trees) > 0 {
		items = slices.DeleteFunc(slices.Clone(items), func(it workload.Item) bool {
			_, isOfTree := s.h.Trees[it.Batch]
			return isOfTree
		})
	}
	if s.st.Batch != "all" {
		items = workload.LastBatch(items)
	}
	return workload.ReadOrder(items, s.st.Order, s.key())
}

// read reads a batch in the order that the step names.
func (s *stepRun) read(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	return workload.Read(ctx, s.volume(), s.batch(), o)
}

// verify compares the files of a batch with what was written.
func (s *stepRun) verify(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	return s.verifyItems(ctx, s.batch(), o)
}

// verifyItems compares files with the data of the file set from which each was
// written, which may not be that of the case.
func (s *stepRun) verifyItems(
	ctx context.Context, items []workload.Item, o workload.Options,
) (all workload.Outcome, _ error) {
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].Batch == items[0].Batch {
			n++
		}
		o.Data = s.x.data(s.x.fileSetNamed(s.h.Sets[items[0].Batch]))
		out, err := workload.Verify(ctx, s.volume(), items[:n], o)
		if err != nil {
			return all, err
		}
		all.Findings, all.Warnings = append(all.Findings, out.Findings...), append(all.Warnings, out.Warnings...)
		all.Bytes, all.Lost, all.Damaged = all.Bytes+out.Bytes, all.Lost+out.Lost, all.Damaged+out.Damaged
		items = items[n:]
	}
	return all, nil
}

// delete deletes the selected files. "All" includes the files of copy and stream
// steps; the other selections are among the files of batches.
func (s *stepRun) delete(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	h := s.h
	gone := workload.Select(h.Live, s.st, s.key())
	if s.st.All && s.st.Batch != "last" {
		gone = append(gone, h.Named...)
	}
	out, err := workload.Delete(ctx, s.volume(), gone, o)
	if err == nil {
		h.Live, h.Named = workload.Without(h.Live, gone), workload.Without(h.Named, gone)
	}
	return out, err
}

// stream compresses or decompresses a file of the volume into another one.
func (s *stepRun) stream(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	st, c := s.st, s.x.c.Settings
	return workload.Stream(ctx, s.volume(), workload.StreamSpec{
		From: st.From, To: st.To, Direction: st.Direction,
		Codec: cmp.Or(st.Codec, c.Codec), Level: cmp.Or(st.Level, c.Level),
		Threads: cmp.Or(st.Threads, c.Threads, runtime.GOMAXPROCS(0)), // 0 in the plan: one for each processor
	}, o)
}

// random reads and writes at random places of a file. It makes a file that no
// step has made, before its own time and outside of its device bytes.
func (s *stepRun) random(ctx context.Context) error {
	st, made := s.st, int64(0)
	at := slices.IndexFunc(s.h.Named, func(it workload.Item) bool { return it.Name == st.File })
	if at < 0 {
		at, made = len(s.h.Named), int64(st.FileSize)
		file, o := []workload.Item{{Name: st.File, Size: made}}, s.x.options(st)
		o.Workers, o.Block, o.Sync = 1, 0, hostio.SyncFsync
		if _, err := workload.Write(ctx, s.volume(), file, o); err != nil {
			return err
		}
		s.h.Named = append(s.h.Named, file...)
	}
	st.FileSize = units.Bytes(s.h.Named[at].Size)
	s.x.r.forecast.slept += st.Time.Std()
	err := s.timeFiles(ctx, func(s *stepRun, ctx context.Context, o workload.Options) (workload.Outcome, error) {
		return workload.Random(ctx, s.volume(), st, s.key(), o)
	})
	if s.rec.OperationsSpan != nil {
		s.rec.OperationsSpan.Prepared = made
		s.h.Edited += made
	}
	return err
}

// copy copies an input of the user, generated data in its place, or a file of
// the volume to the volume.
func (s *stepRun) copy(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	src, err := s.openSource(o)
	if err != nil {
		return workload.Outcome{}, err
	}
	out, err := workload.Copy(ctx, src, s.volume(), s.st.To, o)
	if c, ok := src.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return out, err
}

// generatedShare is the compressible share of the data that replaces an
// optional input.
const generatedShare = 0.5

// openSource opens what a copy step reads. The source may be an [io.Closer].
func (s *stepRun) openSource(o workload.Options) (workload.Source, error) {
	r, name := s.x.r, s.st.From
	i := slices.IndexFunc(r.p.Inputs, func(in plan.Input) bool { return in.Name == name })
	switch {
	case i < 0:
		return workload.OpenSource(s.volume(), name, o)
	case r.c.Inputs[name] != "":
		return openInput(r.c.Inputs[name])
	case !r.p.Inputs[i].Optional:
		return nil, fmt.Errorf("the plan needs the file %q: give it with --input %s=PATH", name, name)
	}
	data := workload.NewData(r.p.Run.Seed, 1, name, workload.DataMixed, generatedShare)
	return workload.Generated(data, name, int64(r.p.Inputs[i].Size)), nil
}

// inputFile is a file of the host as the source of a copy.
type inputFile struct {
	*io.SectionReader
	io.Closer
}

// openInput opens a file that the user gave; it follows symbolic links.
func openInput(name string) (workload.Source, error) {
	var f *os.File
	err := CheckInput(name)
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the input file: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return inputFile{io.NewSectionReader(f, 0, info.Size()), f}, nil
}

// addBatch adds written files and the file set that their data came from.
func (l *liveFiles) addBatch(items []workload.Item, set plan.FileSet) {
	l.Live = append(l.Live[:len(l.Live):len(l.Live)], items...)
	if l.Sets == nil {
		l.Sets = map[int]string{}
	}
	for _, it := range items {
		l.Sets[it.Batch] = set.Name
	}
}

// CheckInput fails if a run cannot copy the file at path. Symbolic links are
// followed.
func CheckInput(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return hostio.WithoutPath(err)
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}
