package exfat

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf16"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/units"
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
	if (size-heap)/cluster > maxClusters {
		return geometry{}, fmt.Errorf("%d bytes are more than the largest volume with clusters of %d, of %d", size, cluster,
			heap+maxClusters*cluster)
	}
	g.FATLength = uint32(fat >> shift)
	g.HeapOffset = uint32(heap >> shift)
	g.Clusters = uint32((size - heap) / cluster)
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

// writeNew writes all metadata of a new volume: FAT, bitmap, up-case table and
// root directory, padded with zeros to whole clusters. The boot sector is cleared
// first and written last: an interrupted Format leaves no half volume.
func (g *geometry) writeNew(dev blockdev.Device, label []uint16) error {
	lengths := []int64{(int64(g.Clusters) + 7) / 8, int64(len(upcaseData)), 1}
	fat := binary.LittleEndian.AppendUint32(nil, 0xFFFFFFF8)
	fat = binary.LittleEndian.AppendUint32(fat, endOfChain)
	next := uint32(firstData)
	firsts := make([]uint32, len(lengths))
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
	bitmap := newBitmap(make([]byte, units.RoundUp(lengths[0], 8)), g.Clusters)
	bitmap.page = block
	bitmap.put(0, used, true)
	root := rootEntries(label, systemFile{first: firsts[0], size: lengths[0]},
		systemFile{sum: upcaseChecksum, first: firsts[1], size: lengths[1]})

	region := make([]byte, 2*bootSectors*g.sectorSize())
	err := writeFlush(dev, region, 0)
	if err == nil {
		err = writeSparse(dev, fat, g.fatStart(), int64(g.FATLength)<<g.SectorShift)
	}
	for i, b := range [][]byte{bitmap.data[:(used+7)/8], upcaseData, root} {
		if err == nil {
			err = writeSparse(dev, b, g.at(firsts[i]), g.clustersFor(lengths[i])*g.clusterSize())
		}
	}
	if err == nil {
		err = dev.Flush()
	}
	if err != nil {
		return err
	}
	copy(region, g.encodeRegion())
	copy(region[len(region)/2:], region[:len(region)/2])
	return writeFlush(dev, region, 0)
}

// rootEntries is the start of a new root directory (sections 7.1 to 7.3).
func rootEntries(label []uint16, bitmap, upcase systemFile) []byte {
	root := make([]byte, 3*entryLen)
	root[0], root[1] = typeLabel, byte(len(label))
	if len(label) == 0 {
		root[0] &^= inUse
	}
	copy(root[2:], unitBytes(label))
	root[entryLen], root[2*entryLen] = typeBitmap, typeUpcase
	bitmap.encode(root[entryLen:])
	upcase.encode(root[2*entryLen:])
	return root
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

// geometry is the part of a boot sector that gives the layout of the volume,
// field by field as on the disk from geometryStart (specification section 3.1).
// Offsets and lengths are in sectors.
type geometry struct {
	Partition     uint64 // PartitionOffset: informative
	Sectors       uint64 // VolumeLength
	FATOffset     uint32
	FATLength     uint32
	HeapOffset    uint32 // ClusterHeapOffset: of cluster 2
	Clusters      uint32 // ClusterCount
	Root          uint32 // FirstClusterOfRootDirectory
	Serial        uint32
	RevisionMinor uint8
	RevisionMajor uint8
	Flags         uint16
	SectorShift   uint8 // the logarithm of the sector size in bytes, 9 to 12
	ClusterShift  uint8 // sectors per cluster
	NumberOfFATs  uint8
	Drive         uint8 // for boot code
	PercentInUse  uint8
}

// geometryStart is the place of the geometry in a boot sector, in bytes.
const geometryStart = 64

// Sizes and offsets of the layout, in bytes.
func (g *geometry) sectorSize() int64  { return 1 << g.SectorShift }
func (g *geometry) clusterSize() int64 { return 1 << (g.SectorShift + g.ClusterShift) }
func (g *geometry) fatStart() int64    { return int64(g.FATOffset) << g.SectorShift }
func (g *geometry) heapStart() int64   { return int64(g.HeapOffset) << g.SectorShift }

// at is the device offset of a cluster, in bytes.
func (g *geometry) at(cluster uint32) int64 {
	return g.heapStart() + int64(cluster-firstData)*g.clusterSize()
}

// cluster is the inverse of at.
func (g *geometry) cluster(off int64) uint32 {
	return uint32((off-g.heapStart())/g.clusterSize()) + firstData
}

// valid reports whether the heap has a cluster of this number.
func (g *geometry) valid(cluster uint32) bool {
	return cluster >= firstData && cluster-firstData < g.Clusters
}

// clustersFor is the number of clusters that n bytes take.
func (g *geometry) clustersFor(n int64) int64 {
	return (n + g.clusterSize() - 1) >> (g.SectorShift + g.ClusterShift)
}

// encode fills in the boot sector b (section 3.1). Boot code and other fields
// of an earlier one stay.
func (g *geometry) encode(b []byte) {
	copy(b, "\xEB\x76\x90EXFAT   ")
	_, _ = binary.Encode(b[geometryStart:], binary.LittleEndian, g) // fails only if b is too short
	b[510], b[511] = 0x55, 0xAA
}

// decodeBoot decodes a boot sector and checks it against the size of the
// device, in bytes. The error wraps ErrNotExFAT if the sector is of another
// file system, and ErrCorrupt or ErrUnsupported if it cannot be used.
func decodeBoot(b []byte, size int64) (geometry, error) {
	if string(b[3:11]) != "EXFAT   " || b[510] != 0x55 || b[511] != 0xAA {
		return geometry{}, fmt.Errorf("boot sector without the exFAT signature: %w", ErrNotExFAT)
	}
	for _, c := range b[11:64] {
		if c != 0 { // a FAT or NTFS parameter block: specification section 3.1.3
			return geometry{}, fmt.Errorf("boot sector with a BIOS parameter block: %w", ErrNotExFAT)
		}
	}
	var g geometry
	_, err := binary.Decode(b[geometryStart:], binary.LittleEndian, &g)
	return g, cmp.Or(err, g.check(size))
}

// check applies the ranges of specification section 3.1.
func (g *geometry) check(size int64) error {
	if g.SectorShift < 9 || g.SectorShift > 12 || g.ClusterShift > 25-g.SectorShift {
		return fmt.Errorf("sector shift %d, cluster shift %d: %w", g.SectorShift, g.ClusterShift, ErrCorrupt)
	}
	fatNeed := (uint64(g.Clusters) + firstData) * 4
	heap := (g.Sectors - uint64(g.HeapOffset)) >> g.ClusterShift
	switch {
	case g.RevisionMajor != 1:
		return fmt.Errorf("revision %d.%02d: %w", g.RevisionMajor, g.RevisionMinor, ErrUnsupported)
	case g.NumberOfFATs != 1:
		return fmt.Errorf("%d FATs: %w", g.NumberOfFATs, ErrUnsupported)
	case g.Sectors > uint64(size)>>g.SectorShift:
		return fmt.Errorf("volume of %d sectors on a device of %d bytes: %w", g.Sectors, size, ErrCorrupt)
	case g.FATOffset < 2*bootSectors || uint64(g.FATLength)<<g.SectorShift < fatNeed:
		return fmt.Errorf("FAT of %d sectors at %d for %d clusters: %w",
			g.FATLength, g.FATOffset, g.Clusters, ErrCorrupt)
	case uint64(g.HeapOffset) < uint64(g.FATOffset)+uint64(g.FATLength) || uint64(g.HeapOffset) >= g.Sectors:
		return fmt.Errorf("cluster heap at sector %d of %d: %w", g.HeapOffset, g.Sectors, ErrCorrupt)
	case g.Clusters == 0 || g.Clusters > maxClusters || uint64(g.Clusters) > heap:
		return fmt.Errorf("%d clusters in a heap for %d: %w", g.Clusters, heap, ErrCorrupt)
	case !g.valid(g.Root):
		return fmt.Errorf("root directory at cluster %d of %d: %w", g.Root, g.Clusters, ErrCorrupt)
	}
	return nil
}

// checksumSector returns the last sector of a region: the sum over the others,
// repeated. VolumeFlags and PercentInUse are not summed up (section 3.4): they
// change while the volume is in use, in the main region alone.
func checksumSector(region []byte, sector int) []byte {
	sum := checksum(checksum[uint32](0, region[:106]), region[108:112])
	sum = checksum(sum, region[113:11*sector])
	return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, sum), sector/4)
}

