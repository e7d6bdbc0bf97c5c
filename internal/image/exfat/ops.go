package exfat

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// Info describes a file or directory. Sizes are in bytes.
type Info struct {
	Name string
	Dir  bool
	Size int64
	// The times are zero for the root.
	Created, Modified, Accessed time.Time
	// ID is of this file or directory as long as the volume is mounted,
	// whatever it is called; never given twice, 0 for the root.
	ID uint64
}

// info describes the entry, with the sizes of the open file if it is open.
func (e *entry) info() Info {
	i := Info{
		Name: e.text(), Dir: e.isDir(), Size: e.size,
		Created: e.created.time(), Modified: e.modified.time(), Accessed: e.accessed.time(),
	}
	if e.id == 0 {
		e.dir.v.ids++
		e.id = e.dir.v.ids
	}
	i.ID = e.id
	if n := e.node; n != nil {
		i.Size = n.size.Load()
	}
	return i
}

// Folder is a directory of a mounted volume, whose methods take paths from it.
// It stays the same one when it gets another name.
type Folder struct {
	v   *Volume
	dir *directory // nil of the root
}

// Sub looks up a directory below f, so that paths from it need not be followed
// from the root again.
func (f *Folder) Sub(path string) (_ *Folder, err error) {
	defer annotate(&err, "opening directory %q", path)
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	_, d, err := f.lookup(path)
	if err == nil && d == nil {
		err = ErrNotDir
	}
	return &Folder{f.v, d}, err
}

// Create makes a file of the given size, which reads as zeros, and opens it.
// Its clusters are in one piece if there is room for that. A path that exists
// is fs.ErrExist.
func (f *Folder) Create(path string, size int64) (*File, error) {
	return f.CreateStriped(path, size, 0)
}

// CreateStriped is Create for one of several writers at work at the same time:
// where the device has a preferred extent, files of different stripes (numbers
// of writers, from 1; 0 means none) are put into different extents.
func (f *Folder) CreateStriped(path string, size int64, stripe int) (made *File, err error) {
	defer annotate(&err, "creating %q", path)
	v := f.v
	if size < 0 {
		return nil, fs.ErrInvalid
	}
	err = v.withSpace(func(whole bool) error {
		d, units, err := f.place(path, false)
		if err != nil {
			return err
		}
		runs, err := v.reserve(size, stripe, whole)
		if err != nil {
			return err
		}
		e, err := v.makeEntry(d, units, attrArchive, runs, size, 0)
		if err != nil {
			return err
		}
		made = v.handle(v.newNode(e, v.g.appendRuns(nil, runs)), path)
		made.n.stripe = stripe
		return nil
	})
	return made, err
}

// Mkdir makes a directory; its parent must exist.
func (f *Folder) Mkdir(path string) (err error) {
	defer annotate(&err, "making directory %q", path)
	v := f.v
	return v.withSpace(func(bool) error {
		d, units, err := f.place(path, false)
		if err != nil {
			return err
		}
		size := v.g.clusterSize()
		runs, err := v.reserve(size, 0, false)
		if err != nil {
			return err
		}
		if err := writeFull(v.dev, make([]byte, size), v.g.at(runs[0].first)); err != nil {
			v.alloc.release(runs)
			return err
		}
		_, err = v.makeEntry(d, units, attrDir, runs, size, size)
		return err
	})
}

// reserve takes the clusters for size bytes, linked in the FAT if they are not
// in one piece.
func (v *Volume) reserve(size int64, stripe int, whole bool) ([]run, error) {
	clusters := v.g.clustersFor(size)
	if clusters == 0 {
		return nil, nil
	}
	if clusters > int64(v.alloc.free) {
		return nil, ErrNoSpace
	}
	runs, err := v.alloc.allocate(uint32(clusters), 0, stripe, whole)
	if err == nil && len(runs) > 1 {
		if err = v.fat.link(0, runs); err != nil {
			v.alloc.release(runs)
		}
	}
	return runs, err
}

