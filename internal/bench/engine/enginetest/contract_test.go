// Package enginetest holds every engine to the same contract: runContract makes
// containers through it, fills, attaches, shrinks, copies, swaps and harms them,
// and reads every byte back.
//
// What an engine refuses with an [engine.UnsupportedError] is skipped, with its
// reason. Nothing else is: an engine that cannot free space, says so by
// Options.Keeps. The package measures nothing, and is for tests only.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// long is set where every size, format and repetition is wanted.
var long = os.Getenv("DMGBENCH_LONG") != ""

// Options say what is made of the engine, and what is known of it.
type Options struct {
	// Spec is the container that every test makes; no Format: a plain folder.
	Spec engine.Spec
	// Remounts is how often the container is attached and detached in a row; 0 is 5, and 20 in long tests.
	Remounts int
	// Convert are the formats that the container is converted to.
	Convert []string
	// Keeps says why space that was freed may stay allocated on the host; "": it has to come back.
	Keeps string
	// Long are tests that only long runs have: quick ones have them of another image.
	Long []string
	// After looks behind each test that nothing is left on the machine; may be nil.
	After func(t *testing.T)
}

// runContract holds the engines that make gives to the contract, in a folder of its own below dir.
func runContract(t *testing.T, make func() engine.Engine, dir string, o Options) {
	t.Helper()
	if o.Remounts == 0 {
		o.Remounts = map[bool]int{false: 5, true: 20}[long]
	}
	for _, one := range []struct {
		name string
		test func(*rig)
	}{
		{"life", (*rig).life}, {"remount", (*rig).remount}, {"read-only", (*rig).readOnly}, {"space", (*rig).space}, {"full", (*rig).full},
		{"resize", (*rig).resize}, {"transfer", (*rig).transfer}, {"convert", (*rig).convert}, {"swapped", (*rig).swapped},
		{"refusals", (*rig).refusals}, {"canceled", (*rig).canceled}, {"damage", (*rig).damage}, {"encryption", (*rig).encryption},
		{"trees", (*rig).trees},
	} {
		t.Run(one.name, func(t *testing.T) {
			if slices.Contains(o.Long, one.name) && !long {
				t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
			}
			path, err := os.MkdirTemp(dir, "engine")
			require.NoError(t, err)
			d, err := hostio.OpenDir(path)
			require.NoError(t, err)
			r := &rig{t: t, ctx: t.Context(), e: make(), dir: d, o: o, s: o.Spec}
			if c, ok := r.e.(interface{ Close() error }); ok {
				defer func() { assert.NoError(t, c.Close(), "closing the engine") }()
			}
			defer func() {
				d.Close()
				assert.NoError(t, os.RemoveAll(path))
				if o.After != nil {
					o.After(t)
				}
			}()
			one.test(r)
		})
	}
}

// rig is one test.
type rig struct {
	t   *testing.T
	ctx context.Context
	e   engine.Engine
	dir *hostio.Dir
	o   Options
	s   engine.Spec
}

// folder says whether the target is a plain folder.
func (r *rig) folder() bool { return r.s.Format == "" }

// peak is the most that a container may occupy while it holds live bytes of files: whole bands, some more for tables and
// metadata, and a thousandth of the size; of the volumes that other programs make, journals as well.
func (r *rig) peak(live int64) int64 {
	f, _ := image.FormatNamed(r.s.Format)
	switch {
	case r.folder():
		return live
	case !f.Grows():
		return r.s.Size
	}
	band := f.BandSize(r.s.BandSize)
	most := min(units.RoundUp(live, band), r.s.Size) + 4*band + r.s.Size/1000
	switch {
	case r.e.Info().Name == "hdiutil":
		most += 64 << 20
	case f.Name == image.ASIF:
		most += 5 * band
	}
	return most
}

// can skips the test when the engine refused, and fails it after any other error.
func (r *rig) can(err error) {
	r.t.Helper()
	if no, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		r.t.Skip(no.Error())
	}
	require.NoError(r.t, err)
}

