package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/result"
)

// belongs says whether name is the container base, with an extension or as the
// second container base-NAME of the same case.
func belongs(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base)
	return ok && base != "" && (rest == "" || rest[0] == '.' || rest[0] == '-')
}

// keptBefore are the case-rounds of earlier sessions whose images --keep leaves.
func (r *run) keptBefore() []*result.Attempt {
	var out []*result.Attempt
	for _, a := range r.state.Attempts {
		if r.c.Keep && a.End != nil && a.End.Status == result.Done {
			out = append(out, a)
		}
	}
	return out
}

// clearLeftovers removes what an interrupted session left in the run's folders,
// except the containers that a pause keeps and what --keep keeps of finished
// cases. Whatever it left attached is detached before.
func (r *run) clearLeftovers(ctx context.Context) error {
	if err := r.releaseLeftovers(ctx); err != nil {
		return err
	}
	var kept []string
	if p := r.state.Paused; p != nil {
		kept = append(kept, p.Container)
		for _, o := range p.Others {
			kept = append(kept, o.Container)
		}
	}
	for _, a := range r.keptBefore() {
		kept = append(kept, a.Start.Container)
	}
	for _, p := range r.places {
		err := p.clear(func(name string) bool {
			for _, base := range kept {
				if belongs(name, base) {
					return true
				}
			}
			return false
		})
		if err != nil {
			return fmt.Errorf("removing leftovers in %s: %w", p.title, err)
		}
	}
	return nil
}

// recallKept says how to open the images that earlier sessions kept. One that
// the user has taken away since is passed over.
func (r *run) recallKept(ctx context.Context) {
	for _, a := range r.keptBefore() {
		c, p := r.find(a.Start.Case), r.places[a.Start.Place]
		if c == nil || p == nil {
			continue
		}
		list, err := p.dir.ReadDir(".")
		if err != nil {
			continue
		}
		for _, f := range list {
			base, _, _ := strings.Cut(f.Name(), ".")
			if base != a.Start.Container {
				continue
			}
			con, err := r.engineFor(c.Settings).Open(ctx, p.dir, f.Name(), specOf(c.Settings))
			if err == nil {
				r.kept = append(r.kept, con.OpenWith(filepath.Join(p.dir.Path(), con.Name()))...)
			}
		}
	}
}

// lastLook detaches, where an engine can, whatever is attached below the folders that are about to be removed, and notes
// whether something stays.
func (r *run) lastLook(ctx context.Context) {
	n, err := r.release(ctx)
	switch {
	case err != nil:
		r.stuck = true
		r.warn("", "cleanup", err.Error())
	case n > 0: // a list that names none proves nothing
		r.stuck = false
	}
}

// releaseLeftovers detaches what a session that was killed left attached.
func (r *run) releaseLeftovers(ctx context.Context) error {
	if r.session == 1 {
		return nil
	}
	_, err := r.release(ctx)
	r.doubt = err != nil
	return err
}

// release detaches what is attached below the run's folders, all of it or with an error, and says how much that was. What an
// engine attaches that cannot do this ends with its process.
func (r *run) release(ctx context.Context) (n int, err error) {
	e, ok := r.c.Engine.(engine.Releaser)
	if !ok {
		return 0, nil
	}
	for _, p := range r.places {
		names, err := e.Release(ctx, p.dir.Path())
		n += len(names)
		for _, name := range names {
			r.warn("", "leftover", name+" was still attached, and was detached")
		}
		if err != nil {
			return n, fmt.Errorf("detaching leftovers in %s: %w", p.title, err)
		}
	}
	return n, nil
}
