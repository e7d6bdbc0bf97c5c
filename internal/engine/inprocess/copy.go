package inprocess

import (
	"context"
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
)

// Transfer copies the file, or the bundle's folder with all its files, byte
// for byte, and flushes the copy; holes stay holes. A copy that failed is
// deleted again.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.same(ctx, "copying", true); err != nil {
		return nil, err
	}
	to := withExtension(name, c.spec.Format)
	if err := files.Copy(ctx, c.dir, c.file, dir, to); err != nil {
		return nil, fmt.Errorf("copying %q: %w", c.file, gone(err))
	}
	return c.engine.find(dir, to, c.spec)
}

// Damage harms the container: "header" (the file's first sectors, the trailer of
// UDIF, the bundle's Info.plist), "band-missing" (a band in the middle), "truncated"
// (half of the file, or of the longest band), "volume" (the main boot region, what
// UDIF stores of it), and but for UDIF "table" (both partition tables).
func (c *image) Damage(ctx context.Context, kind string) error {
	if err := c.same(ctx, "damaging", true); err != nil {
		return err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "damage", Kind: kind}); err != nil {
		return err
	}
	switch {
	case kind == "header":
		return c.damaged(files.RuinHeader(c.dir, c.file, tabled(c.spec.Format)))
	case kind == "truncated":
		return c.damaged(files.Truncate(ctx, c.dir, c.file))
	case kind == "band-missing":
		return c.damaged(files.RemoveBand(ctx, c.dir, c.file))
	case kind == "table":
		return c.overwrite(ctx, func(img container.Image) ([]int64, int, error) {
			return []int64{512, img.Size() - 33*512}, 33 * 512, nil
		})
	case tabled(c.spec.Format):
		return c.damaged(c.ruinStored(ctx))
	}
	return c.overwrite(ctx, func(img container.Image) ([]int64, int, error) {
		p, _, _, err := partition(img)
		return []int64{p.Offset()}, 512, err
	})
}

func (c *image) overwrite(ctx context.Context, where func(container.Image) ([]int64, int, error)) error {
	return c.with(ctx, "damaging", false, func(img container.Image) error {
		list, n, err := where(img)
		if err != nil {
			return err
		}
		for _, off := range list {
			if _, err := img.WriteAt(files.Rubbish(n), off); err != nil {
				return err
			}
		}
		return nil
	})
}

// ruinStored harms what a UDIF image stores of the start of its volume.
func (c *image) ruinStored(ctx context.Context) error {
	start := int64(0)
	err := c.with(ctx, "damaging", true, func(img container.Image) error {
		p, _, _, err := partition(img)
		start = p.Offset()
		return err
	})
	if err != nil {
		return err
	}
	return container.RuinStored(c.dir, c.file, start, passphrase(c.spec))
}

func (c *image) damaged(err error) error {
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.file, gone(err))
	}
	return nil
}
