package runner

import (
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
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// entry is one run in the registry: where a killed run may have left something.
type entry struct {
	Run    string            `json:"run"`
	Folder string            `json:"folder"`
	Places map[string]string `json:"places"`
	Former []string          `json:"former,omitempty"` // folders that earlier sessions had for places
	Inputs map[string]string `json:"inputs,omitempty"` // files that the user brought, by name
}

// folders are those where images of the run may lie: its places by name, and then those of earlier sessions.
func (e entry) folders() (out []Place) {
	for _, name := range slices.Sorted(maps.Keys(e.Places)) {
		out = append(out, Place{Name: name, Path: e.Places[name]})
	}
	for _, path := range e.Former {
		out = append(out, Place{Path: path})
	}
	return out
}

// knows says whether the folder at path is one of them.
func (e entry) knows(path string) bool {
	return slices.ContainsFunc(e.folders(), func(p Place) bool { return p.Path == path })
}

// after takes over the folders that an earlier session had and this one has not, where something of it may be left.
func (e *entry) after(before entry) {
	for _, p := range before.folders() {
		if !e.knows(p.Path) && before.mayHold(p) {
			e.Former = append(e.Former, p.Path)
		}
	}
}

// mayHold says whether something of the run is left in one of its folders, or may be: on a disk that is not attached now.
func (e entry) mayHold(at Place) bool {
	if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
		return at.Path != e.Folder
	}
	_, err := os.Lstat(filepath.Join(at.Path, workFolder(e.Run)))
	return !errors.Is(err, fs.ErrNotExist)
}

// register notes a run in the state directory, so that clean finds what kill -9 leaves.
func register(stateDir string, e entry) error {
	if stateDir == "" {
		return nil
	}
	dir := filepath.Join(stateDir, "runs")
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

func unregister(stateDir, id string) {
	if stateDir != "" {
		// What cannot be removed is found and removed by the next clean.
		_ = os.Remove(filepath.Join(stateDir, "runs", id+".json"))
	}
}

// unregisterEnded forgets a run that has ended, unless something of it may be left at a place.
func unregisterEnded(stateDir, id string) {
	e, err := readEntry(stateDir, id)
	if err == nil && !slices.ContainsFunc(e.folders(), e.mayHold) {
		unregister(stateDir, id)
	}
}

// readEntry reads what the registry says of one run.
func readEntry(stateDir, id string) (entry, error) {
	fail := func(err error) (entry, error) {
		return entry{}, fmt.Errorf("reading the registry entry of run %q: %w", id, err)
	}
	if err := result.SafeName(id); err != nil {
		return fail(err)
	}
	dir, err := hostio.OpenDir(filepath.Join(stateDir, "runs"))
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	text, err := dir.ReadFile(id+".json", 1<<20)
	if err != nil {
		return fail(err)
	}
	var e entry
	if err := json.Unmarshal(text, &e); err != nil || e.Run != id {
		return fail(errors.New("it is damaged; remove it by hand"))
	}
	return e, nil
}

// placesAgain finds the folders that a run was given: those that are given anew,
// else those that the registry knows. The journal does not say.
func placesAgain(c Config, run result.RunStart) ([]Place, error) {
	var known entry
	if c.StateDir != "" {
		known, _ = readEntry(c.StateDir, run.ID) // without an entry the folders have to be given
	}
	out := slices.Clone(c.Places)
	var lost, flags []string
	for _, p := range run.Places {
		if !p.Given || slices.ContainsFunc(out, func(o Place) bool { return o.Name == p.Name }) {
			continue
		}
		path := known.Places[p.Name]
		if path == "" {
			lost = append(lost, strconv.Quote(p.Name))
			flags = append(flags, "--on "+strings.TrimPrefix(p.Name+"=DIR", "="))
			continue
		}
		out = append(out, Place{Name: p.Name, Path: path})
	}
	if len(lost) > 0 {
		return nil, &result.Error{Doing: "resuming run", File: c.Out, Err: fmt.Errorf("the folder of place %s is not known any more", strings.Join(lost, " and ")),
			Hint: "give it again with " + strings.Join(flags, " ")}
	}
	return out, nil
}

// Cleaning is what [Clean] needs besides the registry.
type Cleaning struct {
	// Release detaches the images below a folder (an absolute path) and names them; nil: none can be attached.
	Release func(ctx context.Context, folder string) ([]string, error)
	// Also cleans what others keep beside the registry, behind all runs; nil: nothing.
	Also func(ctx context.Context, w io.Writer) error
	// Clock is what locks are waited for on; nil: they are not waited for.
	Clock clock.Clock
	// Lock takes the lock of measuring; nil: nobody else measures.
	Lock func() (release func(), err error)
}

// How long a lock is waited for.
const (
	lockTries = 20
	lockPoll  = 100 * time.Millisecond
)

// Patiently does something again, for two seconds in all, while it fails with an error
// that matches held: between its fork and its exec a child that a killed run was
// starting has the run's locks, and on a busy machine that may take a while.
//
// say is told once that there is something to wait for; it may be nil.
func Patiently(ctx context.Context, c clock.Clock, held error, say func(text string), do func() error) error {
	err := do()
	for n := 0; n < lockTries && c != nil && errors.Is(err, held); n++ {
		if n == 0 && say != nil {
			say(fmt.Sprintf("%v: waiting up to %v for it to let go", err, lockTries*lockPoll))
		}
		if e := c.Sleep(ctx, lockPoll); e != nil {
			return errors.Join(err, e)
		}
		err = do()
	}
	return err
}

// release detaches what is below a folder, and says so.
func (c Cleaning) release(ctx context.Context, folder, id string, w io.Writer) error {
	if c.Release == nil {
		return nil
	}
	names, err := c.Release(ctx, folder)
	for _, name := range names {
		fmt.Fprintf(w, "%s: detached %s\n", id, name)
	}
	return err
}

// Clean removes what interrupted runs left at their places and says what it
// did. Runs that are going on are left alone; run folders with their results
// are never removed, and a run that can go on stays registered, since the
// registry alone knows its places. What is attached is detached first, or stays.
func Clean(ctx context.Context, stateDir string, c Cleaning, w io.Writer) error {
	list, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the registry of runs: %w", err)
	}
	var errs []error
	var unwritten []string
	said := &counter{w: w}
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			errs = append(errs, c.run(ctx, stateDir, id, said))
		} else if strings.HasPrefix(f.Name(), ".") && strings.Contains(f.Name(), ".json.tmp-") {
			unwritten = append(unwritten, filepath.Join(stateDir, "runs", f.Name()))
		}
	}
	errs = append(errs, c.unwritten(unwritten, said))
	errs = append(errs, c.probes(ctx, stateDir, said))
	if c.Also != nil {
		errs = append(errs, c.Also(ctx, said))
	}
	if err := errors.Join(errs...); err != nil || said.n > 0 {
		return err
	}
	_, err = fmt.Fprintln(w, "nothing to clean")
	return err
}

