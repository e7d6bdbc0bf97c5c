package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// The registry is the only record of the places of a run, as the journal
// contains no paths. It has two readers: resume, which finds places and inputs
// that the user need not name again, and clean, which finds images of runs that
// were killed.

// RegistryFolder contains one JSON file per registered run, below the state
// folder.
const RegistryFolder = "runs"

// maxEntry bounds a file of the registry in bytes.
const maxEntry = 1 << 20

// entry is one run in the registry: the folders where a killed run may have
// left images.
type entry struct {
	Run    string            `json:"run"`
	Folder string            `json:"folder"`
	Places map[string]string `json:"places"`
	// Backing are the folders with the files of places, by their names.
	Backing map[string]string `json:"backing,omitempty"`
	Former  []string          `json:"former,omitempty"` // folders that earlier sessions used as places
	Inputs  map[string]string `json:"inputs,omitempty"` // files of the user, by name
	// Sessions marks the entry of all sessions of a command. No images are
	// where it says; it is for sessions that have not started yet.
	Sessions bool `json:"sessions,omitempty"`
}

// newEntry is the entry of a run with the places and inputs of c.
func newEntry(c Config, id, folder string) entry {
	e := entry{Run: id, Folder: Absolute(folder), Places: map[string]string{}, Inputs: map[string]string{},
		Backing: map[string]string{}}
	for name, path := range c.Inputs {
		e.Inputs[name] = Absolute(path)
	}
	for _, p := range allPlaces(c) {
		e.Places[p.Name] = Absolute(p.Path)
		if p.Backing != "" {
			e.Backing[p.Name] = Absolute(p.Backing)
		}
	}
	return e
}

// RegisterSessions registers the places and inputs of sessions below folder,
// which [Unregister] undoes, and returns their id.
func RegisterSessions(c Config, folder string) (id string, err error) {
	id = newID(c.Clock.Wall())
	e := newEntry(c, id, folder)
	e.Sessions = true
	return id, writeEntry(c.StateDir, e)
}

// InputsOf are the registered inputs of a run or of sessions, by name.
func InputsOf(stateDir, id string) map[string]string {
	e, _ := readEntry(stateDir, id)
	return e.Inputs
}

// folders are the places by name, then those of earlier sessions.
func (e entry) folders() (out []Place) {
	if e.Sessions {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Places)) {
		out = append(out, Place{Name: name, Path: e.Places[name]})
	}
	for _, path := range e.Former {
		out = append(out, Place{Path: path})
	}
	return out
}

// mayContainImages reports whether images of the run are in one of its folders,
// or may be: on a disk that is not attached now.
func (e entry) mayContainImages(at Place) bool {
	if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
		return at.Path != e.Folder
	}
	_, err := os.Lstat(filepath.Join(at.Path, workFolderName(e.Run)))
	return !errors.Is(err, fs.ErrNotExist)
}

// writeEntry replaces the entry of a run atomically: a killed run leaves the
// old entry or the new one, and perhaps a temporary file, which [Unregister]
// removes.
func writeEntry(stateDir string, e entry) error {
	dir := filepath.Join(stateDir, RegistryFolder)
	err := os.MkdirAll(dir, 0o700)
	var d *hostio.Dir
	if err == nil {
		d, err = hostio.OpenDir(dir)
	}
	if err != nil {
		return fmt.Errorf("opening the registry of runs: %w", err)
	}
	defer d.Close()
	text, _ := json.MarshalIndent(e, "", "  ") // strings never fail
	return d.WriteFileAtomic(e.Run+".json", append(text, '\n'), 0o600)
}

// readEntry reads the registry entry of one run. In a state folder of "" it
// finds none.
func readEntry(stateDir, id string) (e entry, err error) {
	defer func() {
		if err != nil {
			e, err = entry{}, fmt.Errorf("reading the registry entry of run %q: %w", id, err)
		}
	}()
	if err := result.SafeName(id); err != nil || stateDir == "" {
		return e, cmp.Or(err, fs.ErrNotExist)
	}
	dir, err := hostio.OpenDir(filepath.Join(stateDir, RegistryFolder))
	if err != nil {
		return e, err
	}
	defer dir.Close()
	text, err := dir.ReadFile(id+".json", maxEntry)
	if err == nil && (json.Unmarshal(text, &e) != nil || e.Run != id) {
		err = errors.New("it is damaged; dmgbench clean --forget " + id + " removes it")
	}
	return e, err
}

// readEntries reads the entries of all registered runs, in the order of their
// ids. With an error it returns those that can be read.
func readEntries(stateDir string) (all []entry, err error) {
	list, err := os.ReadDir(filepath.Join(stateDir, RegistryFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range list {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			e, failed := readEntry(stateDir, id)
			if err = errors.Join(err, failed); failed == nil {
				all = append(all, e)
			}
		}
	}
	return all, err
}

// Unregister removes the entry of a run, and what is left of entries that were
// being written when the run was killed. What cannot be removed is removed by
// the next clean.
func Unregister(stateDir, id string) {
	name := filepath.Join(stateDir, RegistryFolder, id+".json")
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "."+id+".json.tmp-*"))
	for _, path := range append(left, name) {
		_ = os.Remove(path)
	}
}