// makeEntry inserts a new entry; on failure the clusters are given back.
func (v *Volume) makeEntry(d *directory, units []uint16, attr uint16, runs []run, size, valid int64) (*entry, error) {
	now := makeStamp(v.now())
	e := &entry{record: record{
		attr: attr, created: now, modified: now, accessed: now, size: size, valid: valid, name: units,
	}}
	e.accessed.tens = 0
	if len(runs) > 0 {
		e.first, e.noChain = runs[0].first, len(runs) == 1
	}
	if err := d.insert(e); err != nil {
		v.alloc.release(runs)
		return nil, err
	}
	return e, nil
}

// handle returns a new handle of an open file. Under mu.
func (v *Volume) handle(n *node, path string) *File {
	n.refs++
	v.open++
	return &File{n: n, name: path}
}

// Open opens a file for reading and, unless the volume is read-only, for
// writing.
func (f *Folder) Open(path string) (_ *File, err error) {
	defer annotate(&err, "opening %q", path)
	v := f.v
	v.mu.Lock()
	defer v.mu.Unlock()
	e, _, err := f.lookup(path)
	if err != nil {
		return nil, err
	}
	if e == nil || e.isDir() {
		return nil, ErrIsDir
	}
	if e.node == nil {
		runs, err := v.clusters(e)
		if err != nil {
			return nil, err
		}
		v.newNode(e, v.g.appendRuns(nil, runs))
	}
	return v.handle(e.node, path), nil
}

// clusters are those of a file or directory, after a check of its sizes.
func (v *Volume) clusters(e *entry) ([]run, error) {
	if e.size < 0 || e.valid < 0 || e.valid > e.size || e.size > int64(v.g.Clusters)*v.g.clusterSize() {
		return nil, fmt.Errorf("size %d, valid to %d: %w", e.size, e.valid, ErrCorrupt)
	}
	return v.chain(e.first, v.g.clustersFor(e.size), e.noChain, int64(v.g.Clusters))
}

// Remove deletes a file or an empty directory. Its clusters count as free at
// once, those of an open file when its last handle is closed; they are reused
// when the removal is durable.
func (f *Folder) Remove(path string) (err error) {
	defer annotate(&err, "removing %q", path)
	v := f.v
	return v.ordered(func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if err := v.touch(); err != nil {
			return err
		}
		e, d, err := f.walkTo(splitPath(path))
		switch {
		case err != nil:
			return err
		case e == nil:
			return fs.ErrInvalid
		case d != nil && !d.isEmpty():
			return ErrNotEmpty
		}
		runs, err := v.clusters(e)
		if err == nil && !e.dir.canRemove(d) {
			err = errOrder
		}
		if err != nil {
			return err
		}
		e.dir.drop(e)
		v.discardOf(e, d, runs)
		return nil
	})
}

// discardOf frees the clusters of an entry that was dropped, later if the file
// is open, and forgets the content of a directory (nil: it is a file). After a
// crash the clusters of an open file have no owner, and [Check] frees them.
func (v *Volume) discardOf(e *entry, content *directory, runs []run) {
	if content != nil {
		v.dirBytes -= int64(len(content.data))
		delete(v.dirs, content)
	}
	if e.node == nil {
		v.discardLater(runs)
		return
	}
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.node.removed = true
	e.node.clearWritten()
}

// Stat describes what the path names. The root is a directory without a name.
func (f *Folder) Stat(path string) (_ Info, err error) {
	defer annotate(&err, "describing %q", path)
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	e, _, err := f.lookup(path)
	switch {
	case err != nil:
		return Info{}, err
	case e == nil:
		return Info{Dir: true}, nil
	}
	return e.info(), nil
}

// SetTimes sets the times of a file or directory; nil leaves one as it is. exFAT
// holds the years 1980 to 2107, accesses in units of 2 s and modifications of
// 10 ms; it has none of the root. What is written later changes them again.
func (v *Volume) SetTimes(path string, accessed, modified *time.Time) (err error) {
	defer annotate(&err, "setting the times of %q", path)
	return v.ordered(func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if err := v.touch(); err != nil {
			return err
		}
		e, _, err := v.walkTo(splitPath(path))
		if err != nil || e == nil {
			return err
		}
		if e.node != nil { // what was written until now is not to set them later
			v.persist(e.node, true)
		}
		if accessed != nil {
			s := makeStamp(*accessed)
			s.tens = 0
			// Until the old name is gone, the later access marks the new one.
			if e.moved > v.durable && !s.time().After(e.accessed.time()) {
				return errOrder
			}
			e.accessed = s
		}
		if modified != nil {
			e.modified = makeStamp(*modified)
		}
		e.store()
		return nil
	})
}

