package udif

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The property list as Apple writes it: tabs, sorted keys, data in lines of 76
// columns less 8 for each tab.
const (
	plistStart = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>resource-fork</key>
	<dict>
		<key>blkx</key>
		<array>
`
	plistMiddle = `		</array>
		<key>plst</key>
		<array>
`
	plistEnd = `		</array>
	</dict>
</dict>
</plist>
`
	dataIndent = "\t\t\t\t"
	dataLine   = (76 - 8*len(dataIndent)) / 4 * 3 // bytes in a line
)

// plistWriter writes the property list of an image. Errors are kept for end.
type plistWriter struct {
	w *bufio.Writer
}

// newPlistWriter writes the start of the list. A w with a buffer of that length
// is used itself.
func newPlistWriter(w io.Writer) *plistWriter {
	p := &plistWriter{bufio.NewWriterSize(w, 64<<10)}
	_, _ = p.w.WriteString(plistStart)
	return p
}

// escapeXML escapes text; Apple leaves quotes as they are.
var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// pair writes a key with a string.
func (p *plistWriter) pair(key, value string) {
	fmt.Fprintf(p.w, "%[1]s<key>%[2]s</key>\n%[1]s<string>%[3]s</string>\n", dataIndent, key, escapeXML.Replace(value))
}

// resource writes one entry.
func (p *plistWriter) resource(name string, id int, cfname bool, data []byte) {
	_, _ = p.w.WriteString("\t\t\t<dict>\n")
	p.pair("Attributes", "0x0050")
	if cfname {
		p.pair("CFName", name)
	}
	_, _ = p.w.WriteString(dataIndent + "<key>Data</key>\n" + dataIndent + "<data>\n")
	var text []byte
	for line := range slices.Chunk(data, dataLine) {
		text = base64.StdEncoding.AppendEncode(append(text[:0], dataIndent...), line)
		_, _ = p.w.Write(append(text, '\n'))
	}
	_, _ = p.w.WriteString(dataIndent + "</data>\n")
	p.pair("ID", strconv.Itoa(id))
	p.pair("Name", name)
	_, _ = p.w.WriteString("\t\t\t</dict>\n")
}

// end writes the rest: the resource plst, which Apple's readers expect, without
// information.
func (p *plistWriter) end() error {
	_, _ = p.w.WriteString(plistMiddle)
	p.resource("", 0, false, slices.Concat(make([]byte, 516), []byte{0, 1, 0, 1}, make([]byte, 512)))
	_, _ = p.w.WriteString(plistEnd)
	return p.w.Flush()
}
