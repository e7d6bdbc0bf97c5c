package inprocess

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"path"
	"runtime"
	"strings"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
	diskimage "dmgbench/internal/image"
)

// image is one container in a place.
type image struct {
	engine.HostFile
	engine  *Engine
	spec    engine.Spec
	mounted bool        // at least once, as far as is known
	open    *attachment // nil while detached
}

var _ engine.Container = (*image)(nil)

func (c *image) isBundle() bool { return c.spec.Format == container.UDSB }

// Made is what was made, read back from the container.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: filesystem, Size: c.spec.Size, BandSize: c.spec.BandSize, Backend: backend}
}

// checkDetached fails unless the container is the one that was opened, and
// detached.
func (c *image) checkDetached(ctx context.Context, doing string) error {
	if c.open != nil && ctx.Err() == nil {
		return fmt.Errorf("%s %q: it is attached: %w", doing, c.File, container.ErrInUse)
	}
	return c.CheckSame(ctx, doing)
}

// openOptions are the options to open the container.
func (c *image) openOptions(readOnly bool) container.OpenOptions {
	return container.OpenOptions{ReadOnly: readOnly, Cache: c.spec.Cache, Passphrase: passphraseOf(c.spec)}
}

// with opens the detached container for the time of f.
func (c *image) with(ctx context.Context, doing string, readOnly bool, f func(img container.Image) error) (err error) {
	if err := c.checkDetached(ctx, doing); err != nil {
		return err
	}
	img, err := container.Open(c.Dir, c.File, c.openOptions(readOnly))
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
func openPartition(img blockdev.Device) (gpt.Partition, blockdev.Device, []string, error) {
	t, list, err := gpt.Read(img)
	if err != nil {
		return gpt.Partition{}, nil, nil, err
	}
	var warnings []string
	for _, w := range list {
		warnings = append(warnings, string(w))
	}
	if len(t.Partitions) != 1 {
		return gpt.Partition{}, nil, warnings, fmt.Errorf("%d partitions instead of one: %w", len(t.Partitions),
			gpt.ErrInvalid)
	}
	part, err := blockdev.Section(img, t.Partitions[0].Offset(), t.Partitions[0].Size())
	return t.Partitions[0], part, warnings, err
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

// Transfer copies the file, or the bundle's folder with all its files, byte
// for byte, and flushes the copy; holes stay holes. A copy that failed is
// deleted again.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.checkDetached(ctx, "copying"); err != nil {
		return nil, err
	}
	to := withExtension(name, c.spec.Format)
	if err := files.Copy(ctx, c.Dir, c.File, dir, to); err != nil {
		return nil, fmt.Errorf("copying %q: %w", c.File, engine.Gone(err))
	}
	return c.engine.openImage(dir, to, c.spec)
}

// Evict drops the cached pages of the file, or of all files of the bundle.
func (c *image) Evict(ctx context.Context) error {
	if err := c.checkDetached(ctx, "evicting"); err != nil {
		return err
	}
	return engine.Gone(files.Evict(ctx, c.Dir, c.File))
}

// Remove deletes the container, unless something else took its place.
func (c *image) Remove(ctx context.Context) error {
	if err := c.checkDetached(ctx, "removing"); err != nil {
		return err
	}
	err := engine.Gone(container.Remove(c.Dir, c.File))
	if err == nil {
		clear(c.spec.Passphrase)
	}
	return err
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
	if isEncrypted(c.spec) {
		want, _ = container.ParseEncryption(c.spec.Encryption)
	}
	if found != want {
		return fmt.Errorf("opening %q: its encryption is %s, not %s", c.File, found, want)
	}
	return nil
}

// formatOf is the registry's row of a format; an unknown format gives the zero
// row.
func formatOf(name string) diskimage.Format {
	f, _ := diskimage.FormatNamed(name)
	return f
}

