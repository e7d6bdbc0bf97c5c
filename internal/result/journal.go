package result

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dmgbench/internal/system/hostio"
)

// journal is the content of a journal file.
//
// A run can be killed in the middle of a line, so the last line may be torn: it
// is omitted, with a warning. An unreadable line before the last one is an
// error, since then another program has changed the file.
type journal struct {
	records   []Record
	whole     int64     // length of the whole records in bytes
	torn      int64     // length of what follows them
	unchecked int       // records without a checksum
	warnings  []Warning // about a torn last line, and records without a checksum
}

// maxLine bounds a record in bytes: the largest has the samples of a million
// files.
const maxLine = 256 << 20

const hintDamaged = "only the last line of a journal may be damaged; restore the file from a copy or start a new run"

// readJournal reads a journal; name is used in errors.
func readJournal(r io.Reader, name string) (j journal, err error) {
	if err := j.read(r, name); err != nil {
		return journal{}, err
	}
	if j.torn > 0 {
		j.warn("the last line of the journal (line %d, %d bytes) is incomplete and was omitted", len(j.records)+1, j.torn)
	}
	if j.unchecked > 0 {
		j.warn("%d of %d records in the journal have no checksum, as an older version wrote them: "+
			"damage to them may not be noticed", j.unchecked, len(j.records))
	}
	return j, nil
}

// read adds the records of what follows the whole ones. It stops before a last
// line that is incomplete.
func (j *journal) read(r io.Reader, name string) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		var err error
		line, j.torn, err = readLine(in, line)
		if err != nil && !errors.Is(err, io.EOF) {
			return &Error{Doing: "reading journal", File: name, Err: withoutPath(err)}
		}
		if j.torn == 0 {
			return nil
		}
		number := len(j.records) + 1
		rec, checked, err := decodeLine(line)
		_, isSyntax := errors.AsType[*json.SyntaxError](err)
		_, end := in.Peek(1)
		if end != nil && (isSyntax || !bytes.HasSuffix(line, []byte("\n"))) {
			return nil
		}
		switch {
		case err != nil:
		case !checked && j.unchecked < len(j.records):
			err = errors.New("the line has no checksum, but lines before it have one")
		case rec.Seq != number:
			err = fmt.Errorf("record number %d follows number %d", rec.Seq, number-1)
		}
		if err != nil {
			hint := hintDamaged
			if errors.Is(err, errSchema) || errors.Is(err, errKind) {
				hint = "it was written by another version of dmgbench: use that one"
			}
			return &Error{Doing: "reading journal", File: name, Line: number, Err: err, Hint: hint}
		}
		if !checked {
			j.unchecked++
		}
		j.records, j.whole = append(j.records, rec), j.whole+j.torn
	}
}

