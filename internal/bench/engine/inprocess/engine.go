// Package inprocess is the engine that needs no tool of the system and no
// privileges: containers of package container, a GUID partition table with one
// partition at 1 MiB, and an exFAT volume that this process reads and writes.
// The images open on a Mac, on Linux and on Windows.
//
// What it cannot do is an [engine.UnsupportedError]: formats other than UDRW,
// UDSB, UDSP and ASIF, encrypted ASIF, file systems other than exFAT. Figures
// measured with it do not hold for Apple's driver or for APFS.
package inprocess

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

const (
	title      = "in-process"
	filesystem = "exFAT"
	backend    = "inprocess"
	// version changes when the same spec would make another image.
	version = "1"
	// growth is how many times its first size a volume can grow to: its FAT is
	// made that long.
	growth = 4
)

// Engine makes containers in this process.
type Engine struct {
	// Now gives the times of files on volumes; nil means that all are
	// 1980-01-01.
	Now func() time.Time
	// Passphrase encrypts images that have none in their spec.
	Passphrase []byte
	// Iterations of the key derivation of images that are made, at least 1000;
	// 0 means crypt.DefaultIterations. Tests use few: the derivation would take
	// most of their time.
	Iterations int
}

var _ engine.Engine = (*Engine)(nil)

// New returns an engine with now as the clock for files on volumes; nil is
// allowed.
func New(now func() time.Time) *Engine { return &Engine{Now: now} }

// Info names the engine.
func (*Engine) Info() engine.Info {
	return engine.Info{Name: "inprocess", Vendor: "dmgbench", Version: version, Title: title}
}

// Supports refuses what this engine cannot make, with a hint at what it can
// make.
func (*Engine) Supports(s engine.Spec) error {
	_, err := normalizeEmpty(s)
	return err
}

// Allows refuses actions that an image of the spec has no use for, with a hint.
func (*Engine) Allows(s engine.Spec, a engine.Action) error {
	s, err := normalize(s)
	if err != nil {
		return err
	}
	f := formatOf(s.Format)
	switch {
	case a.Do == "compact" && !f.Grows():
		return refuse("compacting "+f.Name, "use a sparse format, or let attaching trim the image")
	case a.Do == "resize" && f.ReadOnly:
		return refuse("resizing "+f.Name, hintConvert)
	case a.Do == "check" && a.Repair && f.ReadOnly:
		return refuse("repairing "+f.Name, hintConvert)
	case a.Do == "convert":
		_, err = normalize(a.To)
		return err
	case a.Do == "damage" && !engine.CanDamage(f, a.Kind, a.Band):
		return refuse("damage "+a.Kind+" of "+f.Name, engine.DamageHint)
	case a.Do == "stream" && a.Kind == workload.CodecLZFSE:
		return refuse("codec "+a.Kind+", which takes a mounted volume and macOS",
			"use zstd, s2 or gzip, or --engine hdiutil on a Mac")
	}
	return nil
}

// Hints of several refusals.
const (
	hintConvert = "convert it to UDRW first"
	hintHdiutil = "use --engine hdiutil, which on Linux needs root: sudo dmgbench …"
)

// formatOf is the registry's row of a format; an unknown format gives the zero
// row.
func formatOf(name string) diskimage.Format {
	f, _ := diskimage.FormatNamed(name)
	return f
}

// normalizeEmpty is normalize for an image that is made empty.
func normalizeEmpty(s engine.Spec) (engine.Spec, error) {
	s, err := normalize(s)
	if err == nil && formatOf(s.Format).ReadOnly {
		err = refuse("making an empty "+s.Format+" image", "make a UDRW image and convert it")
	}
	return s, err
}

