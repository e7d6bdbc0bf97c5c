package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxLine is the longest line of a journal in bytes, its end included.
const MaxLine = 64 << 20

// Reader reads a journal record by record.
//
// A run can die in the middle of a line, so the last line may be torn: it is
// left out and [Reader.Torn] reports it. Anything unreadable before the last line is
// an error, since then the file was changed by something else than the run.
type Reader struct {
	br   *bufio.Reader
	name string
	max  int // longest line
	line int
	seq  int
	good int64
	torn *Warning
	err  error

	summed bool // a line with a checksum was read
	bare   int  // records without one
}

// NewReader reads the journal r; name is used in errors.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, 64<<10), name: name, max: MaxLine}
}

// Next gives the next record, or [io.EOF] after the last whole one. After an
// error it repeats that error.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	rec, err := r.next()
	r.err = err
	return rec, err
}

func (r *Reader) next() (Record, error) {
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

// readLine gives a line with its end. A line without end is torn.
func (r *Reader) readLine() ([]byte, error) {
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
func (r *Reader) atEnd() bool {
	_, err := r.br.Peek(1)
	return errors.Is(err, io.EOF)
}

// tear notes that the last line is torn, which ends the journal.
func (r *Reader) tear(n int) error {
	r.torn = &Warning{Kind: "journal", Text: fmt.Sprintf(
		"the last line of the journal (line %d, %d bytes) was torn off and is left out", r.line, n)}
	return io.EOF
}

func (r *Reader) fail(err error, hint string) error {
	return &Error{Doing: "reading journal", File: r.name, Line: r.line, Err: err, Hint: hint}
}

// Torn is the warning about a torn last line, nil if there is none. It is known
// once Next has returned io.EOF.
func (r *Reader) Torn() *Warning { return r.torn }

// Whole is the length in bytes of the whole records that were read.
func (r *Reader) Whole() int64 { return r.good }

// ReadJournal reads all records of a journal. The warning is not nil if the
// last line was torn.
func ReadJournal(r io.Reader, name string) ([]Record, *Warning, error) {
	rd := NewReader(r, name)
	recs, err := rd.all()
	return recs, rd.Torn(), err
}

func (r *Reader) all() ([]Record, error) {
	var recs []Record
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return recs, nil
		}
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
}

// journalFile is the file under a writer.
type journalFile interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// writer appends records at a known offset. A write that fails leaves its bytes
// pending at that offset, so that a later attempt (space came back) writes over
// the torn piece instead of after it. So does a flush that fails: the system may
// have dropped what it could not write, and reports that only once (fsync(2)). An earlier
// process may have died of that, with what it wrote in the system's memory alone:
// the first records of a later one are flushed with all that was there, written again.
type writer struct {
	mu       sync.Mutex
	f        journalFile
	off      int64 // behind it nothing is durable yet
	doubted  int64 // bytes before off of which that is not known
	seq      int
	pending  []byte // from off on
	handed   int    // bytes of it that the system has
	volatile bool   // sync only flushes
	private  bool   // remove what only --identify may record
	hide     []hidden
}

func (w *writer) append(rec Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec.Schema, rec.Seq, rec.At = SchemaVersion, w.seq+1, rec.At.UTC().Round(0)
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
		line = hideAll(line, w.hide)
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
		return nil, errors.New("a journal begins with its only run record")
	}
	if where := notFinite(&rec); where != "" {
		return nil, fmt.Errorf("%s is not a finite number", where)
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(complete(&rec)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// flush hands everything to the operating system: it survives the death of the process.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hand()
}

func (w *writer) hand() error {
	if w.handed < len(w.pending) {
		if _, err := w.f.WriteAt(w.pending[w.handed:], w.off+int64(w.handed)); err != nil {
			return fmt.Errorf("writing the journal: %w", err)
		}
		w.handed = len(w.pending)
	}
	if w.volatile {
		w.settle()
	}
	return nil
}

// settle forgets what needs to be written no more.
func (w *writer) settle() {
	w.off += int64(len(w.pending))
	w.pending, w.handed = w.pending[:0], 0
}

// sync makes everything durable: it survives the death of the machine.
func (w *writer) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.hand(); err != nil || w.volatile {
		return err
	}
	again := w.doubted > 0 && len(w.pending) > 0
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
		w.doubted = 0
	}
	w.settle()
	return nil
}

// rewrite writes what an earlier process left once more, in its place.
func (w *writer) rewrite() error {
	buf := make([]byte, min(w.doubted, 1<<20))
	for at := int64(0); at < w.doubted; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), w.doubted-at)]
		if n, err := w.f.ReadAt(buf, at); n < len(buf) {
			return err
		}
		if _, err := w.f.WriteAt(buf, at); err != nil {
			return err
		}
	}
	return nil
}
