package container

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// Damage is a way to damage a closed container.
type Damage struct {
	// Kind is what is damaged: "header" (a bundle's Info.plist, the first 1 KiB
	// of a file, the trailer of a UDIF image), "truncated" (half of the file,
	// or of a bundle's longest band, is cut off), "tail" (the same with the last
	// 1 MiB), "band-missing" (the band in the middle of a bundle's list is
	// deleted), "flipped" (single bytes of the files), "table" (both GUID
	// partition tables), "volume" (what [Corruption].Places returns).
	Kind  string
	Bytes int // flipped: number of bytes that get another value, at least 1
	// Band: flipped: only in the band with this number among the stored ones,
	// from 1; 0: in all files of the container.
	Band int
	Draw func(n int64) int64 // flipped: draws a number from 0 to n-1, for the places
}

// Corruption is damage together with what is known of the container.
type Corruption struct {
	Damage
	UDIF bool // the container is a UDIF image: of its device only stored data can be damaged
	// Passphrase opens an encrypted container for "table" and "volume". It
	// stays the caller's.
	Passphrase []byte
	// Places returns what "volume" overwrites: n bytes at each offset of the
	// device. Of a UDIF image the stored data at or after the first offset is
	// damaged, so that its checksum differs.
	Places func(img Image) (offsets []int64, n int, err error)
}

// Corrupt damages a container. A kind that the container does
// not have is errors.ErrUnsupported.
func Corrupt(dir *hostio.Dir, name string, c Corruption) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	switch c.Kind {
	case "header":
		switch {
		case fi.IsDir():
			return dir.WriteFileAtomic(path.Join(name, "Info.plist"), garbage(256), 0o644)
		case c.UDIF:
			return overwrite(dir, name, max(0, fi.Size()-SectorSize), min(SectorSize, fi.Size()))
		}
		return overwrite(dir, name, 0, min(1024, fi.Size()))
	case "truncated", "tail", "band-missing":
		return corruptFile(dir, name, fi, c.Kind)
	case "flipped":
		return flipBytes(dir, name, c.Damage)
	case "table", "volume":
		return corruptDevice(dir, name, c)
	}
	return fmt.Errorf("corrupting %q: kind %q: %w", name, c.Kind, errors.ErrUnsupported)
}

// garbage is n bytes that no known structure starts with.
func garbage(n int64) []byte { return bytes.Repeat([]byte{0xdb}, int(n)) }

// overwrite overwrites n bytes of a file.
func overwrite(dir *hostio.Dir, name string, at, n int64) error {
	return changeFile(dir, name, func(f *hostio.File) error {
		_, err := f.WriteAt(garbage(n), at)
		return err
	})
}

