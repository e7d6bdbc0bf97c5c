package plan

import "strings"

// formatNames are the words for the values of the key format.
var formatNames = map[string]string{
	"UDRW": "read-write image", "RAW": "read-write image", "UDSB": "sparse bundle", "UDSP": "sparse image", "ASIF": "Apple sparse image",
	"UDRO": "read-only image", "UDCO": "ADC image", "UDZO": "zlib image", "UDBZ": "bzip2 image", "ULFO": "LZFSE image", "ULMO": "LZMA image",
	"UDTO": "CD/DVD master", "UFBI": "entire image",
}

// formatCodes replaces every name of a format by its code alone.
var formatCodes = func() *strings.Replacer {
	var pairs []string
	for code := range formatNames {
		pairs = append(pairs, FormatName(code), code)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatCodes is text with the codes of image formats in place of their names, for lines that are too short for these.
func FormatCodes(text string) string { return formatCodes.Replace(text) }

// FormatName is the name of an image format with its code: "sparse bundle (UDSB)". A format without a name is its code.
func FormatName(format string) string {
	if name, ok := formatNames[format]; ok {
		return name + " (" + format + ")"
	}
	return format
}
