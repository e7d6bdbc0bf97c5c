package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// precondition writes to every place until its rate has settled, once a session:
// while nothing ran, a drive has emptied its cache and cooled down.
func (r *run) precondition(ctx context.Context) error {
	if r.p.Run.Precondition != plan.Steady || r.p.Run.AtMost() > 0 && r.allDone() {
		return nil
	}
	var done []*place
	for _, c := range r.cases {
		p := r.places[c.Settings.Place]
		if p == nil || slices.Contains(done, p) {
			continue
		}
		done = append(done, p)
		rec := result.Precondition{Session: r.session, Place: c.Settings.Place, Window: r.p.Run.SteadyWindow, Limit: float64(r.p.Run.SteadyLimit), Slope: -1}
		title := r.titleOf(c.Settings.Place)
		r.c.Progress.Message(fmt.Sprintf("writing to %s until its rate settles: at most %s and %s", title, r.p.Run.SteadyTime.Human(), r.p.Run.SteadyWritten.Human()))
		if err := r.settlePlace(ctx, p, title, &rec); err != nil {
			return err
		}
		for _, s := range rec.Samples {
			r.spent += s.Bytes
		}
		if err := errors.Join(r.append(result.Record{Kind: result.KindPrecondition, Precondition: &rec}), r.dir.Sync()); err != nil {
			return err
		}
		if !rec.Steady {
			r.warn("", "not-steady", rec.Text)
		}
	}
	return nil
}

// titleOf is what people call the place of that name.
func (r *run) titleOf(name string) string {
	for _, p := range allPlaces(r.c) {
		if p.Name == name {
			return p.title(r.c.Out)
		}
	}
	return name
}

// allDone says whether nothing is left to measure.
func (r *run) allDone() bool {
	if r.auto != nil {
		return r.state.Stopped() != nil
	}
	return !slices.ContainsFunc(r.manual(), func(t []plan.KeyValue) bool { return !r.groupDone(t) })
}

// settlePlace writes files of one size natively, each in the place of the last,
// and ends by the rule or at a limit. The file lies in the run's own folder at the
// place and is gone behind it on every path out.
func (r *run) settlePlace(ctx context.Context, p *place, title string, rec *result.Precondition) (err error) {
	fail := func(err error) error { return fmt.Errorf("writing to %s until its rate settles: %w", title, err) }
	o := r.p.Run
	con, err := r.native().Create(ctx, p.dir, "precondition", engine.Spec{})
	if err != nil {
		return fail(err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		err = errors.Join(err, con.Remove(end))
	}()
	att, err := con.Attach(ctx, engine.AttachOptions{})
	if err != nil {
		return fail(err)
	}
	defer func() {
		_, e := att.Detach(context.WithoutCancel(ctx), false)
		err = errors.Join(err, e)
	}()
	began := r.c.Clock.Now()
	for n := 1; ; n++ {
		spent := time.Duration(r.c.Clock.Now() - began)
		written := units.Bytes(n-1) * o.SteadyFile
		switch {
		case n > o.SteadyWindow && math.Abs(rec.Slope) < rec.Limit:
			rec.Steady = true
			rec.Text = fmt.Sprintf("%s settled after %s and %s", title, units.Duration(spent).Human(), written.Human())
			return nil
		case spent >= o.SteadyTime.Std():
			rec.Text = unsettled(title, "within "+o.SteadyTime.Human(), rec)
			return nil
		case written+o.SteadyFile > o.SteadyWritten:
			rec.Text = unsettled(title, "within "+o.SteadyWritten.Human()+" written", rec)
			return nil
		}
		s, err := r.steadySample(ctx, att.Volume(), n)
		if err != nil {
			return fail(err)
		}
		rec.Samples = append(rec.Samples, s)
		if n >= o.SteadyWindow {
			rec.Slope = slope(rec.Samples[n-o.SteadyWindow:])
		}
	}
}

func unsettled(title, limit string, rec *result.Precondition) string {
	if len(rec.Samples) < rec.Window {
		return fmt.Sprintf("%s: its rate could not settle %s, which allows %d of the %d files of a window", title, limit, len(rec.Samples), rec.Window)
	}
	return fmt.Sprintf("%s: its rate did not settle %s: over the last %d files it still changed by %.2g %% a file", title, limit, rec.Window, 100*math.Abs(rec.Slope))
}

// steadySample writes, flushes and deletes one file, in the way of the plan.
func (r *run) steadySample(ctx context.Context, vol workload.Volume, n int) (result.SteadySample, error) {
	d := r.p.Defaults
	data, err := workload.NewData(r.p.Run.Seed, n, "precondition", "", 0)
	if err != nil {
		return result.SteadySample{}, err
	}
	set := plan.FileSet{Name: "precondition", Parts: []plan.FilePart{{Sizes: []units.Bytes{r.p.Run.SteadyFile}, Sets: 1}}}
	items := workload.Items(set, workload.Key{Seed: r.p.Run.Seed, Round: r.session, Step: "precondition", Batch: n})
	o := workload.Options{Clock: r.c.Clock, Data: data, Workers: 1, Sync: hostio.SyncMode(d.Sync), Cache: d.Cache, Memory: r.c.Memory,
		Buffers: &r.buffers, Virtual: r.c.Virtual}
	out, err := workload.Write(ctx, vol, items, o)
	if err != nil {
		return result.SteadySample{}, err
	}
	s := result.SteadySample{Bytes: out.Bytes}
	for _, x := range out.Samples {
		s.DurationNS += x.DurationNS
	}
	_, err = workload.Delete(ctx, vol, items, o)
	return s, err
}

// slope is that of the least-squares line of rate on the number of the sample, as a
// share of the mean rate: what fio compares with the limit of steadystate=bw_slope.
func slope(samples []result.SteadySample) float64 {
	n := float64(len(samples))
	var sx, sy, sxx, sxy float64
	for i, s := range samples {
		x, y := float64(i), float64(s.Bytes)/float64(max(s.DurationNS, 1))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx) / (sy / n)
}
