package attach

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
)

// FS is a file system that volumes can have: one row of the registry.
// Everything else in this project ranges over the rows.
type FS struct {
	// Name is what -fs takes and what is shown; Aliases are other names that
	// -fs takes.
	Name    string
	Aliases []string
	// AppleName, Kind and Hint are in the lists of Apple's tools: the name, the
	// volume-kind, and the content-hint of an unpartitioned volume.
	AppleName string
	Kind      string
	Hint      string
	// Kernel is the mount type, as in /proc/filesystems.
	Kernel string
	// Tool is the program that makes the file system, of the Debian package
	// Package; empty if this process makes it.
	Tool    string
	Package string
	// Type is that of a partition with the file system.
	Type gpt.GUID
	// Owners means that the file system stores owners and modes.
	Owners bool
	// MinSize is the smallest size that Tool accepts, in bytes.
	MinSize int64
	// Label is that of a volume which [Identify] has recognised, valid UTF-8.
	Label string
	// MaxLabel is the length of the longest label in bytes, 0 if Tool checks
	// it; [Make] cuts longer ones.
	MaxLabel int

	// Set by [Filesystems] for this machine:
	Present           bool // it can be made
	MountableByKernel bool // the kernel has a driver, loaded or as a module

	marks       []mark
	onlyNamed   bool   // recognised, and neither made nor mounted
	makeArgs    string // of Tool, without the device; see Make
	mountData   string // options of mount(2)
	userOwned   bool   // mount(2) takes the owner of all files
	noReplay    string // options for a read-only mount that does not replay the log
	growTool    string // program of Package and its arguments before the operand
	growMounted bool   // the program takes the mount point, not the device
}

// mark is a signature in the first blocks of a volume, and where its label is.
// Sources: the kernel's ext4/super, xfs_format.h and btrfs_tree.h; Microsoft's
// exFAT and FAT (fatgen103) specifications; Apple's TN1150 and APFS reference.
type mark struct {
	at            int64
	magic         string
	label, length int64  // of the label; 0: none in these blocks
	padding       string // after the label
	appleName     string // where it differs from that of the file system
}

