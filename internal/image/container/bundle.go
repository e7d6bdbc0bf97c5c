package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/system/hostio"
)

// newBundle makes a bundle that has no files open.
func newBundle(parent *hostio.Dir, name string, c probeResult, o OpenOptions) *bundle {
	b := &bundle{parent: parent, name: name, table: map[int64]*band{}, open: allBands}
	b.path, b.opts, b.layout = filepath.Join(parent.Path(), name), o, b
	b.cacheMode.Store(cmp.Or(o.Cache, hostio.CacheBuffered)) // until a band is open
	b.setContents(c)
	return b
}

// setContents takes over the result of a probe.
func (b *bundle) setContents(c probeResult) {
	b.chunk, b.size, b.plist, b.backup = c.info.BandSize, c.info.Size, c.plist, c.backup
}

// openBundle opens the bundle, which a probe found to have these contents.
func openBundle(parent *hostio.Dir, name string, c probeResult, o OpenOptions) (*bundle, error) {
	b := newBundle(parent, name, c, o)
	err := b.openFolders(c.encryption)
	if err == nil && c.encryption != "" {
		var h *crypt.Header
		if h, err = readHeader(b.dir, ".", c); err == nil {
			b.encrypter, err = c.unlock(h, o)
		}
		if err == nil {
			blocks := b.chunk / b.encrypter.block
			if b.chunk%b.encrypter.block != 0 || blocks > math.MaxUint32 {
				found := fmt.Sprintf("%s: bands of %d bytes, blocks of %d", c.encryption, b.chunk, b.encrypter.block)
				err = &UnsupportedError{Path: b.path, Doing: "opening", Found: found}
			}
			b.encrypter.cipher.KeepIVs(uint32(blocks))
		}
	}
	b.opts.Passphrase, b.opts.Keys = nil, nil
	if err != nil {
		return nil, errors.Join(err, b.release())
	}
	return b, nil
}

// openFolders opens the folders and takes the locks of the options. The
// property list is read again under the locks: a resize may have come between
// probe and lock.
func (b *bundle) openFolders(encryption string) (err error) {
	if b.dir, err = b.parent.Sub(b.name); err != nil {
		return err
	}
	b.opened = append(b.opened, b.dir)
	if b.bands, err = b.dir.Sub("bands"); err != nil {
		return err
	}
	b.opened = append(b.opened, b.bands)
	if b.opts.ReadOnly && !b.opts.Hold {
		return nil
	}
	// A writer makes missing files: a change of the passphrase replaces the
	// token, but never the lock, which older bundles lack.
	write := !b.opts.ReadOnly
	for _, name := range []string{"token", "lock"} {
		f, err := b.dir.Open(name, hostio.OpenOptions{Write: write, Create: write})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			b.opened = append(b.opened, f)
			err = lock(f, write)
		}
		if err != nil {
			return err
		}
	}
	c, err := probeBundle(b.dir)
	if err != nil {
		return err
	}
	if c.unsupported != "" || c.encryption != encryption || c.info.Version != 1 && !b.opts.ReadOnly {
		return fmt.Errorf("opening %q: %w", b.path, hostio.ErrReplaced)
	}
	b.setContents(c)
	return nil
}

// release closes everything that is open.
func (b *bundle) release() error {
	b.open.forget(b)
	var errs []error
	for _, bd := range b.table {
		if bd.f != nil {
			errs = append(errs, bd.f.Close())
			bd.f = nil
		}
	}
	for _, f := range b.opened {
		errs = append(errs, f.Close())
	}
	if b.encrypter != nil {
		b.encrypter.cipher.Wipe()
	}
	return errors.Join(errs...)
}

// check returns hostio.ErrReplaced when another file has replaced the bundle
// since it was opened.
func (b *bundle) check() error {
	return cmp.Or(b.dir.Verify(b.parent, b.name), b.bands.Verify(b.dir, "bands"))
}

