// Package image declares what a disk image is: the registry of image formats
// and file systems, the limits of sizes and bands, and [Spec], the description
// of an image that plans, engines and containers check with one
// [Spec.Validate].
//
// A new format is one row of [Formats] here and its implementation in package
// container.
package image

import (
	"math"
	"strings"
)

// Names of the formats that code refers to one by one; [Formats] lists all of
// them.
const (
	UDRW = "UDRW" // read-write image: the sectors of the device in one file
	UDSB = "UDSB" // sparse bundle: a folder of band files
	UDSP = "UDSP" // sparse image: one file that grows by bands
	ASIF = "ASIF" // Apple sparse image format
	UDTO = "UDTO" // master of an optical disc: a read-only UDRW with another extension
	UDZO = "UDZO" // read-only image, compressed with zlib
	UDBZ = "UDBZ" // read-only image, compressed with bzip2
)

// Allocation is how the files of an image take space on the host.
type Allocation int

// The kinds of allocation.
const (
	AllocateAll     Allocation = iota // the whole size of the device, when the image is made
	AllocateUnits                     // whole bands or chunks, as they are written
	AllocateContent                   // what the image contained when it was made, mostly compressed
)

// Format is one row of the registry: everything about a format that is data.
type Format struct {
	// Apple's four letters, as plans, results and `hdiutil convert -format`
	// name it
	Name string
	// -type of `hdiutil create`, "" if hdiutil makes no empty image of the format
	CreateType string
	// --format of `diskutil image create`, "" if diskutil does not know the format
	ImageType string
	// Extension: of file names, with its dot
	Extension string
	// MacOS: first major version of macOS with the format, 0: all of them
	MacOS int

	Allocation Allocation
	// Unit: bytes of a band or chunk by default, 0: the format has none
	Unit int64
	// MaxUnits: most bands or chunks of a device, 0: [MaxSize] is the only
	// limit
	MaxUnits int64
	// AnyBand: containers of the format accept another band size than Unit
	AnyBand bool
	// Folder: a folder of band files; the others are one file
	Folder bool
	// ReadOnly: made by converting another image, never changed
	ReadOnly bool
	// UDIF: a UDIF file: chunk tables, checksums and a trailer
	UDIF bool
	// Encrypted: the layout of encrypted images is known
	Encrypted bool

	// Title: in sentences and labels: "sparse bundle"
	Title string
	// Legend: in the legend of reports
	Legend string
	// `hdiutil imageinfo`: Format Description
	Description string
	// `hdiutil imageinfo`: Class Name
	Class string
	// `hdiutil imageinfo`: Backing Store Information
	Store string
	// `hdiutil info`: image-type
	Attached string
}

// Formats are all image formats. Formats that are made empty come first, UDRW,
// the default, before all others.
var Formats = []Format{
	{Name: UDRW, CreateType: "UDIF", ImageType: "RAW", Extension: ".dmg", Encrypted: true,
		Title:       "read-write image",
		Legend:      "read/write image of fixed size (RAW); allocated in full when made, sparse after a trim",
		Description: "raw read/write", Class: "CRawDiskImage", Store: "CBSDBackingStore", Attached: "read/write"},
	{Name: UDSB, CreateType: "SPARSEBUNDLE", ImageType: "UDSB", Extension: ".sparsebundle", Encrypted: true,
		Allocation: AllocateUnits, Unit: 16384 * SectorSize, AnyBand: true, Folder: true,
		// as measured on Apple's bundles
		Title:       "sparse bundle",
		Legend:      "sparse bundle: a folder of band files that come and go with the contents",
		Description: "sparse bundle", Class: "CSparseBundleDiskImage", Store: "CBundleBackingStore",
		Attached: "sparse bundle disk image"},
	{Name: UDSP, CreateType: "SPARSE", Extension: ".sparseimage", Encrypted: true,
		Allocation: AllocateUnits, Unit: 2048 * SectorSize, AnyBand: true,
		MaxUnits:    math.MaxUint32 - 1, // table entries count from 1 in 32 bits
		Title:       "sparse image",
		Legend:      "sparse image: one file that grows",
		Description: "sparse", Class: "CSparseDiskImage", Store: "CBSDBackingStore", Attached: "sparse disk image"},
	{Name: ASIF, ImageType: "ASIF", Extension: ".asif", MacOS: 26,
		Allocation: AllocateUnits, Unit: 1 << 20,
		MaxUnits:    math.MaxUint32, // the logical chunk after them holds the metadata
		Title:       "Apple sparse image",
		Legend:      "Apple Sparse Image Format, since macOS 26: one sparse file",
		Description: "Apple sparse image format", Class: "ASIF", Store: "CBSDBackingStore",
		Attached: "Apple sparse image format"},
	udif("UDRO", "UDRO", "read-only image", "read-only image", "UDIF read-only"),
	udif("UDCO", "", "ADC image", "read-only, compressed with ADC", "UDIF read-only compressed (ADC)"),
	udif(UDZO, UDZO, "zlib image", "read-only, compressed with zlib", "UDIF read-only compressed (zlib)"),
	udif(UDBZ, "", "bzip2 image", "read-only, compressed with bzip2", "UDIF read-only compressed (bzip2)"),
	udif("ULFO", "ULFO", "LZFSE image", "read-only, compressed with LZFSE", "UDIF read-only compressed (lzfse)"),
	udif("ULMO", "ULMO", "LZMA image", "read-only, compressed with LZMA", "UDIF read-only compressed (lzma)"),
	{Name: UDTO, CreateType: "UDTO", Extension: ".cdr", ReadOnly: true, Encrypted: true,
		Title: "CD/DVD master", Legend: "master of an optical disc",
		Description: "DVD/CD-R master", Class: "CRawDiskImage", Store: "CBSDBackingStore", Attached: "CD-R master"},
	entireImage(),
}

// udif is the row of a read-only UDIF format.
func udif(name, imageType, title, legend, description string) Format {
	return Format{Name: name, ImageType: imageType, Extension: ".dmg", Allocation: AllocateContent, ReadOnly: true,
		UDIF: true, Encrypted: true, Title: title, Legend: legend, Description: description, Class: "CUDIFDiskImage",
		Store: "CUDIFEncoding", Attached: description}
}

// entireImage is the row of UFBI, which stores every sector.
func entireImage() Format {
	f := udif("UFBI", "", "entire image", "entire device with its partition map", "UDIF entire image with MD5 checksum")
	f.Allocation = AllocateAll
	return f
}

// FormatNamed finds a format by its name or by its type in diskutil (RAW is
// UDRW), in upper or lower case.
func FormatNamed(name string) (Format, bool) {
	for _, f := range Formats {
		if strings.EqualFold(f.Name, name) || f.ImageType != "" && strings.EqualFold(f.ImageType, name) {
			return f, true
		}
	}
	return Format{}, false
}

// FormatNames are the names of the formats that match, in the order of the
// registry; nil matches all.
func FormatNames(match func(Format) bool) (names []string) {
	for _, f := range Formats {
		if match == nil || match(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Writable reports whether images of the format can be made empty and written
// to.
func (f Format) Writable() bool { return !f.ReadOnly }

// Grows reports whether images take space in units as they are written, and can
// be compacted.
func (f Format) Grows() bool { return f.Allocation == AllocateUnits }

// BandSize is the size of the bands or chunks in bytes where the spec asks for
// band, 0 for the default.
func (f Format) BandSize(band int64) int64 {
	if band > 0 && f.AnyBand {
		return band
	}
	return f.Unit
}
