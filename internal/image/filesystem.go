package image

const mib = 1 << 20

// Filesystem is one row of the registry of file systems. Sizes are bytes.
type Filesystem struct {
	// Name: as plans name it
	Name string
	// MinSize: of the volume: no program makes the file system in less
	MinSize int64
	// MaxSize of the volume, 0: that of images
	MaxSize int64
	// UsefulSize is the smallest image that is worth measuring, with room for
	// journals and checkpoints: scaling a plan down stops there.
	UsefulSize int64
	// RepairableSize is the smallest image with a volume that can be repaired
	// after its start is overwritten, 0: UsefulSize.
	RepairableSize int64
}

// Filesystems are all file systems that a plan can name. Smallest sizes:
// mkfs.xfs (xfsprogs 5.19 and later) refuses less than 300 MiB, mkfs.btrfs
// 114,294,784 B with its default profiles; FAT32 needs 65,525 clusters of 512 B
// and its two tables (Microsoft, FAT32 File System Specification 1.03), with
// alignment 34 MiB; the others can be made in 1 MiB. Largest ones: exFAT counts
// up to 2^32 clusters of 32 MiB, FAT32 up to 2^32 sectors of 512 B; those of the
// others are not below 1 EiB.
var Filesystems = []Filesystem{
	{Name: "APFS", MinSize: mib, UsefulSize: 32 * mib},
	{Name: "HFS+", MinSize: mib, UsefulSize: 32 * mib},
	{Name: "exFAT", MinSize: mib, MaxSize: 1 << 57, UsefulSize: 8 * mib},
	{Name: "FAT32", MinSize: 34 * mib, MaxSize: 1 << 41, UsefulSize: 40 * mib},
	{Name: "ext4", MinSize: mib, UsefulSize: 16 * mib, RepairableSize: 160 * mib},
	{Name: "XFS", MinSize: 300 * mib, UsefulSize: 384 * mib},
	{Name: "btrfs", MinSize: 114_294_784, UsefulSize: 128 * mib},
}

// FilesystemNamed finds a file system by its name; an unknown name gives the
// zero row.
func FilesystemNamed(name string) Filesystem {
	for _, f := range Filesystems {
		if f.Name == name {
			return f
		}
	}
	return Filesystem{}
}

// FilesystemNames are the names of all file systems.
func FilesystemNames() (names []string) {
	for _, f := range Filesystems {
		names = append(names, f.Name)
	}
	return names
}

// PartitionTableSize is what a GUID partition table takes of an image in
// addition to its one volume, in bytes: the first MiB, to which the volume is
// aligned, and the 33 sectors of the copy at the end (UEFI 2.10, section 5.3).
const PartitionTableSize = mib + 33*SectorSize
