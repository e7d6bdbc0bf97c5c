package exfat

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/units"
)

// MountOptions are the choices of Mount.
type MountOptions struct {
	// ReadOnly keeps Mount and everything after it from writing.
	ReadOnly bool
	// Now gives the times of files; nil means that all times are 1980-01-01.
	Now func() time.Time
	// MetadataLimit in bytes bounds the memory; 0 means DefaultMetadataLimit.
	MetadataLimit int64
}

// State is what Mount found.
type State struct {
	// Dirty: the volume was not unmounted cleanly. It stays marked until Check
	// repairs it.
	Dirty bool
	// MediaFailure is the flag of that name.
	MediaFailure bool
	// BackupBoot: the main boot region is damaged; such a volume can only be
	// mounted read-only.
	BackupBoot bool
}

// Volume is a mounted volume; as a [Folder] it is the root. Its methods may be
// called from many goroutines.
type Volume struct {
	Folder
	dev blockdev.Device
	// padder is dev, nil if it is none.
	padder   blockdev.Padder
	g        geometry
	now      func() time.Time
	readOnly bool
	// limit of the memory for metadata in bytes, see MountOptions.
	limit  int64
	label  string
	upcase *caseTable
	// marked means that VolumeDirty is on the device. The data path reads it
	// without a lock.
	marked atomic.Bool
	// pageable means that clusters are whole blocks for direct I/O.
	pageable bool
	// unsaved counts open files with something that their directory entries
	// lack.
	unsaved atomic.Int64

	// mu guards all that follows; it is never held around file data.
	mu    sync.Mutex
	state State
	// head is the first 4 KiB of the device: the boot sector is rewritten with
	// what follows it, as one block.
	head  []byte
	fat   *fat
	alloc *allocator
	// bmExtent is where the bitmap is, bmEntry the index of its entry in the
	// root directory.
	bmExtent []Extent
	bmEntry  int
	root     *directory
	// dirs are the loaded directories, with dirBytes of data. They stay loaded
	// until they are removed.
	dirs     map[*directory]struct{}
	dirBytes int64
	// open is the number of open handles.
	open   int
	closed bool
	// ids is the last Info.ID.
	ids uint64
	// gen counts changes of metadata; those up to durable are on the device.
	gen     uint64
	durable uint64
	// pending are freed clusters that an entry on the device may still name;
	// waiting counts them and those that are being committed.
	pending []run
	waiting uint32

	// commitMu is held during a commit; it is locked before mu.
	commitMu sync.Mutex
}

// Mount opens a volume. Whatever the device contains, Mount does not panic and
// takes at most the memory of the limit in o.
func Mount(dev blockdev.Device, o MountOptions) (*Volume, error) {
	v := &Volume{dev: dev, now: o.Now, readOnly: o.ReadOnly, limit: o.MetadataLimit, dirs: map[*directory]struct{}{}}
	v.Folder = Folder{v: v}
	v.padder, _ = dev.(blockdev.Padder)
	if v.now == nil {
		v.now = func() time.Time { return time.Time{} }
	}
	if v.limit == 0 {
		v.limit = DefaultMetadataLimit
	}
	if err := v.load(); err != nil {
		return nil, fmt.Errorf("mounting volume: %w", err)
	}
	return v, nil
}

// load reads the boot region, the root directory and the system files that it
// names.
func (v *Volume) load() error {
	g, _, backup, err := readBoot(v.dev)
	if err != nil {
		return err
	}
	if backup && !v.readOnly {
		return fmt.Errorf("main boot region: %w", ErrCorrupt)
	}
	if err := g.fitsMemory(v.limit); err != nil {
		return err
	}
	v.g = g
	v.pageable = g.clusterSize()%block == 0 && g.heapStart()%block == 0
	v.state = State{Dirty: g.Flags&flagDirty != 0, MediaFailure: g.Flags&flagMedia != 0, BackupBoot: backup}
	v.head = make([]byte, min(block, g.fatStart()))
	if err := readFull(v.dev, v.head, 0); err != nil {
		return err
	}
	v.fat = newFAT(v.dev, &v.g)
	v.upcase = standardCase()
	if v.root, err = v.loadDir(nil); err != nil {
		return fmt.Errorf("loading root directory: %w", err)
	}
	return v.loadSystem()
}