// encodeRegion returns a whole boot region.
func (g *geometry) encodeRegion() []byte {
	size := int(g.sectorSize())
	b := make([]byte, bootSectors*size)
	g.encode(b)
	for i := 1; i <= 8; i++ {
		copy(b[(i+1)*size-4:], "\x00\x00\x55\xAA")
	}
	copy(b[11*size:], checksumSector(b, size))
	return b
}

// readRegion reads and checks the boot region that starts at sector `first` of
// the device. Since the sector size is in the boot sector, the backup can only
// be found by trying all sizes; sector is the one to try.
func readRegion(dev blockdev.Device, first int, sector int64) (geometry, []byte, error) {
	b := make([]byte, bootSectors*sector)
	if err := readFull(dev, b[:512], int64(first)*sector); err != nil {
		return geometry{}, nil, err
	}
	g, err := decodeBoot(b[:512], dev.Size())
	if err != nil {
		return g, nil, err
	}
	if first == 0 {
		b = make([]byte, bootSectors*g.sectorSize())
	} else if g.sectorSize() != sector {
		return g, nil, fmt.Errorf("backup boot sector for another sector size: %w", ErrCorrupt)
	}
	if err := readFull(dev, b, int64(first)*g.sectorSize()); err != nil {
		return g, nil, err
	}
	if size := int(g.sectorSize()); !bytes.Equal(b[11*size:], checksumSector(b, size)) {
		return g, nil, fmt.Errorf("checksum of the boot region: %w", ErrCorrupt)
	}
	return g, b, nil
}

// readBoot returns the geometry and the region it came from, going to the
// backup when the main one is unusable.
func readBoot(dev blockdev.Device) (g geometry, region []byte, backup bool, err error) {
	g, region, err = readRegion(dev, 0, 512)
	if err == nil {
		return g, region, false, nil
	}
	if !structural(err) {
		return g, nil, false, fmt.Errorf("reading boot sector: %w", err)
	}
	for shift := 9; shift <= 12; shift++ {
		bg, bregion, berr := readRegion(dev, bootSectors, 1<<shift)
		if berr == nil {
			return bg, bregion, true, nil
		}
		if !structural(berr) {
			return g, nil, false, fmt.Errorf("reading backup boot sector: %w", berr)
		}
	}
	return g, nil, false, fmt.Errorf("reading boot sector: %w", err)
}

// readFull reads len(p) bytes; a short read is an error.
func readFull(dev blockdev.Device, p []byte, off int64) error {
	n, err := dev.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %d bytes at %d: %w", len(p), off, err)
}

// DefaultMetadataLimit bounds the memory for FAT and bitmap, and again for
// directories, in bytes: enough for 16 TB in clusters of 128 KiB.
const DefaultMetadataLimit = 512 << 20
