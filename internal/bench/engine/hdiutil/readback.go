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

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/hostio"
)

// fileInfo is what the files of a container show. No tool is asked, so that
// inspecting costs little inside a timed step.
type fileInfo struct {
	format  string // UDRW (also for UDTO), UDSB, UDSP, ASIF, UDIF (all other read-only formats); "": encrypted
	size    int64  // of the device in bytes, 0 where only the tool knows it
	band    int64  // bytes
	version int64  // backing store of a bundle
	mapped  bool   // a bundle has the folder mapped/
	cipher  string // "AES-256"; encryptedUnknown where the key length cannot be seen; "": not encrypted
	layout  string // "GPT", "none"; "" where it cannot be seen
}

const (
	formatUDIF       = "UDIF"
	encryptedUnknown = "encrypted"
	// maxInfoPlist bounds Info.plist, in bytes.
	maxInfoPlist = 64 << 10
)

// inspect inspects the files now. An ASIF image without a magic number shows
// neither size nor layout: the length of such a file is never the device's.
func (c *image) inspect() (fileInfo, error) {
	i, err := inspectContainer(c.Dir, c.File)
	if c.format.Name == diskimage.ASIF && i.format == diskimage.UDRW {
		i.size, i.layout = 0, ""
	}
	return i, err
}

// inspectContainer inspects the file or bundle of a name. A missing one is
// fs.ErrNotExist.
func inspectContainer(dir *hostio.Dir, name string) (fileInfo, error) {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return fileInfo{}, err
	case fi.IsDir():
		return inspectBundle(dir, name)
	}
	return openAndInspect(dir, name)
}

// openAndInspect inspects a file. A link or a device is hostio.ErrNotRegular.
func openAndInspect(dir *hostio.Dir, name string) (fileInfo, error) {
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return fileInfo{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fileInfo{}, err
	}
	return inspectFile(f, st.Size)
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

// inspectFile identifies a file by its magic numbers, encryption first, as
// Apple's tools do.
func inspectFile(r io.ReaderAt, size int64) (fileInfo, error) {
	head, err1 := readPart(r, 0, 1024)
	tail, err2 := readPart(r, max(0, size-512), 512)
	if err := errors.Join(err1, err2); err != nil {
		return fileInfo{}, err
	}
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("encrcdsa"):
		return fileInfo{cipher: cipherOf(head)}, nil
	case bytes.HasSuffix(tail, []byte("cdsaencr")):
		return fileInfo{cipher: encryptedUnknown}, nil
	case starts("sprs"):
		return fileInfo{format: diskimage.UDSP}, nil
	case starts("shdw"):
		return fileInfo{format: diskimage.ASIF}, nil
	case len(tail) == 512 && bytes.HasPrefix(tail, []byte("koly")):
		// Raw data may have an empty trailer, as old tools wrote it after UDRW:
		// without property list and resource fork, and after as many bytes of
		// data as it names.
		u64 := func(at int) uint64 { return binary.BigEndian.Uint64(tail[at:]) }
		data := u64(32)
		if u64(48) != 0 || u64(224) != 0 || data == 0 || data > uint64(size-512) {
			return fileInfo{format: formatUDIF}, nil
		}
		size = int64(data)
	}
	i := fileInfo{format: diskimage.UDRW, size: size}
	// A GUID partition table follows the protective boot record (UEFI, section
	// 5).
	switch {
	case len(head) < 1024:
	case bytes.Equal(head[512:520], []byte("EFI PART")):
		i.layout = "GPT"
	default:
		i.layout = "none"
	}
	return i, nil
}

// cipherOf reads the key length from an encrcdsa header of version 2.
func cipherOf(head []byte) string {
	if len(head) >= 0x1c && binary.BigEndian.Uint32(head[8:]) == 2 {
		if bits := binary.BigEndian.Uint32(head[0x18:]); bits == 128 || bits == 256 {
			return "AES-" + strconv.Itoa(int(bits))
		}
	}
	return encryptedUnknown
}

// inspectBundle reads the property list of a bundle, and the start of the files
// that show encryption and layout.
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
	b := fileInfo{format: diskimage.UDSB, size: d.Int("size"), band: d.Int("band-size"),
		version: d.Int("bundle-backingstore-version")}
	if d.String("diskimage-bundle-type") != "com.apple.diskimage.sparsebundle" || b.size == 0 || b.band == 0 {
		return fileInfo{}, fmt.Errorf("reading %q: not the property list of a sparse bundle", list)
	}
	if fi, err := dir.Lstat(path.Join(name, "mapped")); err == nil {
		b.mapped = fi.IsDir()
	}
	// The token has the header of an encrypted bundle, band 0 the start of the
	// device. Either may be missing.
	token, err1 := openAndInspect(dir, path.Join(name, "token"))
	first, err2 := openAndInspect(dir, path.Join(name, "bands", "0"))
	for _, err := range []error{err1, err2} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	if b.cipher = token.cipher; b.cipher == "" {
		b.layout = first.layout
	}
	return b, nil
}

// checkMade compares the files with what was requested.
func (i fileInfo) checkMade(f format, encryption string) error {
	encrypted := engine.Spec{Encryption: encryption}.Encrypted()
	found := i.format
	switch {
	case encrypted && i.cipher == "" && f.Name != diskimage.ASIF: // where ASIF keeps its keys is not known
		return fmt.Errorf("%w: the image is not encrypted", ErrNoResult)
	case !encrypted && i.cipher != "":
		return fmt.Errorf("%w: the image is encrypted", ErrNoResult)
	case encrypted && i.cipher != "" && i.cipher != encryptedUnknown && i.cipher != encryption:
		return fmt.Errorf("%w: the image is encrypted with %s", ErrNoResult, i.cipher)
	case found == "" || found == f.Name || found == formatUDIF && f.UDIF:
		return nil
	case found == diskimage.UDRW && f.Name == diskimage.UDTO:
		return nil
	case found == diskimage.UDRW && f.Name == diskimage.ASIF && encrypted && i.layout != "GPT":
		return nil // encrypted ASIF has no known magic number
	}
	return fmt.Errorf("%w: the image is %s", ErrNoResult, found)
}

// reportTo reports what was made; requested is the band size of the plan.
func (i fileInfo) reportTo(t *engine.Report, requested int64) {
	t.Note("layout", i.layout)
	t.Note("cipher", i.cipher)
	if i.band > 0 {
		t.Note("band_size_used", strconv.FormatInt(i.band, 10))
		t.Note("bundle_version", strconv.FormatInt(i.version, 10))
		t.Note("mapped", strconv.FormatBool(i.mapped))
	}
	if requested > 0 {
		t.Note("band_size_asked", strconv.FormatInt(requested, 10))
		if i.band != requested {
			t.Warn("bands are %d bytes, %d were asked for", i.band, requested)
		}
	}
	if i.version > 1 {
		t.Note("bundle_note", "backing-store version 2 keeps track of unmapped space in mapped/")
	}
}
