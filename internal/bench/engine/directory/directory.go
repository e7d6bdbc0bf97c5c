// Package directory is the native baseline: an engine with containers that are
// plain folders of the host, so that the same workload runs with no image in
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
	"runtime"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
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
	case s.Encrypted():
		return refuse("encryption "+s.Encryption, forImages)
	}
	return nil
}

// images are the actions that a folder has no use for, as refusals name them.
var images = map[string]string{"compact": "compacting", "resize": "resizing", "convert": "converting",
	"xattr": "extended attributes", "damage": "damage"}

// Allows refuses what only images have.
func (e Engine) Allows(s engine.Spec, a engine.Action) error {
	switch {
	case images[a.Do] != "":
		return refuse(strings.TrimSpace(images[a.Do]+" "+a.Kind), forImages)
	case a.Do == "stream" && a.Kind == workload.CodecLZFSE && runtime.GOOS != "darwin":
		return refuse("codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
	}
	return e.Supports(s)
}

// Create makes an empty folder. It fails if the name exists.
func (e Engine) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := e.Supports(s); err != nil {
		return nil, err
	}
	err := dir.Mkdir(name)
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		return nil, err
	}
	return e.Open(ctx, dir, name, s)
}

// Open finds a folder that Create made.
func (e Engine) Open(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := e.Supports(s); err != nil {
		return nil, err
	}
	sub, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	_, _, fsType, err := sub.FreeSpace()
	if err != nil {
		return nil, err
	}
	c := &container{spec: s, fsType: fsType}
	c.Refuse = func(a engine.Action) error { return e.Allows(s, a) }
	c.HostFile, err = engine.OpenHostFile(dir, name)
	return c, err
}

// container is one folder in a place.
type container struct {
	engine.NoImage
	engine.HostFile
	spec   engine.Spec
	fsType string // of the host's file system
}

func (c *container) Made() engine.Made {
	return engine.Made{Filesystem: c.fsType, Backend: "directory"}
}

// Attach opens the folder if it still is the one that was made.
func (c *container) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.CheckSame(ctx, "opening folder"); err != nil {
		return nil, err
	}
	if o.NoMount {
		return &attachment{}, nil
	}
	root, err := c.Dir.Sub(c.File)
	if err != nil {
		return nil, err
	}
	if err := root.Verify(c.Dir, c.File); err != nil {
		root.Close()
		return nil, fmt.Errorf("opening folder %q: %w", c.File, engine.Gone(err))
	}
	return &attachment{root, folder.New(root, o.ReadOnly)}, nil
}

// Remove deletes the folder, unless another one has its name.
func (c *container) Remove(ctx context.Context) error {
	if err := c.CheckSame(ctx, "removing folder"); err != nil {
		return err
	}
	return c.Dir.RemoveAll(c.File)
}

// Xattr refuses.
func (c *container) Xattr(ctx context.Context, action, name, value string) (engine.Report, error) {
	return c.NoImage.Xattr(ctx, action, name, value)
}

// OpenWith lists the files.
func (*container) OpenWith(path string) []string {
	return []string{"ls -lR " + engine.ShellQuote(path)}
}

// Check has no effect, which the report notes: the file system of a folder is
// the host's, and mounted.
func (c *container) Check(_ context.Context, o engine.CheckOptions) (r engine.Report, err error) {
	r.Note("check", "not applicable: a native folder has no "+o.What+" of its own")
	return r, nil
}

// Usage adds up what the files and folders occupy, from st_blocks, and the
// lengths of the files.
func (c *container) Usage(ctx context.Context) (u engine.Usage, err error) {
	if err := c.CheckSame(ctx, "measuring folder"); err != nil {
		return u, err
	}
	return files.FolderUsage(ctx, c.Dir, c.File)
}

// Transfer copies the folder with its files, and flushes the copy.
func (c *container) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.CopyTo(ctx, dir, name); err != nil {
		return nil, err
	}
	return Engine{}.Open(ctx, dir, name, c.spec)
}

// attachment is an opened folder.
type attachment struct {
	root *hostio.Dir     // nil when attached without mounting, or detached
	vol  workload.Volume // likewise
}

// Volume is nil when the folder was attached without mounting.
func (a *attachment) Volume() workload.Volume { return a.vol }

// Trim frees no space: deleted files freed theirs at once.
func (*attachment) Trim(context.Context) (r engine.Report, err error) {
	r.Note("trim", "not applicable: deleted files freed their space at once")
	return r, nil
}

// Detach closes the folder. Further calls have no effect.
func (a *attachment) Detach(context.Context, bool) (engine.Report, error) {
	if a.root == nil {
		return engine.Report{}, nil
	}
	err := errors.Join(a.vol.Sync(), a.root.Close())
	a.root, a.vol = nil, nil
	return engine.Report{}, err
}

func refuse(what, hint string) error {
	return &engine.UnsupportedError{Engine: title, What: what, Hint: hint}
}
