package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

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
	// Lock takes the lock of measuring.
	Lock func() (release func(), err error)
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
	ids, halfWritten, err := registeredRuns(stateDir)
	if err != nil {
		return err
	}
	c := &cleaner{CleanOptions: o, stateDir: stateDir, out: w}
	var errs []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		errs = append(errs, c.cleanRun(ctx, id))
	}
	errs = append(errs, c.removeHalfWritten(halfWritten), c.cleanProbes(ctx))
	if c.Also != nil {
		errs = append(errs, c.Also(ctx, c))
	}
	if err := errors.Join(errs...); err != nil || c.lines > 0 {
		return err
	}
	_, err = fmt.Fprintln(w, "no leftovers found")
	return err
}

// cleanRun removes the work folders of one run unless a process is measuring
// it.
func (c *cleaner) cleanRun(ctx context.Context, id string) error {
	e, err := readEntry(c.stateDir, id)
	if err != nil {
		return err
	}
	var run *result.RunDir
	err = RetryWhileLocked(ctx, c.Clock, result.ErrBusy, nil, func() (err error) {
		run, err = result.ResumeRun(e.Folder)
		return err
	})
	keepEntry := false // the run can be resumed, or may have images elsewhere
	switch {
	case errors.Is(err, result.ErrBusy):
		fmt.Fprintf(c, "%s: still running\n", id)
		return nil
	case err == nil:
		defer run.Close()
		s := stateOf(run, id)
		keepEntry = s != nil && s.Ended == nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(c, "%s: its run folder cannot be opened (%v)\n", id, err)
	}
	var errs []error
	for _, at := range e.folders() {
		if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
			if at.Path != e.Folder { // a disk that is not attached now may contain images
				keepEntry = true
				fmt.Fprintf(c, "%s: %s does not exist now; if it is gone for good, remove the entry %s.json\n",
					id, at.title(e.Folder), id)
			}
			continue
		}
		if err := c.cleanFolder(ctx, at, id, "leftover images in "+at.title(e.Folder)+" deleted"); err != nil {
			errs = append(errs, fmt.Errorf("cleaning run %q: %w", id, err))
		}
	}
	if err := errors.Join(errs...); err != nil || keepEntry {
		return err
	}
	unregister(c.stateDir, id)
	return nil
}

// cleanFolder detaches the images in a work folder and removes it, unless it does
// not exist or a probe holds its lock. The lock of a killed probe ended with its
// process.
func (c *cleaner) cleanFolder(ctx context.Context, at Place, id, done string) error {
	if _, err := os.Lstat(filepath.Join(at.Path, workFolderName(id))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := openWorkFolder(at, id, nil)
	if err != nil {
		return err
	}
	lock, err := f.lock()
	if err != nil {
		f.close()
		if errors.Is(err, hostio.ErrLocked) {
			return nil
		}
		return fmt.Errorf("locking %q: %w", id, err)
	}
	defer lock.Close()
	if c.Release != nil {
		names, err := c.Release(ctx, f.dir.Path())
		for _, name := range names {
			fmt.Fprintf(c, "%s: detached %s\n", id, name)
		}
		if err != nil {
			f.close()
			return err
		}
	}
	if err := f.remove(id); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c, "%s: %s\n", id, done)
	return err
}

// removeHalfWritten removes entries that a killed run was writing. A run that
// writes an entry holds the lock of measuring.
func (c *cleaner) removeHalfWritten(names []string) error {
	if len(names) == 0 {
		return nil
	}
	if c.Lock != nil {
		unlock, err := c.Lock()
		if err != nil {
			return nil //nolint:nilerr // a run is active and may be writing one
		}
		defer unlock()
	}
	for _, name := range names {
		err := os.Remove(filepath.Join(c.stateDir, registryFolder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a half-written entry of the registry: %w", err)
		}
	}
	_, err := fmt.Fprintf(c, "removed half-written entries of the registry: %d\n", len(names))
	return err
}

// cleanProbes removes what killed probes of engines left, and leaves active
// ones alone.
func (c *cleaner) cleanProbes(ctx context.Context) error {
	path := filepath.Join(c.stateDir, probesFolder)
	list, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the folder of probes: %w", err)
	}
	var errs []error
	for _, f := range list {
		id, ok := strings.CutPrefix(f.Name(), workFolderName(""))
		if ok && strings.HasPrefix(id, "probe-") {
			at := Place{Name: probesFolder, Path: path}
			err := c.cleanFolder(ctx, at, id, "removed its leftovers")
			if !errors.Is(err, fs.ErrNotExist) { // it has no marker: it is not a probe's, or was removed meanwhile
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// WithProbeFolder calls probe with a new marked folder in the state folder,
// where it can try an engine. It removes the folder afterwards, and before that
// the folders of killed probes.
func WithProbeFolder(stateDir string, at time.Time, probe func(*hostio.Dir) error) (err error) {
	path := filepath.Join(stateDir, probesFolder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making the folder of probes: %w", err)
	}
	c := cleaner{stateDir: stateDir, out: io.Discard}
	if err := c.cleanProbes(context.Background()); err != nil {
		return err
	}
	id := "probe-" + newID(at)
	f, err := openWorkFolder(Place{Name: probesFolder, Path: path}, id, nil)
	if err != nil {
		return err
	}
	lock, err := f.lock()
	if err != nil {
		f.close()
		return fmt.Errorf("locking the folder of a probe: %w", err)
	}
	defer lock.Close()
	defer func() { err = errors.Join(err, f.remove(id)) }()
	return probe(f.dir)
}
