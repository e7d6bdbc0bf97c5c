package imagetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// tree lists the files of folders of the host that are to be copied into a
// volume. It is complete before the image is made, because the size of the
// image follows from it.
type tree struct {
	// dirs are the folders, open until the copy is done.
	dirs []*hostio.Dir
	// items are the files and folders below them, parents before children.
	items []item
	// lost counts what a volume without modes, owners, attributes and links
	// does not keep of the items, in the order of lossNames.
	lost [5]int
	// links is the number of symbolic links, which are refused; firstLink is
	// the path of the first one.
	links     int
	firstLink string
	// out is the image that a new one replaces, which may be in one of the
	// folders and is left out; nil if there is none.
	out fs.FileInfo
}

// lossNames are those of tree.lost in the warning: modes other than 644 and 755,
// owners other than the user, files with extended attributes or several names,
// times that the volume cannot have.
var lossNames = [5]string{"modes", "owners", "extended attributes", "hard links", "times before 1980 or after 2107"}

// item is a file or folder that is copied.
type item struct {
	// dir and name are its place on the host, to its path on the volume, with
	// slashes.
	dir    *hostio.Dir
	name   string
	to     string
	folder bool
	// size of a file in bytes. A file that has become shorter when it is copied
	// is an error.
	size int64
	// time of the last change, which the copy gets.
	time time.Time
}

// bundleExtensions are of folders that macOS shows as one file.
var bundleExtensions = []string{".app", ".appex", ".bundle", ".component", ".framework", ".kext", ".mpkg", ".pkg",
	".plugin", ".prefpane", ".saver", ".xpc"}

// readTree lists folders. The contents of a single one become the root of the
// volume, unless it is a bundle such as X.app; of several, each is a folder in
// it. What the volume cannot hold is an error: no file is left out silently.
// The image out, which the new one replaces, is no part of it. The result has to
// be closed after an error, too.
func readTree(ctx context.Context, folders []string, out fs.FileInfo) (t tree, err error) {
	t.out = out
	for _, folder := range folders {
		d, err := hostio.OpenDir(folder)
		if err != nil {
			return t, err
		}
		t.dirs = append(t.dirs, d)
		to := ""
		if len(folders) > 1 || slices.Contains(bundleExtensions, strings.ToLower(filepath.Ext(folder))) {
			to = filepath.Base(folder)
		}
		if err := t.add(ctx, d, ".", to); err != nil {
			return t, err
		}
	}
	if t.links > 0 {
		return t, refuse("%s cannot hold symbolic links: %d in the source, the first is %q", ours, t.links,
			t.firstLink)
	}
	return t, nil
}

// add adds a file, or a folder and what is below it; to is empty for the root of
// the volume. Symbolic links are counted, so that one error names how many there
// are: users would otherwise find them one by one. Other special files are
// errors at once.
func (t *tree) add(ctx context.Context, d *hostio.Dir, name, to string) error {
	fi, err := d.Lstat(name)
	switch {
	case err != nil:
		return err
	case t.out != nil && fi.Name() == t.out.Name() && os.SameFile(fi, t.out):
		return nil
	case fi.Mode()&fs.ModeSymlink != 0:
		if t.links++; t.links == 1 {
			t.firstLink = filepath.Join(d.Path(), name)
		}
		return nil
	case !fi.IsDir() && !fi.Mode().IsRegular():
		return refuse("%q is neither a file nor a folder", filepath.Join(d.Path(), name))
	}
	if to != "" {
		i := item{dir: d, name: name, to: to, folder: fi.IsDir(), time: fi.ModTime()}
		if !i.folder {
			i.size = fi.Size()
		}
		t.items = append(t.items, i)
		t.countLosses(d, name, fi)
	}
	if !fi.IsDir() {
		return nil
	}
	entries, err := d.ReadDir(name)
	err = cmp.Or(ctx.Err(), err)
	for _, e := range entries {
		if err == nil {
			err = t.add(ctx, d, path.Join(name, e.Name()), path.Join(to, e.Name()))
		}
	}
	return err
}

// close closes the folders of the host.
func (t tree) close() {
	for _, d := range t.dirs {
		d.Close()
	}
}

// imageSize is the size of an image that holds the tree, in bytes: whole
// clusters of the largest size that a volume of that size may have, a fiftieth
// for tables, and 8 MiB.
func (t tree) imageSize() int64 {
	const total = int64(8 << 20)
	for _, c := range []struct{ cluster, limit int64 }{
		{4 << 10, 256 << 20}, {32 << 10, 32 << 30}, {128 << 10, maxSize},
	} {
		sum := total
		for _, i := range t.items {
			sum += units.RoundUp(i.size, c.cluster) + c.cluster/8
			if i.folder {
				sum += c.cluster
			}
		}
		if sum += sum / 50; sum <= c.limit {
			return units.RoundUp(sum, 4096)
		}
	}
	return total
}

// copyTo puts the tree on an ExFAT volume.
func (t tree) copyTo(c *call, part blockdev.Device) (err error) {
	if len(t.items) == 0 {
		return nil
	}
	now := c.env.Now()
	v, err := exfat.Mount(part, exfat.MountOptions{Now: func() time.Time { return now }})
	if err != nil {
		return fmt.Errorf("mounting the new volume: %w", err)
	}
	defer func() { err = errors.Join(err, v.Unmount()) }()
	buf := make([]byte, 4<<20)
	var total, done int64
	for _, i := range t.items {
		total += i.size
	}
	progress := c.newProgress(total)
	for _, i := range t.items {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if now = i.time; i.folder {
			err = v.Mkdir(i.to)
		} else {
			err = i.copyTo(c, v, buf)
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			return refuse("%q is there twice; %s does not distinguish capital letters from small ones", i.to, ours)
		case errors.Is(err, exfat.ErrName):
			return refuse("%q: %s forbids this name", i.to, ours)
		case err != nil:
			return fmt.Errorf("copying %q: %w", i.to, err)
		}
		done += i.size
		progress(done)
	}
	return nil
}

// copyTo copies a file.
func (i item) copyTo(c *call, v *exfat.Volume, buf []byte) error {
	from, err := i.dir.Open(i.name, hostio.OpenOptions{})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := v.Create(i.to, i.size)
	if err != nil {
		return err
	}
	err = c.readPieces(from, buf, 0, i.size, func(b []byte, off int64) error {
		_, err := to.WriteAt(b, off)
		return err
	})
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it became shorter while it was copied: %w", io.ErrUnexpectedEOF)
	}
	return errors.Join(err, to.Close())
}

// countLosses adds one file or folder to what is lost.
func (t *tree) countLosses(d *hostio.Dir, name string, fi fs.FileInfo) {
	usual := fs.FileMode(0o644)
	if fi.IsDir() {
		usual = 0o755
	}
	list, _ := files.Xattr(d, name, "list", "", "") // none on a host without attributes
	// Security labels and access control lists belong to the host, not to the
	// file.
	maps.DeleteFunc(list, func(name, _ string) bool {
		return strings.HasPrefix(name, "security.") || strings.HasPrefix(name, "system.")
	})
	year := fi.ModTime().UTC().Year()
	for n, lost := range [5]bool{
		fi.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != usual,
		hostio.StatOf(fi).UID != os.Geteuid(), len(list) > 0, !fi.IsDir() && hostio.StatOf(fi).Links > 1,
		year < exfat.FirstYear || year > exfat.LastYear,
	} {
		if lost {
			t.lost[n]++
		}
	}
}
