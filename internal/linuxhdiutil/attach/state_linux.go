package attach

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	// LoopDevice is the path of the loop device, empty for none.
	LoopDevice string
	// Tag is the name under which the kernel has the loop device, one that no
	// other attachment has: not even of the same image, by a command with
	// another runtime folder.
	Tag string
	// FUSEDir is where the FUSE file system is mounted.
	FUSEDir string
	// MadeMountPoint means that the mount point is a folder that was made for
	// it.
	MadeMountPoint bool
	// LastMountPoint is where the volume was mounted last by us.
	LastMountPoint string
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

// rootsMounts is where volumes of root are mounted.
const rootsMounts = "/run/media/dmgbench"

// DefaultMountRoot is the default folder for mount points: /run/media/dmgbench
// for root, and the folder volumes below [RuntimeDir] for others or if
// $DMGBENCH_RUNTIME_DIR is set.
func DefaultMountRoot() string {
	if os.Geteuid() == 0 && os.Getenv("DMGBENCH_RUNTIME_DIR") == "" {
		return rootsMounts
	}
	return filepath.Join(RuntimeDir(), "volumes")
}

// store is the folder of the records.
type store struct {
	dir  *hostio.Dir
	lock *os.File // nil for a store that is only read
}

// openStore opens the folder and takes the lock of an image, for as long as the
// store is open: one command at a time changes its attachment, and meanwhile
// waits for nothing but that image. It waits for another command of the same
// image; if that still has the lock after the limit, the error matches
// os.ErrDeadlineExceeded.
func openStore(ctx context.Context, id string, limit time.Duration) (*store, error) {
	s, err := openUnlocked()
	if err != nil {
		return nil, err
	}
	if err = s.takeLock(ctx, id, limit); err != nil {
		s.close()
		return nil, fmt.Errorf("waiting for another attach or detach of the image: %w", err)
	}
	return s, nil
}

// openUnlocked opens the folder for reading records, which are always written
// as a whole.
func openUnlocked() (*store, error) {
	path, err := makePrivate(filepath.Join(RuntimeDir(), "attach"))
	if err != nil {
		return nil, err
	}
	dir, err := hostio.OpenDir(path)
	return &store{dir: dir}, err
}

// takeLock takes the lock of an image, which is a byte of a file that is never
// deleted, and polls while another process has it.
func (s *store) takeLock(ctx context.Context, id string, limit time.Duration) error {
	f, err := os.OpenFile(s.path("lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	s.lock = f
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id)) // never fails
	place := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(sum.Sum32()), Len: 1}
	waited := waitUntil(ctx, limit, func() bool {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &place)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR)
	})
	if waited != nil {
		return waited
	}
	return err
}

// close releases the lock, if the store has it.
func (s *store) close() {
	s.dir.Close()
	s.lock.Close() // which accepts nil
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

// load returns the record of id. The error for a missing one is
// [ErrNotAttached].
func (s *store) load(id string) (*record, error) {
	r := &record{}
	data, err := s.dir.ReadFile(id+recordSuffix, 1<<20)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(data)).Decode(r)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotAttached
	case err == nil && r.ID != id:
		err = errors.New("not the record of an attachment")
	}
	if err != nil {
		err = fmt.Errorf("reading attachment %q: %w", s.path(id+recordSuffix), err)
	}
	return r, err
}

// all returns the records in the order of their identifiers.
func (s *store) all() (list []*record, err error) {
	entries, err := s.dir.ReadDir(".")
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), recordSuffix); ok {
			r, err := s.load(id)
			if err == nil {
				list = append(list, r)
			} else if !errors.Is(err, ErrNotAttached) { // detached meanwhile
				return nil, err
			}
		}
	}
	return list, err
}

