package imagetool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/image/exfat"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"
)

// withVolume mounts the ExFAT volume of an image in this process and calls f.
// No privileges are needed for that, and neither a loop device nor FUSE.
// Checksums of a read-only image are kept for checkRead.
func (c *call) withVolume(f func(i *imageFile, v *exfat.Volume) error) error {
	return c.withImage(c.operands[0], read, func(i *imageFile) error {
		keepSums(i)
		v, err := i.mountExFAT()
		if err != nil {
			return err
		}
		return errors.Join(f(i, v), v.Unmount())
	})
}

// mountExFAT mounts the last ExFAT volume of an image in this process, without
// writing. On images of Apple's the last partition is the one for files; an EFI
// partition with FAT comes before it. The error of an image with another file
// system names that.
func (i *imageFile) mountExFAT() (*exfat.Volume, error) {
	info, err := i.inspect()
	if err != nil {
		return nil, err
	}
	var found attach.Region
	var unreadable error // which is not the same as missing
	for _, r := range info.Regions {
		if kind := r.Volume.AppleName; kind == ours || kind != "" && found.Volume.AppleName != ours {
			found = r
		}
		unreadable = cmp.Or(unreadable, r.Err)
	}
	switch kind := found.Volume.AppleName; kind {
	case ours:
		vol, err := found.Section(i.Image)
		if err != nil {
			return nil, err
		}
		return exfat.Mount(vol, exfat.MountOptions{ReadOnly: true})
	case "":
		return nil, cmp.Or(unreadable, refuse("no ExFAT volume on the image"))
	default:
		return nil, refuse("%s volumes cannot be read without mounting", kind)
	}
}

// volumePath is a path on a volume as package exfat takes it: clean, without a
// slash in front.
func volumePath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// operandPath is the path of the second operand, "" for the root.
func (c *call) operandPath() string {
	if len(c.operands) < 2 {
		return ""
	}
	return volumePath(c.operands[1])
}

// list prints the names on a volume: of a file its own, of a folder those in
// it, sorted by name, or with -R everything below it in the order of the
// volume.
func (c *call) list() error {
	return c.withVolume(func(_ *imageFile, v *exfat.Volume) error {
		at := c.operandPath()
		i, err := v.Stat(at)
		switch {
		case err != nil:
			return err
		case !i.Dir:
			return c.printEntry(at, i)
		case c.has("r"):
			return v.Walk(at, func(p string, i exfat.Info) error {
				return errors.Join(c.printEntry(p, i), c.canceled())
			}, nil)
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

// printEntry prints one name.
func (c *call) printEntry(name string, i exfat.Info) error {
	name, kind := printable(name), "-"
	if i.Dir {
		name, kind = name+"/", "d"
	}
	if c.has("l") {
		name = fmt.Sprintf("%s %12d %s %s", kind, i.Size, i.Modified.Format("2006-01-02 15:04:05"), name)
	}
	_, err := fmt.Fprintln(c.out, name)
	return err
}

// cat prints files, one after another. It ends at the first that cannot be
// read.
func (c *call) cat() error {
	return c.withVolume(func(_ *imageFile, v *exfat.Volume) error {
		for _, p := range c.operands[1:] {
			err := c.readFile(v, volumePath(p), func(b []byte, _ int64) error {
				_, err := c.out.Write(b)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readFile reads a file of a volume and calls take with each piece and its
// offset.
func (c *call) readFile(v *exfat.Volume, p string, take func(b []byte, off int64) error) error {
	f, err := v.Open(p)
	if err != nil {
		return &unreadableError{err}
	}
	return errors.Join(c.readPieces(f, make([]byte, 1<<20), 0, f.Size(), take), f.Close())
}

// extract copies a file, a folder with its contents, or everything, into a
// folder of the host. Names come from the image: one that would leave the
// folder is an error, never followed.
func (c *call) extract() error {
	folder, err := c.absolute(cmp.Or(c.value("d"), "."))
	if err != nil {
		return err
	}
	return c.withVolume(func(i *imageFile, v *exfat.Volume) error {
		if err := c.extractTo(v, folder); err != nil || c.has("noverify") {
			return err
		}
		return c.checkRead(i)
	})
}

// extractTo copies what the operand names into a folder. Files and folders that
// cannot be read are reported, and the others are copied.
func (c *call) extractTo(v *exfat.Volume, folder string) error {
	at := c.operandPath()
	i, err := v.Stat(at)
	if err != nil {
		return err
	}
	to, err := openOrMake(folder)
	if err != nil {
		return err
	}
	defer to.Close()
	base := strings.TrimPrefix(path.Base("/"+at), "/") // "" of the root
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
	report := func(p string, err error) error {
		unreadable, ok := errors.AsType[*unreadableError](err)
		if !ok {
			return err
		}
		c.printf("%s: %v", printable(p), unreadable)
		bad, count = unreadable, count+1
		return nil
	}
	err = v.Walk(at, func(p string, i exfat.Info) error {
		name := path.Join(base, strings.TrimPrefix(strings.TrimPrefix(p, at), "/"))
		if i.Dir {
			return makeFolder(to, name)
		}
		return report(p, c.extractFile(v, p, to, name))
	}, func(p string, err error) error { return report(p, &unreadableError{err}) })
	if err != nil || bad == nil {
		return err
	}
	return fmt.Errorf("unreadable files or folders: %d, the last one: %w", count, bad)
}

// openOrMake opens a folder of the host and makes it if only its last name is
// missing.
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

// makeFolder makes a folder inside another one. Package hostio refuses names
// that leave it.
func makeFolder(to *hostio.Dir, name string) error {
	err := to.MkdirAll(name)
	if errors.Is(err, fs.ErrExist) {
		return &refusal{words: fmt.Sprintf("File exists, and is not a folder: %q", name), err: err}
	}
	return err
}

// extractFile copies one file. Blocks of zeros become holes. A file that exists
// is an error without -ov; with it, what is neither a file nor a folder (such
// as a link, which could lead out of the folder) is one still.
func (c *call) extractFile(v *exfat.Volume, p string, to *hostio.Dir, name string) (err error) {
	i, err := v.Stat(p)
	if err != nil {
		return &unreadableError{err}
	}
	f, err := to.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: !c.has("ov")})
	switch {
	case errors.Is(err, fs.ErrExist):
		return &refusal{words: fmt.Sprintf("File exists: %q", name), err: err}
	case errors.Is(err, hostio.ErrNotRegular):
		return &refusal{words: fmt.Sprintf("File exists, and is not a file that could be replaced: %q", name), err: err}
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
	return c.readFile(v, p, func(b []byte, off int64) error {
		if bytes.Equal(b, zero[:len(b)]) {
			return nil
		}
		_, err := f.WriteAt(b, off)
		return err
	})
}
