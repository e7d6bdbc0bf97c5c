package exfat

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"dmgbench/internal/image/blockdev"
)

// commit writes the changes of metadata up to number want to the device, and
// all others made before it started. Callers that arrive while one is running
// share the next one.
//
// The order survives a crash at any point. Bitmap and FAT go first: since freed
// clusters are still marked in them, they can only list more clusters than the
// directories on the device do. The flush after them covers the files' data as
// well. Then follow the directory entries, flushed; directories with entries
// from others go before the rest. Only then are freed clusters available again.
func (v *Volume) commit(want uint64) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.Lock()
	if v.durable >= want {
		v.mu.Unlock()
		return nil
	}
	upto, freed := v.gen, v.pending
	v.pending = nil
	space := v.alloc.take(v.fat.take(nil))
	var movedIn, entries []chunk
	dirs := slices.DeleteFunc(slices.Collect(maps.Keys(v.dirs)), func(d *directory) bool { return !d.dirty })
	slices.SortFunc(dirs, func(a, b *directory) int { return cmp.Compare(a.at(0), b.at(0)) }) // as they lie on the device
	for _, d := range dirs {
		if d.movedIn > v.durable {
			movedIn = d.take(movedIn)
		} else {
			entries = d.take(entries)
		}
	}
	v.mu.Unlock()

	err := v.writeStages(space, movedIn, entries)

	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && v.bootStale {
		err = v.writeBoot()
	}
	if err != nil {
		v.pending = append(freed, v.pending...)
		v.fat.markAll()
		v.alloc.markAll()
		for d := range v.dirs {
			d.markAll()
		}
		return err
	}
	v.durable = upto
	for _, r := range freed {
		v.waiting -= r.count
	}
	v.alloc.release(freed)
	return nil
}

// quiesce writes all changes to the device, freed clusters included, so that
// bitmap and directories agree there.
func (v *Volume) quiesce() error {
	if err := v.Sync(); err != nil || !v.marked.Load() {
		return err
	}
	for range 2 { // the second writes the clusters that the first has freed
		v.mu.Lock()
		want := v.changed()
		v.mu.Unlock()
		if err := v.commit(want); err != nil {
			return err
		}
	}
	return nil
}

// writeStages writes and flushes one after the other. The first is flushed in
// any case, for the data.
func (v *Volume) writeStages(stages ...[]chunk) error {
	for i, chunks := range stages {
		if i > 0 && len(chunks) == 0 {
			continue
		}
		if err := writeChunks(v.dev, chunks); err != nil {
			return err
		}
		if err := v.dev.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// discardLater frees clusters once the present changes are durable. Until then
// an entry on the device names them, and after a crash they have to be what
// they were.
func (v *Volume) discardLater(runs []run) {
	for _, r := range runs {
		v.waiting += r.count
	}
	v.pending = append(v.pending, runs...)
}

// chunk is metadata on its way to the device.
type chunk struct {
	off  int64
	data []byte
}

// writeChunks writes all of them and stops at the first error.
func writeChunks(dev blockdev.Device, chunks []chunk) error {
	for _, c := range chunks {
		if err := writeFull(dev, c.data, c.off); err != nil {
			return err
		}
	}
	return nil
}

// paged is metadata in memory that remembers which pages differ from the
// device. Pages are 4 KiB, or a cluster if that is less, so that a page is
// never split on the device.
type paged struct {
	data []byte
	// page is the size of a page in bytes.
	page int
	// set has a bit for each dirty page, dirty whether any is set.
	set   []uint64
	dirty bool
	// at is the device offset of an offset in data. All bytes of a page are
	// neighbours on the device.
	at func(off int64) int64
}

// mark records that n bytes at off have changed.
func (p *paged) mark(off, n int) {
	if n == 0 {
		return
	}
	for page := off / p.page; page <= (off+n-1)/p.page; page++ {
		for page/64 >= len(p.set) {
			p.set = append(p.set, 0)
		}
		p.set[page/64] |= 1 << (page % 64)
	}
	p.dirty = true
}

// take appends copies of the dirty pages to chunks, neighbours joined, and
// marks them clean.
func (p *paged) take(chunks []chunk) []chunk {
	if !p.dirty {
		return chunks
	}
	p.dirty = false
	for i, word := range p.set {
		p.set[i] = 0
		for ; word != 0; word &= word - 1 {
			off := (i*64 + bits.TrailingZeros64(word)) * p.page
			if off >= len(p.data) {
				break
			}
			data, at := p.data[off:min(off+p.page, len(p.data))], p.at(int64(off))
			if last := len(chunks) - 1; last >= 0 && chunks[last].off+int64(len(chunks[last].data)) == at {
				chunks[last].data = append(chunks[last].data, data...)
				continue
			}
			chunks = append(chunks, chunk{at, append([]byte(nil), data...)})
		}
	}
	return chunks
}

// markAll makes all pages dirty, after a write of some failed.
func (p *paged) markAll() { p.mark(0, len(p.data)) }
