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

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
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
	if a.detached {
		a.c.open = nil
		return engine.Report{}, nil
	}
	a.closeVolume() // an open folder would keep the volume busy
	if err := a.detach(ctx, force); err != nil {
		a.reopenVolume()
		return a.report.take(), err
	}
	a.c.open = nil
	return a.report.take(), nil
}

// reopenVolume makes the volume usable again if it is still mounted.
func (a *attachment) reopenVolume() {
	if a.point == "" || !a.isMounted() {
		return
	}
	if err := a.openVolume(); err != nil {
		a.report.warn("%v", err)
	}
}

// isMounted reports whether our mount point still shows the device that we
// mounted.
func (a *attachment) isMounted() bool {
	m, ok, err := a.c.e.host.mountedOn(a.point)
	return err == nil && ok && m.From == a.mounted.From
}

// attempt is one way to detach.
type attempt struct {
	cmd   func(disk string) command.Command
	pause time.Duration // before it
	name  string        // for the warning
}

func detachPolitely(disk string) command.Command { return command.Detach(disk, false) }

func detachByForce(disk string) command.Command { return command.Detach(disk, true) }

func (a *attachment) attempts(force bool) []attempt {
	list, pause := []attempt{{cmd: detachPolitely}}, firstPause
	if len(a.c.e.o.Diskutil) > 0 {
		list = append(list, attempt{command.Eject, 0, "by diskutil eject"})
	}
	if force {
		return append(list, attempt{detachByForce, 0, "with force"})
	}
	for range politeTries - 1 {
		list = append(list, attempt{detachPolitely, pause, "again"})
		pause *= 2
	}
	return list
}

// detach makes the attempts. After a failure of hdiutil that is not "busy" it
// is not asked again without force. The time before the last attempt counts as
// retries.
func (a *attachment) detach(ctx context.Context, force bool) error {
	var last, polite error
	clock := a.c.e.d.clock
	start, before, n := clock.Now(), a.report.Retried, 0
	for i, try := range a.attempts(force) {
		if i > 0 {
			if try.name == "again" && !isTransient(polite) {
				continue
			}
			a.report.warn("detaching did not succeed and was tried %s: %s", try.name, reasonOf(last))
			if err := clock.Sleep(ctx, try.pause); err != nil {
				return errors.Join(last, err)
			}
		}
		attached, err := a.isAttached(ctx, i > 0)
		if err != nil {
			return errors.Join(last, err)
		}
		if !attached {
			if i == 0 {
				a.report.warn("the image was already detached by somebody else")
			}
			return a.finish()
		}
		if n++; n > 1 {
			a.report.Retried = before + clock.Now() - start
			a.report.note("detach_tries", strconv.Itoa(n))
		}
		_, last = a.c.e.d.run(ctx, &a.report,
			call{doing: "detaching", object: a.c.File, cmd: try.cmd(a.disk), tries: 1, check: a.checkGone(ctx)})
		if last == nil {
			return a.finish()
		}
		if ctx.Err() != nil {
			return last
		}
		if i == 0 || try.name == "again" {
			polite = last
		}
	}
	return a.conclude(ctx, last)
}

// conclude checks once more whether the image is attached: a tool may fail and
// yet detach it.
func (a *attachment) conclude(ctx context.Context, last error) error {
	attached, err := a.isAttached(ctx, true)
	if err != nil {
		return errors.Join(last, err)
	}
	if !attached {
		a.report.warn("the tool failed, and yet the image is detached: %s", reasonOf(last))
		return a.finish()
	}
	if e, ok := errors.AsType[*ToolError](last); ok {
		e.Hint = fmt.Sprintf("close what uses the volume, then: hdiutil detach %s -force", a.disk)
	}
	return last
}

// isAttached reports whether the image is still attached, and updates its
// device. Before the first try our mount of the same device proves it without
// asking a tool; else the list of attached images does.
func (a *attachment) isAttached(ctx context.Context, tried bool) (bool, error) {
	if a.point != "" && !tried && a.mounted.From != "" && a.isMounted() {
		return true, nil
	}
	at, ok, err := a.c.e.findAttached(ctx, &a.report, a.c.path())
	if err != nil {
		return false, fmt.Errorf("checking which image %s belongs to: %w", a.disk, err)
	}
	if !ok {
		return false, nil
	}
	disk, err := at.Disk()
	if err != nil {
		return false, err
	}
	a.disk = disk
	return true, nil
}

// checkGone checks a detach that succeeded: the volume is not mounted, and the
// device is gone or belongs to another image.
func (a *attachment) checkGone(ctx context.Context) func([]byte) error {
	return func([]byte) error {
		if a.point != "" {
			if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
				return errors.Join(fmt.Errorf("%w: the volume is still mounted", ErrNoResult), err)
			}
		}
		if !a.c.e.host.Exists(a.disk) {
			return nil
		}
		_, ok, err := a.c.e.findAttached(ctx, &a.report, a.c.path())
		if err == nil && ok {
			err = fmt.Errorf("%w: the image is still attached", ErrNoResult)
		}
		return err
	}
}

// finish removes the mount point and marks the attachment as detached, unless
// the mount point is still in use.
func (a *attachment) finish() error {
	err := a.removeMountPoint()
	a.detached = !errors.Is(err, errMountPointBusy)
	return err
}

var errMountPointBusy = errors.New("a volume is mounted on it")

// removeMountPoint removes the mount point, never a volume mounted there. Some
// tools have already removed it.
func (a *attachment) removeMountPoint() error {
	if a.point == "" {
		return nil
	}
	if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
		return errors.Join(fmt.Errorf("removing the mount point %q: %w", a.point, errMountPointBusy), err)
	}
	if err := os.Remove(a.point); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mount point: %w", err)
	}
	a.point = ""
	return nil
}

