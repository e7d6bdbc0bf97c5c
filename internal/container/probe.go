package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"dmgbench/internal/hostio"
)

// kind is what a probe found.
type kind struct {
	format  string // of those that Create makes, or UDIF
	info    info   // of a bundle
	list    []byte // the property list that info is of
	backup  bool   // info came from Info.bckup
	size    int64  // of the device, for UDRW
	refused string // why it cannot be served; empty if it can
	foreign bool   // refused is the format of another program
	// encrypted is how, empty if it is not. Of a file nothing else is known then.
	encrypted string
}

// udifFamily is the kind of all files with a UDIF trailer; which format one is
// the runs in it say.
const udifFamily = "UDIF"

// probe finds out what a container is, without trusting its extension. The
// order is that of Apple's tools: encryption first, then the layouts.
func probe(dir *hostio.Dir, name string) (kind, error) {
	fi, err := dir.Lstat(name)
	if err != nil {
		return kind{}, err
	}
	switch {
	case fi.IsDir():
		sub, err := dir.Sub(name)
		if err != nil {
			return kind{}, err
		}
		defer sub.Close()
		return probeBundle(sub)
	case fi.Mode().IsRegular():
		f, err := dir.Open(name, hostio.OpenOptions{})
		if err != nil {
			return kind{}, err
		}
		defer f.Close()
		return probeFile(f)
	}
	return kind{}, fmt.Errorf("opening %q: %w: %s", dir.Path()+"/"+name, hostio.ErrNotRegular, fi.Mode().Type())
}

func probeBundle(dir *hostio.Dir) (kind, error) {
	k := kind{format: UDSB}
	i, text, err := readInfo(dir, "Info.plist")
	if err != nil && !unusable(err) {
		return kind{}, err
	}
	if err != nil {
		var second error
		if i, text, second = readInfo(dir, "Info.bckup"); second != nil {
			if errors.Is(err, fs.ErrNotExist) && errors.Is(second, fs.ErrNotExist) || errors.Is(err, errNotBundle) {
				return kind{refused: "folder that is no sparse bundle"}, nil
			}
			return kind{}, fmt.Errorf("%w (and the copy: %w)", err, second)
		}
		k.backup = true
	}
	k.info, k.list = i, text
	token, err := dir.Open("token", hostio.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return kind{}, err
	}
	defer token.Close()
	st, err := token.Stat()
	if err != nil {
		return kind{}, err
	}
	k.encrypted, err = encryption(token, st.Size)
	return k, err
}

// unusable says that err is about what a property list is, not about a host
// that failed to read it: only then the copy may stand in.
func unusable(err error) bool {
	for _, kind := range []error{fs.ErrNotExist, ErrCorrupt, errNotBundle, hostio.ErrTooLarge, hostio.ErrNotRegular} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// readInfo reads a property list of a bundle: what it says, and its text.
func readInfo(dir *hostio.Dir, name string) (i info, text []byte, err error) {
	text, err = dir.ReadFile(name, infoLimit)
	if err != nil {
		return info{}, nil, err
	}
	i, err = parseInfo(text)
	if err != nil {
		return info{}, nil, fmt.Errorf("reading %q: %w", dir.Path()+"/"+name, err)
	}
	return i, text, nil
}

// encryption looks for Apple's encryption headers: encrcdsa (version 2) in
// front, cdsaencr (version 1) at the end.
func encryption(r io.ReaderAt, size int64) (string, error) {
	head, err := readExactly(r, 0, min(size, 8))
	if err != nil {
		return "", err
	}
	if string(head) == "encrcdsa" {
		return "encrypted image (encrcdsa v2)", nil
	}
	tail, err := readExactly(r, max(size-8, 0), min(size, 8))
	if err != nil {
		return "", err
	}
	if string(tail) == "cdsaencr" {
		return "encrypted image (cdsaencr v1)", nil
	}
	return "", nil
}

func probeFile(f *hostio.File) (kind, error) {
	st, err := f.Stat()
	if err != nil {
		return kind{}, err
	}
	found, err := encryption(f, st.Size)
	if err != nil || found != "" {
		return kind{encrypted: found}, err
	}
	return probeContent(f, st.Size)
}

// probeContent looks at a file that is not encrypted, or at what the
// encryption hides.
func probeContent(f io.ReaderAt, size int64) (kind, error) {
	head, err := readExactly(f, 0, min(size, 4))
	if err != nil {
		return kind{}, err
	}
	switch string(head) {
	case "sprs":
		return kind{format: UDSP}, nil
	case "shdw":
		return kind{format: ASIF}, nil
	case "koly":
		return kind{refused: "very old UDIF with its trailer in front"}, nil
	}
	trailer, err := readExactly(f, max(size-512, 0), min(size, 512))
	if err != nil {
		return kind{}, err
	}
	if bytes.HasPrefix(trailer, []byte("koly")) && len(trailer) == 512 {
		return kind{format: udifFamily}, nil
	}
	if size == 0 {
		return kind{refused: "file of 0 bytes"}, nil
	}
	if size%SectorSize != 0 {
		if name, err := foreign(f, size); err != nil || name != "" {
			return kind{refused: name, foreign: true}, err
		}
		return kind{refused: fmt.Sprintf("file of %d bytes, no multiple of %d", size, SectorSize)}, nil
	}
	return kind{format: UDRW, size: size}, nil
}

func readExactly(r io.ReaderAt, off, n int64) ([]byte, error) {
	p := make([]byte, n)
	if m, err := r.ReadAt(p, off); err != nil && m < len(p) {
		return nil, err
	}
	return p, nil
}
