package hostio

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

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

// WithHook puts h before and after every host operation done through the
// folder, its sub-folders and files.
func WithHook(h Hook) Option { return func(d *Dir) { d.hook = h } }

// OpenDir opens an existing folder of the host. A symbolic link as the last
// component is followed here, and only here: it is the user who names it.
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

// newDir is the folder of a root that was opened, unless err is set.
func newDir(root *os.Root, name string, err error) (*Dir, error) {
	var self *os.File
	if err == nil {
		if self, err = root.Open("."); err != nil {
			root.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", name, bare(err))
	}
	return &Dir{root: root, self: self, fd: int(self.Fd()), path: name}, nil
}

// Path returns the absolute path under which the folder was opened.
func (d *Dir) Path() string { return d.path }

// Close releases the folder. Files opened through it stay open.
func (d *Dir) Close() error {
	return errors.Join(d.self.Close(), d.root.Close())
}

// Sub opens a folder inside d. A symbolic link as the last component is
// refused with [ErrNotRegular].
func (d *Dir) Sub(name string) (*Dir, error) {
	fi, err := d.root.Lstat(name)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("not a folder: %w", ErrNotRegular)
	}
	if err != nil {
		return nil, d.fail("opening folder", name, err)
	}
	root, err := d.root.OpenRoot(name)
	s, err := newDir(root, d.join(name), err)
	if err != nil {
		return nil, err
	}
	// Between Lstat and OpenRoot the folder may have become a link.
	if now, err := s.self.Stat(); err != nil || !os.SameFile(fi, now) {
		s.Close()
		return nil, d.fail("opening folder", name, ErrReplaced)
	}
	s.rel, s.hook = path.Join(d.rel, filepath.ToSlash(name)), d.hook
	return s, nil
}

// do runs an operation on a name between the hook's calls.
func (d *Dir) do(doing string, op Op, name string, do func() error) error {
	if d.hook != nil {
		op.Path = path.Join(d.rel, filepath.ToSlash(name))
	}
	return d.fail(doing, name, guard(d.hook, op, do))
}

// Mkdir makes one folder with mode 0o755 (before umask).
func (d *Dir) Mkdir(name string) error {
	return d.do("making folder", Op{Kind: OpMkdir}, name, func() error { return d.root.Mkdir(name, 0o755) })
}

// MkdirAll makes a folder and those above it that are missing.
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

// Remove deletes a file, a link (not what it leads to) or an empty folder.
func (d *Dir) Remove(name string) error {
	return d.do("removing", Op{Kind: OpRemove}, name, func() error { return d.root.Remove(name) })
}

// RemoveAll deletes a tree without following links. A missing one is not an
// error.
func (d *Dir) RemoveAll(name string) error {
	return d.do("removing", Op{Kind: OpRemoveAll}, name, func() error { return d.root.RemoveAll(name) })
}

// Rename moves old to new, both inside d, replacing a file of that name.
func (d *Dir) Rename(old, new string) error {
	op := Op{Kind: OpRename, To: path.Join(d.rel, filepath.ToSlash(new))}
	return d.do("renaming", op, old, func() error { return d.root.Rename(old, new) })
}

// ReadDir lists a folder inside d ("." is d itself), sorted by name.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(d.root.FS(), path.Clean(filepath.ToSlash(name)))
	return list, d.fail("listing", name, err)
}

// Stat describes what name leads to, through links that stay inside d.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	fi, err := d.root.Stat(name)
	return fi, d.fail("looking at", name, err)
}

// Lstat describes name itself, without following a link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	fi, err := d.root.Lstat(name)
	return fi, d.fail("looking at", name, err)
}

// Sync flushes the folder's entries: creations, renames and removals in it.
func (d *Dir) Sync() error {
	return d.do("flushing folder", Op{Kind: OpDirSync}, ".", func() error {
		flushes.Add(1)
		_, err := sysSync(d.fd, SyncFsync)
		return err
	})
}

// FreeSpace returns the bytes an unprivileged user may still write and the
// total bytes of the file system that holds d, and that file system's type
// ("ext4", "tmpfs", "apfs"; hexadecimal magic when unknown).
func (d *Dir) FreeSpace() (free, total int64, fsType string, err error) {
	free, total, fsType, err = sysStatfs(d.fd)
	return free, total, fsType, d.fail("reading free space of", ".", err)
}

// Verify checks that name inside parent still leads to the folder d, and not
// to a link or to something put in its place: [ErrReplaced] if not.
func (d *Dir) Verify(parent *Dir, name string) error {
	at, err := parent.root.Lstat(name)
	if err != nil {
		return parent.fail("finding", name, fmt.Errorf("%w: %w", ErrReplaced, bare(err)))
	}
	own, err := d.self.Stat()
	if err == nil && !os.SameFile(own, at) {
		err = ErrReplaced
	}
	return parent.fail("finding", name, err)
}

