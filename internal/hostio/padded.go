package hostio

import (
	"fmt"
	"io/fs"
)

// padLimit is one more than the most zeros that WritePadded adds: a page.
const padLimit = 4096

// WritePadded writes p at off and pad zeros after it, at most 4095, and returns
// how many bytes of p are written. Where the end of p is padded to a whole block
// that is one system call: a call of its own for the last part of a small file
// would be a round trip to the disk more.
func (f *File) WritePadded(p []byte, off int64, pad int) (int, error) {
	if pad < 0 || pad >= padLimit {
		return 0, f.fail("writing", fmt.Errorf("%d bytes of padding: %w", pad, fs.ErrInvalid))
	}
	if pad == 0 {
		return f.WriteAt(p, off)
	}
	b, err := getBounce()
	if err != nil {
		return 0, f.fail("writing", err)
	}
	defer putBounce(b)
	// The tail is what of p shares a page with the padding.
	tail := min(len(p), int((off+int64(len(p)))%padLimit))
	body, last := p[:len(p)-tail], b.Bytes()[:tail+pad]
	clear(last[copy(last, p[len(body):]):])
	if f.writeGathered(body, last, off) {
		return len(p), nil
	}
	if n, err := f.WriteAt(body, off); err != nil {
		return n, err
	}
	n, err := f.WriteAt(last, off+int64(len(body)))
	return len(body) + min(n, tail), err
}

// writeGathered writes both parts in one system call. Unless it did so in full,
// the caller writes them again, one by one, and meets what was wrong. Hooks see
// plain writes only, so with one this returns false.
func (f *File) writeGathered(body, last []byte, off int64) bool {
	n := len(body) + len(last)
	if f.hook != nil || off < 0 || len(body) == 0 || n > maxTransfer || f.acquire() != nil {
		return false
	}
	defer f.release()
	fd := f.fd
	if f.direct >= 0 && !f.degraded.Load() {
		// last is aligned in memory and follows body.
		if !aligned(body, off, f.mem, f.off, f.unit) || len(last)%f.unit != 0 {
			return false
		}
		fd = f.direct
	}
	m, err := sysWritev(fd, [3][]byte{body, last}, off)
	return err == nil && m == n
}
