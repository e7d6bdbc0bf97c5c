package runner

import (
	"context"
	"fmt"

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

// usageOf is what a backing folder occupies, 0 without one.
func usageOf(ctx context.Context, backing *hostio.Dir) (u engine.Usage, err error) {
	if backing == nil {
		return u, nil
	}
	if u, err = files.FolderUsage(ctx, backing, "."); err != nil {
		return u, fmt.Errorf("measuring the backing folder: %w", err)
	}
	return u, nil
}
