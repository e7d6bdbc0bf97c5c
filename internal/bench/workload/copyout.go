package workload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/system/hostio"
)

// CopyOut copies all items and trees of a volume to an empty one, with their
// folders and links, as a program does that does not know them: it lists folders
// and copies what it finds. Its operations are list, mkdir and symlink as those
// of [RunTree], and
//
//	copy: looking up the size, open, create, read and write calls, flush by Options.Sync, close of both
//
// It returns the files that it found.
func CopyOut(ctx context.Context, from, to Volume, items []Item, trees []Tree, o Options) (Outcome, []Item, error) {
	o = o.withDefaults()
	o.Block = cmp.Or(o.Block, copyBlock)
	s := &operationStep{step: step{vol: from, o: o, items: items, doing: "reading", found: map[string]int{},
		l: layoutRead(from, items, o)}}
	s.l.memory = max(s.l.memory, bufferAlign*int64(o.Workers))               // files may be larger than the items
	folders, files, links := []string(nil), []Item(nil), map[string]string{} // links by name
	add := func(name string) {
		if top, _, isInFolder := strings.Cut(name, "/"); !isInFolder {
			files = append(files, Item{Name: name})
		} else if !slices.Contains(folders, top) {
			folders = append(folders, top)
		}
	}
	for _, it := range items {
		add(it.Name)
	}
	for _, t := range trees {
		add(t.Folders[0] + "/")
		for _, l := range t.Links {
			links[l.Name] = l.Target
		}
	}
	err := s.evictFiles()
	if err != nil {
		return s.out, nil, err
	}
	err = s.run(ctx, nil, func(do func([]operation) error) error {
		var last []operation
		for len(folders) > 0 {
			var ops []operation
			for _, name := range folders {
				ops = append(ops, operation{kind: "list", name: name, vol: from},
					operation{kind: "mkdir", name: name, vol: to})
			}
			if err := do(ops); err != nil {
				return err
			}
			folders = nil
			for _, op := range ops {
				for _, e := range op.entries {
					name := path.Join(op.name, e.Name)
					if target := links[name]; target != "" {
						last = append(last, operation{kind: "symlink", name: name, to: target, vol: to})
					} else if e.Dir {
						folders = append(folders, name)
					} else {
						files = append(files, Item{Name: name})
					}
				}
			}
		}
		return do(append(ofFiles("copy", to, files), last...))
	})
	return s.out, files, err
}

// copyFile copies one file.
func (s *operationStep) copyFile(w *operationWorker, op *operation) error {
	o := s.o.fileOptions(w.id)
	size, err := s.vol.Size(op.name)
	if err != nil {
		return err
	}
	from, err := s.vol.Open(op.name, o)
	if err != nil {
		return err
	}
	to, err := op.vol.Create(op.name, size, o)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	if op.bytes, op.synced = size, hostio.SyncNone; s.l.dataless {
		err = cmp.Or(from.(Skipper).Skip(false, 0, size), to.(Skipper).Skip(true, 0, size))
	}
	for off := int64(0); off < size && err == nil && !s.l.dataless; off += w.call {
		buf := w.buf[:min(size-off, w.call)]
		if err = readFull(from, buf, off); err == nil {
			_, err = to.WriteAt(buf, off)
		}
		if err == nil && w.stopped() {
			err = errStopped
		}
	}
	if err == nil && s.o.Sync != hostio.SyncNone {
		op.synced, err = to.Sync(s.o.Sync)
	}
	return errors.Join(err, from.Close(), to.Close())
}

// CompareCopies compares files of two volumes byte by byte: those that [CopyOut]
// found, and all items. The findings of the outcome are as those of [Verify].
func CompareCopies(ctx context.Context, from, to Volume, found, items []Item, o Options) (Outcome, error) {
	all := append(found, Without(items, found)...)
	return verifyItems(ctx, all, o.withDefaults(), func(it Item, mem []byte) error {
		var sources [2]*VolumeSource
		for i, vol := range []Volume{from, to} {
			var err error // pages in the cache do not prove what is on the volume: they are evicted
			if sources[i], err = OpenSource(vol, it.Name, Options{Cache: CacheCold}); err != nil {
				return err
			}
			defer sources[i].Close()
		}
		return compareSources(sources[0], sources[1], mem)
	})
}

// compareSources returns how two files differ; mem has two blocks.
func compareSources(a, b Source, mem []byte) error {
	if a.Size() != b.Size() {
		return fmt.Errorf("has %d bytes, its copy %d", a.Size(), b.Size())
	}
	for off := int64(0); off < a.Size(); off += verifyBlock {
		n := min(verifyBlock, a.Size()-off)
		x, y := mem[:n], mem[verifyBlock:verifyBlock+n]
		if err := errors.Join(readFull(a, x, off), readFull(b, y, off)); err != nil {
			return fmt.Errorf("reading %d bytes at %d: %w", n, off, err)
		}
		if !bytes.Equal(x, y) {
			return fmt.Errorf("its copy differs in %d bytes at %d", n, off)
		}
	}
	return nil
}
