package container

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
)

// bundle is a UDSB sparse bundle. Its bands are opened when first used. A
// transfer holds the gate and its band's lock shared, so that no transfer
// waits for another; only what changes a band's existence (first write,
// discard, descriptor recycling) takes that one band's lock alone.
type bundle struct {
	gate
	parent *hostio.Dir
	name   string
	path   string
	opts   OpenOptions
	dir    *hostio.Dir
	bands  *hostio.Dir // nil: none, of a bundle that is only read
	locks  []*hostio.File
	info   info    // size is guarded by gate
	list   []byte  // the property list that info is of; guarded by gate
	backup bool    // info came from Info.bckup
	seal   *sealer // of an encrypted one; else nil

	tableMu sync.RWMutex
	table   map[int64]*band

	open  openSet
	cache atomic.Value // hostio.CacheMode, of the last band opened

	dirtyMu sync.Mutex
	dirty   []*band
	flights []*flight   // flushes under way
	entries atomic.Bool // bands were created or deleted since the last flush
	fate    fate
}

var (
	_ Image             = (*bundle)(nil)
	_ Warner            = (*bundle)(nil)
	_ blockdev.Geometry = (*bundle)(nil)
	_ blockdev.Padder   = (*bundle)(nil)
)

func openBundle(parent *hostio.Dir, name string, k kind, o OpenOptions) (*bundle, error) {
	b := &bundle{parent: parent, name: name, path: filepath.Join(parent.Path(), name), opts: o, info: k.info, list: k.list, backup: k.backup,
		table: map[int64]*band{}}
	b.open.limit = maxOpenBands
	err := b.begin(k.encrypted)
	if err == nil && k.encrypted != "" {
		err = b.unlock(k.encrypted)
	}
	b.opts.Passphrase, b.opts.Keys = nil, nil
	if err != nil {
		return nil, errors.Join(err, b.release())
	}
	return b, nil
}

// begin opens the folders and takes the locks. The property list is read
// again under the lock: a resize may have come between probe and lock.
func (b *bundle) begin(encrypted string) (err error) {
	if b.dir, err = b.parent.Sub(b.name); err != nil {
		return err
	}
	if err := b.ensureBands(); err != nil {
		return err
	}
	b.bands, err = b.dir.Sub("bands")
	if err != nil && !(b.opts.ReadOnly && errors.Is(err, fs.ErrNotExist)) { // without bands it is all zeros
		return err
	}
	take := b.take
	if b.opts.ReadOnly {
		take = b.hold
	}
	if err := take(); err != nil {
		return err
	}
	if len(b.locks) > 0 {
		if err := b.again(encrypted); err != nil {
			return err
		}
	}
	return b.learnCache()
}

// take takes the writer's locks.
func (b *bundle) take() error {
	for _, name := range []string{"token", "lock"} {
		f, err := b.dir.Open(name, hostio.OpenOptions{Write: true, Create: name == "token"})
		if name == "lock" && errors.Is(err, fs.ErrNotExist) {
			continue // older bundles have none
		}
		if err != nil {
			return err
		}
		b.locks = append(b.locks, f)
		if err := b.lock(f, name); err != nil {
			return err
		}
	}
	return nil
}

// again reads the property list under the lock.
func (b *bundle) again(encrypted string) error {
	k, err := probeBundle(b.dir)
	if err != nil {
		return err
	}
	if k.refused != "" || k.encrypted != encrypted || k.info.version != 1 && !b.opts.ReadOnly {
		return fmt.Errorf("opening %q: %w", b.path, hostio.ErrReplaced)
	}
	b.info, b.list, b.backup = k.info, k.list, k.backup
	return nil
}

// hold keeps writers away from a bundle that is read, if that is asked for.
func (b *bundle) hold() error {
	if !b.opts.Hold {
		return nil
	}
	for _, name := range []string{"token", "lock"} {
		f, err := b.dir.Open(name, hostio.OpenOptions{})
		if errors.Is(err, fs.ErrNotExist) { // a writer makes the token, older bundles have no lock
			continue
		}
		if err != nil {
			return err
		}
		b.locks = append(b.locks, f)
		if err := hold(f); err != nil {
			return err
		}
	}
	return nil
}

