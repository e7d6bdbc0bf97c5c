package exfat

import (
	"cmp"
	"slices"
)

// commit puts the changes of metadata up to number want on the device, and with them all that were made until it
// began. Callers that arrive while one is running share the next one.
//
// The order survives a crash at any point. Bitmap and FAT go first: as freed clusters are still marked, they only say
// more than the directories on the device do. The flush behind them covers the files' data as well. Then come the
// directory entries, flushed, those of directories that took something over from others before the rest. Only now are
// freed clusters given out again.
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
	var received, entries []chunk
	for _, d := range v.sortedDirs() {
		if d.received > v.durable {
			received = d.take(received)
		} else {
			entries = d.take(entries)
		}
	}
	v.mu.Unlock()

	err := v.writeStages(space, received, entries)

	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && v.bootStale {
		err = v.writeBoot()
	}
	if err != nil {
		v.pending = append(freed, v.pending...)
		v.fat.remark(space)
		v.alloc.remark(space)
		for d := range v.dirs {
			d.remark(received)
			d.remark(entries)
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

// writeStages writes and flushes one after the other. The first is flushed in any case, for the data.
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

// discardLater frees clusters once the present changes are durable.
func (v *Volume) discardLater(runs []run) {
	for _, r := range runs {
		v.waiting += r.count
	}
	v.pending = append(v.pending, runs...)
}

// sortedDirs are the loaded directories that have changed, as they lie on the device.
func (v *Volume) sortedDirs() []*directory {
	dirs := make([]*directory, 0, len(v.dirs))
	for d := range v.dirs {
		if d.dirty {
			dirs = append(dirs, d)
		}
	}
	slices.SortFunc(dirs, func(a, b *directory) int { return cmp.Compare(a.at(0), b.at(0)) })
	return dirs
}
