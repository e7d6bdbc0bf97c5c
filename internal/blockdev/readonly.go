package blockdev

import (
	"errors"
	"io"
)

// ReadOnly offers a reader of size bytes as a device. Everything that would change it is errors.ErrUnsupported.
func ReadOnly(r io.ReaderAt, size int64) Device { return readOnly{r, size} }

type readOnly struct {
	io.ReaderAt
	size int64
}

func (d readOnly) Size() int64                        { return d.size }
func (d readOnly) Flush() error                       { return nil }
func (d readOnly) Discard(int64, int64) error         { return errors.ErrUnsupported }
func (d readOnly) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