// lock takes the lock of a file of the bundle. A change of the passphrase puts
// another token in its place, whose lock nobody would have.
func (b *bundle) lock(f *hostio.File, name string) error {
	if err := lock(f); err != nil {
		return err
	}
	held, err := f.Stat()
	if err != nil {
		return err
	}
	fi, err := b.dir.Lstat(name)
	if err != nil || !held.Same(hostio.StatOf(fi)) {
		return fmt.Errorf("opening %q for writing: %q was replaced: %w", b.path, name, ErrInUse)
	}
	return nil
}

// ensureBands makes the bands folder where tools left it out of a new bundle.
func (b *bundle) ensureBands() error {
	if b.opts.ReadOnly {
		return nil
	}
	_, err := b.dir.Lstat("bands")
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.dir.Mkdir("bands"); err != nil {
		return err
	}
	return b.dir.Sync() // flushes look at the bands, no longer at their folder
}

// learnCache finds the achievable cache mode before the first band is opened.
func (b *bundle) learnCache() error {
	f, err := b.dir.Open("Info.plist", hostio.OpenOptions{Cache: b.opts.Cache})
	if errors.Is(err, fs.ErrNotExist) {
		f, err = b.dir.Open("Info.bckup", hostio.OpenOptions{Cache: b.opts.Cache})
	}
	if err != nil {
		return err
	}
	b.cache.Store(f.Cache())
	return f.Close()
}

func (b *bundle) release() error {
	var errs []error
	for _, bd := range b.table {
		if bd.f != nil {
			errs = append(errs, bd.f.Close())
			bd.f = nil
		}
	}
	for _, f := range b.locks {
		errs = append(errs, f.Close())
	}
	for _, d := range []*hostio.Dir{b.bands, b.dir} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	if b.seal != nil {
		b.seal.wipe()
	}
	return errors.Join(errs...)
}

func (b *bundle) enter() error {
	b.RLock()
	if b.closed {
		b.RUnlock()
		return fmt.Errorf("using %q: %w", b.path, fs.ErrClosed)
	}
	return nil
}

func (b *bundle) writable() error {
	if b.opts.ReadOnly {
		return fmt.Errorf("changing %q: %w", b.path, ErrReadOnly)
	}
	return nil
}

// change begins a call that changes n bytes from off.
func (b *bundle) change(off, n int64) error {
	if err := b.enter(); err != nil {
		return err
	}
	err := b.writable()
	if err == nil {
		err = blockdev.CheckRange(off, n, b.info.size)
	}
	if err != nil {
		b.RUnlock()
	}
	return err
}

func (b *bundle) ReadAt(p []byte, off int64) (int, error) {
	if err := b.enter(); err != nil {
		return 0, err
	}
	defer b.RUnlock()
	p, cut, err := clip(p, off, b.info.size)
	if err != nil {
		return 0, err
	}
	n, err := b.spanning(p, off, func(bd *band, p []byte, in int64) (int, error) { return bd.read(b, p, in) })
	return eof(cut, n, err)
}

func (b *bundle) WriteAt(p []byte, off int64) (int, error) {
	if err := b.change(off, int64(len(p))); err != nil {
		return 0, err
	}
	defer b.RUnlock()
	return b.spanning(p, off, func(bd *band, p []byte, in int64) (int, error) { return bd.write(b, p, in, 0) })
}

// locate returns the band of off, the offset in it, and how many of n bytes
// lie in it.
func (b *bundle) locate(off, n int64) (i, in, part int64) {
	i, in = off/b.info.bandSize, off%b.info.bandSize
	return i, in, min(n, b.info.bandSize-in)
}

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

// check finds out whether the bundle is still where it was.
func (b *bundle) check() error {
	if err := b.dir.Verify(b.parent, b.name); err != nil {
		return err
	}
	if b.bands == nil {
		return nil
	}
	return b.bands.Verify(b.dir, "bands")
}

func (b *bundle) Size() int64 {
	b.RLock()
	defer b.RUnlock()
	return b.info.size
}

// Warnings implements [Warner].
func (b *bundle) Warnings() []string {
	if b.backup {
		return []string{"Info.plist is missing or unreadable, Info.bckup was used"}
	}
	return nil
}

func (b *bundle) Cache() hostio.CacheMode { return b.cache.Load().(hostio.CacheMode) }
func (b *bundle) Format() string          { return UDSB }
func (b *bundle) BandSize() int64         { return b.info.bandSize }

// PreferredExtent is the band size: two writers in one band share its inode.
func (b *bundle) PreferredExtent() int64 { return b.info.bandSize }
