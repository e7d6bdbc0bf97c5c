package imagetool

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/container"
	diskimage "dmgbench/internal/image"
)

// formatInfo is a format in the words of the tools.
type formatInfo struct {
	name        string // four letters
	typ         string // of `create -type`, "" if hdiutil does not make it
	image       string // of `diskutil image create`, "" if that does not
	extension   string
	description string // of imageinfo
	class       string
	store       string // backing store
	attached    string // what info calls an attached one
	readOnly    bool   // UDIF, made only by convert
}

// formats are the formats that can be made; UDRW is the default and therefore first.
var formats = func() (rows []formatInfo) {
	for _, f := range diskimage.Formats {
		rows = append(rows, formatInfo{f.Name, f.CreateType, f.ImageType, f.Extension, f.Description, f.Class, f.Store,
			f.Attached, f.ReadOnly && f.Name != diskimage.UDTO})
	}
	return rows
}()

// containerFormat is what the container package calls a format: UDTO is a UDRW of another name.
func containerFormat(name string) string {
	if name == diskimage.UDTO {
		return container.UDRW
	}
	return name
}

// Columns of the table: the names of the formats that a verb makes, "" for the others.
func byType(f formatInfo) string { return f.typ }

func byImage(f formatInfo) string {
	if f.readOnly {
		return ""
	}
	return f.image
}

// byFrom are the names of formats that `diskutil image create from` makes, as Apple's does.
func byFrom(f formatInfo) string {
	return f.image
}

// byConversion are the names of formats that hdiutil converts images to.
func byConversion(f formatInfo) string {
	if f.readOnly || f.typ != "" {
		return f.name
	}
	return ""
}

// formatWords lists the formats that a verb makes, for help and messages.
func formatWords(column func(formatInfo) string) string {
	var words []string
	for _, f := range formats {
		if w := column(f); w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}

// formatNamed finds a format by one of its names: column returns the word of the verb.
func formatNamed(word string, column func(formatInfo) string) (formatInfo, error) {
	for _, f := range formats {
		if n := column(f); n != "" && strings.EqualFold(n, word) {
			return f, nil
		}
	}
	if f := formatInfoOf(strings.ToUpper(word)); f.class != "unknown" {
		return formatInfo{}, refuse("format %s is not made by this verb: want one of %s%s", f.name, formatWords(column),
			f.otherMaker())
	}
	return formatInfo{}, refuse("format %q is not known: want one of %s", word, formatWords(column))
}

// otherMaker is a hint at the maker of a format that only diskutil makes.
func (f formatInfo) otherMaker() string {
	if f.typ != "" || byImage(f) == "" {
		return ""
	}
	return fmt.Sprintf("; %s is made by 'diskutil image create'", f.image)
}

// byExtension is the format that belongs to a file name, else UDRW.
func byExtension(name string) formatInfo {
	extension := filepath.Ext(filepath.Clean(name)) // of "x.sparsebundle/" too, as shells complete it
	i := slices.IndexFunc(formats, func(f formatInfo) bool { return strings.EqualFold(extension, f.extension) })
	return formats[max(i, 0)]
}

// formatInfo is the format of an image. UDTO differs from UDRW only by the file's name: their bytes are the same.
func (i *image) formatInfo() formatInfo {
	name := i.Format()
	if name == container.UDRW && strings.EqualFold(filepath.Ext(i.name), ".cdr") {
		name = diskimage.UDTO
	}
	return formatInfoOf(name)
}

// formatInfoOf is what is known of a format, at least its name.
func formatInfoOf(name string) formatInfo {
	if i := slices.IndexFunc(formats, func(f formatInfo) bool { return f.name == name }); i >= 0 {
		return formats[i]
	}
	return formatInfo{name: name, description: name, class: "unknown", store: "CBSDBackingStore", attached: name}
}
