package attach

import (
	"errors"
	"io"
	"os"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
)

// openDevice opens a device node or a served file.
func openDevice(path string, flags int) (*fileDevice, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &fileDevice{f, size}, nil
}

// fileDevice is a device node or a served file as a device.
type fileDevice struct {
	*os.File
	size int64
}

func (d fileDevice) Size() int64  { return d.size }
func (d fileDevice) Flush() error { return d.Sync() }
func (d fileDevice) Discard(off, n int64) error {
	return errors.Join(blockdev.CheckRange(off, n, d.size), hostio.ErrUnsupported)
}

var _ blockdev.Device = fileDevice{}
