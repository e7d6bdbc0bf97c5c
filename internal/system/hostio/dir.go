package hostio

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an opened folder. Every name given to its methods is relative to it,
// may have several components, and can never lead out of it: not by "..",
// not by a symbolic link. A Dir keeps meaning the folder that was opened,
// even if its path is renamed or replaced later; see [Dir.Verify]. Its methods
// may be called concurrently.
type Dir struct {
	root *os.Root
	self *os.File // the folder itself: openat, flush, statfs
	fd   int      // of self
	path string   // absolute, for messages
	rel  string   // from the hooked folder, for hooks
	hook Hook
}

// Option changes how a folder is opened.
type Option func(*Dir)

// WithHook calls h before and after every host operation that has an [Op], done
// through the folder, its sub-folders and files.
func WithHook(h Hook) Option { return func(d *Dir) { d.hook = h } }

// OpenDir opens an existing folder of the host. It follows a symbolic link as the
// last component, since the user chose that path; Sub and Open refuse one.
func OpenDir(name string, opts ...Option) (*Dir, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", name, err)
	}
	root, err := os.OpenRoot(abs)
	d, err := newDir(root, abs, err)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(d)
	}
	return d, nil
}

// newDir wraps a root, opened under an absolute path, in a Dir; err is the result
// of opening it.
func newDir(root *os.Root, name string, err error) (*Dir, error) {
	var self *os.File
	if err == nil {
		if self, err = root.Open("."); err != nil {
			root.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", name, WithoutPath(err))
	}
	return &Dir{root: root, self: self, fd: int(self.Fd()), path: name}, nil
}

// Path returns the absolute path under which the folder was opened.
func (d *Dir) Path() string { return d.path }

// Close releases the folder. Files opened through it stay open.
func (d *Dir) Close() error {
	return errors.Join(d.self.Close(), d.root.Close())
}

// Sub opens a folder inside d. Anything else, a symbolic link included, is
// refused with [ErrNotRegular].
func (d *Dir) Sub(name string) (*Dir, error) {
	fi, err := d.root.Lstat(name)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("not a folder: %w", ErrNotRegular)
	}
	if err != nil {
		return nil, d.wrapErr("opening folder", name, err)
	}
	root, err := d.root.OpenRoot(name)
	s, err := newDir(root, d.join(name), err)
	if err != nil {
		return nil, err
	}
	// Between Lstat and OpenRoot the folder may have become a link.
	if now, err := s.self.Stat(); err != nil || !os.SameFile(fi, now) {
		s.Close()
		return nil, d.wrapErr("opening folder", name, ErrReplaced)
	}
	s.rel, s.hook = path.Join(d.rel, filepath.ToSlash(name)), d.hook
	return s, nil
}

// do runs an operation on a name between the hook's calls.
func (d *Dir) do(doing string, op Op, name string, do func() error) error {
	if d.hook != nil {
		op.Path = path.Join(d.rel, filepath.ToSlash(name))
	}
	return d.wrapErr(doing, name, guard(d.hook, op, do))
}

// Mkdir makes one folder with mode 0o755 (before umask).
func (d *Dir) Mkdir(name string) error {
	return d.do("making folder", Op{Kind: OpMkdir}, name, func() error {
		return d.at(name, func(dir int, base string) error { return unix.Mkdirat(dir, base, 0o755) })
	})
}

