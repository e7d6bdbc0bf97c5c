package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// refusedError is an error of what a machine stored, with which a second attempt
// would end as well.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// refuse makes an error of an archive or of a run a [refusedError]. One of a file of
// this computer, such as that the disk is full, is none.
func refuse(err error) error {
	_, isLocal := errors.AsType[*fs.PathError](err)
	if err == nil || isLocal {
		return err
	}
	return refusedError{err}
}

// Fetch copies the run folder of a result into a folder of dir, and returns its
// path. A run that is there already is not new, and not fetched again; nor is one that
// was refused, of which a hidden file in dir has the reason. Result, summary and report
// are made here, from the plan and the journal: a machine could have put anything into
// its own.
func (f *Fleet) Fetch(ctx context.Context, r fleet.Result, dir string) (path string, isNew bool, err error) {
	path, isNew, err = f.fetch(ctx, r, dir)
	if err != nil {
		return "", true, fmt.Errorf("fetching run %q of machine %q: %w", r.Run, r.Machine, err)
	}
	return path, isNew, nil
}

func (f *Fleet) fetch(ctx context.Context, r fleet.Result, dir string) (path string, isNew bool, err error) {
	name := r.Plan + "-" + r.Machine + "-" + r.Run
	if err = errors.Join(fleet.CheckMachine(r.Machine), result.SafeName(r.Run), result.SafeName(name)); err != nil {
		return "", false, err
	}
	path = filepath.Join(dir, name)
	if _, err = os.Lstat(path); err == nil {
		return path, false, nil
	}
	refused := filepath.Join(dir, ".refused-"+name)
	if reason, err := os.ReadFile(refused); err == nil {
		return "", false, fmt.Errorf("%s (delete %q to fetch it again)", reason, refused)
	}
	part := filepath.Join(dir, ".part-"+name) // hidden, and the same for each attempt
	defer os.RemoveAll(part)
	if err = errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(part)); err != nil {
		return "", false, err
	}
	if err = f.download(ctx, r, part); err == nil {
		err = refuse(checkRun(part, r))
	}
	if _, isRefused := errors.AsType[refusedError](err); isRefused {
		return "", false, errors.Join(err, os.WriteFile(refused, fmt.Appendf(nil, "%.2000v", err), 0o644))
	}
	if err != nil {
		return "", false, err
	}
	return path, true, os.Rename(part, path)
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
	err = fleet.Unpack(object, dir)
	if err == nil {
		_, err = io.Copy(io.Discard, object) // the client compares the digest at the end
	}
	if incomplete := object.Error(); incomplete != nil && !errors.Is(incomplete, jetstream.ErrDigestMismatch) {
		return errors.Join(err, incomplete)
	}
	return refuse(err)
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
