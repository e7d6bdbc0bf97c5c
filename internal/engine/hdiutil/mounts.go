package hdiutil

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/host"
)

// Mount is one line of the system's mount table.
type Mount struct {
	From, On, Kind string // device, mount point, type as the system names it
	ReadOnly       bool
}

// parseMountinfo reads /proc/self/mountinfo (proc(5)). Lines that it cannot read are left out.
func parseMountinfo(text string) []Mount {
	var list []Mount
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(line, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 2 {
			continue
		}
		list = append(list, Mount{From: host.Unescape(t[1]), On: host.Unescape(h[4]), Kind: t[0], ReadOnly: strings.HasPrefix(h[5]+",", "ro,")})
	}
	return list
}

// Host is what the engine looks at outside of the tools. Tests put a stand-in's in its place.
type Host struct {
	Mounts func() ([]Mount, error)
	Exists func(device string) bool // whether the device has a node
	// CommandLines are those of all processes but this one, their arguments ended by zero bytes or blanks; nil: not known.
	CommandLines func(context.Context) []string
	// Trim discards what the volume mounted on dir does not use, and returns the
	// bytes. Where that cannot be done it is nil or says errors.ErrUnsupported.
	Trim func(dir string) (int64, error)
	// Lacks says by the name of a plan's file system what would help where the work-alike cannot make or mount volumes of it, "" where it
	// can or nothing would; nil: it can.
	Lacks func(filesystem string) string
	// NoFUSE says what would help where the work-alike cannot serve images, "" where it can; nil: it can.
	NoFUSE func() string
	// ServedBy says what serves the image behind a device whose volume is mounted as the kind: loop, fuse+loop or fuse; "" where it cannot
	// tell. It may be nil.
	ServedBy func(device, kind, image string) string
}

// mountedOn is the last thing that is mounted on the folder. The table has the folder's name with links followed and
// in the letters that the disk has, which need not be those that it was asked for by: where the last part agrees, the
// folder itself decides. Others are not looked at, since a share whose server is gone would hang.
func (h Host) mountedOn(dir string) (Mount, bool, error) {
	list, err := h.Mounts()
	if err != nil {
		return Mount{}, false, err
	}
	var found Mount
	ok := false
	for _, m := range list {
		if m.On == dir || filepath.Base(m.On) == filepath.Base(dir) && sameFile(m.On, dir) {
			found, ok = m, true
		}
	}
	return found, ok, nil
}

// sameFile says whether both paths lead to one file or folder.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func nodeExists(device string) bool {
	_, err := os.Stat(device)
	return err == nil
}
