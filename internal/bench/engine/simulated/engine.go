package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

const title = "simulated device"

// Engine is a device whose times follow the laws of a Machine. Its containers live
// as long as it does and leave no files on the host. It is not safe for concurrent
// use.
type Engine struct {
	machine  Machine
	clock    clock.Clock
	dataless bool
	session  int
	source   source
	made     map[string]*container
	births   map[string]int // how often a name was created: the canary is made many times
	began    time.Duration  // by the clock, when the device was made
}

var _ engine.Engine = (*Engine)(nil)

// New returns a device that is timed by m. It advances a virtual clock, and waits
// busily on any other. Two devices of one machine, seed and session behave the same;
// another session draws other session noise.
func New(m Machine, c clock.Clock, seed uint64, session int) (*Engine, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	_, dataless := c.(*clock.Virtual)
	return &Engine{machine: m, clock: c, dataless: dataless, session: session,
		source: source(seed).of("simulated device 1"),
		made:   map[string]*container{}, births: map[string]int{}, began: c.Now()}, nil
}

// Info names the engine.
func (e *Engine) Info() engine.Info {
	return engine.Info{Name: engine.Simulated, Vendor: "dmgbench", Version: "1", Title: title}
}

// Simulated returns the description of the machine on one line.
func (e *Engine) Simulated() string { return e.machine.text }

// Supports accepts every format and encryption: they are names of laws.
func (*Engine) Supports(engine.Spec) error { return nil }

// actions are what the device has no law for, as refusals name it.
var actions = map[string]string{"resize": "resizing", "convert": "converting", "transfer": "transferring",
	"check": "checking", "xattr": "extended attributes", "damage": "damage", "recover": "recovering",
	"edit": "editing files", "manifest": "a manifest of files"}

// Allows refuses what the device has no law for.
func (*Engine) Allows(_ engine.Spec, a engine.Action) error {
	if what := actions[a.Do]; what != "" {
		return &engine.UnsupportedError{Engine: title, What: strings.TrimSpace(what + " " + a.Kind)}
	}
	return nil
}

// Create registers a container under its name.
func (e *Engine) Create(ctx context.Context, _ *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if e.made[name] != nil {
		return nil, fmt.Errorf("creating simulated container %q: it exists", name)
	}
	e.births[name]++
	kind := Kind(s.Format, s.Encryption)
	c := &container{e: e, name: name, spec: s, kind: kind, law: e.machine.Of(kind), sizes: map[string]int64{},
		inside:  map[string]map[string]bool{},
		birth:   e.births[name],
		NoImage: engine.NoImage{Refuse: func(a engine.Action) error { return e.Allows(s, a) }}}
	if err := e.pass(ctx, c.law.Step); err != nil {
		return nil, err
	}
	e.made[name] = c
	return c, nil
}

