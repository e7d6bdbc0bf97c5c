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

// systemHost asks the kernel, and package attach what hdiutil for Linux needs.
func systemHost() *Host {
	return &Host{Mounts: systemMounts, Exists: exists, CommandLines: commandLines, Trim: attach.Trim,
		MissingFor: missingFor, MissingForFUSE: missingForFUSE, ServedBy: servedBy}
}

// systemMounts reads the table of this process.
func systemMounts() ([]host.Mount, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return host.ParseMounts(string(table)), nil
}

// commandLines are those of all other processes that can be read.
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

// missingFor returns what to do before hdiutil for Linux can make and mount a
// file system. It has an exFAT of its own.
func missingFor(filesystem string) string {
	f, ok := attach.FilesystemOf(filesystem)
	switch {
	case !ok || f.Kernel == "exfat":
		return ""
	case !f.MountableByKernel:
		return "the kernel has no driver for " + f.Kernel
	case !f.Present:
		return "install " + f.Package + ", which has " + f.Tool
	case !attach.Loops():
		return "it needs root and loop devices: sudo dmgbench …"
	}
	return ""
}

// servedBy asks the kernel which file a loop device shows: the image itself, or
// one that a process serves.
func servedBy(device, kind, image string) string {
	if strings.HasPrefix(kind, "fuse") {
		return attach.ModeFUSE
	}
	shown, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/loop/backing_file")
	switch {
	case err != nil:
		return ""
	case strings.TrimSuffix(string(shown), "\n") == resolve(image):
		return attach.ModeLoop
	}
	return attach.ModeFUSELoop
}

// missingForFUSE returns what to do before images can be served by FUSE.
func missingForFUSE() string {
	if !exists("/dev/fuse") {
		return "they are served by FUSE: load its module (modprobe fuse), or let the container have /dev/fuse; " +
			"or use --engine inprocess"
	}
	return ""
}
