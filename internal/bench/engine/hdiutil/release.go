package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"dmgbench/internal/bench/engine"
)

// Release detaches the images below the folder (an absolute path) and those
// mounted below it, whichever process attached them, if necessary by force, and
// returns their names. It first waits for tools that a killed run left at work
// there, and on a Mac for what the system may still attach for them. A missing
// folder has no images, and without a tool no image is attached.
func (e *Engine) Release(ctx context.Context, dir string) (names []string, err error) {
	if err := e.waitForTools(ctx, dir, resolve(dir)); err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	clock := e.o.Clock
	for until := clock.Now() + lateTime; ; {
		list, err := e.attachedBelow(ctx, dir)
		if classOf(err) == Missing {
			return nil, nil
		}
		for _, one := range list {
			a := &attachment{c: e.imageAt(one.Image), disk: diskOf(one)}
			if failed := a.detach(ctx, true); failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			names = append(names, a.c.File)
		}
		if err != nil || !e.isApple() || clock.Now() >= until || !exists(dir) {
			return names, err
		}
		if err := clock.Sleep(ctx, latePoll); err != nil {
			return names, err
		}
	}
}

// Release is [Engine.Release] without asking the tools for their features.
func Release(ctx context.Context, o Options, dir string) ([]string, error) {
	e, err := newUnprobed(o)
	if err != nil {
		return nil, err
	}
	return e.Release(ctx, dir)
}

// Attached names the attached images in the folder and those mounted below it.
func Attached(ctx context.Context, o Options, dir string) (names []string, err error) {
	e, err := newUnprobed(o)
	if err != nil {
		return nil, err
	}
	list, err := e.attachedBelow(ctx, dir)
	for _, one := range list {
		names = append(names, filepath.Base(one.Image))
	}
	return names, err
}

// imageAt is an image of which only the path is known.
func (e *Engine) imageAt(path string) *image {
	return &image{e: e, HostFile: engine.HostFile{File: filepath.Base(path)}, path: path}
}

// releaseLate detaches an image that a command attached for its work, or attaches
// late, after the command was ended.
func (e *Engine) releaseLate(ctx context.Context, t *engine.Report, path string, cause error) error {
	if path == "" || !e.mayActLate(cause) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	a := &attachment{c: e.imageAt(path)}
	at, ok, err := a.c.findLate(ctx, t, "", cause)
	if err != nil || !ok {
		return err
	}
	a.disk = diskOf(at)
	err = a.detach(ctx, true)
	t.Add(a.report)
	return err
}
