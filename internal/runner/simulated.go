package runner

import (
	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
)

// simulated says whether an engine stands in for the disk itself.
func simulated(e engine.Engine) bool {
	_, ok := e.(engine.Simulator)
	return ok
}

// native is the engine of plain folders.
func (r *run) native() engine.Engine { return engineOf(r.c.Engine, plan.Settings{Target: "directory"}) }

// engineFor is the engine of a case.
func (r *run) engineFor(s plan.Settings) engine.Engine { return engineOf(r.c.Engine, s) }
