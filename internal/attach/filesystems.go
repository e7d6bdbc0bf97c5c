package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
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

	// Set by [Filesystems] for this machine:
	Present           bool // it can be made
	MountableByKernel bool // the kernel has a driver, loaded or as a module

	marks       []mark
	onlyNamed   bool                                      // recognised, and neither made nor mounted
	makeArgs    func(label string, uid, gid int) []string // of Tool, without the device
	mountData   string                                    // options of mount(2)
	userOwned   bool                                      // mount(2) takes the owner of all files
	replayless  string                                    // options for a read-only mount that does not replay the log
	growTool    []string                                  // program, package, and arguments before the operand
	growMounted bool                                      // the program takes the mount point, not the device
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
		Tool: "mkfs.ext4", Package: "e2fsprogs", Type: gpt.LinuxData, Owners: true, MinSize: 1 << 20,
		marks: []mark{{at: 1080, magic: "\x53\xef", label: 1144, length: 16}},
		// No initialisation after the first mount, no space kept back for root.
		makeArgs: func(label string, uid, gid int) []string {
			return []string{"-q", "-F", "-b", "4096", "-m", "0", "-L", cut(label, 16),
				"-E", fmt.Sprintf("lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=%d:%d", uid, gid)}
		},
		replayless: "noload", growTool: []string{"resize2fs", "e2fsprogs"}},
	{Name: "xfs", AppleName: "xfs", Kind: "xfs", Hint: "Linux", Kernel: "xfs", Tool: "mkfs.xfs", Package: "xfsprogs",
		Type: gpt.LinuxData, Owners: true, MinSize: 300 << 20, marks: []mark{{magic: "XFSB", label: 108, length: 12}},
		makeArgs: func(label string, _, _ int) []string {
			return []string{"-q", "-f", "-K", "-s", "size=4096", "-L", cut(label, 12)}
		},
		// XFS refuses a second volume of the same identifier, such as a copy of
		// the image, or one that a process still has open after a forced
		// unmount.
		mountData: "nouuid", replayless: "nouuid,norecovery",
		growTool: []string{"xfs_growfs", "xfsprogs"}, growMounted: true},
	{Name: "btrfs", AppleName: "btrfs", Kind: "btrfs", Hint: "Linux", Kernel: "btrfs",
		Tool: "mkfs.btrfs", Package: "btrfs-progs", Type: gpt.LinuxData, Owners: true, MinSize: 114_294_784,
		marks: []mark{{at: 64<<10 + 64, magic: "_BHRfS_M", label: 64<<10 + 299, length: 256}},
		makeArgs: func(label string, _, _ int) []string {
			return []string{"-q", "-f", "--nodiscard", "-L", cut(label, 255)}
		},
		replayless: "rescue=nologreplay",
		growTool:   []string{"btrfs", "btrfs-progs", "filesystem", "resize", "max"}, growMounted: true},
	{Name: "FAT32", Aliases: []string{"MS-DOS FAT32", "MS-DOS", "vfat"}, AppleName: "MS-DOS FAT32", Kind: "msdos",
		Hint:   "DOS_FAT_32",
		Kernel: "vfat", Tool: "mkfs.vfat", Package: "dosfstools", Type: gpt.BasicData, MinSize: 34 << 20, marks: []mark{
			{at: 82, magic: "FAT32   ", label: 71, length: 11, padding: " "},
			{at: 54, magic: "FAT16   ", label: 43, length: 11, padding: " ", appleName: "MS-DOS FAT16"},
			{at: 54, magic: "FAT12   ", label: 43, length: 11, padding: " ", appleName: "MS-DOS FAT12"}},
		makeArgs: func(label string, _, _ int) []string {
			return []string{"-F", "32", "-n", strings.ToUpper(cut(label, 11))}
		},
		userOwned: true},
	{Name: "HFS+", Aliases: []string{"hfsplus"}, AppleName: "HFS+", Kind: "hfs", Hint: "Apple_HFS", Kernel: "hfsplus",
		Tool: "mkfs.hfsplus", Package: "hfsprogs", Type: gpt.AppleHFS, Owners: true, MinSize: 1 << 20,
		marks:    []mark{{at: 1024, magic: "H+"}, {at: 1024, magic: "HX", appleName: "Case-sensitive HFS+"}},
		makeArgs: func(label string, _, _ int) []string { return []string{"-v", label} }},
	{Name: "APFS", AppleName: "APFS", Kind: "apfs", Hint: "Apple_APFS", Kernel: "apfs", Type: gpt.AppleAPFS,
		Owners:    true,
		onlyNamed: true, marks: []mark{{at: 32, magic: "NXSB"}}},
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
		if f.onlyNamed {
			continue
		}
		f.Present = f.Tool == "" || findTool(f.Tool) != ""
		f.MountableByKernel = kernelMounts(f.Kernel)
		list = append(list, f)
	}
	return list
}

// FilesystemOf returns the file system of that name, in any case: [FS].Name,
// one of its aliases, or the kernel's name.
func FilesystemOf(name string) (FS, bool) {
	for _, f := range Filesystems() {
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
	for _, f := range filesystems {
		if strings.EqualFold(f.Kernel, kernel) || strings.EqualFold(f.Name, kernel) {
			return f.Kind, f.AppleName
		}
	}
	return "", kernel
}

// Volume describes a volume by its first blocks.
type Volume struct {
	FS           // the zero value if it was not recognised
	Label string // valid UTF-8
}

// Identify recognises the volume on a device by its signature alone. The error
// is that of a device that cannot be read.
func Identify(dev blockdev.Device) (Volume, error) {
	head := make([]byte, min(128<<10, dev.Size()))
	n, err := dev.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Volume{}, err
	}
	head = head[:n]
	for _, f := range filesystems {
		for _, m := range f.marks {
			if m.at >= int64(len(head)) || !bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
				continue
			}
			v := Volume{FS: f, Label: m.readLabel(head)}
			if m.appleName != "" {
				v.AppleName = m.appleName
			}
			if f.Kernel == "exfat" {
				v.Label = exfatLabel(dev)
			}
			return v, nil
		}
	}
	return Volume{}, nil
}

// readLabel returns the label up to the first zero; bytes that are not UTF-8
// become U+FFFD.
func (m mark) readLabel(head []byte) string {
	if m.length == 0 || m.label+m.length > int64(len(head)) {
		return ""
	}
	field, _, _ := bytes.Cut(head[m.label:m.label+m.length], []byte{0})
	label := strings.ToValidUTF8(strings.TrimRight(string(field), m.padding), "\uFFFD")
	if m.padding != "" && label == "NO NAME" { // FAT's way to have none
		return ""
	}
	return label
}

// exfatLabel returns the label, which is in the root directory. A damaged
// volume has none here: mounting it reports why.
func exfatLabel(dev blockdev.Device) string {
	v, err := exfat.Mount(dev, exfat.MountOptions{ReadOnly: true})
	if err != nil {
		return ""
	}
	defer v.Unmount()
	return v.Label()
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
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range toolFolders {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path
		}
	}
	return ""
}
