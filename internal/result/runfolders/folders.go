package runfolders

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

const hintRuns = "give the folder that contains run folders, such as runs"

// walk calls read for every run folder below dir, in the order of their paths.
// unread names the folders that could not be read, with the reason. The content
// of a run folder is not searched: it may hold images with many bands. Links are
// not followed, except dir itself; root is the folder that it leads to.
func walk[T any](dir string, read func(root, path string) (T, error)) (runs []T, unread []string, err error) {
	root, err := filepath.EvalSymlinks(dir)
	visit := func(path string, e fs.DirEntry, err error) error {
		if path == root && err == nil && !e.IsDir() {
			err = errors.New("not a folder")
		}
		if err != nil && path == root {
			return err
		}
		holds, denied := holdsRun(path)
		reason := ""
		switch err = cmp.Or(err, denied); {
		case e.Type()&fs.ModeSymlink != 0 && holds:
			reason = "a link to a run, and links are not followed"
		case e.IsDir() && err != nil:
			reason = fmt.Sprintf("reading folder: %v", hostio.WithoutPath(err))
		case e.IsDir() && holds:
			run, err := read(root, path)
			if err == nil {
				runs = append(runs, run)
				return fs.SkipDir
			}
			reason = err.Error()
		}
		if reason == "" {
			return nil
		}
		unread = append(unread, slashPath(root, path)+": "+reason)
		if !e.IsDir() {
			return nil
		}
		return fs.SkipDir
	}
	if err == nil {
		err = filepath.WalkDir(root, visit)
	}
	if err != nil {
		return nil, nil, &result.Error{Doing: "reading folder", File: dir, Err: hostio.WithoutPath(err), Hint: hintRuns}
	}
	return runs, unread, nil
}

// Folders lists the run folders of one argument: the path itself, or the runs
// directly in it where it is not a run folder but contains some, as run
// --sessions makes it. The list is never empty.
func Folders(path string) (out []string) {
	if holds, err := holdsRun(path); !holds && err == nil {
		list, _ := os.ReadDir(path) // what cannot be read is reported as a run
		for _, e := range list {
			below := filepath.Join(path, e.Name())
			if holds, err := holdsRun(below); e.IsDir() && holds && err == nil {
				out = append(out, below)
			}
		}
	}
	if len(out) == 0 {
		return []string{path}
	}
	return out
}

// HasRuns reports whether a folder is a run folder or has one directly in it, as
// far as it can be read.
func HasRuns(path string) bool {
	holds, err := holdsRun(Folders(path)[0])
	return holds || err != nil
}

// holdsRun reports whether a folder is a run folder: it has a result or a
// journal that is a regular file. The error is that the folder may not be
// searched.
func holdsRun(dir string) (bool, error) {
	for _, name := range []string{result.ResultFile, result.JournalFile} {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && fi.Mode().IsRegular() {
			return true, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return false, hostio.WithoutPath(err)
		}
	}
	return false, nil
}

// isFile reports whether path is a regular file and no link.
func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// slashPath is path relative to dir, with slashes.
func slashPath(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

// BaselineFile is an empty file in a run folder, or in the folder of run
// --sessions, that is the baseline of its plan.
const BaselineFile = ".dmgbench-baseline"

// planName is the name of the plan of a run, or of the first of a folder of run
// --sessions.
func planName(path string) (string, error) {
	r, err := result.ReadSummary(Folders(path)[0])
	if err != nil {
		return "", err
	}
	return r.Plan.Name, nil
}

// FindBaseline is the path of the marked run of the same plan in the folder
// that contains the run folder path, which is absolute; "" where none is marked.
// name is the name of the plan.
func FindBaseline(path string) (baseline, name string, err error) {
	if name, err = planName(path); err != nil {
		return "", "", err
	}
	marked, err := baselines(filepath.Dir(path), name)
	return append(marked, "")[0], name, err
}

// baselines are the paths of the marked runs of a plan in a folder.
func baselines(dir, plan string) (paths []string, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if isFile(filepath.Join(path, BaselineFile)) {
			if own, err := planName(path); err == nil && own == plan {
				paths = append(paths, path)
			}
		}
	}
	return paths, err
}

// MarkBaseline marks the run in a folder, given as an absolute path, as the
// baseline of its plan, or removes the mark. It returns the name of the plan,
// and the runs of the plan in the same folder that lost their mark.
func MarkBaseline(run string, remove bool) (plan string, replaced []string, err error) {
	if plan, err = planName(run); err != nil {
		return "", nil, err
	}
	var others []string
	if !remove {
		err = WriteNew(filepath.Join(run, BaselineFile), nil)
		others, _ = baselines(filepath.Dir(run), plan)
	} else {
		err = os.Remove(filepath.Join(run, BaselineFile))
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // as it should be
		err = nil
	}
	for _, other := range others {
		if err == nil && other != run {
			err = os.Remove(filepath.Join(other, BaselineFile))
			replaced = append(replaced, filepath.Base(other))
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("marking run %q: %w", run, err)
	}
	return plan, replaced, nil
}
