package inprocess

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/bits"
	"path"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"dmgbench/internal/bench/engine"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// image is one container in a place.
type image struct {
	engine.HostFile
	engine  *Engine
	spec    engine.Spec // as made, with a passphrase of its own if encrypted
	mounted bool        // at least once, as far as is known
	open    *attachment // nil while detached
}

var _ engine.Container = (*image)(nil)

// openImage opens a container that exists and checks that it is as in the spec.
func (e *Engine) openImage(dir *hostio.Dir, file string, s engine.Spec) (*image, error) {
	c := &image{engine: e, spec: s, mounted: true}
	// Remove wipes the passphrase of this image; copies of it are open, too.
	c.spec.Passphrase = slices.Clone(s.Passphrase)
	var err error
	if c.HostFile, err = engine.OpenHostFile(dir, file); err != nil {
		return nil, err
	}
	if err := c.checkEncryption(); err != nil {
		return nil, err
	}
	err = c.with(context.Background(), "opening", true, func(img container.Image) error {
		c.spec.Size, c.spec.BandSize = img.Size(), img.BandSize()
		// UDIF images do not store their format: their chunks show the
		// compression, unless no chunk could be compressed.
		_, isUDIF := img.(container.UDIFImage)
		isRaw := img.Format() == container.UDRW && s.Format == diskimage.UDTO
		if !isRaw && img.Format() != s.Format && !(isUDIF && formatOf(s.Format).UDIF) {
			return fmt.Errorf("opening %q: it is %s, not %s", file, img.Format(), s.Format)
		}
		return nil
	})
	return c, err
}

// checkEncryption fails if the container on the host is not encrypted as in the
// spec.
func (c *image) checkEncryption() error {
	h, err := container.EncryptionOf(c.Dir, c.File)
	if err != nil {
		return engine.Gone(err)
	}
	found, want := container.EncryptionNone, container.EncryptionNone
	if h != nil {
		found = fmt.Sprintf("AES-%d", h.KeyBits)
	}
	if c.spec.Encrypted() {
		want = c.spec.Encryption
	}
	if found != want {
		return fmt.Errorf("opening %q: its encryption is %s, not %s", c.File, found, want)
	}
	return nil
}

// Made is what was made, read back from the container.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: filesystem, Size: c.spec.Size, BandSize: c.spec.BandSize, Backend: backend}
}

// with opens the detached container for the time of f.
func (c *image) with(ctx context.Context, doing string, readOnly bool, f func(img container.Image) error) (err error) {
	if err := c.CheckDetached(ctx, doing); err != nil {
		return err
	}
	img, err := container.Open(c.Dir, c.File,
		container.OpenOptions{ReadOnly: readOnly, Cache: c.spec.Cache, Passphrase: c.spec.Passphrase})
	if err != nil {
		return engine.Gone(err)
	}
	defer func() {
		err = errors.Join(err, engine.Gone(img.Close())) // also after another error
	}()
	return engine.Gone(f(img))
}

// openPartition returns the partition that carries the volume, as a table entry
// and as a device, and the warnings of the partition tables.
func openPartition(img blockdev.Device) (p gpt.Partition, part blockdev.Device, warnings []string, err error) {
	t, list, err := gpt.Read(img)
	if err != nil {
		return p, nil, nil, err
	}
	for _, w := range list {
		warnings = append(warnings, string(w))
	}
	if len(t.Partitions) != 1 {
		return p, nil, warnings, fmt.Errorf("%d partitions instead of one: %w", len(t.Partitions), gpt.ErrInvalid)
	}
	p = t.Partitions[0]
	part, err = blockdev.Section(img, p.Offset(), p.Size())
	return p, part, warnings, err
}

// Usage counts the blocks of the container's files, attached or not.
func (c *image) Usage(ctx context.Context) (engine.Usage, error) {
	if err := c.CheckSame(ctx, "measuring"); err != nil {
		return engine.Usage{}, err
	}
	var u container.Usage
	var err error
	if c.open != nil && c.open.img != nil {
		u, err = c.open.img.Usage()
	} else {
		u, err = container.UsageOf(c.Dir, c.File)
	}
	return engine.Usage(u), engine.Gone(err)
}

// Transfer copies the container and opens the copy.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	to := engine.FileName(name, formatOf(c.spec.Format))
	if err := c.CopyTo(ctx, dir, to); err != nil {
		return nil, err
	}
	return c.engine.openImage(dir, to, c.spec)
}

// Remove deletes the container, unless something else took its place.
func (c *image) Remove(ctx context.Context) error {
	if err := c.CheckDetached(ctx, "removing"); err != nil {
		return err
	}
	err := engine.Gone(container.Remove(c.Dir, c.File))
	if err == nil {
		clear(c.spec.Passphrase)
	}
	return err
}

//go:embed openwith.txt
var openWithText string

// openWith prints the command lines that open an image.
var openWith = template.Must(template.New("openwith").Funcs(template.FuncMap{"quote": engine.ShellQuote}).
	Parse(openWithText))

// OpenWith are command lines for macOS and for Linux with 7-Zip, exfatprogs and
// the kernel's exFAT. Linux has no tool of its own for sparse formats: a line
// makes a raw image of one in the current folder, which the others then open.
func (c *image) OpenWith(name string) []string {
	// The dd of a Mac seeks by blocks only, and knows "1m" where the one of
	// Linux knows "1M".
	block := int64(1) << min(20, bits.TrailingZeros64(uint64(c.spec.BandSize)))
	var b strings.Builder
	err := openWith.Execute(&b, map[string]any{
		"Image": name, "Raw": strings.TrimSuffix(path.Base(name), container.Extension(c.spec.Format)) + ".img",
		"Format": c.spec.Format, "Size": c.spec.Size, "Block": block, "Blocks": c.spec.BandSize / block,
		"Offset": gpt.FirstDefault * gpt.SectorSize, "Linux": runtime.GOOS == "linux",
	})
	if err != nil {
		return nil // the template cannot fail
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}
