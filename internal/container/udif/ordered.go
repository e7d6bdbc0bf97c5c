package udif

import (
	"context"
	"sync"
)

// ordered runs the jobs that produce yields on so many workers, and hands each to deliver once its work is done, in
// the order of produce. At most depth jobs wait between the two. The first error ends everything: when ordered returns,
// no goroutine of it runs any more. yield returns false then; produce must stop.
func ordered[T any](ctx context.Context, workers, depth int,
	produce func(ctx context.Context, yield func(T) bool) error, work func(context.Context, T) error, deliver func(T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)

	type job struct {
		value T
		done  chan error
	}
	queue, line := make(chan *job, depth), make(chan *job, depth)
	for range workers {
		all.Go(func() {
			for j := range queue {
				if ctx.Err() != nil {
					return
				}
				j.done <- work(ctx, j.value)
			}
		})
	}
	all.Go(func() {
		defer close(queue)
		defer close(line)
		err := produce(ctx, func(value T) bool {
			j := &job{value, make(chan error, 1)}
			select {
			case line <- j:
				queue <- j // has room whenever line had
				return true
			case <-ctx.Done():
				return false
			}
		})
		if err != nil {
			cancel(err)
		}
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
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx)
}

// takeFree waits for a free buffer. It is nil when the context has ended.
func takeFree[T any](ctx context.Context, free chan *T) *T {
	select {
	case v := <-free:
		return v
	case <-ctx.Done():
		return nil
	}
}
