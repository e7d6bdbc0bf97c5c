package attach

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Detach flushes, unmounts, releases the device and the process, and deletes
// the record. When it returns no error, everything written is in the container,
// except for what Lost lists. Without force it leaves an attachment in use as
// it is and returns a [*BusyError]. With force it releases the image in any
// case, and Lost lists what its users lose; a loop device that a process keeps
// open then exists, without a file system that writes, until that process
// closes it.
func Detach(ctx context.Context, a Attached, force bool) (Lost, error) {
	s, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := s.load(a.ID)
	switch {
	case err != nil:
		return nil, err
	case a.ID == "" || r == nil:
		return nil, fmt.Errorf("detaching %q: %w", a.Image, ErrNotAttached)
	case !r.alive():
		return s.clean(ctx, r), nil
	}
	lost, err := s.detach(ctx, r, detachment{force: force})
	if err != nil {
		return lost, fmt.Errorf("detaching %q: %w", r.Image, err)
	}
	return lost, nil
}

// Unmount unmounts the volume and leaves the image attached; it returns a
// [*BusyError] for one in use, unless force takes it away from its users. In
// mode fuse an attachment is its mount: errors.ErrUnsupported.
func Unmount(ctx context.Context, a Attached, force bool) error {
	s, r, err := find(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	if r.Mode == ModeFUSE {
		return fmt.Errorf("unmounting %q: without a block device, detach it: %w", r.Image, errors.ErrUnsupported)
	}
	d := detachment{store: s, r: r, force: force}
	if err := d.unmountVolumes(ctx); err != nil {
		return err
	}
	s.removeMountPoint(r)
	r.LastMountPoint = ""
	err = s.save(r)
	if d.mounted {
		d.flushDevice()
	}
	if err == nil && len(d.lost) > 0 && !force {
		err = fmt.Errorf("unmounting %q: it is unmounted, but %s", r.Image, strings.Join(d.lost, "; "))
	}
	return err
}

// detachment is an attachment that is being undone.
type detachment struct {
	*store
	r       *record
	force   bool // take it away from its users: what fails is a loss, not an error
	dead    bool // the serving process ended without a report
	mounted bool // the volume was mounted
	lost    Lost
}

// detachSteps undo what attach has done, in the opposite order, each as far as
// there is something to undo. Without force the first step that finds the
// attachment in use ends the detach.
var detachSteps = []func(d *detachment, ctx context.Context) error{
	(*detachment).unmountVolumes, (*detachment).releaseLoop, (*detachment).unmountServed, (*detachment).awaitHelper,
	(*detachment).readReport,
}

// detach undoes an attachment and forgets it.
func (s *store) detach(ctx context.Context, r *record, d detachment) (Lost, error) {
	d.store, d.r = s, r
	for _, step := range detachSteps {
		if err := step(&d, ctx); err != nil {
			return d.lost, err
		}
	}
	s.removeMountPoint(r)
	err := s.forget(r.ID)
	if d.force {
		err = nil
	}
	return d.lost, err
}

// clean removes what a dead process, a dead command or another boot left.
func (s *store) clean(ctx context.Context, r *record) Lost {
	if r.Boot != bootID() {
		s.removeMountPoint(r)
		_ = s.forget(r.ID)
		return nil
	}
	if r.Loop < 0 && r.Mode != ModeFUSE {
		r.findLoop()
	}
	// If umount(8) ended its mount, it flushed and wrote its report.
	_, err := os.Stat(s.path(r.ID + ".end"))
	dead := r.HelperPID != 0 && !r.helperLives() && err != nil
	// It must not matter here that the caller was canceled meanwhile. With
	// force the error is nil.
	lost, _ := s.detach(context.WithoutCancel(ctx), r, detachment{force: true, dead: dead})
	if dead && r.Complete {
		const died = "the process that served the image had died: what was written and not flushed is lost"
		lost = append(Lost{died}, lost...)
	}
	return lost
}

// unmountVolumes unmounts the volume wherever it is mounted. In mode fuse the
// volume is the served mount, which unmountServed ends with force: what was
// written has passed to the process already, and that flushes when it ends.
func (d *detachment) unmountVolumes(context.Context) error {
	points, err := d.r.mountPoints()
	if err != nil && !d.force {
		return err
	}
	d.mounted = len(points) > 0
	for _, point := range points {
		switch {
		case d.force && d.r.Mode == ModeFUSE:
			d.addHolders(point)
		case d.force:
			d.forceUnmount(point)
		default:
			// unmount(2) flushes too, but does not report failed writes. A
			// serving process has them in its report.
			if d.r.Mode != ModeFUSE {
				d.addUnsaved(point, syncVolume(point))
			}
			if err := unmount(point); err != nil {
				return err
			}
		}
	}
	return nil
}

// addUnsaved adds a failed flush to what is lost.
func (d *detachment) addUnsaved(what string, err error) {
	if err != nil {
		d.lost = append(d.lost, fmt.Sprintf("what was written last to %q may not be in the image: %v", what, err))
	}
}

// addHolders adds the open files of a volume to what is lost.
func (d *detachment) addHolders(point string) {
	for _, h := range holders(point) {
		d.lost = append(d.lost, fmt.Sprintf("files that %s (process %d) has open on %q", h.Command, h.PID, point))
	}
}

// flushDevice flushes what unmounting wrote to the device, or programs if it
// was not mounted. Failures include those of earlier writeback by the kernel.
func (d *detachment) flushDevice() {
	nodes := []string{d.r.Partition}
	if !d.mounted && d.r.Device != d.r.Partition {
		nodes = append(nodes, d.r.Device)
	}
	for _, node := range nodes {
		if d.r.ReadOnly {
			continue
		}
		d.addUnsaved(node, withFile(node, (*os.File).Sync))
	}
}

// releaseLoop clears the loop device. Without force it checks first whether a
// process has it open, because the kernel does not take back a request to
// clear.
func (d *detachment) releaseLoop(ctx context.Context) error {
	r, limit := d.r, time.Second
	if r.Loop < 0 {
		return nil
	}
	if !d.force {
		limit = 10 * time.Second
		d.flushDevice()
		if by := holders(r.Device, r.Partition); len(by) > 0 {
			return &BusyError{What: r.Device, Holders: by}
		}
	}
	err := r.clearLoop(ctx, limit)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &BusyError{What: r.Device, Holders: holders(r.Device)}
	}
	if err != nil && d.force {
		d.lost = append(d.lost, err.Error())
		return nil
	}
	return err
}

