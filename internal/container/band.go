package container

import (
	"errors"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"

	"dmgbench/internal/hostio"
)

// bandBlock is what Apple's band files end on a multiple of, in bytes.
const bandBlock = 4096

// band is what is known of one band file. mu is held shared for transfers and
// alone for changes of f, missing and the file's existence or length.
type band struct {
	index   int64
	mu      sync.RWMutex
	f       *hostio.File // nil: not open
	missing bool         // no such file; only known after a look
	dirty   atomic.Bool  // on the bundle's list of what to flush
	odd     atomic.Bool  // may end inside a block
	used    atomic.Int64 // when, on the bundle's count of uses
}

func bandName(i int64) string { return strconv.FormatInt(i, 16) }

func (bd *band) name() string { return bandName(bd.index) }

// read fills p from in; what the file does not have is zeros.
func (bd *band) read(b *bundle, p []byte, in int64) (int, error) {
	f, err := bd.share(b, false)
	if err != nil {
		return 0, err
	}
	defer bd.mu.RUnlock()
	n := 0
	if f != nil && b.seal != nil {
		return b.seal.read(bd.sealed(), p, in)
	}
	if f != nil {
		if n, err = f.ReadAt(p, in); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	clear(p[n:])
	return len(p), nil
}

// write puts p and pad zeros behind it into the band.
func (bd *band) write(b *bundle, p []byte, in int64, pad int) (int, error) {
	f, err := bd.share(b, true)
	if err != nil {
		return 0, err
	}
	defer bd.mu.RUnlock()
	n, end := 0, in
	if b.seal != nil {
		n, err = b.seal.write(bd.sealed(), p, in, pad)
		end = b.seal.up(in + int64(n+pad))
	} else {
		n, err = f.WritePadded(p, in, pad)
		if end += int64(n); n == len(p) {
			end += int64(pad)
		}
	}
	if end%bandBlock != 0 {
		bd.odd.Store(true)
	}
	// After the transfer, so that a flush in between does not take the mark
	// away without having covered the data.
	b.mark(bd)
	return n, err
}

// share returns the open file with bd.mu held shared, or nil for a band that
// is missing and not to be made. The lock is not held after an error.
func (bd *band) share(b *bundle, create bool) (*hostio.File, error) {
	for {
		bd.mu.RLock()
		if bd.f != nil {
			bd.used.Store(b.open.uses.Add(1))
			return bd.f, nil
		}
		if bd.missing && !create {
			return nil, nil
		}
		bd.mu.RUnlock()
		if err := bd.load(b, create); err != nil {
			return nil, err
		}
	}
}

// load opens the band file, or makes it, or finds that there is none.
func (bd *band) load(b *bundle, create bool) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	return bd.loadLocked(b, create)
}

func (bd *band) loadLocked(b *bundle, create bool) error {
	if bd.f != nil || bd.missing && !create {
		return nil
	}
	if b.bands == nil {
		bd.missing = true
		return nil
	}
	o := hostio.OpenOptions{Write: !b.opts.ReadOnly, Cache: b.opts.Cache}
	if bd.missing {
		o.Create, o.Exclusive, o.Perm = true, true, b.perm()
	}
	f, err := b.bands.Open(bd.name(), o)
	if errors.Is(err, fs.ErrNotExist) && !bd.missing {
		bd.missing = true
		return bd.loadLocked(b, create)
	}
	if err != nil {
		return err
	}
	if bd.missing {
		bd.missing = false
		b.entries.Store(true)
		b.mark(bd)
	}
	bd.f = f
	b.cache.Store(f.Cache())
	bd.used.Store(b.open.uses.Add(1))
	// A transfer of this band has nothing to do with another one's failure to
	// close, which may mean lost writes all the same: the next flush tells.
	if err := b.open.add(bd); err != nil {
		b.fate.set(err)
	}
	return nil
}

// unlinkLocked deletes the band file.
func (bd *band) unlinkLocked(b *bundle) error {
	err := b.bands.Remove(bd.name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		b.entries.Store(true)
	}
	bd.missing = true
	return bd.closeLocked(b)
}

func (bd *band) closeLocked(b *bundle) error {
	if bd.f == nil {
		return nil
	}
	b.open.drop(bd)
	f := bd.f
	bd.f = nil
	return f.Close()
}

// mark puts the band on the list of what the next flush has to sync.
func (b *bundle) mark(bd *band) {
	if bd.dirty.Load() || !bd.dirty.CompareAndSwap(false, true) {
		return
	}
	b.dirtyMu.Lock()
	b.dirty = append(b.dirty, bd)
	b.dirtyMu.Unlock()
}

// maxOpenBands bounds the band files open at once; in direct mode each has
// two descriptors.
const maxOpenBands = 256

// openSet is the bands with an open file. When there are too many, those
// not used for longest and in no transfer are closed.
type openSet struct {
	uses  atomic.Int64
	limit int
	mu    sync.Mutex
	set   map[*band]struct{}
}

// add is called with bd.mu held; it never waits for another band's lock.
func (s *openSet) add(bd *band) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[*band]struct{}{}
	}
	s.set[bd] = struct{}{}
	var errs error
	for len(s.set) > s.limit {
		closed, err := s.recycle(bd)
		if errs = errors.Join(errs, err); !closed {
			break
		}
	}
	return errs
}

// recycle closes one band other than keep. Bands in use are passed over: the
// limit may be exceeded by as many as there are transfers.
func (s *openSet) recycle(keep *band) (closed bool, err error) {
	for skip := int64(-1); ; {
		var oldest *band
		for bd := range s.set {
			if u := bd.used.Load(); bd != keep && u > skip && (oldest == nil || u < oldest.used.Load()) {
				oldest = bd
			}
		}
		if oldest == nil {
			return false, nil
		}
		skip = oldest.used.Load()
		if !oldest.mu.TryLock() {
			continue
		}
		// Nothing is lost with the descriptor: the band stays on the list of
		// what to flush, and fsync through a new one covers the same file.
		if oldest.f != nil {
			err = oldest.f.Close()
			oldest.f = nil
		}
		delete(s.set, oldest)
		oldest.mu.Unlock()
		return true, err
	}
}

func (s *openSet) drop(bd *band) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.set, bd)
}