func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// fail adds what was being done and the whole path; nil stays nil.
func (d *Dir) fail(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", doing, d.join(name), bare(err))
}

// Spread asks the file system to place folders made in d apart from each
// other, in different block groups. Without it, ext4 puts them all next to d,
// and its rule not to reuse an inode for minutes after a deletion makes each
// new file search past every file deleted nearby: 20 µs became 1 ms after
// some thousand deletions, charged to whoever creates bands next.
// [ErrUnsupported] where there is no such hint; the folder is then unchanged.
func (d *Dir) Spread() error {
	return d.fail("spreading sub-folders of", ".", sysSpread(d.fd))
}

// bare strips the operation and path that package os adds: our own messages
// carry both.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// walk opens the folder of a file below d; an empty name is d itself. It
// follows no link, and costs one call a level: making a file is part of the
// time that a run spends on each.
func (d *Dir) walk(folder string) (int, error) {
	at := d.fd
	for _, level := range strings.Split(strings.TrimSuffix(folder, "/"), "/") {
		if level == "" && folder == "" {
			return at, nil
		}
		if level == "" || level == ".." {
			return 0, fs.ErrInvalid
		}
		next, err := openat(at, level, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if at != d.fd {
			sysClose(at)
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

// Open opens or creates a file. A link, folder, FIFO, socket or device is
// refused with [ErrNotRegular]. In direct mode a second, buffered descriptor
// is opened at once: it carries what no multiple of the block can. Where
// direct transfers are impossible (tmpfs, some FUSE file systems) the file is
// opened buffered, and [File.Cache] reports it.
func (d *Dir) Open(name string, o OpenOptions) (*File, error) {
	if o.Create && !o.Write {
		return nil, d.fail("opening", name, fmt.Errorf("creating needs write access: %w", fs.ErrInvalid))
	}
	folder, base := path.Split(path.Clean(filepath.ToSlash(name)))
	if base == "" || base == "." || base == ".." {
		return nil, d.fail("opening", name, ErrNotRegular)
	}
	home, err := d.walk(folder)
	if err != nil {
		return nil, d.fail("opening", name, err)
	}
	if home != d.fd {
		defer sysClose(home)
	}
	f := &File{direct: -1, mem: 1, off: 1, unit: 1, cache: CacheBuffered, hook: d.hook,
		path: d.join(path.Join(folder, base)), rel: path.Join(d.rel, folder, base)}
	f.cut, _ = d.hook.(Shortener)
	op := Op{Kind: OpOpen, Path: f.rel}
	if f.hook != nil && o.Create {
		if _, err := d.root.Lstat(name); err != nil {
			op.Kind = OpCreate
		}
	}
	err = guard(f.hook, op, func() error { return f.open(home, base, o) })
	if errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("%w: symbolic link", ErrNotRegular)
	}
	if err != nil {
		return nil, d.fail("opening", name, err)
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
		home.root.Remove(tmp)
		return err
	}
	return home.Sync()
}

// ReadFile reads a whole file. One of more than limit bytes is refused with
// [ErrTooLarge] before its content is read.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := d.Open(name, OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size > limit {
		return nil, d.fail("reading", name, fmt.Errorf("%w of %d bytes: it has %d", ErrTooLarge, limit, st.Size))
	}
	data := make([]byte, st.Size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// ChownTree lets a file, or a folder with all that is in it, belong to a user
// and a group: for a program that root runs on behalf of somebody, so that they
// can work with what it made. It leaves all as it is where the folder of path
// is not the user's, changes only what belongs to root, follows no link, and
// leaves out what has several names or is on another file system, as the user
// may have put those there. A missing path is not an error.
func ChownTree(path string, uid, gid int) error {
	err := chownTree(path, uid, gid)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("giving %q to user %d: %w", path, uid, bare(err))
}

func chownTree(path string, uid, gid int) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	above, err := os.OpenRoot(filepath.Dir(abs))
	if err != nil {
		return err
	}
	defer above.Close()
	in, err := above.Stat(".")
	if err != nil {
		return err
	}
	if owner, ok := Owner(in); !ok || owner != uid {
		return nil
	}
	top, err := above.Lstat(filepath.Base(abs))
	if err != nil || top.Mode()&fs.ModeSymlink != 0 {
		return err // walking begins behind a link
	}
	return fs.WalkDir(above.FS(), filepath.Base(abs), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := above.Lstat(name)
		if err != nil {
			return err
		}
		owner, known := Owner(info)
		switch st := StatOf(info); {
		case !known:
			return errors.ErrUnsupported
		case st.Dev != StatOf(top).Dev && info.IsDir():
			return fs.SkipDir
		case st.Dev != StatOf(top).Dev, owner != 0, !info.IsDir() && (!info.Mode().IsRegular() || st.Links > 1):
			return nil
		}
		return above.Lchown(name, uid, gid)
	})
}

// Owner is the user whom a file or folder belongs to.
func Owner(fi fs.FileInfo) (uid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
