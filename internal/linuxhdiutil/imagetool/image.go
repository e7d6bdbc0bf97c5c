package imagetool

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"
)

// place is a container on the host: a name in an opened folder. path is
// resolved, as Apple's tools print it.
type place struct {
	dir        *hostio.Dir
	name, path string
}

// close closes the folder. Images opened from it must be closed first.
func (p place) close() { p.dir.Close() }

// sibling is another name in the same folder.
func (p place) sibling(name string) place {
	return place{dir: p.dir, name: name, path: p.dir.Path() + "/" + name}
}

// absolute resolves a path against the working folder.
func (c *call) absolute(name string) (string, error) {
	if name == "" {
		return "", &fs.PathError{Op: "opening", Path: name, Err: fs.ErrNotExist}
	}
	if filepath.IsAbs(name) || c.env.Dir == "" {
		return filepath.Abs(name)
	}
	return filepath.Join(c.env.Dir, name), nil
}

// evalLinks follows the links of a path, which must exist.
func evalLinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return "", fmt.Errorf("looking for %q: %w", path, err)
}

// existing returns the place of an image that must exist; links are followed.
func (c *call) existing(operand string) (place, error) {
	if scheme, _, ok := strings.Cut(operand, "://"); ok && slices.Contains([]string{"ram", "http", "https"}, scheme) {
		return place{}, refuse("%s images are not supported", scheme)
	}
	path, err := c.absolute(operand)
	if err == nil {
		path, err = evalLinks(path)
	}
	if err != nil {
		return place{}, err
	}
	return placeAt(path)
}

// target returns the place of an image that is to be made. The extension of the
// format is added if it is missing, as Apple's tools do. The folder must exist.
func (c *call) target(operand, extension string) (place, error) {
	path, err := c.absolute(operand)
	if err != nil {
		return place{}, err
	}
	if !strings.EqualFold(filepath.Ext(path), extension) {
		last := operand[strings.LastIndexByte(operand, filepath.Separator)+1:]
		if last == "" || last == "." || last == ".." {
			return place{}, refuse("%q names a folder: want the name of the new image", operand)
		}
		path += extension
	}
	folder, err := evalLinks(filepath.Dir(path))
	if err != nil {
		return place{}, err
	}
	return placeAt(filepath.Join(folder, filepath.Base(path)))
}

// placeAt opens the folder of an absolute path; the name in it need not exist.
func placeAt(path string) (place, error) {
	dir, err := hostio.OpenDir(filepath.Dir(path))
	return place{dir: dir, name: filepath.Base(path), path: path}, err
}

// isUnused reports whether no process has the image open, not even attached
// read-only, by the locks of package container: on the file itself, or on token
// and lock of a bundle.
func (p place) isUnused() bool {
	names := []string{p.name}
	if fi, err := p.dir.Lstat(p.name); err == nil && fi.IsDir() {
		names = []string{filepath.Join(p.name, "token"), filepath.Join(p.name, "lock")}
	}
	for _, name := range names {
		f, err := p.dir.Open(name, hostio.OpenOptions{})
		if err != nil { // it has no lock
			continue
		}
		err = f.TryLock()
		f.Close()
		if errors.Is(err, hostio.ErrLocked) {
			return false
		}
	}
	return true
}

// imageFile is an open image with what was found out about it.
type imageFile struct {
	container.Image
	place
	info *attach.ImageInfo // set by inspect
}

// inspect finds out once how the device is divided. After a change of the
// device it is out of date.
func (i *imageFile) inspect() (info *attach.ImageInfo, err error) {
	if i.info == nil {
		i.info, err = attach.Inspect(i.Image)
	}
	return i.info, err
}

// format is the format of an image. UDTO differs from UDRW only by the file's
// name: their bytes are the same.
func (i *imageFile) format() image.Format {
	name := i.Format()
	if name == image.UDRW && strings.EqualFold(filepath.Ext(i.name), ".cdr") {
		name = image.UDTO
	}
	f, _ := image.FormatNamed(name)
	return f
}

// tables are those of a UDIF image, nil for other images.
func (i *imageFile) tables() *udif.Image {
	if t, ok := i.Image.(container.UDIFImage); ok {
		return t.UDIF()
	}
	return nil
}

// access is how a verb opens an image. Verbs that only describe an image work
// on one that is attached; those that copy its content must not see it change.
type access int

const (
	peek   access = iota // for reading, whatever other processes do
	read                 // for reading, while no process writes to it
	change               // for reading and writing
)

