package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/proc"
	"dmgbench/internal/hostio"
)

// image is one container in a place.
type image struct {
	e    *Engine
	dir  *hostio.Dir
	file string
	spec engine.Spec // its passphrase is a copy of our own
	choice
	id   string
	seen found
	size int64       // of the device, bytes, as far as is known
	open *attachment // nil while detached
	left bool        // a failed attach may have left it attached, or found it so
	told tale        // of the call that made it

	servedBy string // when it was attached last
}

var (
	_ engine.Container = (*image)(nil)
	_ engine.Reporter  = (*image)(nil)
)

// Create makes the image with its file system. It is not attached.
func (e *Engine) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.choose(s)
	if err != nil {
		return nil, err
	}
	s = e.keyed(s)
	file := withExtension(name, c.kind.ext)
	build, err := e.creation(filepath.Join(dir.Path(), file), s, c)
	if err != nil {
		return nil, fmt.Errorf("creating %q: %w", file, err)
	}
	var t tale
	err = e.make(ctx, &t, dir, file, call{doing: "creating", build: build, bytes: s.Size}, func(f found) error {
		return f.fits(c.kind, s.Encryption)
	})
	if err != nil {
		return nil, err
	}
	return e.made(ctx, dir, file, s, c, &t)
}

// creation is the command that makes the image.
func (e *Engine) creation(file string, s engine.Spec, c choice) (builder, error) {
	pass, err := passphrase(s)
	if err != nil {
		return nil, err
	}
	label := c.fs.labelled(s.VolumeName)
	if c.backend == backendDiskutil {
		blank := argv.CreateBlank{Image: file, Format: c.kind.image, Size: c.size, Filesystem: c.fs.du, Volume: label, Passphrase: pass}
		switch {
		case e.can.chooses:
		case c.fs.name == "none":
			return nil, e.refuse(c.backend, "images without a file system", "backend = \"hdiutil\"")
		default:
			blank.Filesystem = ""
		}
		return blank, nil
	}
	b := argv.Create{Image: file, Type: c.kind.typ, Size: c.size, Filesystem: c.fs.hd, Volume: label, Passphrase: pass, NoSpotlight: e.can.noSpotlight}
	if c.kind.format == "UDSB" {
		b.Band = s.BandSize
	}
	if pass != nil {
		b.Encryption = s.Encryption
	}
	return b, nil
}

// passphrase is nil for a plain image.
func passphrase(s engine.Spec) ([]byte, error) {
	switch {
	case s.Encryption == "" || s.Encryption == "none":
		return nil, nil
	case len(s.Passphrase) == 0:
		return nil, fmt.Errorf("encryption %s without a passphrase", s.Encryption)
	}
	return s.Passphrase, nil
}

// make runs a command whose result is a new file. Nothing of a failed try is left.
func (e *Engine) make(ctx context.Context, t *tale, dir *hostio.Dir, file string, c call, fits func(found) error) error {
	if _, err := dir.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return fmt.Errorf("%s %q: %w", c.doing, file, err)
	}
	c.object, c.undo = file, func() error { return dir.RemoveAll(file) }
	c.check = func(proc.Result) error {
		f, err := look(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: there is no %q", ErrNoResult, file)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoResult, err)
		}
		return fits(f)
	}
	_, err := e.d.run(ctx, t, c)
	if err == nil || classOf(err) == Exists { // somebody else's file, made just now
		return err
	}
	return errors.Join(err, c.undo())
}

// made is the container that a tool has just made.
func (e *Engine) made(ctx context.Context, dir *hostio.Dir, file string, s engine.Spec, c choice, t *tale) (engine.Container, error) {
	i, err := e.find(ctx, dir, file, s, c)
	if err != nil {
		return nil, errors.Join(err, dir.RemoveAll(file))
	}
	i.seen.tell(t, i.spec.BandSize)
	i.told.add(t.report())
	return i, nil
}

// find reads back what lies there.
func (e *Engine) find(_ context.Context, dir *hostio.Dir, file string, s engine.Spec, c choice) (*image, error) {
	i := &image{e: e, dir: dir, file: file, spec: s, choice: c}
	i.spec.Passphrase = slices.Clone(s.Passphrase)
	var err error
	if i.id, err = files.Identity(dir, file); err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, gone(err))
	}
	if i.seen, err = i.look(); err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, err)
	}
	if err := i.seen.fits(c.kind, s.Encryption); err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, err)
	}
	i.size = i.seen.size
	if i.size == 0 {
		i.size = c.size
	}
	if c.kind.format != "UDSB" {
		i.spec.BandSize = 0
	}
	return i, nil
}

