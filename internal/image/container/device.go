package container

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/hostio"
)

// device is the part of an open container that all formats share: it checks
// that the container is open and writable and that a range is inside, and then
// calls the layout. Each format embeds a device and is the layout of it.
type device struct {
	mu     sync.RWMutex // shared by transfers, flushes and usage; exclusive for Resize, Close and moving compactions
	closed bool         // guarded by mu
	size   int64        // bytes of the device, guarded by mu
	chunk  int64        // bytes of a band or chunk; 0 for formats without
	path   string
	opts   OpenOptions
	failed stickyError // the first flush that failed
	layout layout
}

// layout stores the bytes of a device in the way of one format. The device
// holds its lock during each call, exclusively for resize and close. Ranges lie
// inside the device and are not empty.
type layout interface {
	Format() string
	Cache() hostio.CacheMode
	readAt(p []byte, off int64) (int, error)
	// writeAt writes p and then pad zeros, which in formats with chunks end in
	// the chunk in which p ends.
	writeAt(p []byte, off int64, pad int) (int, error)
	discard(off, n int64) error
	// eachPlace calls do for the stretches of host files that store the range.
	eachPlace(off, n int64, do func(f bandFile, at, n int64) error) error
	// flush makes everything durable that was written before the call; called
	// for writable containers only.
	flush() error
	usage() (Usage, error)
	// resize changes the size of a writable container and makes the change
	// durable.
	resize(size int64) error
	// close flushes and closes.
	close() error
}

// enter starts a call; the caller leaves with d.mu.RUnlock unless there is an
// error.
func (d *device) enter() error {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return fmt.Errorf("using %q: %w", d.path, fs.ErrClosed)
	}
	return nil
}

// enterRange starts a call about n bytes at off, which may change them.
func (d *device) enterRange(off, n int64, change bool) (err error) {
	if err = d.enter(); err != nil {
		return err
	}
	if change {
		err = d.checkWritable()
	}
	if err = cmp.Or(err, blockdev.CheckRange(off, n, d.size)); err != nil {
		d.mu.RUnlock()
	}
	return err
}

// lockAlone starts a call that must run alone; the caller leaves with
// d.mu.Unlock unless there is an error.
func (d *device) lockAlone(doing string) error {
	d.mu.Lock()
	err := d.checkWritable()
	if d.closed {
		err = fmt.Errorf("%s %q: %w", doing, d.path, fs.ErrClosed)
	}
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

// checkWritable returns ErrReadOnly for a device that was opened read-only.
func (d *device) checkWritable() error {
	if d.opts.ReadOnly {
		return fmt.Errorf("changing %q: %w", d.path, ErrReadOnly)
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (d *device) ReadAt(p []byte, off int64) (int, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.RUnlock()
	return readClipped(p, off, d.size, d.layout.readAt)
}

// WriteAt implements [io.WriterAt].
func (d *device) WriteAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, d.callRange(off, 0, true, nil)
	}
	return d.WritePadded(p, off, 0)
}

// WritePadded implements [blockdev.Padder], where data and padding end in the
// same chunk.
func (d *device) WritePadded(p []byte, off int64, pad int) (int, error) {
	end := off + int64(len(p))
	if err := d.enterRange(off, int64(len(p))+int64(pad), true); err != nil {
		return 0, err
	}
	defer d.mu.RUnlock()
	if len(p) == 0 || pad < 0 || d.chunk > 0 && (end-1)/d.chunk != (end+int64(pad)-1)/d.chunk {
		return 0, errors.ErrUnsupported
	}
	return d.layout.writeAt(p, off, pad)
}

// Discard implements [blockdev.Device].
func (d *device) Discard(off, n int64) error { return d.callRange(off, n, true, d.layout.discard) }

// Evict drops the host's cached pages of the range.
func (d *device) Evict(off, n int64) error {
	return d.callRange(off, n, false, func(off, n int64) error {
		return d.layout.eachPlace(off, n, bandFile.EvictRange)
	})
}

// Resident implements [Image].
func (d *device) Resident(off, n int64) (share float64, err error) {
	err = d.callRange(off, n, false, func(off, n int64) error {
		return d.layout.eachPlace(off, n, func(f bandFile, at, part int64) error {
			s, err := f.Resident(at, part)
			share += s * float64(part) / float64(n)
			return err
		})
	})
	return min(share, 1), err
}

// callRange makes a call about a range, unless that is empty.
func (d *device) callRange(off, n int64, change bool, call func(off, n int64) error) error {
	if err := d.enterRange(off, n, change); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	if n == 0 {
		return nil
	}
	return call(off, n)
}

// Flush makes everything durable that was written before the call.
func (d *device) Flush() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	return d.flushLocked()
}