// hasFormat reports whether an open container has the format. UDIF images do
// not store their format: their chunks show the compression, unless no chunk
// could be compressed.
func hasFormat(img container.Image, format string) bool {
	if _, udif := img.(container.UDIFImage); udif {
		return formatOf(format).UDIF
	}
	return img.Format() == format || format == diskimage.UDTO && img.Format() == container.UDRW
}

// withPassphrase gives an encrypted spec without a passphrase that of the run,
// and removes it from others.
func (e *Engine) withPassphrase(s engine.Spec) (engine.Spec, error) {
	if !isEncrypted(s) {
		s.Passphrase = nil
		return s, nil
	}
	if len(s.Passphrase) == 0 {
		s.Passphrase = e.Passphrase
	}
	if len(s.Passphrase) == 0 {
		return s, fmt.Errorf("encryption %s without a passphrase: %w", s.Encryption, container.ErrPassphrase)
	}
	return s, nil
}

func isEncrypted(s engine.Spec) bool {
	e, err := container.ParseEncryption(s.Encryption)
	return err == nil && e != container.EncryptionNone
}

// passphraseOf is nil for an image that is not encrypted.
func passphraseOf(s engine.Spec) []byte {
	if !isEncrypted(s) {
		return nil
	}
	return s.Passphrase
}

// OpenWith are command lines for macOS and for Linux with 7-Zip, exfatprogs and
// the kernel's exFAT. Linux has no tool of its own for sparse formats: a line
// makes a raw image of one in the current folder, which the others then open.
// For bundles it needs no tool, for UDSP fstool (crates.io), for ASIF
// dissect.hypervisor (PyPI). On Linux this program's own commands come first:
// they need no root and no other tool.
func (c *image) OpenWith(name string) []string {
	if runtime.GOOS != "linux" {
		return c.openWithOthers(name)
	}
	own := []string{"dmgbench hdiutil attach -readonly " + engine.ShellQuote(name),
		"dmgbench hdiutil ls " + engine.ShellQuote(name)}
	return append(own, c.openWithOthers(name)...)
}

func (c *image) openWithOthers(name string) []string {
	lines := []string{"hdiutil attach -readonly " + engine.ShellQuote(name)}
	raw := strings.TrimSuffix(path.Base(name), container.Extension(c.spec.Format)) + ".img"
	switch c.spec.Format {
	case container.UDSB:
		// The dd of a Mac seeks by blocks only, and knows "1m" where the one of
		// Linux knows "1M".
		block := int64(1) << min(20, bits.TrailingZeros64(uint64(c.spec.BandSize)))
		lines = append(lines, fmt.Sprintf(
			`truncate -s %d %[2]s && for b in %[3]s/bands/*; do dd if="$b" of=%[2]s bs=%[4]d seek=$((0x${b##*/} * %[5]d)) conv=notrunc,sparse status=none; done`,
			c.spec.Size, engine.ShellQuote(raw), engine.ShellQuote(name), block, c.spec.BandSize/block))
		name = raw
	case container.UDSP:
		lines = append(lines, fmt.Sprintf("fstool convert %s %s", engine.ShellQuote(name), engine.ShellQuote(raw)))
		name = raw
	case container.ASIF:
		lines = []string{"diskutil image attach --readOnly " + engine.ShellQuote(name), fmt.Sprintf(
			`python3 -c 'import shutil, sys; from dissect.hypervisor.disk.asif import ASIF; shutil.copyfileobj(ASIF(open(sys.argv[1], "rb")).open(), open(sys.argv[2], "wb"))' %s %s`,
			engine.ShellQuote(name), engine.ShellQuote(raw))}
		name = raw
	}
	at := gpt.FirstDefault * gpt.SectorSize
	return append(lines,
		"7zz l -tGPT "+engine.ShellQuote(name),
		fmt.Sprintf(`loop=$(sudo losetup --find --show --read-only --offset %d %s) && sudo fsck.exfat -n "$loop"; sudo losetup -d "$loop"`, at, engine.ShellQuote(name)),
		fmt.Sprintf("sudo mount -t exfat -o ro,loop,offset=%d %s /mnt", at, engine.ShellQuote(name)))
}
