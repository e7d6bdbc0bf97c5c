package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// findPartition finds the device node of the volume.
func (s *store) findPartition(r *record, info *ImageInfo) error {
	r.Partition = r.Device
	if len(info.partitions()) == 0 {
		// No GUID table; the kernel may know others.
		parts, err := loopParts(r.Loop)
		if err != nil || len(parts) == 0 {
			return err
		}
		r.Partition, r.Offset = parts[0].path, parts[0].offset
		return s.identifyPart(r)
	}
	if info.mount < 0 {
		return s.save(r)
	}
	parts, err := loopParts(r.Loop)
	if err == nil && len(parts) < len(info.partitions()) {
		parts, err = addParts(r.Loop, info.partitions(), parts)
	}
	if err != nil {
		return err
	}
	off, size := info.extent()
	for _, p := range parts {
		if p.offset == off && p.size == size {
			r.Partition = p.path
			return s.save(r)
		}
	}
	return fmt.Errorf("finding the partition at %d of %q: the kernel sees others than the table has", off, r.Device)
}

// identifyPart looks at a partition that only the kernel could find.
func (s *store) identifyPart(r *record) error {
	dev, err := openDevice(r.Partition, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer dev.Close()
	found := Identify(dev)
	r.Filesystem, r.VolumeName = found.Kernel, found.Label
	return s.save(r)
}

// mount mounts the volume of a device.
func (s *store) mount(r *record, req Request) error {
	point, made, err := mountPoint(req, r.VolumeName, r.Image)
	if err != nil {
		return err
	}
	r.LastMountPoint, r.MadeMountPoint = point, made
	if err := s.save(r); err != nil {
		return err
	}
	err = mountDevice(r, point)
	if err != nil {
		s.removeMountPoint(r)
		r.LastMountPoint = ""
	}
	return err
}

// afterMount makes a new volume usable, and trims one that was mounted before.
func (s *store) afterMount(ctx context.Context, r *record, req Request) {
	if r.ReadOnly {
		return
	}
	if r.Owners {
		giveAway(r.LastMountPoint)
	}
	before := mountedBefore(r.ID, r.Image)
	if req.NoTrim || !before {
		return
	}
	began := wall.Now()
	n, err := Trim(ctx, r.LastMountPoint)
	r.Trimmed, r.TrimTime = n, wall.Now()-began
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// removeMountPoint removes a folder that was made to mount on; one that holds anything stays.
func (s *store) removeMountPoint(r *record) {
	if r.MadeMountPoint && r.LastMountPoint != "" {
		_ = os.Remove(r.LastMountPoint)
	}
	r.MadeMountPoint = false
}

// Mount mounts the volume of an image that is attached. In mode fuse the volume is mounted as long as the image is
// attached: errors.ErrUnsupported.
func Mount(ctx context.Context, a Attached, req Request) (Attached, error) {
	s, r, err := find(ctx, a)
	if err != nil {
		return Attached{}, err
	}
	defer s.close()
	if r.Mode == ModeFUSE {
		return Attached{}, fmt.Errorf("mounting %q: without a block device, detach it and attach it again: %w",
			r.Image, errors.ErrUnsupported)
	}
	if now := r.view(); now.MountPoint != "" {
		return now, nil
	}
	// A file system may have been made since.
	if err := s.identifyPart(r); err != nil {
		return Attached{}, err
	}
	if fs, ok := FilesystemOf(r.Filesystem); ok {
		r.Owners = fs.Owners
	}
	if r.Filesystem == "exfat" && !kernelMounts("exfat") {
		return Attached{}, fmt.Errorf("mounting %q: the kernel has no exFAT; detach the image and attach it again: %w",
			r.Image, ErrNoFileSystem)
	}
	if err := s.mount(r, req); err != nil {
		return Attached{}, errors.Join(err, s.save(r))
	}
	s.afterMount(ctx, r, req)
	return r.view(), s.save(r)
}

// Unmount unmounts the volume and leaves the image attached; it returns a [*BusyError] for one in use, unless force
// takes it away from its users. In mode fuse an attachment is its mount: errors.ErrUnsupported.
func Unmount(ctx context.Context, a Attached, force bool) error {
	s, r, err := find(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	if r.Mode == ModeFUSE {
		return fmt.Errorf("unmounting %q: without a block device, detach it: %w", r.Image, errors.ErrUnsupported)
	}
	points, err := r.loopMounts()
	if err != nil {
		return err
	}
	var lost Lost
	for _, point := range points {
		if force {
			lost = append(lost, forceUnmount(point, true)...)
			continue
		}
		unsaved := r.unsaved(point)
		if err := unmount(point); err != nil {
			return err
		}
		lost = append(lost, unsaved...)
	}
	s.removeMountPoint(r)
	r.LastMountPoint = ""
	err = s.save(r)
	if len(points) > 0 {
		lost = append(lost, r.flushDevice(true)...)
	}
	if err == nil && len(lost) > 0 && !force {
		err = fmt.Errorf("unmounting %q: it is unmounted, but %s", r.Image, strings.Join(lost, "; "))
	}
	return err
}

// alive reports whether the kernel still has the device, mount and process of the record.
func (r *record) alive() bool {
	if !r.Complete || r.Boot != bootID() {
		return false
	}
	if r.Mode != ModeLoop && !r.helperLives() || r.ForPID != 0 && !lives(r.ForPID, r.ForStart) {
		return false
	}
	return r.Mode == ModeFUSE || r.ours()
}

func (r *record) helperLives() bool { return lives(r.HelperPID, r.HelperStart) }

// lives reports whether the process with this start time still exists.
func lives(pid int, start uint64) bool {
	now, ok := processStart(pid)
	return ok && now == start
}

// view is the attachment with its present mount point: users may unmount with umount(8).
func (r *record) view() Attached {
	a := r.Attached
	a.MountPoint = ""
	points, _ := r.mountPoints()
	for _, p := range points {
		if a.MountPoint == "" || p == r.LastMountPoint {
			a.MountPoint = p
		}
	}
	return a
}

// mountPoints returns where the volume is mounted, last first.
func (r *record) mountPoints() ([]string, error) {
	if r.Loop >= 0 {
		if !r.ours() {
			return nil, nil
		}
		return r.loopMounts()
	}
	if r.LastMountPoint == "" {
		return nil, nil
	}
	return r.servedMounts()
}

// servedMounts returns where the FUSE file system of the record is mounted. The number alone would not do: the kernel
// gives that of a mount that is gone to the next one, whosever that is.
func (r *record) servedMounts() ([]string, error) {
	if r.FUSEDir == "" {
		return nil, nil
	}
	return mountsOf(func(m mount) bool {
		return m.typ == fuseType && m.point == r.FUSEDir &&
			(r.FUSEConnection == 0 || unix.Mkdev(m.major, m.minor) == unix.Mkdev(0, r.FUSEConnection))
	})
}

// find returns the store, locked, and the living record of an attachment.
func find(ctx context.Context, a Attached) (*store, *record, error) {
	s, err := openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.load(a.ID)
	if err == nil && (r == nil || a.ID == "") {
		err = fmt.Errorf("finding %q: %w", a.Image, ErrNotAttached)
	}
	if err == nil && !r.alive() {
		s.clean(ctx, r)
		err = fmt.Errorf("finding %q: what served it had died: %w", a.Image, ErrNotAttached)
	}
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, r, nil
}
