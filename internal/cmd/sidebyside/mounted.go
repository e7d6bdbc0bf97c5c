package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
	"dmgbench/internal/imagetool"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// toolVerb is what this program is called with to be the work-alike of hdiutil, which the engine drives.
const toolVerb = "hdiutil"

// tool runs the work-alike, or the process behind an image, when that is what the program was started for.
func tool(ctx context.Context, args []string) (code int, is bool) {
	switch {
	case len(args) > 0 && args[0] == toolVerb:
		return imagetool.Main(ctx, args[1:], imagetool.System()), true
	case len(args) > 0 && args[0] == imagetool.HelperVerb:
		return imagetool.Main(ctx, args, imagetool.System()), true
	}
	return 0, false
}

// errCannotMount says what is missing to mount images here.
var errCannotMount = errors.New("mounted images cannot be measured here")

// userID is the effective user; tests make it an ordinary one.
var userID = os.Geteuid

// mountable says why images cannot be mounted with the kernel's file system here, nil if they can.
func mountable() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("%w: loop devices and FUSE are Linux's", errCannotMount)
	case userID() != 0:
		return fmt.Errorf("%w: it takes root to mount", errCannotMount)
	case !attach.Loops():
		return fmt.Errorf("%w: %w", errCannotMount, attach.ErrNoLoop)
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("%w: %w", errCannotMount, attach.ErrNoFUSE)
	}
	if fs, ok := attach.FilesystemOf(innerFS); !ok || !fs.MountableByKernel {
		return fmt.Errorf("%w: the kernel has no %s", errCannotMount, innerFS)
	}
	return nil
}

// innerFS is the file system in the images: that of the usual disk, so that nothing but the image differs.
const innerFS = "ext4"

// cell is one way of doing the I/O. All cells of a turn share its container, one after the other, so that attaching is paid
// once.
type cell struct {
	workers int
	block   int64 // bytes a call, 0: whole files
}

func (s *setup) cells() (list []cell) {
	for _, workers := range s.workers {
		for _, block := range s.blocks {
			list = append(list, cell{workers, block})
		}
	}
	return list
}

// mounted compares images that the kernel mounts with plain directories, on each place.
func mounted(ctx context.Context, s *setup, status io.Writer) (rep report, err error) {
	if err := mountable(); err != nil {
		return rep, err
	}
	self, err := os.Executable()
	if err != nil {
		return rep, err
	}
	e, err := hdiutil.New(ctx, hdiutil.WorkAlike(clock.NewReal(), self, toolVerb))
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, name := range s.places {
		part, err := s.mountedOn(ctx, name, e, status)
		if err != nil {
			return rep, fmt.Errorf("measuring on %s: %w", name, err)
		}
		if rep.Comparison == "" {
			rows := rep.Rows
			rep = part
			rep.Rows = rows
		} else if part.Filesystem != rep.Filesystem {
			rep.Filesystem += ", " + part.Filesystem
		}
		for _, w := range part.Warnings {
			if !slices.Contains(rep.Warnings, w) {
				rep.Warnings = append(rep.Warnings, w)
			}
		}
		rep.Rows = append(rep.Rows, part.Rows...)
	}
	return rep, nil
}

// mountedOn measures all cells on one place.
func (s *setup) mountedOn(ctx context.Context, place string, e engine.Engine, status io.Writer) (rep report, err error) {
	at := *s
	if place == placeMemory {
		var unmount func() error
		if at.dir, unmount, err = memoryPlace(s.dir); err != nil {
			return rep, err
		}
		defer func() { err = errors.Join(err, unmount()) }()
	}
	dir, remove, err := at.place()
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := &mountRig{rig: rig{dir: dir, clock: clock.NewReal(), buffers: &workload.Buffers{}, memory: host.Memory(), setup: &at},
		engine: e, place: place}
	defer r.buffers.Free()
	turns := int64(2 * len(s.targets))
	if place == placeMemory {
		turns = 1
	}
	if err := r.room(turns * r.imageSize()); err != nil {
		return rep, err
	}
	rep = r.describe(ctx)
	rep.Files = fmt.Sprintf("%d files, %s a turn and way (%d sizes from %s to %s, %d sets, shuffled)", len(s.sizes)*s.sets,
		units.Bytes(s.total()).Human(), len(s.sizes), units.Bytes(slices.Min(s.sizes)).Human(), units.Bytes(slices.Max(s.sizes)).Human(), s.sets)
	turnsOf, err := r.rounds(ctx, status)
	if err != nil {
		return rep, err
	}
	if place == placeMemory {
		rep.Warnings = append(rep.Warnings, "memory: a tmpfs is its own cache, direct or not; the volumes on it were opened as asked")
	}
	rep.Rows, err = r.rows(turnsOf)
	return rep, err
}

// mountRig is what the turns on one place share.
type mountRig struct {
	rig
	engine engine.Engine
	place  string
}

// done is what one target did in one cell.
type done struct {
	target string
	cell   cell
}

// imageSize is what the files of all cells need, with their file system.
func (r *mountRig) imageSize() int64 {
	all := r.setup.total() * int64(len(r.setup.cells()))
	return all + all/8 + 128<<20
}

