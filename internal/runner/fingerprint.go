package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"

	"dmgbench/internal/engine"
)

// fingerprint tells whether a container that was left at a place is still the
// one that was left: a digest of names, kinds, sizes, times of change and inodes
// of its files. The device is not in it, since a restart may number disks anew.
func fingerprint(p *place, name string) (string, error) {
	h := sha256.New()
	if err := p.describe(h, name); err != nil {
		return "", fmt.Errorf("looking at %q: %w: %w", name, engine.ErrGone, err)
	}
	return "files-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// describe writes what is known of name, and of all below it.
func (p *place) describe(w io.Writer, name string) error {
	fi, err := p.dir.Lstat(name)
	if err != nil {
		return err
	}
	size := fi.Size()
	if fi.IsDir() {
		size = 0 // of the list, which says nothing
	}
	fmt.Fprintf(w, "%q %v %d %d %d\n", name, fi.Mode().Type(), size, fi.ModTime().UnixNano(), inode(fi))
	if !fi.IsDir() {
		return nil
	}
	list, err := p.dir.ReadDir(name)
	if err != nil {
		return err
	}
	for _, f := range list {
		if err := p.describe(w, path.Join(name, f.Name())); err != nil {
			return err
		}
	}
	return nil
}
