package hostio

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// WriteFileAtomic replaces or creates a file so that a crash at any moment
// leaves the old content or the new, never a part: it writes to a temporary
// name in the same folder, flushes, renames, and flushes the folder.
func (d *Dir) WriteFileAtomic(name string, data []byte, perm fs.FileMode) error {
	folder, base := path.Split(name)
	home := d
	if folder != "" {
		sub, err := d.Sub(path.Clean(folder))
		if err != nil {
			return err
		}
		defer sub.Close()
		home = sub
	}
	tmp := "." + base + ".tmp-" + rand.Text()[:10]
	err := home.writeSynced(tmp, data, perm)
	if err == nil {
		err = home.Rename(tmp, base)
	}
	if err != nil {
		home.root.Remove(tmp)
		return err
	}
	return home.Sync()
}

// writeSynced makes a file and flushes it.
func (d *Dir) writeSynced(name string, data []byte, perm fs.FileMode) error {
	f, err := d.Open(name, OpenOptions{Write: true, Create: true, Exclusive: true, Perm: perm})
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		_, err = f.Sync(SyncFull)
	}
	return errors.Join(err, f.Close())
}

// ReadFile reads a whole file. One of more than limit bytes is refused with
// [ErrTooLarge] before its content is read.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := d.Open(name, OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size > limit {
		return nil, d.fail("reading", name, fmt.Errorf("%w of %d bytes: it has %d", ErrTooLarge, limit, st.Size))
	}
	data := make([]byte, st.Size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}
