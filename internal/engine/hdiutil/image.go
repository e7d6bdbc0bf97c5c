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
	"dmgbench/internal/engine/hdiutil/command"
	"dmgbench/internal/hostio"
	diskimage "dmgbench/internal/image"
)

// image is one container in a place.
type image struct {
	engine.HostFile
	choice
	e        *Engine
	spec     engine.Spec // its passphrase is a copy of our own
	info     fileInfo
	size     int64         // of the device in bytes, as far as is known
	open     *attachment   // nil while detached
	left     bool          // a failed attach may have left it attached, or found it attached
	report   reportBuilder // of the command that made it
	servedBy string        // at the last attach
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
	s = e.withPassphrase(s)
	file := withExtension(name, c.format.Extension)
	cmd, err := e.createCommand(filepath.Join(dir.Path(), file), s, c)
	if err != nil {
		return nil, fmt.Errorf("creating %q: %w", file, err)
	}
	return e.makeImage(ctx, dir, file, s, c, call{doing: "creating", cmd: cmd, bytes: s.Size})
}

func (e *Engine) createCommand(path string, s engine.Spec, c choice) (command.Command, error) {
	pass, err := passphraseOf(s)
	if err != nil {
		return command.Command{}, err
	}
	o := command.CreateOptions{Image: path, Size: c.size, Volume: c.fs.labelFor(s.VolumeName), Passphrase: pass}
	if c.backend == backendDiskutil {
		o.Type, o.Filesystem = c.format.ImageType, c.fs.diskutil
		if !e.can.diskutilFS && c.fs.name == "none" {
			return command.Command{}, e.refuse(c.backend, "images without a file system", "backend = \"hdiutil\"")
		}
		if !e.can.diskutilFS {
			o.Filesystem = ""
		}
		return command.CreateBlank(o), nil
	}
	o.Type, o.Filesystem, o.NoSpotlight = c.format.CreateType, c.fs.hdiutil, e.can.noSpotlight
	if c.format.Folder {
		o.Band = s.BandSize
	}
	if pass != nil {
		o.Encryption = s.Encryption
	}
	return command.Create(o), nil
}

// passphraseOf is nil for an image that is not encrypted.
func passphraseOf(s engine.Spec) ([]byte, error) {
	switch {
	case !isEncrypted(s):
		return nil, nil
	case len(s.Passphrase) == 0:
		return nil, fmt.Errorf("encryption %s without a passphrase", s.Encryption)
	}
	return s.Passphrase, nil
}

// makeImage runs a command that makes a new file, and opens it. A failed try
// leaves no file.
func (e *Engine) makeImage(ctx context.Context, dir *hostio.Dir, file string, s engine.Spec, c choice,
	k call) (engine.Container, error) {
	if _, err := dir.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return nil, fmt.Errorf("%s %q: %w", k.doing, file, err)
	}
	k.object, k.undo = file, func() error { return dir.RemoveAll(file) }
	k.check = func([]byte) error {
		i, err := inspectContainer(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %q is missing", ErrNoResult, file)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoResult, err)
		}
		return i.checkMade(c.format, s.Encryption)
	}
	var t reportBuilder
	if _, err := e.d.run(ctx, &t, k); err != nil {
		if classOf(err) == Exists { // another process made the file just now
			return nil, err
		}
		return nil, errors.Join(err, k.undo())
	}
	i, err := e.openImage(dir, file, s, c)
	if err != nil {
		return nil, errors.Join(err, k.undo())
	}
	i.info.reportTo(&t, i.spec.BandSize)
	i.report = t
	return i, nil
}

// openImage inspects an image that exists.
func (e *Engine) openImage(dir *hostio.Dir, file string, s engine.Spec, c choice) (*image, error) {
	i := &image{e: e, spec: s, choice: c}
	i.spec.Passphrase = slices.Clone(s.Passphrase)
	var err error
	if i.HostFile, err = engine.OpenHostFile(dir, file); err == nil {
		i.info, err = i.inspect()
	}
	if err == nil {
		err = i.info.checkMade(c.format, s.Encryption)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, err)
	}
	i.size = i.info.size
	if i.size == 0 {
		i.size = c.size
	}
	if !c.format.Folder {
		i.spec.BandSize = 0
	}
	return i, nil
}

