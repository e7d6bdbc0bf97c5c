package workload

import (
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

func init() { onMac = false } // tests expect the same on every system

// fakeVolume keeps files in memory and moves a virtual clock by what each call
// costs.
type fakeVolume struct {
	mu    sync.Mutex
	clock *clock.Virtual
	files map[string]*fakeBody
	dirs  map[string]bool
	log   []string

	createCost, openCost, closeCost, writeCost, readCost, syncCost, evictCost time.Duration

	cache    hostio.CacheMode // what opens achieve
	resident float64          // after eviction
	warm     float64          // before it
	unknown  bool             // residency cannot be seen
	synced   hostio.SyncMode

	failWrite func(name string, off int64) error
	failOpen  func(name string) error
	failClose func(name string) error
	failSync  func(name string) error
	onCall    func(name string)
}

type fakeBody struct{ data []byte }

func newFake() *fakeVolume {
	return &fakeVolume{clock: clock.NewVirtual(time.Unix(0, 0)), files: map[string]*fakeBody{}, dirs: map[string]bool{".": true},
		cache: hostio.CacheDirect, synced: hostio.SyncFull}
}

func (v *fakeVolume) note(what string, cost time.Duration) {
	v.clock.Advance(cost)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, what)
}

func (v *fakeVolume) Mkdir(name string) error {
	v.note("mkdir "+name, 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dirs[name] {
		return fs.ErrExist
	}
	v.dirs[name] = true
	return nil
}

func (v *fakeVolume) Create(name string, size int64, _ FileOptions) (File, error) {
	v.clock.Advance(v.createCost)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files[name] != nil {
		return nil, fs.ErrExist
	}
	if !v.dirs[path.Dir(name)] {
		return nil, fs.ErrNotExist
	}
	b := &fakeBody{data: make([]byte, size)}
	v.files[name] = b
	v.log = append(v.log, "create "+name)
	return &fakeFile{v: v, name: name, b: b, share: v.warm}, nil
}

func (v *fakeVolume) Open(name string, _ FileOptions) (File, error) {
	v.clock.Advance(v.openCost)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failOpen != nil {
		if err := v.failOpen(name); err != nil {
			return nil, err
		}
	}
	b := v.files[name]
	if b == nil {
		return nil, fs.ErrNotExist
	}
	v.log = append(v.log, "open "+name)
	return &fakeFile{v: v, name: name, b: b, share: v.warm}, nil
}

func (v *fakeVolume) Remove(name string) error {
	v.note("remove "+name, 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files[name] == nil && !v.dirs[name] {
		return fs.ErrNotExist
	}
	delete(v.files, name)
	delete(v.dirs, name)
	return nil
}

func (v *fakeVolume) Rename(from, to string) error {
	v.note("rename "+from+" "+to, 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files[from] == nil {
		return fs.ErrNotExist
	}
	v.files[to] = v.files[from]
	delete(v.files, from)
	return nil
}

func (v *fakeVolume) Rmdir(name string) error { return v.Remove(name) }

func (v *fakeVolume) List(folder string) (out []string, _ error) {
	v.note("list "+folder, 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.files {
		if path.Dir(name) == path.Clean(folder) {
			out = append(out, path.Base(name))
		}
	}
	for name := range v.dirs {
		if path.Dir(name) == path.Clean(folder) && name != "." {
			out = append(out, path.Base(name))
		}
	}
	return out, nil
}

func (v *fakeVolume) Size(name string) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.files[name]; b != nil {
		return int64(len(b.data)), nil
	}
	if !v.dirs[name] {
		return 0, fs.ErrNotExist
	}
	return 0, nil
}

func (v *fakeVolume) Free() (int64, error) { return 1 << 40, nil }
func (v *fakeVolume) Sync() error          { v.note("volume sync", time.Hour); return nil }

type fakeFile struct {
	v     *fakeVolume
	name  string
	b     *fakeBody
	share float64
}

func (f *fakeFile) WriteAt(p []byte, off int64) (int, error) {
	f.v.note("write "+f.name, f.v.writeCost)
	if f.v.onCall != nil {
		f.v.onCall(f.name)
	}
	if f.v.failWrite != nil {
		if err := f.v.failWrite(f.name, off); err != nil {
			return 0, err
		}
	}
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	if grow := int(off) + len(p) - len(f.b.data); grow > 0 {
		f.b.data = append(f.b.data, make([]byte, grow)...)
	}
	return copy(f.b.data[off:], p), nil
}

func (f *fakeFile) Truncate(size int64) error {
	f.v.note("truncate "+f.name, 0)
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.b.data = f.b.data[:size]
	return nil
}

func (f *fakeFile) ReadAt(p []byte, off int64) (int, error) {
	f.v.note("read "+f.name, f.v.readCost)
	if f.v.onCall != nil {
		f.v.onCall(f.name)
	}
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	if off >= int64(len(f.b.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.b.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *fakeFile) Sync(hostio.SyncMode) (hostio.SyncMode, error) {
	f.v.note("sync "+f.name, f.v.syncCost)
	if f.v.failSync != nil {
		if err := f.v.failSync(f.name); err != nil {
			return "", err
		}
	}
	return f.v.synced, nil
}

func (f *fakeFile) Evict() error {
	f.v.note("evict "+f.name, f.v.evictCost)
	f.share = f.v.resident
	return nil
}

func (f *fakeFile) Resident() (float64, error) {
	if f.v.unknown {
		return 0, ErrUnknown
	}
	return f.share, nil
}

func (f *fakeFile) Cache() hostio.CacheMode { return f.v.cache }

func (f *fakeFile) Close() error {
	f.v.note("close "+f.name, f.v.closeCost)
	if f.v.failClose != nil {
		return f.v.failClose(f.name)
	}
	return nil
}
