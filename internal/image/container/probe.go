package container

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/system/hostio"
)

// probeResult is what a container shows of itself.
type probeResult struct {
	path        string // of the container
	format      string // one that Create makes, or UDIF; "" if unsupported is set, and for an encrypted file
	info        info   // of a bundle
	plist       []byte // the property list that info was read from
	backup      bool   // plist is that of Info.bckup
	size        int64  // of the device, for UDRW
	unsupported string // why it cannot be opened; empty if it can
	foreign     bool   // the text in unsupported is the name of another program's format
	encryption  string // "" if not encrypted; of an encrypted file only keyBits and path are known besides
	keyBits     int    // of the cipher, by the header alone; 0 if it shows none
}

// Description is what the files of a container show without a passphrase.
type Description struct {
	// Format is UDIF for every format with a UDIF trailer, and "" for an encrypted
	// file and where NoContainer is set; an encrypted bundle has its format.
	Format string
	// NoContainer is what was found instead of a container, "" if it is one.
	NoContainer string
	Size        int64 // of the device in bytes, 0 where the files do not show it
	BandSize    int64 // of a bundle in bytes
	Version     int64 // of the backing store of a bundle
	Encrypted   bool
	KeyBits     int // of the cipher; 0 where the files do not show it
}

// Describe inspects the files of a container. If nothing has the name, the error is
// fs.ErrNotExist.
func Describe(dir *hostio.Dir, name string) (Description, error) {
	c, err := probe(dir, name)
	return Description{Format: c.format, NoContainer: c.unsupported, Size: cmp.Or(c.info.Size, c.size),
		BandSize: c.info.BandSize, Version: c.info.Version, Encrypted: c.encryption != "", KeyBits: c.keyBits}, err
}

// checkSupported returns an error for contents that cannot be opened.
func (c *probeResult) checkSupported(doing string) error {
	if c.unsupported == "" {
		return nil
	}
	return &UnsupportedError{Path: c.path, Found: c.unsupported, Doing: doing, Foreign: c.foreign}
}

// UDIF means any of the formats with a UDIF trailer; the runs in the file show
// which one it is.
const UDIF = "UDIF"

// Descriptions of Apple's two encryptions.
const (
	encryptionV2 = "encrypted image (encrcdsa v2)"
	encryptionV1 = "encrypted image (cdsaencr v1)"
)

// Marks of trailers: at the start of that of UDIF, at the end of that of the encryption of version 1.
const (
	markUDIF = "koly"
	markV1   = "cdsaencr"
)

// probe identifies a container by its content, not by its extension. The order
// is that of Apple's tools: encryption first, then the formats.
func probe(dir *hostio.Dir, name string) (c probeResult, err error) {
	defer func() { c.path = filepath.Join(dir.Path(), name) }()
	fi, err := dir.Lstat(name)
	if err != nil {
		return c, err
	}
	if fi.IsDir() {
		sub, err := dir.Sub(name)
		if err != nil {
			return c, err
		}
		defer sub.Close()
		return probeBundle(sub)
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return c, err
	}
	defer f.Close()
	return probeFile(f)
}

// unusablePlist are the errors about a property list itself. Its copy is used only
// after one of these; any other error, such as a failed read, is returned.
var unusablePlist = []error{fs.ErrNotExist, ErrCorrupt, errNotBundle, hostio.ErrTooLarge, hostio.ErrNotRegular}

// probeBundle reads the property list of a bundle, or its copy where the list
// is unusable, and looks for an encryption header in the token.
func probeBundle(dir *hostio.Dir) (c probeResult, err error) {
	c.format = UDSB
	c.info, c.plist, err = readInfo(dir, "Info.plist")
	if err != nil {
		if !slices.ContainsFunc(unusablePlist, func(kind error) bool { return errors.Is(err, kind) }) {
			return probeResult{}, err
		}
		var second error
		if c.info, c.plist, second = readInfo(dir, "Info.bckup"); second != nil {
			if errors.Is(err, fs.ErrNotExist) && errors.Is(second, fs.ErrNotExist) || errors.Is(err, errNotBundle) {
				return probeResult{unsupported: "folder that is not a sparse bundle"}, nil
			}
			return probeResult{}, fmt.Errorf("%w (and the copy: %w)", err, second)
		}
		c.backup = true
	}
	token, err := dir.Open("token", hostio.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return probeResult{}, err
	}
	defer token.Close()
	e, err := endsOf(token)
	c.encryption, c.keyBits = e.encryption(), e.keyBits()
	return c, err
}