// flushLocked is Flush for callers that hold the lock, shared or exclusively.
func (d *device) flushLocked() error {
	if d.opts.ReadOnly {
		return nil
	}
	return d.layout.flush()
}

// Usage implements [Image].
func (d *device) Usage() (Usage, error) {
	if err := d.enter(); err != nil {
		return Usage{}, err
	}
	defer d.mu.RUnlock()
	return d.layout.usage()
}

// Compact refuses: formats that can be compacted replace it.
func (d *device) Compact(func(off, n int64) bool) (reclaimed int64, err error) {
	return 0, &UnsupportedError{Path: d.path, Found: d.layout.Format(), Doing: "compacting"}
}

// Resize implements [Image].
func (d *device) Resize(newSize int64) error {
	if err := d.lockAlone("resizing"); err != nil {
		return err
	}
	defer d.mu.Unlock()
	err := image.CheckSize(newSize)
	if err == nil {
		err = d.layout.resize(newSize)
	}
	if err != nil {
		return fmt.Errorf("resizing %q: %w", d.path, err)
	}
	d.size = newSize
	return nil
}

// Close implements [Image].
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("closing %q: %w", d.path, fs.ErrClosed)
	}
	d.closed = true
	return d.layout.close()
}

// Size implements [blockdev.Device].
func (d *device) Size() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.size
}

// BandSize implements [Image].
func (d *device) BandSize() int64 { return d.chunk }

// locate returns the chunk of off, the offset in it, and how many of n bytes
// lie in it.
func (d *device) locate(off, n int64) (i, in, part int64) {
	i, in = off/d.chunk, off%d.chunk
	return i, in, min(n, d.chunk-in)
}

// capacity is how many bytes of the device chunk i contains.
func (d *device) capacity(i int64) int64 { return chunkCapacity(d.size, d.chunk, i) }

// chunkCapacity is how many bytes of a device of size bytes chunk i contains:
// fewer than a chunk at the end, 0 after it.
func chunkCapacity(size, chunk, i int64) int64 {
	if i < 0 || i >= ceil(size, chunk) {
		return 0
	}
	return min(chunk, size-i*chunk)
}

// readClipped reads from a content of size bytes. What p has after its end is
// not read, which is io.EOF.
func readClipped(p []byte, off, size int64, read func(p []byte, off int64) (int, error)) (n int, err error) {
	if off < 0 {
		return 0, blockdev.CheckRange(off, 0, size)
	}
	n = int(min(int64(len(p)), max(size-off, 0)))
	part := p[:n]
	if n > 0 {
		n, err = read(part, off)
	}
	if err == nil && len(part) < len(p) {
		err = io.EOF
	}
	return n, err
}

// stickyError keeps the first error of a flush. The kernel reports a lost write
// once and then forgets it: a later flush that succeeds does not mean that the
// earlier data is on the disk.
type stickyError struct{ first atomic.Pointer[error] }

// get returns the first error, or nil.
func (s *stickyError) get() error {
	if err := s.first.Load(); err != nil {
		return fmt.Errorf("flushing after an earlier flush failed: %w", *err)
	}
	return nil
}

// set keeps err if it is the first, and returns it.
func (s *stickyError) set(err error) error {
	s.first.CompareAndSwap(nil, &err)
	return err
}

// fileDevice is a device in one file.
type fileDevice struct {
	device
	f store
}

// Cache implements [Image].
func (d *fileDevice) Cache() hostio.CacheMode { return d.f.Cache() }

// usage counts the file.
func (d *fileDevice) usage() (u Usage, err error) {
	if err := d.f.Check(); err != nil {
		return u, err
	}
	st, err := d.f.Stat()
	if err == nil {
		u.Add(st)
	}
	return u, err
}

// close flushes the file, of a device that is written to, and closes it.
func (d *fileDevice) close() error { return errors.Join(d.flushLocked(), d.f.Close()) }
