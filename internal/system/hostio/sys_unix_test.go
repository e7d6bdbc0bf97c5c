package hostio

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What APFS, HFS+, exFAT and network shares were seen to answer to F_PREALLOCATE: first for contiguous space, then for any.
func TestReservingInTheFirstWayThatWorks(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"contiguous":               {[]error{nil}, nil},
		"in pieces":                {[]error{syscall.ENOSPC, nil}, nil},
		"no room":                  {[]error{syscall.ENOSPC, syscall.ENOSPC}, syscall.ENOSPC},
		"a share":                  {[]error{syscall.ENOTSUP, syscall.ENOTSUP}, ErrUnsupported},
		"a device that is no disk": {[]error{syscall.ENOTTY, syscall.ENOTTY}, ErrUnsupported},
		"APFS, a new file":         {[]error{syscall.EINVAL, syscall.EINVAL}, ErrUnsupported},
		"APFS, then not":           {[]error{syscall.EINVAL, nil}, nil},
		"a failing disk":           {[]error{syscall.EIO, syscall.EIO}, syscall.EIO},
	} {
		n := 0
		var ways []func() error
		for _, answer := range c.answers {
			ways = append(ways, func() error { n++; return answer })
		}
		if c.answers[0] == nil {
			ways = append(ways, func() error { n++; return nil })
		}
		assert.ErrorIs(t, firstOf(ways...), c.want, name)
		assert.Equal(t, len(c.answers), n, name)
	}
}

func TestWholeBlocksNeverReachBeyondTheRange(t *testing.T) {
	for _, c := range [][4]int64{{0, 8192, 0, 8192}, {1, 8192, 4096, 8192}, {0, 5000, 0, 4096}, {4096, 10000, 4096, 8192}, {5000, 6000, 8192, 4096}, {0, 0, 0, 0}} {
		first, last := wholeBlocks(c[0], c[1], 4096)
		assert.Equal(t, [2]int64{c[2], c[3]}, [2]int64{first, last}, c)
		assert.LessOrEqual(t, last, c[1], "a file that ends there would be asked for a hole behind its end")
	}
}

func TestAnswersOfLocks(t *testing.T) {
	for answer, want := range map[error]error{nil: nil, syscall.EWOULDBLOCK: ErrLocked, syscall.ENOTSUP: ErrUnsupported, syscall.ENOSYS: ErrUnsupported,
		syscall.ENOLCK: ErrUnsupported, syscall.EIO: syscall.EIO} {
		assert.ErrorIs(t, lockedBy(answer), want)
	}
}
