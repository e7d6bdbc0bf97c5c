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
	"unicode/utf16"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/workload"
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
	// partitionName is what hdiutil calls the partition of an image.
	partitionName = "disk image"
	// labelUnits is the longest label that exFAT allows, in UTF-16 units.
	labelUnits = 11
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
	switch a.Do {
	case "compact":
		if !formatOf(s.Format).Grows() {
			err = refuse("compacting "+s.Format, "use a sparse format, or let attaching trim the image")
		}
	case "resize":
		if formatOf(s.Format).ReadOnly {
			err = refuse("resizing "+s.Format, "convert it to UDRW first")
		}
	case "check":
		if a.Repair && formatOf(s.Format).ReadOnly {
			err = refuse("repairing "+s.Format, "convert it to UDRW first")
		}
	case "convert":
		_, err = normalize(a.To)
	case "damage":
		if !canDamage(s.Format, a.Kind) {
			err = refuse("damage "+a.Kind+" of "+s.Format,
				"the kinds are header, table, volume, truncated, and band-missing for UDSB; images with tables have no table of their own to damage")
		}
	case "stream":
		if a.Kind == workload.CodecLZFSE {
			err = refuse("codec "+a.Kind+", which takes a mounted volume and macOS",
				"use zstd, s2 or gzip, or --engine hdiutil on a Mac")
		}
	}
	return err
}

// canDamage reports whether an image of the format contains what this kind of
// damage changes.
func canDamage(format, kind string) bool {
	switch kind {
	case "header", "truncated", "volume":
		return true
	case "table":
		return !formatOf(format).UDIF
	}
	return kind == "band-missing" && formatOf(format).Folder
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
	f, known := diskimage.FormatNamed(s.Format)
	if !known {
		return s, refuse("format "+s.Format, "this engine makes "+
			strings.Join(diskimage.FormatNames(diskimage.Format.Writable), ", ")+", and converts to UDIF and UDTO")
	}
	s.Format = f.Name
	if e, err := container.ParseEncryption(cmp.Or(s.Encryption, container.EncryptionNone)); err != nil {
		return s, refuse("encryption "+s.Encryption, container.AES128+" or "+container.AES256)
	} else if e != container.EncryptionNone && !f.Encrypted {
		return s, refuse("encrypted "+f.Name+", which has no published layout",
			"use UDSB, UDRW or UDSP, or Apple's diskutil on a Mac")
	}
	if b := s.Backend; b != "" && b != "auto" && b != backend {
		return s, refuse("backend "+b, "use --engine hdiutil, which on Linux needs root: sudo dmgbench …")
	}
	if s.ServedBy != "" && s.ServedBy != "auto" {
		return s, refuse("choosing what serves an image",
			"this engine mounts no volumes: use --engine hdiutil, which on Linux needs root: sudo dmgbench …")
	}
	if !offers(s.Filesystems) {
		return s, refuse("file system "+strings.Join(s.Filesystems, ", "),
			"add exFAT to the file systems that are accepted, or use --engine hdiutil, which on Linux needs root: sudo dmgbench …")
	}
	s.Size = (s.Size + container.SectorSize - 1) / container.SectorSize * container.SectorSize
	if s.BandSize = f.BandSize(s.BandSize); !f.AnyBand {
		s.BandSize = 0 // the format has no choice
	}
	return s, nil
}

func offers(preference []string) bool {
	for _, name := range preference {
		if strings.EqualFold(name, filesystem) {
			return true
		}
	}
	return len(preference) == 0
}

// PeakBytes is the whole size for formats that do not grow. The others
// occupy their live bytes in whole bands, at most their size, and in addition
// four bands that tables and metadata touch, the four chunks of an empty ASIF
// image and its table, and a thousandth for the FAT.
func (*Engine) PeakBytes(s engine.Spec, live int64) int64 {
	s, err := normalize(s)
	f := formatOf(s.Format)
	if err != nil || !f.Grows() {
		return s.Size
	}
	band, fixed := f.BandSize(s.BandSize), int64(0)
	if s.Format == container.ASIF {
		fixed = 5 * band
	}
	bands := (live + band - 1) / band * band
	return min(s.Size, bands) + 4*band + s.Size/1000 + fixed
}

