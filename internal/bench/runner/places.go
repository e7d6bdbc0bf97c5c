package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// title names the place in messages; runFolder is the folder of the run, "" if it is
// not known.
func (p Place) title(runFolder string) string {
	switch {
	case p.Name != "":
		return fmt.Sprintf("place %q", p.Name)
	case runFolder != "" && Absolute(p.Path) == Absolute(runFolder):
		return "the run folder"
	}
	return fmt.Sprintf("folder %q", p.Path)
}

// allPlaces returns the places that the user gave, the place "", and the plan's
// missing places, which use the folder of "".
func allPlaces(c Config) []Place {
	out, root := slices.Clone(c.Places), c.Out
	if i := slices.IndexFunc(out, func(p Place) bool { return p.Name == "" }); i >= 0 {
		root = out[i].Path
	} else {
		out = append([]Place{{Name: "", Path: root}}, out...)
	}
	for _, name := range missingPlaces(c) {
		out = append(out, Place{Name: name, Path: root})
	}
	return out
}

// missingPlaces are the places of the plan for which the user gave no folder:
// they use that of the unnamed place, which is a deviation.
func missingPlaces(c Config) []string {
	return slices.DeleteFunc(c.Plan.Places(), func(name string) bool {
		return slices.ContainsFunc(c.Places, func(p Place) bool { return p.Name == name })
	})
}

// Absolute is the path as another working directory finds it, or path itself
// where the working directory is gone.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Space is the most space that a run needs at one place, and the space that is free
// there.
type Space struct {
	Place      Place
	Title      string // of the place, in messages
	Need, Free units.Bytes
}

// String is one line for people.
func (s Space) String() string {
	return fmt.Sprintf("%s: up to %s needed, %s free", s.Title, s.Need.Human(), s.Free.Human())
}

// Spaces are the space that the largest case of each place needs, with all
// images that --keep leaves there. It writes no file.
func Spaces(c Config) ([]Space, error) {
	need, kept := map[string]units.Bytes{}, map[string]units.Bytes{}
	for _, cs := range c.Plan.Cases() {
		t, at := plan.Estimate(c.Plan, cs), cs.Settings.Place
		need[at] = max(need[at], t.HostPeak, c.Plan.Run.SteadyFile)
		if c.Keep { // every image is kept, as large as the files that were on it
			kept[at] += t.LivePeak * units.Bytes(c.Plan.Run.AtMost())
		}
	}
	var out []Space
	for _, p := range allPlaces(c) {
		free, err := freeSpace(p.Path)
		if err != nil {
			return nil, fmt.Errorf("reading the free space of %s: %w", p.title(c.Out), err)
		}
		if want := need[p.Name] + kept[p.Name]; want > 0 {
			out = append(out, Space{Place: p, Title: p.title(c.Out), Need: want, Free: units.Bytes(free)})
		}
	}
	return out, nil
}

// CheckSpace checks that no place has too little space; else the error is a
// [NotFitError].
func CheckSpace(spaces []Space) error {
	var reasons []string
	for _, s := range spaces {
		if s.Need > s.Free {
			reasons = append(reasons, fmt.Sprintf("%s has %s free, the plan needs %s at its peak",
				s.Title, s.Free.Human(), s.Need.Human()))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &NotFitError{Reasons: reasons,
		Hint: "use --sets or --scale for a smaller run, or --on DIR for another disk"}
}

// freeSpace is the free space in bytes of the file system that path is or will
// be on.
func freeSpace(path string) (int64, error) {
	path = Absolute(path)
	for filepath.Dir(path) != path {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			break
		}
		path = filepath.Dir(path)
	}
	dir, err := hostio.OpenDir(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	free, _, _, err := dir.FreeSpace() // for an unprivileged user
	return free, err
}

// checkWritable makes and removes a folder at each place that the user gave: only a
// real write finds every kind of refusal. It runs before the run folder is made. It
// accepts places that do not exist: opening them fails later.
func checkWritable(c Config) error {
	for _, p := range c.Places {
		dir, err := os.MkdirTemp(p.Path, ".dmgbench-*")
		if err == nil {
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("writing to %s: %w", p.title(c.Out), hostio.WithoutPath(err))
		}
	}
	return nil
}

// markerName marks a folder that a run made and may remove.
const markerName = ".dmgbench-run"

// markerTemp is the prefix of the temporary names of a marker, see
// [hostio.Dir.WriteFileAtomic].
const markerTemp = "." + markerName + ".tmp-"

// maxMarker bounds the size of a marker in bytes.
const maxMarker = 4096

// workFolderName is the name of a run's own folder at a place.
func workFolderName(id string) string { return "dmgbench-" + id }

// marker is the content of the file that marks a folder.
type marker struct {
	Run string `json:"run"`
}

// workFolder is a run's own folder at one place.
type workFolder struct {
	name  string      // of the place
	title string      // of the place, in messages
	root  *hostio.Dir // the place itself
	dir   *hostio.Dir // dmgbench-<run id> in it
	// backing is the folder in which the file system at the place keeps its
	// files; nil unless that is measured.
	backing *hostio.Dir
}

// openWorkFolder makes the run's marked folder at a place, or opens it if it
// exists.
func openWorkFolder(p Place, id string, hook hostio.Hook) (*workFolder, error) {
	title := p.title("")
	root, err := hostio.OpenDir(p.Path, hostio.WithHook(hook))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", title, err)
	}
	f := &workFolder{name: p.Name, title: title, root: root}
	if err = root.Mkdir(workFolderName(id)); err == nil || errors.Is(err, fs.ErrExist) {
		f.dir, err = root.Sub(workFolderName(id))
	}
	if err == nil {
		err = errors.Join(f.mark(id), f.checkMarkerAndOwner(id))
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("opening the run's own folder in %s: %w", title, err)
	}
	return f, nil
}

// mark writes the marker into a folder that is empty but for temporary markers: it
// is new, or the run was killed before it wrote the marker, or between removing
// marker and folder. Other folders stay as they are.
func (f *workFolder) mark(id string) error {
	list, err := f.dir.ReadDir(".")
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), markerTemp) }) {
		return nil
	}
	if err == nil {
		err = f.checkOwner(id)
	}
	if err != nil {
		return err
	}
	// Bands and files spread over fresh regions of the disk. Only ext4 supports
	// the hint.
	if err := f.dir.SpreadSubdirs(); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	text, _ := json.Marshal(marker{Run: id}) // a string never fails
	return f.dir.WriteFileAtomic(markerName, append(text, '\n'), 0o600)
}

