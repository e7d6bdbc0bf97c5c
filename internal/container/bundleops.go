package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
)

// Discard deletes bands that lie wholly in the range and punches or cuts
// those that lie in it partly.
func (b *bundle) Discard(off, n int64) error {
	if err := b.change(off, n); err != nil {
		return err
	}
	defer b.RUnlock()
	for n > 0 {
		i, in, part := b.locate(off, n)
		if err := b.band(i).discard(b, in, part, b.info.capacity(i)); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// discard makes n bytes from in read as zeros; capacity is the band's share
// of the device.
func (bd *band) discard(b *bundle, in, n, capacity int64) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	if in == 0 && n >= capacity {
		if bd.missing {
			return nil
		}
		return bd.unlinkLocked(b)
	}
	if err := bd.loadLocked(b, false); err != nil || bd.missing {
		return err
	}
	st, err := bd.f.Stat()
	if err != nil || in >= st.Size {
		return err
	}
	if in+n < st.Size {
		b.mark(bd)
		return bd.punchLocked(b, in, n)
	}
	if in == 0 {
		return bd.unlinkLocked(b)
	}
	b.mark(bd)
	return bd.cutLocked(b, in, capacity)
}

// cutLocked ends the file at in, rounded up to a block of zeros.
func (bd *band) cutLocked(b *bundle, in, capacity int64) error {
	in, err := bd.clearEdge(b, in)
	if err != nil {
		return err
	}
	if err := bd.f.Truncate(in); err != nil {
		return err
	}
	if whole := min(roundUp(in, bandBlock), capacity); whole > in {
		return bd.f.Truncate(whole)
	}
	return nil
}

func roundUp(v, unit int64) int64 { return (v + unit - 1) / unit * unit }

// flushWorkers is how many bands are synced at once: the journal of the
// host's file system joins what arrives together.
var flushWorkers = max(4, 2*runtime.GOMAXPROCS(0))

// Flush syncs the bands written since the last flush, in parallel, and then
// the folder that lists them.
func (b *bundle) Flush() error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.RUnlock()
	return b.flush()
}

func (b *bundle) flush() error {
	if b.opts.ReadOnly {
		return nil
	}
	if err := b.fate.get(); err != nil {
		return err
	}
	f := b.takeDirty()
	if err := f.run(b); err != nil {
		b.fate.set(err)
		b.landed(f)
		return err
	}
	b.landed(f)
	for _, other := range f.before {
		<-other.done
	}
	// What another flush had taken of the caller's writes may be lost.
	if err := b.fate.get(); err != nil {
		return err
	}
	return b.check()
}

// flight is one flush under way, with what it took off the lists of what is
// to be flushed. Whoever calls Flush meanwhile waits for it: it may have taken
// what the caller wrote.
type flight struct {
	dirty   []*band
	entries bool
	before  []*flight
	done    chan struct{}
}

func (b *bundle) takeDirty() *flight {
	f := &flight{done: make(chan struct{})}
	b.dirtyMu.Lock()
	defer b.dirtyMu.Unlock()
	f.dirty, b.dirty = b.dirty, nil
	f.entries = b.entries.Swap(false)
	f.before = slices.Clone(b.flights)
	b.flights = append(b.flights, f)
	return f
}

func (f *flight) run(b *bundle) error {
	err := inParallel(flushWorkers, int64(len(f.dirty)), func(i int64) error {
		return f.dirty[i].flush(b)
	})
	if err == nil && f.entries {
		err = b.bands.Sync()
	}
	return err
}

func (b *bundle) landed(f *flight) {
	b.dirtyMu.Lock()
	defer b.dirtyMu.Unlock()
	b.flights = slices.DeleteFunc(b.flights, func(o *flight) bool { return o == f })
	close(f.done)
}

