package attach

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// wall is the clock of everything that waits here: for the kernel, for a
// process to end, for a lock.
var wall clock.Clock = clock.NewReal()

// record is the state of an attachment: all that is needed to undo it, even if
// every process that knew it has died. It is written before each step of an
// attach, so that a record never lacks what exists.
type record struct {
	Attached
	// Complete means that the command that attached came to its end; if not, it
	// died on the way.
	Complete bool
	// ForPID is the process that alone uses the attachment, 0 for none;
	// ForStart is its start time, see HelperStart.
	ForPID   int
	ForStart uint64
	// Boot identifies the boot of the kernel; after another one the attachment
	// does not exist.
	Boot string
	// HelperStart is the start time of the serving process, in clock ticks
	// since the boot: numbers of processes are used again.
	HelperStart uint64
	// Loop is the number of the loop device, -1 for none.
	Loop int
	// Sequence numbers this use of the loop device, 0 where the kernel has no
	// such number.
	Sequence int64
	// FUSEDir is where the FUSE file system is mounted, FUSEConnection the
	// minor number of that mount, 0 if it is not known yet.
	FUSEDir        string
	FUSEConnection uint32
	// MadeMountPoint means that the mount point is a folder that was made for
	// it.
	MadeMountPoint bool
	// LastMountPoint is where the volume was mounted last by us.
	LastMountPoint string
	// Offset of the partition in bytes.
	Offset int64
}

// RuntimeDir is the folder of the state of attachments: $DMGBENCH_RUNTIME_DIR
// if set (an absolute path), else the folder dmgbench below /run for root and
// below $XDG_RUNTIME_DIR for others.
func RuntimeDir() string {
	if dir := os.Getenv("DMGBENCH_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if os.Geteuid() == 0 {
		return "/run/dmgbench"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dmgbench")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("dmgbench-%d", os.Geteuid()))
}

// DefaultMountRoot is the default folder for mount points: /run/media/dmgbench
// for root, and the folder volumes below [RuntimeDir] for others or if
// $DMGBENCH_RUNTIME_DIR is set.
func DefaultMountRoot() string {
	if os.Geteuid() == 0 && os.Getenv("DMGBENCH_RUNTIME_DIR") == "" {
		return "/run/media/dmgbench"
	}
	return filepath.Join(RuntimeDir(), "volumes")
}

// store is the folder of the records.
type store struct {
	dir  *hostio.Dir
	lock *os.File // nil for a store that is only read
}

// openStore opens the folder and takes its lock, for as long as the store is
// open: one command at a time changes what is attached. An attach takes the
// lock once and does all of its steps under it.
func openStore(ctx context.Context) (*store, error) {
	s, err := openUnlocked()
	if err != nil {
		return nil, err
	}
	if err = s.takeLock(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openUnlocked opens the folder for reading records, which are always written
// as a whole.
func openUnlocked() (*store, error) {
	path := filepath.Join(RuntimeDir(), "attach")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the runtime folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, fmt.Errorf("looking at %q: %w", path, err)
	}
	// In a folder that others can write to, a stranger may have been first.
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("using %q: it belongs to another user: %w", path, fs.ErrPermission)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, err
	}
	// The kernel's table of mounts has no links in its paths.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("looking at the runtime folder: %w", err)
	}
	dir, err := hostio.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &store{dir: dir}, nil
}

// takeLock takes the lock, and polls while another process has it.
func (s *store) takeLock(ctx context.Context) error {
	f, err := os.OpenFile(s.path("lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("locking attachments: %w", err)
	}
	waited := waitUntil(ctx, 24*time.Hour, func() bool {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		return !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR)
	})
	if err = cmp.Or(waited, err); err != nil {
		f.Close()
		return fmt.Errorf("waiting for another attach or detach: %w", err)
	}
	s.lock = f
	return nil
}

// close releases the lock, if the store has it.
func (s *store) close() {
	s.dir.Close()
	if s.lock != nil {
		s.lock.Close()
	}
}

// path is the absolute path of a file of the store.
func (s *store) path(name string) string { return filepath.Join(s.dir.Path(), name) }

// recordSuffix ends the names of the files with records.
const recordSuffix = ".attachment"

// save writes the record, before the step that it describes.
func (s *store) save(r *record) error {
	var data bytes.Buffer // gob, because paths may be any bytes, which JSON cannot hold
	if err := gob.NewEncoder(&data).Encode(r); err != nil {
		return fmt.Errorf("keeping attachment %s: %w", r.ID, err)
	}
	return s.dir.WriteFileAtomic(r.ID+recordSuffix, data.Bytes(), 0o600)
}

