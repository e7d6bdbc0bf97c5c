package hdiutil

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/host"
)

// Host is what the engine reads from the system without the tools. Tests
// replace it.
type Host struct {
	Mounts func() ([]host.Mount, error)
	Exists func(device string) bool // the device has a node
	// CommandLines are those of all other processes, with arguments that end
	// with a zero byte or a blank; nil: not known.
	CommandLines func(context.Context) []string
	// Trim discards what the volume mounted on dir does not use, and returns
	// the bytes. Where that is not possible it is nil or returns
	// errors.ErrUnsupported.
	Trim func(dir string) (int64, error)
	// MissingFor returns what to do before hdiutil for Linux can make and mount
	// a file system of a plan, "" if it can; nil: it can.
	MissingFor func(filesystem string) string
	// MissingForFUSE returns what to do before hdiutil for Linux can serve
	// images by FUSE, "" if it can; nil: it can.
	MissingForFUSE func() string
	// ServedBy returns what serves the image on a device whose volume is
	// mounted as a type: loop, fuse+loop or fuse, "" if that is not known; may
	// be nil.
	ServedBy func(device, kind, image string) string
}

// exists reports whether a file, folder or device is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mountedOn is the last mount on the folder. The table has the folder's path
// with links followed and in the case that the disk stores: where the last part
// agrees, the folders are compared. Other mounts are not touched, since a share
// without its server would hang.
func (h Host) mountedOn(dir string) (found host.Mount, ok bool, err error) {
	list, err := h.Mounts()
	if err != nil {
		return found, false, err
	}
	for _, m := range list {
		if m.Point == dir || filepath.Base(m.Point) == filepath.Base(dir) && sameFile(m.Point, dir) {
			found, ok = m, true
		}
	}
	return found, ok, nil
}

// sameFile reports whether both paths lead to one file or folder.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// How long to wait for tools that a killed run had started, and how often to
// look for them.
const (
	orphanTime = time.Minute
	orphanPoll = 50 * time.Millisecond
)

// waitForTools waits until no tool works below the folder any more: a tool
// survives the run that started it, and might attach an image later. The
// processes that serve images do not count: they end when their image is
// detached. The folder may have several names: command lines have the one that
// the run was given.
func (e *Engine) waitForTools(ctx context.Context, folder ...string) error {
	if e.host.CommandLines == nil {
		return nil
	}
	c := e.o.Clock
	for until := c.Now() + orphanTime; c.Now() < until && hasToolAtWork(e.host.CommandLines(ctx), folder...); {
		if err := c.Sleep(ctx, orphanPoll); err != nil {
			return err
		}
	}
	return nil
}

// hasToolAtWork reports whether one of the command lines is that of a tool with
// an argument below the folder, by any of its names.
func hasToolAtWork(lines []string, folder ...string) bool {
	for _, line := range lines {
		tool := strings.Contains(line, "hdiutil") || strings.Contains(line, "diskutil")
		below := slices.ContainsFunc(folder, func(name string) bool { return strings.Contains(line, name+"/") })
		if tool && below && !strings.Contains(line, attach.HelperVerb) {
			return true
		}
	}
	return false
}
