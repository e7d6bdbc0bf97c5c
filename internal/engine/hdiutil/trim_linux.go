package hdiutil

import (
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fitrim is FITRIM of linux/fs.h, _IOWR('X', 121, struct fstrim_range).
const fitrim = 0xc0185879

// trimVolume discards what the file system mounted on dir does not use, and
// returns the bytes that it says it did.
func trimVolume(dir string) (int64, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	span := struct{ start, length, least uint64 }{length: math.MaxUint64}
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fitrim, uintptr(unsafe.Pointer(&span)))
		switch {
		case e == 0:
			return int64(min(span.length, math.MaxInt64)), nil
		case errors.Is(e, unix.EINTR):
		case e == unix.EOPNOTSUPP, e == unix.ENOTTY, e == unix.EPERM, e == unix.EINVAL:
			return 0, fmt.Errorf("%w: %w", errNoTrim, e)
		default:
			return 0, e
		}
	}
}