// unregisterEnded removes the entry of a run that has ended, unless images of
// it may be left at a place. A run that was killed while it wrote its first
// entry has only a temporary file.
func unregisterEnded(stateDir, id string) {
	e, err := readEntry(stateDir, id)
	isMissing := stateDir != "" && errors.Is(err, fs.ErrNotExist)
	if isMissing || err == nil && !slices.ContainsFunc(e.folders(), e.mayContainImages) {
		Unregister(stateDir, id)
	}
}

// FolderOf is the folder of a run by the registry, where its last session
// started; "" if it is unknown.
func FolderOf(stateDir, id string) string {
	e, _ := readEntry(stateDir, id)
	return e.Folder
}

// ActiveRuns lists the folders of the registered runs that a process is
// measuring now, oldest name first.
func ActiveRuns(stateDir string) (folders []string) {
	list, _ := readEntries(stateDir) // a registry that cannot be read names no run
	for _, e := range list {
		if result.Running(e.Folder) {
			folders = append(folders, e.Folder)
		}
	}
	return folders
}

// Leftover is a run that no process is measuring and that has images at its
// places.
type Leftover struct {
	Folder  string   // the run folder
	Images  []string // folders with images of the run
	Ended   bool     // the run has ended and kept its images
	Paused  bool     // the run waits for its user
	Resumes bool     // the run can be resumed
	Killed  bool     // its last session has no end
	Reason  string   // why its last session ended, if that has one
}

// Leftovers lists the registered runs that left images, in the order of their
// ids.
func Leftovers(stateDir string) (all []Leftover) {
	list, _ := readEntries(stateDir) // a registry that cannot be read names no run
	for _, e := range list {
		l := Leftover{Folder: e.Folder}
		for _, at := range e.folders() {
			dir := filepath.Join(at.Path, workFolderName(e.Run))
			if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
				l.Images = append(l.Images, dir)
			}
		}
		if len(l.Images) == 0 || result.Running(e.Folder) {
			continue
		}
		if d, err := result.OpenRun(l.Folder); err == nil {
			if s, err := d.State(); err == nil && s.Run.ID == e.Run {
				l.Ended, l.Paused, l.Resumes, l.Killed = s.Ended != nil, s.Paused != nil, s.Ended == nil, true
				if n := len(s.Sessions); n > 0 {
					l.Killed, l.Reason = s.Sessions[n-1].End == result.Lost, s.Sessions[n-1].Reason
				}
			}
			d.Close()
		}
		all = append(all, l)
	}
	return all
}

// lockRun opens a run folder and locks it. It waits a moment for a run that was
// just killed.
func lockRun(ctx context.Context, c clock.Clock, folder string, report func(string)) (d *result.RunDir, err error) {
	err = RetryWhileLocked(ctx, c, result.ErrBusy, report, func() (err error) {
		d, err = result.ResumeRun(folder)
		return err
	})
	return d, err
}

// How often and how long a lock is waited for.
const (
	lockTries = 20
	lockPoll  = 100 * time.Millisecond
)

// RetryWhileLocked repeats do, for two seconds in all, while it fails with an
// error that matches locked: a child that a killed run was starting has the
// run's locks between its fork and its exec, and that may take a while on a
// busy machine. Without a clock it does not wait. It calls report, which may be
// nil, once when it waits.
func RetryWhileLocked(
	ctx context.Context, c clock.Clock, locked error, report func(text string), do func() error,
) error {
	err := do()
	for n := 0; n < lockTries && c != nil && errors.Is(err, locked); n++ {
		if n == 0 && report != nil {
			report(fmt.Sprintf("%v: waiting up to %v for it to end", err, lockTries*lockPoll))
		}
		if e := c.Sleep(ctx, lockPoll); e != nil {
			return errors.Join(err, e)
		}
		err = do()
	}
	return err
}

// probesFolder is the folder in the state folder where engines are probed.
const probesFolder = "probes"

// CleanOptions are what [Clean] needs other than the registry. Each field may
// be nil.
type CleanOptions struct {
	// Release detaches the images below a folder (an absolute path) and returns
	// their names.
	Release func(ctx context.Context, folder string) ([]string, error)
	// Also cleans other parts of the state folder, after all runs.
	Also func(ctx context.Context, w io.Writer) error
	// Clock is used to wait for locks; without it it does not wait.
	Clock clock.Clock
}

// cleaner is one call of [Clean].
type cleaner struct {
	CleanOptions
	stateDir string
	out      io.Writer
	lines    int // printed
}

// Write counts what is printed.
func (c *cleaner) Write(p []byte) (int, error) {
	c.lines++
	return c.out.Write(p)
}

