package imagetool

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/image/container"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// Temporary names of an image that is being made: the stem, followed by "-"
// with the name of the image, or by ".cdr". A lock of the same stem is held
// meanwhile, so that other processes can distinguish an image in the making
// from what a killed process has left.
//
// A process that makes x.dmg writes, in this order:
//
//	.dmgbench-0123456789abcdef.lock     the lock, held with flock(2) until the end
//	.dmgbench-0123456789abcdef-x.dmg    the new image
//	.dmgbench-0123456789abcdef-x.dmg~   the old image, only where one of the two is a folder
//
// and renames. The first half of the digits is of the boot: a lock that was
// taken on another machine is not visible here. Killed at any point it leaves
// the old image whole, under its name or with the mark "~". The next command
// that makes an image in the same folder removes the rest, see sweep; what has
// the mark is never removed, because it may be the only copy.
const (
	stemPrefix = ".dmgbench-"
	stemLength = len(stemPrefix) + 16
	lockSuffix = ".lock"
	asideMark  = "~" // ends the name of an old image that is moved aside: never ours to remove
	maxName    = 255 // bytes that file systems allow
)

// bootPrefix starts the stems of this boot; without digits where boots cannot
// be identified.
func bootPrefix() string { return fmt.Sprintf("%s%.8s", stemPrefix, host.BootID()) }

// replace calls build, which makes an image under a temporary name next to p,
// and renames it when it is complete. Without -ov an image that exists is an
// error before anything is made. What build made is deleted when it fails; what
// killed processes left is deleted first.
func (c *call) replace(p place, build func(tmp place) error) (err error) {
	if err := c.checkFree(p); err != nil {
		return err
	}
	c.sweep(p.dir)
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	stem := (bootPrefix() + hex.EncodeToString(random[:]))[:stemLength]
	release := lockStem(p.dir, stem)
	defer func() { err = errors.Join(err, release()) }()
	tmp := p.sibling(stem + "-" + p.name)
	if len(tmp.name) > maxName-len(asideMark) { // the name itself is as long as it can be
		tmp = p.sibling(stem + "-")
	}
	if err = build(tmp); err == nil {
		err = c.rename(tmp, p)
	}
	if err != nil {
		err = errors.Join(err, removeIfExists(container.Remove, tmp.dir, tmp.name))
	}
	return err
}

// removeIfExists removes a name; a missing name is ignored.
func removeIfExists(remove func(dir *hostio.Dir, name string) error, dir *hostio.Dir, name string) error {
	err := remove(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkFree returns an error if the name may not be used.
func (c *call) checkFree(p place) error {
	_, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !c.has("ov"):
		return syscall.EEXIST
	case !p.isUnused():
		return syscall.EBUSY
	}
	if err := container.CheckRemovable(p.dir, p.name); err != nil {
		words := fmt.Sprintf("File exists, and is not an image that could be replaced: %q: %v", p.path, err)
		return &refusal{words: words, err: err}
	}
	return nil
}

// rename gives the finished image its name. An old image goes in the same
// rename, or, where one of the two is a folder, moves aside first: rename(2)
// replaces files alone. If the old image cannot be removed afterwards, both get
// their old names back; if it is partly removed already, the new one stays.
func (c *call) rename(tmp, p place) error {
	if err := c.checkFree(p); err != nil {
		return err
	}
	old, err := p.dir.Lstat(p.name)
	made, e := p.dir.Lstat(tmp.name)
	switch {
	case e != nil:
		return e
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !c.has("ov"):
		return renameNew(tmp, p, made.IsDir())
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
	case errors.Is(err, container.ErrPartlyRemoved): // it cannot be restored: the new image is the only one
		return errors.Join(fmt.Errorf("%q is the new image; removing the old one: %w", p.path, err), p.dir.Sync())
	case err != nil: // a folder with other files in it, or in use
		return errors.Join(err, p.dir.Rename(p.name, tmp.name), p.dir.Rename(aside, p.name))
	}
	return p.dir.Sync()
}

// renameNew gives the finished image a name that must be free: of several
// processes that make an image of the same name only one gets it. A folder does
// not replace another one; a file would, so its name is reserved first.
func renameNew(tmp, p place, folder bool) error {
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

// lockStem takes the lock of a stem. Without a lock the image is still made,
// but what a killed process leaves is the user's to remove. The file gets its
// content after the lock is taken: an empty one is never swept.
func lockStem(dir *hostio.Dir, stem string) (release func() error) {
	name := stem + lockSuffix
	f, err := dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err != nil {
		return func() error { return nil }
	}
	if f.TryLock() == nil {
		_, _ = f.WriteAt([]byte("dmgbench makes an image under this name\n"), 0)
	}
	return func() error { return errors.Join(removeIfExists((*hostio.Dir).Remove, dir, name), f.Close()) }
}

// sweep removes from a folder what killed processes of this user have left:
// only if their lock shows that they ran under this kernel and have ended. What
// cannot be decided or removed stays.
func (c *call) sweep(dir *hostio.Dir) {
	entries, err := dir.ReadDir(".")
	prefix := bootPrefix()
	if err != nil || prefix == stemPrefix {
		return
	}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok || len(stem) != stemLength || !strings.HasPrefix(stem, prefix) || !isOwnEntry(dir, e.Name()) {
			continue
		}
		f, err := dir.Open(e.Name(), hostio.OpenOptions{})
		if err != nil {
			continue
		}
		st, err := f.Stat()
		if err == nil && st.Size > 0 && f.TryLock() == nil {
			c.sweepStem(dir, entries, stem)
		}
		f.Close()
	}
}

// sweepStem removes the images of one stem, then its lock. It ends at the first
// that it may not remove.
func (c *call) sweepStem(dir *hostio.Dir, entries []fs.DirEntry, stem string) {
	ofStem := func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), stem) && e.Name() != stem+lockSuffix }
	isAside := func(e fs.DirEntry) bool { return ofStem(e) && strings.HasSuffix(e.Name(), asideMark) }
	if slices.ContainsFunc(entries, isAside) {
		return
	}
	for _, e := range entries {
		if !ofStem(e) {
			continue
		}
		if !isOwnEntry(dir, e.Name()) || container.Remove(dir, e.Name()) != nil {
			return
		}
		if c.has("verbose") {
			fmt.Fprintf(c.err, "%s: removed what a killed process left: %q\n", c.tool, dir.Path()+"/"+e.Name())
		}
	}
	_ = dir.Remove(stem + lockSuffix) // the next command tries again
}

// isOwnEntry reports whether a name is a file or folder of the user of this
// process.
func isOwnEntry(dir *hostio.Dir, name string) bool {
	fi, err := dir.Lstat(name)
	return err == nil && (fi.Mode().IsRegular() || fi.IsDir()) && isOwn(fi)
}

// isOwn reports whether a file belongs to the user of this process.
func isOwn(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}
