package udif

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
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

// newPlistWriter writes the start of the list.
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

// resource writes one entry. content writes its data, so that a block table
// need not be in memory as bytes.
func (p *plistWriter) resource(name string, id int, cfname bool, content func(io.Writer)) {
	_, _ = p.w.WriteString("\t\t\t<dict>\n")
	p.pair("Attributes", "0x0050")
	if cfname {
		p.pair("CFName", name)
	}
	_, _ = p.w.WriteString(dataIndent + "<key>Data</key>\n" + dataIndent + "<data>\n")
	lines := &lineWriter{w: p.w}
	content(lines)
	lines.flush()
	_, _ = p.w.WriteString(dataIndent + "</data>\n")
	p.pair("ID", strconv.Itoa(id))
	p.pair("Name", name)
	_, _ = p.w.WriteString("\t\t\t</dict>\n")
}

// table writes the block table of a region.
func (p *plistWriter) table(g *Region, buffers uint32, runs []run, dataEnd uint64) {
	p.resource(g.Name, g.ID, true, func(w io.Writer) {
		_, _ = w.Write(g.appendMishHeader(nil, buffers, len(runs)+1))
		line := make([]byte, 0, mishRun)
		for i := range runs {
			_, _ = w.Write(runs[i].append(line, g.First))
		}
		last := run{kind: kindTerminator, start: g.First + g.Sectors, offset: dataEnd}
		_, _ = w.Write(last.append(line, g.First))
	})
}

// end writes the rest: the resource plst, which Apple's readers expect, without
// information.
func (p *plistWriter) end() error {
	_, _ = p.w.WriteString(plistMiddle)
	p.resource("", 0, false, func(w io.Writer) {
		data := make([]byte, 1032)
		binary.BigEndian.PutUint16(data[516:], 1)
		binary.BigEndian.PutUint16(data[518:], 1)
		_, _ = w.Write(data)
	})
	_, _ = p.w.WriteString(plistEnd)
	return p.w.Flush()
}

// lineWriter writes data as indented lines of base64.
type lineWriter struct {
	w    *bufio.Writer
	line [dataLine]byte
	used int
}

// Write collects bytes until a line is full. Errors of the writer below appear
// when it is flushed.
func (l *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(l.line[l.used:], rest)
		rest = rest[n:]
		if l.used += n; l.used == len(l.line) {
			l.flush()
		}
	}
	return len(p), nil
}

// flush ends the line, if it has anything.
func (l *lineWriter) flush() {
	if l.used == 0 {
		return
	}
	var text [4 * dataLine / 3]byte
	encoded := text[:base64.StdEncoding.EncodedLen(l.used)]
	base64.StdEncoding.Encode(encoded, l.line[:l.used])
	_, _ = l.w.WriteString(dataIndent)
	_, _ = l.w.Write(encoded)
	_ = l.w.WriteByte('\n')
	l.used = 0
}
