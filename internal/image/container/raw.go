package container

import (
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/system/hostio"
)

// raw is a UDRW or UDTO image: the sectors of the device and no more.
type raw struct{ fileDevice }

func init() {
	drivers[UDRW] = driver{create: createRaw, open: func(f store, c probeResult, o OpenOptions) (Image, error) {
		r := &raw{fileDevice{device: device{path: f.Path(), opts: o, size: c.size}, f: f}}
		r.layout = r
		return r, nil
	}}
}

// createRaw writes every block of an encrypted image, as Apple's tools do: a
// block that was never written decrypts to random bytes in other readers.
func createRaw(dir *hostio.Dir, name string, s Spec) error {
	return s.Encryption.createFile(dir, name, s.Size, func(f store) error { return fill(f, 0, s.Size) })
}

// Format implements [Image].
func (r *raw) Format() string { return UDRW }

// readAt implements layout.
func (r *raw) readAt(p []byte, off int64) (int, error) {
	n, err := r.f.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		// The file was cut by another program: zeros would be invented data.
		err = fmt.Errorf("reading %q: file ends at %d of %d: %w", r.path, off+int64(n), r.size, ErrCorrupt)
	}
	return n, err
}

// writeAt implements layout.
func (r *raw) writeAt(p []byte, off int64, pad int) (int, error) { return r.f.WritePadded(p, off, pad) }

// discard implements layout.
func (r *raw) discard(off, n int64) error { return r.f.PunchHole(off, n) }

// eachPlace implements layout.
func (r *raw) eachPlace(off, n int64, do func(f bandFile, at, n int64) error) error {
	return do(r.f, off, n)
}

// flush implements layout.
func (r *raw) flush() error {
	if err := r.failed.get(); err != nil {
		return err
	}
	if _, err := r.f.Sync(r.opts.sync()); err != nil {
		return r.failed.set(err)
	}
	return r.f.Check()
}

// resize implements layout. New space is allocated in full.
func (r *raw) resize(size int64) (err error) {
	if err := r.f.Check(); err != nil {
		return err
	}
	if size < r.size {
		err = r.f.Truncate(size)
	} else if err = checkEncryptedSize(r.f, size); err == nil {
		if err = fill(r.f, r.size, size-r.size); err != nil {
			// Back to the old length: a probe would take a half-grown file for an
			// image of a size in between.
			err = errors.Join(err, r.f.Truncate(r.size))
		}
	}
	if err != nil {
		return err
	}
	r.size = size
	return r.flush()
}
