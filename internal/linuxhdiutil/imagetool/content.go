package imagetool

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"
)

// compareSums computes the checksums of a UDIF image, but for what was summed up
// since KeepSums, and compares them with those stored. With the option allow a
// difference is a warning, else the error is container.ErrData.
func (c *call) compareSums(i *imageFile, allow string) error {
	im := i.tables()
	if im == nil {
		return nil
	}
	report, err := im.Verify(c.ctx, udif.StreamOptions{})
	if err != nil {
		return err
	}
	if err = report.Err(); err != nil && c.has(allow) {
		c.warn("%v", err)
	} else if err != nil {
		return fmt.Errorf("%w: %w", container.ErrData, err)
	}
	return nil
}

// summer computes a checksum.
type summer interface {
	io.Writer
	Sum(b []byte) []byte
}

// hashes are the checksum types of hdiutil(1) but for UDIF-CRC32 and UDIF-MD5,
// which are of the parts first.
var hashes = map[string]func() summer{
	"CRC32": func() summer { return &udif.CRC{} }, "MD5": func() summer { return md5.New() },
	"SHA": func() summer { return sha1.New() }, "SHA1": func() summer { return sha1.New() },
	"SHA256": func() summer { return sha256.New() }, "SHA384": func() summer { return sha512.New384() },
	"SHA512": func() summer { return sha512.New() },
}

// hashRate is about how many bytes a second are summed up, for the warning of an image that takes long.
const hashRate = 1 << 30

// checksum computes a checksum of the device. Types that start with UDIF- are
// what a read-only image stores: a checksum over the checksums of its parts, in
// binary form. Of other images it is what convert would store.
func (c *call) checksum(i *imageFile) error {
	kind := strings.ToUpper(c.value("type"))
	name, ofParts := strings.CutPrefix(kind, "UDIF-")
	newHash := hashes[name]
	parts, tables := []udif.Region{{Sectors: uint64(i.Size() / sector)}}, i.tables()
	known := container.MapOf(i.Image)
	switch {
	case !ofParts: // all bytes are summed up
	case tables != nil && len(tables.Regions()) > 0:
		parts = tables.Regions()
	default: // the parts that convert would cut
		layout, err := udif.ProbeLayout(i.Image, i.Size())
		if err != nil {
			return err
		}
		parts, tables = layout.Regions(), nil
	}
	if took := i.Size() / hashRate; name != "CRC32" && took >= 60 {
		c.warn("%s of %d bytes, zeros too, takes about %d minutes (-type CRC32 computes zeros at once)", kind, i.Size(),
			took/60)
	}
	progress := c.newProgress(i.Size())
	sums := newHash()
	var sum []byte
	for _, part := range parts {
		h := newHash()
		at := int64(part.First) * sector
		err := c.hashPart(h, i.Image, known, ofParts && tables != nil, at, at+int64(part.Sectors)*sector, progress)
		if err != nil {
			return err
		}
		sum = h.Sum(nil)
		_, _ = sums.Write(sum)
	}
	if ofParts {
		sum = sums.Sum(nil)
	}
	return c.printResult(dict{"checksum-type": kind, "checksum-value": fmt.Sprintf("%x", sum)},
		"calculated   %s $%X\n", kind, sum)
}

// hashPart adds the bytes of a device from at to end to a hash; allocated leaves
// out the stretches of which nothing is stored. known is what is known without
// reading, or nil.
func (c *call) hashPart(h summer, dev io.ReaderAt, known udif.Map, allocated bool, at, end int64,
	progress func(int64)) error {
	crc, _ := h.(*udif.CRC)
	buf := make([]byte, 1<<20)
	for next := end; at < end; at = next {
		state := udif.StateData
		if known != nil {
			next, state = known.Next(at)
			next = min(next, end)
		}
		switch {
		case allocated && state == udif.StateUnallocated:
		case crc != nil && state != udif.StateData:
			crc.WriteZeros(next - at)
		default:
			err := c.readPieces(dev, buf, at, next, func(b []byte, off int64) error {
				_, err := h.Write(b)
				progress(off + int64(len(b)))
				return err
			})
			if err != nil {
				return err
			}
		}
		progress(next)
	}
	return nil
}

