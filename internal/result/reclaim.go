package result

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// reclaim empties a folder in which a run was killed before its first record
// was written: it holds only what begin and the start of a run make, is
// marked, ours, and not locked. Any other folder is left unchanged,
// and the error is [ErrNotEmpty]. The marker goes last.
func (d *RunDir) reclaim() error {
	names, err := d.names()
	if err != nil {
		return err
	}
	known := func(name string) bool {
		return name == markerFile || name == JournalFile || name == PlanFile || strings.HasPrefix(name, tempPrefix(PlanFile))
	}
	if slices.Contains(names, PlanFile) && !slices.Contains(names, JournalFile) { // somebody took the journal away
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
	release, err := d.unbegun()
	if err != nil {
		return err
	}
	defer release()
	slices.SortFunc(names, func(a, b string) int { // the marker last
		switch {
		case a == markerFile:
			return 1
		case b == markerFile:
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if err := d.root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// unbegun locks the journal, if there is one, and makes sure that no record is in it.
func (d *RunDir) unbegun() (release func(), err error) {
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
	if recs, err := NewReader(f, JournalFile).all(); err != nil || len(recs) > 0 {
		release()
		return nil, ErrNotEmpty
	}
	return release, nil
}

func (d *RunDir) names() ([]string, error) {
	self, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	return self.Readdirnames(-1)
}