// changeFile opens a file for writing and calls change.
func changeFile(dir *hostio.Dir, name string, change func(*hostio.File) error) error {
	f, err := dir.Open(name, hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	return errors.Join(change(f), f.Close())
}

// tailBytes is what "tail" cuts off: more than the tables at the end of an image,
// less than a band.
const tailBytes = 1 << 20

// corruptFile is the kinds "truncated", "tail" and "band-missing". It cuts at a
// whole sector.
func corruptFile(dir *hostio.Dir, name string, fi fs.FileInfo, kind string) error {
	var bands []string
	longest, size := name, int64(0)
	if !fi.IsDir() {
		size = fi.Size()
	}
	err := files.Walk(context.Background(), dir, name, func(inside string, fi fs.FileInfo) error {
		if _, ok := files.Band(inside); ok {
			bands = append(bands, path.Join(name, inside))
			if fi.Size() > size || len(bands) == 1 {
				longest, size = path.Join(name, inside), fi.Size()
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(bands) == 0 && (fi.IsDir() || kind == "band-missing"):
		return fmt.Errorf("looking for bands of %q: it has none: %w", name, errors.ErrUnsupported)
	case kind == "band-missing":
		return dir.Remove(bands[len(bands)/2])
	}
	left := size / 2
	if kind == "tail" {
		left = max(size-tailBytes, 0)
	}
	left -= left % SectorSize
	return changeFile(dir, longest, func(f *hostio.File) error { return f.Truncate(left) })
}

// stretch is a part of a file that is stored, from byte at on.
type stretch struct {
	file  string
	at, n int64
}

// flipBytes gives bytes at drawn places another value. It draws among the blocks
// of 64 KiB that are not zeros: the others are holes on most hosts, and a fault of
// the medium cannot change what is not stored.
func flipBytes(dir *hostio.Dir, name string, d Damage) error {
	stored, total, err := storedParts(dir, name, d.Band)
	if err == nil && total < int64(d.Bytes) {
		err = fmt.Errorf("it stores %d bytes, fewer than %d", total, d.Bytes)
	}
	if err != nil {
		return fmt.Errorf("flipping bytes of %q: %w", name, err)
	}
	for taken := map[int64]bool{}; len(taken) < d.Bytes; {
		place := d.Draw(total)
		if taken[place] { // another change would undo the first
			continue
		}
		taken[place] = true
		i := 0
		for ; place >= stored[i].n; i++ {
			place -= stored[i].n
		}
		err := changeFile(dir, stored[i].file, func(f *hostio.File) error {
			b := make([]byte, 1)
			if _, err := f.ReadAt(b, stored[i].at+place); err != nil {
				return err
			}
			b[0] ^= byte(1 + d.Draw(255))
			_, err := f.WriteAt(b, stored[i].at+place)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// storedParts are the parts of a container's files that are not zeros, in an order
// that depends only on names, and their length. With a band it is those of the
// band with that number among the stored ones, from 1.
func storedParts(dir *hostio.Dir, name string, band int) (parts []stretch, total int64, err error) {
	var inside []string
	err = files.Walk(context.Background(), dir, name, func(file string, fi fs.FileInfo) error {
		if _, isBand := files.Band(file); fi.Mode().IsRegular() && (isBand || band == 0) {
			inside = append(inside, file)
		}
		return nil
	})
	slices.SortFunc(inside, func(a, b string) int {
		x, _ := files.Band(a)
		y, _ := files.Band(b)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	})
	switch {
	case err != nil:
		return nil, 0, err
	case band > len(inside):
		return nil, 0, fmt.Errorf("it has no band %d: %d are stored", band, len(inside))
	case band > 0:
		inside = inside[band-1 : band]
	}
	for _, file := range inside {
		file = path.Join(name, file)
		err := changeFile(dir, file, func(f *hostio.File) error {
			return files.Stored(f, func(at, n int64) {
				parts, total = append(parts, stretch{file, at, n}), total+n
			})
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return parts, total, nil
}

// tableSectors are the sectors of a GUID partition table with its header.
const tableSectors = 33

// corruptDevice is the kinds "table" and "volume".
func corruptDevice(dir *hostio.Dir, name string, c Corruption) (err error) {
	img, err := Open(dir, name, OpenOptions{ReadOnly: c.UDIF, Passphrase: c.Passphrase})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	offsets, n := []int64{SectorSize, img.Size() - tableSectors*SectorSize}, tableSectors*SectorSize
	if c.Kind != "table" {
		if offsets, n, err = c.Places(img); err != nil {
			return err
		}
	}
	if c.UDIF {
		return corruptStored(dir, name, img, c.Kind, offsets[0])
	}
	for _, off := range offsets {
		if _, err := img.WriteAt(garbage(int64(n)), off); err != nil {
			return err
		}
	}
	return img.Flush()
}

// maxCorrupted is how much of a chunk [Corrupt] overwrites at most, in bytes.
const maxCorrupted = 4096

// corruptStored overwrites the stored data, in the file of a UDIF image, of the
// first bytes with data at or after byte from of the device.
func corruptStored(dir *hostio.Dir, name string, img Image, kind string, from int64) error {
	t, ok := img.(UDIFImage)
	if !ok || kind == "table" { // no stored data contains just the partition tables
		return &UnsupportedError{Path: name, Found: img.Format(), Doing: "corrupting the " + kind + " of"}
	}
	h, err := EncryptionOf(dir, name)
	if err != nil {
		return err
	}
	base := int64(0)
	if h != nil {
		base = h.DataOffset
	}
	u := t.UDIF()
	for off := from; off < u.Size(); off, _ = u.Next(off) {
		if at, n := u.Stored(off); n > 0 {
			return overwrite(dir, name, base+at, min(n, maxCorrupted))
		}
	}
	return fmt.Errorf("corrupting %q: the image stores no data after byte %d", name, from)
}
