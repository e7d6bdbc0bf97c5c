package container

import (
	"fmt"
	"slices"
)

// compact implements layout. First the entries of what is dropped go; then
// what lies at the file's end is copied into the free chunks and, when that is
// durable, found there; then the file is cut. Each entry changes on its own, so
// that a crash leaves either place, never none.
func (a *asif) compact(keep func(i int64) (bool, error)) error {
	chunks := ceil(a.head.size(), a.head.chunk)
	for _, g := range a.numbers() {
		for k := range a.head.perGroup {
			i := g*a.head.perGroup + k
			if at, _ := a.find(i); at == 0 || i >= chunks {
				continue
			}
			ok, err := keep(i)
			if err != nil {
				return err
			}
			if !ok {
				a.forget(i)
			}
		}
	}
	if err := a.commit(); err != nil {
		return err
	}
	return a.pack()
}

// forget marks chunk i as unmapped and leaves its place alone.
func (a *asif) forget(i int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set(a.slot(i), asifUnmapped)
	a.chunks--
}

// packing is what lies where.
type packing struct {
	used   bits
	limit  int64   // chunks that are needed
	slots  []int64 // entries of what lies behind, bitmaps among them
	tables []int64 // that lie behind
	free   []int64 // chunks in front of the limit that nothing is in
}

func (a *asif) survey() packing {
	p := packing{limit: a.head.firstFree}
	a.each(func(slot, n int64) { p.used.set(n); p.limit++ })
	for _, n := range a.dir {
		if n != 0 {
			p.used.set(n)
			p.limit++
		}
	}
	a.each(func(slot, n int64) {
		if n >= p.limit {
			p.slots = append(p.slots, slot)
		}
	})
	for t, n := range a.dir {
		if n >= p.limit {
			p.tables = append(p.tables, int64(t))
		}
	}
	for n := a.head.firstFree; n < p.limit; n++ {
		if !p.used.has(n) {
			p.free = append(p.free, n)
		}
	}
	return p
}

// each calls do for every entry with a chunk.
func (a *asif) each(do func(slot, n int64)) {
	for _, g := range a.numbers() {
		for k := range a.head.perGroup + 1 {
			slot := g*(a.head.perGroup+1) + k
			if _, n := asifState(a.entry(slot).get()); n != 0 {
				do(slot, n)
			}
		}
	}
}

func (a *asif) pack() error {
	p := a.survey()
	free := p.free
	for k, slot := range p.slots {
		state, n := asifState(a.entry(slot).get())
		if err := a.copyBytes(free[k]*a.head.chunk, n*a.head.chunk, a.head.chunk); err != nil {
			return fmt.Errorf("moving chunk %d: %w", n, err)
		}
		a.mu.Lock()
		a.set(slot, state|uint64(free[k]))
		a.mu.Unlock()
	}
	if err := a.commit(); err != nil {
		return err
	}
	free = free[len(p.slots):]
	for k, t := range p.tables {
		if err := a.copyBytes(free[k]*a.head.chunk, a.dir[t]*a.head.chunk, a.head.chunk); err != nil {
			return fmt.Errorf("moving table %d: %w", t, err)
		}
		a.dir[t] = free[k]
	}
	// Twice, so that neither directory leads to where the tables were.
	for range 2 * min(1, len(p.tables)) {
		a.moved = true
		if err := a.commit(); err != nil {
			return err
		}
	}
	a.next, a.free, a.dropped = p.limit, nil, nil
	if err := a.f.Truncate(p.limit * a.head.chunk); err != nil {
		return err
	}
	return a.sync()
}

// resize implements layout. What an earlier, larger size left beyond the end
// goes before a larger size can show it, and after a smaller one has hidden it.
func (a *asif) resize(size int64) error {
	if size%a.head.block != 0 || size > min(a.head.most*a.head.block, a.head.meta*a.head.chunk) {
		return fmt.Errorf("%d bytes in blocks of %d, up to %d of them: %w", size, a.head.block, a.head.most, errBadSize)
	}
	if old := a.head.size(); size > old {
		if err := a.blankEnd(old); err != nil {
			return err
		}
		if err := a.forgetBeyond(old); err != nil {
			return err
		}
	}
	a.head.blocks = size / a.head.block
	if err := a.put(a.head.encode(), 0); err != nil {
		return err
	}
	if err := a.sync(); err != nil {
		return err
	}
	return a.forgetBeyond(size)
}

// blankEnd makes what the chunk across the end of a device holds behind it zeros.
func (a *asif) blankEnd(size int64) error {
	i, in := size/a.head.chunk, size%a.head.chunk
	if in == 0 {
		return nil
	}
	if err := a.complete(i); err != nil {
		return err
	}
	at, _ := a.find(i)
	if at == 0 {
		return nil
	}
	return a.writeZeros(at+in, a.head.chunk-in)
}

// forgetBeyond marks what lies between the end of a device and the metadata as
// unmapped.
func (a *asif) forgetBeyond(size int64) error {
	first := ceil(size, a.head.chunk)
	var list []int64
	a.each(func(slot, _ int64) {
		if g, k := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1); k < a.head.perGroup {
			list = append(list, g*a.head.perGroup+k)
		}
	})
	for _, i := range slices.DeleteFunc(list, func(i int64) bool { return i < first || i >= a.head.meta }) {
		if err := a.drop(i); err != nil {
			return err
		}
	}
	return a.commit()
}
