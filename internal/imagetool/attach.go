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
	"dmgbench/internal/container/udif"
	diskimage "dmgbench/internal/image"
)

// attach is the verb of hdiutil.
func (c *call) attach() error {
	r, policy, err := c.attachRequest()
	if err != nil {
		return err
	}
	return c.attachOperand(r, policy)
}

// attachRequest reads the options of attach.
func (c *call) attachRequest() (r attach.Request, policy string, err error) {
	r, err = c.mountRequest()
	r.ReadOnly, r.Browse = c.has("-readonly"), !c.has("-nobrowse")
	if policy = strings.ToLower(c.value("-mount")); policy == "" {
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
	for _, pair := range [][2]string{{"-readonly", "-readwrite"}, {"-kernel", "-nokernel"}, {"-verify", "-noverify"}} {
		if c.has(pair[0]) && c.has(pair[1]) {
			return r, policy, misused("both %s and %s", pair[0], pair[1])
		}
	}
	if r.NoMount && r.MountPoint != "" && err == nil {
		err = misused("a place to mount, and no mounting")
	}
	return r, policy, err
}

// mountRequest reads the options of where to mount.
func (c *call) mountRequest() (r attach.Request, err error) {
	given := ""
	for _, name := range []string{"-mountpoint", "-mountroot", "-mountrandom"} {
		if !c.has(name) {
			continue
		}
		if given != "" {
			return r, misused("more than one of -mountpoint, -mountroot, -mountrandom")
		}
		given, r.MakePoint, r.RandomName = name, name == "-mountpoint", name == "-mountrandom"
		folder, err := c.mountFolder(c.value(name), r.MakePoint)
		if err != nil {
			return r, err
		}
		if r.MountRoot = folder; r.MakePoint {
			r.MountPoint, r.MountRoot = folder, ""
		}
	}
	return r, nil
}

// mountFolder is the folder to mount on. If it is to be made, only its parent must exist.
func (c *call) mountFolder(name string, make bool) (string, error) {
	path, err := c.absolute(name)
	if err != nil {
		return "", err
	}
	real, err := evalLinks(path)
	if make && errors.Is(err, fs.ErrNotExist) {
		real, err = evalLinks(filepath.Dir(path))
		real = filepath.Join(real, filepath.Base(path))
	}
	return real, err
}

// attachImage is `diskutil image attach`.
func (c *call) attachImage() error {
	r := attach.Request{ReadOnly: c.has("--readOnly"), Browse: !c.has("--nobrowse")}
	policies := map[string]string{"": "required", "forcemount": "required", "automount": "optional",
		"nomount": "suppressed"}
	policy := policies[strings.ToLower(c.value("--mountPolicy"))]
	r.NoMount = c.has("--noMount") || policy == "suppressed"
	if r.NoMount && (c.has("--mountPoint") || c.has("--mountOptions")) {
		return misused("--mountPoint and --mountOptions conflict with noMount")
	}
	for _, o := range strings.FieldsFunc(c.value("--mountOptions"), func(r rune) bool { return r == ',' }) {
		switch o {
		case "nobrowse":
			r.Browse = false
		case "rdonly":
			r.ReadOnly = true
		case "owners", "noowners":
			on := o == "owners"
			r.Owners = &on
		default:
			return refuse("mount option %q is not known: want nobrowse, rdonly, owners or noowners", o)
		}
	}
	if c.has("--mountPoint") {
		point, err := c.mountFolder(c.value("--mountPoint"), true)
		if err != nil {
			return err
		}
		r.MountPoint, r.MakePoint = point, true
	}
	return c.attachOperand(r, policy)
}

// attachOperand attaches the image that is named first and prints its devices.
func (c *call) attachOperand(r attach.Request, policy string) error {
	p, err := c.existing(c.operands[0])
	if err != nil {
		return err
	}
	defer p.close()
	r.Image = p.path
	a, err := c.findImage(p.path)
	if err != nil {
		return err
	}
	if a == nil || a.MountPoint == "" {
		if err := c.checkPointFree(r.MountPoint); err != nil {
			return err
		}
	}
	var i *image
	owners, progress := a != nil && a.Owners, (*progress)(nil)
	if a == nil {
		progress = c.newProgress(0)
	}
	if a == nil || !a.Encrypted { // the devices of an attached encrypted image are printed without its passphrase
		if i, r.Info, err = c.inspectForAttach(p, a == nil); err != nil {
			return err
		}
		owners = r.Info.Owners()
	}
	if !owners {
		r.Owners = nil // as on a Mac, -owners on has no effect on a file system without owners
	}
	r.Keys = c.secrets.keys[p.path]
	if a != nil {
		return c.attachAgain(*a, r, policy)
	}
	got, err := c.attachNew(r, policy)
	if err != nil {
		return err
	}
	progress.at(0)
	if got.Image != p.path { // it was attached under another name
		return c.attachAgain(got, r, policy)
	}
	c.warnOfAttached(got)
	return c.printAttached(got, i)
}

// inspectForAttach opens the image once for everything that attach has to know: whether it can be served, its
// partition map, its volume, and for hdiutil, which attaches no damaged data, its checksums. The image is closed; only its
// partition map is of use.
func (c *call) inspectForAttach(p place, verify bool) (i *image, info *attach.ImageInfo, err error) {
	if i, err = c.open(p, true); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	if i.Format() == diskimage.ASIF && c.tool == "hdiutil" {
		return i, nil, refuse("this image format is not supported by hdiutil. Please use 'diskutil image attach'")
	}
	if err := errors.Join(c.warnOfRaw(i), c.checkSourceKeys(i)); err != nil {
		return i, nil, err
	}
	_, _, _ = i.partitionMap() // kept for the list of devices
	if info, err = attach.Inspect(i); err != nil {
		info = nil // attach inspects it again, and reports what it cannot read
	}
	err = nil
	if verify && c.tool == "hdiutil" && !c.has("-noverify") {
		err = c.checkSums(i)
	}
	return i, info, err
}

// checkSums refuses an image with data that differs from its stored checksums. `diskutil image` computes none.
func (c *call) checkSums(i *image) error {
	im := tablesOf(i)
	if im == nil {
		return nil
	}
	report, err := im.Verify(c.ctx, udif.StreamOptions{})
	if err != nil {
		return err
	}
	bad := report.Err()
	if bad != nil && c.has("-ignorebadchecksums") {
		c.warn("%v", bad)
		bad = nil
	}
	if bad != nil {
		return &refusal{words: "corrupt image", err: bad}
	}
	return nil
}

// attachNew attaches, without mounting if it has no volume to mount and the policy allows that.
func (c *call) attachNew(r attach.Request, policy string) (attach.Attached, error) {
	a, err := c.env.Attacher.Attach(c.ctx, r)
	if policy == "optional" && errors.Is(err, attach.ErrNoFileSystem) {
		r.NoMount = true
		a, err = c.env.Attacher.Attach(c.ctx, r)
	}
	return a, err
}

// attachAgain mounts an attached image if it is not mounted and should be, and prints it.
func (c *call) attachAgain(a attach.Attached, r attach.Request, policy string) error {
	const already = "it is attached already, "
	if a.ReadOnly && c.has("-readwrite") {
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
		case policy != "optional" || !errors.Is(err, attach.ErrNoFileSystem):
			return err
		}
	}
	c.warnOfAttached(a)
	return c.printAttached(a, nil)
}

