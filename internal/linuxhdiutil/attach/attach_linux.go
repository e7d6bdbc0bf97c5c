package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/host"
)

// Attach makes a block device of the container and mounts its volume. For a
// container that is attached already it returns the existing attachment
// unchanged. Errors: [ErrNoFileSystem], [ErrNoLoop], and those of package
// container, such as [container.ErrInUse] for a container that another process
// has open or has attached. After an error everything is undone.
func Attach(ctx context.Context, req Request) (a Attached, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("attaching %q: %w", req.Image, err)
		}
	}()
	id, err := identity(req.Image)
	if err != nil {
		return a, err
	}
	s, err := openStore(ctx, id, lockTimeout)
	if err != nil {
		return a, err
	}
	defer s.close()
	r, err := s.load(id)
	switch {
	case err == nil && r.alive():
		return r.present(), nil
	case err == nil:
		s.clean(ctx, r)
	case !errors.Is(err, ErrNotAttached):
		return a, err
	}
	volume := req.Info.ToMount()
	r = &record{Boot: host.BootID(), Tag: "dmgbench:" + rand.Text(), Attached: Attached{ID: id, Image: req.Image,
		Format: req.Info.format, Size: req.Info.size, ReadOnly: req.ReadOnly, Warnings: req.Info.notes(),
		Filesystem: volume.Kernel, VolumeName: volume.Label, Owners: volume.Owners, Encrypted: req.Keys != nil}}
	req.Info.Describe(&r.Attached)
	if req.Temporary {
		r.ForPID = os.Getpid()
		r.ForStart, _ = processStart(r.ForPID)
	}
	if r.Mode, err = modeOf(r, req); err == nil {
		err = s.attach(ctx, r, req)
	}
	if err != nil {
		s.clean(ctx, r)
		return a, err
	}
	return r.present(), nil
}

// modeOf chooses the mode of an attachment, or returns why the image cannot be
// attached.
func modeOf(r *record, req Request) (mode string, err error) {
	defer func() {
		if err != nil && req.Info.Damage != nil {
			err = fmt.Errorf("%w (%w)", err, req.Info.Damage)
		}
	}()
	fs, known := FilesystemOf(r.Filesystem)
	plain := Loops() && r.Format == container.UDRW && !r.Encrypted
	mountable := Loops() && fs.MountableByKernel
	switch byKernel := req.ServedBy == ServedByKernel; {
	case !req.NoMount && !known:
		return "", &NoDriverError{r.Filesystem}
	case byKernel && !plain:
		return "", fmt.Errorf("attaching without a process: that takes an unencrypted UDRW image and loop devices: %w",
			errors.ErrUnsupported)
	case !req.NoMount && fs.Kernel == "exfat" && !mountable && !byKernel:
		return ModeFUSE, nil
	case !req.NoMount && (!fs.MountableByKernel || byKernel && !mountable):
		return "", &NoDriverError{r.Filesystem}
	case plain && req.ServedBy != ServedByHelper:
		return ModeLoop, nil
	case Loops():
		return ModeFUSELoop, nil
	case req.NoMount:
		return ModeFUSE, nil
	}
	return "", fmt.Errorf("the volume is %s, which needs a loop device (without one, exFAT can be mounted): %w",
		fs.Name, ErrNoLoop)
}

// lockTimeout is how long a command waits for another one of the same image.
const lockTimeout = 2 * time.Minute

// attachTimeout is how long an attachment may take once its image is served: to
// read partitions, to replay a log, to trim.
const attachTimeout = 10 * time.Minute

// attach does the steps of an attachment, and records before each what would
// have to be undone: serve the image if the kernel cannot, make the loop
// device, find the partition, mount, and prepare the volume. detach undoes them.
// If they take too long, or the caller gives up, it kills the serving process:
// then every call that waits for that fails.
func (s *store) attach(ctx context.Context, r *record, req Request) (err error) {
	if err = s.save(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	if r.Mode != ModeLoop {
		if err = s.serve(ctx, r, req); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, r.killHelper)()
	}
	if r.Mode != ModeFUSE {
		if err = s.makeLoop(r); err != nil {
			return err
		}
		if err = s.findPartition(r, req.Info); err != nil {
			return err
		}
		if !req.NoMount {
			err = s.mount(r, req)
		}
	}
	if err != nil {
		return err
	}
	if r.LastMountPoint != "" {
		prepareMounted(ctx, r)
	}
	if err = ctx.Err(); err != nil {
		return err
	}
	r.Complete = true
	return s.save(r)
}

