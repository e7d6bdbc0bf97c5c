// Package hostiotest makes operations on files of the host fail or short,
// and records and replays them. Only tests import it.
package hostiotest

import (
	"path"
	"sync"
	"syscall"

	"dmgbench/internal/system/hostio"
)

// Faults is a [hostio.Shortener] that follows a script: a full disk after so
// many bytes, an error on the k-th call of a kind, short transfers. The zero
// script has no effect. It is safe for concurrent use, and may be changed while
// files are in use.
type Faults struct {
	mu     sync.Mutex
	full   bool  // budget counts
	budget int64 // bytes until ENOSPC
	short  int   // longest transfer; 0: no limit
	rules  []*faultRule
}

type faultRule struct {
	kind    hostio.Kind
	glob    string // of the base name; empty: all
	left    int    // calls until it fires
	err     error
	forever bool
}

var _ hostio.Shortener = (*Faults)(nil)

// NoSpaceAfter makes writes and allocations fail with ENOSPC once n more
// bytes were written; the write that crosses the limit is short first, as on a
// full disk. A negative n takes the limit away.
func (f *Faults) NoSpaceAfter(n int64) { f.set(func() { f.full, f.budget = n >= 0, n }) }

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

// Shorten implements [hostio.Shortener].
func (f *Faults) Shorten(op hostio.Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := op.Len
	if f.short > 0 {
		n = min(n, int64(f.short))
	}
	if op.Kind == hostio.OpWrite && f.full && f.budget > 0 {
		n = min(n, f.budget)
	}
	return int(n)
}

// Before fails calls by the script.
func (f *Faults) Before(op hostio.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		ok, _ := path.Match(r.glob, path.Base(op.Path))
		if r.kind != op.Kind || r.glob != "" && !ok {
			continue
		}
		if r.left--; r.left == 0 || r.left < 0 && r.forever {
			return r.err
		}
	}
	if f.full && (op.Kind == hostio.OpWrite || op.Kind == hostio.OpAllocate) {
		if op.Len > f.budget {
			return syscall.ENOSPC
		}
		f.budget -= op.Len
	}
	return nil
}

// After has no effect.
func (f *Faults) After(hostio.Op, int, error) {}
