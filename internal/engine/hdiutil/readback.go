package hdiutil

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"

	"dmgbench/internal/engine/hdiutil/parse/plist"
	"dmgbench/internal/hostio"
)

// found is what lies on the host, read back from the files themselves: no tool
// is asked, so that looking costs nothing inside a timed step.
type found struct {
	format  string // UDRW (also for UDTO), UDSB, UDSP, ASIF, UDIF (all read-only kinds); "" for encrypted files
	size    int64  // of the device, 0 where only the tool knows
	band    int64  // bytes
	version int64  // backing store of a bundle
	mapped  bool   // a bundle has the folder mapped/
	cipher  string // "AES-256", "encrypted" where the key length cannot be seen, "" for plain
	layout  string // "GPT", "none"; "" where it cannot be seen
}

// infoLimit bounds Info.plist, in bytes.
const infoLimit = 64 << 10

// look reads a container back. A missing one is fs.ErrNotExist.
func look(dir *hostio.Dir, name string) (found, error) {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return found{}, err
	case fi.IsDir():
		return lookBundle(dir, name)
	case !fi.Mode().IsRegular():
		return found{}, fmt.Errorf("looking at %q: %w", name, hostio.ErrNotRegular)
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return found{}, err
	}
	defer f.Close()
	return lookFile(f, fi.Size())
}

// lookFile knows a file by its magic numbers, encryption first, as Apple's tools do.
func lookFile(r io.ReaderAt, size int64) (found, error) {
	head, err := part(r, 0, 1024)
	if err != nil {
		return found{}, err
	}
	tail, err := part(r, max(0, size-512), 512)
	if err != nil {
		return found{}, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("encrcdsa")):
		return found{cipher: cipher(head)}, nil
	case bytes.HasSuffix(tail, []byte("cdsaencr")):
		return found{cipher: "encrypted"}, nil
	case bytes.HasPrefix(head, []byte("sprs")):
		return found{format: "UDSP"}, nil
	case bytes.HasPrefix(head, []byte("shdw")):
		return found{format: "ASIF"}, nil
	case len(tail) == 512 && bytes.HasPrefix(tail, []byte("koly")):
		return lookTrailer(head, tail, size), nil
	}
	return found{format: "UDRW", size: size, layout: layout(head)}, nil
}

// lookTrailer tells read-only kinds from raw data with a trailer that
// describes nothing, as old tools left behind UDRW: no property list and no
// resource fork, and the data's length in front.
func lookTrailer(head, tail []byte, size int64) found {
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(tail[at:]) }
	if data := u64(32); u64(48) == 0 && u64(224) == 0 && data > 0 && data <= uint64(size-512) {
		return found{format: "UDRW", size: int64(data), layout: layout(head)}
	}
	return found{format: "UDIF"}
}

// layout looks for a GUID partition table behind the protective boot record (UEFI, section 5).
func layout(head []byte) string {
	switch {
	case len(head) < 1024:
		return ""
	case bytes.Equal(head[512:520], []byte("EFI PART")):
		return "GPT"
	}
	return "none"
}

// cipher reads the key length out of an encrcdsa header of version 2.
func cipher(head []byte) string {
	if len(head) >= 0x1c && binary.BigEndian.Uint32(head[8:]) == 2 {
		if bits := binary.BigEndian.Uint32(head[0x18:]); bits == 128 || bits == 256 {
			return "AES-" + strconv.Itoa(int(bits))
		}
	}
	return "encrypted"
}

func lookBundle(dir *hostio.Dir, name string) (found, error) {
	text, err := dir.ReadFile(path.Join(name, "Info.plist"), infoLimit)
	if err != nil {
		return found{}, err
	}
	d, err := plist.Parse(text)
	if err != nil {
		return found{}, fmt.Errorf("reading %q: %w", path.Join(name, "Info.plist"), err)
	}
	b := found{format: "UDSB"}
	b.size, _ = d.Int("size")
	b.band, _ = d.Int("band-size")
	b.version, _ = d.Int("bundle-backingstore-version")
	if d.String("diskimage-bundle-type") != "com.apple.diskimage.sparsebundle" || b.size <= 0 || b.band <= 0 {
		return found{}, fmt.Errorf("reading %q: no sparse bundle's property list", path.Join(name, "Info.plist"))
	}
	if fi, err := dir.Lstat(path.Join(name, "mapped")); err == nil {
		b.mapped = fi.IsDir()
	}
	head, err := headOf(dir, path.Join(name, "token"))
	if err != nil {
		return b, err
	}
	if bytes.HasPrefix(head, []byte("encrcdsa")) {
		b.cipher = cipher(head)
		return b, nil
	}
	if head, err = headOf(dir, path.Join(name, "bands", "0")); len(head) > 0 {
		b.layout = layout(head)
	}
	return b, err
}

// headOf is the first kilobyte of a file; a missing file has none.
func headOf(dir *hostio.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name, hostio.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return part(f, 0, 1024)
}

// part reads up to n bytes.
func part(r io.ReaderAt, off int64, n int) ([]byte, error) {
	p := make([]byte, n)
	m, err := r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:m], err
}

// fits says why the container is not what was asked for, or nothing.
func (f found) fits(k kind, encryption string) error {
	encrypted := encryption != "" && encryption != "none"
	switch {
	case encrypted && f.cipher == "" && k.format != "ASIF": // where ASIF keeps its keys is not known
		return fmt.Errorf("%w: the image is not encrypted", ErrNoResult)
	case !encrypted && f.cipher != "":
		return fmt.Errorf("%w: the image is encrypted", ErrNoResult)
	case encrypted && f.cipher != "" && f.cipher != "encrypted" && f.cipher != encryption:
		return fmt.Errorf("%w: the image is encrypted with %s", ErrNoResult, f.cipher)
	case f.format == "" || f.format == k.format:
		return nil
	case encrypted && k.format == "ASIF" && f.format == "UDRW" && f.layout != "GPT": // nor what such a file begins with
		return nil
	case k.format == "UDTO" && f.format == "UDRW", k.fixed && k.format != "UDTO" && f.format == "UDIF":
		return nil
	}
	return fmt.Errorf("%w: the image is %s", ErrNoResult, f.format)
}

// tell notes what was made.
func (f found) tell(t *tale, asked int64) {
	t.note("layout", f.layout)
	t.note("cipher", f.cipher)
	if f.band > 0 {
		t.note("band_size_used", strconv.FormatInt(f.band, 10))
		t.note("bundle_version", strconv.FormatInt(f.version, 10))
		t.note("mapped", strconv.FormatBool(f.mapped))
	}
	if asked > 0 {
		t.note("band_size_asked", strconv.FormatInt(asked, 10))
	}
	if asked > 0 && f.band != asked {
		t.warn("bands are %d bytes, %d were asked for", f.band, asked)
	}
	if f.version > 1 {
		t.note("bundle_note", "backing-store version 2 keeps track of unmapped space in mapped/")
	}
}
