package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
)

// tree does one thing to all files of a tree: to a new one, to the newest one of
// the file set that the step names, or to the newest one.
func (s *stepRun) tree(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	h, set, batch := s.h, s.x.fileSet(s.st), 0
	spec := workload.TreeSpec{Action: s.st.Action, Share: float64(s.st.Share), Key: s.key()}
	if spec.Action == "create" {
		h.Batches++
		batch = h.Batches
		spec.Tree, spec.Files = workload.NewTree(set, s.x.r.p.Run.Seed, batch)
	} else {
		for b := range h.Trees {
			if s.st.Files == "" || h.Sets[b] == s.st.Files {
				batch = max(batch, b)
			}
		}
		if batch == 0 {
			return workload.Outcome{}, errors.New("no step has created the tree")
		}
		set = s.x.fileSetNamed(h.Sets[batch])
		spec.Tree, spec.Files = h.Trees[batch], slices.DeleteFunc(slices.Clone(h.Live), isNotOf(batch))
		if edited := h.Trees[batch].Folders[0] + "/"; spec.Action == "delete" { // edited files are in no batch
			spec.Files = append(spec.Files, slices.DeleteFunc(slices.Clone(h.Named), func(it workload.Item) bool {
				return !strings.HasPrefix(it.Name, edited)
			})...)
		}
	}
	o.Data = s.x.data(set)
	before := spec.Files
	out, err := workload.RunTree(ctx, s.volume(), &spec, o)
	if err != nil {
		return out, err
	}
	if h.Trees = maps.Clone(h.Trees); h.Trees == nil {
		h.Trees = map[int]workload.Tree{}
	}
	switch h.Trees[batch] = spec.Tree; spec.Action {
	case "create":
		h.addBatch(spec.Files, set)
	case "delete":
		delete(h.Trees, batch)
		h.Live, h.Named = workload.Without(h.Live, before), workload.Without(h.Named, before)
	default: // renamed or with other data, in the same order
		h.Live = append(slices.DeleteFunc(slices.Clone(h.Live), func(it workload.Item) bool { return it.Batch == batch }),
			spec.Files...)
		slices.SortStableFunc(h.Live, func(a, b workload.Item) int { return a.Batch - b.Batch })
	}
	if spec.Action == "create" || spec.Action == "rewrite" {
		h.Edited += out.Bytes
	}
	return out, nil
}

// isNotOf selects the items of other batches.
func isNotOf(batch int) func(workload.Item) bool {
	return func(it workload.Item) bool { return it.Batch != batch }
}

// copyOut copies all files of the volume to a native folder at the place of the
// container, compares the copy with the volume outside of the timed span, and
// removes it.
func (s *stepRun) copyOut(ctx context.Context) (err error) {
	x, h := s.x, s.h
	con, err := nativeEngine(x.r.c.Engine).Create(ctx, h.place.dir, x.base+"-out", engine.Spec{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("making the folder to copy to: %w", err)
	}
	clean := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, con.Remove(clean)) }()
	att, err := con.Attach(ctx, engine.AttachOptions{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("opening the folder to copy to: %w", err)
	}
	defer func() {
		_, failed := att.Detach(clean, true)
		err = errors.Join(err, failed)
	}()
	items, found := slices.Concat(h.Live, h.Named), []workload.Item(nil)
	trees := slices.Collect(maps.Values(h.Trees))
	err = s.timeFiles(ctx, func(s *stepRun, ctx context.Context, o workload.Options) (out workload.Outcome, err error) {
		out, found, err = workload.CopyOut(ctx, s.volume(), att.Volume(), items, trees, o)
		return out, err
	})
	if s.rec.AttachNS = h.attachNS; err != nil || isSimulated(x.r.c.Engine) {
		return err
	}
	out, err := workload.CompareCopies(ctx, s.volume(), att.Volume(), found, items, x.options(s.st))
	s.rec.Findings = append(s.rec.Findings, out.Findings...)
	if err == nil && len(out.Findings) > 0 {
		err = fmt.Errorf("%d files were not copied as they are, first: %s", len(out.Findings), out.Findings[0])
	}
	return err
}