// listAttached is the tool's list of attached images. Retries go to t. The list
// of Apple's tool may be cut short while other images come and go: callers ask
// listings times before they conclude that an image is not in it.
func (e *Engine) listAttached(ctx context.Context, t *reportBuilder) (list []command.Attached, err error) {
	var own reportBuilder
	_, err = e.d.run(ctx, &own,
		call{doing: "listing", object: "attached images", cmd: command.Info(), check: func(out []byte) (err error) {
			list, err = command.ParseInfo(out)
			return err
		}})
	t.addRetries(own.take())
	return list, err
}

func (e *Engine) listings() int {
	if e.isApple() {
		return 2
	}
	return 1
}

// findAttached finds the image at path in the list of attached images.
func (e *Engine) findAttached(ctx context.Context, t *reportBuilder, path string) (command.Attached, bool, error) {
	for range e.listings() {
		list, err := e.listAttached(ctx, t)
		if err != nil {
			return command.Attached{}, false, err
		}
		for _, one := range list {
			if one.Image == path || sameFile(one.Image, path) {
				return one, true, nil
			}
		}
	}
	return command.Attached{}, false, nil
}

// attachedBelow lists the images in the folder and those mounted below it. With
// an error it returns what it found.
func (e *Engine) attachedBelow(ctx context.Context, dir string) (found []command.Attached, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("listing attached images: %w", err)
	}
	dir = resolve(dir)
	for range e.listings() {
		list, err := e.listAttached(ctx, &reportBuilder{})
		if err != nil {
			return found, err
		}
		for _, one := range list {
			below := slices.ContainsFunc(append(one.MountPoints(), one.Image),
				func(name string) bool { return isBelow(name, dir) })
			if below && !slices.ContainsFunc(found, func(o command.Attached) bool { return sameAttachment(o, one) }) {
				found = append(found, one)
			}
		}
	}
	return found, nil
}

// sameAttachment reports whether two listings found the same attachment, which
// may have been unmounted in between.
func sameAttachment(a, b command.Attached) bool {
	x, _ := a.Disk()
	y, _ := b.Disk()
	return a.Image == b.Image && x == y
}

// Release detaches the images below the folder and those mounted below it,
// whichever process attached them, if necessary by force, and returns their
// names. It first waits for tools that a killed run left at work there. A
// missing folder has no images, and without a tool no image is attached.
func (e *Engine) Release(ctx context.Context, dir string) ([]string, error) {
	given, err := filepath.Abs(dir)
	if err == nil {
		err = e.waitForTools(ctx, given, resolve(given))
	}
	if err != nil {
		return nil, fmt.Errorf("looking for attached images: %w", err)
	}
	list, err := e.attachedBelow(ctx, given)
	if classOf(err) == Missing {
		return nil, nil
	}
	var names []string
	errs := []error{err}
	for _, one := range list {
		if err := e.release(ctx, one); err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, filepath.Base(one.Image))
	}
	return names, errors.Join(errs...)
}

// release detaches one image: politely, by diskutil, by force.
func (e *Engine) release(ctx context.Context, one command.Attached) error {
	disk, err := one.Disk()
	if err != nil {
		return err
	}
	cmds := []command.Command{detachPolitely(disk)}
	if len(e.o.Diskutil) > 0 {
		cmds = append(cmds, command.Eject(disk))
	}
	var t reportBuilder
	for _, cmd := range append(cmds, detachByForce(disk)) {
		_, err = e.d.run(ctx, &t, call{doing: "detaching", object: filepath.Base(one.Image), cmd: cmd, tries: 2})
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if _, still, e2 := e.findAttached(ctx, &t, one.Image); e2 == nil && !still {
		return nil // whatever the tool reported
	}
	return err
}

// Release is [Engine.Release] by tools whose features need not be known.
func Release(ctx context.Context, o Options, dir string) (names []string, err error) {
	err = withUnprobed(o, func(e *Engine) (err error) {
		names, err = e.Release(ctx, dir)
		return err
	})
	return names, err
}

// Attached names the attached images in the folder and those mounted below it.
func Attached(ctx context.Context, o Options, dir string) (names []string, err error) {
	err = withUnprobed(o, func(e *Engine) error {
		list, err := e.attachedBelow(ctx, dir)
		for _, one := range list {
			names = append(names, filepath.Base(one.Image))
		}
		return err
	})
	return names, err
}

func withUnprobed(o Options, use func(*Engine) error) error {
	e, err := newUnprobed(o)
	if err != nil {
		return err
	}
	return errors.Join(use(e), e.Close())
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
	c := a.c
	a.closeVolume()
	if _, ran := errors.AsType[*ToolError](cause); a.foreign || a.disk == "" && (!ran || classOf(cause) == Missing) {
		return a.removeMountPoint()
	}
	at, ok, err := c.e.findAttached(ctx, &a.report, c.path())
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("checking whether %q is still attached: %w", c.File, err), a.removeMountPoint())
	case !ok:
		return a.removeMountPoint()
	}
	for _, p := range at.MountPoints() {
		if a.point == "" || !sameFile(p, a.point) {
			return errors.Join(fmt.Errorf("leaving %q attached: another process has mounted it on %q", c.File, p),
				a.removeMountPoint())
		}
	}
	if a.disk, err = at.Disk(); err != nil {
		return errors.Join(err, a.removeMountPoint())
	}
	return a.detach(ctx, true)
}
