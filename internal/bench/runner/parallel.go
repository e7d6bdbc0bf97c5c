package runner

import (
	"context"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

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
		if x.main != nil {
			main := *x.main
			main.liveFiles = x.main.clone()
			main.batches += i
			view.main, p.live, p.named = &main, len(main.live), len(main.named)
		}
		p.x, out[i] = &view, p
	}
	return out
}

// merge adds the files that a step of a parallel block has made.
func (x *caseRun) merge(p *parallelStep) {
	if x.main == nil {
		return
	}
	made := p.x.main
	x.main.addBatch(made.live[p.live:], x.fileSet(p.st))
	x.main.named = append(x.main.named, made.named[p.named:]...)
	x.main.batches = max(x.main.batches, made.batches)
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
	err := s.timed(func() error { return workload.Parallel(ctx, work...) })
	for _, p := range steps {
		x.merge(p)
		if e := x.record(ctx, p.st, p.rec, p.err); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// replayParallel replays the steps of a block one after another.
func (s *stepRun) replayParallel(ctx context.Context) error {
	for _, p := range s.x.splitParallel(s.st.Steps) {
		h, err := p.x.container(p.st)
		if err != nil || h == nil {
			continue
		}
		if err := (&stepRun{x: p.x, st: p.st, h: h}).replay(ctx); err != nil {
			return err
		}
		s.x.merge(p)
	}
	return nil
}
