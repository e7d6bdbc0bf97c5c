package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/report"
)

// resultsInterval is how often --wait looks for results.
const resultsInterval = time.Second

// printLogs is the command "logs".
func (a *app) printLogs(ctx context.Context, args []string) error {
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	args = append(args, "")
	print := func(line string) { err = cmp.Or(err, a.print("%s", line)) }
	return errors.Join(f.Logs(ctx, args[0], args[1], a.isSet("follow"), print), err)
}

// fetcher fetches the results of jobs.
type fetcher struct {
	*app
	fleet  *control.Fleet
	jobs   []string // only these; nil is all
	before []string // names in the folder when the command started
	seen   map[control.JobView]bool
	failed bool
}

// fetchResults is the command "results".
func (a *app) fetchResults(ctx context.Context, args []string) error {
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := os.ReadDir(a.text("to"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names := report.Map(list, os.DirEntry.Name)
	r := &fetcher{app: a, fleet: f, jobs: args, before: names, seen: map[control.JobView]bool{}}
	for {
		isPending, err := r.fetchNew(ctx)
		if err != nil {
			return err
		}
		if !isPending || !a.isSet("wait") {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(resultsInterval):
		}
	}
	if r.failed {
		return &statusError{exit: exitSome}
	}
	return nil
}

// fetchNew fetches the results that have come since the last call. isPending is
// whether there will be more.
func (r *fetcher) fetchNew(ctx context.Context) (isPending bool, err error) {
	views, err := r.fleet.Jobs(ctx)
	for _, v := range views {
		key := control.JobView{Machine: v.Machine, Job: v.Job, Occurrence: v.Occurrence}
		switch {
		case err != nil || r.seen[key] || len(r.jobs) > 0 && !slices.Contains(r.jobs, v.Job):
			continue
		case v.Result == nil && v.State != control.Forged:
			isPending = true
			continue
		}
		r.seen[key] = true
		err = r.fetch(ctx, v)
	}
	return isPending, err
}

// fetch fetches the run folder of a job that has ended, and prints it if it is
// new. A folder that cannot be fetched does not keep the others from being fetched.
func (r *fetcher) fetch(ctx context.Context, v control.JobView) error {
	path := ""
	if v.Result != nil && v.Result.Run != "" {
		var err error
		if path, err = r.fleet.Fetch(ctx, *v.Result, r.text("to")); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			v.State, v.Error = fleet.Failed, err.Error()
		} else if slices.Contains(r.before, filepath.Base(path)) {
			return nil
		}
	}
	r.failed = r.failed || v.State != fleet.Done && v.State != fleet.Cancelled
	return r.print("%s", strings.Join(report.NonEmpty([]string{v.Machine + ":", v.Job, v.State, path, v.Error}), " "))
}