// MkdirAll makes a folder and any missing parents.
func (d *Dir) MkdirAll(name string) error {
	part := ""
	for c := range strings.SplitSeq(path.Clean(filepath.ToSlash(name)), "/") {
		part = path.Join(part, c)
		if fi, err := d.root.Stat(part); err == nil && fi.IsDir() {
			continue
		}
		if err := d.Mkdir(part); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes a file, a link (not its target) or an empty folder.
func (d *Dir) Remove(name string) error {
	return d.do("removing", Op{Kind: OpRemove}, name, func() error {
		err := d.at(name, unlink)
		if err == nil {
			return nil
		}
		if asFolder := d.at(name, rmdir); !errors.Is(asFolder, syscall.ENOTDIR) {
			return asFolder
		}
		return err
	})
}

// Rmdir deletes an empty folder, and nothing else.
func (d *Dir) Rmdir(name string) error {
	return d.do("removing", Op{Kind: OpRemove}, name, func() error { return d.at(name, rmdir) })
}

// Unlink deletes a file or a link (not its target), and no folder.
func (d *Dir) Unlink(name string) error {
	return d.do("removing", Op{Kind: OpRemove}, name, func() error { return d.at(name, unlink) })
}

func unlink(dir int, base string) error { return unix.Unlinkat(dir, base, 0) }

func rmdir(dir int, base string) error { return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR) }

// RemoveAll deletes a tree without following links. A missing tree is no error.
func (d *Dir) RemoveAll(name string) error {
	return d.do("removing", Op{Kind: OpRemoveAll}, name, func() error { return d.root.RemoveAll(name) })
}

// Rename moves old to new, both inside d, replacing an existing file at new.
func (d *Dir) Rename(old, new string) error {
	op := Op{Kind: OpRename, To: path.Join(d.rel, filepath.ToSlash(new))}
	return d.do("renaming", op, old, func() error {
		return d.at(old, func(from int, oldBase string) error {
			return d.at(new, func(to int, newBase string) error { return unix.Renameat(from, oldBase, to, newBase) })
		})
	})
}

// Symlink makes a symbolic link to target, which is not looked up. Links do not
// keep contents, so that no hook sees them.
func (d *Dir) Symlink(target, name string) error {
	return d.wrapErr("linking", name, d.at(name, func(dir int, base string) error {
		return unix.Symlinkat(target, dir, base)
	}))
}

// Chmod sets the permissions of a file or folder, and refuses a link.
func (d *Dir) Chmod(name string, mode fs.FileMode) error {
	return d.wrapErr("setting permissions of", name, d.at(name, func(dir int, base string) error {
		return chmodat(dir, base, uint32(mode.Perm()))
	}))
}

// chmodat is fchmodat(2). Linux before 6.6 has none that follows no link: there
// the file is opened.
func chmodat(dir int, base string, mode uint32) error {
	err := unix.Fchmodat(dir, base, mode, unix.AT_SYMLINK_NOFOLLOW)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, err := openat(dir, base, OpenOptions{}.flags()|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, mode), unix.Close(fd))
}

// SetTime sets the time of the last change of a file or folder, and that of the last access; a link is followed, inside
// d only.
func (d *Dir) SetTime(name string, t time.Time) error {
	return d.wrapErr("setting the time of", name, d.root.Chtimes(name, t, t))
}

// ReadDir lists a folder inside d ("." is d itself), sorted by name.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(d.root.FS(), path.Clean(filepath.ToSlash(name)))
	return list, d.wrapErr("listing", name, err)
}

// Names are those of the entries of a folder inside d, in the order of the file
// system. It looks none of them up.
func (d *Dir) Names(name string) (names []string, err error) {
	err = d.at(name, func(dir int, base string) error {
		fd, err := openat(dir, base, folderFlags, 0)
		if err != nil {
			return err
		}
		names, err = readNames(fd)
		return errors.Join(err, unix.Close(fd))
	})
	return names, d.wrapErr("listing", name, err)
}