// forget removes everything that the store has of an attachment. The log of a
// process that went well is of no use.
func (s *store) forget(id string) (err error) {
	for _, name := range []string{id + ".end", id + ".log", id, id + recordSuffix} {
		if e := s.dir.Remove(name); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
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

// alive reports whether the kernel still has the device, mount and process of
// the record.
func (r *record) alive() bool {
	return r.Complete && r.Boot == host.BootID() && (r.Mode == ModeLoop || r.helperLives()) &&
		(r.ForPID == 0 || isAlive(r.ForPID, r.ForStart)) && (r.Mode == ModeFUSE || r.ownsLoop())
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
		return mountPointsOf(func(m host.Mount) bool {
			return m.Source == r.LoopDevice || strings.HasPrefix(m.Source, r.LoopDevice+"p")
		})
	case r.LoopDevice == "" && r.LastMountPoint != "":
		return r.servedMounts()
	}
	return nil, nil
}

// servedMounts returns where the FUSE file system of the record is mounted. Its
// source is the tag, which stays when a folder of its path is renamed.
func (r *record) servedMounts() ([]string, error) {
	return mountPointsOf(func(m host.Mount) bool { return m.Type == fuseType && m.Source == r.Tag })
}

// mountPointsOf returns the folders of the wanted mounts, the last one first.
func mountPointsOf(wanted func(m host.Mount) bool) (points []string, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range slices.Backward(host.ParseMounts(string(table))) {
		if wanted(m) {
			points = append(points, m.Point)
		}
	}
	return points, nil
}

// privateUmask is that of a private volume.
const privateUmask = 0o077

// umask is what the modes of a volume without modes of its own lack: all rights
// of others, if they may not read the image or do not have its passphrase.
func (r *record) umask() uint32 {
	fi, err := os.Stat(r.Image)
	if r.Encrypted || err != nil || fi.Mode()&0o004 == 0 {
		return privateUmask
	}
	return 0o022
}

// removeMountPoint removes a folder that was made to mount on; one that holds
// anything stays.
func (r *record) removeMountPoint() {
	if r.MadeMountPoint && r.LastMountPoint != "" {
		_ = os.Remove(r.LastMountPoint)
	}
	r.MadeMountPoint, r.LastMountPoint = false, ""
}

// List returns the attachments. It cleans up dead ones, and returns each of
// them once more with Dead set, unless another process released it without a
// loss. It waits for no other command: an image that one is attaching is not
// listed yet.
func List(ctx context.Context) (list []Attached, err error) {
	if _, err := os.Stat(RuntimeDir()); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	s, err := openUnlocked()
	if err != nil {
		return nil, err
	}
	defer s.close()
	records, err := s.all()
	for _, r := range records {
		if r.alive() {
			list = append(list, r.present())
		} else if a := cleanDead(ctx, r.ID); a != nil {
			list = append(list, *a)
		}
	}
	return list, err
}

// cleanDead removes what is left of an attachment that was found dead, and
// returns it if the user has to know. It leaves one alone that another command
// is working on.
func cleanDead(ctx context.Context, id string) *Attached {
	s, err := openStore(ctx, id, 0)
	if err != nil {
		return nil
	}
	defer s.close()
	r, err := s.load(id)
	if err != nil {
		return nil
	}
	if r.alive() {
		a := r.present()
		return &a
	}
	a := r.Attached
	a.Dead, a.Unfinished, a.MountPoint = true, !r.Complete, r.LastMountPoint
	lost := s.clean(ctx, r)
	a.Warnings = append(a.Warnings, lost...)
	if r.Boot != host.BootID() || len(lost) == 0 && r.Complete {
		return nil
	}
	return &a
}

// processStart returns the start time of a process, in ticks since the boot,
// and false if it does not exist or is a zombie.
func processStart(pid int) (uint64, bool) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may hold anything, parentheses too.
	_, rest, ok := strings.Cut(string(data[max(bytes.LastIndexByte(data, ')'), 0):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}

// isAlive reports whether the process with this start time still exists.
func isAlive(pid int, start uint64) bool {
	now, ok := processStart(pid)
	return ok && now == start
}

// holders lists the processes that have something open below one of the
// folders, or one of the files itself; it looks at names only, and so never
// waits for a file system that does not answer. What the user may not see is
// missing.
func holders(paths ...string) (list []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		proc := "/proc/" + e.Name()
		links, _ := filepath.Glob(proc + "/fd/*")
		uses := func(link string) bool {
			to, err := os.Readlink(link)
			return err == nil && slices.ContainsFunc(paths, func(path string) bool {
				return to == path || strings.HasPrefix(to, path+"/")
			})
		}
		if slices.ContainsFunc(append(links, proc+"/cwd", proc+"/root", proc+"/exe"), uses) {
			name, _ := os.ReadFile(proc + "/comm")
			list = append(list, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
		}
	}
	return list
}

// busyError reports that a volume or an image is in use, and the processes that
// use it as far as they are known. It wraps EBUSY.
func busyError(what string, by []string) error {
	text := fmt.Sprintf("%q is busy", what)
	if len(by) > 0 {
		text += ": held by " + strings.Join(by, ", ")
	}
	return fmt.Errorf("%s%.0w", text, unix.EBUSY)
}

// waitUntil polls until done returns true, or the time or the context has
// ended.
func waitUntil(ctx context.Context, limit time.Duration, done func() bool) error {
	pause, end := time.Millisecond, wall.Now()+limit
	for !done() {
		if wall.Now() >= end {
			return fmt.Errorf("after %v: %w", limit, os.ErrDeadlineExceeded)
		}
		if err := wall.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(pause*2, 25*time.Millisecond)
	}
	return nil
}

// within waits for a call that the kernel may block for ever, since the process
// that serves the image does not answer. It gives up when ctx has ended, or when
// no request of the loop device (if there is one) has ended for the limit; the
// call then goes on, and must change nothing that the caller uses.
func within(ctx context.Context, limit time.Duration, device string, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() { result <- call() }()
	ended, since := requestsEnded(device), wall.Now()
	for {
		select {
		case err := <-result:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(limit / 20):
		}
		if now := requestsEnded(device); now != ended {
			ended, since = now, wall.Now()
		}
		if wall.Now()-since >= limit {
			return fmt.Errorf("no answer within %v: %w", limit, os.ErrDeadlineExceeded)
		}
	}
}

// requestsEnded counts the requests of a loop device that have ended: reads,
// writes, discards and flushes of /sys/block/DEVICE/stat.
func requestsEnded(device string) (count [4]uint64) {
	stat, _ := os.ReadFile(sysfs(device, "stat"))
	fields := strings.Fields(string(stat))
	for i, at := range []int{0, 4, 11, 15} {
		if at < len(fields) {
			count[i], _ = strconv.ParseUint(fields[at], 10, 64)
		}
	}
	return count
}
