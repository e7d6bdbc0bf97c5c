package exfat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"dmgbench/internal/blockdev"
)

const (
	// bootSectors is the length of one boot region in sectors (section 3): boot
	// sector, 8 extended boot sectors, OEM parameters, reserved, checksum.
	bootSectors = 12
	entryLen    = 32
	firstData   = 2 // number of the first cluster
	// Values of FAT entries (section 4.1): the end of a chain, and a cluster
	// with bad sectors.
	endOfChain  = 0xFFFFFFFF
	badCluster  = 0xFFFFFFF7
	maxClusters = 0xFFFFFFF5 // section 3.1.9
	maxDirSize  = 256 << 20  // specification section 7.1
	block       = 4096       // what direct I/O wants
	// VolumeFlags (section 3.1.13): VolumeDirty and MediaFailure.
	flagDirty     = 0x0002
	flagMedia     = 0x0004
	minVolumeSize = 1 << 20
)

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
	if _, err := binary.Decode(b[geometryStart:], binary.LittleEndian, &g); err != nil {
		return g, err
	}
	return g, g.check(size)
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

// volatile reports whether a byte of a boot region is of VolumeFlags or
// PercentInUse, which change while the volume is in use, in the main region
// alone, and are not summed up (section 3.4).
func volatile(at int) bool { return at == 106 || at == 107 || at == 112 }

// checksumSector returns the last sector of a region: the sum over the others,
// repeated.
func checksumSector(region []byte, sector int) []byte {
	var sum uint32
	for i, c := range region[:11*sector] {
		if !volatile(i) {
			sum = sum<<31 | sum>>1
			sum += uint32(c)
		}
	}
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
