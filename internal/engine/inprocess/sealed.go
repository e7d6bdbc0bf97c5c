package inprocess

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
)

// master is UDTO, the copy of a device from which discs are made. On the host it is
// a UDRW of another name, except that nobody writes to it.
const master = "UDTO"

// sealed says whether images of the format hold for ever what they held when
// they were made: they come of conversions, and are attached read-only.
func sealed(format string) bool {
	switch format {
	case "UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", master:
		return true
	}
	return false
}

// tabled says whether images of the format are UDIF with tables.
func tabled(format string) bool { return sealed(format) && format != master }

// extension of the file names, empty for formats that are not known.
func extension(format string) string {
	switch {
	case format == master:
		return ".cdr"
	case sealed(format):
		return ".dmg"
	}
	return container.Extension(format)
}

// is says whether an open container is of the format. A UDIF image tells by its
// chunks alone how it is compressed, and where none could be compressed, it cannot.
func is(img container.Image, format string) bool {
	if _, udif := img.(container.Tabled); udif {
		return tabled(format)
	}
	return img.Format() == format || format == master && img.Format() == container.UDRW
}

// convert writes what is on src as file, with nothing left of it behind an error.
func (e *Engine) convert(ctx context.Context, src container.Image, dir *hostio.Dir, file, seed string, s engine.Spec) (err error) {
	spec := e.containerSpec(seed, s)
	switch {
	case s.Format == master:
		spec.Format = container.UDRW
	case sealed(s.Format):
		return container.CreateUDIF(ctx, dir, file, src, container.UDIFSpec{Format: s.Format, Encryption: spec.Encryption})
	}
	if err := container.Create(dir, file, spec); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, container.Remove(dir, file))
		}
	}()
	dst, err := container.Open(dir, file, container.OpenOptions{Cache: s.Cache, Passphrase: passphrase(s)})
	if err != nil {
		return err
	}
	err = container.Copy(ctx, dst, src, container.CopyOptions{})
	return errors.Join(err, dst.Close())
}

// sums computes the checksums that the image carries; other images have none.
func (c *image) sums(ctx context.Context) error {
	if !tabled(c.spec.Format) {
		return nil
	}
	list, err := container.VerifyWith(c.dir, c.file, c.unlocked())
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%s: %w", list[0], container.ErrCorrupt)
	}
	return errors.Join(err, ctx.Err())
}
