package result

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Conditions under which [Discard] leaves a run folder alone.
var (
	// ErrNotEnded is returned for a run that has not ended, and that resume would continue.
	ErrNotEnded = errors.New("the run has not ended")
	// ErrHoldsMore is returned for a run folder with files in it that no run makes, such as kept images.
	ErrHoldsMore = errors.New("something else is in it")
)

// Discard deletes the folder of a run that has ended. It has to carry the marker
// of the run that its journal and id name, belong to this user, be locked by no process,
// and hold the files of a run folder and no others; else it is left unchanged. The
// marker goes last, so that what an interruption leaves is still known as ours.
func Discard(dir, id string) error {
	d, err := ResumeRun(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.discard(id); err != nil {
		return &Error{Doing: "deleting run", File: dir, Err: bare(err)}
	}
	return nil
}

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
	for _, name := range own {
		if slices.Contains(names, name) {
			if err := d.root.Remove(name); err != nil {
				return err
			}
		}
	}
	return os.Remove(d.path)
}
