package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// engineConfig is what engines are made with. Without a state folder they can
// only be asked what they support.
type engineConfig struct {
	state      string
	passphrase []byte
	auto       bool // the engine is chosen by the program
}

// engineChoice is an engine of --engine. name is that of results, title that
// before the engine is made.
type engineChoice struct {
	name, title string
	make        func(*app, context.Context, engineConfig) (engine.Engine, error)
}

// engineChoices are in the order in which auto tries them: hdiutil makes the
// images that users have, with the file systems that they use; in-process works
// everywhere.
var engineChoices = []engineChoice{
	{"hdiutil", "hdiutil", (*app).newHdiutil},
	{"inprocess", "in-process", func(a *app, _ context.Context, c engineConfig) (engine.Engine, error) {
		return &inprocess.Engine{Now: a.clock.Wall, Passphrase: c.passphrase}, nil
	}},
}

// Texts about engines: what a probe did, and where to look for engines that
// work.
const (
	probed     = "made, attached, wrote to and detached a small image"
	doctorHint = "dmgbench doctor lists the engines that work"
)

// chooseEngine makes the engine of a name, or for "auto" the first one that
// works, and explains the choice for the result. An engine of a name is not
// probed: if it fails, its own error is in the report of the run.
func (a *app) chooseEngine(ctx context.Context, name string, c engineConfig) (engine.Engine, string, error) {
	c.auto = name == "auto"
	var errs []error
	why := "auto: it " + probed
	for _, choice := range engineChoices {
		if !c.auto && name != choice.name {
			continue
		}
		e, title, err := a.makeEngine(ctx, choice, c)
		switch {
		case err == nil && c.auto:
			return e, why, nil
		case err == nil:
			return e, "requested with --engine " + name, nil
		case !c.auto && hint(err) == "":
			err = withHint(err, "use --engine inprocess, which needs no tool of the system; "+doctorHint)
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		}
		errs = append(errs, err)
		why += fmt.Sprintf("; %s did not work: %v", title, err)
	}
	return nil, "", noEngineError(errs)
}

// noEngineError joins the reasons why each engine does not work.
func noEngineError(errs []error) error {
	return fmt.Errorf("choosing an engine: none works here: %w", errors.Join(errs...))
}

// makeEngine makes an engine and, for auto, probes it, unless it is only asked
// what it supports. The title is that of results where the engine could be made,
// as it names the tool and its version.
func (a *app) makeEngine(ctx context.Context, choice engineChoice, c engineConfig) (engine.Engine, string, error) {
	e, err := choice.make(a, ctx, c)
	if err != nil {
		return nil, choice.title, err
	}
	if c.auto && c.state != "" {
		err = a.probe(ctx, e, c.state)
	}
	return e, e.Info().Title, err
}

// probe makes, attaches, writes to and detaches a small image in the state
// folder, and removes it: an engine that reports support may still lack rights
// or tools.
func (a *app) probe(ctx context.Context, e engine.Engine, state string) error {
	return runner.WithProbeFolder(state, a.clock.Wall(), func(dir *hostio.Dir) error {
		return engine.Probe(ctx, e, dir)
	})
}

// executable is the path of this program, which is started again as hdiutil for
// Linux. A test binary would run its tests instead; the tests of this package,
// which can be both, replace the variable.
var executable = func() (string, error) {
	self, err := os.Executable()
	switch {
	case err != nil:
		return "", fmt.Errorf("finding this program: %w", err)
	case strings.HasSuffix(self, ".test"):
		return "", fmt.Errorf("this is a test, which cannot run as hdiutil: %w", errors.ErrUnsupported)
	}
	return self, nil
}

// hdiutilOptions are the tools that the engine hdiutil drives here: Apple's on
// macOS, this program on Linux. The error matches errors.ErrUnsupported on
// other systems.
func (a *app) hdiutilOptions() (hdiutil.Options, error) {
	switch runtime.GOOS {
	case "darwin":
		return hdiutil.Apple(strings.TrimSpace("macOS "+host.OSVersion()), a.clock), nil
	case "linux":
		self, err := executable()
		if err != nil {
			return hdiutil.Options{}, err
		}
		return hdiutil.WorkAlike(a.clock, self, imageToolName), nil
	}
	return hdiutil.Options{}, fmt.Errorf("hdiutil is not available on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// errNoLoops keeps auto from choosing hdiutil where it can only serve exFAT
// over FUSE, which is slower than mounts by the kernel.
var errNoLoops = errors.New("without root it works only over FUSE and with exFAT; choose it with --engine hdiutil")

// newHdiutil makes the engine hdiutil. Its mount points are in the state folder,
// where clean finds them after a crash.
func (a *app) newHdiutil(ctx context.Context, c engineConfig) (engine.Engine, error) {
	o, err := a.hdiutilOptions()
	if err != nil {
		return nil, err
	}
	if c.auto && runtime.GOOS == "linux" && !attach.Loops() {
		return nil, errNoLoops
	}
	if c.state != "" {
		o.WorkDir = filepath.Join(c.state, mountsFolder)
		if err := os.MkdirAll(o.WorkDir, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of mount points: %w", err)
		}
	}
	o.Passphrase = c.passphrase
	return hdiutil.New(ctx, o)
}

// detachBelow detaches the images below a folder and returns their names. On
// systems without hdiutil there are none.
func (a *app) detachBelow(ctx context.Context, folder string) ([]string, error) {
	o, err := a.hdiutilOptions()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return hdiutil.Release(ctx, o, folder)
}
