package hdiutil

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
)

// How long an attach that was asked for may still be carried out after its
// program was ended, since macOS does it in a process of its own, and how often
// to look.
const (
	lateTime = 10 * time.Second
	latePoll = 2 * time.Second
)

// listAttached is what is sought in the lists of attached images; it stops when
// one is enough. Retries go to t, and the time. With an error it returns what
// it found.
//
// The list of Apple's tool may be cut short while other images come and go: it
// is read twice, and what is not in it is looked for in the I/O registry, which
// has the images of DiskImages2.
func (e *Engine) listAttached(ctx context.Context, t *engine.Report, sought, enough func(command.Attached) bool) (
	found []command.Attached, err error) {
	start := e.o.Clock.Now()
	defer func() { t.Asked += e.o.Clock.Now() - start }()
	add := func(list []command.Attached) {
		for _, a := range list {
			// The same attachment may have been unmounted in between.
			isKnown := slices.ContainsFunc(found, func(b command.Attached) bool {
				return sameFile(a.Image, b.Image) && diskOf(a) == diskOf(b)
			})
			if !isKnown && sought(a) {
				found = append(found, a)
			}
		}
	}
	info := call{doing: "listing", object: "attached images", cmd: command.New("hdiutil info", command.Args{}),
		check: func(out []byte) error {
			list, err := command.ParseInfo(out)
			add(list.Images)
			return err
		}}
	listings := []call{info}
	if e.isApple() {
		listings = append(listings, info)
	}
	for _, listing := range listings {
		if slices.ContainsFunc(found, enough) {
			return found, nil
		}
		var own engine.Report
		err := e.run(ctx, &own, listing)
		t.Add(engine.Report{Warnings: own.Warnings, Retries: own.Retries}) // without its figures
		if err != nil {
			return found, err
		}
	}
	if len(e.o.Ioreg) == 0 || slices.ContainsFunc(found, enough) {
		return found, nil
	}
	err = e.run(ctx, &engine.Report{}, call{doing: "listing", object: "the I/O registry", cmd: command.Registry(),
		check: func(out []byte) error {
			list, err := command.ParseRegistry(out)
			if err == nil {
				err = e.host.addMountPoints(list)
			}
			add(list)
			return err
		}})
	if err != nil && ctx.Err() == nil {
		t.Warn("that an image is not attached is known from hdiutil alone: %v", err)
		return found, nil
	}
	return found, err
}

// addMountPoints adds to images of the registry where their volumes are mounted.
func (h Host) addMountPoints(list []command.Attached) error {
	mounts, err := h.Mounts()
	for _, a := range list {
		for i := range a.Entities {
			for _, m := range mounts {
				if m.Source == a.Entities[i].Device {
					a.Entities[i].MountPoint = m.Point
				}
			}
		}
	}
	return err
}

// diskOf is the whole disk of an attached image, "" if the list names none.
func diskOf(a command.Attached) string {
	disk, _ := a.Disk()
	return disk
}

// findAttached finds the image in the lists of attached images: on the disk that
// it had, if that is known, else on another. An attachment outlives its file and
// keeps the path: on another disk, it is that of the image only if the path
// still leads to the same file.
func (c *image) findAttached(ctx context.Context, t *engine.Report, disk string) (command.Attached, bool, error) {
	isHere := func(a command.Attached) bool { return disk == "" || diskOf(a) == disk }
	isOurs := func(a command.Attached) bool { return sameFile(a.Image, c.path) }
	list, err := c.e.listAttached(ctx, t, isOurs, isHere)
	if i := slices.IndexFunc(list, isHere); err == nil && i >= 0 {
		return list[i], true, nil
	}
	isReplaced := c.Dir != nil && c.CheckSame(context.WithoutCancel(ctx), "finding") != nil
	if err != nil || len(list) == 0 || isReplaced {
		return command.Attached{}, false, err
	}
	return list[0], true, nil
}

// findLate is findAttached after a command that failed: if it was ended, until
// it is clear that nothing is attached late.
func (c *image) findLate(ctx context.Context, t *engine.Report, disk string, cause error) (command.Attached, bool,
	error) {
	clock := c.e.o.Clock
	for until := clock.Now() + lateTime; ; {
		at, ok, err := c.findAttached(ctx, t, disk)
		if ok || err != nil || !c.e.mayActLate(cause) || clock.Now() >= until {
			return at, ok, err
		}
		if err := clock.Sleep(ctx, latePoll); err != nil {
			return at, ok, err
		}
	}
}

// mayActLate reports whether the command of the error was ended, so that the
// system may still do what it asked for.
func (e *Engine) mayActLate(err error) bool {
	return e.isApple() && slices.Contains([]Class{Deadline, Killed, Canceled}, classOf(err))
}

// attachedBelow lists the images in the folder (an absolute path) and those
// mounted below it. With an error it returns what it found.
func (e *Engine) attachedBelow(ctx context.Context, dir string) ([]command.Attached, error) {
	dir = resolve(dir)
	return e.listAttached(ctx, &engine.Report{}, func(one command.Attached) bool {
		return slices.ContainsFunc(append(one.MountPoints(), one.Image),
			func(name string) bool { return isBelow(name, dir) })
	}, func(command.Attached) bool { return false })
}

// resolve follows links in an absolute path, as the paths that tools print; a
// missing one stays as it is.
func resolve(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// isBelow reports whether the path is below the folder, however both are
// written. Tools print paths with links followed and in the case that the disk
// stores; on a Mac "/tmp" is a link, and "/users" the same as "/Users".
func isBelow(name, dir string) bool {
	for at := filepath.Dir(name); filepath.IsAbs(at) && at != filepath.Dir(at); at = filepath.Dir(at) {
		if sameFile(at, dir) {
			return true
		}
	}
	return false
}
