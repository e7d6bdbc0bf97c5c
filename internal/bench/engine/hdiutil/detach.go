package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
)

// politeTries is the number of detaches without force: at once, then after 0.5
// s, 1 s and 2 s.
const politeTries = 4

// Detach unmounts and detaches. It asks hdiutil, then diskutil, which on macOS
// 27 succeeds where hdiutil prints "couldn't unmount - Resource busy"
// (autopkg#1069), then hdiutil several times more; with force, by force, so
// that open files do not hold the image. Device numbers are reused: before each
// try it checks that the device still belongs to the image, and at the end that
// it is gone. Every try but the first is a warning. After an error the image is
// still attached, and Detach may be called again.
func (a *attachment) Detach(ctx context.Context, force bool) (engine.Report, error) {
	if !a.detached {
		a.closeVolume() // an open folder would keep the volume busy
		if err := a.detach(ctx, force); err != nil {
			if a.point != "" && a.isMounted() {
				if err := a.openVolume(); err != nil {
					a.report.Warn("%v", err)
				}
			}
			return a.report.Take(), err
		}
	}
	a.c.open, a.c.Attached = nil, false
	return a.report.Take(), nil
}

// isMounted reports whether our mount point still shows the device that we
// mounted.
func (a *attachment) isMounted() bool {
	m, ok, err := a.c.e.host.mountedOn(a.point)
	return err == nil && ok && m.Source == a.mounted.Source
}

// attempt is one way to detach.
type attempt struct {
	line  string
	args  command.Args  // without the device
	pause time.Duration // before it
	name  string        // for the warning
}

const again = "again"

// attempts are the ways to detach, the gentlest first: force may lose what was
// not written yet.
func (a *attachment) attempts(force bool) []attempt {
	list := []attempt{{line: "hdiutil detach"}}
	if len(a.c.e.o.Diskutil) > 0 {
		list = append(list, attempt{line: "diskutil eject", name: "by diskutil eject"})
	}
	if force {
		return append(list, attempt{line: "hdiutil detach", args: command.Args{Force: true}, name: "with force"})
	}
	for n := range politeTries - 1 {
		list = append(list, attempt{line: "hdiutil detach", pause: firstPause << n, name: again})
	}
	return list
}

// detach makes the attempts, and then checks once more whether the image is
// attached: a tool may fail and yet detach it. After a failure of hdiutil
// that is not "busy" it is not asked again without force. The time before the
// last attempt counts as retries.
func (a *attachment) detach(ctx context.Context, force bool) error {
	var last, polite error
	clock := a.c.e.o.Clock
	start, before := clock.Now(), a.report.Retried
	for i, try := range a.attempts(force) {
		if try.name == again && !isTransient(polite) {
			break
		}
		if i > 0 {
			a.report.Warn("detaching did not succeed and was tried %s: %s", try.name, reasonOf(last))
			if err := clock.Sleep(ctx, try.pause); err != nil {
				return errors.Join(last, err)
			}
		}
		if ended, err := a.isDetached(ctx, last); ended || err != nil {
			return err
		}
		if i > 0 {
			a.report.Retried = before + clock.Now() - start
			a.report.Note("detach_tries", strconv.Itoa(i+1))
		}
		try.args.Device = a.disk
		last = a.c.e.run(ctx, &a.report, call{doing: "detaching", object: a.c.File, tries: 1,
			cmd: command.New(try.line, try.args), check: func([]byte) error { return a.checkGone(ctx) }})
		if last == nil {
			return a.finish()
		} else if ctx.Err() != nil {
			return last
		}
		if i == 0 || try.name == again {
			polite = last
		}
	}
	if ended, err := a.isDetached(ctx, last); ended || err != nil {
		return err
	}
	if e, ok := errors.AsType[*ToolError](last); ok {
		e.Hint = fmt.Sprintf("close what uses the volume, then: hdiutil detach %s -force", a.disk)
	}
	return last
}

// isDetached reports whether the image is not attached any more, after the
// error of the last attempt, and then ends the attachment. Else it updates the
// device. Before the first attempt our mount of the same device proves that the
// image is attached without asking a tool; later the list of attached images
// does.
func (a *attachment) isDetached(ctx context.Context, last error) (bool, error) {
	if last == nil && a.mounted.Source != "" && a.isMounted() {
		return false, nil
	}
	at, ok, err := a.c.e.findAttached(ctx, &a.report, a.c.path)
	switch {
	case err != nil:
		return false, errors.Join(last, fmt.Errorf("checking which image %s belongs to: %w", a.disk, err))
	case ok:
		a.disk, err = at.Disk()
		return false, err
	case last == nil:
		a.report.Warn("the image was already detached by somebody else")
	default:
		a.report.Warn("the tool failed, and yet the image is detached: %s", reasonOf(last))
	}
	return true, a.finish()
}

