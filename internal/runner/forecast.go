package runner

import (
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/workload"
)

// Speeds that a forecast assumes until the run has shown its own.
const (
	assumedRate = 500e6                  // bytes per second: a SATA SSD
	assumedStep = 200 * time.Millisecond // create, attach, detach and all else, each
)

// caseForecast is how long one round of a case takes at the assumed speeds.
type caseForecast struct {
	work []time.Duration // until the end of each step, waiting excluded
	wait time.Duration   // that the protocol prescribes
}

// total is the work of all steps.
func (f caseForecast) total() time.Duration {
	if len(f.work) == 0 {
		return 0
	}
	return f.work[len(f.work)-1]
}

// until is the work of the first n steps and a share of the next one.
func (f caseForecast) until(n int, share float64) time.Duration {
	if n >= len(f.work) {
		return f.total()
	}
	var before time.Duration
	if n > 0 {
		before = f.work[n-1]
	}
	return before + time.Duration(share*float64(f.work[n]-before))
}

// forecast adds up what a run has to do and has done. Work is in time at the assumed speeds; the ratio of the time that
// it really took to that corrects it as the run goes.
type forecast struct {
	cases      map[string]caseForecast
	work, wait time.Duration // of one round of all cases
	done       time.Duration // work of the case-rounds that this session or an earlier one has finished
	over       time.Duration // waiting of those
	slept      time.Duration // waiting of the case-round under way
}

func newForecast(p *plan.Plan, cases []plan.Case) forecast {
	f := forecast{cases: map[string]caseForecast{}}
	for _, c := range cases {
		cf := caseForecast{wait: waiting(c.Steps)}
		var sum time.Duration
		for _, s := range plan.Estimate(p, c).Steps {
			sum += assumedStep
			switch s.Do {
			case "write", "read", "verify", "copy", "stream":
				sum += time.Duration(float64(s.Bytes) / assumedRate * float64(time.Second))
			}
			cf.work = append(cf.work, sum)
		}
		f.cases[c.ID] = cf
		f.work, f.wait = f.work+cf.total(), f.wait+cf.wait
	}
	return f
}

// finish enters a case-round that has ended, whatever its end was.
func (f *forecast) finish(id string) {
	f.done += f.cases[id].total()
	f.over += f.cases[id].wait
	f.slept = 0
}

// fill adds the forecast to a status; steps of the case under way have ended.
func (f *forecast) fill(s *Status, steps int, p workload.Progress, aim int) {
	share := 0.0
	if p.OfBytes > 0 {
		share = min(float64(p.Bytes)/float64(p.OfBytes), 1)
	}
	of := f.cases[s.Case]
	s.WorkNS = int64(f.done + of.until(steps, share))
	s.OfWorkNS = int64(f.work) * int64(aim)
	s.WaitedNS = int64(f.over + min(f.slept, of.wait))
	s.OfWaitNS = int64(f.wait) * int64(aim)
}
