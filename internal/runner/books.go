package runner

import (
	"context"
	"fmt"
	"path"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/workload"
)

// books are the files that the steps of a case have put on a container.
type books struct {
	live    []workload.Item // of write steps, in the order written
	named   []workload.Item // of copy and stream steps; they belong to no batch
	sets    map[int]plan.FileSet
	batches int
}

func (b *books) clone() books {
	out := books{live: slices.Clone(b.live), named: slices.Clone(b.named), sets: map[int]plan.FileSet{}, batches: b.batches}
	for n, set := range b.sets {
		out.sets[n] = set
	}
	return out
}

// wrote enters a batch and the file set that its data came from.
func (b *books) wrote(items []workload.Item, set plan.FileSet) {
	b.live = append(b.live[:len(b.live):len(b.live)], items...)
	if b.sets == nil {
		b.sets = map[int]plan.FileSet{}
	}
	for _, it := range items {
		b.sets[it.Batch] = set
	}
}

// put enters the file that a copy or stream step has made.
func (b *books) put(vol workload.Volume, name string) error {
	name = path.Clean(name)
	list, err := vol.List(path.Dir(name))
	if err != nil {
		return fmt.Errorf("listing folder %q: %w", path.Dir(name), err)
	}
	for _, e := range list {
		if path.Join(path.Dir(name), e.Name) == name {
			it := workload.Item{Name: name, Size: e.Size}
			b.named = append(workload.Without(b.named, []workload.Item{it}), it)
		}
	}
	return nil
}

// chosen are the files that a delete step takes away. All files are those of
// copy and stream steps too; the other ways look at batches.
func (b *books) chosen(st plan.Step, key workload.Key) []workload.Item {
	gone := workload.Select(b.live, st, key)
	if st.All && st.Batch != "last" {
		gone = append(gone, b.named...)
	}
	return gone
}

func (b *books) removed(gone []workload.Item) {
	b.live, b.named = workload.Without(b.live, gone), workload.Without(b.named, gone)
}

// verify compares files with the data of the file set that each was written
// from, which is not always that of the case.
func (x *caseRun) verify(ctx context.Context, h *handle, vol workload.Volume, items []workload.Item, o workload.Options) (workload.Outcome, error) {
	var all workload.Outcome
	for from := 0; from < len(items) || from == 0; {
		to := from
		for to < len(items) && items[to].Batch == items[from].Batch {
			to++
		}
		if to > from {
			data, err := x.data(h.sets[items[from].Batch])
			if err != nil {
				return all, err
			}
			o.Data = data
		}
		out, err := workload.Verify(ctx, vol, items[from:to], o)
		if err != nil {
			return all, err
		}
		all.Findings, all.Warnings = append(all.Findings, out.Findings...), append(all.Warnings, out.Warnings...)
		all.Bytes += out.Bytes
		from = max(to, from+1)
	}
	return all, nil
}

// data are the bytes of a file set in this round of the case.
func (x *caseRun) data(set plan.FileSet) (*workload.Data, error) {
	return workload.NewData(x.r.p.Run.Seed, x.round, x.c.ID, set.Data, float64(set.Compressible))
}