// Warnings implements [Warner].
func (b *bundle) Warnings() []string {
	if b.backup {
		return []string{"Info.plist is missing or unreadable, Info.bckup was used"}
	}
	return nil
}

// Format implements [Image].
func (b *bundle) Format() string { return UDSB }

// Cache implements [Image].
func (b *bundle) Cache() hostio.CacheMode { return b.cacheMode.Load().(hostio.CacheMode) }

// PreferredExtent is the band size: two writers in one band share its inode.
func (b *bundle) PreferredExtent() int64 { return b.chunk }

// band returns the state of band i, which may not exist on the host.
func (b *bundle) band(i int64) *band {
	b.tableMu.RLock()
	bd := b.table[i]
	b.tableMu.RUnlock()
	if bd != nil {
		return bd
	}
	b.tableMu.Lock()
	defer b.tableMu.Unlock()
	if bd = b.table[i]; bd == nil {
		bd = &band{index: i}
		b.table[i] = bd
	}
	return bd
}

// readAt implements layout.
func (b *bundle) readAt(p []byte, off int64) (int, error) { return b.transfer(p, off, 0, (*band).read) }

// writeAt implements layout.
func (b *bundle) writeAt(p []byte, off int64, pad int) (int, error) {
	return b.transfer(p, off, pad, (*band).write)
}

// transfer moves p at off band by band, with pad zeros after the last byte.
func (b *bundle) transfer(p []byte, off int64, pad int,
	move func(bd *band, b *bundle, p []byte, in int64, pad int) (int, error)) (int, error) {
	first, in, n := b.locate(off, int64(len(p)))
	if n == int64(len(p)) {
		return move(b.band(first), b, p, in, pad)
	}
	helpers := 0
	if len(p) >= minParallel {
		helpers = min(ioHelpers, b.open.limit/8) // each helper may keep one band open in addition to the limit
	}
	return inPieces(helpers, p, off, pad, (first+1)*b.chunk, b.chunk, func(p []byte, off int64, pad int) (int, error) {
		i, in, _ := b.locate(off, int64(len(p)))
		return move(b.band(i), b, p, in, pad)
	})
}

// eachBand calls do for the parts of n bytes from off in each band.
func (b *bundle) eachBand(off, n int64, do func(bd *band, in, n int64) error) (err error) {
	for n > 0 && err == nil {
		i, in, part := b.locate(off, n)
		err = do(b.band(i), in, part)
		off, n = off+part, n-part
	}
	return err
}

// discard deletes bands that are entirely in the range, and punches or cuts
// others.
func (b *bundle) discard(off, n int64) error {
	return b.eachBand(off, n, func(bd *band, in, n int64) error { return bd.discard(b, in, n, b.capacity(bd.index)) })
}

// eachPlace implements layout: bands that are missing have none.
func (b *bundle) eachPlace(off, n int64, do func(f bandFile, at, n int64) error) error {
	return b.eachBand(off, n, func(bd *band, in, n int64) error {
		return bd.ifExists(b, func(f bandFile) error { return do(f, in, n) })
	})
}

// flushWorkers is how many bands are synced at once: the journal of the host's
// file system merges what arrives together.
var flushWorkers = max(4, 2*runtime.GOMAXPROCS(0))

