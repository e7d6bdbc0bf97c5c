package imagetool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"dmgbench/internal/container"
	"dmgbench/internal/hostio"
)

// detached is a context for cleaning up: it does not end with the command.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// replacing lets build make an image under a temporary name beside p and renames it when
// it is complete. Without -ov an image that exists is an error before anything is made.
// What build made is deleted when it fails, and before anything is made what killed processes left.
func (c *call) replacing(p place, build func(tmp place) error) (err error) {
	if err := c.free(p); err != nil {
		return err
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	c.sweep(p.dir)
	stem := stemPrefix + hex.EncodeToString(random[:])
	release := holdStem(p.dir, stem)
	defer func() { err = errors.Join(err, release()) }()
	tmp := p
	tmp.name = stem + "-" + p.name
	if len(tmp.name) > 255-len(asideMark) { // what file systems take; the name itself is as long as it can be
		tmp.name = stem + "-"
	}
	tmp.path = p.dir.Path() + "/" + tmp.name
	defer func() {
		if err == nil {
			return
		}
		if e := container.Remove(tmp.dir, tmp.name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := build(tmp); err != nil {
		return err
	}
	return c.settle(tmp, p)
}

// free says whether the name may be used.
func (c *call) free(p place) error {
	_, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !c.has("-ov"):
		return syscall.EEXIST
	}
	if !p.unused() {
		return syscall.EBUSY
	}
	if err := container.Removable(p.dir, p.name); err != nil {
		return &refusal{words: fmt.Sprintf("File exists, and is no image that could be replaced: %q: %v", p.path, err), err: err}
	}
	return nil
}

// settle gives the finished image its name. An old image goes in the same rename, or,
// where one of the two is a folder, moves aside first.
func (c *call) settle(tmp, p place) error {
	if err := c.free(p); err != nil {
		return err
	}
	old, err := p.dir.Lstat(p.name)
	made, e := p.dir.Lstat(tmp.name)
	switch {
	case e != nil:
		return e
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !c.has("-ov"):
		return claim(tmp, p, made.IsDir())
	case err != nil, old.Mode().IsRegular() && made.Mode().IsRegular():
		return errors.Join(p.dir.Rename(tmp.name, p.name), p.dir.Sync())
	case !old.IsDir() && !old.Mode().IsRegular():
		return hostio.ErrNotRegular
	}
	aside := tmp.name + asideMark
	if err := p.dir.Rename(p.name, aside); err != nil {
		return err
	}
	if err := p.dir.Rename(tmp.name, p.name); err != nil {
		return errors.Join(err, p.dir.Rename(aside, p.name))
	}
	switch err := container.Remove(p.dir, aside); {
	case errors.Is(err, container.ErrPartlyRemoved): // which nothing brings back: the new one is all that there is
		return errors.Join(fmt.Errorf("%q is the new image; what was to go of the old one: %w", p.path, err), p.dir.Sync())
	case err != nil: // a folder with other things in it, or in use
		return errors.Join(err, p.dir.Rename(p.name, tmp.name), p.dir.Rename(aside, p.name))
	}
	return p.dir.Sync()
}

// claim gives the finished image a name that nobody has: of several who make one of the same name a single one gets it. A
// folder does not take another's place; a file would, and so its name is taken before.
func claim(tmp, p place, folder bool) error {
	if folder {
		return errors.Join(p.dir.Rename(tmp.name, p.name), p.dir.Sync())
	}
	f, err := p.dir.Open(p.name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), p.dir.Rename(tmp.name, p.name)); err != nil {
		return errors.Join(err, p.dir.Remove(p.name))
	}
	return p.dir.Sync()
}
