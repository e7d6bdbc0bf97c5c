package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

// Sizes of the canary: a short native write and read before each case, whose
// drift along the run is the machine's, not the image's.
const (
	canaryFiles = 4
	canaryBytes = 4_000_000
)

// files executes a step that puts files on the volume or takes them off it.
func (x *caseRun) files(ctx context.Context, h *handle, st plan.Step, rec *result.Step) error {
	o, err := x.options(st)
	if err != nil {
		return err
	}
	vol := h.att.Volume()
	var out workload.Outcome
	before, unknown := x.device()
	rec.DeviceWhy = unknown
	err = x.timed(rec, func() (err error) {
		switch st.Do {
		case "write":
			items := x.draw(h, st)
			if out, err = workload.Write(ctx, vol, items, o); err == nil {
				h.wrote(items, x.fileSet(st))
			}
		case "read", "verify":
			var items []workload.Item
			if items, err = x.batch(h, st); err == nil && st.Do == "read" {
				out, err = workload.Read(ctx, vol, items, o)
			} else if err == nil {
				out, err = x.verify(ctx, h, vol, items, o)
			}
		case "delete":
			gone := h.chosen(st, x.key(st, h.batches))
			if out, err = workload.Delete(ctx, vol, gone, o); err == nil {
				h.removed(gone)
			}
		case "copy":
			out, err = x.copy(ctx, vol, st, o)
		case "stream":
			out, err = workload.Stream(ctx, vol, x.stream(st), o)
		default:
			err = fmt.Errorf("the runner knows no step %q", st.Do)
		}
		return err
	})
	if err == nil && (st.Do == "copy" || st.Do == "stream") {
		err = h.put(vol, st.To)
	}
	x.keepFiles(rec, out, o, before)
	if err == nil && len(out.Findings) > 0 {
		return fmt.Errorf("%d files are not as written, first: %s", len(out.Findings), out.Findings[0])
	}
	return err
}

// keepFiles puts the outcome of file work into the step's record.
func (x *caseRun) keepFiles(rec *result.Step, out workload.Outcome, o workload.Options, before *result.DeviceBytes) {
	rec.Samples, rec.Span, rec.Cache, rec.Sync, rec.QoS = out.Samples, out.Span, out.Cache, out.Sync, out.QoS
	for i := range rec.Samples { // the workload's clock is the program's, the record's is the session's
		rec.Samples[i].StartNS -= int64(x.r.started)
	}
	if s := rec.Span; s != nil {
		began := int64(x.r.started)
		s.GateNS, s.FirstDoneNS, s.LastDoneNS = s.GateNS-began, s.FirstDoneNS-began, s.LastDoneNS-began
	}
	rec.Stream, rec.Workers = out.Stream, o.Workers
	if x.gate == nil { // or else the count is that of all steps at work
		rec.Flushes = out.Flushes
	}
	rec.Findings = append(rec.Findings, out.Findings...)
	rec.Warnings = append(rec.Warnings, out.Warnings...)
	if before == nil {
		return
	}
	after, unknown := x.device()
	if rec.DeviceWhy = unknown; after != nil {
		rec.Device = &result.DeviceBytes{Read: after.Read - before.Read, Written: after.Written - before.Written}
	}
}

// device reads what the disk under the place has moved so far, nil and the reason where that cannot be told. It may
// start a program of the system, and so stays outside of whatever is timed.
func (x *caseRun) device() (*result.DeviceBytes, string) {
	switch {
	case x.gate != nil:
		return nil, "several steps run at once"
	case simulated(x.r.c.Engine):
		return nil, "the simulated engine has no disk"
	}
	rd, wr, err := hostio.DeviceBytes(x.place.dir.Path())
	if err == nil {
		return &result.DeviceBytes{Read: rd, Written: wr}, ""
	}
	if why := errors.Unwrap(err); why != nil { // what names the path stays out of results
		err = why
	}
	return nil, err.Error()
}

func (x *caseRun) key(st plan.Step, batch int) workload.Key {
	return workload.Key{Seed: x.r.p.Run.Seed, Round: x.round, Step: cmpOr(st.Phase, st.Do), Batch: batch}
}

// draw opens a new batch and draws its files.
func (x *caseRun) draw(h *handle, st plan.Step) []workload.Item {
	h.batches++
	return workload.Items(x.fileSet(st), x.key(st, h.batches))
}

