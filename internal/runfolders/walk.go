package runfolders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"dmgbench/internal/result"
)

// entry is a folder that a walk found: a run, or a folder that cannot be read.
type entry struct {
	path   string
	reason string // why it cannot be read, "" for a run
}

// Walk calls read for every run folder below dir, in as many goroutines as
// there are processors; each holds one run in memory. The runs are in the order
// of their paths. unread names the folders that could not be read, with the
// reason. Links are not followed, except dir itself.
func Walk[T any](dir string, read func(path string) (T, error)) (runs []T, unread []string, err error) {
	root, err := resolveFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	all, err := findRuns(root)
	if err != nil {
		return nil, nil, fmt.Errorf("reading folder %q: %w", dir, pathCause(err))
	}
	found := make([]T, len(all))
	parallel(len(all), func(i int) {
		if all[i].reason != "" {
			return
		}
		var err error
		if found[i], err = read(all[i].path); err != nil {
			all[i].reason = err.Error()
		}
	})
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
		holds, denied := holdsRun(path)
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			all = append(all, entry{path, fmt.Sprintf("reading folder: %v", pathCause(err))})
			return skip(e)
		case e.Type()&fs.ModeSymlink != 0 && holds:
			all = append(all, entry{path, "a link to a run, and links are not followed"})
		case !e.IsDir():
		case denied != nil:
			all = append(all, entry{path, fmt.Sprintf("reading folder: %v", denied)})
			return fs.SkipDir
		case holds:
			all = append(all, entry{path: path})
			return fs.SkipDir
		}
		return nil
	})
	return all, err
}

// skip keeps a walk out of a folder that cannot be read; e is nil where even
// its type is unknown.
func skip(e fs.DirEntry) error {
	if e != nil && e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// parallel calls do for 0 to n-1 on all processors and returns when all calls
// have returned.
func parallel(n int, do func(i int)) {
	// Each goroutine takes the next number, as runs differ in size.
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	wg.Wait()
}

// Folders lists the run folders of one argument: the path itself, or the runs
// directly in it where it is not a run folder but contains some, as run
// --sessions makes it. The list is never empty.
func Folders(path string) []string {
	if holds, err := holdsRun(path); holds || err != nil {
		return []string{path}
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return []string{path}
	}
	var out []string
	for _, e := range list {
		below := filepath.Join(path, e.Name())
		if holds, err := holdsRun(below); e.IsDir() && holds && err == nil {
			out = append(out, below)
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
		if isFile(filepath.Join(dir, name)) {
			return true, nil
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrPermission) {
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
