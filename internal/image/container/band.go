package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// bandAlign is what the lengths of Apple's band files are multiples of, in
// bytes.
const bandAlign = 4096

// band is the state of one band file. mu is held shared for transfers, and
// exclusively for changes of f, missing and the file's existence or length.
type band struct {
	index     int64
	mu        sync.RWMutex
	f         bandFile    // nil: not open
	missing   bool        // no such file; known only after an attempt to open it
	dirty     atomic.Bool // on the bundle's list for the next flush
	unaligned atomic.Bool // its length may be no multiple of bandAlign
}

// read fills p from in; what the file lacks is zeros.
func (bd *band) read(b *bundle, p []byte, in int64, _ int) (int, error) {
	f, err := bd.share(b, false)
	if err != nil {
		return 0, err
	}
	defer bd.mu.RUnlock()
	n := 0
	if f != nil {
		if n, err = f.ReadAt(p, in); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	clear(p[n:])
	return len(p), nil
}

// write writes p and then pad zeros into the band.
func (bd *band) write(b *bundle, p []byte, in int64, pad int) (int, error) {
	f, err := bd.share(b, true)
	if err != nil {
		return 0, err
	}
	defer bd.mu.RUnlock()
	n, err := f.WritePadded(p, in, pad)
	if (in+int64(n+pad))%bandAlign != 0 {
		bd.unaligned.Store(true)
	}
	// After the transfer, so that a flush in between does not remove the mark
	// without having covered the data.
	b.markDirty(bd)
	return n, err
}

// share returns the open file with bd.mu held shared, or nil for a band that is
// missing and not to be made. After an error the lock is not held.
func (bd *band) share(b *bundle, create bool) (bandFile, error) {
	for {
		bd.mu.RLock()
		if bd.f != nil {
			return bd.f, nil
		}
		if bd.missing && !create {
			return nil, nil
		}
		bd.mu.RUnlock()
		bd.mu.Lock()
		err := bd.openLocked(b, create)
		bd.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// openLocked opens the band file, or makes it, or finds that it is missing.
func (bd *band) openLocked(b *bundle, create bool) error {
	if bd.f != nil || bd.missing && !create {
		return nil
	}
	o := hostio.OpenOptions{Write: !b.opts.ReadOnly, Cache: b.opts.Cache}
	if bd.missing {
		o.Create, o.Exclusive, o.Perm = true, true, b.perm()
	}
	f, err := b.bands.Open(files.BandName(bd.index), o)
	for try := 0; try < 100 && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)); try++ {
		if !b.open.halve() {
			time.Sleep(10 * time.Millisecond) // until a transfer ends: all bands that are open are in one
		}
		o.Exclusive = false // a file that needs two descriptors may have been made with the first
		f, err = b.bands.Open(files.BandName(bd.index), o)
	}
	if errors.Is(err, fs.ErrNotExist) && !bd.missing {
		bd.missing = true
		return bd.openLocked(b, create)
	}
	if err != nil {
		return err
	}
	if bd.missing {
		bd.missing = false
		b.entries.Store(true)
		b.markDirty(bd)
	}
	bd.f = f
	if b.encrypter != nil {
		bd.f = encryptedBand{f, b.encrypter, bd.index}
	}
	b.cacheMode.Store(f.Cache())
	b.open.add(b, bd)
	return nil
}

// statLocked opens the file, unless the band is missing, and returns its state.
func (bd *band) statLocked(b *bundle) (st hostio.Stat, missing bool, err error) {
	if err := bd.openLocked(b, false); err != nil || bd.missing {
		return st, true, err
	}
	st, err = bd.f.Stat()
	return st, false, err
}

// deleteLocked deletes the band file.
func (bd *band) deleteLocked(b *bundle) error {
	err := b.bands.Remove(files.BandName(bd.index))
	if err == nil {
		b.entries.Store(true)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f := bd.f
	if bd.f, bd.missing = nil, true; f == nil {
		return nil
	}
	return f.Close()
}

// discard makes n bytes from in read as zeros; capacity is the band's share of
// the device. A file that ends in the range is cut.
func (bd *band) discard(b *bundle, in, n, capacity int64) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	if in == 0 && n >= capacity {
		if bd.missing {
			return nil
		}
		return bd.deleteLocked(b)
	}
	st, missing, err := bd.statLocked(b)
	switch {
	case missing || err != nil || in >= st.Size:
		return err
	case in+n < st.Size:
		b.markDirty(bd)
		return bd.f.PunchHole(in, n)
	case in == 0:
		return bd.deleteLocked(b)
	}
	b.markDirty(bd)
	bd.unaligned.Store(true)
	return bd.f.Truncate(in)
}

// align lengthens a band that ends inside a block, as Apple's bands never do.
// Until Close it may: a truncation at each flush would be measured as a part of
// the write.
func (bd *band) align(b *bundle) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	st, missing, err := bd.statLocked(b)
	aligned := min(units.RoundUp(st.Size, bandAlign), b.capacity(bd.index))
	if missing || err != nil || aligned <= st.Size {
		return err
	}
	b.markDirty(bd)
	return bd.f.Truncate(aligned)
}

