package cli

import (
	"fmt"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/runner"
	"dmgbench/internal/units"
)

// smallestHonest is the size from which on a file can be timed honestly on a
// device of 10 GB/s: its time is twenty times the third of a microsecond that the
// harness costs a file (docs/accuracy.md, which is measured; dmgbench selftest
// measures it anywhere). What files really took is looked at after the run.
const smallestHonest units.Bytes = 64_000

// canRun refuses a plan that can be read but not be run as it is.
func canRun(p *plan.Plan) error {
	if err := honest(p); err != nil {
		return err
	}
	if _, err := runner.AutoRounds(p); err != nil {
		return &usageError{err: err, hint: "allow more with --max-written, or shorten a round with --sets 1"}
	}
	return nil
}

// honest refuses a plan whose files are too small to be timed. Sizes that were
// scaled stop above it by themselves.
func honest(p *plan.Plan) error {
	if slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Kind == "scale" }) {
		return nil
	}
	for _, f := range p.Files {
		for _, part := range f.Parts {
			sizes := part.Sizes
			if part.High > 0 {
				sizes = append(slices.Clone(sizes), part.Low)
			}
			if len(sizes) > 0 && slices.Min(sizes) < smallestHonest {
				return &usageError{err: fmt.Errorf("running plan %q: files of %s in set %q are too small to be timed: what the program itself costs a file would show in their rate",
					p.Name, slices.Min(sizes), f.Name), hint: fmt.Sprintf("use files of %s or more; dmgbench selftest says what a file costs here", smallestHonest)}
			}
		}
	}
	return nil
}