// unwritten removes what is left of entries whose writing was killed. An entry is written by a run that holds the lock of measuring.
func (c Cleaning) unwritten(paths []string, w io.Writer) error {
	if len(paths) == 0 {
		return nil
	}
	if c.Lock != nil {
		unlock, err := c.Lock()
		if err != nil {
			return nil //nolint:nilerr // a run is going on, and may be writing one
		}
		defer unlock()
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a half-written entry of the registry: %w", err)
		}
	}
	_, err := fmt.Fprintf(w, "removed half-written entries of the registry: %d\n", len(paths))
	return err
}

// Going lists the folders of the registered runs that a process is measuring now, oldest name first.
func Going(stateDir string) (folders []string) {
	list, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil {
		return nil
	}
	for _, f := range list {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if e, err := readEntry(stateDir, id); ok && err == nil && result.Running(e.Folder) {
			folders = append(folders, e.Folder)
		}
	}
	return folders
}

type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	c.n++
	return c.w.Write(p)
}

// run removes the work folders of one run unless it is still going on.
func (c Cleaning) run(ctx context.Context, stateDir, id string, w io.Writer) error {
	e, err := readEntry(stateDir, id)
	if err != nil {
		return err
	}
	var run *result.RunDir
	err = Patiently(ctx, c.Clock, result.ErrBusy, nil, func() (err error) {
		run, err = result.ResumeRun(e.Folder)
		return err
	})
	goesOn := false
	switch {
	case errors.Is(err, result.ErrBusy):
		fmt.Fprintf(w, "%s: still running\n", id)
		return nil
	case err == nil:
		defer run.Close()
		goesOn = resumable(run, id)
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(w, "%s: its run folder cannot be opened (%v)\n", id, err)
	}
	var errs []error
	for _, at := range e.folders() {
		away, err := c.place(ctx, at, at.title(e.Folder), id, w)
		if err != nil {
			errs = append(errs, fmt.Errorf("cleaning run %q: %w", id, err))
		}
		if away && at.Path != e.Folder {
			goesOn = true // a disk that is not attached now may have images on it
			fmt.Fprintf(w, "%s: %s is not there now; if it is gone for good, remove the entry %s.json\n", id, at.title(e.Folder), id)
		}
	}
	if err := errors.Join(errs...); err != nil || goesOn {
		return err
	}
	unregister(stateDir, id)
	return nil
}

// resumable says whether the journal is this run's and has no end yet.
func resumable(run *result.RunDir, id string) bool {
	recs, err := run.Journal()
	if err != nil {
		return false
	}
	s, err := result.Replay(recs)
	return err == nil && s.Run.ID == id && s.Ended == nil
}

// place removes the run's folder at one place; away says that the place itself is not there.
func (c Cleaning) place(ctx context.Context, at Place, title, id string, w io.Writer) (away bool, err error) {
	if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if _, err := os.Lstat(filepath.Join(at.Path, workFolder(id))); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	p, err := openPlace(at, id, nil)
	if err == nil {
		if err = c.release(ctx, p.dir.Path(), id, w); err != nil {
			p.close()
			return false, err
		}
		err = p.remove(id)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%s: leftover images in %s deleted\n", id, title)
	}
	return false, err
}