// compact deletes the band and returns the bytes that it took; with onlyZeros
// only if its content is zeros. The content is read for that: some hosts,
// network shares above all, report of every file that it takes no blocks.
func (bd *band) compact(b *bundle, onlyZeros bool) (int64, error) {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	st, missing, err := bd.statLocked(b)
	if missing || err != nil {
		return 0, err
	}
	if onlyZeros {
		zero, err := readsAsZeros(bd.f, st.Size)
		if err != nil || !zero {
			return 0, err
		}
	}
	return st.Allocated, bd.deleteLocked(b)
}

// ifExists calls do with the open file, unless the band is missing.
func (bd *band) ifExists(b *bundle, do func(f bandFile) error) error {
	f, err := bd.share(b, false)
	if err != nil {
		return err
	}
	defer bd.mu.RUnlock()
	if f == nil {
		return nil
	}
	return do(f)
}

// flush makes the band durable. The mark is removed first, so that a write
// during the sync marks the band again. The folder's flush covers a band that
// was deleted since.
func (bd *band) flush(b *bundle) error {
	bd.dirty.Store(false)
	return bd.ifExists(b, func(f bandFile) error {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if st.Links == 0 {
			return fmt.Errorf("flushing %q: %w", f.Path(), hostio.ErrReplaced)
		}
		_, err = f.Sync(b.opts.sync())
		return err
	})
}

// maxOpenBands bounds the band files that are open at once, and spareFiles are the descriptors that the rest of the
// process may need meanwhile.
const (
	maxOpenBands = 512
	spareFiles   = 64
)

// bandLimit is how many bands may be open in a process that may have so many descriptors; in direct mode a band has
// two.
func bandLimit(descriptors int) int { return max(4, min(maxOpenBands, (descriptors-spareFiles)/2)) }

// openBands is the bands with an open file. When there are more than the limit,
// those that were opened first and are in no transfer are closed.
type openBands struct {
	limit int
	mu    sync.Mutex
	list  []openBand // in the order of opening; some may be closed again
}

// openBand is a band and its bundle.
type openBand struct {
	*band
	of *bundle
}

// allBands are those of all bundles of the process, which share its descriptors.
var allBands = &openBands{limit: bandLimit(hostio.MaxFiles())}

// add is called with bd.mu held; it never waits for another band's lock. Bands
// in use are passed over: the limit may be exceeded by as many as there are
// transfers. No data is lost with a descriptor: the band stays on the list for
// the next flush, and fsync through a new descriptor covers the same file.
func (s *openBands) add(b *bundle, bd *band) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeOldest(s.limit - 1)
	s.list = append(s.list, openBand{bd, b})
}

// halve makes room when the host has no more descriptors, and reports whether it did.
func (s *openBands) halve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.list)
	if before == 0 {
		return false
	}
	s.limit = max(before/2, 4)
	s.closeOldest(before / 2)
	return len(s.list) < before
}

// closeOldest closes bands that are in no transfer until n are left. A failure concerns no present transfer, but may
// mean lost writes: the next flush of the bundle reports it.
func (s *openBands) closeOldest(n int) {
	for k := 0; k < len(s.list) && len(s.list) > n; {
		oldest := s.list[k]
		if !oldest.mu.TryLock() {
			k++
			continue
		}
		if oldest.f != nil {
			if err := oldest.f.Close(); err != nil {
				oldest.of.failed.set(err)
			}
			oldest.f = nil
		}
		oldest.mu.Unlock()
		s.list = slices.Delete(s.list, k, k+1)
	}
}

// forget leaves the bands of a bundle to the caller.
func (s *openBands) forget(b *bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o openBand) bool { return o.of == b })
}

// bundle is a UDSB sparse bundle: the device in band files, which are opened at
// their first use. A transfer holds the device's lock and its band's lock
// shared, so that no transfer waits for another. A call that changes whether a
// band exists or is open (first write, discard, closing of spare descriptors)
// takes that band's lock exclusively.
type bundle struct {
	device
	parent    *hostio.Dir
	name      string
	dir       *hostio.Dir
	bands     *hostio.Dir
	opened    []io.Closer // folders and locks
	plist     []byte      // the property list in use; guarded by device.mu
	backup    bool        // plist is that of Info.bckup
	encrypter *encrypter  // nil for an unencrypted bundle

	tableMu sync.RWMutex
	table   map[int64]*band

	open      *openBands
	cacheMode atomic.Value // hostio.CacheMode, of the band opened last

	dirtyMu sync.Mutex
	dirty   []*band       // what the next flush syncs
	flushed chan struct{} // closed when the flush that started last has ended; nil without one
	entries atomic.Bool   // bands were created or deleted since the last flush
}

// perm are the permissions of the bundle's new files.
func (b *bundle) perm() fs.FileMode {
	if b.encrypter != nil {
		return encryptedPerm
	}
	return 0o644
}

// markDirty puts the band on the list for the next flush.
func (b *bundle) markDirty(bd *band) {
	if bd.dirty.Load() || !bd.dirty.CompareAndSwap(false, true) {
		return
	}
	b.dirtyMu.Lock()
	b.dirty = append(b.dirty, bd)
	b.dirtyMu.Unlock()
}
