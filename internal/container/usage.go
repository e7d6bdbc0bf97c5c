package container

import (
	"errors"
	"io/fs"
	"path/filepath"

	"dmgbench/internal/hostio"
)

// Usage is the space that a container takes on the host, in bytes of its files.
type Usage struct {
	Allocated int64 // from st_blocks, as `du` counts
	Apparent  int64 // the sum of the file lengths
	Sparse    bool  // files have holes: allocated is below apparent by more than rounding
	Bands     int   // band files in the bundle; bands or chunks of the device in a sparse image
	BandsFull int   // of these, as long as a band can be and without holes; in a sparse image all or none
}

// minHoles is the difference of length and allocation, in bytes, from which a file counts as
// sparse. File systems use a few blocks per file for themselves, and compress or inline small
// files.
const minHoles = 64 << 10

// add counts a file.
func (u *Usage) add(st hostio.Stat) {
	u.Allocated += st.Allocated
	u.Apparent += st.Size
	u.Sparse = u.Apparent-u.Allocated >= minHoles
}

// UsageOf returns the space that a container takes on the host, open or not. Of a sparse image that
// is open for writing elsewhere it counts the bands of the last flush. Of an encrypted one it
// counts none: that needs its table.
func UsageOf(dir *hostio.Dir, name string) (Usage, error) {
	c, err := probe(dir, name)
	switch {
	case err != nil:
		return Usage{}, err
	case c.unsupported != "":
		path := filepath.Join(dir.Path(), name)
		return Usage{}, &UnsupportedError{Path: path, Found: c.unsupported, Doing: "measuring"}
	case c.format == UDSB:
		return closedBundleUsage(dir, name, c.info)
	case c.encryption != "":
		f, err := openStore(dir, name, OpenOptions{ReadOnly: true})
		if err != nil {
			return Usage{}, err
		}
		u, err := fileUsage(f)
		return u, errors.Join(err, f.Close())
	}
	img, err := openFile(dir, name, c, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	u, err := img.Usage()
	return u, errors.Join(err, img.Close())
}

// fileUsage counts one file.
func fileUsage(f interface{ Stat() (hostio.Stat, error) }) (u Usage, err error) {
	st, err := f.Stat()
	if err == nil {
		u.add(st)
	}
	return u, err
}

func closedBundleUsage(dir *hostio.Dir, name string, i info) (Usage, error) {
	b, err := dir.Sub(name)
	if err != nil {
		return Usage{}, err
	}
	defer b.Close()
	bands, err := b.Sub("bands")
	if errors.Is(err, fs.ErrNotExist) {
		return bundleUsage(b, nil, i.capacity)
	}
	if err != nil {
		return Usage{}, err
	}
	defer bands.Close()
	return bundleUsage(b, bands, i.capacity)
}

// bundleUsage counts the files of a bundle. capacity returns the bytes of a full band.
func bundleUsage(dir, bands *hostio.Dir, capacity func(i int64) int64) (u Usage, err error) {
	err = eachFile(dir, func(_ string, st hostio.Stat) { u.add(st) })
	if err == nil && bands != nil {
		err = eachFile(bands, func(name string, st hostio.Stat) {
			u.add(st)
			n, ok := bandNumber(name)
			if !ok {
				return
			}
			u.Bands++
			if c := capacity(n); c > 0 && st.Size >= c && st.Allocated >= c {
				u.BandsFull++
			}
		})
	}
	return u, err
}

// eachFile calls do for the regular files of a folder, except those that are deleted meanwhile.
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
