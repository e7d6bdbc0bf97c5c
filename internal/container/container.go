// Package container keeps disk image containers on the host and offers them
// as block devices: UDRW, a plain sector copy in one file; UDSB, a bundle of
// band files; UDSP, a sparse image in one file that grows by bands; and ASIF,
// the sparse format of macOS 26. The layouts are those of Apple's own files.
//
// [Create] makes a container, [Open] finds out what one is and opens it as an
// [Image], [UsageOf] and [Verify] look at a closed one, [Remove] deletes one.
// What lies inside the device (partition table, volume) is the business of
// packages gpt and exfat. Host files are reached through package hostio only.
//
// # What it refuses
//
// Formats it cannot serve are an [*UnsupportedError] that names what was
// found, never an image opened as something else: segmented UDIF, encrypted
// ASIF, writing to UDIF, to encryption of version 1 and to backing-store
// version 2, formats with versions, flags or codes that are not known. A
// passphrase that is wrong or missing is [ErrPassphrase]. A container
// that somebody else has open for writing is [ErrInUse]. A container that was
// deleted, renamed or replaced while open makes Flush, Close, Resize, Compact
// and Usage fail with hostio.ErrReplaced; what took its place is not touched.
//
// UDRW and UDTO are the bare sectors of the device; a sparse bundle keeps bytes
// [N·band-size, (N+1)·band-size) in bands/<N in lower-case hexadecimal>;
// docs/formats.md describes the other two, and what is known of each.
package container

import (
	"errors"
	"fmt"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// The formats that Create makes.
const (
	UDRW = image.UDRW // read-write image, plain sectors in one file
	UDSB = image.UDSB // sparse bundle
	UDSP = image.UDSP // sparse image
	ASIF = image.ASIF // Apple sparse image format
)

// SectorSize is the unit of sizes and band sizes, in bytes.
const SectorSize = image.SectorSize

// Image is an open container as a block device. Reads, writes and discards
// are safe for concurrent use, and two of them never wait for each other's
// data. Offsets, lengths and sizes are bytes.
//
// Discard makes the range read as zeros and gives its space back; where the
// host cannot punch holes it returns hostio.ErrUnsupported and the content
// stays. A Flush that failed once fails for ever: the kernel has then thrown
// away writes that it had accepted.
type Image interface {
	blockdev.Device
	blockdev.Evicter
	// Close flushes, unlocks and closes. Later calls return fs.ErrClosed.
	Close() error
	// Usage tells what the container takes on the host.
	Usage() (Usage, error)
	// Compact deletes bands that used reports to hold nothing (nil: bands
	// that are all zeros) and returns the allocated bytes given back. Nothing
	// may allocate in the volume meanwhile. UDSP and ASIF move what is left at
	// the end of the file down and cut it; other calls wait. UDRW has nothing to compact:
	// an [*UnsupportedError], as from Apple's tools.
	Compact(used func(off, n int64) bool) (reclaimed int64, err error)
	// Resize changes the length of the device. What lies beyond a smaller
	// size is lost; new space reads as zeros.
	Resize(newSize int64) error
	// Cache returns the achieved cache mode of the host files.
	Cache() hostio.CacheMode
	// Format returns the four-letter name.
	Format() string
	// BandSize returns the bytes of a band (of a chunk, for ASIF), 0 for
	// formats without bands.
	BandSize() int64
}

// Warner is implemented by images that may have been opened in spite of
// something that whoever attaches them should know.
type Warner interface{ Warnings() []string }

// Resident is implemented by images that keep the device in another order than
// the host's file.
type Resident interface {
	// Resident returns the share, 0 to 1, of n bytes from off of the device that
	// the host's cache holds. What has no place in the file is in no cache.
	Resident(off, n int64) (share float64, err error)
}

// Usage is what a container takes on the host, in bytes of its files.
type Usage struct {
	Allocated int64 // from st_blocks, as `du` counts
	Apparent  int64 // the sum of the file lengths
	Sparse    bool  // files have holes: allocated is below apparent by more than rounding
	Bands     int   // band files in the bundle; bands or chunks of the device in a sparse image
	BandsFull int   // of these, as long as a band can be and without holes; in a sparse image all or none
}

func (u *Usage) add(st hostio.Stat) {
	u.Allocated += st.Allocated
	u.Apparent += st.Size
}

// settle decides about Sparse. File systems keep a few blocks of their own
// per file, and compress or inline small ones: below 64 KiB nothing is said.
func (u *Usage) settle() {
	u.Sparse = u.Apparent-u.Allocated >= 64<<10
}

// Spec says what Create makes.
type Spec struct {
	Format   string // UDRW, UDSB, UDSP or ASIF
	Size     int64  // of the device, bytes, a multiple of 512
	BandSize int64  // UDSB, UDSP: as [image.Spec] has it
	// ID is the identifier that ASIF images carry; zero means a random one.
	ID [16]byte
	// Encryption of the content; of ASIF its layout is not known, which is an
	// [*UnsupportedError].
	Encryption Encryption
}

// OpenOptions says how Open opens a container. The zero value opens it for
// reading and writing, buffered, with flushes down to the medium.
type OpenOptions struct {
	ReadOnly bool
	Cache    hostio.CacheMode // of the container's or the bands' files
	Sync     hostio.SyncMode  // how far Flush goes; empty means hostio.SyncFull
	// Hold keeps writers away from a container that is opened read-only, until it
	// is closed: Open for writing and Remove return [ErrInUse] meanwhile, and so
	// does this Open while a writer has the container.
	Hold bool
	// Passphrase opens an encrypted container, and is not used on others. It is
	// neither kept nor changed: the caller wipes it.
	Passphrase []byte
	// Keys, from [UnwrapKeys], open an encrypted container in place of the
	// passphrase and without its derivation. They too are the caller's to wipe.
	Keys *crypt.Keys
}

func (o OpenOptions) sync() hostio.SyncMode {
	if o.Sync == "" {
		return hostio.SyncFull
	}
	return o.Sync
}

// Conditions that callers branch on.
var (
	// ErrInUse is returned by Open for writing and by Remove when another
	// process, or another Open in this one, has the container open for writing.
	ErrInUse = errors.New("container is in use")
	// ErrReadOnly is returned by everything that would change an image
	// opened read-only.
	ErrReadOnly = errors.New("image is open read-only")
	// ErrPassphrase is returned for encrypted containers when the passphrase is
	// wrong or missing.
	ErrPassphrase = crypt.ErrPassphrase
	// ErrCorrupt is returned for containers whose structure contradicts itself.
	ErrCorrupt = errors.New("container is damaged")
	// ErrData is returned where the structure of a container is right and the
	// data in it is not: chunks that cannot be decoded, checksums that differ.
	ErrData = fmt.Errorf("image data corrupted: %w", ErrCorrupt)
)

// UnsupportedError says that a container or an operation on it is known, but
// not served. It matches errors.ErrUnsupported.
type UnsupportedError struct {
	Path  string // of the container
	Found string // what it is, e.g. "encrypted image (encrcdsa v2)"
	Doing string // what was asked, e.g. "opening"
	// Foreign says that it is the image of another program.
	Foreign bool
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s %q: not supported for this kind of container: %s", e.Doing, e.Path, e.Found)
}

// Is makes the error match errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Extension returns the file name extension of a format, such as ".dmg"; empty for formats that Create does not make.
func Extension(format string) string {
	f, _ := image.FormatNamed(format)
	if f.ReadOnly {
		return ""
	}
	return f.Extension
}