// loadSystem reads bitmap, up-case table and label, which the root directory
// names (sections 7.1 to 7.3). The names in the root were read with the
// standard table; if the volume has another one they are read again. Of several
// bitmaps only the first counts: the second belongs to TexFAT.
func (v *Volume) loadSystem() error {
	if e, _ := v.root.system(typeLabel); e != nil {
		v.label = string(utf16.Decode(unitsOf(e[2:][:2*min(int(e[1]), labelMax)])))
	}
	e, at := v.root.system(typeBitmap)
	if e == nil {
		return fmt.Errorf("no allocation bitmap in the root directory: %w", ErrCorrupt)
	}
	extents, data, err := v.readBitmap(decodeSystem(e))
	if err != nil {
		return fmt.Errorf("loading allocation bitmap: %w", err)
	}
	v.bmExtent, v.bmEntry = extents, at
	v.setBitmap(data)
	if e, _ = v.root.system(typeUpcase); e == nil {
		return nil // tolerated: the standard table is used; Check reports it
	}
	f := decodeSystem(e)
	if f.size == int64(len(upcaseData)) && f.sum == upcaseChecksum {
		return nil
	}
	t, err := v.readUpcase(f)
	if err != nil || t == nil {
		return err
	}
	v.upcase = t
	clear(v.root.entries)
	v.root.unnamed = nil
	v.root.parse()
	return nil
}

// readBitmap reads the allocation bitmap, padded to 8 bytes. Its extents are
// those of the whole file, which a Resize that was cut off leaves longer than
// the volume needs.
func (v *Volume) readBitmap(f systemFile) ([]Extent, []byte, error) {
	need := (int64(v.g.Clusters) + 7) / 8
	if f.size < need {
		return nil, nil, fmt.Errorf("%d bytes for %d clusters: %w", f.size, v.g.Clusters, ErrCorrupt)
	}
	runs, err := v.chain(f.first, v.g.clustersFor(f.size), false, int64(v.g.Clusters))
	if err != nil {
		return nil, nil, err
	}
	extents, data := v.g.appendRuns(nil, runs), make([]byte, units.RoundUp(need, 8))
	_, err = transfer(v.dev.ReadAt, extents, data[:need], 0)
	return extents, data, err
}

// setBitmap makes an allocator of the bitmap's bytes, which lie at bmExtent.
// What is written is whole pages: the rest of the bitmap's last cluster belongs
// to it.
func (v *Volume) setBitmap(data []byte) {
	page := int(min(block, v.g.clusterSize()))
	padded := make([]byte, units.RoundUp(int64(len(data)), int64(page)))
	copy(padded, data)
	b := newBitmap(padded, v.g.Clusters)
	b.page = page
	b.at = func(off int64) int64 { return deviceOffset(v.bmExtent, off) }
	a := &allocator{bitmap: b, cluster: v.g.clusterSize(), phase: v.g.heapStart(), arenas: map[int]*arena{}}
	if g, ok := v.dev.(blockdev.Geometry); ok {
		a.extent = g.PreferredExtent()
	}
	if p, ok := v.dev.(blockdev.Phaser); ok {
		a.phase += p.ExtentPhase()
	}
	if a.extent > 0 {
		a.phase %= a.extent
	}
	v.alloc = a
}

// readUpcase reads an up-case table. It is nil if its checksum differs.
func (v *Volume) readUpcase(f systemFile) (*caseTable, error) {
	if f.size < 0 || f.size > 2<<16 || f.size%2 != 0 {
		return nil, fmt.Errorf("up-case table of %d bytes: %w", f.size, ErrCorrupt)
	}
	runs, err := v.chain(f.first, v.g.clustersFor(f.size), false, int64(v.g.Clusters))
	b := make([]byte, f.size)
	if err == nil {
		_, err = transfer(v.dev.ReadAt, v.g.appendRuns(nil, runs), b, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("loading up-case table: %w", err)
	}
	if tableChecksum(b) != f.sum {
		return nil, nil
	}
	if slices.Equal(b, upcaseData) { // decoded once
		return standardCase(), nil
	}
	return decodeCase(b), nil
}

// touch must be called, under mu, before anything is changed: it sets
// VolumeDirty on the device, once (section 3.1.13.2). It fails on a volume that
// is closed or read-only.
func (v *Volume) touch() error {
	switch {
	case v.closed:
		return ErrClosed
	case v.readOnly:
		return ErrReadOnly
	case v.marked.Load():
		return nil
	}
	if err := v.writeFlags(v.g.Flags|flagDirty, v.g.PercentInUse); err != nil {
		return fmt.Errorf("marking volume dirty: %w", err)
	}
	v.marked.Store(true)
	return nil
}

// writeFlags rewrites the boot sector with other flags. The checksum of the
// region does not cover the two fields, so the other sectors stay.
func (v *Volume) writeFlags(flags uint16, percent uint8) error {
	binary.LittleEndian.PutUint16(v.head[106:], flags)
	v.head[112] = percent
	return writeFlush(v.dev, v.head, 0)
}

// changed counts a change of metadata.
func (v *Volume) changed() uint64 {
	v.gen++
	return v.gen
}

// State returns what Mount found.
func (v *Volume) State() State { return v.state }

// Label is the volume label.
func (v *Volume) Label() string { return v.label }

// ClusterSize is in bytes.
func (v *Volume) ClusterSize() int64 { return v.g.clusterSize() }

// Total is the capacity of all clusters in bytes.
func (v *Volume) Total() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return int64(v.g.Clusters) * v.g.clusterSize()
}