// readLine reads a line into buf and returns its whole length. It keeps no more
// than maxLine bytes, and no part from one with a zero byte on: no record
// contains one, but a file with holes is full of them.
func readLine(in *bufio.Reader, buf []byte) (line []byte, size int64, err error) {
	line = buf[:0]
	for {
		part, err := in.ReadSlice('\n')
		isKept := int64(len(line)) == size
		size += int64(len(part))
		if isKept && size <= maxLine && bytes.IndexByte(part, 0) < 0 {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

func (j *journal) warn(format string, args ...any) {
	j.warnings = append(j.warnings, Warning{Kind: "journal", Text: fmt.Sprintf(format, args...)})
}

// decodeLine decodes and checks one line, which may end as on Windows: git and
// editors change the ends of lines. checked reports that it has a checksum. Journals of older versions have none; a resume by this version adds
// one to every later line. Without a checksum the content is a record's last
// key, so that a line with another end had a checksum that is damaged.
func decodeLine(line []byte) (rec Record, checked bool, err error) {
	if bytes.HasSuffix(line, []byte("\r\n")) {
		line = append(line[:len(line)-2], '\n')
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return rec, false, fmt.Errorf("not a record: %w", err)
	}
	if at := len(line) - sumLen; at > 0 && bytes.HasPrefix(line[at:], []byte(sumKey)) {
		checked = true
		if !bytes.Equal(line[at:], sumOf(line[:at])) {
			return rec, true, errors.New("the checksum does not match: the line was damaged or edited")
		}
	} else if !bytes.HasSuffix(line, []byte("}}\n")) {
		return rec, false, errors.New("the line ends neither with a checksum nor with a record's content")
	}
	return rec, checked, rec.check()
}

// Each line of a journal ends with the CRC-32C of the bytes before it as its
// last key, in hexadecimal: ,"crc32c":"0123abcd"}. That finds every damage of
// up to 32 bits in a row, and costs less than encoding the record.
const (
	sumKey = `,"crc32c":"`
	sumLen = len(sumKey) + len("0123abcd\"}\n")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the end of a line that starts with these bytes.
func sumOf(line []byte) []byte {
	return fmt.Appendf(nil, "%s%08x\"}\n", sumKey, crc32.Checksum(line, castagnoli))
}

// addChecksum adds the checksum to an encoded record, which ends with "}\n".
func addChecksum(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("}\n"))
	return append(line, sumOf(line)...)
}

// journalFile is the file of a writer.
type journalFile interface {
	io.WriterAt
	Sync(hostio.SyncMode) (hostio.SyncMode, error)
}

// writer appends records at a known offset. After a write that fails, its bytes
// stay pending at that offset, so that a later attempt (with space on the disk)
// overwrites the torn piece. The same holds for a flush that fails: the system
// may have dropped what it could not write, and reports that only once
// (fsync(2)). An earlier process may have been killed by that, with its records
// only in the system's memory: the first record of a later process writes all
// earlier ones again.
//
// Its methods may be called from several goroutines.
type writer struct {
	mu       sync.Mutex
	f        journalFile
	off      int64  // bytes that are durable
	earlier  []byte // records of earlier processes until the first record of this one
	seq      int
	pending  []byte // from off on
	handed   int    // bytes of pending that the system has
	volatile bool   // Sync only flushes
	private  bool   // hide paths, which only --identify may record
	hide     []hiddenPath
}

// newWriter continues a journal after the bytes of seq earlier records. It hides
// the run folder's own path in every record if private is set.
func newWriter(f journalFile, path string, earlier []byte, seq int, private bool) *writer {
	return &writer{f: f, off: int64(len(earlier)), earlier: earlier, seq: seq, private: private,
		hide: addHidden(nil, path, "<run>")}
}

// Append adds a record. At must be set; Append sets Seq, Schema, and Kind by
// the payload. The record is only in memory until Flush or Sync, so that Append
// may be called during a timed span. Unless the run record has identify, Append
// hides the paths of [writer.Hide].
func (w *writer) Append(rec Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec.Schema, rec.Seq, rec.At = SchemaVersion, w.seq+1, rec.At.UTC().Round(0)
	if rec.Run != nil {
		w.private = !rec.Run.Identify
	}
	kind, _, _ := rec.payload()
	rec.Kind = cmp.Or(rec.Kind, kind)
	err := cmp.Or(rec.check(), complete(&rec))
	if err == nil && (rec.Run != nil) != (rec.Seq == 1) {
		err = errors.New("the first record of a journal, and no other, is a run record")
	}
	var line bytes.Buffer
	if err = cmp.Or(err, json.NewEncoder(&line).Encode(&rec)); err != nil {
		return fmt.Errorf("appending %s record to the journal: %w", rec.Kind, err)
	}
	text := line.Bytes()
	if w.private {
		text = hidePaths(text, w.hide)
	}
	if w.earlier != nil {
		w.off, w.pending, w.earlier = 0, w.earlier, nil
	}
	w.pending, w.seq = append(w.pending, addChecksum(text)...), rec.Seq
	return nil
}

// Flush hands the records to the operating system: they survive kill -9. After
// an error no record is lost, and a later Flush tries again.
func (w *writer) Flush() error { return w.hand(false) }

// Sync makes all records durable: they survive a power cut.
func (w *writer) Sync() error { return w.hand(true) }

// hand writes the pending records. They stay pending until they need not be
// written again.
func (w *writer) hand(durable bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handed < len(w.pending) {
		if _, err := w.f.WriteAt(w.pending[w.handed:], w.off+int64(w.handed)); err != nil {
			return fmt.Errorf("writing the journal: %w", withoutPath(err))
		}
		w.handed = len(w.pending)
	}
	if durable && !w.volatile {
		if _, err := w.f.Sync(hostio.SyncFull); err != nil {
			w.handed = 0
			return fmt.Errorf("flushing the journal: %w", withoutPath(err))
		}
	}
	if durable || w.volatile {
		w.off += int64(len(w.pending))
		w.pending, w.handed = nil, 0
	}
	return nil
}

// Volatile makes Sync only hand records to the operating system, as Flush does.
func (w *writer) Volatile() { w.volatile = true }

// Hide replaces path in every later record, such as the folder of a place by
// "<external>". It has no effect with --identify.
func (w *writer) Hide(path, instead string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hide = addHidden(w.hide, path, instead)
}

// hiddenPath is a path and what replaces it in JSON. found matches the path with
// the next character, unless that continues the name of its last element: /a/b
// is not replaced in /a/bc.
type hiddenPath struct {
	path    string
	found   *regexp.Regexp
	instead []byte // a template of found
}

// addHidden adds a path to the list, which has the longest path first, so that
// a folder inside another one gets its own replacement. It omits relative
// paths: they identify no machine, and for a run folder called "done" every
// record would lose that word. It also omits "/", which is in every path.
func addHidden(list []hiddenPath, path, instead string) []hiddenPath {
	if len(path) < 2 || !filepath.IsAbs(path) {
		return list
	}
	found := regexp.MustCompile(regexp.QuoteMeta(inJSON(path)) + `($|[^\w\x{80}-\x{10FFFF}-])`)
	replacement := strings.ReplaceAll(inJSON(instead), "$", "$$") + "${1}"
	list = append(slices.Clone(list), hiddenPath{path, found, []byte(replacement)})
	slices.SortStableFunc(list, func(a, b hiddenPath) int { return cmp.Compare(len(b.path), len(a.path)) })
	return list
}

// inJSON is s as written inside a JSON string.
func inJSON(s string) string {
	b, _ := json.Marshal(s) // marshalling a string cannot fail
	return string(b[1 : len(b)-1])
}

// hidePaths replaces paths in an encoded record.
func hidePaths(line []byte, list []hiddenPath) []byte {
	for _, h := range list {
		line = h.found.ReplaceAll(line, h.instead)
	}
	return line
}
