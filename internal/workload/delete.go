package workload

import (
	"context"
	"fmt"
)

// Delete removes the items in their order and flushes the volume. It has
// no samples: file systems hand freed space down at their leisure, so that only
// the step as a whole has a length. The outcome counts the bytes removed.
func Delete(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	if err := o.Gate.wait(ctx); err != nil {
		return Outcome{}, fmt.Errorf("deleting files: waiting for the other steps: %w", err)
	}
	var out Outcome
	for _, it := range items {
		if ctx.Err() != nil {
			return out, fmt.Errorf("deleting file %q: %w", it.Name, context.Cause(ctx))
		}
		if err := vol.Remove(it.Name); err != nil {
			return out, fmt.Errorf("deleting file %q: %w", it.Name, err)
		}
		out.Bytes += it.Size
	}
	if err := vol.Sync(); err != nil {
		return out, fmt.Errorf("flushing the volume: %w", err)
	}
	return out, nil
}
