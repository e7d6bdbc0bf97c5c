package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// raw is a UDRW or UDTO image: the sectors of the device and nothing else.
type raw struct {
	gate
	path string
	opts OpenOptions
	f    store
	size int64 // guarded by gate
	fate fate
}

var (
	_ Image           = (*raw)(nil)
	_ blockdev.Padder = (*raw)(nil)
)

// enter begins a call under the shared gate; leave with r.RUnlock.
func (r *raw) enter() error {
	r.RLock()
	if r.closed {
		r.RUnlock()
		return fmt.Errorf("using %q: %w", r.path, fs.ErrClosed)
	}
	return nil
}

func (r *raw) writable() error {
	if r.opts.ReadOnly {
		return fmt.Errorf("changing %q: %w", r.path, ErrReadOnly)
	}
	return nil
}

func (r *raw) ReadAt(p []byte, off int64) (int, error) {
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.RUnlock()
	p, cut, err := clip(p, off, r.size)
	if err != nil || len(p) == 0 {
		return eof(cut, 0, err)
	}
	n, err := r.f.ReadAt(p, off)
	if errors.Is(err, io.EOF) && n < len(p) {
		// Somebody cut the file: zeros here would be an invention.
		return n, fmt.Errorf("reading %q: file ends at %d of %d: %w", r.path, off+int64(n), r.size, ErrCorrupt)
	}
	return eof(cut, n, err)
}

func (r *raw) WriteAt(p []byte, off int64) (int, error) {
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.RUnlock()
	if err := r.writable(); err != nil {
		return 0, err
	}
	if err := blockdev.CheckRange(off, int64(len(p)), r.size); err != nil {
		return 0, err
	}
	return r.f.WriteAt(p, off)
}

// WritePadded implements [blockdev.Padder].
func (r *raw) WritePadded(p []byte, off int64, pad int) (int, error) {
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.RUnlock()
	if err := r.writable(); err != nil {
		return 0, err
	}
	if err := blockdev.CheckRange(off, int64(len(p))+int64(pad), r.size); err != nil {
		return 0, err
	}
	return r.f.WritePadded(p, off, pad)
}

func (r *raw) Discard(off, n int64) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.RUnlock()
	if err := r.writable(); err != nil {
		return err
	}
	if err := blockdev.CheckRange(off, n, r.size); err != nil {
		return err
	}
	return r.f.PunchHole(off, n)
}

func (r *raw) Flush() error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.RUnlock()
	return r.flush()
}

func (r *raw) flush() error {
	if r.opts.ReadOnly {
		return nil
	}
	if err := r.fate.get(); err != nil {
		return err
	}
	if _, err := r.f.Sync(r.opts.sync()); err != nil {
		return r.fate.set(err)
	}
	return r.f.Check()
}

func (r *raw) Evict(off, n int64) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.RUnlock()
	if err := blockdev.CheckRange(off, n, r.size); err != nil || n == 0 {
		return err
	}
	return r.f.EvictRange(off, n)
}

func (r *raw) Close() error {
	r.Lock()
	defer r.Unlock()
	if r.closed {
		return fmt.Errorf("closing %q: %w", r.path, fs.ErrClosed)
	}
	err := r.flush()
	r.closed = true
	return errors.Join(err, r.f.Close())
}

func (r *raw) Usage() (Usage, error) {
	if err := r.enter(); err != nil {
		return Usage{}, err
	}
	defer r.RUnlock()
	if err := r.f.Check(); err != nil {
		return Usage{}, err
	}
	return fileUsage(r.f)
}

func (r *raw) Compact(func(off, n int64) bool) (int64, error) {
	return 0, &UnsupportedError{Path: r.path, Found: UDRW, Doing: "compacting"}
}

func (r *raw) Resize(newSize int64) error {
	r.Lock()
	defer r.Unlock()
	if r.closed {
		return fmt.Errorf("resizing %q: %w", r.path, fs.ErrClosed)
	}
	if err := errors.Join(r.writable(), image.CheckSize(newSize)); err != nil {
		return fmt.Errorf("resizing %q: %w", r.path, err)
	}
	if err := r.f.Check(); err != nil {
		return err
	}
	if newSize < r.size {
		if err := r.f.Truncate(newSize); err != nil {
			return err
		}
	} else if err := room(r.f, newSize); err != nil {
		return fmt.Errorf("resizing %q: %w", r.path, err)
	} else if err := fill(r.f, r.size, newSize-r.size); err != nil {
		// Back to the old length: a half-grown file would probe as an image
		// of some size in between.
		return errors.Join(err, r.f.Truncate(r.size))
	}
	r.size = newSize
	return r.flush()
}

func (r *raw) Size() int64 {
	r.RLock()
	defer r.RUnlock()
	return r.size
}

func (r *raw) Cache() hostio.CacheMode { return r.f.Cache() }
func (r *raw) Format() string          { return UDRW }
func (r *raw) BandSize() int64         { return 0 }
