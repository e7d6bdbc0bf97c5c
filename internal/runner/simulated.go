package runner

import (
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/plan"
)

// simulated says whether an engine stands in for the disk itself.
func simulated(e engine.Engine) bool {
	_, ok := e.(engine.Simulator)
	return ok
}

// native is the engine of plain folders.
func (r *run) native() engine.Engine {
	if simulated(r.c.Engine) {
		return r.c.Engine
	}
	return directory.Engine{}
}

// engineFor is the engine of the images, or the native one for plain folders.
func (r *run) engineFor(s plan.Settings) engine.Engine {
	if s.Target == "directory" && !simulated(r.c.Engine) {
		return directory.Engine{}
	}
	return r.c.Engine
}
