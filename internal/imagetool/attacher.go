package imagetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"dmgbench/internal/attach"
)

// Attacher has the functions that attach images and mount their volumes; tests replace them. Errors wrap EBUSY for what
// is in use, EAGAIN for an image that another process has open, and [attach.ErrNoFileSystem].
type Attacher struct {
	Attach      func(ctx context.Context, r attach.Request) (attach.Attached, error)
	Detach      func(ctx context.Context, a attach.Attached, force bool) (attach.Lost, error)
	List        func(ctx context.Context) ([]attach.Attached, error)
	Mount       func(ctx context.Context, a attach.Attached, r attach.Request) (attach.Attached, error)
	Unmount     func(ctx context.Context, a attach.Attached, force bool) error
	Trim        func(ctx context.Context, mountPoint string) (int64, error)
	Filesystems func() []attach.FS
	Make        func(ctx context.Context, device, filesystem, label string) error
	CanGrow     func(filesystem string) error                      // why Grow would fail for a file system
	Grow        func(ctx context.Context, a attach.Attached) error // the volume takes the whole partition
	Loops       func() bool
}

// system attaches for real.
var system = Attacher{
	Attach: attach.Attach, Detach: attach.Detach, List: attach.List, Mount: attach.Mount, Unmount: attach.Unmount,
	Trim: attach.Trim, Filesystems: attach.Filesystems, Make: attach.Make, CanGrow: canGrow, Grow: growVolume,
	Loops: attach.Loops,
}

// canGrow checks the rights and the kind; a missing program is reported by Grow.
func canGrow(filesystem string) error {
	switch {
	case !slices.Contains([]string{"ext4", "xfs", "btrfs"}, filesystem):
		return errors.New("they cannot be resized here")
	case !attach.Loops():
		return errors.New("growing them needs loop devices and the rights of root")
	}
	return nil
}

// growVolume mounts those file systems that only grow while mounted, on a temporary folder.
func growVolume(ctx context.Context, a attach.Attached) (err error) {
	if a.Filesystem == "ext4" {
		return attach.Grow(ctx, a)
	}
	point, err := os.MkdirTemp("", "dmgbench-grow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(point)) }()
	mounted, err := attach.Mount(ctx, a, attach.Request{Image: a.Image, MountPoint: point, NoTrim: true})
	if err != nil {
		return err
	}
	return errors.Join(attach.Grow(ctx, mounted), attach.Unmount(context.WithoutCancel(ctx), mounted, false))
}

// withDevice attaches an image without mounting it, calls f, and detaches it. It is for programs of the host that need
// a device. doing describes the work in errors.
func (c *call) withDevice(r attach.Request, doing string, f func(a attach.Attached) error) (err error) {
	r.NoMount, r.Temporary = true, true
	a, err := c.env.Attacher.Attach(c.ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		if _, e := c.env.Attacher.Detach(context.WithoutCancel(c.ctx), a, err != nil); e != nil {
			err = errors.Join(err, fmt.Errorf("detaching %q after %s: %w", r.Image, doing, e))
		}
	}()
	return f(a)
}
