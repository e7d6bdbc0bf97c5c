package runfolders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// BaselineFile lists the baselines of the folder that it is in: the name of a
// run folder a line, of each plan one.
const BaselineFile = "baselines.txt"

// maxBaselines is the largest list that is read, in bytes.
const maxBaselines = 1 << 20

// Baselines are the names in the list of a folder, none where it has no list.
// Lines that start with # are comments.
func Baselines(dir string) ([]string, error) {
	path := filepath.Join(dir, BaselineFile)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	// The folder may be somebody else's: no links, pipes or huge files are
	// read.
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxBaselines) {
		err = errors.New("it is not a list of baselines")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading baselines %q: %w", path, err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimRight(line, "\r\n"); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names, nil
}

// FindBaseline is the path of the marked run of the same plan in the folder
// that contains the run folder path, "" where none is marked. name is the name
// of the plan. Names in the list that lead out of the folder are ignored.
func FindBaseline(path string) (baseline, name string, err error) {
	r, err := result.ReadSummary(Folders(path)[0])
	if err != nil {
		return "", "", err
	}
	dir := Parent(path)
	names, err := Baselines(dir)
	if err != nil {
		return "", "", err
	}
	for _, one := range names {
		other := filepath.Join(dir, one)
		o, err := result.ReadSummary(Folders(other)[0])
		if filepath.IsLocal(one) && err == nil && o.Plan.Name == r.Plan.Name {
			return other, r.Plan.Name, nil
		}
	}
	return "", r.Plan.Name, nil
}

// Parent is the folder that contains a run folder; path may be "." or start
// with "..".
func Parent(path string) string {
	if filepath.IsLocal(path) {
		return filepath.Dir(filepath.Clean(path))
	}
	return filepath.Join(path, "..")
}

// Mark is what MarkBaseline changed.
type Mark struct {
	Run, Plan string   // names of the run folder and of its plan
	Before    bool     // the run was marked before
	Replaced  []string // baselines of the plan whose mark was removed
}

// MarkBaseline marks the run in a folder, given as an absolute path, as the
// baseline of its plan, or removes the mark, in the list of the folder that
// contains it. Runs that were deleted are dropped from the list.
func MarkBaseline(run string, remove bool) (Mark, error) {
	dir, name := filepath.Split(run)
	r, err := result.ReadSummary(Folders(run)[0])
	if err != nil {
		return Mark{}, err
	}
	if strings.ContainsAny(name, "\r\n") || strings.HasPrefix(name, "#") {
		return Mark{}, fmt.Errorf("marking run %q: %s cannot hold such a name", run, BaselineFile)
	}
	names, err := Baselines(dir)
	if err != nil {
		return Mark{}, err
	}
	m := Mark{Run: name, Plan: r.Plan.Name, Before: slices.Contains(names, name)}
	names = slices.DeleteFunc(names, func(other string) bool {
		if other == name || !filepath.IsLocal(other) {
			return true
		}
		o, err := result.ReadSummary(Folders(filepath.Join(dir, other))[0])
		if !remove && err == nil && o.Plan.Name == m.Plan {
			m.Replaced = append(m.Replaced, other)
			return true
		}
		return errors.Is(err, os.ErrNotExist)
	})
	if !remove {
		names = append(names, name)
	}
	return m, writeBaselines(dir, names)
}

// writeBaselines replaces the list of a folder atomically, so that a crash
// leaves the old list or the new one; an empty list is removed.
func writeBaselines(dir string, names []string) error {
	path := filepath.Join(dir, BaselineFile)
	if len(names) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("writing baselines: %w", err)
		}
		return nil
	}
	// A file with a name of its own, so that two processes do not mix their
	// lists.
	f, err := os.CreateTemp(dir, "."+BaselineFile+"-*")
	if err != nil {
		return fmt.Errorf("writing baselines: %w", err)
	}
	const head = "# Runs that history prune keeps, the name of a folder a line: dmgbench history baseline\n"
	_, err = f.WriteString(head + strings.Join(names, "\n") + "\n")
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing baselines %q: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
