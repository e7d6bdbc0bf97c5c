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

// hostFile is a file of a container.
type hostFile struct {
	name string // with that of the container
	size int64
}

// listFiles are the files of a container by their names, and those that are bands.
func listFiles(dir *hostio.Dir, name string) (all, bands []hostFile, err error) {
	err = files.Walk(context.Background(), dir, name, func(inside string, fi fs.FileInfo) error {
		f := hostFile{path.Join(name, inside), fi.Size()}
		if _, isBand := files.Band(inside); isBand {
			bands = append(bands, f)
		}
		if fi.Mode().IsRegular() {
			all = append(all, f)
		}
		return nil
	})
	return all, bands, err
}

// corruptFile is the kinds "truncated", "tail" and "band-missing". It cuts at a
// whole sector.
func corruptFile(dir *hostio.Dir, name string, fi fs.FileInfo, kind string) error {
	all, bands, err := listFiles(dir, name)
	switch {
	case err != nil:
		return err
	case len(bands) == 0 && (fi.IsDir() || kind == "band-missing"):
		return fmt.Errorf("looking for bands of %q: it has none: %w", name, errors.ErrUnsupported)
	case kind == "band-missing":
		return dir.Remove(bands[len(bands)/2].name)
	case fi.IsDir():
		all = bands
	}
	longest := slices.MaxFunc(all, func(a, b hostFile) int { return cmp.Compare(a.size, b.size) })
	left := longest.size / 2
	if kind == "tail" {
		left = max(longest.size-tailBytes, 0)
	}
	left -= left % SectorSize
	return changeFile(dir, longest.name, func(f *hostio.File) error { return f.Truncate(left) })
}

const (
	// flipBlock is the unit in bytes of what is stored: a block of zeros is a hole
	// on most hosts, and a fault of a medium cannot change what it does not store.
	flipBlock = 64 << 10
	// maxDraws is how many places are drawn before an image counts as empty.
	maxDraws = 1 << 20
)

// flipBytes gives bytes at drawn places another value, uniformly among those that
// are stored.
func flipBytes(dir *hostio.Dir, name string, d Damage) error {
	list, bands, err := listFiles(dir, name)
	if err != nil {
		return err
	}
	if d.Band > len(bands) {
		return fmt.Errorf("flipping bytes of %q: it has no band %d: %d are stored", name, d.Band, len(bands))
	}
	if d.Band > 0 {
		slices.SortFunc(bands, func(a, b hostFile) int { // their names are hexadecimal numbers
			return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
		})
		list = bands[d.Band-1 : d.Band]
	}
	var total int64
	for _, f := range list {
		total += f.size
	}
	taken := map[int64]bool{} // places that were drawn
	for done := 0; done < d.Bytes; {
		if len(taken) == maxDraws || int64(len(taken)) == total {
			return fmt.Errorf("flipping bytes of %q: it stores fewer than %d", name, d.Bytes)
		}
		place := d.Draw(total)
		if taken[place] { // another change would undo the first
			continue
		}
		taken[place] = true
		isStored, err := flipByte(dir, list, place, byte(1+d.Draw(255)))
		if err != nil {
			return err
		}
		if isStored {
			done++
		}
	}
	return nil
}

// flipByte changes one byte of the files, by its place in all of them together,
// unless its block is zeros.
func flipByte(dir *hostio.Dir, list []hostFile, place int64, by byte) (isStored bool, err error) {
	for place >= list[0].size {
		place, list = place-list[0].size, list[1:]
	}
	start := place / flipBlock * flipBlock
	block := make([]byte, min(flipBlock, list[0].size-start))
	err = changeFile(dir, list[0].name, func(f *hostio.File) error {
		if _, err := f.ReadAt(block, start); err != nil {
			return err
		}
		if isStored = bytes.Count(block, []byte{0}) < len(block); !isStored {
			return nil
		}
		_, err := f.WriteAt([]byte{block[place-start] ^ by}, place)
		return err
	})
	return isStored, err
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
