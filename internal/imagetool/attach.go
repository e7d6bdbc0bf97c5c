package imagetool

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/attach"
)

// attach is the verb of hdiutil.
func (c *call) attach() error {
	r, policy, err := c.attachRequest()
	if err != nil {
		return err
	}
	return c.attachAs(c.operands[0], r, policy)
}

// attachAs attaches an image and prints its devices.
func (c *call) attachAs(operand string, r Request, policy string) error {
	path, owns, err := c.probe(operand)
	if err != nil {
		return err
	}
	r.Image, r.Keys = path, c.secrets.keys[path]
	if !owns {
		r.Owners = nil // as on a Mac, -owners on means nothing to a file system without owners
	}
	a, err := c.attached(path)
	if err != nil {
		return err
	}
	if a == nil || a.MountPoint == "" {
		if err := c.unmounted(r.MountPoint); err != nil {
			return err
		}
	}
	fresh := a == nil
	if fresh {
		progress := c.newProgress(0)
		if err := c.checkSums(operand); err != nil {
			return err
		}
		got, err := c.attachNew(r, policy)
		if err != nil {
			return err
		}
		progress.at(0)
		a, fresh = &got, got.Image == path // else it was attached by another name
	}
	if !fresh {
		if *a, err = c.again(*a, r, policy); err != nil {
			return err
		}
	}
	c.remark(*a)
	return c.printAttached(*a)
}

// again mounts what is attached already, if it is not and is to be.
func (c *call) again(a Attached, r Request, policy string) (Attached, error) {
	c.remarkAsItWas(a, r)
	if a.MountPoint != "" || r.NoMount {
		return a, nil
	}
	got, err := c.env.Attacher.Mount(c.ctx, a, r)
	if policy == "optional" && errors.Is(err, ErrNoFileSystem) {
		return a, nil
	}
	return got, err
}

// remark says what whoever attached should know.
func (c *call) remark(a Attached) {
	for _, w := range a.Warnings {
		fmt.Fprintf(c.err, "%s: attach: WARNING: %s\n", c.tool, w)
	}
	if a.Mode == attach.ModeFUSE && a.MountPoint == "" {
		fmt.Fprintf(c.err, "%s: attach: there is no loop device: the device is the file %s\n", c.tool, a.Device)
	}
}

// unmounted makes sure that no volume of another image would be hidden.
func (c *call) unmounted(folder string) error {
	all, err := c.living()
	for _, a := range all {
		if folder != "" && a.MountPoint == folder {
			return &refusal{words: fmt.Sprintf("Resource busy: the volume of %q is mounted on %q", a.Image, folder), err: syscall.EBUSY}
		}
	}
	return err
}

// remarkAsItWas says what was asked for and is not so, because the image was attached before.
func (c *call) remarkAsItWas(a Attached, r Request) {
	if a.ReadOnly && c.has("-readwrite") {
		fmt.Fprintf(c.err, "%s: attach: WARNING: it is attached already, read-only: detach it first\n", c.tool)
	}
	if r.ReadOnly && !a.ReadOnly {
		fmt.Fprintf(c.err, "%s: attach: WARNING: it is attached already, and can be written to: detach it first\n", c.tool)
	}
	if a.MountPoint != "" && r.MountPoint != "" && r.MountPoint != a.MountPoint {
		fmt.Fprintf(c.err, "%s: attach: WARNING: it is attached already, and mounted on %q: detach it first\n", c.tool, a.MountPoint)
	}
}

// attachNew attaches, and again without mounting when that is allowed and nothing can be mounted.
func (c *call) attachNew(r Request, policy string) (Attached, error) {
	a, err := c.env.Attacher.Attach(c.ctx, r)
	if policy == "optional" && errors.Is(err, ErrNoFileSystem) {
		r.NoMount = true
		a, err = c.env.Attacher.Attach(c.ctx, r)
	}
	return a, err
}