// readPieces calls take with each piece of src from at to end and with its
// offset. It reads into buf, and ends with the context of the command.
func (c *call) readPieces(src io.ReaderAt, buf []byte, at, end int64, take func(b []byte, off int64) error) error {
	for ; at < end; at += int64(len(buf)) {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), end-at)]
		if n, err := src.ReadAt(piece, at); n < len(piece) {
			return fmt.Errorf("reading %d bytes at %d: %w", len(piece), at, err)
		}
		if err := take(piece, at); err != nil {
			return err
		}
	}
	return nil
}

// verify checks the stored checksums, which only UDIF images with tables have;
// of other images it checks the structure. As from Apple's tool the status is 1
// for an image without a checksum, and the message names what differs. A file
// that is not an image has a message of its own.
func (c *call) verify() error {
	err := c.withImage(c.operands[0], peek, func(i *imageFile) error {
		if im := i.tables(); im != nil {
			return c.verifyTables(i, im)
		}
		findings, err := container.Verify(i.dir, i.name, container.OpenOptions{Keys: c.secrets.keys[i.path]})
		for _, f := range findings {
			c.messagef("%s", f)
		}
		if err != nil {
			return err
		}
		return c.failAs("%q has no checksum.", i.name)
	})
	if isNotImage(err) {
		return c.failAs("unable to recognize %q as a disk image.", filepath.Base(c.operands[0]))
	}
	return err
}

// failAs prints a failure that Apple's tool has words of its own for, with
// status 1.
func (c *call) failAs(format string, args ...any) error {
	c.messagef(format, args...)
	return &reportedError{1}
}

// verifyTables computes and compares every checksum of a UDIF image. Findings
// go to stderr, as from Apple's tool, and the result to the property list if
// there is one. Checksums of an unknown type are neither valid nor missing: if
// an image has no others, the status is 1.
func (c *call) verifyTables(i *imageFile, im *udif.Image) error {
	progress := c.newProgress(im.Size())
	report, err := im.Verify(c.ctx, udif.StreamOptions{Progress: func(done, _ int64) { progress(done) }})
	if err != nil {
		return err
	}
	if n := im.Beyond; n > 0 {
		c.warn("the last %d of %d sectors are in no table and have no checksum: the device is shorter, or sectors are "+
			"lost", n, im.Size()/sector)
	}
	known, unknown := c.printChecks(report)
	valid := report.Err() == nil
	switch {
	case known == 0 && valid && unknown > 0:
		return c.failAs("%q has no checksum that is checked here.", i.name)
	case known == 0 && valid:
		return c.failAs("%q has no checksum.", i.name)
	case c.has("plist"):
		d := dict{"verified": valid}
		if sum := im.Trailer().Master; sum.Type != udif.ChecksumNone {
			d["checksum-type"], d["checksum-value"] = checksumName(sum.Type), fmt.Sprintf("%x", sum.Value())
		}
		if err := c.printResult(d, ""); err != nil {
			return err
		}
	}
	if !valid {
		return c.failAs("checksum of %q is INVALID", i.name)
	}
	c.messagef("checksum of %q is VALID", i.name)
	return nil
}

// printChecks prints what is wrong with checksums, and those of types that are
// not computed here. It returns how many agree, and how many were not computed.
func (c *call) printChecks(report udif.Report) (known, unknown int) {
	for _, check := range report {
		kind := checksumName(check.Type)
		switch check.Result {
		case udif.Agrees:
			known++
			if c.has("verbose") {
				fmt.Fprintf(c.err, "   verified   %s $%X %s\n", kind, check.Want, check.What)
			}
		case udif.Differs:
			c.messagef("%s: %s is $%X, should be $%X", check.What, kind, check.Got, check.Want)
		case udif.Unreadable:
			c.messagef("%s: %v", check.What, check.Err)
		case udif.Unchecked:
			unknown++
			c.messagef("%s: its checksum (%s) is not checked here", check.What, kind)
		}
	}
	return known, unknown
}

