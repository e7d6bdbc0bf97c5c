package image

import (
	"errors"
	"fmt"
	"strings"

	"dmgbench/internal/system/units"
)

// SectorSize is the unit of image sizes and band sizes, in bytes.
const SectorSize = 512

// MaxSize is the largest device, in bytes: below it, sums of offsets and sizes
// cannot overflow.
const MaxSize = 1 << 60

// Limits of the band size in bytes, those of hdiutil(1): "sparse-band-size:
// [2048, 16777216] sectors".
const (
	MinBandSize = 2048 * SectorSize     // 1 MiB
	MaxBandSize = 16777216 * SectorSize // 8 GiB
)

// NotEncrypted is the value of Encryption for images that are not encrypted.
const NotEncrypted = "none"

// Encryptions are the values that Encryption can have.
var Encryptions = []string{NotEncrypted, "AES-128", "AES-256"}

// ErrUnknownFormat means that a spec names a format that is in no row of
// [Formats].
var ErrUnknownFormat = errors.New("unknown image format")

// Spec describes an image.
type Spec struct {
	// Format: name of a row of [Formats]
	Format string
	// Size: of the device in bytes, a multiple of [SectorSize]
	Size int64
	// BandSize: bytes, 0: the default of the format
	BandSize int64
}

// Validate reports the first value that no container of the format can have.
func (s Spec) Validate() error {
	f, ok := FormatNamed(s.Format)
	if !ok {
		return fmt.Errorf("%w %.20q: want one of %s", ErrUnknownFormat, s.Format,
			strings.Join(FormatNames(Format.Writable), ", "))
	}
	if err := CheckSize(s.Size); err != nil {
		return err
	}
	switch {
	case s.Size == 0:
		return errors.New("size is 0")
	case s.BandSize == 0:
	case f.Unit == 0:
		return fmt.Errorf("band size of %d bytes: %s has no bands", s.BandSize, f.Name)
	case !f.AnyBand:
		return fmt.Errorf("band size of %d bytes: %s always has chunks of %d", s.BandSize, f.Name, f.Unit)
	default:
		if err := CheckBandSize(s.BandSize); err != nil {
			return err
		}
	}
	if unit := f.BandSize(s.BandSize); f.MaxUnits > 0 && (s.Size-1)/unit >= f.MaxUnits {
		return fmt.Errorf("size of %d bytes: %s has at most %d units of %d bytes", s.Size, f.Name, f.MaxUnits, unit)
	}
	return nil
}

// CheckSize checks the size of a device, in bytes; 0 passes.
func CheckSize(n int64) error {
	if n < 0 || n > MaxSize || n%SectorSize != 0 {
		return fmt.Errorf("size of %d bytes, want a multiple of %d up to %d", n, SectorSize, int64(MaxSize))
	}
	return nil
}

// CheckBandSize checks the size of a band, in bytes. The part of the error
// after "; want " names what is accepted.
func CheckBandSize(n int64) error {
	size := units.Bytes(n)
	switch {
	case n < MinBandSize || n > MaxBandSize:
		return fmt.Errorf("a band of %s is not possible; want a multiple of %d B from %s to %s", size, SectorSize,
			units.Bytes(MinBandSize), units.Bytes(MaxBandSize))
	case n%SectorSize != 0:
		low := n / SectorSize * SectorSize
		return fmt.Errorf("a band of %s is not a multiple of %d B; want %d B or %d B, the neighbours", size, SectorSize,
			low, low+SectorSize)
	}
	return nil
}
