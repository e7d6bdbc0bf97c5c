package imagetool

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/container"
)

// formatInfo is a format by the words of the tools.
type formatInfo struct {
	name        string // four letters
	typ         string // of `create -type`, "" if hdiutil does not make it
	image       string // of `diskutil image create`, "" if that does not
	extension   string
	description string // of imageinfo
	class       string
	store       string // backing store
	attached    string // how info calls an attached one
	readOnly    bool   // made by convert alone, never changed
}

// formatTable are the formats that can be made, as soon as the container package makes them.
var formatTable = []formatInfo{
	{"UDRW", "UDIF", "RAW", ".dmg", "raw read/write", "CRawDiskImage", "CBSDBackingStore", "read/write", false},
	{"UDSB", "SPARSEBUNDLE", "UDSB", ".sparsebundle", "sparse bundle", "CSparseBundleDiskImage", "CBundleBackingStore", "sparse bundle disk image", false},
	{"UDTO", "UDTO", "", ".cdr", "DVD/CD-R master", "CRawDiskImage", "CBSDBackingStore", "CD-R master", false},
	{"UDSP", "SPARSE", "", ".sparseimage", "sparse", "CSparseDiskImage", "CBSDBackingStore", "sparse disk image", false},
	{"ASIF", "", "ASIF", ".asif", "Apple sparse image format", "ASIF", "CBSDBackingStore", "Apple sparse image format", false},
}

// readOnlyTable are formats that other images are converted to.
var readOnlyTable = readOnly(
	formatInfo{name: "UDRO", description: "UDIF read-only"}, formatInfo{name: "UDZO", description: "UDIF read-only compressed (zlib)"},
	formatInfo{name: "UDCO", description: "UDIF read-only compressed (ADC)"}, formatInfo{name: "UDBZ", description: "UDIF read-only compressed (bzip2)"},
	formatInfo{name: "ULFO", description: "UDIF read-only compressed (lzfse)"}, formatInfo{name: "ULMO", description: "UDIF read-only compressed (lzma)"},
	formatInfo{name: "UFBI", description: "UDIF entire image with MD5 checksum"},
)

func readOnly(list ...formatInfo) []formatInfo {
	for i := range list {
		list[i].readOnly, list[i].extension = true, ".dmg"
	}
	return list
}

// here says whether images of the format can be made.
func (f formatInfo) here() bool {
	return f.readOnly || container.Extension(containerFormat(f.name)) != ""
}

// containerFormat is what the container package calls a format: UDTO is a UDRW of another name.
func containerFormat(name string) string {
	if name == "UDTO" {
		return container.UDRW
	}
	return name
}

func byName(f formatInfo) string  { return f.name }
func byType(f formatInfo) string  { return f.typ }
func byImage(f formatInfo) string { return f.image }

// byFrom are the names of formats that `diskutil image create from` makes, as Apple's does.
func byFrom(f formatInfo) string {
	switch f.name {
	case "UDRO", "UDZO", "ULFO", "ULMO":
		return f.name
	}
	return f.image
}

// byConvert are the names of formats that hdiutil makes.
func byConvert(f formatInfo) string {
	if f.typ == "" {
		return ""
	}
	return f.name
}

// byConversion are the names of formats that images can be converted to.
func byConversion(f formatInfo) string {
	if f.readOnly {
		return f.name
	}
	return byConvert(f)
}

// formatWords are what a tool may call the formats that can be made, for help and messages.
func formatWords(column func(formatInfo) string) string {
	var words []string
	for _, f := range slices.Concat(formatTable, readOnlyTable) {
		if w := column(f); w != "" && f.here() {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}

// formatNamed finds a format by one of its names: column says which of the tools' words it is.
func formatNamed(word string, column func(formatInfo) string) (formatInfo, error) {
	for _, f := range slices.Concat(formatTable, readOnlyTable) {
		if n := column(f); n == "" || !strings.EqualFold(n, word) {
			continue
		} else if f.here() {
			return f, nil
		}
		return formatInfo{}, refuse("format %s is not there yet", strings.ToUpper(word))
	}
	for _, f := range append(readOnlyTable, formatTable...) {
		if strings.EqualFold(f.name, word) {
			return formatInfo{}, refuse("format %s is not made by this verb: want one of %s%s", f.name, formatWords(column), f.elsewhere())
		}
	}
	return formatInfo{}, refuse("format %q is not known: want one of %s", word, formatWords(column))
}

// elsewhere says what makes a format that only diskutil makes.
func (f formatInfo) elsewhere() string {
	if f.typ != "" || f.image == "" {
		return ""
	}
	return fmt.Sprintf("; %s is made by 'diskutil image create'", f.image)
}

// byExtension is the format that a file name says, UDRW if it says none.
func byExtension(name string) formatInfo {
	for _, f := range formatTable {
		if strings.EqualFold(filepath.Ext(filepath.Clean(name)), f.extension) { // of "x.sparsebundle/" too, as shells complete it
			return f
		}
	}
	return formatTable[0]
}

// formatOf is the format of an image. UDTO differs from UDRW by the file's name alone: their bytes are the same.
func formatOf(p place, img container.Image) formatInfo {
	name := img.Format()
	if name == container.UDRW && strings.EqualFold(filepath.Ext(p.name), ".cdr") {
		name = "UDTO"
	}
	return infoOf(name)
}

// infoOf is what is known of a format, its name at least.
func infoOf(name string) formatInfo {
	for _, f := range formatTable {
		if f.name == name {
			return f
		}
	}
	for _, f := range readOnlyTable {
		if f.name == name {
			f.class, f.store, f.attached = "CUDIFDiskImage", "CUDIFEncoding", f.description
			return f
		}
	}
	return formatInfo{name: name, description: name, class: "unknown", store: "CBSDBackingStore", attached: name}
}
