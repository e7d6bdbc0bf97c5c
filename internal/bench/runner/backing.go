package runner

import (
	"context"
	"fmt"
	"io/fs"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// backedFolder is a native folder at a place that keeps its files in a backing
// folder, as encrypting file systems do. It occupies what the backing folder has
// gained since before the folder was made; whatever else is written there
// counts as well.
type backedFolder struct {
	engine.Container
	backing *hostio.Dir
	before  engine.Usage
}

// Usage is what has been added to the backing folder.
func (c *backedFolder) Usage(ctx context.Context) (engine.Usage, error) {
	u, err := usageOf(ctx, c.backing)
	u.Allocated, u.Apparent = u.Allocated-c.before.Allocated, u.Apparent-c.before.Apparent
	u.Sparse = u.Allocated < u.Apparent
	return u, err
}

// openBacking opens the backing folder of the place, which is read only.
func (f *workFolder) openBacking(path string) (err error) {
	if f.backing, err = hostio.OpenDir(path); err != nil {
		return fmt.Errorf("opening the backing folder of %s: %w", f.title, hostio.WithoutPath(err))
	}
	return nil
}

// backingUsage is what the backing folder occupies, nothing without one.
func (f *workFolder) backingUsage(ctx context.Context) (u engine.Usage, err error) {
	if f.backing == nil {
		return u, nil
	}
	return usageOf(ctx, f.backing)
}

// usageOf adds up what files and folders occupy, and the lengths of the files.
func usageOf(ctx context.Context, dir *hostio.Dir) (u engine.Usage, err error) {
	err = files.Walk(ctx, dir, ".", func(_ string, fi fs.FileInfo) error {
		st := hostio.StatOf(fi)
		u.Allocated += st.Allocated
		if !fi.IsDir() {
			u.Apparent += st.Size
		}
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("measuring the backing folder: %w", err)
	}
	return u, nil
}
