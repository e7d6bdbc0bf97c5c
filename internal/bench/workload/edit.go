package workload

import (
	"context"
	"errors"
	"fmt"
	"math"

	"dmgbench/internal/system/hostio"
)

// Kinds of edit, after what programs do to the files of people.
const (
	EditOverwrite = "overwrite" // blocks of a file in place: a database, a virtual disk
	EditAppend    = "append"    // bytes after the end: a log
	EditInsert    = "insert"    // bytes at the front: everything moves
	EditReplace   = "replace"   // a changed copy is written, and takes the name: how most applications save
)

// editBlock is what overwrite changes at once, in bytes: a page.
const editBlock = 4096

// editCall is the most bytes that a call of an edit moves.
const editCall = 1 << 20

// Edit is how files are edited.
type Edit struct {
	Kind   string
	Share  float64 // of a file's blocks of 4 KiB that overwrite and replace change, at least one
	Amount int64   // bytes that append and insert add
}

// Pick is n of the items, drawn by the key; all if there are fewer.
func Pick(items []Item, n int, key Key) []Item {
	list := ReadOrder(items, OrderAsListed, key)
	shuffle(list, key.source("edit", 0))
	return list[:min(n, len(list))]
}

// EditFiles edits files through the cache, as applications do, flushes each as
// far as o.Sync requests, and flushes the volume. It returns the items with
// their new sizes. The outcome counts the bytes that are new: blocks changed, or
// bytes added. New data is that of another key than the file's own, so that the
// files no longer verify.
func EditFiles(ctx context.Context, vol Volume, items []Item, e Edit, key Key, o Options) ([]Item, Outcome, error) {
	var out Outcome
	edited := append([]Item{}, items...)
	for i := range edited {
		it := &edited[i]
		err := context.Cause(ctx)
		if err == nil {
			d := &edit{Edit: e, vol: vol, o: o, item: it, buf: make([]byte, editCall)}
			d.data = KeyOf(fmt.Sprintf("edit %d of %s", key.Batch, it.Name))
			key.Step = it.Name
			err = d.do(key)
			out.Bytes, out.Written = out.Bytes+d.changed, out.Written+d.changed+d.moved
		}
		if err != nil {
			return edited, out, fmt.Errorf("editing file %q: %w", it.Name, err)
		}
	}
	return edited, out, syncVolume(vol)
}

// edit is one file that is being edited.
type edit struct {
	Edit
	vol  Volume
	o    Options
	item *Item
	buf  []byte
	data FileKey
	// New bytes, and those that were written again as they were
	changed, moved int64
}

// do opens the file, edits it, flushes and closes it.
func (d *edit) do(key Key) error {
	f, err := d.vol.Open(d.item.Name, FileOptions{Cache: CacheBuffered, Write: d.Kind != EditReplace})
	if err != nil {
		return err
	}
	switch d.Kind {
	case EditOverwrite:
		err = d.overwrite(f, key)
	case EditAppend:
		err = d.fill(f, d.item.Size, d.Amount)
	case EditInsert:
		if err = d.move(f, f, d.Amount); err == nil {
			err = d.fill(f, 0, d.Amount)
		}
	case EditReplace:
		err = d.replace(f, key)
	}
	if d.Kind != EditReplace && err == nil {
		err = d.flush(f)
	}
	if d.Kind == EditAppend || d.Kind == EditInsert {
		d.item.Size += d.Amount
	}
	return errors.Join(err, f.Close())
}

func (d *edit) flush(f File) error {
	if d.o.Sync == hostio.SyncNone || d.o.Sync == "" {
		return nil
	}
	_, err := f.Sync(d.o.Sync)
	return err
}

// overwrite changes blocks at places drawn by the key.
func (d *edit) overwrite(f File, key Key) error {
	blocks := make([]int64, (d.item.Size+editBlock-1)/editBlock)
	for i := range blocks {
		blocks[i] = int64(i)
	}
	shuffle(blocks, key.source("overwrite", 0))
	for _, b := range blocks[:min(max(int(math.Round(d.Share*float64(len(blocks)))), 1), len(blocks))] {
		if err := d.fill(f, b*editBlock, min(editBlock, d.item.Size-b*editBlock)); err != nil {
			return err
		}
	}
	return nil
}

// fill writes n new bytes at an offset.
func (d *edit) fill(f File, off, n int64) error {
	for end := off + n; off < end; {
		part := d.buf[:min(editCall, end-off)]
		d.o.Data.FillAt(part, d.data, off)
		if _, err := f.WriteAt(part, off); err != nil {
			return err
		}
		d.changed += int64(len(part))
		off += int64(len(part))
	}
	return nil
}

// move copies the content by that many bytes further on, from its end to its
// start, so that the file can be its own destination.
func (d *edit) move(to, from File, by int64) error {
	for end := d.item.Size; end > 0; {
		part := d.buf[:min(editCall, end)]
		end -= int64(len(part))
		if err := readFull(from, part, end); err != nil {
			return err
		}
		if _, err := to.WriteAt(part, end+by); err != nil {
			return err
		}
		d.moved += int64(len(part))
	}
	return nil
}

// replace writes a copy with changed blocks, flushes it, and renames it to the
// file.
func (d *edit) replace(old File, key Key) error {
	name := d.item.Name + ".new"
	f, err := d.vol.Create(name, d.item.Size, FileOptions{Cache: CacheBuffered})
	if err != nil {
		return err
	}
	if err = d.move(f, old, 0); err == nil {
		err = d.overwrite(f, key)
	}
	if err == nil {
		err = d.flush(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.vol.Remove(name))
	}
	return d.vol.Rename(name, d.item.Name)
}
