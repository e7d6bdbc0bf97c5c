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

// found is one entry of a walk: a run, or the reason why it cannot be read.
type found[T any] struct {
	path   string
	reason string
	run    T
}

// Walk calls read for every run folder below dir, in as many goroutines as
// there are processors; each holds one run in memory. found is in the order of
// the paths. unread names the folders that could not be read, with the reason.
// Links are not followed, except dir itself.
func Walk[T any](dir string, read func(path string) (T, error)) (runs []T, unread []string, err error) {
	root, err := resolveFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	var all []*found[T]
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		one := &found[T]{path: path}
		holds, denied := holdsRun(path)
		switch {
		case err != nil && path == root:
			return fmt.Errorf("reading folder %q: %w", dir, pathCause(err))
		case err != nil:
			one.reason = fmt.Sprintf("reading folder: %v", pathCause(err))
		case e.Type()&fs.ModeSymlink != 0 && holds:
			one.reason = "a link to a run, and links are not followed"
		case !e.IsDir():
			return nil
		case denied != nil:
			one.reason = fmt.Sprintf("reading folder: %v", denied)
		case !holds:
			return nil
		}
		if all = append(all, one); e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	parallel(len(all), func(i int) {
		if one := all[i]; one.reason == "" {
			if one.run, err = read(one.path); err != nil {
				one.reason = err.Error()
			}
		}
	})
	for _, one := range all {
		if one.reason != "" {
			unread = append(unread, slashPath(root, one.path)+": "+one.reason)
		} else {
			runs = append(runs, one.run)
		}
	}
	return runs, unread, nil
}

// parallel calls do for 0 to n-1 on all processors and returns when all calls
// have returned.
func parallel(n int, do func(i int)) {
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
