package imagetool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Request says how an image is to be attached.
type Request struct {
	Image      string // absolute path, links resolved
	ReadOnly   bool
	NoMount    bool
	MountPoint string // absolute; "": a folder under MountRoot
	MountRoot  string // absolute; "": the attacher's own
	Owners     *bool  // nil: as the attacher does without being asked
	Browse     bool   // shown to people who look at mounted volumes
}

// Attached is an attached image. What is not known is the zero value.
type Attached struct {
	Image      string
	Format     string // UDRW, UDSB
	Device     string // the whole disk, /dev/…; "" when there is none, see Mode
	Partition  string // the device that carries the volume, Device itself without a partition table
	MountPoint string // "" while not mounted
	Filesystem string // ext4, exfat, …; "" for none that is known
	VolumeName string
	HelperPID  int
	ReadOnly   bool
	Size       int64  // bytes of the device
	Mode       string // loop, fuse+loop, fuse
	Since      time.Time
	Dead       bool // the helper died; device and mount have been released
}

// Filesystem is one that volumes can be made of.
type Filesystem struct {
	Name              string // as -fs takes it
	Tool              string // the program that makes it, "" for our own
	Package           string // that has the program
	Present           bool
	MountableByKernel bool
}

// Attacher attaches images and mounts what is on them. Errors wrap EBUSY for what
// is in use, EAGAIN for an image that somebody holds, and [ErrNoFileSystem].
type Attacher interface {
	Attach(ctx context.Context, r Request) (Attached, error)
	// Detach unmounts and releases; with force it does so whatever is open, and says what was lost.
	Detach(ctx context.Context, a Attached, force bool) (lost []string, err error)
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
var ErrNoFileSystem = errors.New("no mountable file systems")

// nothing is the attacher of systems that have none.
type nothing struct{}

func (nothing) refuse() error {
	return fmt.Errorf("images cannot be attached on this system: %w", errors.ErrUnsupported)
}

func (n nothing) Attach(context.Context, Request) (Attached, error) { return Attached{}, n.refuse() }
func (n nothing) Detach(context.Context, Attached, bool) ([]string, error) {
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
