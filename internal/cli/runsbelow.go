package cli

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

// readBelow reads every run folder below a folder, several at a time, each with a
// goroutine that holds one of them in memory. What is found stands in the order of
// the paths; lost says of what could not be read why. Links are not followed, but
// for dir itself; one that leads to a run is told.
func readBelow[T any](dir string, read func(path string) (T, error)) (found []T, lost []string, err error) {
	at, err := folderOf(dir)
	if err != nil {
		return nil, nil, err
	}
	type entry struct {
		path string
		lost string
		run  T
	}
	var all []*entry
	err = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		one := &entry{path: path}
		holds, hidden := holdsRun(path)
		switch {
		case err != nil && path == at:
			return fmt.Errorf("reading folder %q: %w", dir, withoutPath(err))
		case err != nil:
			one.lost = fmt.Sprintf("reading folder: %v", withoutPath(err))
		case e.Type()&fs.ModeSymlink != 0 && holds:
			one.lost = "a link to a run, and links are not followed"
		case !e.IsDir():
			return nil
		case hidden != nil:
			one.lost = fmt.Sprintf("reading folder: %v", hidden)
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
	onAll(len(all), func(i int) {
		if one := all[i]; one.lost == "" {
			if one.run, err = read(one.path); err != nil {
				one.lost = err.Error()
			}
		}
	})
	for _, one := range all {
		if one.lost != "" {
			lost = append(lost, relative(at, one.path)+": "+one.lost)
		} else {
			found = append(found, one.run)
		}
	}
	return found, lost, nil
}

// onAll does n things on all processors.
func onAll(n int, do func(i int)) {
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

// folderOf is the folder that dir is, or leads to as a link.
func folderOf(dir string) (string, error) {
	at, err := filepath.EvalSymlinks(dir)
	var fi fs.FileInfo
	if err == nil {
		fi, err = os.Stat(at)
	}
	switch {
	case err != nil:
		err = withoutPath(err)
	case !fi.IsDir():
		err = errors.New("not a folder")
	default:
		return at, nil
	}
	return "", &hintedError{fmt.Errorf("reading folder %q: %w", dir, err), "give the folder that holds run folders, such as " + runsDir}
}

// withoutPath is the cause inside a path error: the path is named already.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// holdsRun reports whether a folder is a run's; the error is that nobody can look into it.
func holdsRun(dir string) (holds bool, err error) {
	for _, name := range []string{result.ResultFile, result.JournalFile} {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && fi.Mode().IsRegular() {
			return true, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return false, withoutPath(err)
		}
	}
	return false, nil
}

// relative is a path from a folder, with slashes.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}
