package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

// Names of what can be compared.
const (
	plain        = "directory"
	preallocated = "preallocated"
	udrw         = "UDRW"
	udrwSparse   = "UDRW-sparse"
	udsb         = "UDSB"
	udsbAES      = "UDSB-AES-256" // compared with UDSB
	udsp         = "UDSP"
	asif         = "ASIF"
)

// engineTargets are what can be compared in process; the first usualTargets of them are, where nothing is said.
var engineTargets = []string{plain, preallocated, udrw, udrwSparse, udsb, udsbAES, udsp, asif}

const usualTargets = 6

// mountedTargets are what can be compared mounted: the kernel's file systems write to what is reserved in no other way.
var mountedTargets = []string{plain, udrw, udsb, udsbAES}

// targetsOf lists what a comparison can compare.
func targetsOf(comparison string) []string {
	if comparison == comparisonMounted {
		return mountedTargets
	}
	return engineTargets
}

// usual lists what is compared where nothing is said.
func usual(comparison string) []string {
	all := targetsOf(comparison)
	return all[:min(usualTargets, len(all))]
}

// baselines are what images are compared with.
var baselines = []string{plain, preallocated}

func checkTargets(names, all []string) error {
	for i, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("target %q: want some of %q", name, all)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("target %q is named twice", name)
		}
	}
	if slices.Contains(names, udsbAES) && !slices.Contains(names, udsb) {
		return fmt.Errorf("targets %q: %s is compared with %s, which is missing", names, udsbAES, udsb)
	}
	if !slices.ContainsFunc(names, isBaseline) || !slices.ContainsFunc(names, func(n string) bool { return !isBaseline(n) }) {
		return fmt.Errorf("targets %q: want at least one baseline (of %q) and one image", names, slices.DeleteFunc(slices.Clone(baselines), func(n string) bool { return !slices.Contains(all, n) }))
	}
	return nil
}

// baselinesOf are what a target is compared with: an encrypted image with the same one in plain.
func baselinesOf(subject string) []string {
	if subject == udsbAES {
		return []string{udsb}
	}
	return baselines
}

func isBaseline(name string) bool { return slices.Contains(baselines, name) }

// target makes the engine and the spec of a name, for so many bytes of files.
func target(name string, bytes int64, cache hostio.CacheMode) (engine.Engine, engine.Spec) {
	s := engine.Spec{Cache: cache}
	switch name {
	case plain, preallocated:
		s.Preallocate = name == preallocated
		return directory.Engine{}, s
	case udsb, udsp, asif:
		s.Format = name
	case udsbAES:
		s.Format, s.Encryption, s.Passphrase = "UDSB", "AES-256", []byte("side by side")
	default:
		s.Format = "UDRW"
	}
	s.Filesystems, s.VolumeName = []string{"exFAT"}, "side"
	s.Size = bytes + bytes/8 + 64<<20
	return inprocess.New(nil), s
}

// turn is one target's go at the files: made, written, attached again, read.
type turn struct {
	loads    [len(ops)]load
	cache    [len(ops)]string // achieved
	sync     string           // achieved
	warnings []result.Warning
}

// What a turn does, in this order.
const (
	opWrite   = iota
	opRewrite // the same files once more; mounted only
	opRead
)

var ops = [...]string{opWrite: "write", opRewrite: "rewrite", opRead: "read"}

// does says whether the comparison has the operation.
func (s *setup) does(op int) bool { return op != opRewrite || s.comparison == comparisonMounted }

// rig is what turns share.
type rig struct {
	dir     *hostio.Dir
	clock   clock.Clock
	buffers *workload.Buffers
	memory  int64
	setup   *setup
}

// take makes a container of the target, writes the items to it, attaches it again and reads them. The container stays:
// deleting it would give the disk work while the next turn is timed.
func (r *rig) take(ctx context.Context, name, file string, items []workload.Item, workers int, data *workload.Data) (t turn, err error) {
	cache := hostio.CacheMode(r.setup.cache)
	e, spec := target(name, workload.Total(items), cache)
	c, err := e.Create(ctx, r.dir, file, spec)
	if err != nil {
		return t, err
	}
	if name == udrwSparse { // the second attach trims: the state in which the protocols measure
		if err := attached(ctx, c, cache, func(workload.Volume) error { return nil }); err != nil {
			return t, err
		}
	}
	o := workload.Options{Clock: r.clock, Data: data, Workers: workers, Block: r.setup.block, Sync: r.setup.sync,
		Cache: r.setup.cache, Memory: r.memory, Buffers: r.buffers}
	err = attached(ctx, c, cache, func(v workload.Volume) error { return t.writing(ctx, opWrite, v, items, o) })
	if err != nil {
		return t, err
	}
	err = attached(ctx, c, cache, func(v workload.Volume) error { return t.reading(ctx, v, items, o) })
	return t, err
}

// writing writes the items and keeps what came of it.
func (t *turn) writing(ctx context.Context, op int, v workload.Volume, items []workload.Item, o workload.Options) error {
	out, err := workload.Write(ctx, v, items, o)
	if err != nil {
		return err
	}
	t.loads[op], t.cache[op], t.sync = timed(out), out.Cache.Achieved, out.Sync.Achieved
	t.warnings = append(t.warnings, out.Warnings...)
	return nil
}

// reading reads the items and keeps what came of it.
func (t *turn) reading(ctx context.Context, v workload.Volume, items []workload.Item, o workload.Options) error {
	if o.Cache == workload.CacheBuffered {
		o.Cache = workload.CacheCold // a read of pages that the write left would measure memory
	}
	out, err := workload.Read(ctx, v, items, o)
	if err != nil {
		return err
	}
	t.loads[opRead], t.cache[opRead] = timed(out), out.Cache.Achieved
	t.warnings = append(t.warnings, out.Warnings...)
	return nil
}

// timed is all bytes over gate to last done.
func timed(out workload.Outcome) load {
	return load{bytes: out.Span.Bytes, seconds: float64(out.Span.LastDoneNS-out.Span.GateNS) / 1e9}
}

func attached(ctx context.Context, c engine.Container, cache hostio.CacheMode, do func(workload.Volume) error) error {
	a, err := c.Attach(ctx, engine.AttachOptions{Cache: cache})
	if err != nil {
		return err
	}
	err = do(a.Volume())
	_, e := a.Detach(context.WithoutCancel(ctx), err != nil)
	return errors.Join(err, e)
}