// normalize returns the spec with format, size and band size as they are made,
// or refuses it.
func normalize(s engine.Spec) (engine.Spec, error) {
	f := formatOf(s.Format)
	acceptsExFAT := slices.ContainsFunc(s.Filesystems, func(n string) bool { return strings.EqualFold(n, filesystem) })
	switch {
	case f.Name == "":
		return s, refuse("format "+s.Format, "this engine makes "+
			strings.Join(diskimage.FormatNames(diskimage.Format.Writable), ", ")+", and converts to UDIF and UDTO")
	case s.Encrypted() && !slices.Contains(diskimage.Encryptions, s.Encryption):
		return s, refuse("encryption "+s.Encryption, container.AES128+" or "+container.AES256)
	case s.Encrypted() && !f.Encrypted:
		return s, refuse("encrypted "+f.Name+", which has no published layout",
			"use UDSB, UDRW or UDSP, or Apple's diskutil on a Mac")
	case s.Backend != "" && s.Backend != "auto" && s.Backend != backend:
		return s, refuse("backend "+s.Backend, hintHdiutil)
	case s.ServedBy != "" && s.ServedBy != "auto":
		return s, refuse("choosing what serves an image", "this engine mounts no volumes: "+hintHdiutil)
	case len(s.Filesystems) > 0 && !acceptsExFAT:
		return s, refuse("file system "+strings.Join(s.Filesystems, ", "),
			"add exFAT to the file systems that are accepted, or "+hintHdiutil)
	}
	s.Format, s.Size = f.Name, units.RoundUp(s.Size, container.SectorSize)
	if s.BandSize = f.BandSize(s.BandSize); !f.AnyBand {
		s.BandSize = 0 // the format has no choice
	}
	return s, nil
}

// withPassphrase adds the passphrase of the engine to a normal spec that has
// none.
func (e *Engine) withPassphrase(s engine.Spec, err error) (engine.Spec, error) {
	if err != nil {
		return s, err
	}
	return s.WithPassphrase(e.Passphrase)
}

// Create makes name with the extension of the format, its partition table and
// its volume. The same name and spec give the same bytes, except for encrypted
// images, which have random keys.
func (e *Engine) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s, err := e.withPassphrase(normalizeEmpty(s))
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	c, err := e.build(dir, name, s, "", func(img container.Image) error { return format(img, name, s) })
	if err != nil {
		return nil, err
	}
	c.mounted = false
	return c, nil
}

// build makes a container, fills and opens it. After an error it is removed:
// Open would take a file that is not yet a whole image for one.
func (e *Engine) build(dir *hostio.Dir, name string, s engine.Spec, cache hostio.CacheMode,
	fill func(img container.Image) error) (c *image, err error) {
	file, spec := engine.FileName(name, formatOf(s.Format)), e.containerSpec(name, s)
	if s.Format == diskimage.UDTO {
		spec.Format = container.UDRW
	}
	if err := container.Create(dir, file, spec); err != nil {
		return nil, err
	}
	img, err := container.Open(dir, file, container.OpenOptions{Cache: cache, Passphrase: s.Passphrase})
	// Close reports writes that failed later, as the host's cache may delay them.
	if err == nil {
		err = errors.Join(fill(img), img.Close())
	}
	if err == nil {
		c, err = e.openImage(dir, file, s)
	}
	if err != nil {
		return nil, errors.Join(err, container.Remove(dir, file))
	}
	return c, nil
}

// format writes the partition table and the volume of a new container.
func format(img container.Image, name string, s engine.Spec) error {
	// Identifiers come from name and spec, not from chance: images made twice
	// are equal.
	sum := digest(name, s)
	part, offset, err := gpt.WriteSingle(img, gpt.GUID(sum[:16]), gpt.BasicData, gpt.GUID(sum[8:24]), gpt.FirstDefault)
	if err == nil {
		err = exfat.Format(part, exfat.FormatOptions{
			Label: exfat.CutLabel(s.VolumeName), Serial: binary.LittleEndian.Uint32(sum[24:]),
			PartitionOffset: offset, MaxSize: growth * part.Size(),
		})
	}
	if err != nil {
		return fmt.Errorf("formatting %q: %w", name, err)
	}
	return img.Flush()
}

// digest identifies what an image is made of.
func digest(seed string, s engine.Spec) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d\x00%s", seed, s.Format, s.Size, s.BandSize,
		s.VolumeName))
}

// containerSpec is what package container makes of a spec. Its identifier, like
// those of format, comes from name and spec.
func (e *Engine) containerSpec(seed string, s engine.Spec) container.Spec {
	sum := digest("container "+seed, s)
	return container.Spec{Format: s.Format, Size: s.Size, BandSize: s.BandSize, ID: [16]byte(sum[:16]),
		Encryption: container.Encryption{Cipher: s.Encryption, Passphrase: s.Passphrase, Iterations: e.Iterations}}
}

// Open opens a container that Create, Convert or Transfer made; name may end in
// the extension.
func (e *Engine) Open(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s, err := e.withPassphrase(normalize(s))
	if err != nil {
		return nil, err
	}
	return e.openImage(dir, engine.FileName(name, formatOf(s.Format)), s)
}

// refuse is the error for something that this engine cannot do, with a hint.
func refuse(what, hint string) error {
	return &engine.UnsupportedError{Engine: title, What: what, Hint: hint}
}
