package container

import (
	"errors"
	"fmt"
	"io/fs"

	"dmgbench/internal/image"
)

// Resize puts the size into both property lists and keeps what else is in them; see [Image]. What an earlier, larger
// size left beyond the end goes before a larger size can show it, and after a
// smaller size has hidden it, so that a crash shows neither.
func (b *bundle) Resize(newSize int64) error {
	b.Lock()
	defer b.Unlock()
	if b.closed {
		return fmt.Errorf("resizing %q: %w", b.path, fs.ErrClosed)
	}
	next := b.info
	next.size = newSize
	if err := errors.Join(b.writable(), image.CheckSize(newSize)); err != nil {
		return fmt.Errorf("resizing %q: %w", b.path, err)
	}
	if n := next.bandCount(); n > maxBands {
		return fmt.Errorf("resizing %q: %d bands, more than %d", b.path, n, int64(maxBands))
	}
	list, err := next.onto(b.list)
	if err != nil {
		return fmt.Errorf("resizing %q: %w", b.path, err)
	}
	if err := b.check(); err != nil {
		return err
	}
	if newSize > b.info.size {
		// Durable first: the larger size must not outlive the deletions.
		if err := errors.Join(b.trimBeyond(), b.flush()); err != nil {
			return err
		}
	}
	for _, name := range []string{"Info.plist", "Info.bckup"} {
		if err := b.dir.WriteFileAtomic(name, list, b.perm()); err != nil {
			return err
		}
	}
	b.info.size, b.list = newSize, list
	if err := b.trimBeyond(); err != nil {
		return err
	}
	return b.flush()
}

// trimBeyond deletes bands behind the size and cuts the one across it.
func (b *bundle) trimBeyond() error {
	list, err := listBands(b.bands)
	if err != nil {
		return err
	}
	for _, i := range list {
		capacity := b.info.capacity(i)
		if capacity == b.info.bandSize {
			continue
		}
		if err := b.band(i).fit(b, capacity); err != nil {
			return err
		}
	}
	return nil
}

func (bd *band) fit(b *bundle, capacity int64) error {
	bd.mu.Lock()
	defer bd.mu.Unlock()
	if capacity == 0 {
		return bd.unlinkLocked(b)
	}
	if err := bd.loadLocked(b, false); err != nil || bd.missing {
		return err
	}
	st, err := bd.f.Stat()
	if err != nil || st.Size <= capacity {
		return err
	}
	b.mark(bd)
	if capacity, err = bd.clearEdge(b, capacity); err != nil {
		return err
	}
	return bd.f.Truncate(capacity)
}