// checksumName is the name of a checksum type in messages and lists.
func checksumName(typ uint32) string {
	names := map[uint32]string{udif.ChecksumNone: "none", udif.ChecksumCRC32: "CRC32", udif.ChecksumMD5: "MD5"}
	return cmp.Or(names[typ], fmt.Sprintf("type %d", typ))
}

// mountExFAT mounts the last ExFAT volume: on images of Apple's the last
// partition is the one for files; an EFI partition with FAT comes before it. The
// error of an image with another file system names that.
func (i *imageFile) mountExFAT() (*exfat.Volume, error) {
	info, err := i.inspect()
	if err != nil {
		return nil, err
	}
	var found attach.Region
	var unreadable error // which is not the same as missing
	for _, r := range info.Regions {
		if kind := r.Volume.AppleName; kind == ours || kind != "" && found.Volume.AppleName != ours {
			found = r
		}
		unreadable = cmp.Or(unreadable, r.Err)
	}
	switch kind := found.Volume.AppleName; kind {
	case ours:
		vol, err := found.Section(i.Image)
		if err != nil {
			return nil, err
		}
		return exfat.Mount(vol, exfat.MountOptions{ReadOnly: true})
	case "":
		return nil, cmp.Or(unreadable, refuse("no ExFAT volume on the image"))
	default:
		return nil, refuse("%s volumes cannot be read without mounting", kind)
	}
}

// volumePath is the path of an operand on a volume as package exfat takes it:
// clean, without a slash in front, "" for the root and for a missing operand.
func (c *call) volumePath(n int) string {
	if n >= len(c.operands) {
		return ""
	}
	return strings.TrimPrefix(path.Clean("/"+c.operands[n]), "/")
}

