package imagetool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/linuxhdiutil/attach"
)

// Policies about images without a volume that can be mounted, as -mount of
// hdiutil names them.
const (
	mountRequired   = "required"
	mountOptional   = "optional"
	mountSuppressed = "suppressed"
)

// attach is the verb of both tools: it attaches the image that is named first
// and prints its devices.
//
// The image is opened once, before anything is attached: for its partition map
// and volumes, which the attacher takes over, and for its checksums. An image
// that is attached already is not attached again: its present devices are
// printed, its volume is mounted if it is not, and warnings name what differs
// from the request.
func (c *call) attach() error {
	r, policy, err := c.attachRequest()
	if err != nil {
		return err
	}
	p, err := c.existing(c.operands[0])
	if err != nil {
		return err
	}
	defer p.close()
	r.Image = p.path
	a, err := c.findImage(p.path)
	if err == nil && (a == nil || a.MountPoint == "") {
		err = c.checkPointFree(r.MountPoint)
	}
	if err != nil {
		return err
	}
	if a != nil {
		return c.attachAgain(*a, r, policy)
	}
	progress := c.newProgress(0)
	if r.Info, err = c.inspectForAttach(p); err != nil {
		return err
	}
	r.Keys = c.secrets.keys[p.path]
	got, err := c.env.Attacher.Attach(c.ctx, r)
	if policy == mountOptional && errors.Is(err, attach.ErrNoFileSystem) {
		r.NoMount = true
		got, err = c.env.Attacher.Attach(c.ctx, r)
	}
	if err != nil {
		return err
	}
	progress(0)
	if got.Image != p.path { // it was attached under another name
		return c.attachAgain(got, r, policy)
	}
	return c.printAttached(got)
}

// attachRequest reads the options of attach, of both tools, and the policy
// about images without a volume to mount. An error is a misuse or a folder that
// is missing: the image has not been opened yet.
func (c *call) attachRequest() (r attach.Request, policy string, err error) {
	r, err = c.mountRequest()
	// Without effect: -nobrowse, as Linux has no Finder from which to hide a
	// volume, and owners, which count where the file system has them.
	r.ReadOnly = c.has("readonly")
	policy = cmp.Or(strings.ToLower(c.value("mount")), map[string]string{"forcemount": mountRequired,
		"automount": mountOptional, "nomount": mountSuppressed}[strings.ToLower(c.value("mountpolicy"))], mountRequired)
	r.NoMount = c.has("nomount") || policy == mountSuppressed
	switch {
	case c.has("kernel"):
		r.ServedBy = attach.ServedByKernel
	case c.has("nokernel"):
		r.ServedBy = attach.ServedByHelper
	}
	for _, o := range strings.FieldsFunc(c.value("mountoptions"), func(r rune) bool { return r == ',' }) {
		switch o {
		case "nobrowse", "owners", "noowners":
		case "rdonly":
			r.ReadOnly = true
		default:
			return r, policy, refuse("mount option %q is not known: want nobrowse, rdonly, owners or noowners", o)
		}
	}
	if r.NoMount && err == nil && (r.MountPoint != "" || c.has("mountoptions")) {
		err = usageErrorf("a place to mount, and no mounting")
	}
	return r, policy, err
}

// mountRequest reads the options of where to mount; at most one is given. Of
// the folder on which -mountpoint mounts only the parent must exist. Links are
// followed, as the kernel's table of mounts will have it.
func (c *call) mountRequest() (r attach.Request, err error) {
	for _, key := range []string{"mountpoint", "mountroot", "mountrandom"} {
		if !c.has(key) {
			continue
		}
		path, err := c.absolute(c.value(key))
		if err != nil {
			return r, err
		}
		r.RandomName = key == "mountrandom"
		r.MountRoot, err = resolve(path)
		if key != "mountpoint" {
			return r, err
		}
		if r.MountPoint, r.MountRoot = r.MountRoot, ""; errors.Is(err, fs.ErrNotExist) {
			r.MountPoint, err = filepath.EvalSymlinks(filepath.Dir(path))
			r.MountPoint = filepath.Join(r.MountPoint, filepath.Base(path))
		}
		return r, err
	}
	return r, nil
}

// inspectForAttach opens the image once for everything that attach has to know:
// whether it can be served, its partition map, its volumes, and for hdiutil,
// which attaches no damaged data, its checksums.
func (c *call) inspectForAttach(p place) (info *attach.ImageInfo, err error) {
	i, err := c.open(p, peek)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	if i.Format() == image.ASIF && c.tool == "hdiutil" {
		return nil, refuse("this image format is not supported by hdiutil. Please use 'diskutil image attach'")
	}
	if info, err = i.inspect(); err != nil || c.tool != "hdiutil" || c.has("noverify") {
		return info, err
	}
	if err = c.compareSums(i, "ignorebadchecksums"); errors.Is(err, container.ErrData) {
		err = refuse("corrupt image%.0w", err)
	}
	return info, err
}

