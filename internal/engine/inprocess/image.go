package inprocess

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// image is one container in a place.
type image struct {
	engine  *Engine
	dir     *hostio.Dir
	file    string
	spec    engine.Spec
	id      string
	mounted bool        // once at least, as far as is known
	open    *attachment // nil while detached
}

var _ engine.Container = (*image)(nil)

func (c *image) Name() string { return c.file }

func (c *image) bundle() bool { return c.spec.Format == container.UDSB }

func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: filesystem, Size: c.spec.Size, BandSize: c.spec.BandSize, Backend: backend}
}

// Identity is device and inode of the file, or of the bundle's folder and of
// its token.
func (c *image) Identity(context.Context) (string, error) {
	id, err := files.Identity(c.dir, c.file)
	return id, gone(err)
}

// same fails unless the container still is the one that was found, and detached if that matters.
func (c *image) same(ctx context.Context, doing string, detached bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if detached && c.open != nil {
		return fmt.Errorf("%s %q: it is attached: %w", doing, c.file, container.ErrInUse)
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

func gone(err error) error { return engine.Gone(err) }

// Xattr lists the container's extended attributes with their values, or sets
// or removes one. Links are not followed. A host file system without extended
// attributes is an [engine.UnsupportedError].
func (c *image) Xattr(ctx context.Context, action, name, value string) (engine.Report, error) {
	if err := c.same(ctx, "attributes of", false); err != nil {
		return engine.Report{}, err
	}
	all, err := files.Xattr(c.dir, c.file, action, name, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = refuse("extended attributes here: "+action, "list, set or remove, on a disk that keeps them")
	}
	return engine.Report{Reported: all}, err
}

// with opens the detached container for the time of f.
func (c *image) with(ctx context.Context, doing string, readOnly bool, f func(img container.Image) error) (err error) {
	if err := c.same(ctx, doing, true); err != nil {
		return err
	}
	img, err := container.Open(c.dir, c.file, container.OpenOptions{ReadOnly: readOnly, Cache: c.spec.Cache, Passphrase: passphrase(c.spec)})
	if err != nil {
		return gone(err)
	}
	defer func() {
		err = errors.Join(err, gone(img.Close())) // a flush that fails is told, whatever came before
	}()
	return gone(f(img))
}

// partition is the one that carries the volume, as table and as a device.
func partition(img blockdev.Device) (gpt.Partition, blockdev.Device, []string, error) {
	t, list, err := gpt.Read(img)
	if err != nil {
		return gpt.Partition{}, nil, nil, err
	}
	var warnings []string
	for _, w := range list {
		warnings = append(warnings, string(w))
	}
	if len(t.Partitions) != 1 {
		return gpt.Partition{}, nil, warnings, fmt.Errorf("%d partitions instead of one: %w", len(t.Partitions), gpt.ErrInvalid)
	}
	part, err := blockdev.Section(img, t.Partitions[0].Offset(), t.Partitions[0].Size())
	return t.Partitions[0], part, warnings, err
}

// Usage counts the files of the container, attached or not.
func (c *image) Usage(ctx context.Context) (engine.Usage, error) {
	if err := c.same(ctx, "measuring", false); err != nil {
		return engine.Usage{}, err
	}
	var u container.Usage
	var err error
	if c.open != nil && c.open.img != nil {
		u, err = c.open.img.Usage()
	} else {
		u, err = container.UsageOf(c.dir, c.file)
	}
	return engine.Usage(u), gone(err)
}
