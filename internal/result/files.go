package result

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// openRegular opens name if it is a regular file and not a link to one.
func (d *RunDir) openRegular(name string, flag int) (*os.File, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: %w", name, ErrNotRun)
	}
	f, err := d.root.OpenFile(name, flag|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s was replaced while it was opened: %w", name, ErrNotRun))
	}
	return f, nil
}

// ReadFile reads a file of the folder that has at most limit bytes.
func (d *RunDir) ReadFile(name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if err := d.readInto(&b, name, limit); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readInto is ReadFile into a buffer, replacing its content.
func (d *RunDir) readInto(b *bytes.Buffer, name string, limit int64) error {
	b.Reset()
	f, err := d.openRegular(name, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, bare(err))
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() <= limit {
		b.Grow(int(fi.Size()) + bytes.MinRead) // room for the read that finds the end
	}
	_, err = b.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && int64(b.Len()) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	if err != nil {
		b.Reset()
		return fmt.Errorf("reading %q: %w", name, bare(err))
	}
	return nil
}

// WriteFile replaces plan.toml, result.json or report.html: either the old or
// the new content is there, whatever happens. Content that is already there is not written,
// so that a folder that only can be read has its report as well.
func (d *RunDir) WriteFile(name string, data []byte) error {
	if !slices.Contains(written, name) {
		return fmt.Errorf("writing %q: not a file of a run folder", name)
	}
	if old, err := d.ReadFile(name, int64(len(data))); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := d.replace(name, data); err != nil {
		return &Error{Doing: "writing", File: name, Err: bare(err)}
	}
	return nil
}

func tempPrefix(name string) string { return "." + name + ".tmp-" }

func (d *RunDir) replace(name string, data []byte) error {
	temp := tempPrefix(name) + rand.Text()
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = durable{f}.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(temp))
	}
	return d.syncDir()
}

// syncDir makes new and replaced names durable.
func (d *RunDir) syncDir() error {
	self, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(durable{self}.Sync(), self.Close())
}

// bare is the cause inside a path error: the path is named already.
func bare(err error) error {
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // text that was wrapped around it has to stay
		return pe.Err
	}
	return err
}

// sweep removes what an interrupted WriteFile left.
func (d *RunDir) sweep() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, name := range written {
			if strings.HasPrefix(e.Name(), tempPrefix(name)) && e.Type().IsRegular() {
				if err := d.root.Remove(e.Name()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// durable is a file with a Sync that works on every file system. Package os flushes by F_FULLFSYNC on
// macOS, which exFAT and FAT answer with ENOTTY, network shares with ENOTSUP and some of FUSE with
// EINVAL; a run folder may lie on any of them.
type durable struct{ *os.File }

// Sync flushes the file, and its disk's cache too where that can be had.
func (d durable) Sync() error {
	return flushed(d.File.Sync, func() error { return plainSync(d.File) })
}

// flushed flushes in full, or plainly where the file system does not know the other way.
func flushed(full, plain func() error) error {
	err := full()
	if errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EINVAL) {
		return plain()
	}
	return err
}