// ends are the first and the last bytes of a file, at most a sector of each:
// what identifies a format.
type ends struct {
	head, tail []byte
	size       int64 // of the file
}

// endsOf reads the ends of a file.
func endsOf(f *hostio.File) (ends, error) {
	st, err := f.Stat()
	if err != nil {
		return ends{}, err
	}
	return readEnds(f, st.Size)
}

// readEnds reads the ends of r, which is size bytes long.
func readEnds(r io.ReaderAt, size int64) (ends, error) {
	n := min(size, SectorSize)
	e := ends{make([]byte, n), make([]byte, n), size}
	if m, err := r.ReadAt(e.head, 0); m < len(e.head) {
		return ends{}, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	if m, err := r.ReadAt(e.tail, size-n); m < len(e.tail) {
		return ends{}, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	return e, nil
}

// keyBits is the key length in the header of an encrypted file of version 2.
func (e ends) keyBits() int {
	const version, bits = 8, 24 // offsets, see package crypt
	if e.encryption() == encryptionV2 && len(e.head) >= bits+4 && e.head[version+3] == 2 {
		if n := binary.BigEndian.Uint32(e.head[bits:]); n == 128 || n == 256 {
			return int(n)
		}
	}
	return 0
}

// encryption looks for Apple's encryption headers: encrcdsa (version 2) at the
// start, cdsaencr (version 1) at the end.
func (e ends) encryption() string {
	switch {
	case bytes.HasPrefix(e.head, []byte("encrcdsa")):
		return encryptionV2
	case bytes.HasSuffix(e.tail, []byte(markV1)):
		return encryptionV1
	}
	return ""
}

// identify tells the format of an unencrypted file, or of the decrypted content of
// an encrypted one. An image of another program whose size is a multiple of
// SectorSize counts as UDRW here; see [ForeignFormat].
func (e ends) identify() probeResult {
	for format, d := range drivers {
		if d.magic != "" && bytes.HasPrefix(e.head, []byte(d.magic)) {
			return probeResult{format: format}
		}
	}
	switch {
	case bytes.HasPrefix(e.head, []byte(markUDIF)):
		return probeResult{unsupported: "very old UDIF with its trailer in front"}
	case bytes.HasPrefix(e.tail, []byte(markUDIF)) && len(e.tail) == SectorSize:
		return probeResult{format: UDIF}
	case e.size == 0:
		return probeResult{unsupported: "file of 0 bytes"}
	case e.size%SectorSize == 0:
		return probeResult{format: UDRW, size: e.size}
	case e.foreign() != "":
		return probeResult{unsupported: e.foreign(), foreign: true}
	}
	return probeResult{unsupported: fmt.Sprintf("file of %d bytes, no multiple of %d", e.size, SectorSize)}
}

// probeFile identifies a container of one file.
func probeFile(f *hostio.File) (probeResult, error) {
	e, err := endsOf(f)
	if err != nil {
		return probeResult{}, err
	}
	if encryption := e.encryption(); encryption != "" {
		return probeResult{encryption: encryption, keyBits: e.keyBits()}, nil
	}
	return e.identify(), nil
}

// foreignFormats are disk image formats of other programs, by a mark in the
// first 128 bytes of their files. Sources: QEMU's docs/interop (qcow2,
// qed_spec, parallels) and block drivers, VMware's "Virtual Disk Format 5.0",
// Microsoft's VHD 1.0 and MS-VHDX.
var foreignFormats = []struct {
	at   int
	mark string
	name string
}{
	{0, "QFI\xfb\x00\x00\x00\x01", "QEMU image (qcow, version 1)"},
	{0, "QFI\xfb\x00\x00\x00\x02", "QEMU image (qcow2, version 2)"},
	{0, "QFI\xfb\x00\x00\x00\x03", "QEMU image (qcow2, version 3)"},
	{0, "QED\x00", "QEMU image (QED)"},
	{0, "KDMV", "VMware image (VMDK)"},
	{0, "COWD", "VMware image (VMDK of ESX)"},
	{0, "# Disk DescriptorFile", "VMware image (VMDK descriptor)"},
	{0x40, "\x7f\x10\xda\xbe", "VirtualBox image (VDI)"},
	{0, "conectix", "Virtual PC image (VHD)"},
	{0, "vhdxfile", "Hyper-V image (VHDX)"},
	{0, "WithoutFreeSpace", "Parallels image"},
	{0, "WithouFreSpacExt", "Parallels image"},
}

// vhdVersion is the only version of the footer of VHD images, at byte 12 of it.
const vhdVersion = 0x00010000

// foreign names the format of another program that the file has, "" if none. A
// VHD image of fixed size has its mark only at the end.
func (e ends) foreign() string {
	for _, k := range foreignFormats {
		if len(e.head) >= k.at && bytes.HasPrefix(e.head[k.at:], []byte(k.mark)) {
			return k.name
		}
	}
	if len(e.tail) == SectorSize && bytes.HasPrefix(e.tail, []byte("conectix")) &&
		binary.BigEndian.Uint32(e.tail[12:]) == vhdVersion {
		return "Virtual PC image (VHD of fixed size)"
	}
	return ""
}

// ForeignFormat names the format of another program that the content of a raw
// image has, "" for other images. The caller refuses such a file unless the user
// states that it is a raw image.
func ForeignFormat(img Image) (string, error) {
	r, ok := img.(*raw)
	if !ok {
		return "", nil
	}
	e, err := readEnds(r, r.Size())
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", r.path, err)
	}
	return e.foreign(), nil
}

// maxAfter is how many bytes after the end of an image are noticed.
const maxAfter = 1 << 20

// EndOfImage returns where an image with a trailer ends that is followed by other bytes, which make it look like a raw
// one; 0 for other images. The trailer has to fit its place in the file, so that a disk with an image file on it is
// none of them, nor is one that starts with a boot sector.
func EndOfImage(img Image) (int64, error) {
	r, ok := img.(*raw)
	if !ok {
		return 0, nil
	}
	e, err := readEnds(r, r.Size())
	if err != nil || bytes.HasSuffix(e.head, []byte{0x55, 0xAA}) {
		return 0, err
	}
	tail := make([]byte, min(r.Size(), maxAfter))
	first := r.Size() - int64(len(tail))
	if n, err := r.ReadAt(tail, first); n < len(tail) {
		return 0, fmt.Errorf("reading %q: %w", r.path, err)
	}
	isTrailer := func(at int) bool {
		var mark [5]byte
		t, err := udif.ParseTrailer(tail[at:min(at+SectorSize, len(tail))])
		if err != nil || t.PlistOffset > uint64(first)+uint64(at) {
			return false
		}
		_, err = r.ReadAt(mark[:], int64(t.PlistOffset))
		return err == nil && string(mark[:]) == "<?xml"
	}
	isHeader := func(at int) bool {
		start := at + len(markV1) - crypt.TrailerSize
		return start >= 0 &&
			binary.BigEndian.Uint64(tail[start+crypt.TrailerStart:]) == uint64(first)+uint64(start)
	}
	if at := findMark(tail, markUDIF, isTrailer); at >= 0 {
		return first + int64(at) + SectorSize, nil
	}
	if at := findMark(tail, markV1, isHeader); at >= 0 {
		return first + int64(at+len(markV1)), nil
	}
	return 0, nil
}

// findMark is the first place of the mark in b that fits, or -1.
func findMark(b []byte, mark string, fits func(at int) bool) int {
	for at := 0; at < len(b); at++ {
		next := bytes.Index(b[at:], []byte(mark))
		if next < 0 {
			return -1
		}
		at += next
		if fits(at) {
			return at
		}
	}
	return -1
}
