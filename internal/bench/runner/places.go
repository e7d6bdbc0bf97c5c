package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// Place is a named folder that containers are put into; the place "" is the run
// folder.
type Place struct{ Name, Path string }

// title names the place of a run with this folder in messages.
func (p Place) title(folder string) string {
	switch {
	case p.Name != "":
		return fmt.Sprintf("place %q", p.Name)
	case folder != "" && absolute(p.Path) == absolute(folder):
		return "the run folder"
	}
	return fmt.Sprintf("folder %q", p.Path)
}

// allPlaces are the named places and the run folder, which is the place ""
// unless --on gave another.
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

// withoutPath is the cause of an error without the path that it names.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// absolute is the path as another working directory finds it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Space is what a run needs at one place at most, and what is free there.
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

// checkRunSpace checks that the places of a run have space for it. Simulated
// disks need none.
func checkRunSpace(c Config) error {
	if isSimulated(c.Engine) {
		return nil
	}
	spaces, err := Spaces(c)
	if err != nil {
		return err
	}
	return CheckSpace(spaces)
}

// freeSpace is the free space in bytes of the file system that path is or will
// be on.
func freeSpace(path string) (int64, error) {
	path = absolute(path)
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

// checkWritable makes and removes a folder at each place before there is a run
// folder, since only that finds every kind of refusal. It accepts places that
// do not exist: opening them fails later.
func checkWritable(c Config) error {
	for _, p := range c.Places {
		dir, err := os.MkdirTemp(p.Path, ".dmgbench-*")
		if err == nil {
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("writing to %s: %w", p.title(c.Out), withoutPath(err))
		}
	}
	return nil
}

// openPlaces opens the work folder of every place. Names of one folder share
// it.
func (r *run) openPlaces(undo *undoStack) error {
	r.places = map[string]*workFolder{}
	for _, p := range allPlaces(r.c) {
		f := r.placeIn(p.Path)
		if f == nil {
			var err error
			if f, err = openWorkFolder(p, r.id, r.c.Hook); err != nil {
				return err
			}
			f.title = p.title(r.c.Out)
			r.folders = append(r.folders, f)
			undo.push("cleaning up", func(context.Context) error { return f.remove(r.id) })
		}
		r.places[p.Name] = f
	}
	return nil
}

// placeIn is the opened place in the folder at path, nil if there is none.
// Paths of one folder may differ by links, and by case on macOS.
func (r *run) placeIn(path string) *workFolder {
	at, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, f := range r.folders {
		if own, err := f.root.Stat("."); err == nil && os.SameFile(own, at) {
			return f
		}
	}
	return nil
}

// detachImages detaches the images below the run's folders, whichever session
// attached them, and returns their number. An engine without [engine.Releaser]
// detaches all its images when its process ends.
func (r *run) detachImages(ctx context.Context) (n int, err error) {
	e, ok := r.c.Engine.(engine.Releaser)
	if !ok {
		return 0, nil
	}
	for _, f := range r.folders {
		names, err := e.Release(ctx, f.dir.Path())
		n += len(names)
		for _, name := range names {
			r.warn("", "leftover", name+" was still attached, and was detached")
		}
		if err != nil {
			return n, fmt.Errorf("detaching leftovers in %s: %w", f.title, err)
		}
	}
	return n, nil
}