// rounds measures the targets in pairs. Of each round and target it gives the two turns added up, by cell; the first round
// warms up and is left out.
func (r *mountRig) rounds(ctx context.Context, status io.Writer) (map[done][]turn, error) {
	s, all := r.setup, map[done][]turn{}
	for round := range s.pairs + 1 {
		sums, began := map[done]turn{}, r.clock.Now()
		for place, i := range schedule(len(s.targets), round) {
			name := s.targets[i]
			turns, err := r.take(ctx, name, round, place)
			if err == nil && r.place == placeMemory {
				// The next turn gets the pages that this one has just touched: those of an idle machine cost more.
				err = r.empty()
			}
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", name, err)
			}
			for c, t := range turns {
				sums[done{name, c}] = add(sums[done{name, c}], t)
			}
		}
		fmt.Fprintf(status, "%s, round %d of %d: %s\n", r.place, round, s.pairs, units.Duration(r.clock.Now()-began).Human())
		if err := r.clear(ctx); err != nil {
			return nil, err
		}
		if round == 0 {
			continue
		}
		for k, t := range sums {
			all[k] = append(all[k], t)
		}
	}
	return all, nil
}

// take makes a container of the target, writes the files of all cells, attaches it again and reads them.
func (r *mountRig) take(ctx context.Context, name string, round, place int) (map[cell]turn, error) {
	s := r.setup
	cells := s.cells()
	from := round % len(cells) // another one first in each round
	cells = slices.Concat(cells[from:], cells[:from])
	cache := hostio.CacheMode(s.cache)
	e, spec := r.target(name, cache)
	c, err := e.Create(ctx, r.dir, fmt.Sprintf("turn%02d", place), spec)
	if err != nil {
		return nil, err
	}
	turns := map[cell]turn{}
	each := func(do func(workload.Volume, []workload.Item, workload.Options, *turn) error) error {
		return attached(ctx, c, cache, func(v workload.Volume) error {
			for i, one := range cells {
				data, err := workload.NewData(s.seed, round, fmt.Sprint(place, i), workload.DataRandom, 0)
				if err != nil {
					return err
				}
				items := workload.Items(s.fileSet(), workload.Key{Seed: s.seed, Round: round + 1, Step: "side", Batch: i + 1})
				o := workload.Options{Clock: r.clock, Data: data, Workers: one.workers, Block: one.block, Sync: s.sync,
					Cache: s.cache, Memory: r.memory, Buffers: r.buffers}
				t := turns[one]
				if err := do(v, items, o, &t); err != nil {
					return err
				}
				turns[one] = t
			}
			return nil
		})
	}
	err = each(func(v workload.Volume, items []workload.Item, o workload.Options, t *turn) error {
		return t.writingTwice(ctx, v, items, o)
	})
	if err == nil {
		err = each(func(v workload.Volume, items []workload.Item, o workload.Options, t *turn) error {
			return t.reading(ctx, v, items, o)
		})
	}
	return turns, err
}

// target makes the engine and the spec of a name.
func (r *mountRig) target(name string, cache hostio.CacheMode) (engine.Engine, engine.Spec) {
	if isBaseline(name) {
		return directory.Engine{}, engine.Spec{Cache: cache, Preallocate: name == preallocated}
	}
	spec := engine.Spec{Format: name, Encryption: "none", Cache: cache, Filesystems: []string{innerFS}, VolumeName: "side",
		Size: r.imageSize()}
	if name == udsbAES {
		spec.Format, spec.Encryption, spec.Passphrase = udsb, "AES-256", []byte("side by side")
	}
	return r.engine, spec
}

// rows makes the ratios of every image to every baseline, by cell.
func (r *mountRig) rows(turns map[done][]turn) ([]row, error) {
	var rows []row
	for _, c := range r.setup.cells() {
		part := map[string][]turn{}
		for k, list := range turns {
			if k.cell == c {
				part[k.target] = list
			}
		}
		of, err := r.setup.rows(c.workers, part, func(subject string, op int) float64 { return mountedAim(r.place, subject, op, c) })
		if err != nil {
			return nil, err
		}
		for _, row := range of {
			row.Place, row.Block = r.place, c.block
			if r.place == placeMemory { // tmpfs has no other way than through the cache, which it is
				row.Warnings = slices.DeleteFunc(row.Warnings, func(w string) bool { return strings.HasPrefix(w, "cache: ") })
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// mountedAim is the ratio to reach, 0 for none. In memory the raw image has none: with two workers on two cores the second
// copy alone halves the rate, as arithmetic has it.
func mountedAim(place, subject string, op int, c cell) float64 {
	switch {
	case subject == udsbAES && place == placeDisk:
		return aim(subject, op, c.workers)
	case subject == udsbAES:
		return 0
	case subject == udrw && place == placeDisk:
		return 0.90
	case subject == udrw:
		return 0
	case place == placeDisk && c.workers == 1 && c.block > 0 && c.block <= 1<<20:
		return 0.50
	case place == placeDisk:
		return 0.80
	case c.workers == 1:
		return 0.60
	}
	return 0.35
}
