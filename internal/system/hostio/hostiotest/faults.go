// Package hostiotest makes operations on files of the host fail, slow or short,
// and records and replays them. Only tests import it.
package hostiotest

import (
	"context"
	"path"
	"sync"
	"syscall"
	"time"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// Faults is a [hostio.Shortener] that follows a script: a full disk after so
// many bytes, an error on the k-th call of a kind, short transfers, slow calls.
// The zero script has no effect. It is safe for concurrent use, and may be
// changed while files are in use.
type Faults struct {
	clk clock.Clock

	mu     sync.Mutex
	budget int64 // bytes until ENOSPC; negative: no limit
	short  int   // longest transfer; 0: no limit
	rules  []*faultRule
	slow   map[hostio.Kind]time.Duration
}

type faultRule struct {
	kind    hostio.Kind
	glob    string // of the base name; empty: all
	left    int    // calls until it fires
	err     error
	forever bool
}

var _ hostio.Shortener = (*Faults)(nil)

// NewFaults returns an empty script; slow calls wait on clk.
func NewFaults(clk clock.Clock) *Faults {
	return &Faults{clk: clk, budget: -1, slow: map[hostio.Kind]time.Duration{}}
}

// NoSpaceAfter makes writes and allocations fail with ENOSPC once n more
// bytes were written; the write that crosses the limit is short first, as on a
// full disk. A negative n takes the limit away.
func (f *Faults) NoSpaceAfter(n int64) { f.set(func() { f.budget = n }) }

// set changes the script.
func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// FailNth makes the k-th call of a kind from now (1 is the next) fail with
// err, once. glob limits it to base names that match ("" means all).
func (f *Faults) FailNth(kind hostio.Kind, glob string, k int, err error) {
	f.add(&faultRule{kind: kind, glob: glob, left: k, err: err})
}

// FailFrom is FailNth for all later calls too.
func (f *Faults) FailFrom(kind hostio.Kind, glob string, k int, err error) {
	f.add(&faultRule{kind: kind, glob: glob, left: k, err: err, forever: true})
}

func (f *Faults) add(r *faultRule) { f.set(func() { f.rules = append(f.rules, r) }) }

// ShortTransfers lets no system call move more than n bytes; 0 lifts that.
func (f *Faults) ShortTransfers(n int) { f.set(func() { f.short = n }) }

// SlowCalls delays every call of a kind by d on the clock; 0 lifts that.
func (f *Faults) SlowCalls(kind hostio.Kind, d time.Duration) {
	f.set(func() { f.slow[kind] = d })
}

// Shorten implements [hostio.Shortener].
func (f *Faults) Shorten(op hostio.Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := op.Len
	if f.short > 0 {
		n = min(n, int64(f.short))
	}
	if op.Kind == hostio.OpWrite && f.budget > 0 {
		n = min(n, f.budget)
	}
	return int(n)
}

// Before delays and fails calls by the script.
func (f *Faults) Before(op hostio.Op) error {
	var delay time.Duration
	defer func() { // without the lock
		if delay > 0 {
			_ = f.clk.Sleep(context.Background(), delay)
		}
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	delay = f.slow[op.Kind]
	for _, r := range f.rules {
		if r.kind != op.Kind {
			continue
		}
		if ok, _ := path.Match(r.glob, path.Base(op.Path)); r.glob != "" && !ok {
			continue
		}
		if r.left--; r.left == 0 || r.left < 0 && r.forever {
			return r.err
		}
	}
	if f.budget >= 0 && (op.Kind == hostio.OpWrite || op.Kind == hostio.OpAllocate) {
		if op.Len > f.budget {
			return syscall.ENOSPC
		}
		f.budget -= op.Len
	}
	return nil
}

// After has no effect.
func (f *Faults) After(hostio.Op, int, error) {}
