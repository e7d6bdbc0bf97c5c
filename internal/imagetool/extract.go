package imagetool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
	"dmgbench/internal/hostio"
)

// onVolume mounts the ExFAT volume of an image in this process and calls f.
func (c *call) onVolume(f func(v *exfat.Volume) error) error {
	return c.read(c.operands[0], func(_ place, img container.Image) error {
		v, err := exfatOn(img)
		if err != nil {
			return err
		}
		return errors.Join(f(v), v.Unmount())
	})
}

// inside is a path on a volume without what is not part of names.
func inside(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// list prints the names on a volume.
func (c *call) list() error {
	return c.onVolume(func(v *exfat.Volume) error {
		at := ""
		if len(c.operands) > 1 {
			at = inside(c.operands[1])
		}
		i, err := v.Stat(at)
		if err != nil {
			return err
		}
		if !i.Dir {
			return c.printEntry(at, i)
		}
		if c.has("-R") {
			return v.Walk(at, func(p string, i exfat.Info) error {
				return errors.Join(c.printEntry(p, i), c.canceled())
			})
		}
		entries, err := v.List(at)
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b exfat.Info) int { return strings.Compare(a.Name, b.Name) })
		for _, i := range entries {
			if err := c.printEntry(i.Name, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// printEntry prints one name. Control characters, which could speak to a terminal, are quoted.
func (c *call) printEntry(name string, i exfat.Info) error {
	name = shown(name)
	if i.Dir {
		name += "/"
	}
	if !c.has("-l") {
		_, err := fmt.Fprintln(c.out, name)
		return err
	}
	kind := "-"
	if i.Dir {
		kind = "d"
	}
	_, err := fmt.Fprintf(c.out, "%s %12d %s %s\n", kind, i.Size, i.Modified.Format("2006-01-02 15:04:05"), name)
	return err
}

// cat prints files.
func (c *call) cat() error {
	return c.onVolume(func(v *exfat.Volume) error {
		for _, p := range c.operands[1:] {
			if err := c.copyOut(v, inside(p), func(b []byte, _ int64) error {
				_, err := c.out.Write(b)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyOut reads a file of a volume piece by piece.
func (c *call) copyOut(v *exfat.Volume, p string, take func(b []byte, off int64) error) (err error) {
	f, err := v.Open(p)
	if err != nil {
		return &unreadError{err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 1<<20)
	for off := int64(0); off < f.Size(); off += int64(len(buf)) {
		if err := c.canceled(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), f.Size()-off)]
		if n, err := f.ReadAt(piece, off); err != nil && (n < len(piece) || !errors.Is(err, io.EOF)) {
			return &unreadError{err}
		}
		if err := take(piece, off); err != nil {
			return err
		}
	}
	return nil
}

// extract copies a file, a folder with what is in it, or everything, into a folder of the
// host. Names come from the image: what would leave the folder is an error, never followed.
func (c *call) extract() error {
	folder, err := c.absolute(".")
	if c.has("-d") {
		folder, err = c.absolute(c.value("-d"))
	}
	if err != nil {
		return err
	}
	return c.read(c.operands[0], func(_ place, img container.Image) error {
		keepSums(img)
		v, err := exfatOn(img)
		if err != nil {
			return err
		}
		if err := errors.Join(c.extractFrom(v, folder), v.Unmount()); err != nil || c.has("-noverify") {
			return err
		}
		return c.checkRead(img)
	})
}

// extractFrom copies what the operand names into a folder. Files that cannot be read are told, and the others copied all the
// same.
func (c *call) extractFrom(v *exfat.Volume, folder string) error {
	at := ""
	if len(c.operands) > 1 {
		at = inside(c.operands[1])
	}
	i, err := v.Stat(at)
	if err != nil {
		return err
	}
	to, err := openOrMake(folder)
	if err != nil {
		return err
	}
	defer to.Close()
	base := ""
	if at != "" {
		base = path.Base(at)
	}
	if !i.Dir {
		return c.extractFile(v, at, to, base)
	}
	if base != "" {
		if err := makeFolder(to, base); err != nil {
			return err
		}
	}
	var bad error
	count := 0
	err = v.Walk(at, func(p string, i exfat.Info) error {
		name := path.Join(base, strings.TrimPrefix(strings.TrimPrefix(p, at), "/"))
		if i.Dir {
			return makeFolder(to, name)
		}
		err := c.extractFile(v, p, to, name)
		if unread, ok := errors.AsType[*unreadError](err); ok {
			fmt.Fprintf(c.err, "%s: extract: %s: %v\n", c.tool, shown(p), unread)
			bad, count = unread, count+1
			return nil
		}
		return err
	})
	if err != nil || bad == nil {
		return err
	}
	return fmt.Errorf("%s could not be read, the last one: %w", counted(count, "file"), bad)
}

// unreadError is that of a file on an image, not of the host it is copied to.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// counted is a number of things, such as "1 file" and "2 files".
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func openOrMake(folder string) (*hostio.Dir, error) {
	d, err := hostio.OpenDir(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	parent, err := hostio.OpenDir(path.Dir(folder))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := parent.Mkdir(path.Base(folder)); err != nil {
		return nil, err
	}
	return hostio.OpenDir(folder)
}

func makeFolder(to *hostio.Dir, name string) error {
	err := to.MkdirAll(name)
	if errors.Is(err, fs.ErrExist) {
		return &refusal{words: fmt.Sprintf("File exists, and is no folder: %q", name), err: err}
	}
	return err
}

// extractFile copies one file. Blocks of zeros become holes.
func (c *call) extractFile(v *exfat.Volume, p string, to *hostio.Dir, name string) (err error) {
	i, err := v.Stat(p)
	if err != nil {
		return &unreadError{err}
	}
	f, err := to.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: !c.has("-ov")})
	switch {
	case errors.Is(err, fs.ErrExist):
		return &refusal{words: fmt.Sprintf("File exists: %q", name), err: err}
	case errors.Is(err, hostio.ErrNotRegular):
		return &refusal{words: fmt.Sprintf("File exists, and is no file that could be replaced: %q", name), err: err}
	case err != nil:
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil { // half a file looks like a whole one
			err = errors.Join(err, to.Remove(name))
		}
	}()
	if err := errors.Join(f.Truncate(0), f.Truncate(i.Size)); err != nil {
		return err
	}
	zero := make([]byte, 1<<20)
	return c.copyOut(v, p, func(b []byte, off int64) error {
		if bytes.Equal(b, zero[:len(b)]) {
			return nil
		}
		_, err := f.WriteAt(b, off)
		return err
	})
}
