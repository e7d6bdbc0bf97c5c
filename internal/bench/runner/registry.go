package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// registryFolder contains one JSON file per registered run, below the state
// folder.
const registryFolder = "runs"

// maxEntry bounds a file of the registry in bytes.
const maxEntry = 1 << 20

// entry is one run in the registry: the folders where a killed run may have
// left images.
type entry struct {
	Run    string            `json:"run"`
	Folder string            `json:"folder"`
	Places map[string]string `json:"places"`
	Former []string          `json:"former,omitempty"` // folders that earlier sessions used as places
	Inputs map[string]string `json:"inputs,omitempty"` // files of the user, by name
}

// folders are the places by name, then those of earlier sessions.
func (e entry) folders() (out []Place) {
	for _, name := range slices.Sorted(maps.Keys(e.Places)) {
		out = append(out, Place{Name: name, Path: e.Places[name]})
	}
	for _, path := range e.Former {
		out = append(out, Place{Path: path})
	}
	return out
}

// hasFolder reports whether images of the run may be in the folder at path.
func (e entry) hasFolder(path string) bool {
	return slices.ContainsFunc(e.folders(), func(p Place) bool { return p.Path == path })
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

// register writes the places and inputs of this session to the registry, so
// that [Clean] finds what a killed run leaves, and resume finds the places
// again.
func (r *run) register() error {
	if r.c.StateDir == "" {
		return nil
	}
	e := entry{Run: r.id, Folder: absolute(r.dir.Path()), Places: map[string]string{}, Inputs: map[string]string{}}
	for name, path := range r.c.Inputs {
		e.Inputs[name] = absolute(path)
	}
	var before entry
	if r.session > 1 {
		before, _ = readEntry(r.c.StateDir, r.id) // without one there are no former folders
	}
	for _, p := range allPlaces(r.c) {
		e.Places[p.Name] = absolute(p.Path)
	}
	for _, p := range before.folders() {
		if !e.hasFolder(p.Path) && before.mayContainImages(p) {
			e.Former = append(e.Former, p.Path)
		}
	}
	return writeEntry(r.c.StateDir, e)
}

// writeEntry replaces the entry of a run atomically: a killed run leaves the
// old entry or the new one, and perhaps a half-written temporary file.
func writeEntry(stateDir string, e entry) error {
	dir := filepath.Join(stateDir, registryFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the registry of runs: %w", err)
	}
	d, err := hostio.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("opening the registry of runs: %w", err)
	}
	defer d.Close()
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
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
	if stateDir == "" {
		return e, fs.ErrNotExist
	}
	if err := result.SafeName(id); err != nil {
		return e, err
	}
	dir, err := hostio.OpenDir(filepath.Join(stateDir, registryFolder))
	if err != nil {
		return e, err
	}
	defer dir.Close()
	text, err := dir.ReadFile(id+".json", maxEntry)
	if err != nil {
		return e, err
	}
	if json.Unmarshal(text, &e) != nil || e.Run != id {
		return e, errors.New("it is damaged; remove it by hand")
	}
	return e, nil
}

// registeredRuns are the ids of the registered runs in order, and the names of
// half-written entries.
func registeredRuns(stateDir string) (ids, halfWritten []string, err error) {
	list, err := os.ReadDir(filepath.Join(stateDir, registryFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("reading the registry of runs: %w", err)
	}
	for _, f := range list {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			ids = append(ids, id)
		} else if strings.HasPrefix(f.Name(), ".") && strings.Contains(f.Name(), ".json.tmp-") {
			halfWritten = append(halfWritten, f.Name())
		}
	}
	return ids, halfWritten, nil
}

// unregister removes the entry of a run.
func unregister(stateDir, id string) {
	if stateDir != "" {
		// An entry that cannot be removed is removed by the next clean.
		_ = os.Remove(filepath.Join(stateDir, registryFolder, id+".json"))
	}
}

// unregisterEnded removes the entry of a run that has ended, unless images of
// it may be left at a place.
func unregisterEnded(stateDir, id string) {
	e, err := readEntry(stateDir, id)
	if err == nil && !slices.ContainsFunc(e.folders(), e.mayContainImages) {
		unregister(stateDir, id)
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
	ids, _, _ := registeredRuns(stateDir) // a registry that cannot be read names no run
	for _, id := range ids {
		if e, err := readEntry(stateDir, id); err == nil && result.Running(e.Folder) {
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
}

// Leftovers lists the registered runs that left images, in the order of their
// ids.
func Leftovers(stateDir string) (all []Leftover) {
	ids, _, _ := registeredRuns(stateDir) // a registry that cannot be read names no run
	for _, id := range ids {
		e, err := readEntry(stateDir, id)
		if err != nil || result.Running(e.Folder) {
			continue
		}
		l := Leftover{Folder: e.Folder}
		for _, at := range e.folders() {
			dir := filepath.Join(at.Path, workFolderName(id))
			if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
				l.Images = append(l.Images, dir)
			}
		}
		if len(l.Images) == 0 {
			continue
		}
		if d, err := result.OpenRun(l.Folder); err == nil {
			if s := stateOf(d, id); s != nil {
				l.Ended, l.Paused, l.Resumes = s.Ended != nil, s.Paused != nil, s.Ended == nil
			}
			d.Close()
		}
		all = append(all, l)
	}
	return all
}

// stateOf is the state of run id by the journal in d, nil if that cannot be
// read or is of another run.
func stateOf(d *result.RunDir, id string) *result.State {
	recs, err := d.Journal()
	if err == nil {
		if s, err := result.Replay(recs); err == nil && s.Run.ID == id {
			return s
		}
	}
	return nil
}

// PausedImageGone reports whether the container that a pause left was removed.
func PausedImageGone(c Config, run result.RunStart, p *result.Pause) bool {
	places, err := PlacesOf(c, run)
	if err != nil {
		return false
	}
	at := c.Out
	for _, known := range places {
		if known.Name == p.Place {
			at = known.Path
		}
	}
	_, err = os.Lstat(filepath.Join(at, workFolderName(run.ID), p.Container))
	return os.IsNotExist(err)
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
