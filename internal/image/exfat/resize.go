package exfat

import (
	"errors"
	"fmt"

	"dmgbench/internal/system/units"
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
// when clusters beyond the new end are in use (clusters are not moved). After an
// error of the device the volume is closed: the device has what a crash at this
// point leaves, a volume of either size that is marked dirty.
func (v *Volume) Resize(size int64) (err error) {
	defer annotate(&err, "resizing volume to %d bytes", size)
	if err := v.quiesce(); err != nil {
		return err
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	next := v.g
	switch {
	case v.open > 0:
		return fmt.Errorf("%d files are open: %w", v.open, ErrBusy)
	case size > v.dev.Size():
		return fmt.Errorf("device has %d bytes: %w", v.dev.Size(), ErrNoSpace)
	case size > v.g.at(v.g.Clusters+firstData) && size > v.MaxSize()+v.g.clusterSize()-1:
		return fmt.Errorf("possible are %d bytes: %w", v.MaxSize(), ErrFATTooSmall)
	case size < v.minSize():
		return fmt.Errorf("possible are %d bytes: %w", v.minSize(), ErrShrinkUsed)
	}
	next.Sectors = uint64(size) >> v.g.SectorShift
	next.Clusters = uint32(min((size-v.g.heapStart())/v.g.clusterSize(), maxClusters))
	if err := v.touch(); err != nil {
		return err
	}
	if next.Clusters >= v.g.Clusters {
		err = v.grow(next)
	} else {
		// The boot sector first: from then on the clusters that go are not part
		// of the volume.
		v.g.Sectors, v.g.Clusters = next.Sectors, next.Clusters
		if err = v.writeBoot(); err == nil {
			err = v.setClusters(next)
		}
	}
	v.closed = err != nil && !errors.Is(err, ErrNoSpace)
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

// setClusters takes the new number of clusters over into FAT, bitmap and root
// directory, and writes them. A bitmap that becomes too long for its clusters
// gets new ones; one that becomes shorter gives clusters back. With ErrNoSpace
// nothing has changed. The order of the writes survives a crash at each of them:
// FAT, bitmap, the root directory that names the bitmap, and the cut of the old
// chain last.
func (v *Volume) setClusters(next geometry) error {
	need := (int64(next.Clusters) + 7) / 8
	extents, cutAt := v.bmExtent, uint32(0)
	var former []run
	if extentsLen(extents) < need {
		// In the old part of the volume, so that a crash before the boot sector
		// is written leaves it mountable.
		taken, err := v.alloc.allocate(uint32(next.clustersFor(need)), 0, 0, false)
		if err != nil {
			return fmt.Errorf("longer allocation bitmap: %w", err)
		}
		if err := v.fat.link(0, taken); err != nil {
			return err
		}
		former, extents = v.g.runs(extents), v.g.appendRuns(nil, taken)
	} else if keep, rest := cut(extents, next.clustersFor(need)*next.clusterSize()); len(rest) > 0 {
		cutAt, former, extents = lastCluster(v.g.runs(keep)), v.g.runs(rest), keep
	}
	stages := [][]chunk{v.fat.take(nil)}
	bits := make([]byte, units.RoundUp(need, 8))
	copy(bits, v.alloc.data)
	if next.Clusters%8 != 0 { // what follows the last cluster is zero
		bits[next.Clusters/8] &= 1<<(next.Clusters%8) - 1
	}
	clear(bits[need:])
	// The other fields of the geometry are read without a lock and do not
	// change.
	v.g.Sectors, v.g.Clusters, v.bmExtent = next.Sectors, next.Clusters, extents
	v.fat = newFAT(v.dev, &v.g)
	v.setBitmap(bits)
	v.alloc.markAll()
	named := v.root.data[v.bmEntry*entryLen:][:entryLen]
	f := decodeSystem(named) // whose reserved bytes stay
	f.first, f.size = v.g.cluster(extents[0].Device), need
	f.encode(named)
	v.root.mark(v.bmEntry*entryLen, entryLen)
	stages = append(stages, v.alloc.take(nil), v.root.take(nil))
	if cutAt != 0 {
		if err := v.fat.set(cutAt, endOfChain); err != nil {
			return err
		}
	}
	v.alloc.release(former)
	return v.writeStages(append(stages, v.fat.take(nil), v.alloc.take(nil))...)
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
	return writeFlush(v.dev, region, 0)
}