// unmountServed unmounts the FUSE file system, which ends the serving process.
func (d *detachment) unmountServed(context.Context) error {
	served, err := d.r.servedMounts()
	if err != nil && !d.force {
		return err
	}
	for _, point := range served {
		if !d.force {
			if err := unmount(point); err != nil {
				return err
			}
			continue
		}
		// MNT_FORCE ends the connection: requests in flight fail, and the
		// process flushes and closes the container.
		_ = unix.Unmount(point, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW)
		unmountLazily(point)
	}
	return nil
}

// awaitHelper waits for the serving process to flush and end; with force it
// kills one that takes too long.
func (d *detachment) awaitHelper(ctx context.Context) error {
	ended := func() bool { return !d.r.helperLives() }
	err := waitUntil(ctx, helperTimeout, ended)
	switch {
	case err == nil:
		return nil
	case !d.force:
		return fmt.Errorf("waiting for process %d to flush and end: %w", d.r.HelperPID, err)
	}
	d.lost = append(d.lost,
		"the process that served the image did not end and was killed: what it had not flushed is lost")
	_ = unix.Kill(d.r.HelperPID, unix.SIGKILL)
	_ = waitUntil(ctx, helperTimeout, ended)
	return nil
}

// readReport adds the failures of the serving process to what is lost. A
// missing report is a loss too, unless the process is known to have died.
func (d *detachment) readReport(context.Context) error {
	if d.r.HelperPID == 0 || d.dead {
		return nil
	}
	data, err := d.dir.ReadFile(d.r.ID+".end", 1<<20)
	var report exitReport
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil && d.r.Complete {
		d.lost = append(d.lost, fmt.Sprintf("the process that served the image ended without a report: %v", err))
	}
	d.lost = append(d.lost, report.Failures...)
	if more := report.Count - len(report.Failures); more > 0 {
		d.lost = append(d.lost, fmt.Sprintf("and %d more failures", more))
	}
	return nil
}

// unmount unmounts what is mounted on the folder; the error for a busy one
// names who holds it.
func unmount(point string) error {
	err := retryEINTR(func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW) })
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmounting: %w", &BusyError{What: point, Holders: holders(point)})
	case errors.Is(err, unix.EPERM) && os.Geteuid() != 0:
		return fusermount(point)
	case errors.Is(err, unix.EINVAL): // not mounted any more
		return nil
	case err != nil:
		return fmt.Errorf("unmounting %q: %w", point, err)
	}
	return nil
}

// unmountLazily hides a mount at once; the kernel unmounts it when its last
// user is done.
func unmountLazily(point string) {
	if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && os.Geteuid() != 0 {
		_ = fusermount(point, "-z")
	}
}

// forceUnmount unmounts a volume that is in use. It flushes first, and then
// shuts the file system down: until the last user has closed it, it stays
// mounted without a mount point, and must not write to an image that is free.
func (d *detachment) forceUnmount(point string) {
	if !d.dead {
		d.addUnsaved(point, within(30*time.Second, func() error { return syncVolume(point) }))
	}
	if unix.Unmount(point, unix.UMOUNT_NOFOLLOW) == nil {
		return
	}
	d.addHolders(point)
	_ = within(10*time.Second, func() error { return shutDown(point) })
	unmountLazily(point)
}

// fusermount unmounts for a user who may not.
func fusermount(point string, flags ...string) error {
	tool := cmp.Or(findTool("fusermount3"), findTool("fusermount"))
	if tool == "" {
		return fmt.Errorf("unmounting %q: fusermount3 is missing (package fuse3): %w", point, unix.EPERM)
	}
	out, err := exec.Command(tool, append(append([]string{"-u"}, flags...), "--", point)...).CombinedOutput()
	if err == nil {
		return nil
	}
	if by := holders(point); len(by) > 0 {
		return fmt.Errorf("unmounting: %w", &BusyError{What: point, Holders: by})
	}
	return fmt.Errorf("unmounting %q: %w: %s", point, err, out)
}
