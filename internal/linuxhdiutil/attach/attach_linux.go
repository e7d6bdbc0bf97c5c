package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// Attach makes a block device of the container and mounts its volume. For a
// container that is attached already it returns the existing attachment
// unchanged. Errors: [ErrNoFileSystem], [ErrNoLoop], [ErrNoFUSE], and those of
// package container, such as [container.ErrInUse] for a container that another
// process has open or has attached. After an error everything is undone.
func Attach(ctx context.Context, req Request) (Attached, error) {
	if !filepath.IsAbs(req.Image) {
		return Attached{}, fmt.Errorf("attaching %q: the path is not absolute", req.Image)
	}
	s, err := openStore(ctx)
	if err != nil {
		return Attached{}, err
	}
	defer s.close()
	id, err := identity(req.Image)
	if err != nil {
		return Attached{}, err
	}
	r, err := s.load(id)
	if err != nil {
		return Attached{}, err
	}
	if r != nil && r.alive() {
		return r.present(), nil
	}
	if r != nil {
		s.clean(ctx, r)
	}
	r, info, err := s.newRecord(id, req)
	if info != nil && req.Keys == nil {
		defer info.keys.Wipe()
	}
	if err == nil {
		err = s.attach(ctx, r, req, info)
	}
	if err != nil {
		if r != nil {
			s.clean(ctx, r)
		}
		return Attached{}, fmt.Errorf("attaching %q: %w", req.Image, err)
	}
	return r.present(), nil
}

// newRecord inspects the container and records what will be attached, before
// anything is. The caller wipes the keys in the info, after an error too.
func (s *store) newRecord(id string, req Request) (*record, *ImageInfo, error) {
	var info *ImageInfo
	var err error
	if req.Info != nil {
		given := *req.Info
		given.keys, info = req.Keys, &given
	} else if info, err = openAndInspect(req.Image, req.Passphrase, req.Keys); err != nil {
		return nil, nil, err
	}
	r := &record{Boot: bootID(), Loop: -1}
	r.ID, r.Image, r.Format, r.Size = id, req.Image, info.format, info.size
	r.ReadOnly, r.Since, r.Warnings = req.ReadOnly, wall.Wall(), info.notes()
	r.Filesystem, r.VolumeName, r.Encrypted = info.volume().Kernel, info.volume().Label, info.keys != nil
	r.Offset, _ = info.extent()
	if req.Temporary {
		r.ForPID = os.Getpid()
		r.ForStart, _ = processStart(r.ForPID)
	}
	fs, known := FilesystemOf(r.Filesystem)
	r.Owners = known && fs.Owners
	if r.Mode, err = modeOf(r, req, fs, known); err != nil {
		if info.Damage != nil {
			err = fmt.Errorf("%w (%w)", err, info.Damage)
		}
		return nil, info, err
	}
	return r, info, s.save(r)
}

