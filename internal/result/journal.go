package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// MaxLine is the longest line of a journal in bytes, its end included.
const MaxLine = 64 << 20

// journal is the content of a journal file.
//
// A run can be killed in the middle of a line, so the last line may be torn: it
// is omitted, with a warning. An unreadable line before the last one is an
// error, since then another program has changed the file.
type journal struct {
	records   []Record
	whole     int64    // length of the whole records in bytes
	torn      *Warning // about the last line, nil if it is whole
	unchecked *Warning // about records without a checksum, nil if there are none
}

// readJournal reads a journal; name is used in errors.
func readJournal(in io.Reader, name string) (j journal, err error) {
	r := &journalReader{br: bufio.NewReaderSize(in, 64<<10), name: name, max: MaxLine}
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return journal{}, err
		}
		j.records = append(j.records, rec)
	}
	j.whole, j.torn = r.good, r.torn
	if r.unchecked > 0 {
		j.unchecked = &Warning{Kind: "journal", Text: fmt.Sprintf("%d of %d records in the journal have no checksum, "+
			"as an older version wrote them: damage to them may not be noticed", r.unchecked, len(j.records))}
	}
	return j, nil
}

// journalReader reads a journal record by record.
type journalReader struct {
	br   *bufio.Reader
	name string
	max  int // longest line in bytes
	line int
	seq  int   // of the last record
	good int64 // bytes of whole records
	torn *Warning

	hasChecksums bool // a line with a checksum was read
	unchecked    int  // records without one
}

// next is the next record, or [io.EOF] after the last whole one.
func (r *journalReader) next() (Record, error) {
	line, err := r.readLine()
	if err != nil {
		return Record{}, err
	}
	var rec Record
	err = json.Unmarshal(line, &rec)
	if _, isSyntax := errors.AsType[*json.SyntaxError](err); isSyntax && r.atEnd() {
		return Record{}, r.tear(len(line))
	}
	if err != nil {
		return Record{}, r.fail(fmt.Errorf("not a record: %w", err), hintDamaged)
	}
	if err := r.checkLine(line); err != nil {
		return Record{}, r.fail(err, hintDamaged)
	}
	if err := rec.check(); err != nil {
		hint := "the journal was edited, or it is not one of this program's: start a new run"
		if errors.Is(err, errSchema) || errors.Is(err, errKind) {
			hint = "it was written by another version of dmgbench: use that one"
		}
		return Record{}, r.fail(err, hint)
	}
	if rec.Seq != r.seq+1 {
		return Record{}, r.fail(fmt.Errorf("record number %d follows number %d", rec.Seq, r.seq), hintDamaged)
	}
	r.seq++
	r.good += int64(len(line))
	return rec, nil
}

const hintDamaged = "only the last line of a journal may be damaged; restore the file from a copy or start a new run"

// readLine returns a line with its end. A line without end is torn.
func (r *journalReader) readLine() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.br.ReadSlice('\n')
		if len(line)+len(part) > r.max {
			return nil, r.fail(fmt.Errorf("line is longer than %d bytes", r.max), hintDamaged)
		}
		switch {
		case err == nil && line == nil:
			return part, nil // valid until the next read, and decoded before it
		case err == nil:
			return append(line, part...), nil
		case errors.Is(err, bufio.ErrBufferFull):
			line = append(line, part...)
		case errors.Is(err, io.EOF) && len(line)+len(part) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, r.tear(len(line) + len(part))
		default:
			return nil, r.fail(err, "")
		}
	}
}

// atEnd reports whether the journal ends here.
func (r *journalReader) atEnd() bool {
	_, err := r.br.Peek(1)
	return errors.Is(err, io.EOF)
}

// tear records that the last line is torn, which ends the journal.
func (r *journalReader) tear(n int) error {
	r.torn = &Warning{Kind: "journal", Text: fmt.Sprintf(
		"the last line of the journal (line %d, %d bytes) is incomplete and was omitted", r.line, n)}
	return io.EOF
}

// fail is an error about the current line.
func (r *journalReader) fail(err error, hint string) error {
	return &Error{Doing: "reading journal", File: r.name, Line: r.line, Err: err, Hint: hint}
}

// Each line of a journal ends with the CRC-32C of the bytes before it as its
// last key, in hexadecimal: ,"crc32c":"0123abcd"}. That finds every damage of
// up to 32 bits in a row, and costs less than encoding the record.
const (
	sumKey    = `,"crc32c":"`
	sumDigits = 8
	sumEnd    = "\"}\n"
	sumLen    = len(sumKey) + sumDigits + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum   = errors.New("the checksum does not match: the line was damaged or edited")
	errNoChecksum = errors.New("the line has no checksum, but lines before it have one")
	errLineEnd    = errors.New("the line ends neither with a checksum nor with a record's content")
)

// addChecksum adds the checksum to an encoded record, which ends with "}\n".
func addChecksum(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("}\n"))
	return fmt.Appendf(line, "%s%08x%s", sumKey, crc32.Checksum(line, castagnoli), sumEnd)
}