// Free is the capacity of the free clusters in bytes, those included that a
// commit will free.
func (v *Volume) Free() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return int64(v.alloc.free+v.waiting) * v.g.clusterSize()
}

// Sync makes everything durable that was written or changed before the call: it
// closes gaps in open files with zeros, writes sizes and times of open files
// into their entries, flushes the device, and commits metadata that changed.
func (v *Volume) Sync() (err error) {
	defer annotate(&err, "synchronising volume")
	v.mu.Lock()
	nodes, closed := v.openNodes(), v.closed
	v.mu.Unlock()
	if closed {
		return ErrClosed
	}
	for _, n := range nodes {
		if err := n.fillGaps(); err != nil {
			return err
		}
	}
	v.mu.Lock()
	for _, n := range v.openNodes() {
		if !v.readOnly {
			v.persist(n, true)
		}
	}
	want := v.gen
	clean := v.durable >= want
	v.mu.Unlock()
	if err := v.dev.Flush(); err != nil || clean {
		return err
	}
	return v.commit(want)
}

// Unsaved reports whether data or metadata changed and is not durable yet.
func (v *Volume) Unsaved() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gen > v.durable || v.unsaved.Load() > 0
}

// openNodes lists the open files. Under mu.
func (v *Volume) openNodes() []*node {
	var nodes []*node
	for d := range v.dirs {
		for _, e := range d.entries {
			if e.node != nil {
				nodes = append(nodes, e.node)
			}
		}
	}
	return nodes
}

// Unmount writes everything back, marks the volume clean (unless it was found
// dirty) and makes v unusable. With files open it is a Sync and returns ErrBusy.
func (v *Volume) Unmount() (err error) {
	defer annotate(&err, "unmounting volume")
	if err := v.quiesce(); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open > 0 {
		return fmt.Errorf("%d files are open: %w", v.open, ErrBusy)
	}
	if v.marked.Load() {
		used := uint64(v.g.Clusters-v.alloc.free) * 100 / uint64(v.g.Clusters)
		if err := v.writeFlags(v.g.Flags, uint8(used)); err != nil {
			return err
		}
	}
	v.closed = true
	return nil
}

// withSpace runs f under mu, after touch. If room is short while freed clusters
// wait for a commit, it commits and runs f again; f must have no effect when it
// fails. In the first call, whole asks f not to break files up: after the
// commit there may be room in one piece.
func (v *Volume) withSpace(f func(whole bool) error) error {
	v.mu.Lock()
	err := v.touch()
	waiting := v.waiting > 0
	if err == nil {
		err = f(waiting)
	}
	want := v.gen
	v.mu.Unlock()
	if !waiting || !errors.Is(err, ErrNoSpace) && !errors.Is(err, errFragments) {
		return err
	}
	if err := v.commit(want); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return f(false)
}

// Spans are parts of a device in ascending order, with gaps between them.
type Spans []Span

// Span is a part of a device: the bytes from Off to before End.
type Span struct{ Off, End int64 }

// Used reports whether any of the n bytes from off is outside the spans; of
// free spans: whether any is used.
func (s Spans) Used(off, n int64) bool {
	i, found := slices.BinarySearchFunc(s, off, func(s Span, off int64) int { return cmp.Compare(s.Off, off) })
	if !found {
		i--
	}
	return i < 0 || off+n > s[i].End
}

