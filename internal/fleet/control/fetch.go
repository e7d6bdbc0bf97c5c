package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// Fetch copies the run folder of a result into a folder of dir, and returns its
// path. A run that is there already is not fetched again. Result, summary and
// report are made here, from the plan and the journal: a machine could have put
// anything into its own.
func (f *Fleet) Fetch(ctx context.Context, r fleet.Result, dir string) (path string, err error) {
	defer func() {
		if err != nil {
			path, err = "", fmt.Errorf("fetching run %q of machine %q: %w", r.Run, r.Machine, err)
		}
	}()
	name := r.Plan + "-" + r.Machine + "-" + r.Run
	if err := errors.Join(fleet.CheckMachine(r.Machine), result.SafeName(r.Run), result.SafeName(name)); err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	part := filepath.Join(dir, ".part-"+name) // hidden, and the same for each attempt
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(part)); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err = f.download(ctx, r, part); err == nil {
		err = checkRun(part, r)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	return path, err
}

// download unpacks the archive of a run into dir.
func (f *Fleet) download(ctx context.Context, r fleet.Result, dir string) error {
	if r.Size < 1 || r.Size > fleet.MaxArchive {
		return fmt.Errorf("the archive has %d bytes: want 1 to %d", r.Size, int64(fleet.MaxArchive))
	}
	// Chunks that are missing are waited for, so the time ends: at 1 MB/s.
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(r.Size)*time.Microsecond)
	defer cancel()
	store, err := f.js.ObjectStore(ctx, fleet.Bucket(r.Machine))
	if err != nil {
		return err
	}
	info, err := store.GetInfo(ctx, r.Run)
	if err != nil {
		return err
	}
	// A link would lead to another machine's store, or in a circle.
	if info.Opts != nil && info.Opts.Link != nil {
		return errors.New("the archive is a link")
	}
	object, err := store.Get(ctx, r.Run)
	if err != nil {
		return err
	}
	defer object.Close()
	body := &io.LimitedReader{R: object, N: r.Size + 1}
	if err = fleet.Unpack(body, dir); err == nil {
		_, err = io.Copy(io.Discard, body) // the client compares the digest at the end
	}
	if err == nil && body.N != 1 {
		err = fmt.Errorf("the archive has another size than the %d bytes of the result", r.Size)
	}
	return err
}

// checkRun reads the run in a folder and writes its result and report.
func checkRun(dir string, r fleet.Result) error {
	p, run, err := runfolders.Update(dir)
	switch {
	case err != nil:
		return err
	case run.Run != r.Run || p.Name != r.Plan:
		return fmt.Errorf("the result is forged: the archive has run %q of plan %q, want plan %q", run.Run, p.Name, r.Plan)
	case r.State == fleet.Done && run.Status == result.Unfinished:
		return errors.New("the run has not ended, but the result is that it has")
	}
	for _, s := range run.Sessions { // compare --by host goes by this name
		if s.Host.Name != "" && s.Host.Name != r.Machine {
			return fmt.Errorf("the result is forged: the run is of machine %q", s.Host.Name)
		}
	}
	return nil
}
