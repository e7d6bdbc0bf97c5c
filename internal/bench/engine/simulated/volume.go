package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"sync"
	"time"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

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
}

var _ workload.Dataless = (*volume)(nil)

// Dataless reports that on a virtual clock no byte is moved.
func (v *volume) Dataless() bool { return v.c.e.dataless }

func (v *volume) Mkdir(name string) error {
	name = path.Clean(name)
	if _, ok := v.c.sizes[name]; ok {
		return fmt.Errorf("making folder %q: %w", name, fs.ErrExist)
	}
	v.c.sizes[name] = -1
	return nil
}

// Create enters a file; its bytes are counted as they are written.
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
	v.c.sizes[name] = 0
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

func (v *volume) Remove(name string) error {
	name = path.Clean(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	size, ok := v.c.sizes[name]
	if !ok {
		return fs.ErrNotExist
	}
	delete(v.c.sizes, name)
	v.c.live -= max(size, 0)
	return nil
}

func (v *volume) List(dir string) ([]workload.Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []workload.Entry
	for name, size := range v.c.sizes {
		if path.Dir(name) == path.Clean(dir) {
			out = append(out, workload.Entry{Name: path.Base(name), Size: max(size, 0), Dir: size < 0})
		}
	}
	slices.SortFunc(out, func(a, b workload.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
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

// side is the index of a direction.
func side(write bool) int {
	if write {
		return 1
	}
	return 0
}

// factor is what this file's times are multiplied with, drawn at its first call
// in a direction.
func (f *file) factor(write bool) float64 {
	k := side(write)
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

// Skip lets the time of a call pass, and counts its bytes.
func (f *file) Skip(write bool, off, n int64) error {
	v := f.v
	v.mu.Lock()
	size, k := v.c.sizes[f.name], side(write)
	if !write && off+n > size {
		v.mu.Unlock()
		return fmt.Errorf("reading after the end at %d", size)
	}
	age := v.c.e.clock.Now() - v.c.e.began
	seconds := v.c.law.seconds(write, v.moved[k], n)
	seconds *= f.factor(write) * v.factor * math.Pow(1+v.c.law.Drift, age.Hours())
	v.moved[k] += n
	if grown := off + n - size; write && grown > 0 {
		v.c.sizes[f.name] += grown
		v.c.live += grown
		v.c.peak = max(v.c.peak, v.c.live)
	}
	v.mu.Unlock()
	return v.pass(seconds)
}

// pass lets a time pass.
func (v *volume) pass(seconds float64) error {
	return v.c.e.pass(context.Background(), time.Duration(math.Round(seconds*1e9)))
}

// WriteAt takes the time of a write of len(p) bytes; the bytes are not looked
// at.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return len(p), f.Skip(true, off, int64(len(p)))
}

// ReadAt takes the time of a read and leaves p as it is. On a virtual clock it
// refuses: whoever wants to see bytes is at the wrong device.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if f.v.Dataless() {
		return 0, errContent
	}
	return len(p), f.Skip(false, off, int64(len(p)))
}

// Sync takes the time of a flush and flushes as far as was asked.
func (f *file) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if mode == hostio.SyncNone {
		return mode, nil
	}
	return mode, f.v.pass(f.v.c.law.Flush.Seconds() * f.factor(true) * f.v.factor)
}

func (*file) Evict() error { return nil }

// Resident is 0: the device has no cache.
func (*file) Resident() (float64, error) { return 0, nil }

// Cache is direct: the device has no cache.
func (*file) Cache() hostio.CacheMode { return hostio.CacheDirect }

func (*file) Close() error { return nil }