// warnOfAttached prints the warnings of an attachment.
func (c *call) warnOfAttached(a attach.Attached) {
	for _, w := range a.Warnings {
		c.warn("%s", w)
	}
	if a.Mode == attach.ModeFUSE && a.MountPoint == "" {
		c.printf("no loop device: the device is the file %s", a.Device)
	}
}

// checkPointFree refuses to mount over the volume of another image.
func (c *call) checkPointFree(folder string) error {
	if folder == "" {
		return nil
	}
	all, err := c.listLiving()
	for _, a := range all {
		if a.MountPoint == folder {
			words := fmt.Sprintf("Resource busy: the volume of %q is mounted on %q", a.Image, folder)
			return &refusal{words: words, err: syscall.EBUSY}
		}
	}
	return err
}

// listLiving lists the attached images. The attacher reports each dead one once, so this prints it.
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
	for _, a := range list {
		if a.Image == path {
			return &a, nil
		}
	}
	return nil, err
}

// findAttached returns the attachment of a device or a mount point; names of devices may lack /dev/.
func (c *call) findAttached(operand string) (attach.Attached, error) {
	list, err := c.listLiving()
	if err != nil {
		return attach.Attached{}, err
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
		whole := deviceName(a)
		if device == whole || device == a.Device || device == a.Partition || strings.HasPrefix(device, whole+"p") ||
			a.MountPoint != "" && a.MountPoint == path {
			return a, nil
		}
	}
	return attach.Attached{}, fs.ErrNotExist
}