// filesystems is in the order of recognition: file systems come first that
// leave signatures of earlier ones in place.
var filesystems = []FS{
	{Name: "ExFAT", AppleName: "ExFAT", Kind: "exfat", Kernel: "exfat",
		Hint: "Windows_NTFS", // MBR type 7 is common to both
		Type: gpt.BasicData, MinSize: 1 << 20, marks: []mark{{at: 3, magic: "EXFAT   "}}, userOwned: true},
	{Name: "ext4", AppleName: "ext4", Kind: "ext4", Hint: "Linux", Kernel: "ext4",
		Tool: "mkfs.ext4", Package: "e2fsprogs", Type: gpt.LinuxData, Owners: true, MinSize: 1 << 20, MaxLabel: 16,
		marks: []mark{{at: 1080, magic: "\x53\xef", label: 1144, length: 16}},
		// No initialisation after the first mount, no space kept back for root.
		makeArgs: "-q -F -b 4096 -m 0 -L LABEL " +
			"-E lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=UID:GID",
		noReplay: "noload", growTool: "resize2fs"},
	{Name: "xfs", AppleName: "xfs", Kind: "xfs", Hint: "Linux", Kernel: "xfs", Tool: "mkfs.xfs", Package: "xfsprogs",
		Type: gpt.LinuxData, Owners: true, MinSize: 300 << 20, MaxLabel: 12,
		marks: []mark{{magic: "XFSB", label: 108, length: 12}}, makeArgs: "-q -f -K -s size=4096 -L LABEL",
		// XFS refuses a second volume of the same identifier, such as a copy of
		// the image, or one that a process still has open after a forced
		// unmount.
		mountData: "nouuid", noReplay: "nouuid,norecovery", growTool: "xfs_growfs", growMounted: true},
	{Name: "btrfs", AppleName: "btrfs", Kind: "btrfs", Hint: "Linux", Kernel: "btrfs",
		Tool: "mkfs.btrfs", Package: "btrfs-progs", Type: gpt.LinuxData, Owners: true, MinSize: 114_294_784,
		MaxLabel: 255, marks: []mark{{at: 64<<10 + 64, magic: "_BHRfS_M", label: 64<<10 + 299, length: 256}},
		makeArgs: "-q -f --nodiscard -L LABEL", noReplay: "rescue=nologreplay",
		growTool: "btrfs filesystem resize max", growMounted: true},
	{Name: "FAT32", Aliases: []string{"MS-DOS FAT32", "MS-DOS", "vfat"}, AppleName: "MS-DOS FAT32", Kind: "msdos",
		Hint: "DOS_FAT_32", Kernel: "vfat", Tool: "mkfs.vfat", Package: "dosfstools", Type: gpt.BasicData,
		MinSize: 34 << 20, MaxLabel: 11, makeArgs: "-F 32 -n UPPER", userOwned: true, marks: []mark{
			{at: 82, magic: "FAT32   ", label: 71, length: 11, padding: " "},
			{at: 54, magic: "FAT16   ", label: 43, length: 11, padding: " ", appleName: "MS-DOS FAT16"},
			{at: 54, magic: "FAT12   ", label: 43, length: 11, padding: " ", appleName: "MS-DOS FAT12"}}},
	{Name: "HFS+", Aliases: []string{"hfsplus"}, AppleName: "HFS+", Kind: "hfs", Hint: "Apple_HFS", Kernel: "hfsplus",
		Tool: "mkfs.hfsplus", Package: "hfsprogs", Type: gpt.AppleHFS, Owners: true, MinSize: 1 << 20,
		marks:    []mark{{at: 1024, magic: "H+"}, {at: 1024, magic: "HX", appleName: "Case-sensitive HFS+"}},
		makeArgs: "-v LABEL"},
	{Name: "APFS", AppleName: "APFS", Kind: "apfs", Hint: "Apple_APFS", Kernel: "apfs", Type: gpt.AppleAPFS,
		Owners: true, onlyNamed: true, marks: []mark{{at: 32, magic: "NXSB"}}},
}

// What this machine has; variables for tests.
var (
	kernelMounts = kernelDriver
	toolFolders  = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} // in addition to PATH
)

// Filesystems lists the file systems that volumes can have, and which of them
// this machine can make and mount.
func Filesystems() []FS {
	list := make([]FS, 0, len(filesystems))
	for _, f := range filesystems {
		if !f.onlyNamed {
			f.Present = f.Tool == "" || findTool(f.Tool) != ""
			f.MountableByKernel = kernelMounts(f.Kernel)
			list = append(list, f)
		}
	}
	return list
}

// FilesystemOf returns the file system of that name, see [FindFilesystem], of
// those that this project mounts.
func FilesystemOf(name string) (FS, bool) { return FindFilesystem(Filesystems(), name) }

// FindFilesystem returns the file system of that name, in any case: [FS].Name,
// one of its aliases, or the kernel's name.
func FindFilesystem(list []FS, name string) (FS, bool) {
	for _, f := range list {
		for _, n := range append([]string{f.Name, f.Kernel}, f.Aliases...) {
			if strings.EqualFold(n, name) {
				return f, true
			}
		}
	}
	return FS{}, false
}

// AppleNames returns the volume-kind and the name that Apple's tools have for a
// file system by the kernel's name; the kind is empty for an unknown one.
func AppleNames(kernel string) (kind, name string) {
	f, _ := FindFilesystem(filesystems, kernel)
	return f.Kind, cmp.Or(f.AppleName, kernel)
}

// mountable reports whether it is a file system that is mounted.
func (f FS) mountable() bool { return f.Kernel != "" && !f.onlyNamed }

