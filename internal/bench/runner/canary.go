package runner

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// The canary is a short native write and read before each case. Its drift along
// the run is caused by the machine, not by the image. It takes about 0.1 s on a
// SATA SSD.
const (
	canaryFiles = 4
	canaryBytes = 4_000_000 // of each file
)

// canary writes and reads files in a native folder, as two steps of the case
// that its summaries omit.
func (x *caseRun) canary(ctx context.Context) error {
	con, err := nativeEngine(x.r.c.Engine).Create(ctx, x.place.dir, "canary", engine.Spec{Cache: x.spec.Cache})
	if err != nil {
		return fmt.Errorf("making the canary: %w", err)
	}
	h := x.adopt(con, x.place, x.spec)
	if h.att, err = con.Attach(ctx, engine.AttachOptions{Cache: x.spec.Cache}); err != nil {
		return fmt.Errorf("opening the canary: %w", err)
	}
	key := workload.Key{Seed: x.r.p.Run.Seed, Round: x.round, Step: "canary", Batch: 1}
	items := equalFiles(canaryFiles, canaryBytes, key)
	// The canary is a step without a handler, as plans cannot contain it.
	for _, op := range []string{"write", "read"} {
		st := plan.Step{Do: "canary", Phase: "canary"}
		rec := x.newRecord(st)
		rec.Op = op
		o, err := x.options(plan.Step{Do: op, Workers: 1})
		if err != nil {
			return err
		}
		transfer := workload.Write
		if op == "read" {
			transfer = workload.Read
		}
		s := &stepRun{x: x, st: st, h: h, rec: &rec}
		var out workload.Outcome
		err = s.timed(func() (err error) {
			out, err = transfer(ctx, s.volume(), items, o)
			return err
		})
		s.recordFiles(out, o)
		if err := x.record(ctx, plan.Step{Do: "canary"}, rec, err); err != nil {
			return err
		}
	}
	return errors.Join(x.undo.run(ctx)...)
}

// equalFiles are n files of one size in bytes, for the canary and for
// preconditioning.
func equalFiles(n int, size units.Bytes, key workload.Key) []workload.Item {
	set := plan.FileSet{Name: key.Step, Parts: []plan.FilePart{{Sizes: []units.Bytes{size}, Sets: n}}}
	return workload.Items(set, key)
}