func readNames(fd int) (names []string, err error) {
	var buf [32 << 10]byte // as much as the libraries of other programs read at once
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// Size is the length of a file in bytes, 0 of a folder, by one call; a link is
// not followed.
func (d *Dir) Size(name string) (int64, error) {
	var st unix.Stat_t
	err := d.at(name, func(dir int, base string) error {
		return unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return 0, d.wrapErr("looking at", name, err)
	}
	return st.Size, nil
}

// Lstat describes name itself, without following a link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	fi, err := d.root.Lstat(name)
	return fi, d.wrapErr("looking at", name, err)
}

// Sync flushes the folder's entries: creations, renames and removals in it.
func (d *Dir) Sync() error {
	return d.do("flushing folder", Op{Kind: OpDirSync}, ".", func() error {
		flushes.Add(1)
		_, err := sysSync(d.fd, SyncFsync)
		return err
	})
}

// MaxOpen is how many files and folders this process may have open.
func MaxOpen() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 256 // of macOS
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// FreeSpace returns the bytes an unprivileged user may still write and the
// total bytes of the file system that holds d, and that file system's type
// ("ext4", "tmpfs", "apfs"; hexadecimal magic when unknown).
func (d *Dir) FreeSpace() (free, total int64, fsType string, err error) {
	free, total, fsType, err = sysStatfs(d.fd)
	return free, total, fsType, d.wrapErr("reading free space of", ".", err)
}

// IsOutOfInodes reports whether the file system that holds d can have hardly any more files, though it may have room.
func (d *Dir) IsOutOfInodes() bool {
	var s unix.Statfs_t
	err := retryEINTR(func() error { return unix.Fstatfs(d.fd, &s) })
	return err == nil && s.Files > 0 && s.Ffree < 16 // a failed call may have freed some; btrfs has no limit, which is 0 files
}

// Verify returns [ErrReplaced] unless name inside parent is still d itself, and
// neither a link to it nor something in its place.
func (d *Dir) Verify(parent *Dir, name string) error {
	at, err := parent.root.Lstat(name)
	if err != nil {
		return parent.wrapErr("finding", name, fmt.Errorf("%w: %w", ErrReplaced, WithoutPath(err)))
	}
	own, err := d.self.Stat()
	if err == nil && !os.SameFile(own, at) {
		err = ErrReplaced
	}
	return parent.wrapErr("finding", name, err)
}

func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// wrapErr adds what was being done and the whole path; nil stays nil.
func (d *Dir) wrapErr(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", doing, d.join(name), WithoutPath(err))
}

// SpreadSubdirs asks the file system to place folders that are made in d later
// apart from each other, in different block groups. Without it, ext4 puts them
// all next to d, and its rule not to reuse an inode for minutes after a deletion
// makes each new file search past every file deleted nearby: creating a file went
// from 20 µs to 1 ms after some thousand deletions. [ErrUnsupported] where there
// is no such hint; the folder is then unchanged.
func (d *Dir) SpreadSubdirs() error {
	return d.wrapErr("spreading sub-folders of", ".", sysSpread(d.fd))
}

// WithoutPath strips the operation and path that package os adds, for messages
// that name the path themselves.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// folderFlags are those of open(2) of a folder, of which no link is followed.
const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// at calls do with the open folder that name is in, and with the last component
// of name. It follows no link. Of a name of one component it makes no call itself.
func (d *Dir) at(name string, do func(dir int, base string) error) error {
	folder, base := path.Split(path.Clean(filepath.ToSlash(name)))
	if base == "" || base == ".." {
		return fs.ErrInvalid
	}
	home, err := d.openParent(folder)
	if err != nil {
		return err
	}
	if home != d.fd {
		defer unix.Close(home)
	}
	return retryEINTR(func() error { return do(home, base) })
}

// openParent opens the folder of a file below d; an empty name is d itself. The
// caller closes the result unless it is d.fd. It follows no link, and costs one
// call for each level, since making files takes part of the time of a run.
func (d *Dir) openParent(folder string) (int, error) {
	at := d.fd
	for _, level := range strings.Split(strings.TrimSuffix(folder, "/"), "/") {
		if level == "" && folder == "" {
			return at, nil
		}
		if level == "" || level == ".." {
			return 0, fs.ErrInvalid
		}
		next, err := openat(at, level, folderFlags, 0)
		if at != d.fd {
			unix.Close(at)
		}
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			return 0, fmt.Errorf("%q is not a folder: %w", level, ErrNotRegular)
		}
		if err != nil {
			return 0, err
		}
		at = next
	}
	return at, nil
}