// serve starts the process that serves the container: the device and its
// partitions as files, or in mode fuse the files of the exFAT volume that is to
// be mounted. Files of a volume belong to the user who called sudo, and if root
// attaches, all users may read them, as those of a mount by the kernel.
func (s *store) serve(ctx context.Context, r *record, req Request) (err error) {
	if err = CheckFUSE(); err != nil {
		return err
	}
	uid, gid := owner()
	o := serveRequest{Image: r.Image, Tag: r.Tag, Keys: req.Keys, ReadOnly: r.ReadOnly, End: s.path(r.ID + ".end"),
		UID: uint32(uid), GID: uint32(gid), Umask: r.umask(), Volume: r.Mode == ModeFUSE && !req.NoMount}
	r.FUSEDir = s.path(r.ID)
	r.Device = filepath.Join(r.FUSEDir, deviceName)
	r.Partition = r.Device
	if req.Info.Table != nil {
		o.Parts = req.Info.Table.Partitions
	}
	if part := req.Info.mount; part != nil {
		r.Partition = filepath.Join(r.FUSEDir, partName(*part.Part))
		if o.Volume {
			o.Parts = []gpt.Partition{*part.Part}
		}
	}
	if o.Volume {
		r.LastMountPoint, r.MadeMountPoint, err = mountPoint(req, r.VolumeName, r.umask() == privateUmask)
		r.FUSEDir = r.LastMountPoint
	} else if err = os.Mkdir(r.FUSEDir, 0o700); errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	o.MountAt = r.FUSEDir
	a, err := s.spawn(ctx, r, o)
	if err != nil {
		return err
	}
	r.ReadOnly = r.ReadOnly || a.ReadOnly
	r.Warnings = append(r.Warnings, a.Warnings...)
	if err = s.save(r); err == nil && o.Volume {
		_, err = r.checkMounted()
	}
	return err
}

// Detach flushes, unmounts, releases the device and the process, and deletes
// the record. When it returns no error, everything written is in the container,
// except for what Lost lists. Without force it leaves an attachment in use as
// it is and returns a [*BusyError]. With force it releases the image in any
// case, and Lost lists what its users lose; a loop device that a process keeps
// open then exists, without a file system that writes, until that process
// closes it.
func Detach(ctx context.Context, a Attached, force bool) (lost Lost, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("detaching %q: %w", a.Image, err)
		}
	}()
	s, err := openStore(ctx, a.ID, lockTimeout)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := s.load(a.ID)
	if err != nil {
		return nil, err
	}
	if !r.alive() {
		return s.clean(ctx, r), nil
	}
	return s.detach(ctx, r, force)
}

// Unmount unmounts the volume and leaves the image attached; it returns a
// [*BusyError] for one in use, unless force takes it away from its users. In
// mode fuse an attachment is its mount: errors.ErrUnsupported.
func Unmount(ctx context.Context, a Attached, force bool) error {
	s, r, err := openMountable(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	d := detachment{store: s, r: r, force: force}
	if err := d.unmountAll(ctx, r.mountPoints); err != nil {
		return err
	}
	r.removeMountPoint()
	err = s.save(r)
	d.flushDevice(ctx)
	if err == nil && len(d.lost) > 0 && !force {
		err = fmt.Errorf("unmounting %q: it is unmounted, but %s", r.Image, strings.Join(d.lost, "; "))
	}
	return err
}

// openMountable returns the store, locked, and the living record of an
// attachment with a block device.
func openMountable(ctx context.Context, a Attached) (*store, *record, error) {
	s, err := openStore(ctx, a.ID, lockTimeout)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.load(a.ID)
	switch {
	case err != nil:
	case !r.alive():
		s.clean(ctx, r)
		err = fmt.Errorf("what served it had died: %w", ErrNotAttached)
	case r.Mode == ModeFUSE:
		err = fmt.Errorf("without a block device, detach it and attach it again: %w", errors.ErrUnsupported)
	default:
		err = r.checkServer(ctx)
	}
	if err != nil {
		s.close()
		return nil, nil, fmt.Errorf("mounting or unmounting %q: %w", a.Image, err)
	}
	return s, r, nil
}

// checkServer returns an error if the process that serves the blocks of a loop
// device does not answer. The kernel waits for it with calls that no signal ends,
// so that this is asked first, by one that can be ended.
func (r *record) checkServer(ctx context.Context) error {
	if r.Mode != ModeFUSELoop {
		return nil
	}
	err := within(ctx, answerTimeout, r.LoopDevice, func() error { return unix.Statfs(r.FUSEDir, new(unix.Statfs_t)) })
	if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("asking process %d, which serves the image: %w", r.HelperPID, err)
	}
	return nil // a dead one is noticed by what follows
}

