package imagetool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// place is a container on the host: a name in an opened folder. path is resolved, as Apple's tools print it.
type place struct {
	dir        *hostio.Dir
	name, path string
}

func (p place) close() { p.dir.Close() }

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

// followed is where a path that has to be there leads to.
func followed(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return "", fmt.Errorf("looking for %q: %w", path, err)
}

// existing is an image that has to be there; links are followed.
func (c *call) existing(operand string) (place, error) {
	for _, scheme := range []string{"ram://", "http://", "https://"} {
		if strings.HasPrefix(operand, scheme) {
			return place{}, refuse("%s images are not there yet", strings.TrimSuffix(scheme, "://"))
		}
	}
	path, err := c.absolute(operand)
	if err == nil {
		path, err = followed(path)
	}
	if err != nil {
		return place{}, err
	}
	return at(path)
}

// target is where an image is to be made. The folder has to be there.
func (c *call) target(operand, extension string) (place, error) {
	path, err := c.absolute(operand)
	if err != nil {
		return place{}, err
	}
	if !strings.EqualFold(filepath.Ext(path), extension) {
		if last := operand[strings.LastIndexByte(operand, filepath.Separator)+1:]; last == "" || last == "." || last == ".." {
			return place{}, refuse("%q names a folder: want the name of the new image", operand)
		}
		path += extension
	}
	folder, err := followed(filepath.Dir(path))
	if err != nil {
		return place{}, err
	}
	return at(filepath.Join(folder, filepath.Base(path)))
}

func at(path string) (place, error) {
	dir, err := hostio.OpenDir(filepath.Dir(path))
	if err != nil {
		return place{}, err
	}
	return place{dir: dir, name: filepath.Base(path), path: path}, nil
}

// held keeps writers away until the result is called, so that nobody writes while the image is read; one that is attached
// read-only may be.
func (p place) held() (release func(), err error) {
	files := p.lockFiles()
	release = func() {
		for _, f := range files {
			f.Close()
		}
	}
	for _, f := range files {
		if err := f.TryLockShared(); errors.Is(err, hostio.ErrLocked) {
			release()
			return nil, err
		}
	}
	return release, nil
}

// unused says whether nobody has the image, not even attached read-only.
func (p place) unused() bool {
	free := true
	for _, f := range p.lockFiles() {
		free = free && !errors.Is(f.TryLock(), hostio.ErrLocked)
		f.Close()
	}
	return free
}

