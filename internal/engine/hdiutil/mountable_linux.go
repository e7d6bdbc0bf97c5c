package hdiutil

import (
	"os"

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

// noFUSE says what would help where images cannot be served.
func noFUSE() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "they are served by FUSE: load its module (modprobe fuse), or let the container have /dev/fuse; or use --engine inprocess"
	}
	return ""
}
