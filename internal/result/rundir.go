package result

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dmgbench/internal/system/hostio"
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

// The largest files of a run folder that are read, in bytes. No file is read as
// a whole but for the plan, which has a limit of its own.
const (
	maxFile    = 1 << 30
	maxSummary = 64 << 20
)

// RunDir is an open run folder. It opens only regular files in it: a link or
// FIFO in their place is an error. Append, Flush and Sync may be called from
// several goroutines, and not for a folder that was opened for reading.
type RunDir struct {
	*writer  // nil when the folder was opened for reading
	dir      *hostio.Dir
	journal  *hostio.File // locked; nil when the folder was opened for reading
	warnings []Warning
}

// CreateRun makes the run folder for the run with this id and locks it. It
// makes the folders above it. An existing folder must be empty. The marker is
// written before the journal: a folder with a journal is never without it.
func CreateRun(dir, id string) (d *RunDir, err error) {
	if err = os.MkdirAll(dir, 0o755); err == nil {
		d, err = openDir(dir)
	}
	defer func() {
		if err != nil {
			if d != nil {
				d.Close()
			}
			d, err = nil, &Error{Doing: "making run folder", File: dir, Err: withoutPath(err),
				Hint: "choose another folder with --out, or continue an interrupted run with `dmgbench resume`"}
		}
	}()
	if err != nil {
		return d, err
	}
	if list, err := d.dir.ReadDir("."); err != nil || len(list) > 0 {
		return d, cmp.Or(err, ErrNotEmpty)
	}
	if err := d.dir.WriteFileAtomic(markerFile, []byte(id+"\n"), 0o644); err != nil {
		return d, err
	}
	f, err := d.dir.Open(JournalFile, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err == nil {
		err = d.lock(f)
	}
	if err != nil {
		return d, err
	}
	d.writer = newWriter(f, d.Path(), nil, 0, true)
	return d, d.dir.Sync()
}

// OpenRun opens a run folder to read it and to write results and reports. It
// takes no lock: a report of an active run is allowed.
func OpenRun(dir string) (*RunDir, error) {
	d, err := openDir(dir)
	if err == nil {
		if fi, err := d.dir.Lstat(JournalFile); err == nil && fi.Mode().IsRegular() {
			return d, nil
		}
		d.Close()
		err = fmt.Errorf("it has no %s: %w", JournalFile, ErrNotRun)
	}
	return nil, &Error{Doing: "opening run folder", File: dir, Err: err,
		Hint: "give the folder that `dmgbench run` made"}
}

// errNeverStarted is the error of a run that was killed before its first
// record.
func errNeverStarted(doing, name string) error {
	return &Error{Doing: doing, File: name, Err: fmt.Errorf("the run was interrupted before it started: %w", ErrNotRun),
		Hint: "delete the folder, and start it again with `dmgbench run`"}
}

// ResumeRun opens a run folder to continue its run: it locks the folder, checks
// that the marker agrees with the journal, cuts off a torn last line and
// removes half-written files. Appended records follow the existing ones.
func ResumeRun(dir string) (*RunDir, error) {
	d, err := OpenRun(dir)
	if err != nil {
		return nil, err
	}
	if err = d.resume(); err == nil {
		return d, nil
	}
	d.Close()
	if _, complete := errors.AsType[*Error](err); complete {
		return nil, err
	}
	return nil, &Error{Doing: "resuming run", File: dir, Err: err}
}

// Running reports whether a process is executing the run in this folder. It is
// false for a folder that cannot be read.
func Running(dir string) bool {
	d, err := OpenRun(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	f, err := d.dir.Open(JournalFile, hostio.OpenOptions{Write: true})
	return err == nil && errors.Is(d.lock(f), ErrBusy)
}

// resume locks the folder, fails for one that this program did not make for this
// run and user, then repairs what a killed process left.
func (d *RunDir) resume() error {
	f, err := d.dir.Open(JournalFile, hostio.OpenOptions{Write: true})
	if err != nil {
		return withoutPath(err)
	}
	if err := d.lock(f); err != nil {
		return err
	}
	j, err := d.readJournal()
	switch {
	case err != nil:
		return err
	case len(j.records) == 0:
		return errNeverStarted("resuming run", d.Path())
	case j.records[0].Run == nil:
		return fmt.Errorf("the first record of the journal is not a run: %w", ErrNotRun)
	}
	run := j.records[0].Run
	text, err := d.dir.ReadFile(markerFile, maxName+1)
	if err != nil {
		return fmt.Errorf("the folder is not marked as a run's (%w): %w", withoutPath(err), ErrNotRun)
	}
	if strings.TrimSuffix(string(text), "\n") != run.ID {
		return fmt.Errorf("the folder is marked for another run than the journal's: %w", ErrNotRun)
	}
	if fi, err := d.dir.Lstat(markerFile); err != nil || !OwnedByUs(fi) {
		return fmt.Errorf("the folder belongs to another user: %w", ErrNotRun)
	}
	if j.torn > 0 {
		if err := f.Truncate(j.whole); err != nil {
			return fmt.Errorf("cutting off the torn line: %w", withoutPath(err))
		}
	}
	earlier := make([]byte, j.whole)
	if _, err := f.ReadAt(earlier, 0); err != nil {
		return withoutPath(err)
	}
	d.writer = newWriter(f, d.Path(), earlier, len(j.records), !run.Identify)
	return d.removeTemporary()
}

// lock locks the journal while the folder is open, also if the process is
// killed. The folder closes the file.
func (d *RunDir) lock(f *hostio.File) error {
	d.journal = f
	switch err := f.TryLock(); {
	case errors.Is(err, hostio.ErrLocked):
		return ErrBusy
	case errors.Is(err, hostio.ErrUnsupported):
		d.warnings = append(d.warnings, Warning{Kind: "lock",
			Text: "the file system of the run folder has no locks: do not resume the run twice at once"})
		return nil
	default:
		return withoutPath(err)
	}
}

// openDir opens a folder without checks. The error does not name it.
func openDir(dir string) (*RunDir, error) {
	opened, err := hostio.OpenDir(dir)
	if err != nil {
		return nil, withoutPath(err)
	}
	return &RunDir{dir: opened}, nil
}

// Path is the absolute path of the folder.
func (d *RunDir) Path() string { return d.dir.Path() }

// Close writes pending records and releases the lock.
func (d *RunDir) Close() error {
	var errs []error
	if d.writer != nil {
		errs = append(errs, d.Sync())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
	}
	d.writer, d.journal = nil, nil
	return errors.Join(append(errs, d.dir.Close())...)
}

// Journal reads all whole records of the file. It omits a torn last line, with
// a warning in [RunDir.Warnings].
func (d *RunDir) Journal() ([]Record, error) {
	j, err := d.readJournal()
	return j.records, err
}

// readJournal reads the journal, and adds its warnings to those of the folder.
func (d *RunDir) readJournal() (j journal, err error) {
	f, err := d.open(JournalFile, maxFile)
	if err != nil {
		return j, err
	}
	defer f.Close()
	j, err = readJournal(io.NewSectionReader(f, 0, maxFile), JournalFile)
	for _, w := range j.warnings {
		d.warnings = appendNew(d.warnings, w)
	}
	return j, err
}

// State replays the journal: which cases have ended, the pause, the sessions
// and their engines.
func (d *RunDir) State() (*State, error) {
	var s *State
	recs, err := d.Journal()
	if err == nil {
		s, err = Replay(recs)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of %q: %w", d.Path(), err)
	}
	return s, nil
}

// Fold makes the result of the journal, see [Fold].
func (d *RunDir) Fold() (*Result, error) {
	recs, err := d.Journal()
	if err != nil {
		return nil, err
	}
	return Fold(recs)
}

// Warnings are about the folder itself: a torn line, no checksums, no locks.
func (d *RunDir) Warnings() []Warning { return slices.Clone(d.warnings) }

// open opens a file of the folder that has at most limit bytes.
func (d *RunDir) open(name string, limit int64) (*hostio.File, error) {
	f, _, err := d.dir.OpenSmall(name, limit)
	if err != nil {
		return nil, &Error{Doing: "reading", File: name, Err: withoutPath(err)}
	}
	return f, nil
}

// ReadFile reads a file of the folder that has at most limit bytes.
func (d *RunDir) ReadFile(name string, limit int64) ([]byte, error) {
	data, err := d.dir.ReadFile(name, limit)
	if err != nil {
		return nil, &Error{Doing: "reading", File: name, Err: withoutPath(err)}
	}
	return data, nil
}

// WriteFile replaces plan.toml, result.json, summary.json or report.html
// atomically: the file has either the old or the new content, also after a
// crash. Equal content is not written, so that reporting works in a folder that
// is only readable.
func (d *RunDir) WriteFile(name string, data []byte) error {
	if !slices.Contains(writtenFiles, name) {
		return fmt.Errorf("writing %q: not a file of a run folder", name)
	}
	if old, err := d.digest(name, int64(len(data))); err == nil && old == digestOf(data) {
		return nil
	}
	if fi, err := d.dir.Lstat(name); err == nil && fi.IsDir() {
		return &Error{Doing: "writing", File: name, Err: errors.New("there is a folder of that name"),
			Hint: "move the folder away"}
	}
	if err := d.dir.WriteFileAtomic(name, data, 0o644); err != nil {
		return &Error{Doing: "writing", File: name, Err: withoutPath(err)}
	}
	return nil
}

// tempPrefix is the prefix of the temporary names of a file, see
// [hostio.Dir.WriteFileAtomic].
func tempPrefix(name string) string { return "." + name + ".tmp-" }

// removeTemporary removes what an interrupted WriteFile left.
func (d *RunDir) removeTemporary() error {
	list, err := d.dir.ReadDir(".")
	for _, f := range list {
		isOf := func(name string) bool { return strings.HasPrefix(f.Name(), tempPrefix(name)) }
		if err == nil && slices.ContainsFunc(writtenFiles, isOf) {
			err = d.dir.Remove(f.Name())
		}
	}
	return err
}

// Discard deletes the folder of a run that has ended. The folder must have the
// marker of the run that its journal and id name, belong to this user, not be
// locked by a process, and contain only files of a run folder; else Discard
// does not change it.
func Discard(dir, id string) (err error) {
	d, err := ResumeRun(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	defer func() {
		if err != nil {
			err = &Error{Doing: "deleting run", File: dir, Err: err}
		}
	}()
	s, err := d.State()
	switch {
	case err != nil:
		return err
	case s.Run.ID != id:
		return fmt.Errorf("it is run %q, not %q: %w", s.Run.ID, id, ErrNotRun)
	case s.Ended == nil:
		return ErrNotEnded
	}
	list, err := d.dir.ReadDir(".")
	if err != nil {
		return err
	}
	own := append([]string{JournalFile, markerFile}, writtenFiles...)
	for _, f := range list {
		if !slices.Contains(own, f.Name()) || !f.Type().IsRegular() {
			return fmt.Errorf("%w: %s", ErrHoldsMore, strings.ToValidUTF8(f.Name(), "\uFFFD"))
		}
	}
	// In the order of names the marker is the first. It goes last: what an
	// interruption leaves is still recognized.
	for _, f := range slices.Backward(list) {
		if err := d.dir.Remove(f.Name()); err != nil {
			return err
		}
	}
	return os.Remove(d.Path())
}

// Follower reads the journal of a run while another process writes it. It opens
// the file for reading only, and cannot disturb the run.
type Follower struct {
	dir     *RunDir
	file    *hostio.File
	journal journal
}

// FollowRun opens the journal of a run folder. [Follower.Poll] reads it.
func FollowRun(dir string) (*Follower, error) {
	d, err := OpenRun(dir)
	if err != nil {
		return nil, err
	}
	f, err := d.dir.Open(JournalFile, hostio.OpenOptions{})
	if err != nil {
		d.Close()
		return nil, &Error{Doing: "opening run folder", File: dir, Err: withoutPath(err)}
	}
	return &Follower{dir: d, file: f}, nil
}

// Poll reads what was appended since the last call, which is one system call
// where there is no more. It reports whether the run has new records. A line
// that is not complete yet is read by a later call.
func (f *Follower) Poll() (more bool, err error) {
	known := len(f.journal.records)
	err = f.journal.read(io.NewSectionReader(f.file, f.journal.whole, maxFile), JournalFile)
	return len(f.journal.records) > known, err
}

// Records are those that were read, which callers must not change.
func (f *Follower) Records() []Record { return f.journal.records }

// Abandoned reports whether no process executes the run: it could be locked,
// which is undone before the call returns. It is false where the file system
// has no locks. The error is that of a folder that was deleted.
func (f *Follower) Abandoned() (bool, error) {
	file, err := f.dir.dir.Open(JournalFile, hostio.OpenOptions{})
	if err != nil {
		return false, &Error{Doing: "reading journal", File: JournalFile, Err: withoutPath(err),
			Hint: "was the run folder deleted?"}
	}
	defer file.Close()
	return file.TryLockShared() == nil, nil
}

// Close closes the run folder.
func (f *Follower) Close() error { return errors.Join(f.file.Close(), f.dir.Close()) }

// Conditions that callers branch on.
var (
	// ErrNotEmpty is returned by [CreateRun] for a folder that is not empty.
	ErrNotEmpty = errors.New("folder is not empty")
	// ErrNotRun is returned for a folder that is not a run folder.
	ErrNotRun = errors.New("not a run folder")
	// ErrBusy is returned while another process writes the run.
	ErrBusy = errors.New("another process is running it")
	// ErrNotEnded is returned by [Discard] for a run that can be resumed.
	ErrNotEnded = errors.New("the run has not ended")
	// ErrHoldsMore is returned by [Discard] for a run folder with files that no
	// run makes there, such as kept images.
	ErrHoldsMore = errors.New("it contains other files")
)

// OwnedByUs reports whether the file belongs to the user of this process. For
// root by sudo that includes the caller, who owns what root made for him. On a
// volume that macOS mounts without owners, it is true for every file.
func OwnedByUs(fi fs.FileInfo) bool {
	return isOurs(hostio.StatOf(fi).UID, os.Geteuid(), os.Getenv("SUDO_UID"), runtime.GOOS)
}

// unknownOwner is the user 99 of macOS, which root sees as the owner of all
// files on a volume without owners; other users see themselves (mount(8),
// hdiutil(1)).
const unknownOwner = 99

// isOurs decides by the user ids and by SUDO_UID.
func isOurs(owner, user int, caller, system string) bool {
	n, err := strconv.ParseUint(caller, 10, 31)
	return owner == user || user == 0 && (err == nil && owner == int(n) || system == "darwin" && owner == unknownOwner)
}

// Error is an error about one file of a run folder, with a hint for the user.
type Error struct {
	Doing string // "reading journal"
	File  string // name inside the run folder, or the path that was given
	Line  int    // from 1, 0 for a file without lines
	Err   error
	Hint  string // shown on a separate line, may be empty
}

// Error is `<doing> "<file>" line <n>: <cause>`, without the hint.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s %q line %d: %v", e.Doing, e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Doing, e.File, e.Err)
}

// Unwrap is the cause, Advice the hint.
func (e *Error) Unwrap() error  { return e.Err }
func (e *Error) Advice() string { return e.Hint }

// withoutPath is the cause of an error of hostio or os, which names the path
// too: the caller has named it already.
func withoutPath(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// ErrUnsafeName is the error of a name that could lead to another folder.
var ErrUnsafeName = errors.New("not a plain file name")

// maxName is the longest name in bytes that every file system accepts.
const maxName = 255

// SafeName checks that name is a single path element: without separators of any
// system, control or invisible characters, neither hidden nor usable as an
// option of a command. Names of places, containers and runs are checked
// whenever a journal is written or read, so that a journal of other people
// cannot lead to files outside of the run's own folders.
func SafeName(name string) error {
	isBad := func(r rune) bool { return strings.ContainsRune(`/\:`, r) || !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsAny(name[:1], ".-~") ||
		strings.TrimSpace(name) != name || strings.ContainsFunc(name, isBad) {
		return fmt.Errorf("name %.64q: %w", name, ErrUnsafeName)
	}
	return nil
}
