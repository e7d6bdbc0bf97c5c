package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"dmgbench/internal/attach"
)

// writeAttaching says what Linux offers to the work-alike: loop devices, FUSE,
// file systems with the packages that make them, and what is attached now.
func (a *app) writeAttaching(ctx context.Context, s *sheet) {
	if runtime.GOOS != "linux" {
		return
	}
	s.line("loop devices", available(attach.Loops(), "this user can have them", "this user cannot have them: it takes root and /dev/loop-control"))
	s.line("FUSE", fuse())
	var can, cannot, packages []string
	for _, f := range attach.Filesystems() {
		switch mounts := f.MountableByKernel || f.Kernel == "exfat"; { // exFAT is served by this program
		case f.Present && mounts:
			can = append(can, f.Name)
		case !f.Present && mounts:
			cannot = append(cannot, fmt.Sprintf("%s (%s is not installed)", f.Name, f.Tool))
			if !slices.Contains(packages, f.Package) {
				packages = append(packages, f.Package)
			}
		default:
			cannot = append(cannot, fmt.Sprintf("%s (the kernel has no driver %s)", f.Name, f.Kernel))
		}
	}
	text := strings.Join(can, ", ")
	if len(cannot) > 0 {
		text += ". Not: " + strings.Join(cannot, ", ")
	}
	s.line("file systems", text)
	if len(packages) > 0 {
		s.line("", "hint: apt install "+strings.Join(packages, " ")+" (Debian, Ubuntu)")
	}
	if list, err := attach.List(ctx); err != nil {
		s.line("attached", "not known: "+err.Error())
	} else if len(list) > 0 {
		s.line("attached", count(len(list), "image")+"; dmgbench hdiutil info lists them")
	}
}

func available(yes bool, is, isNot string) string {
	if yes {
		return is
	}
	return isNot
}

// fuse says whether /dev/fuse can be opened, without mounting anything.
func fuse() string {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return "not available: " + err.Error()
	}
	f.Close()
	return "/dev/fuse can be opened"
}
