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

	"dmgbench/internal/engine/hdiutil/command"
	"dmgbench/internal/hostio"
	diskimage "dmgbench/internal/image"
)

// fileInfo is what the files of a container show. No tool is asked, so that
// inspecting costs little inside a timed step.
type fileInfo struct {
	format  string // UDRW (also for UDTO), UDSB, UDSP, ASIF, UDIF (all other read-only formats); "": encrypted
	size    int64  // of the device in bytes, 0 where only the tool knows it
	band    int64  // bytes
	version int64  // backing store of a bundle
	mapped  bool   // a bundle has the folder mapped/
	cipher  string // "AES-256"; "encrypted" where the key length cannot be seen; "": not encrypted
	layout  string // "GPT", "none"; "" where it cannot be seen
}

// maxInfoPlist bounds Info.plist, in bytes.
const maxInfoPlist = 64 << 10

// inspectContainer inspects the file or bundle of a name. A missing one is
// fs.ErrNotExist.
func inspectContainer(dir *hostio.Dir, name string) (fileInfo, error) {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return fileInfo{}, err
	case fi.IsDir():
		return inspectBundle(dir, name)
	case !fi.Mode().IsRegular():
		return fileInfo{}, fmt.Errorf("inspecting %q: %w", name, hostio.ErrNotRegular)
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return fileInfo{}, err
	}
	defer f.Close()
	return inspectFile(f, fi.Size())
}

// inspectFile identifies a file by its magic numbers, encryption first, as
// Apple's tools do.
func inspectFile(r io.ReaderAt, size int64) (fileInfo, error) {
	head, err := readPart(r, 0, 1024)
	if err != nil {
		return fileInfo{}, err
	}
	tail, err := readPart(r, max(0, size-512), 512)
	if err != nil {
		return fileInfo{}, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("encrcdsa")):
		return fileInfo{cipher: cipherOf(head)}, nil
	case bytes.HasSuffix(tail, []byte("cdsaencr")):
		return fileInfo{cipher: "encrypted"}, nil
	case bytes.HasPrefix(head, []byte("sprs")):
		return fileInfo{format: diskimage.UDSP}, nil
	case bytes.HasPrefix(head, []byte("shdw")):
		return fileInfo{format: diskimage.ASIF}, nil
	case len(tail) == 512 && bytes.HasPrefix(tail, []byte("koly")):
		return inspectTrailer(head, tail, size), nil
	}
	return fileInfo{format: diskimage.UDRW, size: size, layout: layoutOf(head)}, nil
}

// inspectTrailer distinguishes read-only formats from raw data with an empty
// trailer, as old tools wrote it after UDRW: without property list and resource
// fork, and after as many bytes of data as it names.
func inspectTrailer(head, tail []byte, size int64) fileInfo {
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(tail[at:]) }
	if data := u64(32); u64(48) == 0 && u64(224) == 0 && data > 0 && data <= uint64(size-512) {
		return fileInfo{format: diskimage.UDRW, size: int64(data), layout: layoutOf(head)}
	}
	return fileInfo{format: "UDIF"}
}

// layoutOf looks for a GUID partition table after the protective boot record
// (UEFI, section 5).
func layoutOf(head []byte) string {
	switch {
	case len(head) < 1024:
		return ""
	case bytes.Equal(head[512:520], []byte("EFI PART")):
		return "GPT"
	}
	return "none"
}

// cipherOf reads the key length from an encrcdsa header of version 2.
func cipherOf(head []byte) string {
	if len(head) >= 0x1c && binary.BigEndian.Uint32(head[8:]) == 2 {
		if bits := binary.BigEndian.Uint32(head[0x18:]); bits == 128 || bits == 256 {
			return "AES-" + strconv.Itoa(int(bits))
		}
	}
	return "encrypted"
}

func inspectBundle(dir *hostio.Dir, name string) (fileInfo, error) {
	list := path.Join(name, "Info.plist")
	text, err := dir.ReadFile(list, maxInfoPlist)
	if err != nil {
		return fileInfo{}, err
	}
	d, err := command.ParsePlist(text)
	if err != nil {
		return fileInfo{}, fmt.Errorf("reading %q: %w", list, err)
	}
	b := fileInfo{format: diskimage.UDSB}
	b.size, _ = d.Int("size")
	b.band, _ = d.Int("band-size")
	b.version, _ = d.Int("bundle-backingstore-version")
	if d.String("diskimage-bundle-type") != "com.apple.diskimage.sparsebundle" || b.size <= 0 || b.band <= 0 {
		return fileInfo{}, fmt.Errorf("reading %q: not the property list of a sparse bundle", list)
	}
	if fi, err := dir.Lstat(path.Join(name, "mapped")); err == nil {
		b.mapped = fi.IsDir()
	}
	head, err := readHead(dir, path.Join(name, "token"))
	if err != nil {
		return b, err
	}
	if bytes.HasPrefix(head, []byte("encrcdsa")) {
		b.cipher = cipherOf(head)
		return b, nil
	}
	if head, err = readHead(dir, path.Join(name, "bands", "0")); len(head) > 0 {
		b.layout = layoutOf(head)
	}
	return b, err
}

// readHead reads the first kilobyte of a file; a missing file has none.
func readHead(dir *hostio.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name, hostio.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readPart(f, 0, 1024)
}

// readPart reads up to n bytes.
func readPart(r io.ReaderAt, off int64, n int) ([]byte, error) {
	p := make([]byte, n)
	m, err := r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:m], err
}

// checkMade compares the files with what was requested.
func (i fileInfo) checkMade(f format, encryption string) error {
	encrypted := encryption != "" && encryption != "none"
	switch {
	case encrypted && i.cipher == "" && f.Name != diskimage.ASIF: // where ASIF keeps its keys is not known
		return fmt.Errorf("%w: the image is not encrypted", ErrNoResult)
	case !encrypted && i.cipher != "":
		return fmt.Errorf("%w: the image is encrypted", ErrNoResult)
	case encrypted && i.cipher != "" && i.cipher != "encrypted" && i.cipher != encryption:
		return fmt.Errorf("%w: the image is encrypted with %s", ErrNoResult, i.cipher)
	case i.format == "" || i.format == f.Name:
		return nil
	// encrypted ASIF has no known magic number
	case encrypted && f.Name == diskimage.ASIF && i.format == diskimage.UDRW && i.layout != "GPT":
		return nil
	case f.Name == diskimage.UDTO && i.format == diskimage.UDRW, f.ReadOnly && f.Name != diskimage.UDTO && i.format == "UDIF":
		return nil
	}
	return fmt.Errorf("%w: the image is %s", ErrNoResult, i.format)
}

// reportTo reports what was made; requested is the band size of the plan.
func (i fileInfo) reportTo(t *reportBuilder, requested int64) {
	t.note("layout", i.layout)
	t.note("cipher", i.cipher)
	if i.band > 0 {
		t.note("band_size_used", strconv.FormatInt(i.band, 10))
		t.note("bundle_version", strconv.FormatInt(i.version, 10))
		t.note("mapped", strconv.FormatBool(i.mapped))
	}
	if requested > 0 {
		t.note("band_size_asked", strconv.FormatInt(requested, 10))
		if i.band != requested {
			t.warn("bands are %d bytes, %d were asked for", i.band, requested)
		}
	}
	if i.version > 1 {
		t.note("bundle_note", "backing-store version 2 keeps track of unmapped space in mapped/")
	}
}
