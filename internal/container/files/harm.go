package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"dmgbench/internal/hostio"
)

// Rubbish is n bytes that no structure begins with.
func Rubbish(n int) []byte { return bytes.Repeat([]byte{0xdb}, n) }

// trailer is the length in bytes of what UDIF images end in (docs/formats.md).
const trailer = 512

// RuinHeader overwrites what describes the container: a bundle's Info.plist, the
// first 1 KiB of a file, or its last 512 bytes if it describes itself there.
func RuinHeader(dir *hostio.Dir, name string, atEnd bool) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return dir.WriteFileAtomic(path.Join(name, "Info.plist"), Rubbish(256), 0o644)
	}
	f, err := dir.Open(name, hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	defer f.Close()
	at, n := int64(0), min(1024, fi.Size())
	if atEnd {
		at, n = max(0, fi.Size()-trailer), min(trailer, fi.Size())
	}
	return ruin(f, at, int(n))
}

func ruin(f *hostio.File, at int64, n int) error {
	if _, err := f.WriteAt(Rubbish(n), at); err != nil {
		return err
	}
	_, err := f.Sync(hostio.SyncFull)
	return err
}

// ErrNoBands says that a bundle has no bands to harm.
var ErrNoBands = errors.New("it has no bands")

// RemoveBand deletes the band in the middle of a bundle's list.
func RemoveBand(ctx context.Context, dir *hostio.Dir, name string) error {
	list, err := bands(ctx, dir, name)
	if err != nil {
		return err
	}
	return dir.Remove(path.Join(name, list[len(list)/2].inside))
}

type file struct {
	inside string
	size   int64
}

func bands(ctx context.Context, dir *hostio.Dir, name string) ([]file, error) {
	var list []file
	err := Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		if _, ok := band(inside); ok {
			list = append(list, file{inside, fi.Size()})
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
	victim := file{"", fi.Size()}
	if fi.IsDir() {
		list, err := bands(ctx, dir, name)
		if err != nil {
			return err
		}
		victim = list[0]
		for _, b := range list {
			if b.size > victim.size {
				victim = b
			}
		}
	}
	f, err := dir.Open(path.Join(name, victim.inside), hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(victim.size / 2 / sector * sector); err != nil {
		return err
	}
	_, err = f.Sync(hostio.SyncFull)
	return err
}
