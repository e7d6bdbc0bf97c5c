package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNonblock keeps an open from waiting for the other end of a FIFO.
const openNonblock = unix.O_NONBLOCK

// lock takes an exclusive lock that ends with the open file, also when the
// process is killed. It does not wait.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
			return fmt.Errorf("locking %q: %w", f.Name(), errors.ErrUnsupported)
		default:
			return err
		}
	}
}

// plainSync is fsync(2), on macOS without F_FULLFSYNC.
func plainSync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for failed = unix.EINTR; errors.Is(failed, unix.EINTR); {
			failed = unix.Fsync(int(fd))
		}
	})
	return errors.Join(failed, err)
}

// OwnedByUs reports whether the file belongs to the user of this process: for root by sudo, to the
// caller as well, whom what was made has been given to. On volumes that macOS mounts without owners
// everything is everybody's.
func OwnedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && ours(st.Uid, os.Geteuid(), os.Getenv("SUDO_UID"), runtime.GOOS)
}

// unknownOwner is the user 99 of macOS, the owner of all files on a volume without owners as root sees it; all other
// users see themselves (mount(8), hdiutil(1)).
const unknownOwner = 99

func ours(owner uint32, user int, caller, system string) bool {
	if int(owner) == user || user != 0 {
		return int(owner) == user
	}
	n, err := strconv.ParseUint(caller, 10, 31)
	return err == nil && uint64(owner) == n || system == "darwin" && owner == unknownOwner
}
