package exfat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/units"
)

// FormatOptions are the choices that Format leaves open. The same options on
// devices of the same size give the same bytes.
type FormatOptions struct {
	// Label is the volume label, at most 11 UTF-16 units; empty means none.
	Label string
	// ClusterSize in bytes is a power of two from 512 to 32 MiB. 0 chooses as
	// mkfs.exfat does: 4 KiB up to 256 MiB, 32 KiB up to 32 GiB, 128 KiB
	// beyond; and from some 16 TB on as much more as DefaultMetadataLimit asks
	// for.
	ClusterSize int64
	// Serial is the volume serial number.
	Serial uint32
	// PartitionOffset is the offset of the device on its disk, in bytes; boot
	// code uses it, this package does not.
	PartitionOffset int64
	// MaxSize is the size in bytes up to which Resize shall be able to grow the
	// volume; the FAT is made that long. 0 means the size of the device.
	MaxSize int64
}

// clusterSize is the size of clusters on a device of size bytes.
func (o FormatOptions) clusterSize(size int64) int64 {
	switch {
	case o.ClusterSize != 0:
		return o.ClusterSize
	case size <= 256<<20:
		return 4 << 10
	case size <= 32<<30:
		return 32 << 10
	}
	cluster := int64(128 << 10)
	for cluster < 32<<20 && metadataSize(size/cluster) > DefaultMetadataLimit {
		cluster *= 2
	}
	return cluster
}

// metadataSize is what so many clusters take in FAT and bitmap, in bytes.
func metadataSize(clusters int64) int64 { return clusters*4 + clusters/8 }

// fitsMemory returns an error if FAT and bitmap take more than limit bytes.
func (g *geometry) fitsMemory(limit int64) error {
	if need := metadataSize(int64(g.Clusters)); need > limit {
		return fmt.Errorf("%d clusters take %d bytes of memory, at most %d are allowed: %w",
			g.Clusters, need, limit, ErrUnsupported)
	}
	return nil
}

// geometry lays the volume out.
func (o FormatOptions) geometry(size int64) (geometry, error) {
	const shift = 9
	cluster, align := o.clusterSize(size), int64(1<<20)
	if size < 32<<20 {
		align = block
	}
	if cluster < 512 || cluster > 32<<20 || bits.OnesCount64(uint64(cluster)) != 1 {
		return geometry{}, fmt.Errorf("cluster size %d is not a power of two from 512 to 33554432", cluster)
	}
	if size < minVolumeSize {
		return geometry{}, fmt.Errorf("%d bytes are less than the smallest volume of %d", size, minVolumeSize)
	}
	if o.PartitionOffset < 0 {
		return geometry{}, fmt.Errorf("partition offset %d is negative", o.PartitionOffset)
	}
	g := geometry{
		Partition: uint64(o.PartitionOffset) >> shift, Sectors: uint64(size) >> shift, FATOffset: 2 * bootSectors,
		SectorShift: shift, ClusterShift: uint8(bits.TrailingZeros64(uint64(cluster)) - shift), NumberOfFATs: 1,
		Drive: 0x80, RevisionMajor: 1, Serial: o.Serial,
	}
	entries := min(max(size, o.MaxSize)/cluster, maxClusters) + firstData
	fat := units.RoundUp(entries*4, block)
	heap := units.RoundUp(g.fatStart()+fat, align)
	if heap+8*cluster > size {
		return geometry{}, fmt.Errorf("%d bytes leave no room for clusters of %d aligned to %d", size, cluster, align)
	}
	g.FATLength = uint32(fat >> shift)
	g.HeapOffset = uint32(heap >> shift)
	g.Clusters = uint32(min((size-heap)/cluster, maxClusters))
	return g, nil
}

// Format makes a new, empty volume that takes the whole device. Only metadata
// is written; parts of the FAT that read as zeros are left alone, so that
// sparse containers stay sparse.
func Format(dev blockdev.Device, o FormatOptions) (err error) {
	defer annotate(&err, "formatting volume")
	label := utf16.Encode([]rune(o.Label))
	if len(label) > labelMax {
		return fmt.Errorf("label %q has %d UTF-16 units, at most %d are possible", o.Label, len(label), labelMax)
	}
	g, err := o.geometry(dev.Size())
	if err != nil {
		return err
	}
	return g.writeNew(dev, label)
}

