package container

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/system/hostio"
)

// String is the path, if any, and the problem.
func (f Finding) String() string {
	if f.Path == "" {
		return f.Problem
	}
	return f.Path + ": " + f.Problem
}

// Verify checks a closed container's structure, not the content of its device;
// but a UDIF image is read as a whole, and its checksums are computed. An
// encrypted file needs the passphrase or the keys in o, without which the error
// is [ErrPassphrase]; the structure of a bundle is not encrypted. Other options
// are ignored. An error means that the check could not be completed.
func Verify(dir *hostio.Dir, name string, o OpenOptions) (list []Finding, err error) {
	c, err := probe(dir, name)
	switch {
	case err != nil:
		return findingOf(err)
	case c.unsupported != "":
		return []Finding{{Problem: c.unsupported, Fatal: true}}, nil
	case c.format == UDSB:
		v := bundleVerifier{probeResult: c, block: 1}
		if v.dir, err = dir.Sub(name); err == nil {
			err = errors.Join(v.run(), v.dir.Close())
		}
		return v.list, err
	}
	// Opening reads the whole table of a sparse image; of a raw one the probe has
	// checked everything.
	img, err := openFile(dir, name, c, OpenOptions{ReadOnly: true, Passphrase: o.Passphrase, Keys: o.Keys})
	if err != nil {
		return findingOf(err)
	}
	switch img := img.(type) {
	case *udifImage:
		var checks udif.Report
		checks, err = img.im.Verify(context.Background(), udif.StreamOptions{})
		for _, c := range checks {
			if problem := c.Problem(); problem != nil {
				list = append(list, Finding{Path: c.What, Problem: problem.Error(), Fatal: true})
			}
		}
	case *chunked:
		if u, ok := img.chunks.(*udsp); ok && u.head.compacting {
			list = append(list, Finding{Problem: "a compaction was interrupted; opening for writing ends it"})
		}
	}
	return list, errors.Join(err, img.Close())
}

// findingOf makes an error of opening that is about the container a finding.
func findingOf(err error) ([]Finding, error) {
	if e, ok := errors.AsType[*UnsupportedError](err); ok {
		return []Finding{{Problem: e.Found, Fatal: true}}, nil
	}
	if errors.Is(err, ErrCorrupt) {
		return []Finding{{Problem: err.Error(), Fatal: true}}, nil
	}
	return nil, err
}

// bundleVerifier collects the findings about one bundle.
type bundleVerifier struct {
	probeResult
	dir   *hostio.Dir
	block int64 // bytes that lengths of band files are multiples of
	list  []Finding
}

// report adds a finding.
func (v *bundleVerifier) report(path string, fatal bool, format string, args ...any) {
	v.list = append(v.list, Finding{Path: path, Problem: fmt.Sprintf(format, args...), Fatal: fatal})
}

// run checks all parts of the bundle. Both property lists are equal after every
// change. An unencrypted bundle has an empty token.
func (v *bundleVerifier) run() error {
	second, err := v.dir.ReadFile("Info.bckup", infoLimit)
	switch {
	case v.backup:
		v.report("Info.plist", false, "missing or unreadable; Info.bckup is used")
	case err != nil || !bytes.Equal(v.plist, second):
		v.report("Info.bckup", false, "differs from Info.plist, or is missing or unreadable")
	}
	fi, err := v.dir.Lstat("token")
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case v.encryption != "":
		h, err := readHeader(v.dir, ".", v.probeResult)
		if err != nil {
			v.report("token", true, "%v", err)
			break
		}
		v.block = int64(h.BlockSize)
	case err != nil || fi.Size() != 0:
		v.report("token", false, "missing, or no known encryption header")
	}
	if v.info.Version != 1 {
		v.report("", false, "backing-store version %d: trimmed space may show old data", v.info.Version)
	}
	list, err := v.dir.ReadDir(".")
	for _, e := range list {
		if !slices.Contains(bundleEntries, appleDoubleOwner(e.Name())) {
			v.report(e.Name(), false, "does not belong to a sparse bundle")
		}
	}
	return cmp.Or(err, v.checkBands())
}

// checkBands checks the names and lengths of the band files.
func (v *bundleVerifier) checkBands() error {
	bands, err := v.dir.Sub("bands")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostio.ErrNotRegular) {
		v.report("bands", true, "missing, or no folder")
		return nil
	}
	if err != nil {
		return err
	}
	defer bands.Close()
	list, err := bands.ReadDir(".")
	for _, e := range list {
		path, owner := "bands/"+e.Name(), appleDoubleOwner(e.Name())
		n, ok := files.ParseBand(owner)
		switch {
		case !ok:
			v.report(path, false, "no band number in lower-case hexadecimal")
			continue
		case owner != e.Name():
			continue
		}
		fi, err := bands.Lstat(e.Name())
		if err != nil {
			return err
		}
		capacity := ceil(chunkCapacity(v.info.Size, v.info.BandSize, n), v.block) * v.block
		switch size := fi.Size(); {
		case !fi.Mode().IsRegular():
			v.report(path, true, "no regular file")
		case size > v.info.BandSize:
			v.report(path, true, "%d bytes, longer than a band of %d", size, v.info.BandSize)
		case size%v.block != 0:
			v.report(path, true, "%d bytes, no whole blocks of the encryption", size)
		case size > capacity || capacity == 0:
			v.report(path, false, "%d bytes, beyond the size of %d bytes", size, v.info.Size)
		}
	}
	return err
}

// Repair makes those repairs that have only one possible result: it writes both
// property lists of a bundle anew from the readable one, and ends what a crash
// interrupted in a sparse image, as every opening for writing does. Other
// containers stay unchanged. Of the options it uses the passphrase.
func Repair(dir *hostio.Dir, name string, o OpenOptions) error {
	img, err := Open(dir, name, OpenOptions{Passphrase: o.Passphrase})
	if err != nil {
		return err
	}
	if b, ok := img.(*bundle); ok {
		err = b.writePlists(b.plist)
	}
	return errors.Join(err, img.Close())
}
