package container

import (
	"errors"
	"sync"

	"dmgbench/internal/hostio"
)

// asif is the table of an ASIF image.
//
// New chunks are all written as "fully initialised": they are zeros in the
// file from the start, so that what a bitmap would call not written reads as
// zeros all the same, to readers that ignore bitmaps too. Bitmaps are read,
// and a chunk that has one is completed with zeros before it is written.
type asif struct {
	medium
	head asifHead

	groupsMu sync.RWMutex
	groups   map[int64]asifGroup
	locks    [asifLocks]sync.RWMutex // of chunks, by number

	mu      sync.Mutex // of what follows, and of changes of entries
	dir     []int64    // tables
	next    int64      // chunk behind the file's last
	chunks  int        // of data, in use
	changed map[int64]struct{}
	moved   bool    // a table of dir is not in the file's directory
	gone    []int64 // chunks given up since the last commit, all zeros
	free    []int64 // chunks given up before, all zeros

	// Of the directory in the file, for the one commit that runs.
	version uint64
	active  int
}

var _ layout = (*asif)(nil)

// asifLocks is more than a step of a transfer has chunks.
const asifLocks = 4 * mappedRun

func createASIF(dir *hostio.Dir, name string, size int64, id [16]byte) error {
	h := newASIF(size, id)
	return createFile(dir, name, 0, func(f *hostio.File) error { return h.write(f) })
}

// write makes a new file a blank image.
func (h *asifHead) write(f *hostio.File) error {
	if err := f.Truncate((h.firstFree + 3) * h.chunk); err != nil {
		return err
	}
	for at, p := range h.blank() {
		if _, err := f.WriteAt(p, at); err != nil {
			return err
		}
	}
	return nil
}

// openASIF makes the image and takes f over.
func openASIF(f store, o OpenOptions) (*mapped, error) {
	a, err := loadASIF(medium{f, o.sync()})
	if err == nil && !o.ReadOnly {
		err = a.fillUp()
	}
	if err != nil {
		return nil, err
	}
	return &mapped{path: f.Path(), opts: o, f: f, chunk: a.head.chunk, size: a.head.size(), layout: a}, nil
}

// fillUp makes the file end with a whole chunk, as everything that writes takes for granted.
func (a *asif) fillUp() error {
	size, err := a.f.Size()
	if err != nil || size >= a.next*a.head.chunk {
		return err
	}
	return a.f.Truncate(a.next * a.head.chunk)
}

func (a *asif) format() string { return ASIF }
func (a *asif) drops() bool    { return true }

func (a *asif) group(n int64) asifGroup {
	a.groupsMu.RLock()
	defer a.groupsMu.RUnlock()
	return a.groups[n]
}

func (a *asif) find(i int64) (at int64, partly bool) {
	g := a.group(i / a.head.perGroup)
	if g == nil {
		return 0, false
	}
	state, n := asifState(g[i%a.head.perGroup].Load())
	return n * a.head.chunk, state == asifPartly
}

// hold takes the locks in the order of their numbers, as all must who take
// more than one.
func (a *asif) hold(first, last int64) {
	low, high := first%asifLocks, last%asifLocks
	if low > high {
		for i := range high + 1 {
			a.locks[i].RLock()
		}
		high = asifLocks - 1
	}
	for i := low; i <= high; i++ {
		a.locks[i].RLock()
	}
}

func (a *asif) release(first, last int64) {
	for i := first; i <= last; i++ {
		a.locks[i%asifLocks].RUnlock()
	}
}

func (a *asif) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.chunks
}

// slot numbers entries through all groups, bitmaps included.
func (a *asif) slot(i int64) int64 {
	return i/a.head.perGroup*(a.head.perGroup+1) + i%a.head.perGroup
}

// entry is where the entry of a slot is kept.
func (a *asif) entry(slot int64) *asifEntry {
	g, i := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1)
	return &asifEntry{a.groups[g], i}
}

type asifEntry struct {
	group asifGroup
	i     int64
}

func (e *asifEntry) get() uint64 { return e.group[e.i].Load() }

// set changes an entry; a.mu is held.
func (a *asif) set(slot int64, v uint64) {
	e := a.entry(slot)
	e.group[e.i].Store(v)
	a.changed[slot] = struct{}{}
}

// claim takes chunks that were given up, and then new ones behind the file's
// end. The file is made longer before anybody can find them.
func (a *asif) claim(first, last int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, free := a.next, a.free
	tables := map[int64]int64{}
	var made []int64
	for i := first; i <= last; i++ {
		if at, _ := a.find(i); at != 0 {
			made = append(made, 0)
			continue
		}
		if t, _ := a.head.where(i); a.dir[t] == 0 && tables[t] == 0 {
			tables[t] = a.take()
		}
		made = append(made, a.take())
	}
	if a.next > next {
		if err := a.f.Truncate(a.next * a.head.chunk); err != nil {
			a.next, a.free = next, free
			return err
		}
	}
	for t, n := range tables {
		a.dir[t], a.moved = n, true
	}
	for k, n := range made {
		if n != 0 {
			a.ensureGroup((first + int64(k)) / a.head.perGroup)
			a.set(a.slot(first+int64(k)), asifWhole|uint64(n))
			a.chunks++
		}
	}
	return nil
}

func (a *asif) take() (n int64) {
	if len(a.free) > 0 {
		n, a.free = a.free[0], a.free[1:]
		return n
	}
	a.next++
	return a.next - 1
}

func (a *asif) ensureGroup(n int64) {
	if a.group(n) != nil {
		return
	}
	a.groupsMu.Lock()
	defer a.groupsMu.Unlock()
	a.groups[n] = make(asifGroup, a.head.perGroup+1)
}

// drop marks chunk i as unmapped. Its place is used again only when that mark
// is durable, and only if it was punched.
func (a *asif) drop(i int64) error {
	l := &a.locks[i%asifLocks]
	l.Lock()
	defer l.Unlock()
	at, _ := a.find(i)
	if at == 0 {
		return nil
	}
	err := a.f.PunchHole(at, a.head.chunk)
	if err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set(a.slot(i), asifGone)
	a.chunks--
	if err == nil {
		a.gone = append(a.gone, at/a.head.chunk)
	}
	return nil
}
