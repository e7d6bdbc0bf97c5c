package exfat

import (
	"fmt"
	"io/fs"
	"slices"
)

// entry is a file or directory of a loaded directory. The record is decoded
// from the directory's data.
type entry struct {
	record
	dir *directory
	// index and count are place and length of the set, in entries.
	index, count int
	// gen is the last change of the set.
	gen uint64
	// moved is the last change that gave it another name and place.
	moved uint64
	// id is Info.ID; 0: not assigned yet.
	id uint64
	// child is the loaded content of a directory.
	child *directory
	// node is set while the file is open.
	node *node
}

// loadDir reads a directory, cluster by cluster up to the end marker.
func (v *Volume) loadDir(owner *entry) (*directory, error) {
	d := &directory{v: v, owner: owner, entries: map[string]*entry{}}
	cluster := v.g.clusterSize()
	first, n, contiguous := v.g.Root, int64(-1), false
	if owner != nil {
		if owner.size < 0 || owner.size > maxDirSize {
			return nil, fmt.Errorf("directory of %d bytes: %w", owner.size, ErrCorrupt)
		}
		first, n, contiguous = owner.first, v.g.clustersFor(owner.size), owner.noChain
	}
	runs, err := v.chain(first, n, contiguous, max(1, maxDirSize/cluster))
	if err != nil {
		return nil, err
	}
	d.extents = v.g.appendRuns(nil, runs)
	d.page = int(min(block, cluster))
	d.at = func(off int64) int64 { return deviceOffset(d.extents, off) }
	if d.data, d.used, err = v.readEntries(d.extents, v.limit-v.dirBytes); err != nil {
		return nil, err
	}
	// Entries after the end marker are unused by definition, and have to be zero
	// when the marker moves: they are written with the next change.
	rest := d.data[d.used*entryLen:]
	if slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
		clear(rest)
		d.mark(d.used*entryLen, len(rest))
	}
	d.parse()
	v.dirBytes += int64(len(d.data))
	v.dirs[d] = struct{}{}
	return d, nil
}

// readEntries reads the clusters of a directory up to the one with the end
// marker, at most room bytes. It returns the number of entries before the
// marker.
func (v *Volume) readEntries(extents []Extent, room int64) (data []byte, used int, err error) {
	cluster, total := v.g.clusterSize(), extentsLen(extents)
	for ended := false; !ended && int64(len(data)) < total; {
		at := int64(len(data))
		if at+cluster > room {
			return nil, 0, fmt.Errorf("directories take more than %d bytes: %w", v.limit, ErrUnsupported)
		}
		data = append(data, make([]byte, cluster)...)
		if err := readFull(v.dev, data[at:], deviceOffset(extents, at)); err != nil {
			return nil, 0, err
		}
		for used*entryLen < len(data) && !ended {
			if ended = data[used*entryLen] == 0; !ended {
				used++
			}
		}
	}
	return data, used, nil
}

// parse fills in the entries, and those that no path can name. Sets that do not
// hold together are left out.
func (d *directory) parse() {
	for i := 0; i < d.used; i++ {
		b := d.data[i*entryLen : d.used*entryLen]
		if b[0] != typeFile {
			continue
		}
		n := setLength(b)
		if n == 0 {
			continue
		}
		rec, problem := decodeSet(b[:n*entryLen], d.v.upcase)
		if problem == setStructure || problem == setSum {
			continue
		}
		key := d.v.upcase.key(rec.name)
		switch {
		case !rec.isNamed():
			d.unnamed = append(d.unnamed, fmt.Errorf("%q: %w", rec.text(), ErrName))
		case d.entries[key] != nil:
			d.unnamed = append(d.unnamed, fmt.Errorf("%q: %w", rec.text(), ErrSameName))
		default:
			d.entries[key] = &entry{record: rec, dir: d, index: i, count: n}
		}
		i += n - 1
	}
}

// system returns the first entry of a system file or of the label in the root
// directory, and its index; nil if it has none. Of several bitmaps the second
// belongs to TexFAT.
func (d *directory) system(kind byte) (e []byte, index int) {
	for i := range d.used {
		e := d.data[i*entryLen:][:entryLen]
		if e[0] == kind && (kind != typeBitmap || e[1]&1 == 0) {
			return e, i
		}
	}
	return nil, 0
}

// bytes is the entry set in the data of the directory.
func (e *entry) bytes() []byte {
	return e.dir.data[e.index*entryLen:][:e.count*entryLen]
}

// store writes the record into the directory's data.
func (e *entry) store() {
	e.patch(e.bytes())
	e.dir.mark(e.index*entryLen, e.count*entryLen)
	e.gen = e.dir.v.changed()
}

// insert puts a new entry set into the directory, which may grow. After an
// error the directory has no new entry, but may have a new cluster.
func (d *directory) insert(e *entry) error {
	set := e.encode(d.v.upcase)
	n := len(set) / entryLen
	index, err := d.room(n)
	if err != nil {
		return err
	}
	copy(d.data[index*entryLen:], set)
	d.mark(index*entryLen, len(set))
	d.used = max(d.used, index+n)
	e.dir, e.index, e.count = d, index, n
	d.entries[d.v.upcase.key(e.name)] = e
	e.gen = d.v.changed()
	return nil
}

// drop takes an entry set out of the directory.
func (d *directory) drop(e *entry) {
	set := e.bytes()
	markFree(set)
	d.mark(e.index*entryLen, len(set))
	d.hint = min(d.hint, e.index)
	delete(d.entries, d.v.upcase.key(e.name))
	e.gen = d.v.changed()
}

