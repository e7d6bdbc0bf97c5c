package runfolders

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"dmgbench/internal/result"
)

// entry is a folder that a walk found: a run, or a folder that cannot be read.
type entry struct {
	path   string
	reason string // why it cannot be read, "" for a run
}

// walk calls read for every run folder below dir, in as many goroutines as
// there are processors; each holds one run in memory. The runs are in the order
// of their paths. unread names the folders that could not be read, with the
// reason. Links are not followed, except dir itself.
func walk[T any](dir string, read func(path string) (T, error)) (runs []T, unread []string, err error) {
	root, err := resolveFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	all, err := findRuns(root)
	if err != nil {
		return nil, nil, fmt.Errorf("reading folder %q: %w", dir, pathCause(err))
	}
	found := make([]T, len(all))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range all {
		e := &all[i]
		if e.reason != "" {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			run, err := read(e.path)
			if found[i] = run; err != nil {
				e.reason = err.Error()
			}
		})
	}
	wg.Wait()
	for i, e := range all {
		if e.reason == "" {
			runs = append(runs, found[i])
		} else {
			unread = append(unread, slashPath(root, e.path)+": "+e.reason)
		}
	}
	return runs, unread, nil
}

// findRuns lists the run folders below root, and what cannot be searched. The
// content of a run folder is not searched: it may hold images with many bands.
func findRuns(root string) (all []entry, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil && path == root {
			return err
		}
		holds, denied := holdsRun(path)
		switch {
		case e.Type()&fs.ModeSymlink != 0 && holds:
			all = append(all, entry{path, "a link to a run, and links are not followed"})
		case !e.IsDir():
		case cmp.Or(err, denied) != nil:
			all = append(all, entry{path, fmt.Sprintf("reading folder: %v", pathCause(cmp.Or(err, denied)))})
			return fs.SkipDir
		case holds:
			all = append(all, entry{path: path})
			return fs.SkipDir
		}
		return nil
	})
	return all, err
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

// resolveFolder checks that dir is a folder or a link to one, and resolves the
// link. The error has a hint.
func resolveFolder(dir string) (string, error) {
	path, err := filepath.EvalSymlinks(dir)
	var fi fs.FileInfo
	if err == nil {
		fi, err = os.Stat(path)
	}
	if err == nil && !fi.IsDir() {
		err = errors.New("not a folder")
	}
	if err != nil {
		return "", &result.Error{Doing: "reading folder", File: dir, Err: pathCause(err),
			Hint: "give the folder that contains run folders, such as runs"}
	}
	return path, nil
}

// pathCause is the cause inside a path error, for messages that name the path
// already.
func pathCause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
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
			return false, pathCause(err)
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
