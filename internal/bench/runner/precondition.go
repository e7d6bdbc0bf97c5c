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
	if r.p.Run.Precondition != plan.Steady || r.p.Run.AtMost() > 0 && r.allMeasured() {
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
		title := r.titleOf(c.Settings.Place)
		r.c.Progress.Message(fmt.Sprintf("writing to %s until its rate settles: at most %s and %s", title,
			r.p.Run.SteadyTime.Human(), r.p.Run.SteadyWritten.Human()))
		if err := r.preconditionPlace(ctx, f, title, rec); err != nil {
			return fmt.Errorf("writing to %s until its rate settles: %w", title, err)
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

// allMeasured reports whether every case-round has ended.
func (r *run) allMeasured() bool {
	if r.auto != nil {
		return r.state.Stopped() != nil
	}
	return !slices.ContainsFunc(r.manualCombinations(), func(t []plan.KeyValue) bool { return !r.isMeasured(t) })
}

// preconditionPlace writes files of one size to a native folder, each after
// deleting the last, until the rate is steady or a limit is reached. It removes
// the folder on every return path.
func (r *run) preconditionPlace(
	ctx context.Context, f *workFolder, title string, rec *result.Precondition,
) (err error) {
	o := r.p.Run
	con, err := nativeEngine(r.c.Engine).Create(ctx, f.dir, "precondition", engine.Spec{})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		err = errors.Join(err, con.Remove(end))
	}()
	att, err := con.Attach(ctx, engine.AttachOptions{})
	if err != nil {
		return err
	}
	defer func() {
		_, e := att.Detach(context.WithoutCancel(ctx), false)
		err = errors.Join(err, e)
	}()
	start := r.c.Clock.Now()
	for n := 1; ; n++ {
		took := r.c.Clock.Now() - start
		written := units.Bytes(n-1) * o.SteadyFile
		switch {
		case n > o.SteadyWindow && math.Abs(rec.Slope) < rec.Limit:
			rec.Steady = true
			rec.Text = fmt.Sprintf("%s settled after %s and %s", title, units.Duration(took).Human(), written.Human())
			return nil
		case took >= o.SteadyTime.Std():
			rec.Text = describeUnsteady(title, "within "+o.SteadyTime.Human(), rec)
			return nil
		case written+o.SteadyFile > o.SteadyWritten:
			rec.Text = describeUnsteady(title, "within "+o.SteadyWritten.Human()+" written", rec)
			return nil
		}
		s, err := r.writeSteadySample(ctx, att.Volume(), n)
		if err != nil {
			return err
		}
		rec.Samples = append(rec.Samples, s)
		if n >= o.SteadyWindow {
			rec.Slope = relativeSlope(rec.Samples[n-o.SteadyWindow:])
		}
	}
}

// describeUnsteady is the warning about a place that reached a limit first.
func describeUnsteady(title, limit string, rec *result.Precondition) string {
	if n := len(rec.Samples); n < rec.Window {
		return fmt.Sprintf("%s: its rate could not settle %s, which allows %d of the %d files of a window",
			title, limit, n, rec.Window)
	}
	return fmt.Sprintf("%s: its rate did not settle %s: over the last %d files it still changed by %.2g %% a file",
		title, limit, rec.Window, 100*math.Abs(rec.Slope))
}

// writeSteadySample writes, flushes and deletes one file with the I/O settings
// of the plan.
func (r *run) writeSteadySample(ctx context.Context, vol workload.Volume, n int) (s result.SteadySample, err error) {
	data, err := workload.NewData(r.p.Run.Seed, n, "precondition", "", 0)
	if err != nil {
		return s, err
	}
	key := workload.Key{Seed: r.p.Run.Seed, Round: r.session, Step: "precondition", Batch: n}
	items := equalFiles(1, r.p.Run.SteadyFile, key)
	o := r.baseOptions(data)
	o.Sync, o.Cache = hostio.SyncMode(r.p.Defaults.Sync), r.p.Defaults.Cache
	out, err := workload.Write(ctx, vol, items, o)
	if err != nil {
		return s, err
	}
	s.Bytes = out.Bytes
	for _, x := range out.Samples {
		s.DurationNS += x.DurationNS
	}
	_, err = workload.Delete(ctx, vol, items, o)
	return s, err
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
