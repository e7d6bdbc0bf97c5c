package attach

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/exfat"
)

// volumeFS serves the files of an exFAT volume.
type volumeFS struct {
	volume *exfat.Volume
	// uid and gid own all files: exFAT has no owners.
	uid, gid uint32
	umask    uint32 // of the modes, which it does not have either
	readOnly bool
	fails    *failures
	auto     *autoFlush
	// warnings are for the user who mounts.
	warnings []string
	// generations numbers inodes, so that spellings of one name are different
	// ones for the kernel.
	generations atomic.Uint64

	mu   sync.Mutex
	open map[*handle]struct{}
}

// openVolume repairs and mounts the exFAT volume that is to be served.
func openVolume(dev blockdev.Device, o serveRequest, readOnly bool, fails *failures) (*volumeFS, error) {
	if len(o.Parts) > 0 {
		part, err := blockdev.Section(dev, o.Parts[0].Offset(), o.Parts[0].Size())
		if err != nil {
			return nil, err
		}
		dev = part
	}
	warnings, err := repair(dev, readOnly)
	if err != nil {
		return nil, err
	}
	volume, err := exfat.Mount(dev, exfat.MountOptions{ReadOnly: readOnly, Now: time.Now})
	if err != nil {
		return nil, err
	}
	after := func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	return &volumeFS{volume: volume, warnings: warnings, uid: o.UID, gid: o.GID, umask: o.Umask, readOnly: readOnly, fails: fails,
		open: map[*handle]struct{}{}, auto: &autoFlush{volume: volume, fails: fails, after: after}}, nil
}

// repair repairs a volume that was not unmounted cleanly, as far as that needs
// no guessing; a crash leaves clusters without an owner. What one check puts
// right may be what another needs. It returns warnings for the user.
func repair(dev blockdev.Device, readOnly bool) (warnings []string, err error) {
	volume, err := exfat.Mount(dev, exfat.MountOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	dirty := volume.State().Dirty
	if err := volume.Unmount(); err != nil || !dirty {
		return nil, err
	}
	warning := "the volume was not unmounted cleanly"
	for check := 0; check < 3 && !readOnly; check++ {
		report, err := exfat.Check(dev, exfat.CheckOptions{Repair: true})
		if err != nil {
			return nil, err
		}
		if report.Clean() {
			return []string{warning + ", and was repaired"}, nil
		}
	}
	if !readOnly {
		warning += ", and not all that is wrong with it could be repaired"
	}
	return []string{warning}, nil
}

// close unmounts. The kernel does not always report that files were closed when
// it drops a mount.
func (v *volumeFS) close() error {
	v.auto.close()
	v.mu.Lock()
	var errs []error
	for h := range v.open {
		errs = append(errs, h.file.Close())
	}
	clear(v.open)
	v.mu.Unlock()
	return errors.Join(append(errs, v.volume.Unmount())...)
}

// raw is the file system as the protocol wants it.
func (v *volumeFS) raw() fuse.RawFileSystem {
	second := time.Second
	none := time.Duration(0)
	return fusefs.NewNodeFS(&node{v: v}, &fusefs.Options{
		AttrTimeout: &second, EntryTimeout: &second, NegativeTimeout: &none,
		UID: v.uid, GID: v.gid})
}

// errno is the number of the error of a change, see [failures.change]. It ends
// every operation that may change the volume.
func (v *volumeFS) errno(doing string, err error) syscall.Errno {
	v.auto.changed()
	return v.fails.change(doing, err)
}

// node is a file or folder, identified by its place in the tree.
type node struct {
	fusefs.Inode
	v *volumeFS
	// reported is done when the log has the entries that are not listed.
	reported sync.Once
}

// path is the path of a child on the volume; of the node itself if name is
// empty.
func (n *node) path(name string) string { return path.Join(n.Path(nil), name) }

// modeOfFile is the type and the permissions of a file or folder.
func (v *volumeFS) modeOfFile(i exfat.Info) uint32 {
	if i.Dir {
		return (unix.S_IFDIR | 0o777) &^ v.umask
	}
	return (unix.S_IFREG | 0o666) &^ v.umask
}

// fill sets the attributes of a file or folder.
func (n *node) fill(i exfat.Info, a *fuse.Attr) {
	cluster := uint64(n.v.volume.ClusterSize())
	a.Mode, a.Size, a.Nlink, a.Blksize = n.v.modeOfFile(i), uint64(i.Size), 1, uint32(min(cluster, maxRequest))
	a.Blocks = (a.Size + cluster - 1) / cluster * cluster / 512
	a.Uid, a.Gid = n.v.uid, n.v.gid
	if i.Modified.Unix() < 0 { // the root has no times, and a removed file
		i.Accessed, i.Modified, i.Created = time.Unix(0, 0), time.Unix(0, 0), time.Unix(0, 0)
	}
	a.SetTimes(&i.Accessed, &i.Modified, &i.Created)
}

// child returns the inode of a child, made if the kernel does not have it.
func (n *node) child(ctx context.Context, i exfat.Info, out *fuse.EntryOut) *fusefs.Inode {
	n.fill(i, &out.Attr)
	// Spellings of a name that differ in case alone are nodes of their own with
	// one number: programs that must not copy a file onto itself compare that.
	id := fusefs.StableAttr{Mode: n.v.modeOfFile(i) & unix.S_IFMT, Ino: inodeNumber(i), Gen: n.v.generations.Add(1)}
	return n.NewInode(ctx, &node{v: n.v}, id)
}

// inodeNumber is the number of a file's inode; 1 is the root's.
func inodeNumber(i exfat.Info) uint64 { return i.ID + 1 }

// Lookup finds a child by its name, in any case.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	i, err := n.v.volume.Stat(n.path(name))
	switch {
	case errors.Is(err, exfat.ErrName):
		return nil, syscall.ENOENT
	case err != nil:
		return nil, errnoOf(err)
	}
	// The kernel knows a name by its case; the same node would be one file
	// under two names. What it knows is another file where another spelling of
	// the name has been given to one since.
	if known := n.GetChild(name); known != nil && known.StableAttr().Ino == inodeNumber(i) {
		n.fill(i, &out.Attr)
		return known, 0
	}
	return n.child(ctx, i, out), 0
}

