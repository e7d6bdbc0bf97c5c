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
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
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
	h, err := container.EncryptionOf(dir, file)
	if err != nil {
		return nil, engine.Gone(err)
	}
	found, want := container.EncryptionNone, container.EncryptionNone
	if h != nil {
		found = fmt.Sprintf("AES-%d", h.KeyBits)
	}
	if s.Encrypted() {
		want = s.Encryption
	}
	if found != want {
		return nil, fmt.Errorf("opening %q: its encryption is %s, not %s", file, found, want)
	}
	return c, c.use(true, func(img container.Image) error {
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
}

// Made is what was made, read back from the container.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: filesystem, Size: c.spec.Size, BandSize: c.spec.BandSize, Backend: backend}
}

// with is use of a container that has to be detached; the error names the
// action and the file.
func (c *image) with(ctx context.Context, doing string, readOnly bool, f func(img container.Image) error) error {
	if err := c.CheckDetached(ctx, doing); err != nil {
		return err
	}
	if err := c.use(readOnly, f); err != nil {
		return fmt.Errorf("%s %q: %w", doing, c.File, err)
	}
	return nil
}

// use opens the detached container for the time of f.
func (c *image) use(readOnly bool, f func(img container.Image) error) (err error) {
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
	t, warnings, err := gpt.Read(img)
	if err != nil {
		return p, nil, nil, err
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
	if c.open != nil {
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

// Resize changes the length of device, partition and volume to size bytes,
// rounded up to a sector. Growing goes from the outside in, shrinking from the
// inside out, so that no layer ever reaches beyond the one below.
func (c *image) Resize(ctx context.Context, size int64) (engine.Report, error) {
	if err := c.engine.Allows(c.spec, engine.Action{Do: "resize"}); err != nil {
		return engine.Report{}, err
	}
	size = units.RoundUp(size, container.SectorSize)
	err := c.with(ctx, "resizing", false, func(img container.Image) error {
		old, _, _, err := openPartition(img)
		if err != nil {
			return err
		}
		t, err := gpt.Single(size, gpt.GUID{1}, gpt.BasicData, gpt.GUID{2}, "", old.First)
		if err != nil {
			return err
		}
		end := t.Partitions[0].Size()
		device := func() error { return img.Resize(size) }
		table := func() error { _, err := gpt.Resize(img, size, old.Index); return err }
		volume := func() error {
			return withVolume(img, exfat.MountOptions{Now: c.engine.Now},
				func(v *exfat.Volume) error { return v.Resize(end) })
		}
		steps := []func() error{device, table, volume}
		if size < img.Size() {
			slices.Reverse(steps)
		} else {
			err = checkRoom(img, end)
		}
		for i := 0; i < len(steps) && err == nil; i++ {
			err = steps[i]()
		}
		return err
	})
	if err == nil {
		c.spec.Size = size
	}
	return engine.Report{}, err
}

// checkRoom checks that the FAT of the volume has room for a size in bytes:
// later the device would already have grown.
func checkRoom(img container.Image, size int64) error {
	return withVolume(img, exfat.MountOptions{ReadOnly: true}, func(v *exfat.Volume) error {
		if limit := v.MaxSize(); size > limit {
			return fmt.Errorf("growing the volume to %d bytes, at most %d: %w", size, limit, exfat.ErrFATTooSmall)
		}
		return nil
	})
}

// withVolume mounts the volume of an image for the time of f.
func withVolume(img container.Image, o exfat.MountOptions, f func(v *exfat.Volume) error) error {
	_, part, _, err := openPartition(img)
	if err != nil {
		return err
	}
	vol, err := exfat.Mount(part, o)
	if err != nil {
		return err
	}
	return errors.Join(f(vol), vol.Unmount())
}

// Compact deletes the bands without data of the volume, as `hdiutil compact`
// does; UDRW has no bands. Free parts of bands in use stay allocated: Trim
// frees those.
func (c *image) Compact(ctx context.Context, _ engine.CompactOptions) (r engine.Report, err error) {
	if err := c.engine.Allows(c.spec, engine.Action{Do: "compact"}); err != nil {
		return r, err
	}
	err = c.with(ctx, "compacting", false, func(img container.Image) error {
		p, part, _, err := openPartition(img)
		if err != nil {
			return err
		}
		free, _, err := exfat.FreeSpace(part, p.Offset())
		if err != nil {
			return err
		}
		used := free.Used
		if free == nil { // not unmounted cleanly, data of files may be marked free in the bitmap: delete only zeros
			used = nil
		}
		r.Freed, err = img.Compact(used)
		return err
	})
	return r, err
}

// Convert makes another container of the other (or the same) format with the
// same device content. Parts that are zero are left out. Read-only formats are
// compressed on every processor.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s.Size = c.spec.Size
	s, err := c.engine.withPassphrase(normalize(s))
	if err != nil {
		return nil, err
	}
	f := formatOf(s.Format)
	var made *image
	err = c.with(ctx, "converting", true, func(src container.Image) (err error) {
		if !f.ReadOnly || f.Name == diskimage.UDTO {
			made, err = c.engine.build(dir, name, s, s.Cache, func(dst container.Image) error {
				return container.Copy(ctx, dst, src, nil)
			})
			return err
		}
		file := engine.FileName(name, f)
		err = container.CreateUDIF(ctx, dir, file, src,
			container.UDIFSpec{Format: s.Format, Encryption: c.engine.containerSpec(name, s).Encryption})
		if err == nil {
			made, err = c.engine.openImage(dir, file, s)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Damage damages the container on purpose: "header" (the file's first sectors,
// the trailer of UDIF, the bundle's Info.plist), "band-missing" (a band in the
// middle), "truncated" (half of the file, or of the longest band), "volume"
// (the main boot region, what UDIF stores of it), but for UDIF "table" (both
// partition tables), and the kinds "tail" and "flipped" of [container.Damage].
func (c *image) Damage(ctx context.Context, d engine.Damage) error {
	if err := c.CheckDetached(ctx, "damaging"); err != nil {
		return err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "damage", Kind: d.Kind, Band: d.Band}); err != nil {
		return err
	}
	firstSector := func(img container.Image) (offsets []int64, n int, err error) {
		p, _, _, err := openPartition(img)
		return []int64{p.Offset()}, container.SectorSize, err
	}
	err := container.Corrupt(c.Dir, c.File, container.Corruption{Damage: d, UDIF: formatOf(c.spec.Format).UDIF,
		Passphrase: c.spec.Passphrase, Places: firstSector})
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.File, engine.Gone(err))
	}
	return nil
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
	_ = openWith.Execute(&b, map[string]any{ // tests execute all of the template: it cannot fail
		"Image": name, "Raw": strings.TrimSuffix(path.Base(name), container.Extension(c.spec.Format)) + ".img",
		"Format": c.spec.Format, "Size": c.spec.Size, "Block": block, "Blocks": c.spec.BandSize / block,
		"Offset": gpt.FirstDefault * gpt.SectorSize, "Linux": runtime.GOOS == "linux",
	})
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// Check checks the container and its partition table ("container"), the volume
// ("volume"), or both (""). The container may be attached without a mount, as
// when fsck runs on the device of a Mac's image.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (r engine.Report, err error) {
	unmounted := c.open != nil && c.open.vol == nil
	check := c.CheckDetached
	if unmounted {
		check = c.CheckSame
	}
	if err := check(ctx, "checking"); err != nil {
		return r, err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "check", Repair: o.Repair}); err != nil {
		return r, err
	}
	// findDamage is inspect with an error about the content as a finding.
	findDamage := func(img container.Image) error {
		err := inspect(img, o, &r)
		if gpt.IsUnusable(err) || errors.Is(err, blockdev.ErrOutOfRange) || errors.Is(err, exfat.ErrNotExFAT) ||
			errors.Is(err, exfat.ErrCorrupt) {
			r.Find(err.Error())
			return nil
		}
		return err
	}
	if o.What != "volume" {
		err = c.verify(o.Repair && !unmounted, &r)
	}
	switch {
	case err != nil:
	case unmounted:
		err = errors.Join(findDamage(c.open.img), c.open.img.Flush())
	default:
		err = c.use(!o.Repair, findDamage)
		if errors.Is(err, container.ErrCorrupt) {
			r.Find(err.Error())
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("checking %q: %w", c.File, engine.Gone(err))
	}
	return r, err
}

// verify checks the container's structure, and repairs it unless it is
// attached.
func (c *image) verify(repair bool, r *engine.Report) error {
	o := container.OpenOptions{Passphrase: c.spec.Passphrase}
	list, err := container.Verify(c.Dir, c.File, o)
	if err != nil {
		return err
	}
	// Only lost property lists of bundles can be repaired, from their copies. What
	// is fatal stays a finding.
	left := list
	if repair && len(list) > 0 && !slices.ContainsFunc(list, func(f container.Finding) bool { return f.Fatal }) {
		if err := container.Repair(c.Dir, c.File, o); err != nil {
			return err
		}
		if left, err = container.Verify(c.Dir, c.File, o); err != nil {
			return err
		}
	}
	for _, f := range list {
		addFinding(r, f.String(), !slices.Contains(left, f))
	}
	return nil
}

// addFinding adds a finding, or a warning that it was repaired.
func addFinding(r *engine.Report, text string, repaired bool) {
	if repaired {
		r.Warn("repaired: %s", text)
	} else {
		r.Find(text)
	}
}

// inspect checks the partition table and the exFAT volume of an open image. It
// checks the volume only if a table leads to it.
func inspect(img container.Image, o engine.CheckOptions, r *engine.Report) error {
	t, list, err := gpt.Read(img)
	switch {
	case err != nil || !o.Repair:
	case slices.Contains(list, gpt.WarnBackupMoved): // the second table belongs at the end of the device
		_, err = gpt.Resize(img, img.Size(), -1)
	case len(list) > 0:
		err = gpt.Write(img, t)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		addFinding(r, string(w), o.Repair)
	}
	if o.What == "container" {
		return nil
	}
	_, part, _, err := openPartition(img)
	if err != nil {
		return err
	}
	found, err := exfat.Check(part, exfat.CheckOptions{Repair: o.Repair})
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		if f.Repaired { // which its text says
			r.Warn("%s", f)
		} else {
			r.Find(f.String())
		}
	}
	if found.More > 0 {
		r.Find(fmt.Sprintf("%d more", found.More))
	}
	for key, n := range map[string]any{
		"files": found.Files, "folders": found.Dirs, "used": found.Used, "free": found.Free,
	} {
		r.Note(key, fmt.Sprint(n))
	}
	return nil
}
