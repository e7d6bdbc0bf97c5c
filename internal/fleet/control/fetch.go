package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// Fetch copies the run folder of a result into a folder of dir, and returns its
// path. A run that is there already is not new, and not fetched again. Result,
// summary and report are made here, from the plan and the journal: a machine could
// have put anything into its own.
func (f *Fleet) Fetch(ctx context.Context, r fleet.Result, dir string) (path string, isNew bool, err error) {
	name := r.Plan + "-" + r.Machine + "-" + r.Run
	path = filepath.Join(dir, name)
	part := filepath.Join(dir, ".part-"+name) // hidden, and the same for each attempt
	err = errors.Join(fleet.CheckMachine(r.Machine), result.SafeName(r.Run), result.SafeName(name))
	if err == nil {
		if _, missing := os.Lstat(path); missing == nil {
			return path, false, nil
		}
		defer os.RemoveAll(part)
		err = errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(part))
	}
	if err == nil {
		err = f.download(ctx, r, part)
	}
	if err == nil {
		err = checkRun(part, r)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return "", true, fmt.Errorf("fetching run %q of machine %q: %w", r.Run, r.Machine, err)
	}
	return path, true, nil
}

// download unpacks the archive of a run into dir. The machine may have stored
// anything, of any size.
func (f *Fleet) download(ctx context.Context, r fleet.Result, dir string) error {
	// Chunks that are missing are waited for, so the time ends: at 1 MB/s.
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(r.Size)*time.Microsecond)
	defer cancel()
	store, err := f.JetStream.ObjectStore(ctx, fleet.Bucket(r.Machine))
	if err != nil {
		return err
	}
	info, err := store.GetInfo(ctx, r.Run)
	switch {
	case err != nil:
		return err
	case info.Opts != nil && info.Opts.Link != nil: // to another machine's store, or in a circle
		return errors.New("the archive is a link")
	case r.Size < 1 || r.Size > fleet.MaxArchive || info.Size != uint64(r.Size):
		return fmt.Errorf("the archive has %d bytes, but the result is of %d bytes", info.Size, r.Size)
	}
	object, err := store.Get(ctx, r.Run)
	if err != nil {
		return err
	}
	defer object.Close()
	if err = fleet.Unpack(object, dir); err == nil {
		_, err = io.Copy(io.Discard, object) // the client compares the digest at the end
	}
	return err
}

// checkRun reads the run in a folder and writes its result and report.
func checkRun(dir string, r fleet.Result) error {
	p, run, err := runfolders.Update(dir)
	// compare --by host uses this name. A run without one is that of the machine that
	// stored it.
	isOther := func(s result.Session) bool { return s.Host.Name != "" && s.Host.Name != r.Machine }
	switch {
	case err != nil:
		return err
	case run.Run != r.Run || p.Name != r.Plan || slices.ContainsFunc(run.Sessions, isOther):
		return fmt.Errorf("the result is forged: it has run %q of plan %q, or is of another machine", run.Run, p.Name)
	case r.State == fleet.Done && run.Status == result.Unfinished:
		return errors.New("the run has not ended, but the result is that it has")
	}
	return nil
}
