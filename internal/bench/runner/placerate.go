package runner

import (
	"context"
	"time"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/units"
)

// The measurement of the rate of a place: files of this size, one after the
// other, for a tenth of the time that the run is estimated to take, a second at
// most. A shorter run has the assumed rate.
const (
	trialFile  = units.Bytes(16e6)
	trialFiles = 100 // at most
	trialTime  = time.Second
	trialShare = 10
	trialLeast = 2 * time.Second // of a run
)

// announceCost estimates the run when it starts, by the rate of its slowest place,
// and returns the speeds of its forecast. Further sessions assume the rate: a
// pause may have left an image at a place.
func (r *run) announceCost(ctx context.Context) speeds {
	v := speeds{r.c.Engine.Info().Name, float64(AssumedRate)}
	cost := EstimateCost(r.p, r.c.Engine, AssumedRate)
	if r.session > 1 {
		return v
	}
	if total := cost.Total(); total >= trialLeast && !isSimulated(r.c.Engine) {
		if rate := r.measureRate(ctx, min(total/trialShare, trialTime)); rate > 0 {
			v.rate = rate
			cost = EstimateCost(r.p, r.c.Engine, units.Rate(rate))
			cost.Measured = true
		}
	}
	r.c.Progress.Message(r.p.Name + ": " + cost.String())
	return v
}

// measureRate writes files to each place of the run, in its marked folder, and
// removes them: the rate of the slowest, 0 if one cannot be written to. Then the
// first case has the error.
func (r *run) measureRate(ctx context.Context, limit time.Duration) (slowest float64) {
	for _, f := range r.folders {
		rate, err := r.placeRate(ctx, f, limit)
		if err != nil {
			return 0
		}
		if slowest == 0 || rate < slowest {
			slowest = rate
		}
	}
	return slowest
}

// placeRate is the rate at which files are written and flushed at a place, as the
// plan asks for it by default, 0 where no time passes.
func (r *run) placeRate(ctx context.Context, f *workFolder, limit time.Duration) (rate float64, err error) {
	err = r.withNativeFolder(ctx, f, "rate", func(vol workload.Volume) error {
		var bytes, took int64
		start := r.c.Clock.Now()
		for n := 1; n <= trialFiles; n++ {
			out, err := r.writeTrial(ctx, vol, "rate", n, trialFile)
			if err != nil {
				return err
			}
			bytes += out.Bytes
			for _, s := range out.Samples {
				took += s.DurationNS
			}
			if took == 0 { // a virtual clock
				return nil
			}
			if r.c.Clock.Now()-start >= limit {
				break
			}
		}
		rate = float64(bytes) / time.Duration(took).Seconds()
		return nil
	})
	return rate, err
}