// List describes what is in a directory, in the order of the directory. With
// entries that no path can name it returns the others, and an error for each of
// those; after any other error infos is nil.
func (f *Folder) List(path string) (infos []Info, err error) {
	defer annotate(&err, "listing %q", path)
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	d, infos, err := f.listLocked(path)
	if err != nil {
		return nil, err
	}
	return infos, errors.Join(d.unnamed...)
}

// listLocked is List under mu; it also returns the directory.
func (f *Folder) listLocked(path string) (*directory, []Info, error) {
	_, d, err := f.lookup(path)
	if err != nil {
		return nil, nil, err
	}
	if d == nil {
		return nil, nil, ErrNotDir
	}
	all := slices.SortedFunc(maps.Values(d.entries), func(a, b *entry) int { return a.index - b.index })
	infos := make([]Info, len(all))
	for i, e := range all {
		infos[i] = e.info()
	}
	return d, infos, nil
}

// Walk calls do for everything below a directory, parents before children; paths
// have no leading slash. It ends with the first error, such as ErrCorrupt at a
// directory that contains itself; but for a directory that cannot be listed, and
// for each entry of one that no path can name, it calls failed, if that is not
// nil, and continues unless failed returns an error.
func (f *Folder) Walk(path string, do func(path string, i Info) error,
	failed func(path string, err error) error) error {
	seen := map[int64]bool{} // places of the first clusters of directories
	fail := func(path string, err error) error {
		err = fmt.Errorf("listing %q: %w", path, err)
		if failed == nil {
			return err
		}
		return failed(path, err)
	}
	var walk func(path string) error
	walk = func(path string) error {
		f.v.mu.Lock()
		d, infos, err := f.listLocked(path)
		if err == nil && len(d.extents) > 0 {
			if seen[d.extents[0].Device] {
				err = fmt.Errorf("directory contains itself: %w", ErrCorrupt)
			}
			seen[d.extents[0].Device] = true
		}
		f.v.mu.Unlock()
		if err != nil {
			return fail(path, err)
		}
		for _, i := range infos {
			child := strings.TrimPrefix(path+"/"+i.Name, "/")
			if err = do(child, i); err == nil && i.Dir {
				err = walk(child)
			}
			if err != nil {
				return err
			}
		}
		for _, u := range d.unnamed { // set when the directory was loaded
			if err := fail(path, u); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(strings.Join(splitPath(path), "/"))
}

// Rename moves a file or directory, open or not, to a path that does not exist;
// a change of case alone is allowed.
func (f *Folder) Rename(from, to string) (err error) {
	defer annotate(&err, "renaming %q to %q", from, to)
	return f.v.ordered(func() error { return f.rename(from, to, false) })
}

// Replace is Rename to a path that may exist, as a file for a file, or as an
// empty directory for a directory. After a crash the path names the one or the
// other.
func (f *Folder) Replace(from, to string) (err error) {
	defer annotate(&err, "renaming %q to %q", from, to)
	return f.v.ordered(func() error { return f.rename(from, to, true) })
}

// ordered does a move or a removal, if necessary after a commit of the earlier
// ones.
func (v *Volume) ordered(change func() error) error {
	err := change()
	for errors.Is(err, errOrder) {
		v.mu.Lock()
		want := v.gen
		v.mu.Unlock()
		if err = v.commit(want); err == nil {
			err = change()
		}
	}
	return err
}

// rename moves an entry; replace allows a target that exists.
func (f *Folder) rename(from, to string, replace bool) error {
	v := f.v
	return v.withSpace(func(bool) error {
		e, _, err := f.walkTo(splitPath(from))
		if err != nil {
			return err
		}
		d, units, err := f.place(to, true)
		if err != nil {
			return err
		}
		if e == nil {
			return fs.ErrInvalid
		}
		target := d.entries[v.upcase.key(units)]
		if target == e {
			target = nil
		}
		if target != nil && !replace {
			return fs.ErrExist
		}
		for up := d; up.owner != nil; up = up.owner.dir {
			if up.owner == e {
				return fmt.Errorf("directory would contain itself: %w", fs.ErrInvalid)
			}
		}
		if target != nil {
			return e.replace(target, units)
		}
		return e.move(d, units)
	})
}

// errOrder reports that one commit cannot contain a change together with the
// moves before it: a directory would have to be written both before and after
// another.
var errOrder = errors.New("earlier moves are not on the device yet")

// move puts the entry under its new name first and takes the old one away then;
// or overwrites it, if that is possible.
func (e *entry) move(d *directory, units []uint16) error {
	if d == e.dir && entriesFor(len(units)) == e.count {
		delete(d.entries, d.v.upcase.key(e.name))
		e.name = units
		copy(e.bytes(), e.encode(d.v.upcase))
		e.store()
		d.entries[d.v.upcase.key(units)] = e
		return nil
	}
	old := *e
	next := *e
	next.name = units
	next.renamed(d.v.now())
	if err := d.insert(&next); err != nil {
		return err
	}
	if d != old.dir && !d.orderBefore(old.dir) {
		d.drop(&next)
		return errOrder
	}
	old.dir.drop(&old)
	e.record, e.dir, e.index, e.count, e.gen = next.record, next.dir, next.index, next.count, old.gen
	e.moved = d.v.gen
	d.entries[d.v.upcase.key(units)] = e
	return nil
}

// orderBefore records that an entry has moved to d from another directory: d,
// and the new directories on the path to it, go to the device first. It returns
// false, without an effect, if one of them has to be written later.
func (d *directory) orderBefore(from *directory) bool {
	v := d.v
	first := []*directory{d}
	for up := d.owner; up != nil && up.gen > v.durable; up = up.dir.owner {
		first = append(first, up.dir)
	}
	for _, one := range first {
		if one == from || one.movedOut > v.durable || from.movedIn > v.durable {
			return false
		}
	}
	from.movedOut = v.changed()
	for _, one := range first {
		one.movedIn = from.movedOut
	}
	return true
}

// canRemove records that d removes a directory with this content (nil: a file).
// Entries that were in it may have moved elsewhere and have to be on the device
// there first; false if that is impossible.
func (d *directory) canRemove(content *directory) bool {
	if content == nil || content.movedOut <= d.v.durable {
		return true
	}
	if d.movedIn > d.v.durable {
		return false
	}
	d.movedOut = max(d.movedOut, content.movedOut)
	return true
}

// replace puts the entry into the place of another, so that one page holds
// either the new or the old.
func (e *entry) replace(target *entry, units []uint16) error {
	d := target.dir
	v := d.v
	var content *directory // of a target that is a directory
	switch {               // the rules of rename(2)
	case target.isDir() && !e.isDir():
		return ErrIsDir
	case e.isDir() && !target.isDir():
		return ErrNotDir
	case e.isDir():
		var err error
		if content, err = v.dirOf(target); err != nil {
			return err
		}
		if !content.isEmpty() {
			return ErrNotEmpty
		}
	}
	runs, err := v.clusters(target)
	if err != nil {
		return err
	}
	if target.first == e.first && e.first != 0 { // two names of one file, as a crash may leave them
		if runs = nil; target.node != nil {
			return ErrBusy
		}
	}
	if !d.canRemove(content) || d != e.dir && !d.orderBefore(e.dir) {
		return errOrder
	}
	e.dir.drop(e)
	place := target.bytes()
	e.name, e.dir, e.index = units, d, target.index
	e.renamed(v.now())
	set := e.encode(v.upcase)
	e.count = len(set) / entryLen
	for i := copy(place, set); i < len(place); i += entryLen {
		place[i] &^= inUse // entries of others that belonged to the old one
	}
	d.mark(target.index*entryLen, len(place))
	d.entries[v.upcase.key(units)] = e
	e.gen = v.changed()
	e.moved = e.gen
	v.discardOf(target, content, runs)
	return nil
}