// writeNew writes all metadata of a new volume.
func (g *geometry) writeNew(dev blockdev.Device, label []uint16) error {
	upcase := upcaseData
	bitmapLen := (int64(g.Clusters) + 7) / 8
	lengths := []int64{bitmapLen, int64(len(upcase)), 1}
	fat := binary.LittleEndian.AppendUint32(nil, 0xFFFFFFF8)
	fat = binary.LittleEndian.AppendUint32(fat, endOfChain)
	var firsts [3]uint32
	next := uint32(firstData)
	for i, n := range lengths {
		firsts[i] = next
		for range g.clustersFor(n) - 1 {
			next++
			fat = binary.LittleEndian.AppendUint32(fat, next)
		}
		next++
		fat = binary.LittleEndian.AppendUint32(fat, endOfChain)
	}
	used := next - firstData
	if used > g.Clusters {
		return fmt.Errorf("metadata takes %d of %d clusters", used, g.Clusters)
	}
	g.Root = firsts[2]
	g.PercentInUse = uint8(uint64(used) * 100 / uint64(g.Clusters))

	// The boot sector is cleared first and written last: an interrupted Format
	// leaves no half volume.
	region := make([]byte, 2*bootSectors*g.sectorSize())
	if err := writeFlush(dev, region, 0); err != nil {
		return err
	}
	if err := g.writeHeap(dev, firsts, used, upcase, label); err != nil {
		return err
	}
	if err := writeSparse(dev, fat, g.fatStart(), int64(g.FATLength)<<g.SectorShift); err != nil {
		return err
	}
	if err := dev.Flush(); err != nil {
		return err
	}
	copy(region, g.encodeRegion())
	copy(region[len(region)/2:], region[:len(region)/2])
	return writeFlush(dev, region, 0)
}

// writeHeap writes bitmap, up-case table and root directory (sections 7.1 to
// 7.3), padded with zeros to whole clusters.
func (g *geometry) writeHeap(dev blockdev.Device, firsts [3]uint32, used uint32, upcase []byte, label []uint16) error {
	bitmap := make([]byte, (used+7)/8)
	for i := range used {
		bitmap[i/8] |= 1 << (i % 8)
	}
	bitmapLen := (int64(g.Clusters) + 7) / 8
	root := make([]byte, 3*entryLen)
	root[0] = typeLabel
	if len(label) == 0 {
		root[0] &^= inUse
	}
	root[1] = byte(len(label))
	copy(root[2:], unitBytes(label))
	root[entryLen], root[2*entryLen] = typeBitmap, typeUpcase
	systemFile{first: firsts[0], size: bitmapLen}.encode(root[entryLen:])
	systemFile{sum: tableChecksum(upcase), first: firsts[1], size: int64(len(upcase))}.encode(root[2*entryLen:])
	for i, b := range [][]byte{bitmap, upcase, root} {
		length := max(int64(len(b)), 1)
		if i == 0 {
			length = bitmapLen
		}
		if err := writeSparse(dev, b, g.at(firsts[i]), g.clustersFor(length)*g.clusterSize()); err != nil {
			return err
		}
	}
	return nil
}

// writeSparse writes b at off and zeros up to length; blocks of 64 KiB that
// already read as zeros are not written, so that sparse images stay sparse.
func writeSparse(dev blockdev.Device, b []byte, off, length int64) error {
	const step = 64 << 10
	var old, zeros [step]byte
	for done := int64(0); done < length; done += step {
		n := min(step, length-done)
		want := zeros[:n]
		if done < int64(len(b)) {
			want = make([]byte, n)
			copy(want, b[done:])
		} else if err := readFull(dev, old[:n], off+done); err != nil {
			return err
		} else if bytes.Equal(old[:n], want) {
			continue
		}
		if err := writeFull(dev, want, off+done); err != nil {
			return err
		}
	}
	return nil
}

// writeFlush writes b and flushes the device.
func writeFlush(dev blockdev.Device, b []byte, off int64) error {
	if err := writeFull(dev, b, off); err != nil {
		return err
	}
	return dev.Flush()
}

// writeFull writes b; the error names the range.
func writeFull(dev blockdev.Device, b []byte, off int64) error {
	if _, err := dev.WriteAt(b, off); err != nil {
		return fmt.Errorf("writing %d bytes at %d: %w", len(b), off, err)
	}
	return nil
}