func (r *rig) create(name string) engine.Container {
	r.t.Helper()
	r.can(r.e.Supports(r.s))
	c, err := r.e.Create(r.ctx, r.dir, name, r.s)
	require.NoError(r.t, err)
	r.discard(c)
	return c
}

// discard removes the container behind the test, unless the test has done it.
func (r *rig) discard(c engine.Container) {
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// Whatever the test left: the folder is removed as a whole.
		_ = c.Remove(ctx)
	})
}

// attach attaches; behind a test that ended early it is detached by force.
func (r *rig) attach(c engine.Container, o engine.AttachOptions) engine.Attachment {
	r.t.Helper()
	a, err := c.Attach(r.ctx, o)
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := a.Detach(ctx, true)
		assert.NoError(r.t, err, "detaching behind the test")
	})
	return a
}

func (r *rig) detach(a engine.Attachment) {
	r.t.Helper()
	_, err := a.Detach(r.ctx, false)
	require.NoError(r.t, err)
}

// with attaches for the time of f.
func (r *rig) with(c engine.Container, f func(v workload.Volume)) {
	r.t.Helper()
	a := r.attach(c, engine.AttachOptions{})
	require.NotNil(r.t, a.Volume())
	f(a.Volume())
	r.detach(a)
}

// work are the options of the workload; cache is one of its modes.
func (r *rig) work(cache string) workload.Options {
	data := workload.NewData(7, 1, "engine", workload.DataRandom, 0)
	return workload.Options{Clock: clock.NewReal(), Data: data, Sync: hostio.SyncFull, Cache: cache, Memory: 1 << 30, Workers: 2}
}

// batch are files of the sizes, in one folder.
func batch(n int, sizes ...int64) []workload.Item {
	var list []workload.Item
	for i, size := range sizes {
		list = append(list, workload.Item{Name: fmt.Sprintf("%s/f%02d", workload.BatchFolder(n), i), Size: size, Batch: n, Set: 1, Index: i})
	}
	return list
}

// odd are sizes around the edges of sectors, pages, blocks and bands: 6 MB in all, 12 MB in long tests.
var odd = []int64{0, 1, 511, 512, 513, 4095, 4096, 4097, 65537, 1 << 20, 1<<20 + 4095, 2_000_001, map[bool]int64{false: 2 << 20, true: 8 << 20}[long]}

func (r *rig) write(v workload.Volume, list []workload.Item, cache string) {
	r.t.Helper()
	out, err := workload.Write(r.ctx, v, list, r.work(cache))
	require.NoError(r.t, err)
	require.Len(r.t, out.Samples, len(list))
	require.NoError(r.t, v.Sync())
}

// intact compares every byte of the files.
func (r *rig) intact(v workload.Volume, list []workload.Item) {
	r.t.Helper()
	out, err := workload.Verify(r.ctx, v, list, r.work(workload.CacheBuffered))
	require.NoError(r.t, err)
	require.Empty(r.t, out.Findings)
	require.Equal(r.t, workload.Total(list), out.Bytes)
}

// holds attaches and compares.
func (r *rig) holds(c engine.Container, list []workload.Item) {
	r.t.Helper()
	r.with(c, func(v workload.Volume) { r.intact(v, list) })
}

// sound checks container and volume, as far as the engine can.
func (r *rig) sound(c engine.Container) {
	r.t.Helper()
	for _, what := range []string{"container", "volume"} {
		rep, err := c.Check(r.ctx, engine.CheckOptions{What: what})
		if no, ok := errors.AsType[*engine.UnsupportedError](err); ok {
			r.t.Logf("not checked: %v", no)
			continue
		}
		require.NoError(r.t, err)
		require.Empty(r.t, rep.Findings, what)
	}
}

func (r *rig) usage(c engine.Container) engine.Usage {
	r.t.Helper()
	u, err := c.Usage(r.ctx)
	require.NoError(r.t, err)
	return u
}
