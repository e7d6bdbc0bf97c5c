package workload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Gate is one step's part of a start that several steps share: their clocks
// start together once all of them are ready.
type Gate struct {
	shared  *barrier
	arrived atomic.Bool
}

// barrier is what the gates of one start share.
type barrier struct {
	parties int
	missing atomic.Int64
	open    chan struct{}
}

// newGates are the n parts of one start, one for each step.
func newGates(n int) []*Gate {
	b := &barrier{parties: n, open: make(chan struct{})}
	b.missing.Store(int64(n))
	gates := make([]*Gate, n)
	for i := range gates {
		gates[i] = &Gate{shared: b}
	}
	return gates
}

// Leave removes the step from the start, so that the others do not wait for it.
// It has no effect after the step has arrived.
func (g *Gate) Leave() {
	if g != nil && !g.arrived.Swap(true) && g.shared.missing.Add(-1) == 0 {
		close(g.shared.open)
	}
}

// wait arrives and blocks until all have, or ctx is done. A step waits only
// once. A nil gate is open.
func (g *Gate) wait(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.Leave()
	select {
	case <-g.shared.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Parallel executes steps at the same time. Each gets its part of one gate,
// which it puts into its Options. Parallel returns when all have ended, with
// all their errors; a failing step does not stop the others.
func Parallel(ctx context.Context, steps ...func(ctx context.Context, g *Gate) error) error {
	gates, errs := newGates(len(steps)), make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() {
			defer gates[i].Leave()
			errs[i] = step(ctx, gates[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