// Readdir lists a folder. What no path can name is in the log, once.
func (n *node) Readdir(context.Context) (fusefs.DirStream, syscall.Errno) {
	list, err := n.v.volume.List(n.path(""))
	if list == nil {
		return nil, errnoOf(err)
	}
	if err != nil {
		n.reported.Do(func() { log.Printf("%.1000v", err) })
	}
	entries := make([]fuse.DirEntry, 0, len(list))
	for _, i := range list {
		entries = append(entries, fuse.DirEntry{Name: i.Name, Mode: n.v.modeOfFile(i) & unix.S_IFMT, Ino: inodeNumber(i)})
	}
	return fusefs.NewListDirStream(entries), 0
}

func (n *node) Getattr(_ context.Context, f fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	i, err := n.v.volume.Stat(n.path(""))
	if h, ok := f.(*handle); ok { // which may be of a file that was removed: then it has no times
		i.Size, i.Dir, err = h.file.Size(), false, nil
	}
	if err == nil {
		n.fill(i, &out.Attr)
	}
	return errnoOf(err)
}

// Setattr changes the size and the times, as far as exFAT has them; those of the
// root and of a removed file are lost. Owners and modes are refused as the
// kernel's own driver refuses them.
func (n *node) Setattr(ctx context.Context, f fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	uid, hasUID := in.GetUID()
	gid, hasGID := in.GetGID()
	if hasUID && uid != n.v.uid || hasGID && gid != n.v.gid {
		return syscall.EPERM
	}
	if size, ok := in.GetSize(); ok {
		var err error
		if h, ok := f.(*handle); ok {
			err = h.file.Truncate(int64(size))
		} else if file, e := n.v.volume.Open(n.path("")); e == nil {
			err = errors.Join(file.Truncate(int64(size)), file.Close())
		} else {
			err = e
		}
		if no := n.v.errno("changing the size", err); no != 0 {
			return no
		}
	}
	if no := n.setTimes(f, in); no != 0 {
		return no
	}
	return n.Getattr(ctx, f, out)
}

// setTimes sets the times that the request has.
func (n *node) setTimes(f fusefs.FileHandle, in *fuse.SetAttrIn) syscall.Errno {
	var accessed, modified *time.Time
	if t, ok := in.GetATime(); ok {
		accessed = &t
	}
	if t, ok := in.GetMTime(); ok {
		modified = &t
	}
	if accessed == nil && modified == nil {
		return 0
	}
	err := n.v.volume.SetTimes(n.path(""), accessed, modified)
	if f != nil && errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	return n.v.errno("setting times", err)
}

func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	err := n.v.volume.Mkdir(n.path(name))
	var i exfat.Info
	if err == nil {
		i, err = n.v.volume.Stat(n.path(name))
	}
	if no := n.v.errno("making a folder", err); no != 0 {
		return nil, no
	}
	return n.child(ctx, i, out), 0
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.v.errno("removing", n.v.volume.Remove(n.path(name)))
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno { return n.Unlink(ctx, name) }

// Rename moves a file or folder. Of the flags of renameat2(2) only
// RENAME_NOREPLACE can be done.
func (n *node) Rename(
	_ context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32,
) syscall.Errno {
	target, ok := to.(*node)
	if !ok || flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL
	}
	rename := n.v.volume.Replace
	if flags&unix.RENAME_NOREPLACE != 0 {
		rename = n.v.volume.Rename
	}
	return n.v.errno("renaming", rename(n.path(name), target.path(newName)))
}

func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	v := n.v.volume
	cluster := uint64(v.ClusterSize())
	out.Bsize, out.Frsize, out.NameLen = uint32(cluster), uint32(cluster), 255
	out.Blocks, out.Bfree = uint64(v.Total())/cluster, uint64(v.Free())/cluster
	out.Bavail = out.Bfree
	return 0
}

