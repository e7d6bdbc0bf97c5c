package imagetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"dmgbench/internal/attach"
)

// OutlivePipes keeps the process at its work when nobody reads stdout or stderr any more: the signal that ends it then would
// leave half an image under a temporary name. Programs that it starts are not concerned.
func OutlivePipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// system attaches for real, through package attach.
type system struct{}

func (system) Attach(ctx context.Context, r Request) (Attached, error) { return attach.Attach(ctx, r) }
func (system) Detach(ctx context.Context, a Attached, force bool) (attach.Lost, error) {
	return attach.Detach(ctx, a, force)
}
func (system) List(ctx context.Context) ([]Attached, error) { return attach.List(ctx) }
func (system) Mount(ctx context.Context, a Attached, r Request) (Attached, error) {
	return attach.Mount(ctx, a, r)
}
func (system) Unmount(ctx context.Context, a Attached, force bool) error {
	return attach.Unmount(ctx, a, force)
}
func (system) Trim(ctx context.Context, mountPoint string) (int64, error) {
	return attach.Trim(ctx, mountPoint)
}
func (system) Filesystems() []Filesystem { return attach.Filesystems() }
func (system) Loops() bool               { return attach.Loops() }

func (system) Make(ctx context.Context, a Attached, filesystem, label string) error {
	return attach.Make(ctx, a.Partition, filesystem, label)
}

// CanGrow looks for the rights and the kind; a missing program is Grow's to tell.
func (system) CanGrow(filesystem string) error {
	switch {
	case !slices.Contains([]string{"ext4", "xfs", "btrfs"}, filesystem):
		return fmt.Errorf("they cannot be resized here")
	case !attach.Loops():
		return fmt.Errorf("growing them needs loop devices and the rights of root")
	}
	return nil
}

// Grow mounts those file systems that only grow while mounted, on a folder of its own.
func (system) Grow(ctx context.Context, a Attached) (err error) {
	if a.Filesystem == "ext4" {
		return attach.Grow(ctx, a)
	}
	point, err := os.MkdirTemp("", "dmgbench-grow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(point)) }()
	mounted, err := attach.Mount(ctx, a, Request{Image: a.Image, MountPoint: point, NoTrim: true})
	if err != nil {
		return err
	}
	return errors.Join(attach.Grow(ctx, mounted), attach.Unmount(detached(ctx), mounted, false))
}
