package attach

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dmgbench/internal/gpt"
)

// FS is a file system that volumes can have.
type FS struct {
	Name              string   // as -fs takes it, and as it is shown
	Aliases           []string // other names that -fs takes
	Kernel            string   // the kernel's name, as in /proc/filesystems
	Tool              string   // the program that makes it; empty: made by this program itself
	Package           string   // the Debian package that has the program
	Present           bool     // it can be made here
	MountableByKernel bool     // the kernel has a driver, loaded or as a module
	Type              gpt.GUID // of a partition that holds it
	Owners            bool     // it keeps owners and modes
	MinSize           int64    // bytes below which the program that makes it refuses
}

var filesystems = []FS{
	{Name: "ext4", Kernel: "ext4", Tool: "mkfs.ext4", Package: "e2fsprogs", Type: gpt.LinuxData, Owners: true, MinSize: 1 << 20},
	{Name: "xfs", Kernel: "xfs", Tool: "mkfs.xfs", Package: "xfsprogs", Type: gpt.LinuxData, Owners: true, MinSize: 300 << 20},
	{Name: "btrfs", Kernel: "btrfs", Tool: "mkfs.btrfs", Package: "btrfs-progs", Type: gpt.LinuxData, Owners: true, MinSize: 114_294_784},
	{Name: "ExFAT", Kernel: "exfat", Type: gpt.BasicData, MinSize: 1 << 20},
	{Name: "FAT32", Aliases: []string{"MS-DOS FAT32", "MS-DOS", "vfat"}, Kernel: "vfat", Tool: "mkfs.vfat", Package: "dosfstools",
		Type: gpt.BasicData, MinSize: 34 << 20},
	{Name: "HFS+", Aliases: []string{"hfsplus"}, Kernel: "hfsplus", Tool: "mkfs.hfsplus", Package: "hfsprogs", Type: gpt.AppleHFS,
		Owners: true, MinSize: 1 << 20},
}

// What this machine has, for tests to take away.
var (
	kernelMounts = kernelDriver
	toolFolders  = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} // besides PATH
)

// Filesystems lists the file systems that volumes can have, with what of it is there on this machine.
func Filesystems() []FS {
	list := make([]FS, 0, len(filesystems))
	for _, f := range filesystems {
		f.Present = f.Tool == "" || findTool(f.Tool) != ""
		f.MountableByKernel = kernelMounts(f.Kernel)
		list = append(list, f)
	}
	return list
}

// FilesystemOf returns the file system of that name, in any case: [FS].Name, one of its aliases, or the kernel's name.
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

// findTool returns the path of a program, or nothing. The folders of the administrator are searched too: the path of an
// ordinary user lacks them.
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

// MakeOptions are the choices of Make.
type MakeOptions struct {
	// PartitionOffset is where the device starts on its disk, in bytes; informative, for exFAT.
	PartitionOffset int64
}