// detachment is an attachment that is being undone.
type detachment struct {
	*store
	r     *record
	force bool // take it away from its users: what fails is a loss, not an error
	lost  Lost
}

// detach undoes what attach has done, in the opposite order, each step as far as
// there is something to undo, and forgets it. Without force the first step that
// finds the attachment in use ends the detach; the end of the context ends it in
// any case.
func (s *store) detach(ctx context.Context, r *record, force bool) (Lost, error) {
	d := &detachment{store: s, r: r, force: force}
	for _, undo := range []func(context.Context) error{
		d.awaitServer,
		func(ctx context.Context) error { return d.unmountAll(ctx, r.mountPoints) },
		d.releaseLoop,
		func(ctx context.Context) error { return d.unmountAll(ctx, r.servedMounts) },
		d.awaitEnd,
	} {
		if err := ctx.Err(); err != nil {
			return d.lost, err
		}
		if err := undo(ctx); err != nil {
			return d.lost, err
		}
	}
	r.removeMountPoint()
	return d.lost, s.forget(r.ID)
}

// clean removes what a dead process, a dead command or another boot left.
func (s *store) clean(ctx context.Context, r *record) Lost {
	if r.Boot != host.BootID() {
		r.removeMountPoint()
		_ = s.forget(r.ID)
		return nil
	}
	if r.LoopDevice == "" { // the command that attached may have died before it recorded one
		devices, _ := filepath.Glob("/dev/loop[0-9]*")
		if i := slices.IndexFunc(devices, r.servesLoop); i >= 0 {
			r.LoopDevice = devices[i]
		}
	}
	// It must not matter here that the caller was canceled meanwhile. With force
	// the error is that of deleting the record, which the next command finds.
	lost, _ := s.detach(context.WithoutCancel(ctx), r, true)
	return lost
}

// awaitServer waits until the serving process answers; with force it kills one
// that does not.
func (d *detachment) awaitServer(ctx context.Context) error {
	err := d.r.checkServer(ctx)
	if err == nil || !d.force || ctx.Err() != nil {
		return err
	}
	d.endHelper(ctx)
	return nil
}

// unmountAll unmounts a volume, or the FUSE file system that serves the device,
// wherever it is mounted. The end of a FUSE file system ends the serving
// process: that flushes what was written, and reports what it could not. With
// force it also unmounts one that is in use: it flushes first, and then shuts
// the file system down. Until the last user has closed it, that stays mounted
// without a mount point, and must not write to an image that is free.
func (d *detachment) unmountAll(ctx context.Context, where func() ([]string, error)) error {
	points, err := where()
	if err != nil && !d.force {
		return err
	}
	for _, point := range points {
		err := d.within(ctx, func() error { return syncVolume(point) })
		if silent := errors.Is(err, os.ErrDeadlineExceeded); ctx.Err() != nil || silent && !d.force {
			return fmt.Errorf("flushing %q: %w", point, err)
		}
		d.addUnsaved(point, err)
		if d.force {
			d.shutDown(ctx, point)
			continue
		}
		// unmount(2) flushes too, but does not report failed writes
		if err := d.within(ctx, func() error { return unmount(ctx, point) }); err != nil {
			return err
		}
	}
	return nil
}

// within is [within] with the limit and the loop device of the attachment.
func (d *detachment) within(ctx context.Context, call func() error) error {
	return within(ctx, answerTimeout, d.r.LoopDevice, call)
}

