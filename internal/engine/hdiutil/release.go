package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
)

var _ engine.Releaser = (*Engine)(nil)

// Release detaches, by force where it has to, the images below the folder and
// those mounted below it, whoever attached them, and names them; a tool that a killed
// run has left at work there is waited for. A missing folder has none. No tool at all is nothing attached.
func (e *Engine) Release(ctx context.Context, dir string) ([]string, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	dir = resolved(given)
	if err := e.awaitTools(ctx, given, dir); err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	var names []string
	var errs []error
	list, err := e.attachedAll(ctx)
	if classOf(err) == Missing {
		return nil, nil
	}
	for _, one := range list {
		if !under(one.Image, dir) && !anyUnder(one.Mounted(), dir) {
			continue
		}
		if err := e.release(ctx, one); err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, filepath.Base(one.Image))
	}
	return names, errors.Join(err, errors.Join(errs...))
}

// Release is [Engine.Release] by tools that need not be asked what they can do.
func Release(ctx context.Context, o Options, dir string) (names []string, err error) {
	e, err := assemble(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.Release(ctx, dir)
}

// Attached names the images below the folder that are attached, or mounted below it.
func Attached(ctx context.Context, o Options, dir string) (names []string, err error) {
	e, err := assemble(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	dir = resolved(dir)
	list, err := e.attachedAll(ctx)
	for _, one := range list {
		if under(one.Image, dir) || anyUnder(one.Mounted(), dir) {
			names = append(names, filepath.Base(one.Image))
		}
	}
	return names, err
}

// attachedAll is what any of the looks found.
func (e *Engine) attachedAll(ctx context.Context) (list []parse.Attached, err error) {
	for range e.looks() {
		var quiet tale
		r, err := e.d.run(ctx, &quiet, call{doing: "listing", object: "attached images", build: argv.Info{}})
		if err != nil {
			return list, err
		}
		seen, _, err := parse.Info(r.Stdout)
		if err != nil {
			return list, err
		}
		for _, one := range seen {
			if !slices.ContainsFunc(list, func(o parse.Attached) bool { return sameAttached(o, one) }) {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

// sameAttached says whether two looks found the same, which may have been unmounted in between.
func sameAttached(a, b parse.Attached) bool {
	x, _ := a.Disk()
	y, _ := b.Disk()
	return a.Image == b.Image && x == y
}

// release detaches one image: politely, by diskutil, by force, and looks that it is gone.
func (e *Engine) release(ctx context.Context, one parse.Attached) error {
	disk, err := one.Disk()
	if err != nil {
		return err
	}
	var t tale
	builds := []builder{argv.Detach{Device: disk}}
	if len(e.o.Diskutil) > 0 {
		builds = append(builds, argv.Eject{Device: disk})
	}
	for _, b := range append(builds, argv.Detach{Device: disk, Force: true}) {
		_, err = e.d.run(ctx, &t, call{doing: "detaching", object: filepath.Base(one.Image), build: b, tries: 2})
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if _, still, e2 := e.attached(ctx, &t, one.Image); e2 == nil && !still {
		return nil // whatever the tool said
	}
	return err
}

// resolved is the folder, an absolute path, as tools print it.
func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// under says whether the name lies below the folder, however both are written: tools print names with links
// followed and in the letters that the disk has, and on a Mac "/tmp" is a link, and "/users" the same as "/Users".
func under(name, dir string) bool {
	if strings.HasPrefix(name, dir+string(filepath.Separator)) {
		return true
	}
	for at := filepath.Dir(name); filepath.IsAbs(at) && at != filepath.Dir(at); at = filepath.Dir(at) {
		if sameFile(at, dir) {
			return true
		}
	}
	return false
}

func anyUnder(names []string, dir string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return under(name, dir) })
}
