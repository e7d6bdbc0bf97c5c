package runner

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// canary writes and reads a few files natively, as steps of the case that never count in its summaries.
func (x *caseRun) canary(ctx context.Context) error {
	con, err := x.r.native().Create(ctx, x.place.dir, "canary", engine.Spec{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("making the canary: %w", err)
	}
	x.undo.push("removing the canary", con.Remove)
	att, err := con.Attach(ctx, engine.AttachOptions{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("opening the canary: %w", err)
	}
	set := plan.FileSet{Name: "canary", Parts: []plan.FilePart{{Sizes: []units.Bytes{canaryBytes}, Sets: canaryFiles}}}
	items := workload.Items(set, workload.Key{Seed: x.r.p.Run.Seed, Round: x.round, Step: "canary", Batch: 1})
	for _, op := range []string{"write", "read"} {
		rec := x.record(plan.Step{Do: "canary", Phase: "canary"})
		rec.Op = op
		o, err := x.options(plan.Step{Do: op, Workers: 1})
		if err != nil {
			return err
		}
		var out workload.Outcome
		err = x.timed(&rec, func() (err error) {
			if op == "write" {
				out, err = workload.Write(ctx, att.Volume(), items, o)
			} else {
				out, err = workload.Read(ctx, att.Volume(), items, o)
			}
			return err
		})
		x.keepFiles(&rec, out, o, nil)
		if err := x.journal(ctx, plan.Step{Do: "canary"}, rec, err); err != nil {
			return err
		}
	}
	_, err = att.Detach(ctx, false)
	x.undo.todo = x.undo.todo[:len(x.undo.todo)-1]
	return errors.Join(err, con.Remove(ctx))
}

// parallel runs file steps behind one gate. Each has a view of its own on the
// files; what they wrote is merged when all have ended.
func (x *caseRun) parallel(ctx context.Context, st plan.Step, rec *result.Step) error {
	kids := make([]*caseRun, len(st.Steps))
	recs := make([]result.Step, len(st.Steps))
	errs := make([]error, len(st.Steps))
	work := make([]func(context.Context, *workload.Gate) error, len(st.Steps))
	had, hadNamed := 0, 0
	if x.main != nil {
		had, hadNamed = len(x.main.live), len(x.main.named)
	}
	for i, s := range st.Steps {
		kid := *x
		if x.main != nil {
			h := *x.main
			h.books = x.main.books.clone()
			h.batches += i
			kid.main = &h
		}
		kids[i], recs[i] = &kid, x.record(s)
		work[i] = func(ctx context.Context, g *workload.Gate) error {
			kid.gate = g
			if errs[i] = kid.do(ctx, s, &recs[i]); s.Expect == "fail" {
				return nil // its journal says whether that is so
			}
			return errs[i]
		}
	}
	err := x.timed(rec, func() error { return workload.Parallel(ctx, work...) })
	for i, kid := range kids {
		if x.main != nil {
			x.main.wrote(kid.main.live[had:], x.fileSet(st.Steps[i]))
			x.main.named = append(x.main.named, kid.main.named[hadNamed:]...)
			x.main.batches = max(x.main.batches, kid.main.batches)
		}
		if e := x.journal(ctx, st.Steps[i], recs[i], errs[i]); e != nil && err == nil {
			err = e
		}
	}
	return err
}
