package imagetool

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/attach"
)

// What package attach calls things.
type (
	Request    = attach.Request
	Attached   = attach.Attached
	Filesystem = attach.FS
)

// Attacher attaches images and mounts what is on them. Errors wrap EBUSY for what
// is in use, EAGAIN for an image that somebody holds, and [ErrNoFileSystem].
type Attacher interface {
	Attach(ctx context.Context, r Request) (Attached, error)
	// Detach unmounts and releases; with force it does so whatever is open, and says what was lost.
	Detach(ctx context.Context, a Attached, force bool) (lost attach.Lost, err error)
	// List is what is attached, and as Dead what it found dead and cleaned up.
	List(ctx context.Context) ([]Attached, error)
	Mount(ctx context.Context, a Attached, r Request) (Attached, error)
	Unmount(ctx context.Context, a Attached, force bool) error
	// Trim frees what the mounted volume does not use, and says how many bytes that were.
	Trim(ctx context.Context, mountPoint string) (int64, error)
	Filesystems() []Filesystem
	// Make puts an empty file system on the partition of an image attached without mounting.
	Make(ctx context.Context, a Attached, filesystem, label string) error
	// CanGrow says why Grow would not work for a file system.
	CanGrow(filesystem string) error
	// Grow lets the file system of an attached image take the whole partition.
	Grow(ctx context.Context, a Attached) error
	// Loops says whether this user can have loop devices here.
	Loops() bool
}

// ErrNoFileSystem says that an image has nothing on it that can be mounted.
var ErrNoFileSystem = attach.ErrNoFileSystem

// nothing is the attacher of systems that have none.
type nothing struct{}

func (nothing) refuse() error {
	return fmt.Errorf("images cannot be attached on this system: %w", errors.ErrUnsupported)
}

func (n nothing) Attach(context.Context, Request) (Attached, error) { return Attached{}, n.refuse() }
func (n nothing) Detach(context.Context, Attached, bool) (attach.Lost, error) {
	return nil, n.refuse()
}
func (nothing) List(context.Context) ([]Attached, error) { return nil, nil }
func (n nothing) Mount(context.Context, Attached, Request) (Attached, error) {
	return Attached{}, n.refuse()
}
func (n nothing) Unmount(context.Context, Attached, bool) error        { return n.refuse() }
func (n nothing) Trim(context.Context, string) (int64, error)          { return 0, n.refuse() }
func (n nothing) Filesystems() []Filesystem                            { return nil }
func (n nothing) Make(context.Context, Attached, string, string) error { return n.refuse() }
func (n nothing) Grow(context.Context, Attached) error                 { return n.refuse() }
func (n nothing) CanGrow(string) error                                 { return n.refuse() }
func (nothing) Loops() bool                                            { return false }