// Create makes name with the extension of the format, its partition table and
// its volume. The same name and spec give the same bytes, except for encrypted
// images, which have random keys.
func (e *Engine) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s, err := normalizeEmpty(s)
	if err == nil {
		s, err = e.withPassphrase(s)
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file := withExtension(name, s.Format)
	if err := container.Create(dir, file, e.containerSpec(name, s)); err != nil {
		return nil, err
	}
	if err := format(dir, file, name, s); err != nil {
		if e := container.Remove(dir, file); e != nil {
			return nil, fmt.Errorf("%w (and %q remains: %w)", err, file, e)
		}
		return nil, err
	}
	c, err := e.openImage(dir, file, s)
	if err != nil {
		return nil, errors.Join(err, container.Remove(dir, file))
	}
	c.mounted = false
	return c, nil
}

// format writes the partition table and the volume of a new container.
func format(dir *hostio.Dir, file, seed string, s engine.Spec) (err error) {
	img, err := container.Open(dir, file, container.OpenOptions{Passphrase: passphraseOf(s)})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, img.Close())
	}()
	// Identifiers come from name and spec, not from chance: images made twice
	// are equal.
	sum := digest(seed, s)
	t, err := gpt.Single(img.Size(), guid(sum[:16]), gpt.BasicData, guid(sum[8:24]), partitionName, gpt.FirstDefault)
	if err != nil {
		return fmt.Errorf("partitioning %q: %w", file, err)
	}
	if err := gpt.Write(img, t); err != nil {
		return fmt.Errorf("partitioning %q: %w", file, err)
	}
	p := t.Partitions[0]
	part, err := blockdev.Section(img, p.Offset(), p.Size())
	if err != nil {
		return err
	}
	err = exfat.Format(part, exfat.FormatOptions{
		Label: label(s.VolumeName), Serial: binary.LittleEndian.Uint32(sum[24:]),
		PartitionOffset: p.Offset(), MaxSize: growth * p.Size(),
	})
	if err != nil {
		return fmt.Errorf("formatting %q: %w", file, err)
	}
	return img.Flush()
}

func digest(seed string, s engine.Spec) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d\x00%s", seed, s.Format, s.Size, s.BandSize,
		s.VolumeName))
}

func (e *Engine) containerSpec(seed string, s engine.Spec) container.Spec {
	sum := digest("container "+seed, s)
	return container.Spec{Format: s.Format, Size: s.Size, BandSize: s.BandSize, ID: [16]byte(sum[:16]),
		Encryption: container.Encryption{Cipher: s.Encryption, Passphrase: passphraseOf(s), Iterations: e.Iterations}}
}

// guid makes b a version 4 identifier as RFC 9562 lays it out, in the mixed
// byte order of the disk.
func guid(b []byte) (g gpt.GUID) {
	copy(g[:], b)
	g[7] = g[7]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

// label shortens a name to what exFAT accepts, at a whole character.
func label(name string) string {
	units := 0
	for i, r := range name {
		units += len(utf16.Encode([]rune{r}))
		if units > labelUnits {
			return name[:i]
		}
	}
	return name
}

// Open opens a container that Create, Convert or Transfer made; name may end in
// the extension.
func (e *Engine) Open(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s, err := normalize(s)
	if err == nil {
		s, err = e.withPassphrase(s)
	}
	if err != nil {
		return nil, err
	}
	return e.openImage(dir, withExtension(name, s.Format), s)
}

// openImage opens a container that exists and checks that it is as in the spec.
func (e *Engine) openImage(dir *hostio.Dir, file string, s engine.Spec) (*image, error) {
	c := &image{engine: e, spec: s, mounted: true}
	c.spec.Passphrase = slices.Clone(passphraseOf(s)) // Remove wipes it
	var err error
	if c.HostFile, err = engine.OpenHostFile(dir, file); err != nil {
		return nil, err
	}
	if err := c.checkEncryption(); err != nil {
		return nil, err
	}
	img, err := container.Open(dir, file, container.OpenOptions{ReadOnly: true, Passphrase: passphraseOf(s)})
	if err != nil {
		return nil, err
	}
	c.spec.Size, c.spec.BandSize = img.Size(), img.BandSize()
	kind, right := img.Format(), hasFormat(img, s.Format)
	if err := img.Close(); err != nil {
		return nil, err
	}
	if !right {
		return nil, fmt.Errorf("opening %q: it is %s, not %s", file, kind, s.Format)
	}
	return c, nil
}

// withExtension adds the extension of the format unless the name has it.
func withExtension(name, format string) string {
	ext := formatOf(format).Extension
	return strings.TrimSuffix(name, ext) + ext
}

func refuse(what, hint string) error {
	return &engine.UnsupportedError{Engine: title, What: what, Hint: hint}
}