// withImage opens an image and calls f. If it is in use, the attachments are
// listed once, which releases those of dead processes, and the image is opened
// again. The errors of closing it are part of the result: they may be the first
// report of a failed write.
func (c *call) withImage(operand string, how access, f func(i *imageFile) error) (err error) {
	p, err := c.existing(operand)
	if err != nil {
		return err
	}
	defer p.close()
	img, err := c.open(p, how)
	if how != peek && errors.Is(err, container.ErrInUse) {
		if _, e := c.listLiving(); e == nil { // what a dead process left may have locked it
			img, err = c.open(p, how)
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	if how != peek {
		if err := c.checkSourceKeys(img); err != nil {
			return err
		}
	}
	return f(img)
}

// open opens an image, with the passphrase from stdin where it needs one and
// the options name stdin. It refuses an image of another program, because its
// bytes are not sectors, unless an image key or the extension .raw declares
// that they are. Other extensions do not: images of QEMU are often called .img.
func (c *call) open(p place, how access) (*imageFile, error) {
	img, err := c.openContainer(p, how)
	if err != nil {
		return nil, err
	}
	found, err := container.ForeignFormat(img)
	if err == nil && found != "" && !c.isForcedRaw() && !strings.EqualFold(filepath.Ext(p.name), ".raw") {
		err = &container.UnsupportedError{Path: p.path, Found: found, Doing: "opening", Foreign: true}
	}
	if err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return &imageFile{Image: img, place: p}, nil
}

// openContainer opens an image of any kind, images of other programs as raw
// ones. It derives the keys of an encrypted image once, because that takes up
// to seconds by design.
func (c *call) openContainer(p place, how access) (container.Image, error) {
	o := container.OpenOptions{ReadOnly: how != change, Hold: how == read, Keys: c.secrets.keys[p.path]}
	img, err := container.Open(p.dir, p.name, o)
	if o.Keys != nil || !errors.Is(err, container.ErrPassphrase) {
		return img, err
	}
	c.secrets.encrypted = true
	pass, e := c.passphrase(0)
	if e != nil {
		return nil, e
	}
	if len(pass) == 0 {
		return nil, err
	}
	if err := c.deriveKeys(p, pass); err != nil {
		return nil, err
	}
	o.Keys = c.secrets.keys[p.path]
	return container.Open(p.dir, p.name, o)
}

// rawClass is the image key that takes a file for a raw image.
const rawClass = "diskimage-class=CRawDiskImage"

// sourceKeys are the image keys that are about the image which is read:
// -imagekey, unless that of the verb is about the new one.
func (c *call) sourceKeys() []string {
	if o, ok := c.verb.option("-imagekey"); ok && len(o.names) == 1 {
		return slices.Concat(c.opts["srcimagekey"], c.opts["imagekey"])
	}
	return c.opts["srcimagekey"]
}

// isForcedRaw reports whether an image key takes the file for a raw image.
func (c *call) isForcedRaw() bool { return slices.Contains(c.sourceKeys(), rawClass) }

// checkSourceKeys checks the image keys of verbs that read.
func (c *call) checkSourceKeys(img *imageFile) error {
	for _, v := range c.sourceKeys() {
		if v != rawClass || img.Format() != image.UDRW {
			return refuse("image key %q: only %s is known, for raw images", v, rawClass)
		}
	}
	return nil
}

// warnOfRaw warns of a file that is taken for a raw image and does not look
// like one: a raw image has no signature, so that every file of whole sectors
// can be one. The error is that of the device.
func (c *call) warnOfRaw(i *imageFile) error {
	if i.Format() != image.UDRW || c.isForcedRaw() {
		return nil
	}
	found, err := container.ForeignFormat(i.Image)
	switch {
	case err != nil:
		return err
	case found != "":
		c.warn("%q looks like a %s, and is taken for raw sectors because of its name", i.name, found)
	case !looksRaw(i):
		c.warn("%q has no partition map and no known file system, and is taken for raw sectors", i.name)
	}
	return nil
}

// rawMarks are of contents that have no kind here and still show a raw image:
// NTFS, ISO 9660, UDF, LUKS, LVM, HFS and SquashFS. Offsets are in bytes.
var rawMarks = []struct {
	at    int64
	magic string
}{
	{3, "NTFS    "}, {32769, "CD001"}, {32769, "BEA01"}, {0, "LUKS\xba\xbe"}, {512, "LABELONE"}, {1024, "BD"},
	{0, "hsqs"},
}

// looksRaw reports whether a device has a partition map or a volume, or starts
// with zeros as a blank one does.
func looksRaw(i *imageFile) bool {
	info, err := i.inspect()
	if err != nil || info.Scheme != attach.SchemeNone || info.Whole.AppleName != "" {
		return true // the verb reports what cannot be read
	}
	head, err := readHead(i, 64<<10)
	if err != nil {
		return true
	}
	for _, m := range rawMarks {
		if m.at < int64(len(head)) && bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
			return true
		}
	}
	return len(bytes.Trim(head, "\x00")) == 0
}

// refuse is a failure with a message of our own and without a cause.
func refuse(format string, args ...any) error {
	return &refusal{words: fmt.Sprintf(format, args...)}
}