// attachAgain mounts an attached image if it is not mounted and should be, and
// prints it. What the request wants otherwise, such as writing to an image that
// is attached read-only, takes a detach first: that is a warning, because
// programs attach an image again to find its mount point.
func (c *call) attachAgain(a attach.Attached, r attach.Request, policy string) error {
	const already = "it is attached already, "
	if a.ReadOnly && c.has("readwrite") {
		c.warn(already + "read-only: detach it first")
	}
	if r.ReadOnly && !a.ReadOnly {
		c.warn(already + "and can be written to: detach it first")
	}
	if a.MountPoint != "" && r.MountPoint != "" && r.MountPoint != a.MountPoint {
		c.warn(already+"and mounted on %q: detach it first", a.MountPoint)
	}
	if a.MountPoint == "" && !r.NoMount {
		got, err := c.env.Attacher.Mount(c.ctx, a, r)
		switch {
		case err == nil:
			a = got
		case policy != mountOptional || !errors.Is(err, attach.ErrNoFileSystem):
			return err
		}
	}
	return c.printAttached(a)
}

// checkPointFree refuses to mount over the volume of another image: its files
// would disappear below the new mount, and programs that use them would not
// notice. Mounts of other programs are left to the kernel.
func (c *call) checkPointFree(folder string) error {
	if folder == "" {
		return nil
	}
	all, err := c.listLiving()
	for _, a := range all {
		if a.MountPoint == folder {
			return refuse("Resource busy: the volume of %q is mounted on %q%.0w", a.Image, folder, syscall.EBUSY)
		}
	}
	return err
}

// listLiving lists the attached images. The attacher reports each dead one
// once, so this prints it.
func (c *call) listLiving() (list []attach.Attached, err error) {
	all, err := c.env.Attacher.List(c.ctx)
	for _, a := range all {
		if a.Dead {
			fmt.Fprintf(c.err, "%s: lost: %q: %s\n", c.tool, a.Image, describeDeath(a))
		} else {
			list = append(list, a)
		}
	}
	return list, err
}

// findImage returns the attachment of an image, or nil.
func (c *call) findImage(path string) (*attach.Attached, error) {
	list, err := c.listLiving()
	if i := slices.IndexFunc(list, func(a attach.Attached) bool { return a.Image == path }); i >= 0 {
		return &list[i], nil
	}
	return nil, err
}

// onAttachment finds the attachment of the device or mount point that is named
// first; names of devices may lack /dev/. The operand may be the whole disk, any
// of its partitions, or in mode fuse the name by which attach and info print it.
// Links in the path of a mount point are followed. The error is fs.ErrNotExist
// if no attachment fits.
func onAttachment(verb func(*call, attach.Attached) error) func(*call) error {
	return func(c *call) error {
		list, err := c.listLiving()
		if err != nil {
			return err
		}
		device := c.operands[0]
		path, _ := c.absolute(device)
		if !slices.ContainsFunc(list, func(a attach.Attached) bool { return a.MountPoint == path }) {
			// A mount point itself may be of a file system that does not answer.
			if real, err := filepath.EvalSymlinks(path); err == nil {
				path = real
			}
		}
		if !strings.HasPrefix(device, "/") {
			device = "/dev/" + device
		}
		for _, a := range list {
			whole := deviceName(a)
			if device == whole || device == a.Device || device == a.Partition || strings.HasPrefix(device, whole+"p") ||
				a.MountPoint != "" && a.MountPoint == path {
				return verb(c, a)
			}
		}
		return fs.ErrNotExist
	}
}

// detach is the verb of hdiutil, and eject of diskutil. It prints what was
// lost, which is a failure without force: the image is detached, but not all of
// the data is in it.
func (c *call) detach(a attach.Attached) error {
	lost, err := c.env.Attacher.Detach(c.ctx, a, c.has("force"))
	for _, l := range slices.Compact(lost) {
		c.messagef("lost: %s", l)
	}
	switch {
	case err != nil:
		return c.reportBusy(a, err)
	case len(lost) > 0 && !c.has("force"):
		return c.failAs("%q is detached, but some writes were lost", shortName(a))
	case c.tool == "diskutil":
		return c.printf("Disk %s ejected\n", deviceName(a))
	}
	return c.printf("%q ejected.\n", shortName(a))
}

// reportBusy prints the failure of hdiutil on a busy volume, which has a
// message and a status of its own.
func (c *call) reportBusy(a attach.Attached, err error) error {
	text, errno, _ := describeError(err)
	if c.tool != "hdiutil" || errno != syscall.EBUSY {
		return err
	}
	fmt.Fprintf(c.err, "hdiutil: couldn't unmount %q - %s\n", shortName(a), text)
	if c.has("verbose") {
		fmt.Fprintf(c.err, "hdiutil: detach: %v\n", err)
	}
	return &reportedError{statusBusy}
}

// unmount unmounts the volume and leaves the image attached.
func (c *call) unmount(a attach.Attached) error {
	if a.MountPoint == "" {
		return refuse("%s is not mounted", shortName(a))
	}
	if err := c.env.Attacher.Unmount(c.ctx, a, c.has("force")); err != nil {
		return c.reportBusy(a, err)
	}
	return c.printf("%q unmounted successfully.\n", a.MountPoint)
}

// mountvol mounts the volume of an attached image; a mounted one is only
// printed.
func (c *call) mountvol(a attach.Attached) error {
	r, err := c.mountRequest()
	if err == nil && a.MountPoint == "" {
		if err = c.checkPointFree(r.MountPoint); err == nil {
			a, err = c.env.Attacher.Mount(c.ctx, a, r)
		}
	}
	if err != nil {
		return err
	}
	return c.printAttached(a)
}

// trim gives back the space that a mounted volume does not use.
func (c *call) trim(a attach.Attached) error {
	n, err := c.env.Attacher.Trim(c.ctx, a.MountPoint)
	if err != nil {
		return err
	}
	return c.printf("%s: trimmed %d bytes\n", a.MountPoint, n)
}