// attachMade attaches what create has made. An image without a volume to mount stays.
func (c *call) attachMade(path string, pass []byte) error {
	p, err := at(path)
	if err != nil {
		return err
	}
	defer p.close()
	if len(pass) > 0 {
		if err := c.deriveKeys(p, pass); err != nil {
			return err
		}
	}
	a, err := c.env.Attacher.Attach(c.ctx, attach.Request{Image: path, Browse: true, Keys: c.secrets.keys[path]})
	if err != nil {
		return fmt.Errorf("%q was created and could not be attached: %w", path, err)
	}
	if !c.has("-plist") {
		if err := c.printMade(path); err != nil {
			return err
		}
	}
	c.warnOfAttached(a)
	return c.printAttached(a, nil)
}

// detach is the verb of hdiutil, eject that of diskutil.
func (c *call) detach() error { return c.detachOperand("%[1]q ejected.\n") }
func (c *call) eject() error  { return c.detachOperand("Disk %[2]s ejected\n") }

// detachOperand detaches and prints what was lost, which is a failure without force: the image is detached, but not all
// of the data is in it.
func (c *call) detachOperand(done string) error {
	a, err := c.findAttached(c.operands[0])
	if err != nil {
		return err
	}
	lost, err := c.env.Attacher.Detach(c.ctx, a, c.has("-force"))
	for i, l := range lost {
		if !slices.Contains(lost[:i], l) {
			c.printf("lost: %s", l)
		}
	}
	if err == nil && len(lost) > 0 && !c.has("-force") {
		c.printf("%q is detached, but some writes were lost", shortName(a))
		return &exitStatus{1}
	}
	if err != nil {
		return c.reportBusy(a, err)
	}
	_, err = fmt.Fprintf(c.out, done, shortName(a), deviceName(a))
	return err
}

// reportBusy prints the failure of hdiutil on a busy volume, which has a message and a status of its own.
func (c *call) reportBusy(a attach.Attached, err error) error {
	if text, errno, _ := describeError(err); c.tool == "hdiutil" && int(errno) == statusBusy {
		fmt.Fprintf(c.err, "hdiutil: couldn't unmount %q - %s\n", shortName(a), text)
		if c.has("-verbose") {
			fmt.Fprintf(c.err, "hdiutil: detach: %v\n", err)
		}
		return &exitStatus{statusBusy}
	}
	return err
}

// unmount unmounts the volume and leaves the image attached.
func (c *call) unmount() error {
	a, err := c.findAttached(c.operands[0])
	if err != nil {
		return err
	}
	if a.MountPoint == "" {
		return refuse("%s is not mounted", shortName(a))
	}
	if err := c.env.Attacher.Unmount(c.ctx, a, c.has("-force")); err != nil {
		return c.reportBusy(a, err)
	}
	fmt.Fprintf(c.out, "%q unmounted successfully.\n", a.MountPoint)
	return nil
}

// mountvol mounts the volume of an attached image; a mounted one is only printed.
func (c *call) mountvol() error {
	r, err := c.mountRequest()
	if err != nil {
		return err
	}
	a, err := c.findAttached(c.operands[0])
	if err != nil {
		return err
	}
	if a.MountPoint == "" {
		if err := c.checkPointFree(r.MountPoint); err != nil {
			return err
		}
		if a, err = c.env.Attacher.Mount(c.ctx, a, r); err != nil {
			return err
		}
	}
	return c.printAttached(a, nil)
}

// trim gives back the space that a mounted volume does not use.
func (c *call) trim() error {
	a, err := c.findAttached(c.operands[0])
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