// Identify recognises the volume on a device by its signature alone; the result
// is the zero value if there is none. Bytes of a label that are not UTF-8 become
// U+FFFD. The error is that of a device that cannot be read.
func Identify(dev blockdev.Device) (FS, error) {
	head := make([]byte, min(128<<10, dev.Size()))
	n, err := dev.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return FS{}, err
	}
	head = head[:n]
	for _, f := range filesystems {
		for _, m := range f.marks {
			if m.at >= int64(len(head)) || !bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
				continue
			}
			v := f
			v.AppleName = cmp.Or(m.appleName, f.AppleName)
			if m.length > 0 && m.label+m.length <= int64(len(head)) {
				field, _, _ := bytes.Cut(head[m.label:m.label+m.length], []byte{0})
				v.Label = strings.ToValidUTF8(strings.TrimRight(string(field), m.padding), "\uFFFD")
			}
			if m.padding != "" && v.Label == "NO NAME" { // FAT's way to have none
				v.Label = ""
			}
			if f.Kernel == "exfat" { // its label is in the root directory; mounting a damaged volume reports why
				if vol, err := exfat.Mount(dev, exfat.MountOptions{ReadOnly: true}); err == nil {
					v.Label = vol.Label()
					_ = vol.Unmount()
				}
			}
			return v, nil
		}
	}
	return FS{}, nil
}

// cut shortens a label to n bytes, never inside a character.
func cut(label string, n int) string {
	for len(label) > n {
		_, last := utf8.DecodeLastRuneInString(label)
		label = label[:len(label)-last]
	}
	return label
}

// findTool returns the path of a program, empty if there is none. It also
// searches the administrator's folders, which ordinary users do not have in
// PATH.
func findTool(name string) string {
	path, err := exec.LookPath(name)
	for i := 0; err != nil && i < len(toolFolders); i++ {
		path, err = exec.LookPath(filepath.Join(toolFolders[i], name))
	}
	if err != nil {
		return ""
	}
	return path
}

// Region is a part of a device: a partition, a partition table, or free space.
type Region struct {
	Name, Hint   string         // as imageinfo prints them
	First, Count int64          // sectors of 512 bytes
	Number       int            // of a partition of a GUID table, from 1; 0 for others
	Content      bool           // a partition, or the whole device if it has no partition map
	Part         *gpt.Partition // of a GUID table
	Volume       FS             // of content
	Err          error          // why the start of the content cannot be read
}

// Section is the region as a device.
func (r Region) Section(dev blockdev.Device) (blockdev.Device, error) {
	return blockdev.Section(dev, r.First*gpt.SectorSize, r.Count*gpt.SectorSize)
}

// ImageInfo is what [Inspect] found on a device.
type ImageInfo struct {
	Scheme   string        // that divides the device: SchemeGUID, "fdisk", "Apple" or SchemeNone
	Regions  []Region      // all parts of the device, in order
	Table    *gpt.Table    // nil if there is none
	Warnings []gpt.Warning // about the table
	Damage   error         // why a GUID table that is there cannot be used; nil if it can, or there is none
	Whole    FS            // without a usable GUID table: the volume that starts with the device

	format string
	size   int64   // bytes
	mount  *Region // the partition to be mounted; nil: the whole device
}

// Schemes that callers branch on.
const (
	SchemeGUID = "GUID"
	SchemeNone = "none"
)

