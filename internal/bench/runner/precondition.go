package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// precondition writes to every place until its rate is steady, once in a
// session: while it is idle, a drive empties its cache and cools down.
func (r *run) precondition(ctx context.Context) error {
	isLeft := func(setting []plan.KeyValue) bool { return !r.isMeasured(setting) }
	isMeasured := r.state.Stopped() != nil
	if r.auto == nil {
		isMeasured = !slices.ContainsFunc(r.manualCombinations(), isLeft)
	}
	if r.p.Run.Precondition != plan.Steady || r.p.Run.AtMost() > 0 && isMeasured {
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
// deleting the last, until the rate is steady or a limit is reached. It removes
// the folder on every return path.
func (r *run) preconditionPlace(ctx context.Context, f *workFolder, rec *result.Precondition) (err error) {
	con, err := nativeEngine(r.c.Engine).Create(ctx, f.dir, "precondition", engine.Spec{})
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
			if err := r.addSteadySample(ctx, att.Volume(), rec); err != nil {
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
	data, err := workload.NewData(r.p.Run.Seed, n, "precondition", "", 0)
	if err != nil {
		return err
	}
	key := workload.Key{Seed: r.p.Run.Seed, Round: r.session, Step: "precondition", Batch: n}
	items := equalFiles(1, r.p.Run.SteadyFile, key)
	o := r.baseOptions(data)
	o.Sync, o.Cache = hostio.SyncMode(r.p.Defaults.Sync), r.p.Defaults.Cache
	out, err := workload.Write(ctx, vol, items, o)
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
	_, err = workload.Delete(ctx, vol, items, o)
	return err
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
