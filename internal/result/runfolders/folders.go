package runfolders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/pipeline"
)

const hintRuns = "give the folder that contains run folders, such as runs"

// walk calls read for every run folder below dir, by several workers, and
// returns the runs in the order of their paths. unread names the folders that
// could not be read, with the reason. root is the folder that dir leads to.
func walk[T any](rd *Reader, dir string, read func(rd *Reader, root, path string) (T, error),
) (runs []T, unread []string, err error) {
	root, list, err := findRuns(dir)
	if err != nil {
		return nil, nil, &result.Error{Doing: "reading folder", File: dir, Err: hostio.WithoutPath(err), Hint: hintRuns}
	}
	type job struct {
		found
		run T
		rd  Reader // of this folder alone
	}
	workers := runtime.GOMAXPROCS(0)
	err = pipeline.Run(context.Background(), workers, make([]job, 4*workers), func(submit func(func(*job)) bool) {
		for _, f := range list {
			submit(func(j *job) { *j = job{found: f} })
		}
	}, func(j *job) (err error) {
		if j.reason != "" {
			return nil
		}
		if j.run, err = read(&j.rd, root, j.path); err != nil {
			j.reason = err.Error()
		}
		return nil
	}, func(j *job) error {
		for _, path := range j.rd.outdated {
			rd.tellOutdated(path)
		}
		if j.reason == "" {
			runs = append(runs, j.run)
			return nil
		}
		unread = append(unread, slashPath(root, j.path)+": "+j.reason)
		return nil
	})
	return runs, unread, err
}

// found is a run folder, or what cannot be read.
type found struct {
	path   string
	reason string // why it cannot be read
}

// findRuns lists the run folders below dir in the order of their paths. The
// content of a run folder is not searched: it may hold images with many bands.
// Links are not followed, except dir itself; root is the folder that it leads
// to.
func findRuns(dir string) (root string, list []found, err error) {
	root, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
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
		case !e.IsDir() || !holds:
			return nil
		}
		list = append(list, found{path, reason})
		if !e.IsDir() {
			return nil
		}
		return fs.SkipDir
	})
	return root, list, err
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

// SessionsFile marks the folder of run --sessions and contains [Sessions].
const SessionsFile = ".dmgbench-sessions"

// Sessions are what run --sessions was asked for.
type Sessions struct {
	Schema int           `json:"schema"`
	ID     string        `json:"id"` // of their places in the registry of runs
	Count  int           `json:"sessions"`
	Pause  time.Duration `json:"pause_ns"` // between two of them
}

// MaxSessions is the most sessions of one command, also in a file of somebody
// else.
const MaxSessions = 10_000

// Folders are the run folders of the sessions below dir. Names sort in the order
// of numbers.
func (s Sessions) Folders(dir string) (all []string) {
	for n := range s.Count {
		all = append(all, filepath.Join(dir, fmt.Sprintf("%0*d", len(fmt.Sprint(s.Count)), n+1)))
	}
	return all
}

// Write makes the folder dir and the file in it, unless a session is there
// already.
func (s Sessions) Write(dir string) error {
	if _, err := os.Lstat(s.Folders(dir)[0]); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	d, err := hostio.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	text, _ := json.Marshal(s) // strings and numbers never fail
	return d.WriteFileAtomic(SessionsFile, append(text, '\n'), 0o644)
}

// ReadSessions reads the file of [Sessions.Write]; nil if the folder has none.
func ReadSessions(dir string) (*Sessions, error) {
	d, err := hostio.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	text, err := d.ReadFile(SessionsFile, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Sessions
	if json.Unmarshal(text, &s) != nil || s.Schema != result.SchemaVersion || s.Count < 1 || s.Count > MaxSessions ||
		s.Pause < 0 || result.SafeName(s.ID) != nil {
		return nil, &result.Error{Doing: "reading sessions", File: filepath.Join(dir, SessionsFile),
			Err: errors.New("it is damaged"), Hint: "resume its run folders one by one"}
	}
	return &s, nil
}

// Newest is the run folder whose journal was written last: of these, or of those
// in them.
func Newest(paths []string) string {
	written := func(dir string) time.Time {
		fi, err := os.Stat(filepath.Join(dir, result.JournalFile))
		if err != nil {
			return time.Time{} // opening it reports why, if there is no other
		}
		return fi.ModTime()
	}
	var dirs []string
	for _, path := range paths {
		dirs = append(dirs, Folders(path)...)
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return written(a).Compare(written(b)) })
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
