package imagetool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"

	"golang.org/x/term"
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

// existing returns the place of an image that must exist; links are followed.
func (c *call) existing(operand string) (place, error) {
	if scheme, _, ok := strings.Cut(operand, "://"); ok && slices.Contains([]string{"ram", "http", "https"}, scheme) {
		return place{}, refuse("%s images are not supported", scheme)
	}
	path, err := c.absolute(operand)
	if err == nil {
		path, err = resolve(path)
	}
	if err != nil {
		return place{}, err
	}
	return placeAt(path)
}

// resolve follows the links of a path. For root its last component must not be a
// link of another user, who could make root open, or mount on, what only root
// may: that is the rule of the kernel for folders that all can write to
// (fs.protected_symlinks). What is no link is not followed, whatever it becomes.
func resolve(path string) (string, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return filepath.EvalSymlinks(path) // names what is missing
	}
	if fi.Mode()&fs.ModeSymlink == 0 {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		return filepath.Join(folder, filepath.Base(path)), err
	}
	if os.Geteuid() == 0 && hostio.StatOf(fi).UID != 0 {
		return "", refuse("%q is a link of another user, which root does not follow: name what it leads to%.0w", path,
			syscall.EACCES)
	}
	return filepath.EvalSymlinks(path)
}

// target returns the place of an image that is to be made. The extension of the
// format is added if it is missing, as Apple's tools do. The folder must exist.
func (c *call) target(operand, extension string) (place, error) {
	path, err := c.absolute(operand)
	if err != nil {
		return place{}, err
	}
	if !strings.EqualFold(filepath.Ext(path), extension) {
		if slices.Contains([]string{"", ".", ".."}, operand[strings.LastIndexByte(operand, filepath.Separator)+1:]) {
			return place{}, refuse("%q names a folder: want the name of the new image", operand)
		}
		path += extension
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
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

// contains reports whether a path is that of the image or inside its bundle.
func (i *imageFile) contains(path string) bool {
	return path == i.path || strings.HasPrefix(path, i.path+"/")
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
func (c *call) withImage(operand string, how access, f func(i *imageFile) error) error {
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
	return errors.Join(f(img), img.Close())
}

// open opens an image of any kind, if [call.checkKind] accepts it. The keys of
// an encrypted one are derived once, from the first passphrase on stdin.
func (c *call) open(p place, how access) (*imageFile, error) {
	o := container.OpenOptions{ReadOnly: how != change, Hold: how == read, Keys: c.secrets.keys[p.path]}
	img, err := container.Open(p.dir, p.name, o)
	if missing := err; o.Keys == nil && errors.Is(err, container.ErrPassphrase) {
		var pass []byte
		c.secrets.encrypted = true
		if pass, err = c.passphrase(0); err == nil && len(pass) == 0 {
			err = missing
		}
		if err == nil {
			o.Keys, err = container.UnwrapKeys(p.dir, p.name, pass)
			c.secrets.keys[p.path] = o.Keys
		}
		if err == nil {
			img, err = container.Open(p.dir, p.name, o)
		}
	}
	if err != nil {
		return nil, err
	}
	i := &imageFile{Image: img, place: p}
	if im := i.tables(); im != nil && how == read { // for compareSums
		im.KeepSums()
	}
	if err := c.checkKind(i); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return i, nil
}

// checkKind refuses the image of another program, because its bytes are not
// sectors, unless an image key or the extension .raw declares that they are.
// Other extensions do not: images of QEMU are often called .img. It warns of a
// file that is taken for a raw image and does not look like one: a raw image has
// no signature, so that every file of whole sectors can be one.
func (c *call) checkKind(i *imageFile) error {
	raw, keys := i.Format() == image.UDRW, c.opts["srcimagekey"]
	if o, ok := c.verb.option("-imagekey"); ok && len(o.names) == 1 { // else it is about the new image
		keys = slices.Concat(keys, c.opts["imagekey"])
	}
	for _, v := range keys {
		if v != rawClass || !raw {
			return refuse("image key %q: only %s is known, for raw images", v, rawClass)
		}
	}
	if !raw || len(keys) > 0 {
		return nil
	}
	isRaw := strings.EqualFold(filepath.Ext(i.name), ".raw")
	end, err := container.EndOfImage(i.Image)
	if err != nil {
		return err
	}
	if end > 0 && !isRaw {
		return refuse("image data corrupted: %q ends at byte %d, and has %d bytes after that: cut them off a copy "+
			"(truncate -s %d)", i.path, end, i.Size()-end, end)
	}
	switch found, err := container.ForeignFormat(i.Image); {
	case err != nil:
		return err
	case found != "" && !isRaw:
		return &container.UnsupportedError{Path: i.path, Found: found, Doing: "opening", Foreign: true}
	case found != "":
		c.warn("%q looks like a %s, and is taken for raw sectors because of its name", i.name, found)
		return nil
	}
	// The verb reports what cannot be read.
	if info, err := i.inspect(); err != nil || info.Scheme != attach.SchemeNone || info.Whole.AppleName != "" {
		return nil
	}
	if blank, err := isBlank(i, 64<<10); err == nil && !blank {
		c.warn("%q has no partition map and no known file system, and is taken for raw sectors", i.name)
	}
	return nil
}

// rawClass is the image key that takes a file for a raw image.
const rawClass = "diskimage-class=CRawDiskImage"

// isBlank reports whether the first n bytes are zero, where file systems and
// partition tables have their signatures.
func isBlank(i *imageFile, n int64) (bool, error) {
	head := make([]byte, min(n, i.Size()))
	if n, err := i.ReadAt(head, 0); n < len(head) {
		return false, err
	}
	return bytes.Count(head, []byte{0}) == len(head), nil
}

// Ends of temporary names: of an old image that is moved aside, and of the raw
// image that a read-only one is made of.
const (
	asideMark = "~"
	rawSuffix = ".cdr"
)

// replace calls build, which makes an image under a temporary name next to p,
// and renames it when it is complete. Without -ov an image that exists is an
// error before anything is made. What build made is deleted when it fails.
//
// Of x.dmg the temporary name is .dmgbench-0123456789abcdef-x.dmg. Where one of
// the two images is a folder, the old one is .dmgbench-0123456789abcdef-x.dmg~
// while the other takes its place. Killed at any point, the process leaves the
// old image whole, under its name or with the mark, and its temporary files. A
// name that is not that much below the limit of the file system is an error.
func (c *call) replace(p place, build func(tmp place) error) error {
	if err := c.checkFree(p); err != nil {
		return err
	}
	tmp := p.sibling(fmt.Sprintf(".dmgbench-%016x-%s", rand.Uint64(), p.name))
	err := build(tmp)
	if errors.Is(err, syscall.ENOSPC) && p.dir.IsOutOfInodes() {
		err = fmt.Errorf("the file system has no inode left for another file: %w", err)
	}
	if err == nil {
		err = c.rename(tmp, p)
	}
	if err != nil {
		err = errors.Join(err, removeIfExists(tmp))
	}
	return err
}

// removeIfExists removes an image; a missing one is ignored.
func removeIfExists(p place) error {
	err := container.Remove(p.dir, p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkFree returns an error if the name may not be used. A process has the
// image open, or attached read-only, by the locks of package container: on the
// file itself, or on token and lock of a bundle.
func (c *call) checkFree(p place) error {
	_, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !c.has("ov"):
		return syscall.EEXIST
	}
	for _, name := range []string{p.name, filepath.Join(p.name, "token"), filepath.Join(p.name, "lock")} {
		f, err := p.dir.Open(name, hostio.OpenOptions{})
		if err != nil { // a folder, or no such file: it has no lock
			continue
		}
		err = f.TryLock()
		f.Close()
		if errors.Is(err, hostio.ErrLocked) {
			return syscall.EBUSY
		}
	}
	if err := container.CheckRemovable(p.dir, p.name); err != nil {
		return refuse("File exists, and is not an image that could be replaced: %q: %w", p.path, err)
	}
	return nil
}

// rename gives the finished image its name. An old image goes in the same
// rename, or, where one of the two is a folder, moves aside first: rename(2)
// replaces files alone. If the old image cannot be removed then, both get their
// old names back; if it is partly removed already, the new one stays.
func (c *call) rename(tmp, p place) error {
	if err := c.checkFree(p); err != nil {
		return err
	}
	old, err := p.dir.Lstat(p.name) // the error can only be that it does not exist
	made, e := p.dir.Lstat(tmp.name)
	switch {
	case e != nil:
		return e
	case c.has("ov") && err == nil && !(old.Mode().IsRegular() && made.Mode().IsRegular()): // below
	case !c.has("ov") && !made.IsDir():
		// Of several processes that make an image of the same name only one gets
		// it. A folder does not replace another one; a file would, so its name is
		// reserved first.
		f, err := p.dir.Open(p.name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
		if err != nil {
			return err
		}
		if err := errors.Join(f.Close(), p.dir.Rename(tmp.name, p.name)); err != nil {
			return errors.Join(err, p.dir.Remove(p.name))
		}
		return p.dir.Sync()
	default:
		return errors.Join(p.dir.Rename(tmp.name, p.name), p.dir.Sync())
	}
	aside := tmp.name + asideMark
	if err := p.dir.Rename(p.name, aside); err != nil {
		return err
	}
	if err := p.dir.Rename(tmp.name, p.name); err != nil {
		return errors.Join(err, p.dir.Rename(aside, p.name))
	}
	switch err := container.Remove(p.dir, aside); {
	case errors.Is(err, container.ErrPartlyRemoved): // it cannot be restored: the new image is the only one
		return errors.Join(fmt.Errorf("%q is the new image; removing the old one: %w", p.path, err), p.dir.Sync())
	case err != nil: // a folder with other files in it, or in use
		return errors.Join(err, p.dir.Rename(p.name, tmp.name), p.dir.Rename(aside, p.name))
	}
	return p.dir.Sync()
}

// maxPassphrase bounds what is read of passphrases from stdin, in bytes.
const maxPassphrase = 64 << 10

// secrets are the passphrases of a command line: those on stdin, and the keys
// of its images. They are in no argument, no environment and no file, and are
// overwritten when the command ends.
type secrets struct {
	// ended is set at the end of stdin.
	ended bool
	// raw is what was read of stdin.
	raw []byte
	// encrypted is set if the image that is read is: then the first passphrase
	// belongs to it.
	encrypted bool
	// keys are those of the images that have been opened, by path: deriving
	// them takes up to seconds by design.
	keys map[string]crypt.Keys
}

// wipe overwrites them.
func (s *secrets) wipe() {
	clear(s.raw)
	for _, k := range s.keys {
		k.Wipe()
	}
}

// readsStdin reports whether an option names stdin as the source of
// passphrases.
func (c *call) readsStdin() bool {
	return slices.ContainsFunc([]string{"stdinpass", "oldstdinpass", "newstdinpass"}, c.has)
}

// passphrase returns passphrase n of stdin, counted from 0, without bytes if
// there is none. For hdiutil they end with a NUL or the input, and a line end
// is a part of them; for diskutil they are lines. No more is read than that
// takes: the writer of stdin may leave it open.
func (c *call) passphrase(n int) ([]byte, error) {
	s, end := &c.secrets, []byte{0}
	if c.tool == "diskutil" {
		end = []byte("\n")
	}
	if !c.readsStdin() {
		return nil, nil
	}
	if f, ok := c.env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // which would show it, and wait for an end
		return nil, refuse("stdin is a terminal: give the passphrase by a pipe or a file")
	}
	if s.raw == nil {
		s.raw = make([]byte, 0, maxPassphrase+1) // never reallocated, so that it can be wiped
	}
	for !s.ended && bytes.Count(s.raw, end) <= n {
		got, err := c.env.Stdin.Read(s.raw[len(s.raw):cap(s.raw)])
		s.raw = s.raw[:len(s.raw)+got]
		s.ended = errors.Is(err, io.EOF)
		switch {
		case len(s.raw) == cap(s.raw):
			return nil, refuse("the passphrase is longer than %d bytes", maxPassphrase)
		case err != nil && !s.ended:
			return nil, fmt.Errorf("reading the passphrase: %w", err)
		}
	}
	list := bytes.Split(s.raw, end)
	if n >= len(list) {
		return nil, nil
	}
	if c.tool == "diskutil" {
		return bytes.TrimSuffix(list[n], []byte("\r")), nil
	}
	return list[n], nil
}

// encryption is the encryption of the image to be made. Its passphrase is the
// first on stdin that does not belong to an image that is read.
func (c *call) encryption() (e container.Encryption, err error) {
	switch {
	case c.has("encrypt"): // of diskutil
		e.Cipher = container.AES256
	case c.has("encryption"):
		e.Cipher = cmp.Or(strings.ToUpper(c.value("encryption")), container.AES128)
	default:
		return e, nil
	}
	e.Iterations = c.env.Iterations
	if !c.readsStdin() {
		return e, refuse("an encrypted image takes a passphrase, and this program has no prompt: want %s",
			c.stdinOption())
	}
	n := 0
	if c.secrets.encrypted {
		n = 1
	}
	if e.Passphrase, err = c.passphrase(n); err == nil && len(e.Passphrase) == 0 {
		err = refuse("no passphrase of the new image on stdin")
	}
	return e, err
}

// stdinOption is the option of the verb that reads the passphrase of an image
// from stdin, for messages.
func (c *call) stdinOption() string {
	return cmp.Or(c.verb.optionName("oldstdinpass"), c.verb.optionName("stdinpass"), "-stdinpass")
}

// isencrypted reads the header of encrypted images, which takes no passphrase.
// Records of kind 2 are keys that a certificate unwraps. Images of other
// programs are refused: whether those are encrypted is not known.
func (c *call) isencrypted(p place, h *crypt.Header) error {
	if h == nil {
		i, err := c.open(p, peek)
		e, unsupported := errors.AsType[*container.UnsupportedError](err)
		if _, refused := errors.AsType[*refusal](err); refused || unsupported && e.Foreign {
			return err
		}
		if err == nil {
			i.Close()
		}
		return c.printResult(dict{"encrypted": false}, "encrypted: NO\n")
	}
	u, certificates := h.UUID, 0
	uuid := strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	for _, r := range h.Records {
		if r.Kind == 2 {
			certificates++
		}
	}
	return c.printResult(dict{"encrypted": true, "version": h.Version, "uuid": uuid, "blocksize": h.BlockSize,
		"passphrase-count": h.Passphrases, "private-key-count": certificates,
		"max-key-count": max(h.Passphrases+certificates, 1)},
		"encrypted: YES\nversion: %d\nblocksize: %d\npassphrase-count: %d\nprivate-key-count: %d\nuuid: %s\n",
		h.Version, h.BlockSize, h.Passphrases, certificates, uuid)
}

// onHeader reads the encryption header of the image that is named first; it is
// nil for an unencrypted one.
func onHeader(verb func(*call, place, *crypt.Header) error) func(*call) error {
	return func(c *call) error {
		p, err := c.existing(c.operands[0])
		if err != nil {
			return err
		}
		defer p.close()
		h, err := container.EncryptionOf(p.dir, p.name)
		if err != nil {
			return err
		}
		return verb(c, p, h)
	}
}

// chpass wraps the keys of an image under another passphrase; the data stays as
// it is. It takes two passphrases from stdin, the present one first. hdiutil
// names both by options of their own, as Apple's tool has prompts for those
// that are not named.
func (c *call) chpass(p place, h *crypt.Header) error {
	want := ""
	switch {
	case h == nil:
		return refuse("Invalid argument: the image is not encrypted")
	case c.tool == "hdiutil" && !(c.has("oldstdinpass") && c.has("newstdinpass")):
		want = "-oldstdinpass and -newstdinpass"
	case !c.readsStdin():
		want = c.stdinOption()
	}
	if want != "" {
		return refuse("this program has no prompt for a passphrase: want %s", want)
	}
	old, err1 := c.passphrase(0)
	next, err2 := c.passphrase(1)
	err := cmp.Or(err1, err2)
	if err == nil && len(next) == 0 {
		err = refuse("no new passphrase on stdin")
	}
	if err == nil {
		err = container.ChangePassphrase(p.dir, p.name, old, next, c.env.Iterations)
	}
	if err != nil {
		return err
	}
	return c.printResult(dict{"image-path": p.path}, "")
}