// shutDown takes a flushed volume away from its users.
func (d *detachment) shutDown(ctx context.Context, point string) {
	// MNT_FORCE ends the connection of FUSE: requests in flight fail.
	force := func() error { return unix.Unmount(point, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW) }
	if d.within(ctx, force) == nil {
		return
	}
	for _, h := range holders(point) {
		d.lost = append(d.lost, fmt.Sprintf("files that %s has open on %q", h, point))
	}
	_ = d.within(ctx, func() error {
		how := uint32(1) // writes the log back first; only ext4, XFS and a few others can
		return withFile(point, func(f *os.File) error { return ioctl(f, goingDown, unsafe.Pointer(&how)) })
	})
	// The kernel unmounts it when its last user is done.
	if unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) != nil && os.Geteuid() != 0 {
		_ = fusermount(ctx, point, "-z")
	}
}

// addUnsaved adds a failed flush to what is lost.
func (d *detachment) addUnsaved(what string, err error) {
	if err != nil {
		d.lost = append(d.lost, fmt.Sprintf("what was written last to %q may not be in the image: %v", what, err))
	}
}

// flushDevice flushes what unmounting or programs wrote to the device. Failures
// include those of earlier writeback by the kernel.
func (d *detachment) flushDevice(ctx context.Context) {
	for _, device := range slices.Compact([]string{d.r.Partition, d.r.Device}) {
		if !d.r.ReadOnly {
			d.addUnsaved(device, d.within(ctx, func() error { return withFile(device, (*os.File).Sync) }))
		}
	}
}

// releaseLoop ends the loop device and waits until the kernel has let go of its
// file. Without force it checks first whether a process has the device open,
// because the kernel does not take back a request to end one: that takes effect
// when it is closed.
func (d *detachment) releaseLoop(ctx context.Context) error {
	r, limit := d.r, time.Second
	if r.LoopDevice == "" {
		return nil
	}
	if !d.force {
		limit = 10 * time.Second
		d.flushDevice(ctx)
		if by := holders(r.Device, r.Partition); len(by) > 0 {
			return busyError(r.Device, by)
		}
	}
	if err := ctx.Err(); err != nil || !r.ownsLoop() {
		return err
	}
	err := d.within(ctx, r.clearLoop)
	if err == nil || errors.Is(err, unix.ENXIO) {
		err = waitUntil(ctx, limit, func() bool { return !r.ownsLoop() })
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = busyError(r.Device, holders(r.Device))
	case err != nil:
		err = fmt.Errorf("ending %q: %w", r.LoopDevice, err)
	}
	if err != nil && d.force {
		d.lost = append(d.lost, err.Error())
		return nil
	}
	return err
}

// clearLoop asks the kernel to end the loop device.
func (r *record) clearLoop() error {
	dev, err := openLoop(r.LoopDevice)
	if err != nil {
		return err
	}
	defer dev.Close()
	return retryEINTR(func() error { return unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_CLR_FD, 0) })
}

// awaitEnd waits for the serving process to flush and end; with force it
// kills one that takes too long. A process that is mounted where this one does
// not see it, in another mount namespace, is asked to unmount. It adds the
// failures in its report to what is lost, and the death of a process that has
// written none.
func (d *detachment) awaitEnd(ctx context.Context) error {
	if d.r.helperLives() {
		_ = unix.Kill(d.r.HelperPID, unmountSignal) // its mount may be one that only it sees
	}
	err := waitUntil(ctx, answerTimeout, func() bool { return !d.r.helperLives() })
	if err != nil && (!d.force || ctx.Err() != nil) {
		return fmt.Errorf("waiting for process %d, which serves the image, to flush and end: %w; it may be mounted, "+
			"and in use, in another mount namespace: see /proc/%[1]d/mountinfo", d.r.HelperPID, err)
	}
	if err != nil {
		d.endHelper(ctx)
	}
	report, err := d.dir.ReadFile(d.r.ID+".end", 1<<20)
	if err != nil && d.r.Complete && d.r.HelperPID != 0 {
		report = []byte("the process that served the image had died: what was written and not flushed is lost")
	}
	for line := range strings.Lines(string(report)) {
		d.lost = append(d.lost, strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// endHelper kills a serving process that does not answer, or does not end.
func (d *detachment) endHelper(ctx context.Context) {
	d.lost = append(d.lost,
		"the process that served the image did not answer and was killed: what it had not flushed is lost")
	d.r.killHelper()
	_ = waitUntil(ctx, answerTimeout, func() bool { return !d.r.helperLives() })
}

// killHelper kills the serving process, if it lives.
func (r *record) killHelper() {
	if r.helperLives() {
		_ = unix.Kill(r.HelperPID, unix.SIGKILL)
	}
}