// Fsync flushes a file, or the volume for a folder.
func (n *node) Fsync(_ context.Context, f fusefs.FileHandle, _ uint32) syscall.Errno {
	flush := n.v.volume.Sync
	if h, ok := f.(*handle); ok {
		flush = h.file.Sync
	}
	return n.v.errno("flushing", flush())
}

// Ioctl trims the volume, asked as a file system in the kernel is.
func (n *node) Ioctl(
	_ context.Context, _ fusefs.FileHandle, cmd uint32, _ uint64, in, out []byte,
) (int32, syscall.Errno) {
	if cmd != fitrim {
		return 0, syscall.ENOTTY
	}
	const size = unsafe.Sizeof(trimArgument{})
	if len(in) < int(size) || len(out) < int(size) {
		return 0, syscall.EINVAL
	}
	if n.v.readOnly {
		return 0, syscall.EROFS
	}
	done, err := n.v.volume.Trim(int64(min(binary.NativeEndian.Uint64(in[16:]), 1<<62)))
	if err != nil {
		return 0, n.v.errno("trimming", err)
	}
	copy(out, in[:size])
	binary.NativeEndian.PutUint64(out[8:], uint64(done))
	return 0, 0
}

// handle is an open file of a volume.
type handle struct {
	n    *node
	file *exfat.File
}

// handle returns a handle of an open file, which close can find.
func (n *node) handle(file *exfat.File) *handle {
	h := &handle{n: n, file: file}
	n.v.mu.Lock()
	n.v.open[h] = struct{}{}
	n.v.mu.Unlock()
	return h
}

func (n *node) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if n.v.readOnly && flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EROFS
	}
	file, err := n.v.volume.Open(n.path(""))
	if err != nil {
		return nil, 0, errnoOf(err)
	}
	return n.handle(file), 0, 0
}

func (n *node) Create(
	ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut,
) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	where := n.path(name)
	file, err := n.v.volume.Create(where, 0)
	if no := n.v.errno("creating", err); no != 0 {
		return nil, nil, 0, no
	}
	i, err := n.v.volume.Stat(where)
	if err != nil {
		return nil, nil, 0, n.v.errno("creating", errors.Join(err, file.Close()))
	}
	inode := n.child(ctx, i, out)
	return inode, inode.Operations().(*node).handle(file), 0, 0
}

func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.file.ReadAt(dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errnoOf(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (h *handle) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	n, err := h.file.WriteAt(data, off)
	if no := h.n.v.errno("writing", err); no != 0 {
		return 0, no
	}
	return uint32(n), 0
}

// Release closes the handle.
func (h *handle) Release(context.Context) syscall.Errno {
	h.n.v.mu.Lock()
	_, open := h.n.v.open[h]
	delete(h.n.v.open, h)
	h.n.v.mu.Unlock()
	if !open { // closed with the volume
		return 0
	}
	return h.n.v.errno("closing", h.file.Close())
}

// Allocate makes a file longer with its space reserved; exFAT has no space
// after the end of a file, and no holes.
func (h *handle) Allocate(_ context.Context, off, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.EOPNOTSUPP
	}
	end := int64(off + size)
	switch {
	case end < 0 || off+size < off:
		return syscall.EFBIG
	case end <= h.file.Size():
		return 0
	}
	return h.n.v.errno("allocating", h.file.Truncate(end))
}

// flushDelay is how long a change may wait until it is flushed. It is the
// interval of ext4's journal commits.
const flushDelay = 5 * time.Second

// autoFlush flushes a served volume at most flushDelay after a change, unless
// fsync has flushed it before. The kernel passes neither sync(2) nor syncfs(2)
// to an ordinary FUSE mount.
type autoFlush struct {
	volume *exfat.Volume
	fails  *failures
	// after is time.AfterFunc, or that of a test.
	after func(d time.Duration, f func()) (stop func() bool)

	// flushing is held during a flush; it is locked before mu.
	flushing sync.Mutex
	mu       sync.Mutex
	// stop is that of the timer; nil when none is set.
	stop   func() bool
	closed bool
	// failed means that the last flush failed.
	failed bool
}

// changed sets the timer if the volume has changed since it was flushed. Every
// operation that may change it calls this at its end.
func (a *autoFlush) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil && !a.closed && a.volume.Unsaved() {
		a.stop = a.after(flushDelay, a.flush)
	}
}

// flush is what the timer calls. After a failure it tries again; of failures in
// a row the first is kept.
func (a *autoFlush) flush() {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	a.mu.Lock()
	a.stop = nil
	idle := a.closed || !a.volume.Unsaved()
	a.mu.Unlock()
	if idle {
		return
	}
	err := a.volume.Sync()
	if err != nil && !a.failed {
		a.fails.add("flushing", err)
	}
	a.failed = err != nil
	a.changed()
}

// close stops the timer and waits for a flush that is under way.
func (a *autoFlush) close() {
	a.mu.Lock()
	a.closed = true
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
	a.mu.Unlock()
	a.flushing.Lock()
	defer a.flushing.Unlock()
}
