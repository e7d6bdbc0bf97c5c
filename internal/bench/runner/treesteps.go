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
	for b := range h.Trees {
		if s.st.Files == "" || h.Sets[b] == s.st.Files {
			batch = max(batch, b)
		}
	}
	switch {
	case spec.Action == "create":
		h.Batches++
		batch = h.Batches
		spec.Tree, spec.Files = workload.NewTree(set, s.x.r.p.Run.Seed, batch)
	case batch == 0:
		return workload.Outcome{}, errors.New("no step has created the tree")
	default:
		set, spec.Tree = s.x.fileSetNamed(h.Sets[batch]), h.Trees[batch]
		for i, it := range slices.Concat(h.Live, h.Named) {
			isEdited := i >= len(h.Live) && strings.HasPrefix(it.Name, spec.Tree.Folders[0]+"/")
			if i < len(h.Live) && it.Batch == batch || isEdited && spec.Action == "delete" {
				spec.Files = append(spec.Files, it)
			}
		}
	}
	before := spec.Files
	o.Data = s.x.data(set)
	out, err := workload.RunTree(ctx, s.volume(), &spec, o)
	if err != nil {
		return out, err
	}
	if h.Live, h.Named = workload.Without(h.Live, before), workload.Without(h.Named, before); h.Trees == nil {
		h.Trees = map[int]workload.Tree{}
	}
	if h.Trees[batch] = spec.Tree; spec.Action == "delete" {
		delete(h.Trees, batch)
	}
	h.addBatch(spec.Files, set) // with other names or data
	slices.SortStableFunc(h.Live, func(a, b workload.Item) int { return a.Batch - b.Batch })
	return out, nil
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
	spec := workload.TreeSpec{Action: "copy", To: att.Volume()}
	for _, batch := range slices.Sorted(maps.Keys(h.Trees)) {
		spec.Tree.Folders = append(spec.Tree.Folders, h.Trees[batch].Folders...)
		spec.Tree.Links = append(spec.Tree.Links, h.Trees[batch].Links...)
	}
	spec.AddFiles(slices.Concat(h.Live, h.Named))
	err = s.timeFiles(ctx, func(s *stepRun, ctx context.Context, o workload.Options) (workload.Outcome, error) {
		return workload.RunTree(ctx, s.volume(), &spec, o)
	})
	if s.rec.AttachNS = h.attachNS; err != nil || isSimulated(x.r.c.Engine) {
		return err
	}
	out, err := workload.CompareCopies(ctx, s.volume(), spec.To, spec.Files, x.options(s.st))
	s.rec.Findings = append(s.rec.Findings, out.Findings...)
	if err == nil && len(out.Findings) > 0 {
		err = fmt.Errorf("%d files were not copied as they are, first: %s", len(out.Findings), out.Findings[0])
	}
	return err
}
