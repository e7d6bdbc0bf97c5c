package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"dmgbench/internal/hostio"
)

// Rubbish is n bytes that no known structure starts with.
func Rubbish(n int) []byte { return bytes.Repeat([]byte{0xdb}, n) }

// trailer is the length in bytes of the block at the end of UDIF images (docs/formats.md).
const trailer = 512

// RuinHeader overwrites what describes the container: a bundle's Info.plist, the first 1 KiB of a file, or its last 512
// bytes if it describes itself there.
func RuinHeader(dir *hostio.Dir, name string, atEnd bool) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return dir.WriteFileAtomic(path.Join(name, "Info.plist"), Rubbish(256), 0o644)
	}
	at, n := int64(0), min(1024, fi.Size())
	if atEnd {
		at, n = max(0, fi.Size()-trailer), min(trailer, fi.Size())
	}
	return change(dir, name, func(f *hostio.File) error {
		_, err := f.WriteAt(Rubbish(int(n)), at)
		return err
	})
}

// change opens a file for writing, calls f, and flushes it.
func change(dir *hostio.Dir, name string, f func(*hostio.File) error) error {
	file, err := dir.Open(name, hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	defer file.Close()
	if err := f(file); err != nil {
		return err
	}
	_, err = file.Sync(hostio.SyncFull)
	return err
}

// ErrNoBands is returned for a bundle without bands to damage.
var ErrNoBands = errors.New("it has no bands")

// RemoveBand deletes the band in the middle of a bundle's list.
func RemoveBand(ctx context.Context, dir *hostio.Dir, name string) error {
	list, err := bands(ctx, dir, name)
	if err != nil {
		return err
	}
	return dir.Remove(path.Join(name, list[len(list)/2].inside))
}

// bandFile is the file of a band: its name inside the bundle and its length in bytes.
type bandFile struct {
	inside string
	size   int64
}

// bands lists the band files of a bundle, which must have some.
func bands(ctx context.Context, dir *hostio.Dir, name string) ([]bandFile, error) {
	var list []bandFile
	err := Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		if _, ok := band(inside); ok {
			list = append(list, bandFile{inside, fi.Size()})
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("looking for bands of %q: %w", name, ErrNoBands)
	}
	return list, err
}

// Truncate cuts half of the file away, or of a bundle's longest band, at a whole sector.
func Truncate(ctx context.Context, dir *hostio.Dir, name string) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	victim := bandFile{"", fi.Size()}
	if fi.IsDir() {
		list, err := bands(ctx, dir, name)
		if err != nil {
			return err
		}
		victim = slices.MaxFunc(list, func(a, b bandFile) int { return cmp.Compare(a.size, b.size) })
	}
	return change(dir, path.Join(name, victim.inside), func(f *hostio.File) error {
		return f.Truncate(victim.size / 2 / sector * sector)
	})
}
