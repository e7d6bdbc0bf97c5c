package hdiutil

import "dmgbench/internal/attach"

// unmountable says why a volume that the work-alike makes cannot be mounted on
// this machine. exFAT always can: this project has its own.
func unmountable(filesystem string) string {
	f, ok := attach.FilesystemOf(filesystem)
	switch {
	case !ok || f.MountableByKernel || f.Kernel == "exfat":
		return ""
	}
	return "the kernel has no driver for " + f.Kernel
}