// verifyChecksum reports whether a line has a checksum; one that does not match
// is an error.
func verifyChecksum(line []byte) (has bool, err error) {
	at := len(line) - sumLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sumKey)) || !bytes.HasSuffix(line, []byte(sumEnd)) {
		return false, nil
	}
	want := fmt.Appendf(nil, "%08x", crc32.Checksum(line[:at], castagnoli))
	if !bytes.Equal(want, line[at+len(sumKey):][:sumDigits]) {
		return true, errChecksum
	}
	return true, nil
}

// checkLine verifies the checksum of a line. Journals of older versions have
// none; a resume by this version adds one to every later line. Without a
// checksum the content is a record's last key, so that a line with another end
// had a checksum that is damaged.
func (r *journalReader) checkLine(line []byte) error {
	has, err := verifyChecksum(line)
	switch {
	case err != nil:
		return err
	case has:
		r.hasChecksums = true
	case r.hasChecksums:
		return errNoChecksum
	case !bytes.HasSuffix(line, []byte("}}\n")):
		return errLineEnd
	default:
		r.unchecked++
	}
	return nil
}

// journalFile is the file of a writer.
type journalFile interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// writer appends records at a known offset. After a write that fails, its bytes
// stay pending at that offset, so that a later attempt (with space on the disk)
// overwrites the torn piece. The same holds for a flush that fails: the system
// may have dropped what it could not write, and reports that only once
// (fsync(2)). An earlier process may have been killed by that, with its records
// only in the system's memory: the first flush of a later process writes all
// earlier records again.
type writer struct {
	mu       sync.Mutex
	f        journalFile
	off      int64 // bytes that are durable
	doubtful int64 // bytes before off that may not be durable, as an earlier process wrote them
	seq      int
	pending  []byte // from off on
	handed   int    // bytes of pending that the system has
	volatile bool   // sync only flushes
	private  bool   // remove what only --identify may record
	hide     []hiddenPath
}

func (w *writer) append(rec Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec.Schema, rec.Seq, rec.At = SchemaVersion, w.seq+1, rec.At.UTC().Round(0)
	rec.setKind()
	if rec.Run != nil {
		w.private = !rec.Run.Identify
	}
	if w.private {
		rec = withoutIdentity(rec)
	}
	line, err := encodeLine(rec)
	if err != nil {
		return fmt.Errorf("appending %s record to the journal: %w", rec.Kind, err)
	}
	if w.private {
		line = hidePaths(line, w.hide)
	}
	if line = addChecksum(line); len(line) > MaxLine {
		return fmt.Errorf("appending %s record to the journal: %d bytes are more than the %d that a line may have",
			rec.Kind, len(line), MaxLine)
	}
	w.pending, w.seq = append(w.pending, line...), rec.Seq
	return nil
}

// encodeLine is the record as one line with its end, without a checksum.
func encodeLine(rec Record) ([]byte, error) {
	if err := rec.check(); err != nil {
		return nil, err
	}
	if (rec.Kind == KindRun) != (rec.Seq == 1) {
		return nil, errors.New("the first record of a journal, and no other, is a run record")
	}
	whole, err := complete(&rec)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(whole); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// flush hands all records to the operating system: they survive the death of
// the process.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hand()
}

// hand is flush for a caller with the lock.
func (w *writer) hand() error {
	if w.handed < len(w.pending) {
		if _, err := w.f.WriteAt(w.pending[w.handed:], w.off+int64(w.handed)); err != nil {
			return fmt.Errorf("writing the journal: %w", err)
		}
		w.handed = len(w.pending)
	}
	if w.volatile {
		w.dropPending()
	}
	return nil
}

// dropPending releases the records that need not be written again.
func (w *writer) dropPending() {
	w.off += int64(len(w.pending))
	w.pending, w.handed = w.pending[:0], 0
}

// sync makes all records durable: they survive the death of the machine.
func (w *writer) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.hand(); err != nil || w.volatile {
		return err
	}
	again := w.doubtful > 0 && len(w.pending) > 0
	var err error
	if again {
		err = w.rewrite()
	}
	if err == nil {
		err = w.f.Sync()
	}
	if err != nil {
		w.handed = 0
		return fmt.Errorf("flushing the journal: %w", err)
	}
	if again {
		w.doubtful = 0
	}
	w.dropPending()
	return nil
}

// rewriteBlock is how many bytes rewrite reads and writes at a time.
const rewriteBlock = 1 << 20

// rewrite writes the records of an earlier process again, in their place.
func (w *writer) rewrite() error {
	buf := make([]byte, min(w.doubtful, rewriteBlock))
	for at := int64(0); at < w.doubtful; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), w.doubtful-at)]
		if n, err := w.f.ReadAt(buf, at); n < len(buf) {
			return err
		}
		if _, err := w.f.WriteAt(buf, at); err != nil {
			return err
		}
	}
	return nil
}