// Open finds a container that this device made.
func (e *Engine) Open(_ context.Context, _ *hostio.Dir, name string, _ engine.Spec) (engine.Container, error) {
	if c := e.made[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("opening simulated container %q: %w", name, engine.ErrGone)
}

// pass waits for d: it advances a virtual clock and waits busily on a real one, since
// a sleep would end late by more than a small file takes.
func (e *Engine) pass(ctx context.Context, d time.Duration) error {
	if v, ok := e.clock.(*clock.Virtual); ok {
		v.Advance(d)
		return ctx.Err()
	}
	for until := e.clock.Now() + d; e.clock.Now() < until; {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// container is one image: names, lengths and a high-water mark.
type container struct {
	engine.NoImage
	e      *Engine
	name   string
	kind   string
	spec   engine.Spec
	law    Law
	sizes  map[string]int64           // files; folders are -1
	inside map[string]map[string]bool // names by folder
	live   int64
	peak   int64 // what it occupies until it is compacted
	mounts int
	birth  int // number of the creation under its name, from 1
}

// enter adds a name. Under mu of the volume.
func (c *container) enter(name string, size int64) {
	c.sizes[name] = size
	folder := path.Dir(name)
	if c.inside[folder] == nil {
		c.inside[folder] = map[string]bool{}
	}
	c.inside[folder][path.Base(name)] = true
}

// leave removes a name and its bytes. Under mu of the volume.
func (c *container) leave(name string) {
	c.live -= max(c.sizes[name], 0)
	delete(c.sizes, name)
	delete(c.inside[path.Dir(name)], path.Base(name))
}

func (c *container) Name() string { return c.name }

func (c *container) Made() engine.Made {
	m := engine.Made{Filesystem: "simulated", Size: c.spec.Size, BandSize: c.spec.BandSize, Backend: "simulated"}
	if len(c.spec.Filesystems) > 0 {
		m.Filesystem = c.spec.Filesystems[0]
	}
	return m
}

// Attach mounts the container and draws the noise of this mount.
func (c *container) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.e.pass(ctx, c.law.Step); err != nil {
		return nil, err
	}
	c.mounts++
	if o.NoMount {
		return &attachment{c: c}, nil
	}
	session := c.e.source.of("session", strconv.Itoa(c.e.session))
	mount := c.e.source.of("session", strconv.Itoa(c.e.session), c.name, strconv.Itoa(c.mounts))
	if c.birth > 1 {
		mount = mount.of("birth", strconv.Itoa(c.birth))
	}
	v := &volume{c: c, source: mount, readOnly: o.ReadOnly}
	v.factor = mount.lognormal(c.law.MountNoise) * session.lognormal(c.law.SessionNoise) *
		session.of(c.kind).lognormal(c.law.OwnNoise)
	return &attachment{c: c, vol: v}, nil
}

// Usage is the high-water mark of the live bytes.
func (c *container) Usage(context.Context) (engine.Usage, error) {
	return engine.Usage{Allocated: c.peak, Apparent: max(c.spec.Size, c.peak), Sparse: c.peak < c.spec.Size}, nil
}

// Compact releases the space that is not in use.
func (c *container) Compact(ctx context.Context, _ engine.CompactOptions) (engine.Report, error) {
	freed := c.peak - c.live
	c.peak = c.live
	return engine.Report{Freed: freed}, c.e.pass(ctx, c.law.Step)
}

func (c *container) Evict(context.Context) error { return nil }

func (c *container) Identity(context.Context) (string, error) { return "simulated-" + c.name, nil }

func (c *container) OpenWith(string) []string { return nil }

func (c *container) Remove(context.Context) error {
	delete(c.e.made, c.name)
	return nil
}

// attachment is an attached container.
type attachment struct {
	c   *container
	vol workload.Volume
}

// Volume is nil for a container that was attached without mounting, and after Detach.
func (a *attachment) Volume() workload.Volume { return a.vol }

// Trim releases the space that is not in use, as Compact does.
func (a *attachment) Trim(ctx context.Context) (engine.Report, error) {
	return a.c.Compact(ctx, engine.CompactOptions{})
}

// Detach takes the time of one step. Further calls of Detach have no effect.
func (a *attachment) Detach(ctx context.Context, _ bool) (engine.Report, error) {
	if a.c == nil {
		return engine.Report{}, nil
	}
	err := a.c.e.pass(ctx, a.c.law.Step)
	a.c, a.vol = nil, nil
	return engine.Report{}, err
}

// Errors of refused operations.
var (
	errWorkers = errors.New("the simulated device serves one worker: its clock is one for all")
	errContent = errors.New("the simulated device keeps no content")
)

// volume is one mount. Its memory grows with the number of files, never with
// their bytes.
type volume struct {
	c        *container
	source   source
	factor   float64 // of mount, session and kind
	readOnly bool

	mu    sync.Mutex
	moved [2]int64 // bytes read and written since the attach
	files [2]int   // files read and written since the attach
	calls uint64   // of Operate since the attach
}

var _ workload.Dataless = (*volume)(nil)

// Dataless reports whether the clock is virtual, so that calls move no bytes.
func (v *volume) Dataless() bool { return v.c.e.dataless }

func (v *volume) Mkdir(name string) error {
	name = path.Clean(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.c.sizes[name]; ok {
		return fmt.Errorf("making folder %q: %w", name, fs.ErrExist)
	}
	for ok := false; name != "." && !ok; _, ok = v.c.sizes[name] { // it, and missing ones around it
		v.c.enter(name, -1)
		name = path.Dir(name)
	}
	return nil
}

// Create registers a file; its bytes are counted as they are written.
func (v *volume) Create(name string, _ int64, o workload.FileOptions) (workload.File, error) {
	name = path.Clean(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch _, ok := v.c.sizes[name]; {
	case ok:
		return nil, fs.ErrExist
	case v.readOnly:
		return nil, fs.ErrPermission
	case o.Worker > 0:
		return nil, errWorkers
	}
	v.c.enter(name, 0)
	return &file{v: v, name: name}, nil
}

func (v *volume) Open(name string, o workload.FileOptions) (workload.File, error) {
	name = path.Clean(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	if size, ok := v.c.sizes[name]; !ok || size < 0 {
		return nil, fs.ErrNotExist
	}
	if o.Worker > 0 {
		return nil, errWorkers
	}
	return &file{v: v, name: name}, nil
}

// Rename gives a file another name, in place of the file that has it.
func (v *volume) Rename(from, to string) error {
	from, to = path.Clean(from), path.Clean(to)
	v.mu.Lock()
	defer v.mu.Unlock()
	size, ok := v.c.sizes[from]
	switch {
	case !ok:
		return fs.ErrNotExist
	case v.readOnly:
		return fs.ErrPermission
	}
	v.c.leave(to)
	v.c.leave(from)
	v.c.enter(to, size)
	v.c.live += max(size, 0)
	return nil
}

// List returns the names in a folder, sorted.
func (v *volume) List(folder string) ([]string, error) {
	folder = path.Clean(folder)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.c.sizes[folder] >= 0 && folder != "." {
		return nil, fs.ErrNotExist
	}
	return slices.Sorted(maps.Keys(v.c.inside[folder])), nil
}

// Operate takes the time of one operation. Each has a factor of its own, which
// the number of those before it determines.
func (v *volume) Operate(kind string, n int64) error {
	v.mu.Lock()
	law := v.c.law
	own := law.fileFactor(v.source.of("operation", kind, strconv.FormatUint(v.calls, 10)))
	v.calls++
	v.mu.Unlock()
	seconds := law.Flush.Seconds()
	if kind != "flush" {
		seconds = law.seconds(kind != "read", 0, n)
	}
	return v.pass(seconds * own * v.factor)
}

func (v *volume) Remove(name string) error {
	name = path.Clean(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.c.sizes[name]; !ok {
		return fs.ErrNotExist
	}
	v.c.leave(name)
	return nil
}

// Rmdir deletes a folder.
func (v *volume) Rmdir(name string) error { return v.Remove(name) }

func (v *volume) Size(name string) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	size, ok := v.c.sizes[path.Clean(name)]
	if !ok {
		return 0, fs.ErrNotExist
	}
	return max(size, 0), nil
}

func (v *volume) Free() (int64, error) { return max(v.c.spec.Size-v.c.live, 0), nil }

func (*volume) Sync() error { return nil }

// file is one open file.
type file struct {
	v    *volume
	name string
	own  [2]float64 // the file's factor in each direction, 0 until it is drawn
}

var _ workload.Skipper = (*file)(nil)

// The indexes of the directions.
const (
	read = iota
	write
)

// drawFactor returns the factor on the times of this file, drawn at its first call in
// the direction k.
func (f *file) drawFactor(k int) float64 {
	if f.own[k] != 0 {
		return f.own[k]
	}
	law, from := f.v.c.law, f.v.source.of([]string{"read", "write"}[k])
	n := f.v.files[k]
	f.v.files[k]++
	own := law.fileFactor(from.of(f.name))
	if n == 0 && law.First > 0 {
		own *= law.First
	}
	if law.slow(from, n) {
		own *= law.SlowFactor
	}
	f.own[k] = own
	return own
}

// Skip takes the time of a read or write of n bytes at off, without data, and counts
// its bytes.
func (f *file) Skip(isWrite bool, off, n int64) error {
	v, k := f.v, read
	if isWrite {
		k = write
	}
	v.mu.Lock()
	size := v.c.sizes[f.name]
	if !isWrite && off+n > size {
		v.mu.Unlock()
		return fmt.Errorf("reading after the end at %d", size)
	}
	age := v.c.e.clock.Now() - v.c.e.began
	seconds := v.c.law.seconds(isWrite, v.moved[k], n)
	seconds *= f.drawFactor(k) * v.factor * math.Pow(1+v.c.law.Drift, age.Hours())
	v.moved[k] += n
	if grown := off + n - size; isWrite && grown > 0 {
		v.c.sizes[f.name] += grown
		v.c.live += grown
		v.c.peak = max(v.c.peak, v.c.live)
	}
	v.mu.Unlock()
	return v.pass(seconds)
}

// pass waits for the seconds.
func (v *volume) pass(seconds float64) error {
	return v.c.e.pass(context.Background(), time.Duration(math.Round(seconds*1e9)))
}

// WriteAt takes the time of a write of len(p) bytes; their values are ignored.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return len(p), f.Skip(true, off, int64(len(p)))
}

// ReadAt takes the time of a read and leaves p as it is. On a virtual clock it is an
// error, as the caller has to use Skip.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if f.v.Dataless() {
		return 0, errContent
	}
	return len(p), f.Skip(false, off, int64(len(p)))
}

// Sync takes the time of a flush and returns the requested mode.
func (f *file) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if mode == hostio.SyncNone {
		return mode, nil
	}
	return mode, f.v.pass(f.v.c.law.Flush.Seconds() * f.drawFactor(write) * f.v.factor)
}

func (*file) Evict() error { return nil }

// Resident is 0: the device has no cache.
func (*file) Resident() (float64, error) { return 0, nil }

// Cache is direct: the device has no cache.
func (*file) Cache() hostio.CacheMode { return hostio.CacheDirect }

func (*file) Close() error { return nil }
