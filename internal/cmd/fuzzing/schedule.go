package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// spent is what a turn of a target came to.
type spent struct {
	cpu   time.Duration
	execs int64
}

// schedule gives the targets their turns, o.jobs at a time, and enters each into the book as it ends. It returns the
// number of turns. A target that fails gets no further turn, and the error says all that failed. An interruption ends it
// without an error; the turns that it cut short count as well.
func schedule(ctx context.Context, o options, targets []target, book *ledger, fuzz func(context.Context, target, time.Duration) (spent, error)) (int, error) {
	queue := &queue{o: o, book: book, left: slices.Clone(targets), busy: map[target]bool{}, end: time.Now().Add(o.total)}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		turns  int
		failed []error
	)
	for range o.jobs {
		wg.Go(func() {
			for ctx.Err() == nil {
				t, ok := queue.next()
				if !ok {
					return
				}
				s, err := fuzz(ctx, t, o.each)
				mu.Lock()
				if err == nil {
					turns++
					err = book.add(t, s)
				}
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
				queue.done(t, err == nil)
			}
		})
	}
	wg.Wait()
	return turns, errors.Join(failed...)
}

// queue says whose turn it is.
type queue struct {
	mu   sync.Mutex
	o    options
	book *ledger
	left []target        // in one pass: those that had no turn yet
	busy map[target]bool // no target runs twice at a time: they would share a corpus
	end  time.Time
}

// next returns the target whose turn it is, and false when there is none any more.
func (q *queue) next() (target, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.o.total == 0 {
		if len(q.left) == 0 {
			return target{}, false
		}
		t := q.left[0]
		q.left = q.left[1:]
		return t, true
	}
	if !time.Now().Before(q.end) {
		return target{}, false
	}
	var best target
	least, found := q.o.aim, false
	for _, t := range q.left {
		if cpu := q.book.cpu(t); !q.busy[t] && cpu < least {
			best, least, found = t, cpu, true
		}
	}
	if found {
		q.busy[best] = true
	}
	return best, found
}

// done gives a target back, for another turn or for none.
func (q *queue) done(t target, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, t)
	if !again {
		q.left = slices.DeleteFunc(q.left, func(other target) bool { return other == t })
	}
}