// load returns the record of id, or nil when there is none that can be used.
func (s *store) load(id string) (*record, error) {
	data, err := s.dir.ReadFile(id+recordSuffix, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(r); err != nil || r.ID != id {
		err = errors.Join(err, errors.New("not the record of an attachment"))
		return nil, fmt.Errorf("reading attachment %q: %w", s.path(id+recordSuffix), err)
	}
	return r, nil
}

// all returns the records in the order of their identifiers.
func (s *store) all() ([]*record, error) {
	entries, err := s.dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []*record
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok {
			continue
		}
		r, err := s.load(id)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list, nil
}

// forget removes everything that the store has of an attachment. The log of a
// process that went well is of no use.
func (s *store) forget(id string) error {
	var errs []error
	for _, name := range []string{id + ".end", id + ".log", id, id + recordSuffix} {
		if err := s.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// identity is what makes two paths the same container: the file or folder on
// its file system, and when that was made, since numbers of inodes are used
// again.
func identity(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("looking at %q: %w", path, err)
	}
	id := fmt.Sprintf("%x.%x-%x", st.Dev_major, st.Dev_minor, st.Ino)
	if st.Mask&unix.STATX_BTIME != 0 {
		id += fmt.Sprintf("-%x.%x", st.Btime.Sec, st.Btime.Nsec)
	}
	return id, nil
}

// bootID is the identifier of the running boot of the kernel.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// mountedBefore reports whether the volume was mounted here before, and counts
// it as mounted from now on. It keeps one empty file for each container, until
// the host is restarted.
func mountedBefore(id string) bool {
	dir := filepath.Join(RuntimeDir(), "seen")
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrExist)
}

// find returns the store, locked, and the living record of an attachment.
func find(ctx context.Context, a Attached) (*store, *record, error) {
	s, err := openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.load(a.ID)
	if err == nil && (r == nil || a.ID == "") {
		err = fmt.Errorf("finding %q: %w", a.Image, ErrNotAttached)
	}
	if err == nil && !r.alive() {
		s.clean(ctx, r)
		err = fmt.Errorf("finding %q: what served it had died: %w", a.Image, ErrNotAttached)
	}
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, r, nil
}

// alive reports whether the kernel still has the device, mount and process of
// the record.
func (r *record) alive() bool {
	if !r.Complete || r.Boot != bootID() {
		return false
	}
	if r.Mode != ModeLoop && !r.helperLives() || r.ForPID != 0 && !isAlive(r.ForPID, r.ForStart) {
		return false
	}
	return r.Mode == ModeFUSE || r.ownsLoop()
}

// helperLives reports whether the serving process exists.
func (r *record) helperLives() bool { return isAlive(r.HelperPID, r.HelperStart) }

// present is the attachment with its present mount point: users may unmount
// with umount(8). Of several mount points it is the one that was recorded, else
// the last.
func (r *record) present() Attached {
	a := r.Attached
	a.MountPoint = ""
	points, _ := r.mountPoints()
	for _, p := range points {
		if a.MountPoint == "" || p == r.LastMountPoint {
			a.MountPoint = p
		}
	}
	return a
}

// mountPoints returns the folders on which the volume is mounted, the last one
// first.
func (r *record) mountPoints() ([]string, error) {
	switch {
	case r.ownsLoop():
		return r.loopMounts()
	case r.Loop >= 0 || r.LastMountPoint == "":
		return nil, nil
	}
	return r.servedMounts()
}

// servedMounts returns where the FUSE file system of the record is mounted. The
// number alone would not do: the kernel gives that of a mount that is gone to
// the next one.
func (r *record) servedMounts() ([]string, error) {
	if r.FUSEDir == "" {
		return nil, nil
	}
	return mountPointsOf(func(m host.Mount) bool {
		return m.Type == fuseType && m.Point == r.FUSEDir &&
			(r.FUSEConnection == 0 || unix.Mkdev(m.Major, m.Minor) == unix.Mkdev(0, r.FUSEConnection))
	})
}

// List returns the attachments. It cleans up dead ones, and returns each of
// them once more with Dead set, unless another process released it without a
// loss.
func List(ctx context.Context) ([]Attached, error) {
	if _, err := os.Stat(RuntimeDir()); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	s, err := openUnlocked()
	if err != nil {
		return nil, err
	}
	defer s.close()
	records, err := s.all()
	isDead := func(r *record) bool { return !r.alive() }
	if err == nil && slices.ContainsFunc(records, isDead) { // dead and unfinished ones wait for other commands
		if err = s.takeLock(ctx); err == nil {
			records, err = s.all()
		}
	}
	if err != nil {
		return nil, err
	}
	var list []Attached
	for _, r := range records {
		if s.lock == nil || r.alive() {
			list = append(list, r.present())
			continue
		}
		a := r.Attached
		a.Dead, a.Unfinished, a.MountPoint = true, !r.Complete, r.LastMountPoint
		lost := s.clean(ctx, r)
		a.Warnings = append(a.Warnings, lost...)
		if r.Boot == bootID() && (len(lost) > 0 || !r.Complete) {
			list = append(list, a)
		}
	}
	return list, nil
}