// probe finds out that the image is one that can be served, and whether its volume keeps owners.
func (c *call) probe(operand string) (path string, owns bool, err error) {
	p, err := c.existing(operand)
	if err != nil {
		return "", false, err
	}
	defer p.close()
	a, err := c.attached(p.path)
	if err != nil {
		return "", false, err
	}
	if a != nil && a.Encrypted {
		return p.path, a.Owners, nil // whoever may attach need not have the passphrase to be told
	}
	img, err := c.open(p, true)
	if err != nil {
		return "", false, err
	}
	if img.Format() == "ASIF" && c.tool == "hdiutil" {
		return "", false, errors.Join(refuse("this image format is not supported by hdiutil. Please use 'diskutil image attach'"), img.Close())
	}
	if err := c.remarkRaw(p, img); err != nil {
		return "", false, errors.Join(err, img.Close())
	}
	if vol, _, err := volume(img); err == nil && vol != nil {
		owns = attach.Identify(vol).Owners
	}
	return p.path, owns, errors.Join(c.rawKey(img), img.Close())
}

// living are the images that are attached. An attacher tells of the dead once, so whoever asked something else is told here.
func (c *call) living() ([]Attached, error) {
	all, err := c.env.Attacher.List(c.ctx)
	var list []Attached
	for _, a := range all {
		if !a.Dead {
			list = append(list, a)
			continue
		}
		fmt.Fprintf(c.err, "%s: lost: %q: %s\n", c.tool, a.Image, died(a))
	}
	return list, err
}

// attached is the attachment of an image, or nil.
func (c *call) attached(path string) (*Attached, error) {
	list, err := c.living()
	for _, a := range list {
		if a.Image == path {
			return &a, nil
		}
	}
	return nil, err
}

func (c *call) attachRequest() (r Request, policy string, err error) {
	r, err = c.mountRequest()
	r.ReadOnly = c.has("-readonly")
	r.Browse = !c.has("-nobrowse")
	policy = strings.ToLower(c.value("-mount"))
	if policy == "" {
		policy = "required"
	}
	r.NoMount = c.has("-nomount") || policy == "suppressed"
	if c.has("-owners") {
		on := strings.EqualFold(c.value("-owners"), "on")
		r.Owners = &on
	}
	switch {
	case c.has("-kernel"):
		r.ServedBy = attach.ServedByKernel
	case c.has("-nokernel"):
		r.ServedBy = attach.ServedByHelper
	}
	switch {
	case c.has("-readonly") && c.has("-readwrite"):
		err = misused("both -readonly and -readwrite")
	case c.has("-kernel") && c.has("-nokernel"):
		err = misused("both -kernel and -nokernel")
	case r.NoMount && r.MountPoint != "" && err == nil:
		err = misused("a place to mount, and no mounting")
	}
	return r, policy, err
}

// mountRequest reads where to mount.
func (c *call) mountRequest() (r Request, err error) {
	given := 0
	for _, o := range []struct {
		name string
		to   *string
	}{{"-mountpoint", &r.MountPoint}, {"-mountroot", &r.MountRoot}, {"-mountrandom", &r.MountRoot}} {
		if !c.has(o.name) {
			continue
		}
		if given++; given > 1 {
			return r, misused("more than one of -mountpoint, -mountroot, -mountrandom")
		}
		r.MakePoint = o.name == "-mountpoint"
		folder, err := c.mountFolder(c.value(o.name), r.MakePoint)
		if err != nil {
			return r, err
		}
		*o.to, r.RandomName = folder, o.name == "-mountrandom"
	}
	return r, nil
}

// attachMade attaches what create has made. Where there is nothing to mount, the image stays.
func (c *call) attachMade(path string, pass []byte) error {
	p, err := at(path)
	if err != nil {
		return err
	}
	defer p.close()
	if len(pass) > 0 {
		if err := c.unlock(p, pass); err != nil {
			return err
		}
	}
	a, err := c.env.Attacher.Attach(c.ctx, Request{Image: path, Browse: true, Keys: c.secrets.keys[path]})
	if err != nil {
		return fmt.Errorf("%q was created and could not be attached: %w", path, err)
	}
	if !c.has("-plist") {
		if err := c.tellMade(path); err != nil {
			return err
		}
	}
	c.remark(a)
	return c.printAttached(a)
}

