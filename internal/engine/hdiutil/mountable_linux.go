package hdiutil

import (
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/attach"
)

// lacks says what would help where the work-alike cannot make or mount a file
// system on this machine. exFAT it always can: this project has its own.
func lacks(filesystem string) string {
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

// servedBy asks the kernel which file a loop device shows: the image itself, or one that a process serves.
func servedBy(device, kind, image string) string {
	if strings.HasPrefix(kind, "fuse") {
		return attach.ModeFUSE
	}
	if whole, err := filepath.EvalSymlinks(image); err == nil {
		image = whole
	}
	shown, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/loop/backing_file")
	switch {
	case err != nil:
		return ""
	case strings.TrimSuffix(string(shown), "\n") == image:
		return attach.ModeLoop
	}
	return attach.ModeFUSELoop
}

// noFUSE says what would help where images cannot be served.
func noFUSE() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "they are served by FUSE: load its module (modprobe fuse), or let the container have /dev/fuse; or use --engine inprocess"
	}
	return ""
}