func (x *caseRun) fileSet(st plan.Step) plan.FileSet {
	name := cmpOr(st.Files, x.c.Settings.Files)
	for _, f := range x.r.p.Files {
		if f.Name == name {
			return f
		}
	}
	if name == "" && len(x.r.p.Files) > 0 {
		return x.r.p.Files[0]
	}
	return plan.FileSet{Name: name}
}

// batch are the files that a read or verify step goes through.
func (x *caseRun) batch(h *handle, st plan.Step) ([]workload.Item, error) {
	items := h.live
	if st.Batch != "all" {
		items = workload.LastBatch(h.live)
	}
	return workload.ReadOrder(items, st.Order, x.key(st, h.batches))
}

// options are the settings of the case with what the step overrides.
func (x *caseRun) options(st plan.Step) (workload.Options, error) {
	s := x.c.Settings
	data, err := x.data(x.fileSet(st))
	o := workload.Options{
		Clock: x.r.c.Clock, Data: data, Workers: s.Workers, Block: int64(s.Block), Sync: hostio.SyncMode(cmpOr(st.Sync, s.Sync)),
		Cache: cmpOr(st.Cache, s.Cache), QoS: s.QoS, Preallocate: s.Preallocate, Memory: x.r.c.Memory,
		Buffers: &x.r.buffers, Virtual: x.r.c.Virtual, Gate: x.gate,
		Progress: func(p workload.Progress) { x.r.status(x, st, p) },
	}
	if st.Workers > 0 {
		o.Workers = st.Workers
	}
	if st.Block > 0 {
		o.Block = int64(st.Block)
	}
	return o, err
}

func (x *caseRun) stream(st plan.Step) workload.StreamSpec {
	s := x.c.Settings
	spec := workload.StreamSpec{
		From: st.From, To: st.To, Direction: st.Direction,
		Codec: cmpOr(st.Codec, s.Codec), Level: st.Level, Threads: st.Threads,
	}
	if spec.Level == 0 {
		spec.Level = s.Level
	}
	if spec.Threads == 0 {
		spec.Threads = s.Threads
	}
	if spec.Threads == 0 { // the plan's word for one a CPU
		spec.Threads = runtime.GOMAXPROCS(0)
	}
	return spec
}

// copy puts a file of the user, a file of the volume or a generated stand-in on the volume.
func (x *caseRun) copy(ctx context.Context, vol workload.Volume, st plan.Step, o workload.Options) (workload.Outcome, error) {
	for _, in := range x.r.p.Inputs {
		if in.Name != st.From {
			continue
		}
		path := x.r.c.Inputs[in.Name]
		if path == "" && in.Optional {
			half, err := workload.NewData(x.r.p.Run.Seed, 1, in.Name, "mixed", 0.5)
			if err != nil {
				return workload.Outcome{}, err
			}
			return workload.Copy(ctx, workload.Generated(half, in.Name, int64(in.Size)), vol, cmpOr(st.To, in.Name), o)
		}
		if path == "" {
			return workload.Outcome{}, fmt.Errorf("the plan needs the file %q: give it with --input %s=PATH", in.Name, in.Name)
		}
		return x.copyHost(ctx, vol, path, cmpOr(st.To, in.Name), o)
	}
	src, err := workload.OpenSource(vol, st.From, o)
	if err != nil {
		return workload.Outcome{}, err
	}
	out, err := workload.Copy(ctx, src, vol, st.To, o)
	return out, errors.Join(err, src.Close())
}

type hostSource struct {
	*hostio.File
	size int64
}

func (s hostSource) Size() int64 { return s.size }

func (x *caseRun) copyHost(ctx context.Context, vol workload.Volume, path, to string, o workload.Options) (workload.Outcome, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return workload.Outcome{}, fmt.Errorf("opening the input file: %w", err)
	}
	dir, err := hostio.OpenDir(filepath.Dir(path))
	if err != nil {
		return workload.Outcome{}, err
	}
	defer dir.Close()
	f, err := dir.Open(filepath.Base(path), hostio.OpenOptions{Cache: hostio.CacheBuffered})
	if err != nil {
		return workload.Outcome{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Copy(ctx, hostSource{f, st.Size}, vol, to, o)
}