// find is the attachment that a device or a mount point belongs to; names of devices may lack /dev/.
func (c *call) find(operand string) (Attached, error) {
	list, err := c.living()
	if err != nil {
		return Attached{}, err
	}
	device := operand
	if !strings.HasPrefix(device, "/") {
		device = "/dev/" + device
	}
	path, err := c.absolute(operand)
	if err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	for _, a := range list {
		if is(a, device, path) {
			return a, nil
		}
	}
	return Attached{}, fs.ErrNotExist
}

// whole is the device that stands for the whole image. Without a loop device the
// image is served by a process alone, which is then named by its number.
func whole(a Attached) string {
	if a.Mode != attach.ModeFUSE {
		return a.Device
	}
	return fmt.Sprintf("/dev/fuse%d", a.HelperPID)
}

// short is a device as messages name it.
func short(a Attached) string { return strings.TrimPrefix(whole(a), "/dev/") }

// is says whether a device or a mount point, resolved or not, is the attachment's.
func is(a Attached, device, path string) bool {
	return device == whole(a) || device == a.Device || device == a.Partition || strings.HasPrefix(device, whole(a)+"p") ||
		a.MountPoint != "" && a.MountPoint == path
}

func (c *call) detach() error {
	a, err := c.find(c.operands[0])
	if err != nil {
		return err
	}
	if err := c.release(a, c.has("-force")); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%q ejected.\n", short(a))
	return nil
}

// release detaches and tells what was lost, which is a failure where force was not asked for: the image is released, and
// not what it was thought to be. A busy volume has words and a status of its own.
func (c *call) release(a Attached, force bool) error {
	lost, err := c.env.Attacher.Detach(c.ctx, a, force)
	for i, l := range lost {
		if !slices.Contains(lost[:i], l) {
			fmt.Fprintf(c.err, "%s: detach: lost: %s\n", c.tool, l)
		}
	}
	if err == nil && len(lost) > 0 && !force {
		fmt.Fprintf(c.err, "%s: detach: %q is released, but not all that was written is in the image\n", c.tool, short(a))
		return &said{1}
	}
	return c.busy(a, err)
}

func (c *call) busy(a Attached, err error) error {
	if err == nil || c.tool != "hdiutil" {
		return err
	}
	if text, errno, _ := reason(err); int(errno) == statusBusy {
		fmt.Fprintf(c.err, "hdiutil: couldn't unmount %q - %s\n", short(a), text)
		if c.has("-verbose") {
			fmt.Fprintf(c.err, "hdiutil: detach: %v\n", err)
		}
		return &said{statusBusy}
	}
	return err
}

func (c *call) eject() error {
	a, err := c.find(c.operands[0])
	if err != nil {
		return err
	}
	if err := c.release(a, false); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Disk %s ejected\n", whole(a))
	return nil
}

func (c *call) unmount() error {
	a, err := c.find(c.operands[0])
	if err != nil {
		return err
	}
	if a.MountPoint == "" {
		return refuse("%s is not mounted", short(a))
	}
	if err := c.busy(a, c.env.Attacher.Unmount(c.ctx, a, c.has("-force"))); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%q unmounted successfully.\n", a.MountPoint)
	return nil
}

func (c *call) mountvol() error {
	r, err := c.mountRequest()
	if err != nil {
		return err
	}
	a, err := c.find(c.operands[0])
	if err != nil {
		return err
	}
	if a.MountPoint == "" {
		if err := c.unmounted(r.MountPoint); err != nil {
			return err
		}
		if a, err = c.env.Attacher.Mount(c.ctx, a, r); err != nil {
			return err
		}
	}
	return c.printAttached(a)
}

func (c *call) trim() error {
	a, err := c.find(c.operands[0])
	if err != nil {
		return err
	}
	n, err := c.env.Attacher.Trim(c.ctx, a.MountPoint)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: trimmed %d bytes\n", a.MountPoint, n)
	return nil
}