// lockFiles opens the files that carry the locks of an image. What may not be opened is taken to be held by nobody.
func (p place) lockFiles() (files []*hostio.File) {
	names := []string{p.name}
	if fi, err := p.dir.Lstat(p.name); err == nil && fi.IsDir() {
		names = []string{filepath.Join(p.name, "token"), filepath.Join(p.name, "lock")}
	}
	for _, name := range names {
		if f, err := p.dir.Open(name, hostio.OpenOptions{}); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// read opens an image for reading alone, while nobody writes to it, and calls f.
func (c *call) read(operand string, f func(p place, img container.Image) error) error {
	return c.withImage(operand, true, f)
}

// change opens an image for reading and writing and calls f.
func (c *call) change(operand string, f func(p place, img container.Image) error) error {
	return c.withImage(operand, false, f)
}

// look opens an image for reading, whoever has it open, and calls f.
func (c *call) look(operand string, f func(p place, img container.Image) error) error {
	p, err := c.existing(operand)
	if err != nil {
		return err
	}
	defer p.close()
	img, err := c.open(p, true)
	if err != nil {
		return err
	}
	defer img.Close()
	return f(p, img)
}

// withImage opens an image, to be read while nobody writes to it or to be changed, and calls f.
func (c *call) withImage(operand string, readOnly bool, f func(p place, img container.Image) error) (err error) {
	p, err := c.existing(operand)
	if err != nil {
		return err
	}
	defer p.close()
	img, release, err := c.openAlone(p, readOnly)
	if inUse(err) { // maybe by what a dead process left
		if _, e := c.living(); e == nil {
			img, release, err = c.openAlone(p, readOnly)
		}
	}
	if err != nil {
		return err
	}
	defer release()
	defer func() { err = errors.Join(err, img.Close()) }()
	if err := c.rawKey(img); err != nil {
		return err
	}
	return f(p, img)
}

// openAlone opens an image that nobody changes until release is called.
func (c *call) openAlone(p place, readOnly bool) (img container.Image, release func(), err error) {
	release = func() {}
	if readOnly {
		if release, err = p.held(); err != nil {
			return nil, nil, err
		}
	}
	if img, err = c.open(p, readOnly); err != nil {
		release()
	}
	return img, release, err
}

func inUse(err error) bool {
	return errors.Is(err, container.ErrInUse) || errors.Is(err, hostio.ErrLocked)
}

// rawClass is the image key that takes a file for a raw image.
const rawClass = "diskimage-class=CRawDiskImage"

// sourceKeys are the image keys that are about the image which is read.
func (c *call) sourceKeys() (keys []string) {
	for _, name := range []string{"-srcimagekey", "-imagekey"} {
		if o, ok := c.verb.option(name); ok && o.help != bandkey && o.help != convertkey {
			keys = append(keys, c.opts[name]...)
		}
	}
	return keys
}

func (c *call) forcedRaw() bool { return slices.Contains(c.sourceKeys(), rawClass) }

// rawKey checks the image keys of verbs that read.
func (c *call) rawKey(img container.Image) error {
	for _, v := range c.sourceKeys() {
		if v != rawClass || img.Format() != container.UDRW {
			return refuse("image key %q: only %s is known, for raw images", v, rawClass)
		}
	}
	return nil
}

// ownFormat refuses an image of another program, whose bytes are no sectors, unless an image key or the extension .raw says
// that they are. Other extensions say nothing: images of QEMU are often called .img.
func (c *call) ownFormat(p place, img container.Image) error {
	found, err := container.Foreign(img)
	if err != nil || found == "" || c.forcedRaw() || strings.EqualFold(filepath.Ext(p.name), ".raw") {
		return err
	}
	return &container.UnsupportedError{Path: p.path, Found: found, Doing: "opening", Foreign: true}
}

// region is a part of a device: a partition, a table, or free space.
type region struct {
	name, hint   string // as imageinfo prints them
	first, count int64  // sectors
	number       int    // of a partition of a GUID table, from 1; 0 for others
	content      bool   // a partition, or the whole device where nothing divides it: no table and no gap
	part         *gpt.Partition
}

// otherSchemes are what imageinfo and attach call the schemes that are shown and not worked with.
var otherSchemes = map[udif.Scheme]struct{ name, hint, title string }{
	udif.SchemeMBR: {"fdisk", "FDisk_partition_scheme", `1 FDISK, "FDisk Partition Scheme"`},
	udif.SchemeAPM: {"Apple", "Apple_partition_scheme", `1 APM, "Apple Partition Scheme"`},
}

// regions are all parts of a device in order, and the scheme that divides it: GUID, fdisk, Apple, or none.
func regions(dev blockdev.Device) ([]region, string, error) {
	t, _, err := gpt.Read(dev)
	if gpt.IsUnusable(err) {
		return otherRegions(dev)
	}
	if err != nil {
		return nil, "", err
	}
	last, table := int64(t.Sectors), int64(t.EntrySectors())
	list := guidRegions(t, last, table)
	if rest := dev.Size()/sector - last; rest > 0 {
		list = append(list, region{hint: "Apple_Free", first: last, count: rest})
	}
	return list, "GUID", nil
}

// otherRegions are the parts of a device without a GUID table.
func otherRegions(dev blockdev.Device) ([]region, string, error) {
	layout, err := udif.ProbeLayout(dev, dev.Size())
	if err != nil {
		return nil, "", err
	}
	other, ok := otherSchemes[layout.Scheme]
	if !ok {
		return []region{{name: "whole disk", hint: attach.Identify(dev).Hint, count: dev.Size() / sector, content: true}}, "none", nil
	}
	var list []region
	for _, g := range layout.Regions {
		name, rest, _ := cutLast(g.Name, " (") // "disk image (Apple_HFS : 1)"
		hint, _, _ := cutLast(rest, " : ")
		list = append(list, region{name: name, hint: hint, first: int64(g.First), count: int64(g.Sectors),
			content: g.First > 0 && hint != "Apple_Free" && hint != "Apple_partition_map"})
	}
	return list, other.name, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// guidRegions are what a GUID table divides a device into, which the table says to have so many sectors.
func guidRegions(t *gpt.Table, last, table int64) []region {
	list := []region{{name: "Protective Master Boot Record", hint: "MBR", count: 1},
		{name: "GPT Header", hint: "Primary GPT Header", first: 1, count: 1},
		{name: "GPT Partition Data", hint: "Primary GPT Table", first: 2, count: table}}
	at := 2 + table
	gap := func(to int64) {
		if to > at {
			list = append(list, region{hint: "Apple_Free", first: at, count: to - at})
		}
	}
	for _, p := range inOrder(t.Partitions) {
		gap(int64(p.First))
		list = append(list, region{name: p.Name, hint: hintOf(p.Type), first: int64(p.First), count: int64(p.Last-p.First) + 1, number: p.Index + 1, content: true, part: &p})
		at = int64(p.Last) + 1
	}
	gap(last - 1 - table)
	return append(list, region{name: "GPT Partition Data", hint: "Backup GPT Table", first: last - 1 - table, count: table},
		region{name: "GPT Header", hint: "Backup GPT Header", first: last - 1, count: 1})
}

// volume is where the file system of an image is: the last partition, which grows and
// shrinks with it, or the whole device.
func volume(dev blockdev.Device) (vol blockdev.Device, p *gpt.Partition, err error) {
	t, _, err := gpt.Read(dev)
	switch {
	case errors.Is(err, gpt.ErrNoTable):
		return dev, nil, nil
	case err != nil:
		return nil, nil, err
	case len(t.Partitions) == 0:
		return nil, nil, nil
	}
	list := inOrder(t.Partitions)
	p = &list[len(list)-1]
	vol, err = blockdev.Section(dev, p.Offset(), p.Size())
	return vol, p, err
}

// exfatOn mounts the ExFAT volume of an image without writing.
func exfatOn(dev blockdev.Device) (*exfat.Volume, error) {
	vol, _, err := volume(dev)
	if err == nil && vol != nil {
		if _, err := vol.ReadAt(make([]byte, min(sector, vol.Size())), 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, err // damage is no absence
		}
		k := attach.Identify(vol)
		if k.AppleName == "" {
			if vol, err = lastVolume(dev); err != nil || vol == nil {
				return nil, cmp.Or(err, refuse("there is no ExFAT volume on the image"))
			}
			k = attach.Identify(vol)
		}
		if k.AppleName == "ExFAT" {
			return exfat.Mount(vol, exfat.MountOptions{ReadOnly: true})
		}
		return nil, refuse("%s volumes cannot be read without mounting", k.AppleName)
	}
	if err != nil {
		return nil, err
	}
	return nil, refuse("there is no ExFAT volume on the image")
}

// lastVolume is the last partition with a file system of a device that has no GUID table, nil if there is none.
func lastVolume(dev blockdev.Device) (last blockdev.Device, err error) {
	list, scheme, err := regions(dev)
	if err != nil || scheme == "GUID" {
		return nil, err
	}
	for _, r := range list {
		if !r.content {
			continue
		}
		vol, err := blockdev.Section(dev, r.first*sector, r.count*sector)
		if err != nil {
			return nil, err
		}
		if attach.Identify(vol).AppleName != "" {
			last = vol
		}
	}
	return last, nil
}

// copyDevice copies what is not zero. present says whether anything of a range can be other than zero.
func (c *call) copyDevice(src, dst blockdev.Device, present func(off, n int64) bool) error {
	progress := c.newProgress(src.Size())
	return container.Copy(c.ctx, dst, src, container.CopyOptions{Present: present, Progress: progress.at})
}