// Clean removes what interrupted runs left at their places, and prints what it
// did to w. It leaves alone runs that a process is measuring, and never removes
// a run folder. A run that can be resumed stays registered, since only the
// registry contains its places. An attached image is detached first, or kept.
func Clean(ctx context.Context, stateDir string, o CleanOptions, w io.Writer) error {
	list, err := readEntries(stateDir)
	c := &cleaner{CleanOptions: o, stateDir: stateDir, out: w}
	for _, e := range list {
		if ctx.Err() == nil {
			err = errors.Join(err, c.cleanRun(ctx, e))
		}
	}
	if c.Also != nil && ctx.Err() == nil {
		err = errors.Join(err, c.Also(ctx, c))
	}
	if err = errors.Join(err, ctx.Err()); err == nil && c.lines == 0 {
		_, err = fmt.Fprintln(w, "no leftovers found")
	}
	return err
}

// cleanRun removes the work folders of one run unless a process is measuring
// it.
func (c *cleaner) cleanRun(ctx context.Context, e entry) error {
	id, keepEntry := e.Run, false // the run can be resumed, or may have images elsewhere
	if _, err := os.Stat(e.Folder); e.Sessions && err == nil {
		return nil // the other sessions need it
	}
	run, err := lockRun(ctx, c.Clock, e.Folder, nil)
	switch {
	case errors.Is(err, result.ErrBusy):
		fmt.Fprintf(c, "%s: still running\n", id)
		return nil
	case err == nil:
		defer run.Close()
		s, err := run.State()
		keepEntry = err == nil && s.Run.ID == id && s.Ended == nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(c, "%s: its run folder cannot be opened (%v)\n", id, err)
	}
	var errs []error
	for _, at := range e.folders() {
		if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
			if at.Path != e.Folder { // a disk that is not attached now may contain images
				keepEntry = true
				fmt.Fprintf(c, "%s: %s does not exist now; if it is gone for good: dmgbench clean --forget %s\n",
					id, at.title(e.Folder), id)
			}
			continue
		}
		if err := c.cleanFolder(ctx, at, e); err != nil {
			errs = append(errs, &result.Error{Doing: "cleaning run", File: id, Err: err,
				Hint: "if none of it is left to delete: dmgbench clean --forget " + id})
		}
	}
	if err := errors.Join(errs...); err != nil || keepEntry {
		return err
	}
	Unregister(c.stateDir, id)
	return nil
}

// Forget removes the entry of a run from the registry, unless a process is
// measuring the run. It returns the folders in which images of the run may be,
// which stay.
func Forget(stateDir, id string) (folders []string, err error) {
	if err := result.SafeName(id); err != nil {
		return nil, err
	}
	e, _ := readEntry(stateDir, id) // also a damaged entry can be removed
	if result.Running(e.Folder) {
		return nil, fmt.Errorf("forgetting run %q: %w", id, result.ErrBusy)
	}
	if err := os.Remove(filepath.Join(stateDir, RegistryFolder, id+".json")); err != nil {
		return nil, fmt.Errorf("forgetting run %q: %w", id, hostio.WithoutPath(err))
	}
	Unregister(stateDir, id)
	for _, at := range e.folders() {
		folders = append(folders, filepath.Join(at.Path, workFolderName(id)))
	}
	return folders, nil
}

// cleanFolder detaches the images in the work folder of a run and removes it, if it
// exists.
func (c *cleaner) cleanFolder(ctx context.Context, at Place, e entry) error {
	if _, err := os.Lstat(filepath.Join(at.Path, workFolderName(e.Run))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := openWorkFolder(at, e.Run, nil)
	if err != nil {
		return err
	}
	defer f.close()
	if c.Release != nil {
		var names []string
		names, err = c.Release(ctx, f.dir.Path())
		for _, name := range names {
			fmt.Fprintf(c, "%s: detached %s\n", e.Run, name)
		}
	}
	if err == nil {
		err = f.remove(e.Run)
	}
	if err == nil {
		_, err = fmt.Fprintf(c, "%s: leftover images in %s deleted\n", e.Run, at.title(e.Folder))
	}
	return err
}

// WithProbeFolder calls probe with a new marked folder in the state folder, where
// it can try an engine, and removes the folder afterwards. The folder is registered
// as that of a run, so that [Clean] removes what a killed probe leaves.
func WithProbeFolder(stateDir string, at time.Time, probe func(*hostio.Dir) error) error {
	id, path := "probe-"+newID(at), filepath.Join(stateDir, probesFolder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making the folder of probes: %w", err)
	}
	place := Place{Name: probesFolder, Path: path}
	e := entry{Run: id, Folder: filepath.Join(path, id), Places: map[string]string{place.Name: place.Path}}
	if err := writeEntry(stateDir, e); err != nil {
		return err
	}
	f, err := openWorkFolder(place, id, nil)
	if err != nil {
		return err
	}
	if err = errors.Join(probe(f.dir), f.remove(id)); err == nil {
		Unregister(stateDir, id)
	}
	return err
}