// look is what the files say now. Of ASIF that is known by no magic number nothing else is known: the length of such a
// file is never the device's.
func (c *image) look() (found, error) {
	f, err := look(c.dir, c.file)
	if c.kind.format == "ASIF" && f.format == "UDRW" {
		f.size, f.layout = 0, ""
	}
	return f, err
}

// Name is the file or the bundle's folder, with its extension.
func (c *image) Name() string { return c.file }

func (c *image) path() string { return filepath.Join(c.dir.Path(), c.file) }

// Made is what was really made, read back from the files.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: c.fs.name, Size: c.size, BandSize: c.seen.band, Backend: c.backend, ServedBy: c.servedBy}
}

// TakeReport is what the making said of itself: figures and words of the tool, layout, retries.
func (c *image) TakeReport() engine.Report { return c.told.report() }

// pass is the passphrase, nil for a plain image.
func (c *image) pass() []byte {
	p, _ := passphrase(c.spec)
	return p
}

// Identity is device and inode of the file, or of the bundle's folder and its token.
func (c *image) Identity(context.Context) (string, error) {
	id, err := files.Identity(c.dir, c.file)
	return id, gone(err)
}

// same fails unless the container is the one that was found, and detached if that matters.
func (c *image) same(ctx context.Context, doing string, detached bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if detached && c.open != nil {
		return c.busy(doing)
	}
	now, err := c.Identity(ctx)
	if err == nil && now != c.id {
		err = engine.ErrGone
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", doing, c.file, err)
	}
	return nil
}

// busy is the error of what cannot be done to an attached image.
func (c *image) busy(doing string) error {
	return &ToolError{Doing: doing, Object: c.file, Class: Busy, Command: "not run", Status: -1, Words: "it is attached", Hint: "detach it first"}
}

func gone(err error) error { return engine.Gone(err) }

// Usage counts the files on the host, attached or not: blocks, never the tool's words.
func (c *image) Usage(ctx context.Context) (engine.Usage, error) {
	if err := c.same(ctx, "measuring", false); err != nil {
		return engine.Usage{}, err
	}
	u, err := files.UsageOf(ctx, c.dir, c.file, c.seen.band, c.size)
	if err != nil {
		return engine.Usage{}, fmt.Errorf("measuring %q: %w", c.file, gone(err))
	}
	return engine.Usage(u), nil
}

// Evict drops the host's cached pages of the file or of every band.
func (c *image) Evict(ctx context.Context) error {
	if err := c.same(ctx, "evicting", true); err != nil {
		return err
	}
	return gone(files.Evict(ctx, c.dir, c.file))
}

// Transfer copies the file or bundle byte for byte; holes stay holes.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.same(ctx, "copying", true); err != nil {
		return nil, err
	}
	to := withExtension(name, c.kind.ext)
	if err := files.Copy(ctx, c.dir, c.file, dir, to); err != nil {
		return nil, fmt.Errorf("copying %q: %w", c.file, err)
	}
	return opened(c.e.find(ctx, dir, to, c.spec, c.choice))
}

// Xattr lists the container's extended attributes, or sets or removes one.
func (c *image) Xattr(ctx context.Context, action, name, value string) (engine.Report, error) {
	if err := c.same(ctx, "attributes of", false); err != nil {
		return engine.Report{}, err
	}
	all, err := files.Xattr(c.dir, c.file, action, name, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.e.refuse(c.backend, "extended attributes: "+action, "list, set or remove")
	}
	return engine.Report{Reported: all}, err
}

// Remove deletes the container, unless something else took its place, and forgets the passphrase.
func (c *image) Remove(ctx context.Context) error {
	if err := c.same(ctx, "removing", true); err != nil {
		return err
	}
	if c.left { // a volume whose files are gone hangs whoever uses it
		if _, still, err := c.e.attached(ctx, &tale{}, c.path()); err != nil || still {
			return errors.Join(c.busy("removing"), err)
		}
	}
	if err := c.dir.RemoveAll(c.file); err != nil {
		return err
	}
	clear(c.spec.Passphrase)
	return nil
}

// OpenWith are the commands of whoever made it. A passphrase is asked for by the tool.
func (c *image) OpenWith(path string) []string {
	q := "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	tool := "hdiutil attach " + q
	if c.backend == backendDiskutil {
		tool = "diskutil image attach " + q
	}
	if c.e.o.Vendor != "dmgbench" {
		return []string{tool}
	}
	lines := []string{"dmgbench hdiutil " + strings.TrimPrefix(tool, "hdiutil ")}
	if c.fs.name == "exFAT" { // that it reads without mounting
		lines = append(lines, "dmgbench hdiutil ls "+q)
	}
	return lines
}
