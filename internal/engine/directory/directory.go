// Package directory is the native baseline: an engine with containers that are
// plain folder of the host, so that the same workload runs with no image in
// between.
//
// Creating makes the folder, attaching opens it, detaching closes it, and what
// an image has beyond that (compacting, resizing, converting, a structure to
// damage) is an [engine.UnsupportedError]. The package refuses to pretend: a
// folder has no size of its own, so that it reports what its files occupy.
// Images are made by the other engines below [engine].
package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"syscall"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
	"dmgbench/internal/workload/folder"
)

const title = "native folder"

// Engine makes folders. The zero value is ready.
type Engine struct{}

var _ engine.Engine = Engine{}

// Info names the engine; its version is the operating system.
func (Engine) Info() engine.Info {
	return engine.Info{Name: "directory", Vendor: "dmgbench", Version: runtime.GOOS, Title: title}
}

// forImages is the advice for what only images have.
const forImages = "a native folder has none: leave the step to the images with when = { target = \"image\" }"

// Supports refuses formats and encryption: a folder has neither. File system
// and size of the spec are the host's and left alone.
func (Engine) Supports(s engine.Spec) error {
	switch {
	case s.Format != "":
		return refuse("format "+s.Format, "use target = \"image\"")
	case s.Encryption != "" && s.Encryption != "none":
		return refuse("encryption "+s.Encryption, forImages)
	}
	return nil
}

// images are the actions that a folder has no use for, as refusals name them.
var images = map[string]string{"compact": "compacting", "resize": "resizing", "convert": "converting",
	"xattr": "extended attributes"}

// Allows refuses what only images have.
func (e Engine) Allows(s engine.Spec, a engine.Action) error {
	switch {
	case images[a.Do] != "":
		return refuse(images[a.Do], forImages)
	case a.Do == "damage":
		return refuse("damage "+a.Kind, forImages)
	case a.Do == "stream" && a.Kind == workload.CodecLZFSE && runtime.GOOS != "darwin":
		return refuse("codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
	}
	return e.Supports(s)
}

// PeakBytes is the live bytes: what else a folder holds is small.
func (Engine) PeakBytes(_ engine.Spec, live int64) int64 { return live }

// Create makes an empty folder. It fails if the name exists.
func (e Engine) Create(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := e.Supports(s); err != nil {
		return nil, err
	}
	if err := dir.Mkdir(name); err != nil {
		return nil, err
	}
	if err := dir.Sync(); err != nil {
		return nil, err
	}
	return open(dir, name, s)
}

// Open finds a folder that Create made.
func (e Engine) Open(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := e.Supports(s); err != nil {
		return nil, err
	}
	return open(dir, name, s)
}

func open(dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	sub, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	_, _, fsType, err := sub.FreeSpace()
	if err != nil {
		return nil, err
	}
	c := &container{dir: dir, name: name, spec: s, fsType: fsType}
	c.id, err = c.Identity(context.Background())
	return c, err
}

// container is one folder in a place.
type container struct {
	dir    *hostio.Dir
	name   string
	spec   engine.Spec
	fsType string
	id     string
}

func (c *container) Name() string { return c.name }

func (c *container) Made() engine.Made {
	return engine.Made{Filesystem: c.fsType, Backend: "directory"}
}

// Attach opens the folder, after looking that it is still the same.
func (c *container) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	root, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	if o.NoMount {
		root.Close()
		return &attachment{}, nil
	}
	return &attachment{root: root,
		vol: folder.New(root, folder.Options{Preallocate: c.spec.Preallocate, ReadOnly: o.ReadOnly})}, nil
}

// open gives the folder if it still is the one that was made.
func (c *container) open(ctx context.Context) (*hostio.Dir, error) {
	now, err := c.Identity(ctx)
	if err == nil && now != c.id {
		err = engine.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", c.name, err)
	}
	root, err := c.dir.Sub(c.name)
	if err != nil {
		return nil, err
	}
	if err := root.Verify(c.dir, c.name); err != nil {
		root.Close()
		return nil, fmt.Errorf("opening folder %q: %w: %w", c.name, engine.ErrGone, err)
	}
	return root, nil
}

// Identity is the device and inode of the folder.
func (c *container) Identity(context.Context) (string, error) {
	fi, err := c.dir.Lstat(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", engine.ErrGone, fs.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() {
		return "", engine.ErrGone
	}
	return fmt.Sprintf("dir-%x-%x", st.Dev, st.Ino), nil
}

func (c *container) Remove(ctx context.Context) error {
	root, err := c.open(ctx)
	if err != nil {
		return err
	}
	root.Close()
	return c.dir.RemoveAll(c.name)
}

