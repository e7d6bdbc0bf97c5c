package hostio

import (
	"errors"
	"syscall"
)

// refused reports whether a file system does not know a command of fcntl(2): those of others
// return ENOTSUP or ENOTTY, APFS returns EINVAL, now and then even for what it knows.
func refused(err error) bool {
	return errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.EINVAL)
}

// firstOf reserves space in the first way that works. Where the file system refuses all of them it is
// ErrUnsupported, as where it has no such command: APFS was seen to answer F_PREALLOCATE with EINVAL
// on files that had just been made, and zeros that are written reserve as well.
func firstOf(ways ...func() error) (err error) {
	for _, way := range ways {
		if err = way(); err == nil {
			return nil
		}
	}
	if refused(err) {
		return ErrUnsupported
	}
	return err
}

// wholeBlocks is what of the range from off to end consists of whole blocks; there are none where
// first >= last. The end of a file inside of a block is not an exception: F_PUNCHHOLE wants whole
// blocks of the file, and copyfile(3) of Apple, too, leaves the last one to zeros.
func wholeBlocks(off, end, block int64) (first, last int64) {
	return roundUp(off, block), end - end%block
}

// lockedBy is what an answer of flock(2) comes to. Network shares on a Mac answer ENOTSUP, some of FUSE ENOSYS, and NFS
// without a lock server ENOLCK.
func lockedBy(err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrLocked
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		return ErrUnsupported
	}
	return err
}