// modeOf chooses the mode of an attachment, or returns why the image cannot be
// attached.
func modeOf(r *record, req Request, fs FS, known bool) (string, error) {
	plain := Loops() && r.Format == container.UDRW && !r.Encrypted
	switch mountable := Loops() && fs.MountableByKernel; {
	case !req.NoMount && !known:
		return "", noDriver(r.Filesystem)
	case !req.NoMount && !r.Owners && req.Owners != nil && *req.Owners:
		return "", fmt.Errorf("honouring owners: %s keeps none: %w", fs.Name, errors.ErrUnsupported)
	case req.ServedBy == ServedByKernel && !plain:
		return "", fmt.Errorf("attaching without a process: that takes an unencrypted UDRW image and loop devices: %w",
			errors.ErrUnsupported)
	case req.ServedBy == ServedByKernel && !req.NoMount && !mountable:
		return "", noDriver(r.Filesystem)
	case !req.NoMount && fs.Kernel == "exfat" && !mountable:
		return ModeFUSE, nil
	case !req.NoMount && !fs.MountableByKernel:
		return "", noDriver(r.Filesystem)
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

// attach does the steps of an attachment, and records before each what would
// have to be undone: serve the image if the kernel cannot, make the loop
// device, find the partition, mount, and prepare the volume. detachSteps undo
// them.
func (s *store) attach(ctx context.Context, r *record, req Request, info *ImageInfo) (err error) {
	switch r.Mode {
	case ModeLoop:
		err = s.loopRaw(r)
	case ModeFUSELoop:
		if err = s.serve(ctx, r, req, info, s.path(r.ID), false); err == nil {
			err = s.loopServed(r)
		}
	case ModeFUSE:
		err = s.serveAlone(ctx, r, req, info)
	}
	if err == nil && r.Loop >= 0 {
		err = s.findPartition(r, info)
	}
	if err == nil && r.Loop >= 0 && !req.NoMount {
		err = s.mount(r, req)
	}
	if err == nil && r.LastMountPoint != "" {
		s.prepareMounted(ctx, r, req)
	}
	if err != nil {
		return err
	}
	r.Complete = true
	return s.save(r)
}

// openRaw opens the image file for a loop device. The device keeps the open
// file, and with it the lock, which is the one that package container takes: as
// long as the device exists, no other process opens the image for writing.
// direct reports whether the host's page cache is bypassed.
func openRaw(r *record) (file *os.File, direct bool, err error) {
	open := func(flags int) (*os.File, error) {
		return os.OpenFile(r.Image, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	how, lock := os.O_RDWR, unix.LOCK_EX
	if r.ReadOnly {
		how, lock = os.O_RDONLY, unix.LOCK_SH
	}
	// Where direct I/O is refused the device uses the page cache, and the
	// attachment has a warning.
	if file, err = open(how | unix.O_DIRECT); err == nil {
		direct = true
	} else if errors.Is(err, unix.EINVAL) {
		file, err = open(how)
	}
	if err != nil {
		return nil, false, err
	}
	err = retryEINTR(func() error { return unix.Flock(int(file.Fd()), lock|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("locking %q: %w", r.Image, container.ErrInUse)
	}
	if id, e := identity(r.Image); err == nil && (e != nil || id != r.ID) {
		err = fmt.Errorf("opening %q: it was replaced by something else", r.Image)
	}
	if err != nil {
		file.Close()
		return nil, false, err
	}
	return file, direct, nil
}

// Largest requests to an image file and to a FUSE file, in KiB; the kernel cuts
// larger ones.
const (
	rawRequestKB    = 1280
	servedRequestKB = maxRequest >> 10
)

// loopRaw attaches the image file itself.
func (s *store) loopRaw(r *record) error {
	file, direct, err := openRaw(r)
	if cannotWrite(err) && !r.ReadOnly {
		r.ReadOnly = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("attached read-only: %v", err))
		file, direct, err = openRaw(r)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	settings := loopSettings{maxSectorsKB: rawRequestKB, direct: direct}
	if info.Size() > r.Size { // a trailer follows the sectors: such an image is read-only
		settings.size, r.ReadOnly = r.Size, true
	}
	return s.loop(r, file, settings)
}

// loopServed attaches the FUSE file.
func (s *store) loopServed(r *record) error {
	how := os.O_RDWR
	if r.ReadOnly {
		how = os.O_RDONLY
	}
	file, err := os.OpenFile(filepath.Join(r.FUSEDir, deviceName), how|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the served device: %w", err)
	}
	defer file.Close()
	return s.loop(r, file, loopSettings{maxSectorsKB: servedRequestKB, direct: true})
}

// loop makes a loop device of the file and records it.
func (s *store) loop(r *record, file *os.File, settings loopSettings) error {
	settings.tag, settings.readOnly = r.tag(), r.ReadOnly
	n, err := setLoop(file, settings)
	if err != nil {
		return err
	}
	r.Loop = n
	info, ok := loopStatus(n)
	if !ok {
		return fmt.Errorf("asking for the status of %q: %w", loopPath(n), unix.ENXIO)
	}
	r.Sequence = loopSequence(n)
	r.DirectIO = info.Flags&unix.LO_FLAGS_DIRECT_IO != 0
	r.Device = loopPath(n)
	if !r.DirectIO {
		r.Warnings = append(r.Warnings, "the loop device works through the page cache of the host")
	}
	return s.save(r)
}

// serve starts the process that serves the container on the folder at: the
// device and its partitions as files, or with volume the files of its exFAT
// volume. Files of a volume belong to the user who called sudo, and if root
// attaches, all users may read them, as those of a mount by the kernel.
func (s *store) serve(ctx context.Context, r *record, req Request, info *ImageInfo, at string, volume bool) error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	if !volume {
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	uid, gid := owner()
	o := serveRequest{Image: r.Image, ReadOnly: r.ReadOnly, MountAt: at, Volume: volume, End: s.path(r.ID + ".end"),
		Others: volume && os.Geteuid() == 0, UID: uint32(uid), GID: uint32(gid)}
	for _, p := range info.partitions() {
		if !volume || p.Index+1 == info.Regions[info.mount].Number {
			o.Parts = append(o.Parts, sectionOf(p))
		}
	}
	r.FUSEDir = at
	a, err := s.spawn(ctx, r, req.HelperArgs, o, info.keys)
	if err != nil {
		return err
	}
	r.ReadOnly = r.ReadOnly || a.ReadOnly
	r.Warnings = append(r.Warnings, a.Warnings...)
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		return fmt.Errorf("looking at the served device: %w", err)
	}
	r.FUSEConnection = unix.Minor(st.Dev)
	return s.save(r)
}

// serveAlone is mode fuse: the files of a volume, or without a mount the device
// as a file.
func (s *store) serveAlone(ctx context.Context, r *record, req Request, info *ImageInfo) error {
	if req.NoMount {
		if err := s.serve(ctx, r, req, info, s.path(r.ID), false); err != nil {
			return err
		}
		r.Device = filepath.Join(r.FUSEDir, deviceName)
		r.Partition = r.Device
		if info.mount >= 0 {
			r.Partition = filepath.Join(r.FUSEDir, sectionOf(*info.Regions[info.mount].Part).Name)
		}
		return nil
	}
	point, made, err := mountPoint(req, r.VolumeName, r.Image)
	if err != nil {
		return err
	}
	r.LastMountPoint, r.MadeMountPoint = point, made
	r.Device, r.Partition = s.path(r.ID), s.path(r.ID)
	return s.serve(ctx, r, req, info, point, true)
}
