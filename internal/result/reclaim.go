package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// reclaim empties a folder in which a run was killed before its first record:
// the folder has a marker of this user, no locked journal, and only files that
// the start of a run makes. It does not change other folders; for them the
// error is [ErrNotEmpty]. The marker is the last file that it removes.
func (d *RunDir) reclaim() error {
	names, err := d.names()
	if err != nil {
		return err
	}
	known := func(name string) bool {
		return name == markerFile || name == JournalFile || name == PlanFile ||
			strings.HasPrefix(name, tempPrefix(PlanFile))
	}
	if slices.Contains(names, PlanFile) && !slices.Contains(names, JournalFile) { // the journal was removed
		return ErrNotEmpty
	}
	if !slices.Contains(names, markerFile) || slices.ContainsFunc(names, func(n string) bool { return !known(n) }) {
		return ErrNotEmpty
	}
	text, err := d.ReadFile(markerFile, maxName+1)
	id := strings.TrimSuffix(string(text), "\n")
	if err != nil || id != "" && SafeName(id) != nil {
		return ErrNotEmpty
	}
	if fi, err := d.root.Lstat(markerFile); err != nil || !OwnedByUs(fi) {
		return ErrNotEmpty
	}
	release, err := d.lockEmptyJournal()
	if err != nil {
		return err
	}
	defer release()
	others := slices.DeleteFunc(names, func(name string) bool { return name == markerFile })
	return d.removeAll(append(others, markerFile))
}

// removeAll removes files in this order, up to the first error.
func (d *RunDir) removeAll(names []string) error {
	for _, name := range names {
		if err := d.root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// lockEmptyJournal locks the journal, if there is one, and checks that it has
// no record.
func (d *RunDir) lockEmptyJournal() (release func(), err error) {
	f, err := d.openRegular(JournalFile, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, ErrNotEmpty
	}
	release = func() { f.Close() }
	if err := lock(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		release()
		return nil, err
	}
	if j, err := readJournal(f, JournalFile); err != nil || len(j.records) > 0 {
		release()
		return nil, ErrNotEmpty
	}
	return release, nil
}

// names are the names of all files in the folder.
func (d *RunDir) names() ([]string, error) {
	self, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	return self.Readdirnames(-1)
}

// Conditions under which [Discard] does not change a run folder.
var (
	// ErrNotEnded is returned for a run that can be resumed.
	ErrNotEnded = errors.New("the run has not ended")
	// ErrHoldsMore is returned for a run folder with files that no run makes
	// there, such as kept images.
	ErrHoldsMore = errors.New("it contains other files")
)

// Discard deletes the folder of a run that has ended. The folder must have the
// marker of the run that its journal and id name, belong to this user, not be
// locked by a process, and contain only files of a run folder; else Discard
// does not change it. The marker is the last file, so that what an interruption
// leaves is still recognized.
func Discard(dir, id string) error {
	d, err := ResumeRun(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.discard(id); err != nil {
		return &Error{Doing: "deleting run", File: dir, Err: withoutPath(err)}
	}
	return nil
}

// discard checks and deletes a locked folder.
func (d *RunDir) discard(id string) error {
	recs, err := d.Journal()
	if err != nil {
		return err
	}
	s, err := Replay(recs)
	if err != nil {
		return err
	}
	switch {
	case s.Run.ID != id:
		return fmt.Errorf("it is run %q, not %q: %w", s.Run.ID, id, ErrNotRun)
	case s.Ended == nil:
		return ErrNotEnded
	}
	names, err := d.names()
	if err != nil {
		return err
	}
	own := []string{ReportFile, SummaryFile, ResultFile, PlanFile, JournalFile, markerFile}
	for _, name := range names {
		fi, err := d.root.Lstat(name)
		if err != nil {
			return err
		}
		if !slices.Contains(own, name) || !fi.Mode().IsRegular() {
			return fmt.Errorf("%w: %s", ErrHoldsMore, strings.ToValidUTF8(name, "\uFFFD"))
		}
	}
	existing := slices.DeleteFunc(own, func(name string) bool { return !slices.Contains(names, name) })
	if err := d.removeAll(existing); err != nil {
		return err
	}
	return os.Remove(d.path)
}