// checkGone checks a detach that succeeded: the volume is not mounted, and the
// device is gone or belongs to another image.
func (a *attachment) checkGone(ctx context.Context) error {
	if a.point != "" {
		if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
			return errors.Join(fmt.Errorf("%w: the volume is still mounted", ErrNoResult), err)
		}
	}
	if !a.c.e.host.Exists(a.disk) {
		return nil
	}
	_, ok, err := a.c.e.findAttached(ctx, &a.report, a.c.path)
	if err == nil && ok {
		err = fmt.Errorf("%w: the image is still attached", ErrNoResult)
	}
	return err
}

// finish marks the attachment as detached and removes the mount point, never a
// volume mounted there. Some tools have already removed it.
func (a *attachment) finish() error {
	if a.point != "" {
		if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
			return errors.Join(fmt.Errorf("removing the mount point %q: a volume is mounted on it", a.point), err)
		}
		if err := os.Remove(a.point); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the mount point: %w", err)
		}
	}
	a.point, a.detached = "", true
	return nil
}

// listAttached is what is sought in the tool's list of attached images, with
// one: until it is found. Retries go to t. With an error it returns what it
// found. The list of Apple's tool may be cut short while other images come and
// go, so that it is read twice.
func (e *Engine) listAttached(ctx context.Context, t *engine.Report, one bool, sought func(command.Attached) bool) (
	found []command.Attached, err error) {
	listings := 1
	if e.isApple() {
		listings = 2
	}
	for n := 0; n < listings && !(one && len(found) > 0); n++ {
		var own engine.Report
		err := e.run(ctx, &own, call{doing: "listing", object: "attached images",
			cmd: command.New("hdiutil info", command.Args{}), check: func(out []byte) error {
				list, err := command.ParseInfo(out)
				for _, a := range list.Images {
					// The same attachment may have been unmounted in between.
					isKnown := slices.ContainsFunc(found, func(b command.Attached) bool {
						x, _ := a.Disk()
						y, _ := b.Disk()
						return a.Image == b.Image && x == y
					})
					if !isKnown && sought(a) {
						found = append(found, a)
					}
				}
				return err
			}})
		t.Add(engine.Report{Warnings: own.Warnings, Retried: own.Retried}) // without its figures
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// findAttached finds the image at path in the list of attached images.
func (e *Engine) findAttached(ctx context.Context, t *engine.Report, path string) (command.Attached, bool, error) {
	list, err := e.listAttached(ctx, t, true, func(one command.Attached) bool { return sameFile(one.Image, path) })
	if err != nil || len(list) == 0 {
		return command.Attached{}, false, err
	}
	return list[0], true, nil
}

// attachedBelow lists the images in the folder (an absolute path) and those
// mounted below it. With an error it returns what it found.
func (e *Engine) attachedBelow(ctx context.Context, dir string) ([]command.Attached, error) {
	dir = resolve(dir)
	return e.listAttached(ctx, &engine.Report{}, false, func(one command.Attached) bool {
		return slices.ContainsFunc(append(one.MountPoints(), one.Image),
			func(name string) bool { return isBelow(name, dir) })
	})
}

// Release detaches the images below the folder (an absolute path) and those
// mounted below it, whichever process attached them, if necessary by force, and returns their
// names. It first waits for tools that a killed run left at work there. A
// missing folder has no images, and without a tool no image is attached.
func (e *Engine) Release(ctx context.Context, dir string) (names []string, err error) {
	if err := e.waitForTools(ctx, dir, resolve(dir)); err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	list, err := e.attachedBelow(ctx, dir)
	if classOf(err) == Missing {
		return nil, nil
	}
	for _, one := range list {
		file := filepath.Base(one.Image)
		a := &attachment{c: &image{e: e, HostFile: engine.HostFile{File: file}, path: one.Image}}
		if failed := a.detach(ctx, true); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		names = append(names, file)
	}
	return names, err
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

// abandon detaches what a failed attach may have left. An image that is mounted
// elsewhere than on our mount point is not ours.
func (a *attachment) abandon(ctx context.Context, cause error) error {
	a.closeVolume()
	if _, ran := errors.AsType[*ToolError](cause); a.foreign || a.disk == "" && (!ran || classOf(cause) == Missing) {
		return a.finish()
	}
	at, ok, err := a.c.e.findAttached(ctx, &a.report, a.c.path)
	if err != nil {
		err = fmt.Errorf("checking whether %q is still attached: %w", a.c.File, err)
	}
	for _, p := range at.MountPoints() {
		if !a.isPoint(p) {
			err = fmt.Errorf("leaving %q attached: another process has mounted it on %q", a.c.File, p)
		}
	}
	if !ok || err != nil {
		return errors.Join(err, a.finish())
	}
	return a.detach(ctx, true)
}
