package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

// Space is what a run needs at one place at most, and what is free there.
type Space struct {
	Place      Place
	Title      string // for people
	Need, Free units.Bytes
}

func (s Space) String() string {
	return fmt.Sprintf("%s: up to %s needed, %s free", s.Title, s.Need.Human(), s.Free.Human())
}

// Spaces are the space that the largest case of each place needs, with all that --keep leaves there. Nothing is written.
func Spaces(c Config) ([]Space, error) {
	need, kept := map[string]units.Bytes{}, map[string]units.Bytes{}
	for _, cs := range c.Plan.Cases() {
		t, at := plan.Estimate(c.Plan, cs), cs.Settings.Place
		need[at] = max(need[at], t.HostPeak, c.Plan.Run.SteadyFile)
		if c.Keep { // every image stays, as large as the files that were on it
			kept[at] += t.LivePeak * units.Bytes(c.Plan.Run.AtMost())
		}
	}
	var out []Space
	for _, p := range allPlaces(c) {
		free, err := freeAt(p.Path)
		if err != nil {
			return nil, fmt.Errorf("asking %s for free space: %w", p.title(c.Out), err)
		}
		if want := need[p.Name] + kept[p.Name]; want > 0 {
			out = append(out, Space{Place: p, Title: p.title(c.Out), Need: want, Free: units.Bytes(free)})
		}
	}
	return out, nil
}

// Fit checks that no place has too little space; else the error is a [NotFitError].
func Fit(spaces []Space) error {
	var reasons []string
	for _, s := range spaces {
		if s.Need > s.Free {
			reasons = append(reasons, fmt.Sprintf("%s has %s free, the plan needs %s at its peak", s.Title, s.Free.Human(), s.Need.Human()))
		}
	}
	if len(reasons) > 0 {
		return &NotFitError{Reasons: reasons, Hint: "use --sets or --scale for a smaller run, or --on DIR for another disk"}
	}
	return nil
}

// fits checks that the places of a run have space for it.
func fits(c Config) error {
	if simulated(c.Engine) {
		return nil
	}
	spaces, err := Spaces(c)
	if err != nil {
		return err
	}
	return Fit(spaces)
}

// writable makes and removes a folder at each place, as only that tells of every kind of refusal, before
// there is a run folder. Places that are not there are another matter.
func writable(c Config) error {
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

// withoutPath is the cause alone.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// allPlaces are the named places and the run folder, which is the place "" unless --on gave another.
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

// missingPlaces are the places that the plan names and nobody gave: they lie
// with the unnamed place, which is a departure.
func missingPlaces(c Config) []string {
	var out []string
	for _, name := range c.Plan.Places() {
		if !slices.ContainsFunc(c.Places, func(p Place) bool { return p.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

func (r *run) openPlaces(undo *cleanup) error {
	r.places = map[string]*place{}
	for _, p := range allPlaces(r.c) {
		if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("opening %s: no such folder", p.title(r.c.Out))
		}
		if pl := r.shared(p.Path); pl != nil {
			r.places[p.Name] = pl
			continue
		}
		pl, err := openPlace(p, r.id, r.c.Hook)
		if err != nil {
			return err
		}
		r.places[p.Name] = pl
		undo.push("cleaning up", func(context.Context) error { return pl.remove(r.id) })
	}
	return nil
}

// shared is the opened place in the same folder, if several names mean one, however it is written.
func (r *run) shared(path string) *place {
	at, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, pl := range r.places {
		if own, err := pl.root.Stat("."); err == nil && os.SameFile(own, at) {
			return pl
		}
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