// fits is the first place from i on where n entries do not straddle pages, so
// that the device gets a set as a whole or not.
func (d *directory) fits(i, n int) int {
	per := d.page / entryLen
	if n > per || i%per+n <= per {
		return i
	}
	return (i/per + 1) * per
}

// room finds n free entries in a row: unused ones, or those after the end
// marker, where the directory grows if it must. It returns the index of the
// first.
func (d *directory) room(n int) (int, error) {
	start := d.fits(d.hint, n)
	for i := d.hint; i < d.used; i++ {
		if d.data[i*entryLen]&inUse != 0 {
			start = d.fits(i+1, n)
		} else if i-start+1 == n {
			d.hint = start + n
			return start, nil
		}
	}
	// A directory that is full to its end needs no marker; one with more
	// clusters needs it in the next of them.
	need := (start + n) * entryLen
	for need > len(d.data) || need == len(d.data) && int64(need) < extentsLen(d.extents) {
		if err := d.extend(); err != nil {
			return 0, err
		}
	}
	for ; d.used < start; d.used++ { // left out for fits: unused, but not the end
		d.data[d.used*entryLen] = typeFile &^ inUse
		d.mark(d.used*entryLen, 1)
	}
	d.hint = start + n
	return start, nil
}

// extend adds one cluster of zeros to the data: one that the directory has
// after its end marker, or a new one.
func (d *directory) extend() error {
	v, cluster := d.v, d.v.g.clusterSize()
	if int64(len(d.data))+cluster > maxDirSize {
		return fmt.Errorf("directory has its greatest size of %d bytes: %w", maxDirSize, ErrNoSpace)
	}
	if v.dirBytes+cluster > v.limit {
		return fmt.Errorf("directories take more than %d bytes: %w", v.limit, ErrUnsupported)
	}
	if at := int64(len(d.data)); at < extentsLen(d.extents) {
		if err := writeFull(v.dev, make([]byte, cluster), d.at(at)); err != nil {
			return err
		}
	} else if err := d.addCluster(); err != nil {
		return err
	}
	d.data = append(d.data, make([]byte, cluster)...)
	v.dirBytes += cluster
	return nil
}

// addCluster gives the directory one more cluster; from then on it has a FAT
// chain. The cluster is zeroed before it is linked: whatever fails, old bytes
// never become entries.
func (d *directory) addCluster() error {
	v := d.v
	runs := v.g.runs(d.extents)
	more, err := v.alloc.allocate(1, lastCluster(runs), 0, false)
	if err != nil {
		return err
	}
	err = writeFull(v.dev, make([]byte, v.g.clusterSize()), v.g.at(more[0].first))
	if err == nil && d.owner == nil && d.used*entryLen == len(d.data) {
		// The root has neither a size nor, being full, an end marker: a link
		// that survives a crash must lead to zeros.
		err = v.dev.Flush()
	}
	if err == nil {
		err = v.fat.extendChain(runs, more, d.owner != nil && d.owner.noChain)
	}
	if err != nil {
		v.alloc.release(more)
		return err
	}
	d.extents = v.g.appendRuns(d.extents, more)
	if o := d.owner; o != nil {
		if o.first == 0 {
			o.first = more[0].first
		}
		o.noChain = false
		o.size = extentsLen(d.extents)
		o.valid = o.size
		o.store()
	}
	return nil
}

// dirOf returns the loaded content of a directory entry.
func (v *Volume) dirOf(e *entry) (*directory, error) {
	if !e.isDir() {
		return nil, ErrNotDir
	}
	if e.child == nil {
		d, err := v.loadDir(e)
		if err != nil {
			return nil, err
		}
		e.child = d
	}
	return e.child, nil
}

// walkTo follows the parts of a path; e is nil for an empty path.
func (f *Folder) walkTo(parts []string) (e *entry, d *directory, err error) {
	v := f.v
	d = v.root
	if f.dir != nil {
		d = f.dir
	}
	if _, loaded := v.dirs[d]; !loaded { // it was removed
		return nil, nil, fs.ErrNotExist
	}
	for i, part := range parts {
		units, err := encodeName(part)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", fs.ErrInvalid, err)
		}
		if e = d.entries[v.upcase.key(units)]; e == nil {
			return nil, nil, fs.ErrNotExist
		}
		if i == len(parts)-1 && !e.isDir() {
			return e, nil, nil
		}
		if d, err = v.dirOf(e); err != nil {
			return nil, nil, err
		}
	}
	return e, d, nil
}

// lookup is walkTo for a path of an open volume.
func (f *Folder) lookup(path string) (*entry, *directory, error) {
	if f.v.closed {
		return nil, nil, ErrClosed
	}
	return f.walkTo(splitPath(path))
}

// place resolves the directory and the name for something that is to be made;
// unless replace is set, it must not exist.
func (f *Folder) place(path string, replace bool) (*directory, []uint16, error) {
	parts := splitPath(path)
	if len(parts) == 0 {
		return nil, nil, fs.ErrExist
	}
	_, d, err := f.walkTo(parts[:len(parts)-1])
	if err != nil {
		return nil, nil, err
	}
	if d == nil {
		return nil, nil, ErrNotDir
	}
	units, err := encodeName(parts[len(parts)-1])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	case !replace && d.entries[f.v.upcase.key(units)] != nil:
		return nil, nil, fs.ErrExist
	}
	return d, units, nil
}
