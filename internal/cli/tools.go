package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/host"
)

// executable is the path of this program, which is run again as the work-alike.
// A program of tests would run its tests instead, and they this, without end;
// the tests of this package, which are the work-alike too, put os.Executable in its place.
var executable = func() (string, error) {
	self, err := os.Executable()
	switch {
	case err != nil:
		return "", fmt.Errorf("finding this program: %w", err)
	case strings.HasSuffix(self, ".test"):
		return "", fmt.Errorf("this program is no hdiutil but one of tests: %w", errors.ErrUnsupported)
	}
	return self, nil
}

// hdiutilOptions say which tools the hdiutil engine drives here: Apple's on a
// Mac, on Linux this very program.
func (a *app) hdiutilOptions() (hdiutil.Options, error) {
	switch runtime.GOOS {
	case "darwin":
		system := "macOS"
		if v := host.OSVersion(); v != "" {
			system += " " + v
		}
		return hdiutil.Apple(system, a.clock), nil
	case "linux":
		self, err := executable()
		if err != nil {
			return hdiutil.Options{}, err
		}
		return hdiutil.WorkAlike(a.clock, self, imageToolName), nil
	}
	return hdiutil.Options{}, fmt.Errorf("there is no hdiutil for %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// errNoLoops keeps auto from an engine that would work, but not as one that mounts with the kernel does.
var errNoLoops = errors.New("without root it works only over FUSE and with exFAT; choose it with --engine hdiutil")

// newHdiutil makes the engine, with a folder for its mount points that a later clean finds. Without a state folder it is
// only for asking what it can do.
func (a *app) newHdiutil(ctx context.Context, k kit) (engine.Engine, error) {
	o, err := a.hdiutilOptions()
	if err != nil {
		return nil, err
	}
	if k.auto && runtime.GOOS == "linux" && !attach.Loops() {
		return nil, errNoLoops
	}
	dir, free := "", func() error { return nil }
	if k.state != "" {
		if dir, free, err = mountFolder(k.state); err != nil {
			return nil, err
		}
	}
	o.WorkDir, o.Passphrase = dir, k.secret
	e, err := hdiutil.New(ctx, o)
	if err != nil {
		return nil, errors.Join(err, free())
	}
	a.atEnd = append(a.atEnd, free, e.Close)
	return e, nil
}

// close ends what engines keep for as long as the program runs. What is not
// empty stays, for clean to look at.
func (a *app) close() {
	for i := len(a.atEnd) - 1; i >= 0; i-- {
		if err := a.atEnd[i](); err != nil {
			a.warn("warning: " + printable(err.Error()))
		}
	}
	a.atEnd = nil
}

// release detaches the images below a folder that some process left attached.
func (a *app) release(ctx context.Context, folder string) ([]string, error) {
	o, err := a.hdiutilOptions()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return hdiutil.Release(ctx, o, folder)
}
