package cli

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/hostio"
	"dmgbench/internal/runner"
)

// candidates are the engines that auto tries, the best first.
func candidates(c clock.Clock) []engine.Engine {
	return []engine.Engine{inprocess.New(c.Wall)}
}

// notHere are engines that the design has and this version has not, with what to do instead.
var notHere = map[string]string{"hdiutil": "this version has no hdiutil engine yet"}

// pick gives the engine that is asked for and says why it is this one. auto is
// told what works only after a small image has been made, attached, written to and detached.
func pick(ctx context.Context, name string, c clock.Clock, stateDir string) (engine.Engine, string, error) {
	var errs []error
	why := "auto: it made, attached, wrote to and detached a small image"
	for _, e := range candidates(c) {
		if name == e.Info().Name {
			return e, "asked for with --engine " + name, nil
		}
		if name != "auto" {
			continue
		}
		err := works(ctx, e, stateDir, c)
		if err == nil {
			return e, why, nil
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		errs = append(errs, err)
		why += fmt.Sprintf("; %s did not work: %v", e.Info().Title, err)
	}
	if len(errs) == 0 {
		return nil, "", &usageError{err: fmt.Errorf("picking engine %q: there is none of this name", name)}
	}
	return nil, "", fmt.Errorf("picking an engine: none works here: %w", errors.Join(errs...))
}

// works tries an engine in a folder of its own in the state folder.
func works(ctx context.Context, e engine.Engine, stateDir string, c clock.Clock) error {
	return runner.Probing(stateDir, c.Wall(), func(dir *hostio.Dir) error { return engine.Probe(ctx, e, dir) })
}