// Inspect finds out how a device is divided and which volumes it has. It reads
// the partition tables and the first blocks of every partition, once. The error
// is the device's.
func Inspect(dev blockdev.Device) (info *ImageInfo, err error) {
	info = &ImageInfo{Scheme: SchemeNone, size: dev.Size()}
	if image, ok := dev.(container.Image); ok {
		info.format = image.Format()
	}
	var layout udif.Layout
	var unreadable error // the start of the device
	info.Table, info.Warnings, err = gpt.Read(dev)
	switch {
	case err == nil:
		info.Scheme = SchemeGUID
		layout, err = udif.Partitioned(udif.SchemeGPT, uint64(info.size/gpt.SectorSize), udif.GPTParts(info.Table))
	case gpt.IsUnusable(err):
		if !errors.Is(err, gpt.ErrNoTable) {
			info.Damage = err
		}
		if layout, err = udif.ProbeLayout(dev, info.size); err == nil {
			info.Whole, unreadable = Identify(dev)
			info.Scheme = cmp.Or(shownSchemes[layout.Scheme], SchemeNone)
		}
	}
	if err != nil {
		return nil, err
	}
	if info.Scheme == SchemeNone {
		info.Regions = []Region{{Name: "whole disk", Hint: info.Whole.Hint, Count: info.size / gpt.SectorSize,
			Content: true, Volume: info.Whole, Err: unreadable}}
		return info, nil
	}
	info.Regions = make([]Region, len(layout.Parts))
	for n, p := range layout.Parts {
		if err := info.addRegion(dev, n, p); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// shownSchemes are those that are shown but not changed.
var shownSchemes = map[udif.Scheme]string{udif.SchemeMBR: "fdisk", udif.SchemeAPM: "Apple"}

// addRegion describes part n of a divided device.
func (s *ImageInfo) addRegion(dev blockdev.Device, n int, p udif.Part) error {
	r := &s.Regions[n]
	*r = Region{Name: p.Name, Hint: p.Type, First: int64(p.First), Count: int64(p.Sectors)}
	r.Content = s.Table == nil && p.First > 0 && p.Type != udif.FreeType && p.Type != "Apple_partition_map"
	for i := 0; s.Table != nil && i < len(s.Table.Partitions); i++ {
		if part := &s.Table.Partitions[i]; part.First == p.First {
			r.Part, r.Content, r.Number = part, true, part.Index+1
		}
	}
	if r.Content {
		part, err := r.Section(dev)
		if err != nil {
			return err
		}
		r.Volume, r.Err = Identify(part)
	}
	boots := r.Part != nil && r.Part.Type == gpt.EFISystem
	if boots {
		r.Hint = "EFI"
	}
	// The first partition with a file system that can be mounted, else the first
	// that is not for booting. Only GUID tables count: what else divides a device
	// is left to the kernel.
	if r.Part != nil && !(boots && len(s.Table.Partitions) > 1) &&
		(s.mount == nil || !s.mount.Volume.mountable() && r.Volume.mountable()) {
		s.mount = r
	}
	return nil
}

// Last returns the region that grows and shrinks with the image: the last
// partition of a GUID table, empty for a table without partitions, or without a
// table the whole device.
func (s *ImageInfo) Last() Region {
	if s.Table == nil {
		return Region{Count: s.size / gpt.SectorSize, Content: true, Volume: s.Whole}
	}
	for _, r := range slices.Backward(s.Regions) {
		if r.Part != nil {
			return r
		}
	}
	return Region{}
}

// ToMount is the volume to be mounted; it may have a file system that cannot.
func (s *ImageInfo) ToMount() FS {
	if s.mount == nil {
		return s.Whole
	}
	return s.mount.Volume
}

// Describe sets the scheme, the hint and the parts of an attachment.
func (s *ImageInfo) Describe(a *Attached) {
	if a.Scheme = s.Scheme; s.Scheme == SchemeNone {
		a.Hint = s.Regions[0].Hint
	}
	for _, r := range s.Regions {
		if r.Part != nil {
			a.Parts = append(a.Parts, Part{r.Number, r.Hint, r.Part.Type.String()})
		}
	}
}

// notes are the warnings of an attachment about the partition table. Data can
// still be recovered from the device of an image with a damaged table, as on a
// Mac, which shows it without partitions.
func (s *ImageInfo) notes() (list []string) {
	list = slices.Clone(s.Warnings)
	if s.Damage != nil {
		list = append(list, "the partition table and its backup cannot be used, and the device is shown without "+
			"partitions: "+s.Damage.Error())
	}
	return list
}