// list prints the names on a volume: of a file its own, of a folder those in
// it, sorted by name, or with -R everything below it in the order of the
// volume.
func (c *call) list(_ *imageFile, v *exfat.Volume) error {
	at := c.volumePath(1)
	i, err := v.Stat(at)
	switch {
	case err != nil:
		return err
	case !i.Dir:
		return c.printEntry(at, i)
	case c.has("r"):
		var failed []error // what cannot be listed hides nothing else
		err := v.Walk(at, func(p string, i exfat.Info) error {
			return errors.Join(c.printEntry(p, i), c.ctx.Err())
		}, func(_ string, e error) error {
			failed = append(failed, e)
			return nil
		})
		return errors.Join(append(failed, err)...)
	}
	entries, err := v.List(at)
	slices.SortFunc(entries, func(a, b exfat.Info) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range entries {
		if err := c.printEntry(i.Name, i); err != nil {
			return err
		}
	}
	return err
}

// printEntry prints one name.
func (c *call) printEntry(name string, i exfat.Info) error {
	name, kind := printable(name), "-"
	if i.Dir {
		name, kind = name+"/", "d"
	}
	if c.has("l") {
		name = fmt.Sprintf("%s %12d %s %s", kind, i.Size, i.Modified.Format("2006-01-02 15:04:05"), name)
	}
	return c.printf("%s\n", name)
}

// cat prints files, one after another. It ends at the first that cannot be
// read.
func (c *call) cat(_ *imageFile, v *exfat.Volume) error {
	for n := range c.operands[1:] {
		err := c.readFile(v, c.volumePath(n+1), func(b []byte, _ int64) error {
			_, err := c.out.Write(b)
			return cmp.Or(err, c.out.Flush())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file of a volume and calls take with each piece and its
// offset.
func (c *call) readFile(v *exfat.Volume, p string, take func(b []byte, off int64) error) error {
	f, err := v.Open(p)
	if err != nil {
		return err
	}
	return errors.Join(c.readPieces(f, make([]byte, 1<<20), 0, f.Size(), take), f.Close())
}

// extract copies a file, a folder with its contents, or everything, into a
// folder of the host, which is made if only its last name is missing. Names come
// from the image: one that would leave the folder is an error, never followed.
// Files and folders that fail are reported, and the others are copied. Times of
// the last change are kept; folders get theirs when they are complete.
func (c *call) extract(image *imageFile, v *exfat.Volume) error {
	at := c.volumePath(1)
	folder, err1 := c.absolute(cmp.Or(c.value("d"), "."))
	i, err2 := v.Stat(at)
	if errors.Is(err2, fs.ErrNotExist) && !c.has("d") {
		name := c.operands[1]
		err2 = refuse("No such file or directory: the image has no %[1]q; -d %[1]s names the folder to copy into%.0[2]w",
			name, err2)
	}
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	if image.contains(folder) {
		return refuse("%q is inside the image", folder)
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := hostio.OpenDir(folder)
	if err != nil {
		return err
	}
	defer to.Close()
	base := strings.TrimPrefix(path.Base("/"+at), "/") // "" of the root
	failed, folders := 0, map[string]exfat.Info{}
	report := func(p string, e error) error {
		if e != nil && c.ctx.Err() == nil {
			c.messagef("%s", strings.TrimPrefix(fmt.Sprintf("%s: %v", printable(p), e), ": ")) // p is "" of the root
			failed, err = failed+1, e
		}
		return c.ctx.Err()
	}
	switch {
	case !i.Dir:
		err = c.extractFile(v, at, to, base)
	case base != "":
		err = makeFolder(to, base)
	}
	if err != nil {
		return err
	}
	if i.Dir {
		if base != "" {
			folders[base] = i
		}
		e := v.Walk(at, func(p string, i exfat.Info) error {
			name := path.Join(base, strings.TrimPrefix(strings.TrimPrefix(p, at), "/"))
			if !i.Dir {
				return report(p, c.extractFile(v, p, to, name))
			}
			if err := makeFolder(to, name); err != nil {
				return err
			}
			folders[name] = i
			return nil
		}, report)
		if e != nil {
			err = e
		}
	}
	for name, i := range folders {
		err = errors.Join(err, setTime(to, name, i))
	}
	switch {
	case failed > 0 && c.ctx.Err() == nil:
		return fmt.Errorf("failed files or folders: %d, the last one: %w", failed, err)
	case err != nil || c.has("noverify"):
		return err
	}
	return c.compareSums(image, "noverify")
}

// setTime gives a copy the time of the last change, if the volume has one.
func setTime(to *hostio.Dir, name string, i exfat.Info) error {
	if i.Modified.IsZero() {
		return nil
	}
	return to.SetTime(name, i.Modified)
}

// makeFolder makes a folder inside another one. Package hostio refuses names
// that leave it.
func makeFolder(to *hostio.Dir, name string) error {
	err := to.MkdirAll(name)
	if errors.Is(err, fs.ErrExist) {
		return refuse("File exists, and is not a folder: %q%.0w", name, err)
	}
	return err
}

// extractFile copies one file. Blocks of zeros become holes. A file that exists
// is an error without -ov; with it, what is neither a file nor a folder (such
// as a link, which could lead out of the folder) is one still.
func (c *call) extractFile(v *exfat.Volume, p string, to *hostio.Dir, name string) (err error) {
	i, err := v.Stat(p)
	if err != nil {
		return err
	}
	f, err := to.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: !c.has("ov")})
	switch {
	case errors.Is(err, fs.ErrExist):
		return refuse("File exists: %q%.0w", name, err)
	case errors.Is(err, hostio.ErrNotRegular):
		return refuse("File exists, and is not a file that could be replaced: %q%.0w", name, err)
	case err != nil:
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil { // half a file looks like a whole one
			err = errors.Join(err, to.Remove(name))
			return
		}
		err = setTime(to, name, i)
	}()
	if err := errors.Join(f.Truncate(0), f.Truncate(i.Size)); err != nil {
		return err
	}
	zero := make([]byte, 1<<20)
	return c.readFile(v, p, func(b []byte, off int64) error {
		if bytes.Equal(b, zero[:len(b)]) {
			return nil
		}
		_, err := f.WriteAt(b, off)
		return err
	})
}
