package result

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of a run folder.
const (
	PlanFile    = "plan.toml"     // the plan as executed
	JournalFile = "journal.jsonl" // append-only
	ResultFile  = "result.json"   // reproducible from the two above
	SummaryFile = "summary.json"  // the part of result.json that lists of runs show, see [ReadSummary]
	ReportFile  = "report.html"
	markerFile  = ".dmgbench-run" // contains the run id; resume writes only to folders with it
)

// writtenFiles are the files that [RunDir.WriteFile] writes.
var writtenFiles = []string{PlanFile, ResultFile, SummaryFile, ReportFile}

// maxFile is the largest file of a run folder that is read, in bytes.
const maxFile = 1 << 30

// CreateRun makes the run folder for the run with this id and locks it. It
// makes the folders above it. An existing folder must be empty, or contain only
// a run that was killed before its first record.
func CreateRun(dir, id string) (*RunDir, error) {
	fail := func(err error, hint string) (*RunDir, error) {
		return nil, &Error{Doing: "making run folder", File: dir, Err: err, Hint: hint}
	}
	if err := SafeName(id); err != nil {
		return fail(fmt.Errorf("run id: %w", err), "")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(withoutPath(err), "choose another folder with --out")
	}
	d, err := openDir(dir)
	if err != nil {
		return fail(err, "")
	}
	if err = d.create(id); errors.Is(err, ErrNotEmpty) {
		if err = d.reclaim(); err == nil {
			err = d.create(id)
		}
	}
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, ErrNotEmpty), errors.Is(err, fs.ErrExist):
		d.Close()
		return fail(ErrNotEmpty,
			"choose another folder with --out, or continue an interrupted run with `dmgbench resume`")
	default:
		d.Close()
		return fail(withoutPath(err), "")
	}
}

// create writes the marker before the journal: a folder with only a marker is
// known as that of a run that was killed here.
func (d *RunDir) create(id string) error {
	if names, err := d.names(); err != nil || len(names) > 0 {
		return cmp.Or(err, ErrNotEmpty)
	}
	m, err := d.root.OpenFile(markerFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = m.WriteString(id + "\n")
	if err = errors.Join(err, durable{m}.Sync(), m.Close()); err != nil {
		return err
	}
	f, err := d.root.OpenFile(JournalFile, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err := d.lockJournal(f); err != nil {
		return err
	}
	d.w = newWriter(durable{f}, d.path, 0, 0, true)
	return d.syncDir()
}

// newWriter continues a journal after off bytes and seq records. It hides the
// run folder's own path in every record if private is set.
func newWriter(f journalFile, path string, off int64, seq int, private bool) *writer {
	return &writer{f: f, off: off, seq: seq, private: private, hide: addHidden(nil, path, "<run>")}
}

// OpenRun opens a run folder to read it and to write results and reports. It
// takes no lock: a report of an active run is allowed.
func OpenRun(dir string) (*RunDir, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err, Hint: hintFolder}
	}
	fi, err := d.root.Lstat(JournalFile)
	if err == nil && fi.Mode().IsRegular() {
		return d, nil
	}
	_, marked := d.root.Lstat(markerFile)
	d.Close()
	if errors.Is(err, fs.ErrNotExist) && marked == nil {
		return nil, errNeverStarted("opening run folder", dir)
	}
	return nil, &Error{Doing: "opening run folder", File: dir, Hint: hintFolder,
		Err: fmt.Errorf("it has no %s: %w", JournalFile, ErrNotRun)}
}

const hintFolder = "give the folder that `dmgbench run` made"

// errNeverStarted is the error of a run that was killed before its first
// record.
func errNeverStarted(doing, dir string) error {
	return &Error{Doing: doing, File: dir, Err: fmt.Errorf("the run was interrupted before it started: %w", ErrNotRun),
		Hint: "start it again with `dmgbench run`, which reuses the folder of --out"}
}

// ResumeRun opens a run folder to continue its run: it locks the folder, checks
// that the marker agrees with the journal, cuts off a torn last line and
// removes half-written files. Appended records follow the existing ones.
func ResumeRun(dir string) (*RunDir, error) {
	d, err := OpenRun(dir)
	if err != nil {
		return nil, err
	}
	if err := d.resume(); err != nil {
		d.Close()
		if _, complete := errors.AsType[*Error](err); complete {
			return nil, err
		}
		hint := ""
		if errors.Is(err, ErrBusy) {
			hint = "wait until it ends, or end it"
		}
		return nil, &Error{Doing: "resuming run", File: dir, Err: withoutPath(err), Hint: hint}
	}
	return d, nil
}

