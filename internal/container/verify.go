package container

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"dmgbench/internal/hostio"
)

// Finding is one thing wrong with a container's structure.
type Finding struct {
	Path    string // inside the container; empty for the container itself
	Problem string
	Fatal   bool // the data of the device cannot be trusted or read
}

func (f Finding) String() string {
	if f.Path == "" {
		return f.Problem
	}
	return f.Path + ": " + f.Problem
}

// Verify looks at a closed container's structure, not at what its device
// holds; but a UDIF image is read whole, and its checksums are computed. An error means that it could not look; findings are what it saw.
func Verify(dir *hostio.Dir, name string) ([]Finding, error) {
	return VerifyWith(dir, name, OpenOptions{})
}

// VerifyWith is Verify with the passphrase or the keys in o, without which an encrypted file
// is [ErrPassphrase]; the structure of a bundle is not encrypted. The rest of o
// does not matter.
func VerifyWith(dir *hostio.Dir, name string, o OpenOptions) ([]Finding, error) {
	k, err := probe(dir, name)
	if errors.Is(err, ErrCorrupt) {
		return []Finding{{Problem: err.Error(), Fatal: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	if k.refused != "" {
		return []Finding{{Problem: k.refused, Fatal: true}}, nil
	}
	if k.format != UDSB {
		return verifyFile(dir, name, k, o)
	}
	b, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	v := verifier{dir: b, info: k.info, encrypted: k.encrypted != "", block: 1}
	return v.run(k.backup)
}

type verifier struct {
	dir  *hostio.Dir
	info info
	// encrypted says that there is a header in the token.
	encrypted bool
	block     int64 // bytes that band files are multiples of
	list      []Finding
}

func (v *verifier) say(path string, fatal bool, format string, args ...any) {
	v.list = append(v.list, Finding{Path: path, Problem: fmt.Sprintf(format, args...), Fatal: fatal})
}

func (v *verifier) run(backup bool) ([]Finding, error) {
	if backup {
		v.say("Info.plist", false, "missing or unreadable; Info.bckup is used")
	}
	v.copies(backup)
	if fi, err := v.dir.Lstat("token"); errors.Is(err, fs.ErrNotExist) {
		v.say("token", false, "missing")
	} else if err != nil {
		return v.list, err
	} else if v.encrypted {
		v.header()
	} else if fi.Size() != 0 {
		v.say("token", false, "%d bytes, but no known encryption header", fi.Size())
	}
	if v.info.version != 1 {
		v.say("", false, "backing-store version %d: trimmed space may show old data", v.info.version)
	}
	list, err := v.dir.ReadDir(".")
	if err != nil {
		return v.list, err
	}
	for _, e := range list {
		if !slices.Contains(bundleEntries, attributed(e.Name())) {
			v.say(e.Name(), false, "no part of a sparse bundle")
		}
	}
	return v.list, v.bands()
}

func (v *verifier) copies(backup bool) {
	if backup {
		return
	}
	a, errA := v.dir.ReadFile("Info.plist", infoLimit)
	b, errB := v.dir.ReadFile("Info.bckup", infoLimit)
	switch {
	case errA != nil:
		v.say("Info.plist", false, "%v", errA)
	case errB != nil:
		v.say("Info.bckup", false, "missing or unreadable")
	case !bytes.Equal(a, b):
		v.say("Info.bckup", false, "differs from Info.plist")
	}
}

func (v *verifier) bands() error {
	bands, err := v.dir.Sub("bands")
	if errors.Is(err, fs.ErrNotExist) {
		v.say("bands", false, "missing: every byte reads as zero")
		return nil
	}
	if errors.Is(err, hostio.ErrNotRegular) {
		v.say("bands", true, "no folder")
		return nil
	}
	if err != nil {
		return err
	}
	defer bands.Close()
	list, err := bands.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range list {
		path := "bands/" + e.Name()
		n, ok := bandNumber(attributed(e.Name()))
		if ok && attributed(e.Name()) != e.Name() {
			continue
		}
		if !ok {
			v.say(path, false, "no band number in lower-case hexadecimal")
			continue
		}
		fi, err := bands.Lstat(e.Name())
		if err != nil {
			return err
		}
		switch c := ceil(v.info.capacity(n), v.block) * v.block; {
		case !fi.Mode().IsRegular():
			v.say(path, true, "no regular file")
		case c == 0:
			v.say(path, false, "beyond the size of %d bytes", v.info.size)
		case fi.Size() > v.info.bandSize:
			v.say(path, true, "%d bytes, longer than a band of %d", fi.Size(), v.info.bandSize)
		case fi.Size()%v.block != 0:
			v.say(path, true, "%d bytes, no whole blocks of the encryption", fi.Size())
		case fi.Size() > c:
			v.say(path, false, "%d bytes, beyond the size of %d bytes", fi.Size(), v.info.size)
		}
	}
	return nil
}

// Repair does what needs no guessing: it writes both property lists of a bundle
// anew, from the one that can be read, and finishes what a crash interrupted in
// a sparse image, as every opening for writing does. Other containers are left
// alone.
func Repair(dir *hostio.Dir, name string) error { return RepairWith(dir, name, OpenOptions{}) }

// RepairWith is Repair with the passphrase in o; the rest of o does not matter.
func RepairWith(dir *hostio.Dir, name string, o OpenOptions) error {
	img, err := Open(dir, name, OpenOptions{Passphrase: o.Passphrase})
	if err != nil {
		return err
	}
	if b, ok := img.(*bundle); ok {
		err = b.restoreInfo()
	}
	return errors.Join(err, img.Close())
}

func (b *bundle) restoreInfo() error {
	for _, name := range []string{"Info.plist", "Info.bckup"} {
		if text, err := b.dir.ReadFile(name, infoLimit); err == nil && bytes.Equal(text, b.list) {
			continue
		}
		if err := b.dir.WriteFileAtomic(name, b.list, b.perm()); err != nil {
			return err
		}
	}
	return nil
}

// verifyFile verifies a container of one file, what its encryption hides too.
func verifyFile(dir *hostio.Dir, name string, k kind, o OpenOptions) (list []Finding, err error) {
	o = OpenOptions{ReadOnly: true, Passphrase: o.Passphrase, Keys: o.Keys}
	host, err := openStore(dir, name, o)
	if err != nil {
		return nil, err
	}
	var f store = host
	defer func() { err = errors.Join(err, f.Close()) }()
	if k.encrypted != "" {
		c, inner, err := decrypted(host, k.encrypted, o)
		if err != nil {
			return unreadable(err)
		}
		f, k = c, inner
	}
	switch k.format {
	case UDRW:
		return nil, nil // probing has checked all there is
	case udifFamily:
		return verifyUDIF(f)
	}
	return verifyMapped(f, k.format)
}

// unreadable makes a finding of an error of opening that is about the container.
func unreadable(err error) ([]Finding, error) {
	if e, ok := errors.AsType[*UnsupportedError](err); ok {
		return []Finding{{Problem: e.Found, Fatal: true}}, nil
	}
	if errors.Is(err, ErrCorrupt) {
		return []Finding{{Problem: err.Error(), Fatal: true}}, nil
	}
	return nil, err
}

// header looks at the header in the token of an encrypted bundle.
func (v *verifier) header() {
	h, err := readToken(v.dir)
	if err != nil {
		v.say("token", true, "%v", err)
		return
	}
	v.block = int64(h.BlockSize)
}
