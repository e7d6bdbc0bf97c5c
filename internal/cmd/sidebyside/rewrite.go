package main

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// rewritten is a volume whose files are there already: making one opens it, so that the same work writes over what was
// written before, and no side has space to find.
type rewritten struct {
	workload.Volume
	dir *hostio.Dir
}

// overwriting gives the volume in which the files of v are written again.
func overwriting(v workload.Volume) (rewritten, error) {
	at, ok := v.(workload.HostPather)
	if !ok {
		return rewritten{}, fmt.Errorf("writing over files: the volume is no folder of the host: %w", errors.ErrUnsupported)
	}
	dir, err := hostio.OpenDir(at.HostPath("."))
	return rewritten{v, dir}, err
}

func (v rewritten) Create(name string, _ int64, o workload.FileOptions) (workload.File, error) {
	f, err := v.dir.Open(name, hostio.OpenOptions{Write: true, Cache: o.Cache})
	if err != nil {
		return nil, err
	}
	return rewrittenFile{f}, nil
}

// writingTwice writes the items, and then over them.
func (t *turn) writingTwice(ctx context.Context, v workload.Volume, items []workload.Item, o workload.Options) error {
	if err := t.writing(ctx, opWrite, v, items, o); err != nil {
		return err
	}
	again, err := overwriting(v)
	if err != nil {
		return err
	}
	return errors.Join(t.writing(ctx, opRewrite, again, items, o), again.dir.Close())
}

type rewrittenFile struct{ *hostio.File }

// Resident is the share of the file in the page cache.
func (f rewrittenFile) Resident() (float64, error) { return f.File.Resident(0, 0) }
