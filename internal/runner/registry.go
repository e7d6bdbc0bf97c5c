package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// entry is one run in the registry: where a killed run may have left something.
type entry struct {
	Run    string            `json:"run"`
	Folder string            `json:"folder"`
	Places map[string]string `json:"places"`
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

// Clean removes what interrupted runs left at their places and says what it
// did. Runs that are going on are left alone; run folders with their results
// are never removed.
func Clean(ctx context.Context, stateDir string, w io.Writer) error {
	dir := filepath.Join(stateDir, "runs")
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		fmt.Fprintln(w, "nothing to clean")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the registry of runs: %w", err)
	}
	var errs []error
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			errs = append(errs, cleanRun(stateDir, id, w))
		}
	}
	return errors.Join(errs...)
}

// cleanRun removes the work folders of one run unless it is still going on.
func cleanRun(stateDir, id string, w io.Writer) error {
	text, err := os.ReadFile(filepath.Join(stateDir, "runs", id+".json"))
	if err != nil {
		return fmt.Errorf("reading the registry entry of run %q: %w", id, err)
	}
	var e entry
	if err := json.Unmarshal(text, &e); err != nil || e.Run != id || result.SafeName(id) != nil {
		return fmt.Errorf("reading the registry entry of run %q: it is damaged; remove it by hand", id)
	}
	run, err := result.ResumeRun(e.Folder)
	switch {
	case errors.Is(err, result.ErrBusy):
		fmt.Fprintf(w, "%s: still running\n", id)
		return nil
	case err == nil:
		defer run.Close()
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(w, "%s: its run folder cannot be opened (%v)\n", id, err)
	}
	for name, path := range e.Places {
		if _, err := os.Lstat(filepath.Join(path, workFolder(id))); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p, err := openPlace(Place{Name: name, Path: path}, id)
		if err == nil {
			err = p.remove(id)
		}
		if err != nil {
			return fmt.Errorf("cleaning run %q: %w", id, err)
		}
		fmt.Fprintf(w, "%s: removed its images at place %q\n", id, name)
	}
	unregister(stateDir, id)
	return nil
}
