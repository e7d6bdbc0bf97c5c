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

// engines are the values of --engine.
var engines = []string{"auto", "hdiutil", "inprocess"}

// kit is what engines are made of: where the state folder is, and the secret of encrypted images.
type kit struct {
	state  string
	secret []byte
	auto   bool // what is not the best choice may refuse
}

// candidate is an engine that can be made and tried.
type candidate struct {
	name, title string // title: before it is made
	make        func(context.Context, kit) (engine.Engine, error)
}

// candidates are the engines that auto tries, the best first.
func (a *app) candidates() []candidate {
	return []candidate{
		{"hdiutil", "hdiutil", a.newHdiutil},
		{"inprocess", "in-process", func(_ context.Context, k kit) (engine.Engine, error) {
			return &inprocess.Engine{Now: a.clock.Wall, Passphrase: k.secret}, nil
		}},
	}
}

// pick gives the engine that is asked for and says why it is this one. auto is
// told what works only after a small image has been made, attached, written to and detached.
func (a *app) pick(ctx context.Context, name string, k kit) (engine.Engine, string, error) {
	k.auto = name == "auto"
	var errs []error
	why := "auto: it made, attached, wrote to and detached a small image"
	for _, c := range a.candidates() {
		if !k.auto && name != c.name {
			continue
		}
		e, err := c.make(ctx, k)
		if !k.auto {
			return e, "asked for with --engine " + name, pickError(name, err)
		}
		title := c.title
		if err == nil {
			title = e.Info().Title
			err = a.works(ctx, e, k.state)
		}
		if err == nil {
			return e, why, nil
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		errs = append(errs, err)
		why += fmt.Sprintf("; %s did not work: %v", title, err)
	}
	return nil, "", fmt.Errorf("picking an engine: none works here: %w", errors.Join(errs...))
}

func pickError(name string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("picking engine %q: %w", name, err)
	if hint(err) != "" {
		return err
	}
	return &hintedError{err: err, hint: "use --engine inprocess, which needs no tool of the system; dmgbench doctor says what works"}
}

// works tries an engine in a folder of its own in the state folder.
func (a *app) works(ctx context.Context, e engine.Engine, stateDir string) error {
	return probe(ctx, e, stateDir, a.clock)
}

func probe(ctx context.Context, e engine.Engine, stateDir string, c clock.Clock) error {
	return runner.WithProbeFolder(stateDir, c.Wall(), func(dir *hostio.Dir) error { return engine.Probe(ctx, e, dir) })
}
