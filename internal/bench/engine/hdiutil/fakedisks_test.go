package hdiutil

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
)

// FakeMount is an attached image.
type FakeMount struct {
	Image    string
	Point    string // where the volume is mounted; "": nowhere
	Kind     string // of the file system
	Disk     int
	ReadOnly bool
	Diskutil bool
	Browse   bool // Finder sees the volume

	inode uint64 // of the image when it was attached
	made  bool   // the system made the mount point
	ours  bool   // it was attached through the tools
}

func (a *FakeMount) device() string { return fmt.Sprintf("/dev/disk%d", a.Disk) }

// fakeEvent is what happens of its own accord at a time.
type fakeEvent struct {
	at time.Duration
	do func()
}

// later makes something happen after a time.
func (t *FakeTool) later(after time.Duration, do func()) {
	t.events = append(t.events, fakeEvent{t.Clock.Now() + after, do})
	slices.SortStableFunc(t.events, func(a, b fakeEvent) int { return int(a.at - b.at) })
}

// pass lets time pass, with what happens meanwhile.
func (t *FakeTool) pass(d time.Duration) {
	if d > 0 {
		_ = t.Clock.Sleep(context.Background(), d)
	}
	t.happen()
}

// happen does what has happened by now.
func (t *FakeTool) happen() {
	for len(t.events) > 0 && t.events[0].at <= t.Clock.Now() {
		do := t.events[0].do
		t.events = t.events[1:]
		do()
	}
	for _, a := range t.disks {
		if _, err := os.Stat(a.Point); a.Point != "" && err != nil {
			t.broke("the folder of the volume of %s was removed", a.Image)
		}
		if a.ours && inodeOf(a.Image) != a.inode {
			t.broke("%s was removed while it was attached", a.Image)
		}
	}
}

func (t *FakeTool) broke(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.Broken, text) {
		t.Broken = append(t.Broken, text)
	}
}

// Settle lets a time pass in which nobody does anything.
func (t *FakeTool) Settle(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass(d)
}

// FakeClock is the clock of a machine for the programs on it: while they sleep, the machine does not.
type FakeClock struct {
	clock.Clock
	Of *FakeTool
}

// Sleep lets time pass, with what happens meanwhile.
func (c FakeClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := c.Clock.Sleep(ctx, d); err != nil {
		return err
	}
	c.Of.Settle(0)
	return nil
}

// inodeOf is the number of a file, 0 if there is none.
func inodeOf(path string) uint64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return fi.Sys().(*syscall.Stat_t).Ino
}

func (t *FakeTool) find(is func(*FakeMount) bool) *FakeMount {
	if n := slices.IndexFunc(t.disks, is); n >= 0 {
		return t.disks[n]
	}
	return nil
}

// add attaches an image without mounting it.
func (t *FakeTool) add(a *FakeMount) {
	t.next++
	for n := 4; t.c.Reuse; n++ {
		if t.find(func(a *FakeMount) bool { return a.Disk == n }) == nil {
			t.next = n
			break
		}
	}
	a.Disk, a.inode, a.ours = t.next, inodeOf(a.Image), true
	delete(t.nodes, a.Disk)
	t.disks = append(t.disks, a)
}

// drop takes an attached image away.
func (t *FakeTool) drop(a *FakeMount) {
	t.disks = slices.DeleteFunc(t.disks, func(b *FakeMount) bool { return a == b })
	t.gone = a.Disk
}

// mount mounts the volume of an attached image. Without its folder it stays unmounted.
func (t *FakeTool) mount(a *FakeMount, point string) error {
	if !slices.Contains(t.disks, a) {
		return errors.New("Device not configured")
	}
	if _, err := os.Stat(point); err != nil {
		a.made = t.c.Makes && os.Mkdir(point, 0o700) == nil
		if !a.made {
			return errors.New("No such file or directory")
		}
	}
	if err := unpack(a.Image, point); err != nil {
		return err
	}
	a.Point = point
	return nil
}

// unmount puts the files of a volume back into its image.
func (t *FakeTool) unmount(a *FakeMount) error {
	if a.Point == "" {
		return nil
	}
	if err := pack(a, a.Point); err != nil {
		return err
	}
	if a.made {
		os.Remove(a.Point)
	}
	a.Point = ""
	return nil
}

