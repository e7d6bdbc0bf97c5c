package result

import (
	"errors"
	"fmt"
	"io"
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
	SummaryFile = "summary.json"  // what lists of runs show of result.json, see [ReadSummary]
	ReportFile  = "report.html"
	markerFile  = ".dmgbench-run" // holds the run id; a folder without it is never written to by resume
)

var written = []string{PlanFile, ResultFile, SummaryFile, ReportFile}

// Conditions that callers branch on.
var (
	// ErrNotEmpty is returned by [CreateRun] for a folder that has something in it.
	ErrNotEmpty = errors.New("folder is not empty")
	// ErrNotRun is returned for a folder that is not a run folder.
	ErrNotRun = errors.New("not a run folder")
	// ErrBusy is returned while another process writes the run.
	ErrBusy = errors.New("another process is running it")
)

// maxFile is the largest file of a run folder that is read, in bytes.
const maxFile = 1 << 30

// RunDir is an opened run folder. All its files are reached through [os.Root],
// and only regular files: neither a link nor a FIFO in their place is followed.
// Append, Flush and Sync may be called from several goroutines.
type RunDir struct {
	root     *os.Root
	path     string
	journal  *os.File // locked; nil when the folder was opened for reading
	w        *writer
	warnings []Warning
}

// CreateRun makes the run folder for the run with this id and locks it. The
// folder must not exist, be empty, or hold only a run that was killed
// before it started; folders above it are made.
func CreateRun(dir, id string) (*RunDir, error) {
	fail := func(err error, hint string) (*RunDir, error) {
		return nil, &Error{Doing: "making run folder", File: dir, Err: err, Hint: hint}
	}
	if err := SafeName(id); err != nil {
		return fail(fmt.Errorf("run id: %w", err), "")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(bare(err), "choose another folder with --out")
	}
	d, err := openDir(dir)
	if err != nil {
		return fail(err, "")
	}
	if err = d.begin(id); errors.Is(err, ErrNotEmpty) {
		if err = d.reclaim(); err == nil {
			err = d.begin(id)
		}
	}
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, ErrNotEmpty), errors.Is(err, fs.ErrExist):
		d.Close()
		return fail(ErrNotEmpty, "choose another folder with --out, or go on with an interrupted run by `dmgbench resume`")
	default:
		d.Close()
		return fail(bare(err), "")
	}
}