// Running reports whether a process is executing the run in this folder. It is
// false for a folder that cannot be read.
func Running(dir string) bool {
	d, err := OpenRun(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	f, err := d.openRegular(JournalFile, os.O_RDWR)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(lock(f), ErrBusy)
}

// resume locks and checks the folder, then repairs what a killed process left.
func (d *RunDir) resume() error {
	f, err := d.openRegular(JournalFile, os.O_RDWR)
	if err != nil {
		return err
	}
	if err := d.lockJournal(f); err != nil {
		return err
	}
	j, err := readJournal(f, JournalFile)
	if err != nil {
		return err
	}
	recs := j.records
	if len(recs) == 0 {
		return errNeverStarted("resuming run", d.path)
	}
	if recs[0].Run == nil {
		return fmt.Errorf("the first record of the journal is not a run: %w", ErrNotRun)
	}
	if err := d.checkMarker(recs[0].Run.ID); err != nil {
		return err
	}
	if torn := j.torn; torn != nil {
		d.warnings = append(d.warnings, *torn)
		if err := f.Truncate(j.whole); err != nil {
			return fmt.Errorf("cutting off the torn line: %w", withoutPath(err))
		}
	}
	d.w = newWriter(durable{f}, d.path, j.whole, len(recs), !recs[0].Run.Identify)
	d.w.doubtful = j.whole
	return d.removeTemporary()
}

// checkMarker fails for a folder that this program did not make for this run
// and user.
func (d *RunDir) checkMarker(id string) error {
	text, err := d.ReadFile(markerFile, maxName+1)
	if err != nil {
		return fmt.Errorf("the folder is not marked as a run's (%w): %w", withoutPath(err), ErrNotRun)
	}
	if strings.TrimSuffix(string(text), "\n") != id {
		return fmt.Errorf("the folder is marked for another run than the journal's: %w", ErrNotRun)
	}
	fi, err := d.root.Lstat(markerFile)
	if err != nil {
		return err
	}
	if !OwnedByUs(fi) {
		return fmt.Errorf("the folder belongs to another user: %w", ErrNotRun)
	}
	return nil
}

// lockJournal locks the journal while the folder is open.
func (d *RunDir) lockJournal(f *os.File) error {
	d.journal = f
	switch err := lock(f); {
	case errors.Is(err, errors.ErrUnsupported):
		d.warnings = append(d.warnings, Warning{Kind: "lock",
			Text: "the file system of the run folder has no locks: do not resume the run twice at once"})
	case err != nil:
		return err
	}
	return nil
}

// openDir opens a folder without checks.
func openDir(dir string) (*RunDir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, withoutPath(err)
	}
	return &RunDir{root: root, path: abs}, nil
}

// Path is the absolute path of the folder.
func (d *RunDir) Path() string { return d.path }

// Close writes pending records and releases the lock.
func (d *RunDir) Close() error {
	var errs []error
	if d.w != nil {
		errs = append(errs, d.w.sync())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
	}
	d.w, d.journal = nil, nil
	return errors.Join(append(errs, d.root.Close())...)
}

// Append adds a record. At must be set; Append sets Seq, Schema, and Kind by
// the payload. The record is only in memory until Flush or Sync, so that Append
// may be called during a timed span. Unless the run record has identify, Append
// removes host names, users and paths.
func (d *RunDir) Append(rec Record) error {
	if d.w == nil {
		return errReadOnly
	}
	return d.w.append(rec)
}

var errReadOnly = errors.New("writing the journal: the run folder was opened for reading")

// Flush hands the records to the operating system: they survive kill -9. After
// an error no record is lost, and a later Flush tries again.
func (d *RunDir) Flush() error {
	if d.w == nil {
		return errReadOnly
	}
	return d.w.flush()
}

// Volatile makes Sync only hand records to the operating system, as Flush does.
func (d *RunDir) Volatile() {
	if d.w != nil {
		d.w.volatile = true
	}
}

// Sync makes the records durable: they survive a power cut.
func (d *RunDir) Sync() error {
	if d.w == nil {
		return errReadOnly
	}
	return d.w.sync()
}

// Hide replaces path in every later record, such as the folder of a place by
// "<external>". It has no effect with --identify.
func (d *RunDir) Hide(path, instead string) {
	if d.w == nil {
		return
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.hide = addHidden(d.w.hide, path, instead)
}

// Journal reads all whole records of the file. It omits a torn last line, with
// a warning in [RunDir.Warnings].
func (d *RunDir) Journal() ([]Record, error) {
	f, err := d.openRegular(JournalFile, os.O_RDONLY)
	if err != nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Err: withoutPath(err)}
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && fi.Size() > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	if err != nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Err: withoutPath(err)}
	}
	j, err := readJournal(f, JournalFile)
	for _, w := range []*Warning{j.torn, j.unchecked} {
		if err == nil && w != nil && !slices.Contains(d.warnings, *w) {
			d.warnings = append(d.warnings, *w)
		}
	}
	return j.records, err
}

// Warnings are about the folder itself: a torn line, no checksums, no locks.
func (d *RunDir) Warnings() []Warning { return slices.Clone(d.warnings) }

// ReadFile reads a file of the folder that has at most limit bytes.
func (d *RunDir) ReadFile(name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if err := d.readInto(&b, name, limit); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// WriteFile replaces plan.toml, result.json, summary.json or report.html
// atomically: the file has either the old or the new content, also after a
// crash. Equal content is not written, so that reporting works in a folder that
// is only readable.
func (d *RunDir) WriteFile(name string, data []byte) error {
	if !slices.Contains(writtenFiles, name) {
		return fmt.Errorf("writing %q: not a file of a run folder", name)
	}
	if old, err := d.ReadFile(name, int64(len(data))); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := d.replace(name, data); err != nil {
		return &Error{Doing: "writing", File: name, Err: withoutPath(err)}
	}
	return nil
}

// removeTemporary removes what an interrupted WriteFile left.
func (d *RunDir) removeTemporary() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, name := range writtenFiles {
			if strings.HasPrefix(e.Name(), tempPrefix(name)) && e.Type().IsRegular() {
				if err := d.root.Remove(e.Name()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Conditions that callers branch on.
var (
	// ErrNotEmpty is returned by [CreateRun] for a folder that is not empty.
	ErrNotEmpty = errors.New("folder is not empty")
	// ErrNotRun is returned for a folder that is not a run folder.
	ErrNotRun = errors.New("not a run folder")
	// ErrBusy is returned while another process writes the run.
	ErrBusy = errors.New("another process is running it")
)
