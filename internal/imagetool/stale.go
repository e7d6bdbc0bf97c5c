package imagetool

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
)

// Names of what an image is made under: the stem, and behind it "-" with the name of the image, or ".cdr". A lock of the
// same stem is held as long as that takes, so that others can tell what is being made from what a kill left.
const (
	stemPrefix = ".dmgbench-"
	lockSuffix = ".lock"
	asideMark  = "~" // ends the name of an old image that is moved aside: never ours to remove
)

var lockName = regexp.MustCompile(`^\.dmgbench-[0-9a-f]{16}\.lock$`)

// lockText is the content of a lock: a lock says nothing to another kernel, which a shared folder may be on as well. It is
// "" where boots cannot be told apart.
func lockText() string {
	boot := host.BootID()
	if boot == "" {
		return ""
	}
	return "dmgbench makes an image under this name; boot " + boot + "\n"
}

// holdStem takes the lock of a stem. Where there can be none, what a kill leaves is left to the user: the images are
// made all the same.
func holdStem(dir *hostio.Dir, stem string) (release func() error) {
	none := func() error { return nil }
	text := lockText()
	if text == "" {
		return none
	}
	name := stem + lockSuffix
	f, err := dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err != nil {
		return none
	}
	release = func() error {
		err := dir.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, f.Close())
	}
	err = f.TryLock()
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0) // only now: an empty lock is nobody's to judge
	}
	if err != nil {
		_ = release() // the file that was just made, of no use
		return none
	}
	return release
}

// sweep removes from a folder what processes of this user that were killed have left there: only where the lock says that
// they ran under this kernel, and that they do so no more. What cannot be told, or removed, stays.
func (c *call) sweep(dir *hostio.Dir) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if lockName.MatchString(e.Name()) {
			c.sweepStem(dir, strings.TrimSuffix(e.Name(), lockSuffix))
		}
	}
}

func (c *call) sweepStem(dir *hostio.Dir, stem string) {
	name := stem + lockSuffix
	if !ownEntry(dir, name, fs.FileMode.IsRegular) {
		return
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return
	}
	defer f.Close()
	if f.TryLock() != nil || !abandoned(dir, f, name) {
		return
	}
	left, ok := leftUnder(dir, stem)
	if !ok {
		return
	}
	for _, image := range left {
		if container.Remove(dir, image) != nil {
			return
		}
		if c.has("-verbose") {
			fmt.Fprintf(c.err, "%s: removed what a killed process left: %q\n", c.tool, dir.Path()+"/"+image)
		}
	}
	_ = dir.Remove(name) // the next one tries again
}

// abandoned says whether a lock that nobody else holds is whole, of this boot, and still has its name.
func abandoned(dir *hostio.Dir, f *hostio.File, name string) bool {
	want := lockText()
	st, err := f.Stat()
	if err != nil || want == "" || st.Links != 1 || st.Size != int64(len(want)) {
		return false
	}
	got, err := dir.ReadFile(name, st.Size)
	return err == nil && string(got) == want
}

// leftUnder are the images of a stem. ok is false where one is not of this user or is none, or an old image may be
// among them.
func leftUnder(dir *hostio.Dir, stem string) (left []string, ok bool) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		rest, is := strings.CutPrefix(e.Name(), stem)
		switch {
		case !is || rest == lockSuffix:
			continue
		case strings.HasSuffix(rest, asideMark), rest != ".cdr" && !strings.HasPrefix(rest, "-"):
			return nil, false
		case !ownEntry(dir, e.Name(), func(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() }):
			return nil, false
		}
		left = append(left, e.Name())
	}
	return left, true
}

// ownEntry says whether a name is of that kind and belongs to the user of this process.
func ownEntry(dir *hostio.Dir, name string, kind func(fs.FileMode) bool) bool {
	fi, err := dir.Lstat(name)
	return err == nil && kind(fi.Mode()) && isOwn(fi)
}
