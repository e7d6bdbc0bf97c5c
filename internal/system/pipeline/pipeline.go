// Package pipeline runs a stage of many workers between a producer and a consumer
// that keep the order.
package pipeline

import (
	"context"
	"sync"
)

// Run runs jobs on so many workers. produce submits them: each submit waits for
// a free one of the reused values and calls fill with it. work runs on the
// workers, in any order; deliver gets the values in the order of produce, and
// each is free again when deliver returns. The first error ends the pipeline:
// submit then returns false and produce must return. When Run returns, none of
// its goroutines runs.
func Run[T any](ctx context.Context, workers int, values []T, produce func(submit func(fill func(*T)) bool),
	work, deliver func(*T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)

	type job struct {
		value *T
		done  chan error
	}
	free, queue, line := make(chan *job, len(values)), make(chan *job, len(values)), make(chan *job, len(values))
	for i := range values {
		free <- &job{value: &values[i], done: make(chan error, 1)}
	}
	for range min(workers, len(values)) {
		all.Go(func() {
			for j := range queue {
				if ctx.Err() != nil {
					return
				}
				j.done <- work(j.value)
			}
		})
	}
	all.Go(func() {
		defer close(queue)
		defer close(line)
		produce(func(fill func(*T)) bool {
			select {
			case j := <-free:
				fill(j.value)
				line <- j // there is room for all jobs
				queue <- j
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	for j := range line {
		select {
		case err := <-j.done:
			if err == nil {
				err = deliver(j.value)
			}
			if err != nil {
				return err
			}
			free <- j
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx)
}