// flush syncs the bands written since the last flush, in parallel, and then the
// folder that lists them. Flushes run at the same time, and each returns after
// those that started before it: they may have taken bands from the list that
// its caller wrote.
func (b *bundle) flush() error {
	if err := b.failed.get(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	b.dirtyMu.Lock()
	dirty, before, entries := b.dirty, b.flushed, b.entries.Swap(false)
	b.dirty, b.flushed = nil, done
	b.dirtyMu.Unlock()
	err := inParallel(flushWorkers, int64(len(dirty)), func(i int64) error { return dirty[i].flush(b) })
	if err == nil && entries {
		err = b.bands.Sync()
	}
	if err != nil {
		b.failed.set(err)
	}
	if before != nil {
		<-before
	}
	// Writes of the caller that another flush had taken may be lost.
	return cmp.Or(err, b.failed.get(), b.check())
}

// close implements layout. Bands that end inside a block are lengthened before
// the last flush, unless an earlier one failed.
func (b *bundle) close() error {
	err := b.failed.get()
	for _, bd := range b.table {
		if err == nil && bd.unaligned.Load() {
			err = bd.align(b)
		}
	}
	return errors.Join(err, b.flushLocked(), b.release())
}

// listBands returns the numbers of the bands on the host, in order. Other names
// are left out; Verify reports them. Case does not matter: a file system
// without case may list a band by another name than it is opened by.
func listBands(bands *hostio.Dir) ([]int64, error) {
	names, err := bands.ReadDir(".")
	if err != nil {
		return nil, err
	}
	list := make([]int64, 0, len(names))
	for _, e := range names {
		if i, ok := files.ParseBand(strings.ToLower(e.Name())); ok {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Compact deletes bands; see [Image].
func (b *bundle) Compact(used func(off, n int64) bool) (reclaimed int64, err error) {
	if err := b.enterRange(0, 0, true); err != nil {
		return 0, err
	}
	defer b.mu.RUnlock()
	if err := b.check(); err != nil {
		return 0, err
	}
	list, err := listBands(b.bands)
	for _, i := range list {
		capacity := b.capacity(i)
		if used != nil && capacity > 0 && used(i*b.chunk, capacity) {
			continue
		}
		got, err := b.band(i).compact(b, used == nil && capacity > 0)
		if reclaimed += got; err != nil {
			return reclaimed, err
		}
	}
	if err == nil {
		err = b.flush()
	}
	return reclaimed, err
}

// resize puts the size into both property lists and keeps their other keys.
// What an earlier, larger size left after the end is deleted before a larger
// size can show it, and after a smaller size has hidden it, so that a crash
// shows neither.
func (b *bundle) resize(size int64) error {
	next := info{Version: 1, BandSize: b.chunk, Size: size}
	if n := ceil(size, b.chunk); n > maxBands {
		return fmt.Errorf("%d bands, more than %d", n, int64(maxBands))
	}
	plist, err := next.replaceSize(b.plist)
	if err != nil {
		return err
	}
	err = b.check()
	if err == nil && size > b.size {
		// Durable first: the larger size must not outlive the deletions.
		err = errors.Join(b.deleteAfterEnd(), b.flush())
	}
	if err == nil {
		err = b.writePlists(plist)
	}
	if err != nil {
		return err
	}
	b.size, b.plist = size, plist
	return errors.Join(b.deleteAfterEnd(), b.flush())
}

// writePlists replaces both property lists.
func (b *bundle) writePlists(text []byte) error {
	err := b.dir.WriteFileAtomic("Info.plist", text, b.perm())
	if err == nil {
		err = b.dir.WriteFileAtomic("Info.bckup", text, b.perm())
	}
	return err
}

// deleteAfterEnd deletes bands after the end of the device and cuts the one
// across it.
func (b *bundle) deleteAfterEnd() error {
	list, err := listBands(b.bands)
	for _, i := range list {
		if capacity := b.capacity(i); err == nil && capacity < b.chunk {
			err = b.band(i).discard(b, capacity, math.MaxInt64-capacity, capacity)
		}
	}
	return err
}

// usage counts all files of the bundle, not only the bands.
func (b *bundle) usage() (Usage, error) {
	if err := b.check(); err != nil {
		return Usage{}, err
	}
	return files.UsageOf(context.Background(), b.parent, b.name, b.chunk, b.size)
}

// holes implements holeMapper: everything outside of the bands is zeros. A
// bundle whose bands cannot be listed may have data everywhere.
func (b *bundle) holes() udif.Map {
	if b.enter() != nil {
		return nil
	}
	defer b.mu.RUnlock()
	list, err := listBands(b.bands)
	if err != nil {
		return nil
	}
	return &chunkList{b.size, b.chunk, list}
}