// asContainer turns a nil image into a nil interface.
func asContainer(i *image, err error) (engine.Container, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}

// inspect inspects the files now. An ASIF image without a magic number shows
// neither size nor layout: the length of such a file is never the device's.
func (c *image) inspect() (fileInfo, error) {
	i, err := inspectContainer(c.Dir, c.File)
	if c.format.Name == diskimage.ASIF && i.format == diskimage.UDRW {
		i.size, i.layout = 0, ""
	}
	return i, err
}

func (c *image) path() string { return filepath.Join(c.Dir.Path(), c.File) }

// Made is what was made, read back from the files.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: c.fs.name, Size: c.size, BandSize: c.info.band, Backend: c.backend,
		ServedBy: c.servedBy}
}

// TakeReport returns figures and messages of the tool, layout and retries of
// the command that made the image.
func (c *image) TakeReport() engine.Report { return c.report.take() }

// passphrase is nil for an image that is not encrypted.
func (c *image) passphrase() []byte {
	p, _ := passphraseOf(c.spec)
	return p
}

// checkDetached fails unless the container is the one that was opened, and
// detached.
func (c *image) checkDetached(ctx context.Context, doing string) error {
	if c.open != nil && ctx.Err() == nil {
		return c.attachedError(doing)
	}
	return c.CheckSame(ctx, doing)
}

// attachedError is the error of what cannot be done to an attached image.
func (c *image) attachedError(doing string) error {
	return &ToolError{Doing: doing, Object: c.File, Class: Busy, Command: "not run", Status: -1,
		Message: "it is attached", Hint: "detach it first"}
}

// Usage counts the files' blocks on the host, attached or not; the tools' own
// figures are not used.
func (c *image) Usage(ctx context.Context) (engine.Usage, error) {
	if err := c.CheckSame(ctx, "measuring"); err != nil {
		return engine.Usage{}, err
	}
	u, err := files.UsageOf(ctx, c.Dir, c.File, c.info.band, c.size)
	if err != nil {
		return engine.Usage{}, fmt.Errorf("measuring %q: %w", c.File, engine.Gone(err))
	}
	return engine.Usage(u), nil
}

// Evict drops the host's cached pages of the file or of all bands.
func (c *image) Evict(ctx context.Context) error {
	if err := c.checkDetached(ctx, "evicting"); err != nil {
		return err
	}
	return engine.Gone(files.Evict(ctx, c.Dir, c.File))
}

// Transfer copies the file or bundle byte for byte; holes stay holes.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.checkDetached(ctx, "copying"); err != nil {
		return nil, err
	}
	to := withExtension(name, c.format.Extension)
	if err := files.Copy(ctx, c.Dir, c.File, dir, to); err != nil {
		return nil, fmt.Errorf("copying %q: %w", c.File, err)
	}
	return asContainer(c.e.openImage(dir, to, c.spec, c.choice))
}

// Remove deletes the container, unless another one took its place, and wipes
// the passphrase.
func (c *image) Remove(ctx context.Context) error {
	if err := c.checkDetached(ctx, "removing"); err != nil {
		return err
	}
	if c.left { // processes that use a volume without its files hang
		if _, still, err := c.e.findAttached(ctx, &reportBuilder{}, c.path()); err != nil || still {
			return errors.Join(c.attachedError("removing"), err)
		}
	}
	if err := c.Dir.RemoveAll(c.File); err != nil {
		return err
	}
	clear(c.spec.Passphrase)
	return nil
}

// OpenWith are commands of the tool that made the image; it prompts for a
// passphrase.
func (c *image) OpenWith(path string) []string {
	path = engine.ShellQuote(path)
	line := "hdiutil attach " + path
	if c.backend == backendDiskutil {
		line = "diskutil image attach " + path
	}
	if c.e.isApple() {
		return []string{line}
	}
	lines := []string{"dmgbench hdiutil " + strings.TrimPrefix(line, "hdiutil ")}
	if c.fs.name == "exFAT" { // which ls reads without mounting
		lines = append(lines, "dmgbench hdiutil ls "+path)
	}
	return lines
}
