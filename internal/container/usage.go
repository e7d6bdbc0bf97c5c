package container

import (
	"errors"
	"io/fs"
	"path/filepath"

	"dmgbench/internal/hostio"
)

// UsageOf tells what a container takes on the host, open or not. Of a sparse
// image that is open for writing elsewhere it counts the bands that were there
// at the last flush; of an encrypted one none, which its table alone knows.
func UsageOf(dir *hostio.Dir, name string) (Usage, error) {
	k, err := probe(dir, name)
	if err != nil {
		return Usage{}, err
	}
	if k.refused != "" {
		return Usage{}, &UnsupportedError{Path: filepath.Join(dir.Path(), name), Found: k.refused, Doing: "measuring"}
	}
	if k.encrypted != "" && k.format != UDSB {
		return encryptedUsage(dir, name)
	}
	if k.format != UDSB {
		img, err := openFile(dir, name, k, OpenOptions{ReadOnly: true})
		if err != nil {
			return Usage{}, err
		}
		u, err := img.Usage()
		return u, errors.Join(err, img.Close())
	}
	b, err := dir.Sub(name)
	if err != nil {
		return Usage{}, err
	}
	defer b.Close()
	bands, err := b.Sub("bands")
	if errors.Is(err, fs.ErrNotExist) {
		return bundleUsage(b, nil, k.info)
	}
	if err != nil {
		return Usage{}, err
	}
	defer bands.Close()
	return bundleUsage(b, bands, k.info)
}

// Usage tells what the bundle takes on the host: all its files, not only the
// bands; folders not counted.
func (b *bundle) Usage() (Usage, error) {
	if err := b.enter(); err != nil {
		return Usage{}, err
	}
	defer b.RUnlock()
	if err := b.check(); err != nil {
		return Usage{}, err
	}
	return bundleUsage(b.dir, b.bands, b.info)
}

func bundleUsage(dir, bands *hostio.Dir, i info) (Usage, error) {
	var u Usage
	err := eachFile(dir, func(_ string, st hostio.Stat) { u.add(st) })
	if err == nil && bands != nil {
		err = eachFile(bands, func(name string, st hostio.Stat) {
			u.add(st)
			n, ok := bandNumber(name)
			if !ok {
				return
			}
			u.Bands++
			if c := i.capacity(n); c > 0 && st.Size >= c && st.Allocated >= c {
				u.BandsFull++
			}
		})
	}
	u.settle()
	return u, err
}

// eachFile calls do for the regular files of a folder. What is deleted while
// the list is read is left out.
func eachFile(dir *hostio.Dir, do func(name string, st hostio.Stat)) error {
	list, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.Type().IsRegular() {
			continue
		}
		fi, err := dir.Lstat(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		do(e.Name(), hostio.StatOf(fi))
	}
	return nil
}