func (bd *band) flush(b *bundle) error {
	bd.dirty.Store(false)
	f, err := bd.share(b, false)
	if err != nil {
		return err
	}
	defer bd.mu.RUnlock()
	if f == nil {
		return nil // deleted since; the folder's flush covers that
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Links == 0 {
		return fmt.Errorf("flushing %q: %w", f.Path(), hostio.ErrReplaced)
	}
	_, err = f.Sync(b.opts.sync())
	return err
}

// pad lengthens a band that ends inside a block, as Apple's never do. Until
// Close it may: a truncation at each flush would be charged to the writer.
func (bd *band) pad(b *bundle) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	if err := bd.loadLocked(b, false); err != nil || bd.missing {
		return err
	}
	st, err := bd.f.Stat()
	if err != nil {
		return err
	}
	whole := min(roundUp(st.Size, bandBlock), b.info.capacity(bd.index))
	if whole <= st.Size {
		return nil
	}
	b.mark(bd)
	return bd.f.Truncate(whole)
}

// Evict drops the host's cached pages of the range.
func (b *bundle) Evict(off, n int64) error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.RUnlock()
	if err := blockdev.CheckRange(off, n, b.info.size); err != nil {
		return err
	}
	for n > 0 {
		i, in, part := b.locate(off, n)
		if err := b.band(i).evict(b, in, part); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

func (bd *band) evict(b *bundle, in, n int64) error {
	f, err := bd.share(b, false)
	if err != nil {
		return err
	}
	defer bd.mu.RUnlock()
	if f == nil {
		return nil
	}
	return f.EvictRange(in, n)
}

func (b *bundle) Close() error {
	b.Lock()
	defer b.Unlock()
	if b.closed {
		return fmt.Errorf("closing %q: %w", b.path, fs.ErrClosed)
	}
	err := b.fate.get()
	for _, bd := range b.table {
		if err == nil && bd.odd.Load() {
			err = bd.pad(b)
		}
	}
	err = errors.Join(err, b.flush())
	b.closed = true
	return errors.Join(err, b.release())
}

// listBands returns the numbers of the bands on the host, in order. Names that are
// no band numbers are left out; Verify reports them. Case does not matter: a file
// system that knows none may list a band by another name than it is opened by.
func listBands(bands *hostio.Dir) ([]int64, error) {
	names, err := bands.ReadDir(".")
	if err != nil {
		return nil, err
	}
	list := make([]int64, 0, len(names))
	for _, e := range names {
		if i, ok := bandNumber(strings.ToLower(e.Name())); ok {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// bandNumber reads a band's file name: lower-case hexadecimal without leading
// zeros.
func bandNumber(name string) (int64, bool) {
	i, err := strconv.ParseInt(name, 16, 64)
	return i, err == nil && i >= 0 && bandName(i) == name
}

// Compact deletes bands; see [Image].
func (b *bundle) Compact(used func(off, n int64) bool) (reclaimed int64, err error) {
	if err := b.change(0, 0); err != nil {
		return 0, err
	}
	defer b.RUnlock()
	if err := b.check(); err != nil {
		return 0, err
	}
	list, err := listBands(b.bands)
	if err != nil {
		return 0, err
	}
	for _, i := range list {
		capacity := b.info.capacity(i)
		if used != nil && capacity > 0 && used(i*b.info.bandSize, capacity) {
			continue
		}
		got, err := b.band(i).compact(b, used == nil && capacity > 0)
		if reclaimed += got; err != nil {
			return reclaimed, err
		}
	}
	return reclaimed, b.flush()
}

// compact deletes the band, if it is all zeros where onlyZeros is set: by what is read, since there are hosts (of network
// shares above all) that say of any file that it takes no blocks.
func (bd *band) compact(b *bundle, onlyZeros bool) (int64, error) {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	if err := bd.loadLocked(b, false); err != nil || bd.missing {
		return 0, err
	}
	st, err := bd.f.Stat()
	if err != nil {
		return 0, err
	}
	if onlyZeros {
		zero, err := allZeros(bd.plain(b), st.Size)
		if err != nil || !zero {
			return 0, err
		}
	}
	return st.Allocated, bd.unlinkLocked(b)
}

// allZeros reads a file until something else than zero comes.
func allZeros(r io.ReaderAt, size int64) (bool, error) {
	buf := make([]byte, min(size, 1<<20))
	zero := make([]byte, len(buf))
	for off := int64(0); off < size; off += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), size-off)]
		if _, err := r.ReadAt(p, off); err != nil {
			return false, err
		}
		if !bytes.Equal(p, zero[:len(p)]) {
			return false, nil
		}
	}
	return true, nil
}