// Open opens or creates a file. No component of the name may be a link; a link,
// folder, FIFO, socket or device is refused with [ErrNotRegular]. In direct mode
// a second, buffered descriptor is opened at once, for transfers that are not a
// multiple of the block size. Where
// direct transfers are impossible (tmpfs, some FUSE file systems) the file is
// opened buffered, and [File.Cache] reports it.
func (d *Dir) Open(name string, o OpenOptions) (*File, error) {
	name = path.Clean(filepath.ToSlash(name))
	if base := path.Base(name); base == "." || base == ".." || base == "/" {
		return nil, d.wrapErr("opening", name, ErrNotRegular)
	}
	f := &File{direct: -1, mem: 1, off: 1, unit: 1, cache: CacheBuffered, hook: d.hook, folder: d.path, name: name}
	op := Op{Kind: OpOpen}
	if f.hook != nil {
		f.rel = path.Join(d.rel, name)
		op.Path = f.rel
	}
	if f.hook != nil && o.Create {
		if _, err := d.root.Lstat(name); err != nil { // only names the operation for the hook
			op.Kind = OpCreate
		}
	}
	err := guard(f.hook, op, func() error {
		return d.at(name, func(home int, base string) error { return f.open(home, base, o) })
	})
	if errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("%w: symbolic link", ErrNotRegular)
	}
	if err != nil {
		return nil, d.wrapErr("opening", name, err)
	}
	return f, nil
}

// WriteFileAtomic replaces or creates a file so that a crash at any moment
// leaves the old content or the new, never a part: it writes to a temporary
// name in the same folder, flushes, renames, and flushes the folder.
func (d *Dir) WriteFileAtomic(name string, data []byte, perm fs.FileMode) error {
	folder, base := path.Split(name)
	home := d
	if folder != "" {
		sub, err := d.Sub(path.Clean(folder))
		if err != nil {
			return err
		}
		defer sub.Close()
		home = sub
	}
	tmp := "." + base + ".tmp-" + rand.Text()[:10]
	f, err := home.Open(tmp, OpenOptions{Write: true, Create: true, Exclusive: true, Perm: perm})
	if err == nil {
		if _, err = f.WriteAt(data, 0); err == nil {
			_, err = f.Sync(SyncFull)
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = home.Rename(tmp, base)
	}
	if err != nil {
		home.root.Remove(tmp) // without the hook, and as far as that succeeds
		return err
	}
	return home.Sync()
}

// OpenSmall opens a file to read it, and returns its size. It returns
// [ErrTooLarge] if the file has more than limit bytes.
func (d *Dir) OpenSmall(name string, limit int64) (*File, int64, error) {
	f, err := d.Open(name, OpenOptions{})
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && st.Size > limit {
		err = d.wrapErr("reading", name, fmt.Errorf("%w of %d bytes: it has %d", ErrTooLarge, limit, st.Size))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size, nil
}

// ReadFile reads a whole file. It returns [ErrTooLarge] if the file has more than
// limit bytes.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	f, size, err := d.OpenSmall(name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// ChownTree gives the files and folders of root at and below path to a user and a
// group, for a program that root runs on behalf of somebody. It does nothing if
// the parent of path is not the user's. It skips links, devices, files with
// several hard links and other file systems, as the user may have put those
// there. A missing path is no error.
func ChownTree(path string, uid, gid int) (err error) {
	defer func() {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		} else if err != nil {
			err = fmt.Errorf("changing the owner of %q to user %d: %w", path, uid, WithoutPath(err))
		}
	}()
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(abs))
	if err != nil {
		return err
	}
	defer parent.Close()
	info, err := parent.Stat(".")
	if err != nil || StatOf(info).UID != uid {
		return err
	}
	top, err := parent.Lstat(filepath.Base(abs))
	if err != nil || top.Mode()&fs.ModeSymlink != 0 { // WalkDir would follow a link
		return err
	}
	return fs.WalkDir(parent.FS(), filepath.Base(abs), func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			info, err = parent.Lstat(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		switch st := StatOf(info); {
		case st.Dev != StatOf(top).Dev && info.IsDir():
			return fs.SkipDir
		case st.Dev != StatOf(top).Dev, st.UID != 0, !info.IsDir() && (!info.Mode().IsRegular() || st.Links > 1):
			return nil // left alone; the content of a folder is visited
		}
		return parent.Lchown(name, uid, gid)
	})
}