// checkMarkerAndOwner fails unless the folder has the marker of run id and belongs
// to this user.
func (f *workFolder) checkMarkerAndOwner(id string) error {
	var m marker
	text, err := f.dir.ReadFile(markerName, maxMarker)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return fmt.Errorf("reading its marker: %w", err)
	}
	if m.Run != id {
		return fmt.Errorf("it belongs to run %q", m.Run)
	}
	return f.checkOwner(id)
}

// checkOwner fails unless the folder belongs to this user, or to the user who
// called sudo.
func (f *workFolder) checkOwner(id string) error {
	info, err := f.root.Lstat(workFolderName(id))
	if err == nil && !result.OwnedByUs(info) {
		err = errors.New("it belongs to another user")
	}
	return err
}

// isAt reports whether the place that holds the folder exists and is the folder at
// path. Paths of one folder may differ by links, and by case on macOS.
func (f *workFolder) isAt(path string) bool {
	own, err := f.root.Lstat(".")
	at, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(own, at)
}

// remove deletes the folder if marker, run id and owner agree, and closes it.
// The marker is the last file that it deletes: a run that is killed before that
// leaves a folder that is recognized as its own.
func (f *workFolder) remove(id string) error {
	defer f.close()
	name := workFolderName(id)
	for _, step := range []func() error{
		func() error { return f.checkMarkerAndOwner(id) },
		func() error { return f.dir.Verify(f.root, name) },
		func() error { return f.clear(func(string) bool { return false }) },
		func() error { return f.dir.Remove(markerName) },
		func() error { return f.root.Remove(name) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("removing the run's own folder in %s: %w", f.title, err)
		}
	}
	return nil
}

// clear removes every file except the marker and those that keep reports true
// for.
func (f *workFolder) clear(keep func(name string) bool) error {
	list, err := f.dir.ReadDir(".")
	for _, e := range list {
		if err == nil && e.Name() != markerName && !keep(e.Name()) {
			err = f.dir.RemoveAll(e.Name())
		}
	}
	return err
}

// close closes the handles; the folder stays.
func (f *workFolder) close() {
	if f.dir != nil {
		f.dir.Close()
	}
	if f.backing != nil {
		f.backing.Close()
	}
	f.root.Close()
}

// fingerprint changes when a container that a pause left is modified or
// replaced: a digest of names, kinds, sizes, modification times and inodes of
// its files. It omits the device, since a restart may number disks anew, and
// the size of a folder's list, which depends on the file system.
func (f *workFolder) fingerprint(name string) (string, error) {
	h := sha256.New()
	err := files.Walk(context.Background(), f.dir, name, func(inside string, fi fs.FileInfo) error {
		st := hostio.StatOf(fi)
		if fi.IsDir() {
			st.Size = 0
		}
		fmt.Fprintf(h, "%q %v %d %d %d\n", path.Join(name, inside), fi.Mode().Type(), st.Size,
			fi.ModTime().UnixNano(), st.Inode)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("examining %q: %w: %w", name, engine.ErrGone, err)
	}
	return "files-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// newID is a safe name that no other run has: the time in UTC, which sorts runs
// by age, and three random bytes for runs that start in the same second.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}