// Attached are the attached images.
func (t *FakeTool) Attached() (list []FakeMount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.happen()
	for _, a := range t.disks {
		list = append(list, *a)
	}
	return list
}

func (t *FakeTool) mounts() (list []host.Mount, err error) {
	for _, a := range t.Attached() {
		if a.Point != "" {
			list = append(list, host.Mount{Source: fmt.Sprintf("/dev/disk%ds1", a.Disk+100), Point: a.Point, Type: a.Kind, ReadOnly: a.ReadOnly,
				Browsable: a.Browse, IgnoresOwners: !t.c.Owners})
		}
	}
	return list, nil
}

func (t *FakeTool) exists(device string) bool {
	for _, a := range t.Attached() {
		if device == a.device() || device == a.device()+"s1" || device == a.device()+"s2" || device == fmt.Sprintf("/dev/disk%ds1", a.Disk+100) {
			return true
		}
	}
	for disk, until := range t.nodes {
		if device == fmt.Sprintf("/dev/disk%d", disk) && t.Clock.Now() < until {
			return true
		}
	}
	return false
}

// Renumber gives all attached images other disk numbers, as after a detach and attach behind our back.
func (t *FakeTool) Renumber(by int) {
	for _, a := range t.disks {
		a.Disk += by
	}
}

// Forget takes all attached images away, as if somebody had detached them.
func (t *FakeTool) Forget() { t.disks = nil }

// Occupy attaches an image behind the tool's back, mounted elsewhere.
func (t *FakeTool) Occupy(image, point string) {
	a := &FakeMount{Image: image, Kind: "apfs"}
	t.add(a)
	a.Point, a.ours = point, false
}

// fakeFile is a file, folder or link of a volume that is not mounted.
type fakeFile struct {
	Name, Link string
	Mode       fs.FileMode
	Data       []byte
	Time       time.Time
}

// contentsAt is where the contents of a volume are in the file of an image.
const contentsAt = 4096

// contentsOf is the file of an image that has the contents of its volume.
func contentsOf(image string) string {
	if fi, err := os.Stat(image); err == nil && fi.IsDir() {
		return filepath.Join(image, "bands", "0")
	}
	return image
}

// pack puts the files of a folder into an image, and empties the folder.
func pack(a *FakeMount, from string) error {
	var list []fakeFile
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		f := fakeFile{Mode: fi.Mode(), Time: fi.ModTime()}
		f.Name, _ = filepath.Rel(from, path)
		switch {
		case fi.Mode().IsRegular():
			f.Data, err = os.ReadFile(path)
		case fi.Mode()&fs.ModeSymlink != 0:
			f.Link, err = os.Readlink(path)
		}
		list = append(list, f)
		return err
	})
	if err == nil && !a.ReadOnly {
		err = writeContents(a.Image, list)
	}
	entries, _ := os.ReadDir(from)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(from, e.Name())))
	}
	return err
}

// writeContents puts files into the volume of an image that is not mounted.
func writeContents(image string, list []fakeFile) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(list); err != nil {
		return err
	}
	f, err := os.OpenFile(contentsOf(image), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b.Bytes(), contentsAt)
	return errors.Join(err, f.Close())
}

// unpack puts the files of a volume into a folder.
func unpack(image, to string) error {
	list, err := contents(image)
	for _, f := range list {
		name := filepath.Join(to, f.Name)
		switch {
		case err != nil:
			return err
		case f.Mode.IsDir():
			err = os.Mkdir(name, f.Mode.Perm())
		case f.Link != "":
			err = os.Symlink(f.Link, name)
		default:
			err = errors.Join(os.WriteFile(name, f.Data, f.Mode.Perm()), os.Chtimes(name, f.Time, f.Time))
		}
	}
	return err
}

// contents are the files of a volume that is not mounted.
func contents(image string) (list []fakeFile, err error) {
	f, err := os.Open(contentsOf(image))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = gob.NewDecoder(io.NewSectionReader(f, contentsAt, 1<<30)).Decode(&list)
	if err != nil {
		return nil, nil // a volume without files
	}
	return list, nil
}
