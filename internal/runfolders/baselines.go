package runfolders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// BaselineFile lists the baselines of the folder that it is in: the name of a
// run folder a line, of each plan one.
const BaselineFile = "baselines.txt"

// maxBaselines is the largest list that is read, in bytes.
const maxBaselines = 1 << 20

// readBaselines are the names in the list of a folder, none where it has no
// list. Lines that start with # are comments. The folder may be somebody
// else's: no links, pipes or huge files are read.
func readBaselines(dir string) (names []string, err error) {
	path := filepath.Join(dir, BaselineFile)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimRight(line, "\r\n"); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names, nil
}

// isBaseline reports whether a run folder is marked, or the folder of run
// --sessions that contains it.
func isBaseline(path string) (bool, error) {
	for _, marked := range []string{path, filepath.Dir(path)} {
		names, err := readBaselines(filepath.Dir(marked))
		if err != nil || slices.Contains(names, filepath.Base(marked)) {
			return err == nil, err
		}
	}
	return false, nil
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
	names, err := readBaselines(dir)
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
	names, err := readBaselines(dir)
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

// writeBaselines replaces the list of a folder atomically; an empty list is
// removed.
func writeBaselines(dir string, names []string) error {
	d, err := hostio.OpenDir(dir)
	if err == nil {
		defer d.Close()
		const head = "# Runs that history prune keeps, the name of a folder a line: dmgbench history baseline\n"
		if len(names) > 0 {
			err = d.WriteFileAtomic(BaselineFile, []byte(head+strings.Join(names, "\n")+"\n"), 0o644)
		} else if err = d.Remove(BaselineFile); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("writing baselines in %q: %w", dir, err)
	}
	return nil
}
