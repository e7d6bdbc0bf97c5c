package hdiutil

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/host"
)

// systemHost returns a Host of the real system: /proc, /sys and package attach.
func systemHost() *Host {
	return &Host{Mounts: systemMounts, Exists: exists, CommandLines: commandLines,
		CommandLine: commandLine, Trim: attach.Trim, VolumeSize: volumeSize,
		Writable:   writable,
		MissingFor: missingFor, MissingForFUSE: missingForFUSE, ServedBy: servedBy}
}

// systemMounts reads the mount table of this process.
func systemMounts() ([]host.Mount, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return host.ParseMounts(string(table)), nil
}

// commandLines returns those of all other processes that can be read, with NUL
// between arguments.
func commandLines(context.Context) (lines []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	own := fmt.Sprintf("/proc/%d/cmdline", os.Getpid())
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && len(line) > 0 && name != own {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// commandLine reads that of one process.
func commandLine(_ context.Context, pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(line)
}

// missingFor returns what keeps hdiutil for Linux from making and mounting a file
// system, or what to do about it; "" for nothing, and for unknown file systems.
func missingFor(filesystem string) string {
	f, ok := attach.FilesystemOf(filesystem)
	switch {
	case f.Kernel == "exfat" && !attach.Loops(): // package exfat makes it, and serves it by FUSE alone
		return missingForFUSE()
	case !ok || f.Kernel == "exfat":
		return ""
	case !f.MountableByKernel:
		return "the kernel has no driver for " + f.Kernel
	case !f.Present:
		return "install " + f.Package + ", which provides " + f.Tool
	case !attach.Loops():
		return "it needs root and loop devices: sudo dmgbench …"
	}
	return ""
}

// servedBy returns how a mounted image is attached: by FUSE alone, by a loop device
// on the image, or by a loop device on a file that FUSE serves; "" if device is no
// loop device. fsType is the type in the mount table.
func servedBy(device, fsType, image string) string {
	if strings.HasPrefix(fsType, "fuse") {
		return attach.ModeFUSE
	}
	backing, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/loop/backing_file")
	switch {
	case err != nil:
		return ""
	case strings.TrimSuffix(string(backing), "\n") == resolve(image):
		return attach.ModeLoop
	}
	return attach.ModeFUSELoop
}

// missingForFUSE returns what to do before images can be served by FUSE.
func missingForFUSE() string {
	if attach.CheckFUSE() == nil {
		return ""
	}
	return "they are served by FUSE: " + attach.FUSEHint + "; or use --engine inprocess"
}