// OpenWith lists the files.
func (*container) OpenWith(path string) []string {
	return []string{"ls -lR '" + strings.ReplaceAll(path, "'", `'\''`) + "'"}
}

func (c *container) Compact(context.Context, engine.CompactOptions) (engine.Report, error) {
	return engine.Report{}, Engine{}.Allows(c.spec, engine.Action{Do: "compact"})
}

func (c *container) Resize(context.Context, int64) (engine.Report, error) {
	return engine.Report{}, Engine{}.Allows(c.spec, engine.Action{Do: "resize"})
}

func (c *container) Convert(context.Context, *hostio.Dir, string, engine.Spec) (engine.Container, error) {
	return nil, Engine{}.Allows(c.spec, engine.Action{Do: "convert"})
}

func (c *container) Damage(_ context.Context, kind string) error {
	return Engine{}.Allows(c.spec, engine.Action{Do: "damage", Kind: kind})
}

func (c *container) Xattr(context.Context, string, string, string) (engine.Report, error) {
	return engine.Report{}, Engine{}.Allows(c.spec, engine.Action{Do: "xattr"})
}

// Check reports that there is no file system to check: that of a folder is the
// host's, and mounted.
func (c *container) Check(_ context.Context, o engine.CheckOptions) (engine.Report, error) {
	return engine.Report{Reported: map[string]string{"check": "not applicable: a native folder has no " + o.What + " of its own"}}, nil
}

// attachment is an opened folder.
type attachment struct {
	root *hostio.Dir
	vol  *folder.Volume
}

// Trim frees no space: deleted files freed theirs at once.
func (*attachment) Trim(context.Context) (engine.Report, error) {
	return engine.Report{Reported: map[string]string{"trim": "not applicable: deleted files freed their space at once"}}, nil
}

// Detach closes the folder. Further calls have no effect.
func (a *attachment) Detach(context.Context, bool) (engine.Report, error) {
	if a.root == nil {
		return engine.Report{}, nil
	}
	err := a.vol.Sync()
	if e := a.root.Close(); err == nil {
		err = e
	}
	a.root, a.vol = nil, nil
	return engine.Report{}, err
}

func refuse(what, hint string) error {
	return &engine.UnsupportedError{Engine: title, What: what, Hint: hint}
}

// Volume is nil when the folder was attached without mounting.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// walk visits every file below the folder with its name.
func walk(ctx context.Context, d *hostio.Dir, name string, visit func(name string, fi fs.FileInfo) error) error {
	list, err := d.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := path.Join(name, e.Name())
		fi, err := d.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(full, fi); err != nil {
			return err
		}
		if fi.IsDir() {
			if err := walk(ctx, d, full, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Usage adds up what the files and folders occupy, from st_blocks, and the
// lengths of the files.
func (c *container) Usage(ctx context.Context) (engine.Usage, error) {
	var u engine.Usage
	root, err := c.open(ctx)
	if err != nil {
		return u, err
	}
	defer root.Close()
	err = walk(ctx, root, ".", func(_ string, fi fs.FileInfo) error {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			u.Allocated += int64(st.Blocks) * 512
		}
		if fi.Mode().IsRegular() {
			u.Apparent += fi.Size()
		}
		return nil
	})
	u.Sparse = u.Allocated < u.Apparent
	return u, err
}

// Evict drops the cached pages of every file.
func (c *container) Evict(ctx context.Context) error {
	root, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	return walk(ctx, root, ".", func(name string, fi fs.FileInfo) error {
		if !fi.Mode().IsRegular() {
			return nil
		}
		f, err := root.Open(name, hostio.OpenOptions{})
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Evict()
	})
}

// Transfer copies the folder with its files, and flushes the copy.
func (c *container) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	root, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := dir.Mkdir(name); err != nil {
		return nil, err
	}
	to, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	buf, err := hostio.AlignedBuffer(4 << 20)
	if err != nil {
		return nil, err
	}
	defer buf.Free()
	err = walk(ctx, root, ".", func(name string, fi fs.FileInfo) error {
		if fi.IsDir() {
			return to.Mkdir(name)
		}
		if !fi.Mode().IsRegular() {
			return nil
		}
		return copyFile(ctx, root, to, name, fi.Size(), buf.Bytes())
	})
	if err != nil {
		return nil, err
	}
	if err := folder.SyncTree(to); err != nil {
		return nil, err
	}
	return open(dir, name, c.spec)
}

func copyFile(ctx context.Context, from, to *hostio.Dir, name string, size int64, buf []byte) error {
	src, err := from.Open(name, hostio.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err != nil {
		return err
	}
	defer dst.Close()
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), size-off)]
		if _, err := src.ReadAt(part, off); err != nil {
			return err
		}
		if _, err := dst.WriteAt(part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	_, err = dst.Sync(hostio.SyncFull)
	return err
}
