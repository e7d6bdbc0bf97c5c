package exfat

import (
	"errors"
	"fmt"
	"io/fs"
)

// Rename moves a file or directory, open or not, to a path that does not exist;
// a change of case alone is allowed.
func (v *Volume) Rename(from, to string) (err error) {
	defer annotate(&err, "renaming %q to %q", from, to)
	return v.ordered(func() error { return v.rename(from, to, false) })
}

// Replace is Rename to a path that may exist, as a file for a file, or as an
// empty directory for a directory. After a crash the path names the one or the
// other.
func (v *Volume) Replace(from, to string) (err error) {
	defer annotate(&err, "renaming %q to %q", from, to)
	return v.ordered(func() error { return v.rename(from, to, true) })
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
func (v *Volume) rename(from, to string, replace bool) error {
	return v.withSpace(func(bool) error {
		e, _, err := v.walkTo(splitPath(from))
		if err != nil {
			return err
		}
		d, units, err := v.place(to)
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
	content, err := target.replaceable(e)
	if err != nil {
		return err
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
	v.forget(content)
	v.discardOf(target, runs)
	return nil
}

// replaceable returns an error unless e may be replaced by another, by the
// rules of rename(2), and the content of a directory.
func (e *entry) replaceable(by *entry) (content *directory, err error) {
	switch {
	case e.isDir() && !by.isDir():
		return nil, ErrIsDir
	case by.isDir() && !e.isDir():
		return nil, ErrNotDir
	case !e.isDir():
		return nil, nil
	}
	if content, err = e.dir.v.dirOf(e); err == nil && len(content.entries) > 0 {
		err = ErrNotEmpty
	}
	return content, err
}