// FreeSpace returns the clusters that the unmounted volume on dev does not use,
// as spans moved by offset (that of dev in the image), and their size in bytes.
// It does not write. The spans are nil for a volume that was not unmounted
// cleanly, since its bitmap may lack clusters of files, and not nil for any
// other. The errors are those of [Mount].
func FreeSpace(dev blockdev.Device, offset int64) (free Spans, bytes int64, err error) {
	v, err := Mount(dev, MountOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	if v.state.BackupBoot {
		return nil, 0, fmt.Errorf("main boot region: %w", ErrCorrupt)
	}
	free = Spans{}
	for _, r := range v.alloc.freeRuns() {
		off, n := offset+v.g.at(r.first), int64(r.count)*v.g.clusterSize()
		free = append(free, Span{off, off + n})
		bytes += n
	}
	if v.state.Dirty {
		free = nil
	}
	return free, bytes, v.Unmount()
}

// Trim discards all free space on the device, in pieces of neighbouring
// clusters, and returns the number of bytes. Pieces shorter than smallest bytes
// are left out. Allocation waits meanwhile; reading and writing files does not.
func (v *Volume) Trim(smallest int64) (done int64, err error) {
	defer annotate(&err, "trimming volume")
	if v.readOnly {
		return 0, ErrReadOnly
	}
	if err := v.quiesce(); err != nil { // no entry on the device may name what is given away
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return 0, ErrClosed
	}
	for _, r := range v.alloc.freeRuns() {
		n := int64(r.count) * v.g.clusterSize()
		if n < smallest {
			continue
		}
		if err := v.dev.Discard(v.g.at(r.first), n); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// commit writes the changes of metadata up to number want to the device, and
// all others made before it started. Callers that arrive while one is running
// share the next one.
//
// The order survives a crash at any point. Bitmap and FAT go first: since freed
// clusters are still marked in them, they can only list more clusters than the
// directories on the device do. The flush after them covers the files' data as
// well. Then follow the directory entries, flushed; directories with entries
// from others go before the rest. Only then are freed clusters available again.
func (v *Volume) commit(want uint64) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.Lock()
	if v.durable >= want {
		v.mu.Unlock()
		return nil
	}
	upto, freed := v.gen, v.pending
	v.pending = nil
	space := v.alloc.take(v.fat.take(nil))
	var movedIn, entries []chunk
	dirs := slices.DeleteFunc(slices.Collect(maps.Keys(v.dirs)), func(d *directory) bool { return !d.dirty })
	slices.SortFunc(dirs, func(a, b *directory) int { return cmp.Compare(a.at(0), b.at(0)) }) // as they lie on the device
	for _, d := range dirs {
		if d.movedIn > v.durable {
			movedIn = d.take(movedIn)
		} else {
			entries = d.take(entries)
		}
	}
	v.mu.Unlock()

	err := v.writeStages(space, movedIn, entries)

	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.pending = append(freed, v.pending...)
		v.fat.markAll()
		v.alloc.markAll()
		for d := range v.dirs {
			d.markAll()
		}
		return err
	}
	v.durable = upto
	for _, r := range freed {
		v.waiting -= r.count
	}
	v.alloc.release(freed)
	return nil
}

// quiesce writes all changes to the device, freed clusters included, so that
// bitmap and directories agree there.
func (v *Volume) quiesce() error {
	if err := v.Sync(); err != nil || !v.marked.Load() {
		return err
	}
	for range 2 { // the second writes the clusters that the first has freed
		v.mu.Lock()
		want := v.changed()
		v.mu.Unlock()
		if err := v.commit(want); err != nil {
			return err
		}
	}
	return nil
}

// writeStages writes and flushes one after the other. The first is flushed in
// any case, for the data.
func (v *Volume) writeStages(stages ...[]chunk) error {
	for i, chunks := range stages {
		if i > 0 && len(chunks) == 0 {
			continue
		}
		if err := writeChunks(v.dev, chunks); err != nil {
			return err
		}
		if err := v.dev.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// discardLater frees clusters once the present changes are durable. Until then
// an entry on the device names them, and after a crash they have to be what
// they were.
func (v *Volume) discardLater(runs []run) {
	for _, r := range runs {
		v.waiting += r.count
	}
	v.pending = append(v.pending, runs...)
}

// directory is a loaded directory. Its data ends with the cluster of the end
// marker; further clusters are in extents only. All under Volume.mu.
type directory struct {
	paged
	v *Volume
	// owner is the entry of the directory in another one; nil for the root.
	owner   *entry
	extents []Extent
	// entries are the files and directories by the key of their names.
	entries map[string]*entry
	// unnamed has an error for each entry that no path can name.
	unnamed []error
	// used is the number of entries before the end marker, hint where the
	// search for free ones starts.
	used int
	hint int
	// Changes by which entries moved between directories, 0 for none. The new
	// directory has to reach the device before the old one, which removes the
	// entry: movedIn is the last change that added an entry from another
	// directory here, or the path to one; movedOut is the last one that removed
	// such an entry.
	movedIn, movedOut uint64
}

// isEmpty reports whether the directory has no entries, named or not.
func (d *directory) isEmpty() bool { return len(d.entries)+len(d.unnamed) == 0 }