func (d *RunDir) begin(id string) error {
	if err := d.mustBeEmpty(); err != nil {
		return err
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
	if err := d.take(f); err != nil {
		return err
	}
	d.w = newWriter(durable{f}, d.path, 0, 0, true)
	return d.syncDir()
}

func (d *RunDir) mustBeEmpty() error {
	self, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	names, err := self.Readdirnames(1)
	if len(names) > 0 {
		return ErrNotEmpty
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// newWriter hides the run folder's own path from every record unless private is off.
func newWriter(f journalFile, path string, off int64, seq int, private bool) *writer {
	return &writer{f: f, off: off, seq: seq, private: private, hide: addHidden(nil, path, "<run>")}
}

// OpenRun opens a run folder to read it and to put results and reports into it.
// It takes no lock: a report of a run in progress is allowed.
func OpenRun(dir string) (*RunDir, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err, Hint: "give the folder that `dmgbench run` made"}
	}
	fi, err := d.root.Lstat(JournalFile)
	if err == nil && fi.Mode().IsRegular() {
		return d, nil
	}
	_, marked := d.root.Lstat(markerFile)
	d.Close()
	if errors.Is(err, fs.ErrNotExist) && marked == nil {
		return nil, neverBegan("opening run folder", dir)
	}
	return nil, &Error{Doing: "opening run folder", File: dir, Err: fmt.Errorf("no %s in it: %w", JournalFile, ErrNotRun),
		Hint: "give the folder that `dmgbench run` made"}
}

// neverBegan is the error about a run that was killed before its first record was written.
func neverBegan(doing, dir string) error {
	return &Error{Doing: doing, File: dir, Err: fmt.Errorf("the run was interrupted before it began: %w", ErrNotRun),
		Hint: "nothing was measured: start it again with `dmgbench run`, whose --out takes the folder over"}
}

// ResumeRun opens a run folder to continue its run: locks it, checks that the
// marker agrees with the journal, takes off a torn last line and removes
// half-written files. Records appended from now on follow those that are there.
func ResumeRun(dir string) (*RunDir, error) {
	d, err := OpenRun(dir)
	if err != nil {
		return nil, err
	}
	if err := d.resume(); err != nil {
		d.Close()
		if _, told := errors.AsType[*Error](err); told {
			return nil, err
		}
		hint := ""
		if errors.Is(err, ErrBusy) {
			hint = "wait until it has ended, or end it"
		}
		return nil, &Error{Doing: "resuming run", File: dir, Err: bare(err), Hint: hint}
	}
	return d, nil
}

// Running reports whether a process writes the run in this folder. A folder that
// cannot be read is not running.
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

func (d *RunDir) resume() error {
	f, err := d.openRegular(JournalFile, os.O_RDWR)
	if err != nil {
		return err
	}
	if err := d.take(f); err != nil {
		return err
	}
	r := NewReader(f, JournalFile)
	recs, err := r.all()
	if err != nil {
		return err
	}
	if len(recs) == 0 {
		return neverBegan("resuming run", d.path)
	}
	if recs[0].Run == nil {
		return fmt.Errorf("the journal does not begin with a run: %w", ErrNotRun)
	}
	if err := d.checkMarker(recs[0].Run.ID); err != nil {
		return err
	}
	if torn := r.Torn(); torn != nil {
		d.warnings = append(d.warnings, *torn)
		if err := f.Truncate(r.Whole()); err != nil {
			return fmt.Errorf("taking off the torn line: %w", bare(err))
		}
	}
	d.w = newWriter(durable{f}, d.path, r.Whole(), len(recs), !recs[0].Run.Identify)
	d.w.doubted = r.Whole()
	return d.sweep()
}

// checkMarker refuses a folder that this program did not make for this run and user.
func (d *RunDir) checkMarker(id string) error {
	text, err := d.ReadFile(markerFile, maxName+1)
	if err != nil {
		return fmt.Errorf("the folder is not marked as a run's (%w): %w", bare(err), ErrNotRun)
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

// take locks the journal for as long as the folder is open.
func (d *RunDir) take(f *os.File) error {
	d.journal = f
	switch err := lock(f); {
	case errors.Is(err, errors.ErrUnsupported):
		d.warnings = append(d.warnings, Warning{Kind: "lock",
			Text: "the file system of the run folder has no locks: nothing keeps a second resume away"})
	case err != nil:
		return err
	}
	return nil
}

func openDir(dir string) (*RunDir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, bare(err)
	}
	return &RunDir{root: root, path: abs}, nil
}

// Path is the absolute path of the folder.
func (d *RunDir) Path() string { return d.path }

// Close writes what is pending and gives the lock back.
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

// Append adds a record; its Seq and Schema are set here, At has to be set. It is
// only in memory until Flush or Sync, so that it may be called during a timed span.
// Unless the run record has identify, host names, users and paths are taken out.
func (d *RunDir) Append(rec Record) error {
	if d.w == nil {
		return fmt.Errorf("appending to the journal: %w", errReadOnly)
	}
	return d.w.append(rec)
}

var errReadOnly = errors.New("the run folder was opened for reading")

// Flush hands the records to the operating system: they survive kill -9. When it
// fails no record is lost, and a later Flush tries again.
func (d *RunDir) Flush() error {
	if d.w == nil {
		return fmt.Errorf("flushing the journal: %w", errReadOnly)
	}
	return d.w.flush()
}

// Volatile lets Sync hand records to the operating system only, as Flush does.
func (d *RunDir) Volatile() {
	if d.w != nil {
		d.w.volatile = true
	}
}

// Sync makes the records durable: they survive a power cut.
func (d *RunDir) Sync() error {
	if d.w == nil {
		return fmt.Errorf("flushing the journal: %w", errReadOnly)
	}
	return d.w.sync()
}

// Hide writes instead for path in every record, such as
// "<external>" for the folder of a place. It has no effect with --identify.
func (d *RunDir) Hide(path, instead string) {
	if d.w == nil {
		return
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.hide = addHidden(d.w.hide, path, instead)
}

// Journal reads all whole records that are in the file. A torn last line is left
// out, and is in [RunDir.Warnings] afterwards.
func (d *RunDir) Journal() ([]Record, error) {
	f, err := d.openRegular(JournalFile, os.O_RDONLY)
	if err != nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Err: bare(err)}
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && fi.Size() > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	if err != nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Err: bare(err)}
	}
	r := NewReader(f, JournalFile)
	recs, err := r.all()
	for _, w := range []*Warning{r.Torn(), r.Unchecked()} {
		if err == nil && w != nil && !slices.Contains(d.warnings, *w) {
			d.warnings = append(d.warnings, *w)
		}
	}
	return recs, err
}

// Warnings are what was noticed about the folder itself: a torn line, no checksums, no locks.
func (d *RunDir) Warnings() []Warning { return slices.Clone(d.warnings) }
