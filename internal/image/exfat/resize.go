package exfat

import (
	"bytes"
	"dmgbench/internal/system/units"
	"errors"
	"fmt"
)

// MaxSize is the size in bytes up to which Resize can grow the volume: what its
// FAT has room for.
func (v *Volume) MaxSize() int64 {
	clusters := min(int64(v.g.FATLength)<<v.g.SectorShift/4-firstData, maxClusters)
	return v.g.heapStart() + clusters*v.g.clusterSize()
}

// MinSize is the size in bytes to which Resize can shrink the volume now.
func (v *Volume) MinSize() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.minSize()
}

// minSize is MinSize under mu.
func (v *Volume) minSize() int64 {
	last := v.g.Clusters
	for last > 0 && !v.alloc.taken(last-1) {
		last--
	}
	return max(v.g.at(last+firstData), minVolumeSize)
}

// Resize makes the volume end at size bytes, on the same device: one that has
// grown before, or will be cut afterwards. No files may be open. Errors wrap
// ErrFATTooSmall when the FAT has no room for the clusters, and ErrShrinkUsed
// when clusters beyond the new end are in use (clusters are not moved).
func (v *Volume) Resize(size int64) (err error) {
	defer annotate(&err, "resizing volume to %d bytes", size)
	if err := v.quiesce(); err != nil {
		return err
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	next, err := v.resized(size)
	if err != nil || next == v.g {
		return err
	}
	if err := v.touch(); err != nil {
		return err
	}
	if next.Clusters >= v.g.Clusters {
		err = v.grow(next)
	} else {
		// The boot sector first: from then on the clusters that go are not part
		// of the volume.
		former := v.g
		v.g.Sectors, v.g.Clusters = next.Sectors, next.Clusters
		err = v.writeBoot()
		v.g.Sectors, v.g.Clusters = former.Sectors, former.Clusters
		if err == nil {
			err = v.setClusters(next)
		}
	}
	if err != nil { // whatever the device has now, the next commit writes what the volume in memory is
		v.bootStale = true
		v.changed()
	}
	return err
}

// grow puts the longer bitmap in place before the boot sector names more
// clusters. Where the volume has no room for the bitmap, it first grows to the
// clusters that the last cluster of the present bitmap can describe, and then
// has room.
func (v *Volume) grow(next geometry) error {
	err := v.setClusters(next)
	if room := extentsLen(v.bmExtent) * 8; errors.Is(err, ErrNoSpace) && room > int64(v.g.Clusters) {
		middle := next
		middle.Clusters = uint32(room)
		if err := v.setClusters(middle); err != nil {
			return err
		}
		if err := v.writeBoot(); err != nil {
			return err
		}
		err = v.setClusters(next)
	}
	if err != nil {
		return err
	}
	return v.writeBoot()
}

// resized is the geometry for a size, if it is possible.
func (v *Volume) resized(size int64) (geometry, error) {
	next := v.g
	next.Sectors = uint64(max(0, size)) >> v.g.SectorShift
	switch {
	case v.open > 0:
		return next, fmt.Errorf("%d files are open: %w", v.open, ErrBusy)
	case size > v.dev.Size():
		return next, fmt.Errorf("device has %d bytes: %w", v.dev.Size(), ErrNoSpace)
	case size > v.g.at(v.g.Clusters+firstData) && size > v.MaxSize()+v.g.clusterSize()-1:
		return next, fmt.Errorf("possible are %d bytes: %w", v.MaxSize(), ErrFATTooSmall)
	case size < v.minSize():
		return next, fmt.Errorf("possible are %d bytes: %w", v.minSize(), ErrShrinkUsed)
	}
	next.Clusters = uint32(min((size-v.g.heapStart())/v.g.clusterSize(), maxClusters))
	return next, nil
}

// setClusters takes the new number of clusters over into FAT, bitmap and root
// directory, and writes them. A bitmap that becomes too long for its clusters
// gets new ones; one that becomes shorter gives clusters back. After an error
// the volume in memory is as before, and the next commit writes it back. The
// order of the writes survives a crash at each of them: FAT, bitmap, the root
// directory that names the bitmap, and the cut of the old chain last.
func (v *Volume) setClusters(next geometry) (err error) {
	need := (int64(next.Clusters) + 7) / 8
	bits := append([]byte(nil), v.alloc.data...)
	if grown := units.RoundUp(need, 8) - int64(len(bits)); grown > 0 {
		bits = append(bits, make([]byte, grown)...)
	}
	var taken, former []run
	var cutAt uint32
	restore := v.checkpoint()
	defer func() {
		if err == nil {
			return
		}
		restore()
		v.alloc.release(taken)
		if cutAt != 0 {
			err = errors.Join(err, v.fat.set(cutAt, former[0].first))
		}
	}()
	extents := v.bmExtent
	if extentsLen(extents) < need {
		// In the old part of the volume, so that a crash before the boot sector
		// is written leaves it mountable.
		taken, err = v.alloc.allocate(uint32(next.clustersFor(need)), 0, 0, false)
		if err != nil {
			return fmt.Errorf("longer allocation bitmap: %w", err)
		}
		if err := v.fat.link(0, taken); err != nil {
			return err
		}
		former, extents = v.g.runs(extents), v.g.appendRuns(nil, taken)
		copy(bits, v.alloc.data)
	} else if keep, rest := cut(extents, next.clustersFor(need)*next.clusterSize()); len(rest) > 0 {
		last := keep[len(keep)-1]
		cutAt = v.g.cluster(last.Device+last.Length) - 1
		former, extents = v.g.runs(rest), keep
	}
	if err := v.writeNow(v.fat); err != nil {
		return err
	}
	// The other fields of the geometry are read without a lock and do not
	// change.
	v.g.Sectors, v.g.Clusters, v.bmExtent = next.Sectors, next.Clusters, extents
	v.fat = newFAT(v.dev, &v.g)
	v.setBitmap(bits[:units.RoundUp(need, 8)])
	v.alloc.clearBeyond()
	v.alloc.markAll()
	if err := v.writeNow(v.alloc); err != nil {
		return err
	}
	v.nameBitmap(need)
	if err := v.writeNow(v.root); err != nil {
		return err
	}
	if cutAt != 0 {
		if err := v.fat.set(cutAt, endOfChain); err != nil {
			return err
		}
		if err := v.writeNow(v.fat); err != nil {
			return err
		}
	}
	v.alloc.release(former)
	return v.writeNow(v.alloc)
}

// checkpoint returns a function that undoes in memory what setClusters changes;
// a commit has to follow.
func (v *Volume) checkpoint() (restore func()) {
	g, extents, fat, alloc, named := v.g, v.bmExtent, v.fat, v.alloc, bytes.Clone(v.bitmapEntry())
	return func() {
		v.g.Sectors, v.g.Clusters, v.bmExtent, v.fat, v.alloc = g.Sectors, g.Clusters, extents, fat, alloc
		copy(v.bitmapEntry(), named)
		v.root.mark(v.bmEntry*entryLen, entryLen)
		v.alloc.markAll()
		v.changed()
	}
}

// bitmapEntry is the entry of the root directory that names the bitmap.
func (v *Volume) bitmapEntry() []byte { return v.root.data[v.bmEntry*entryLen:][:entryLen] }

// nameBitmap makes the root directory name the present bitmap, of size bytes.
func (v *Volume) nameBitmap(size int64) {
	f := decodeSystem(v.bitmapEntry()) // whose reserved bytes stay
	f.first, f.size = v.g.cluster(v.bmExtent[0].Device), size
	f.encode(v.bitmapEntry())
	v.root.mark(v.bmEntry*entryLen, entryLen)
}

// metadata is anything that remembers which of its pages the device lacks.
type metadata interface {
	take(chunks []chunk) []chunk
	markAll()
}

// writeNow writes the dirty pages of m and flushes the device. They stay dirty
// if that fails.
func (v *Volume) writeNow(m metadata) error {
	err := writeChunks(v.dev, m.take(nil))
	if err == nil {
		err = v.dev.Flush()
	}
	if err != nil {
		m.markAll()
	}
	return err
}

// clearBeyond makes what follows the last cluster in the bitmap zero, and
// counts again.
func (b *bitmap) clearBeyond() {
	if b.n%8 != 0 {
		b.data[b.n/8] &= 1<<(b.n%8) - 1
	}
	clear(b.data[(b.n+7)/8:])
	b.free = b.n - b.count()
}

// writeBoot rewrites both boot regions for the present geometry; boot code and
// parameters stay.
func (v *Volume) writeBoot() error {
	size := v.g.sectorSize()
	region := make([]byte, bootSectors*size)
	if err := readFull(v.dev, region, 0); err != nil {
		return err
	}
	g := v.g
	g.Flags |= flagDirty
	g.encode(region)
	copy(region[11*size:], checksumSector(region, int(size)))
	if err := writeFlush(v.dev, region, bootSectors*size); err != nil {
		return err
	}
	copy(v.head, region)
	if err := writeFlush(v.dev, region, 0); err != nil {
		return err
	}
	v.bootStale = false
	return nil
}
