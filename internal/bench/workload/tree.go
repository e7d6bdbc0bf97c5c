package workload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// Tree is a tree without its files, which are [Item]s.
type Tree struct {
	Folders     []string // that of the tree first, and each after the one around it
	Links       []Link   `json:",omitempty"`
	Executables []string `json:",omitempty"` // files that get the mode 755 when they are made
}

// Link is a symbolic link to a folder in the same folder.
type Link struct{ Name, Target string }

// NewTree draws a tree for a batch, with its files folder by folder. Everything
// but the folder of the batch follows from the file set and the seed.
func NewTree(set plan.FileSet, seed uint64, batch int) (Tree, []Item) {
	spec, key := set.Tree, Key{Seed: seed, Step: set.Name}
	src := key.source("tree", 0)
	folders := []string{BatchFolder(batch)}
	for i := 1; i <= spec.Folders; i++ {
		parent := folders[i-1] // the first ones are a chain, so that the tree is as deep as it should be
		for i > spec.Depth && strings.Count(parent, "/") >= spec.Depth {
			parent = folders[pick(src, i)]
		}
		folders = append(folders, path.Join(parent, drawName(src, i, "")))
	}
	inFolder := make([][]Item, len(folders))
	for i, size := range set.Draw(seed)[0] {
		at := pick(src, len(folders))
		inFolder[at] = append(inFolder[at], Item{Name: path.Join(folders[at], drawName(src, i, nameEnd)),
			Size: int64(size), Batch: batch, Set: 1, Index: i})
	}
	items, t := slices.Concat(inFolder...), Tree{Folders: folders}
	for i := range int(math.Round(float64(spec.Links) * float64(len(items)))) {
		to := folders[1+pick(src, len(folders)-1)]
		t.Links = append(t.Links, Link{path.Join(path.Dir(to), drawName(src, i, ".link")), path.Base(to)})
	}
	if spec.Executables > 0 {
		for _, it := range Select(items, plan.Step{Share: spec.Executables}, key) {
			t.Executables = append(t.Executables, it.Name)
		}
	}
	return t, items
}

// pick draws a number from 0 to n-1.
func pick(src *rand.PCG, n int) int { return int(below(src, uint64(n))) }

// Ends of the names of files before and after they are renamed, of one length.
const (
	nameEnd    = ".dat"
	renamedEnd = ".new"
)

// drawName is a name of 4 to 19 lower-case letters and a number that makes it
// unique: every file system takes it, whether or not it knows upper case.
func drawName(src *rand.PCG, i int, end string) string {
	name := make([]byte, 4+pick(src, 16))
	for c := range name {
		name[c] = byte('a' + pick(src, 26))
	}
	return fmt.Sprintf("%s-%d%s", name, i, end)
}

// renamed is the item with its other name.
func (it Item) renamed() Item {
	it.Made = cmp.Or(it.Made, it.Name)
	if base, ok := strings.CutSuffix(it.Name, renamedEnd); ok {
		it.Name = base + nameEnd
	} else {
		it.Name = strings.TrimSuffix(it.Name, nameEnd) + renamedEnd
	}
	return it
}

// TreeSpec is one step on a tree.
type TreeSpec struct {
	Action string // create | list | read | rewrite | rename | delete | copy
	Tree   Tree
	Files  []Item  // of the tree
	Share  float64 // rewrite: of the files
	Key    Key     // rewrite: decides which files
	To     Volume  // copy
}

// AddFiles adds files that are to be copied, and the folders around them.
func (spec *TreeSpec) AddFiles(items []Item) {
	have := map[string]bool{".": true}
	for _, name := range spec.Tree.Folders {
		have[name] = true
	}
	for _, it := range items {
		for dir := path.Dir(it.Name); !have[dir]; dir = path.Dir(dir) {
			have[dir], spec.Tree.Folders = true, append(spec.Tree.Folders, dir)
		}
	}
	spec.Files = append(spec.Files, items...)
}

// RunTree does one action to every file and folder of a tree, and times each
// operation. Afterwards the spec has the tree as it is then. These are the
// operations, and what their latencies contain:
//
//	mkdir, remove, rmdir, rename, symlink, chmod: one call
//	list: open, read all names, close
//	stat: looking up the size of a file
//	create: create, write calls, flush by Options.Sync, close
//	rewrite: open, write calls, flush by Options.Sync, close
//	read: open, read calls, close
//	copy: looking up the size, open, create, read and write calls, flush by Options.Sync, close of both
//
// Names are looked up in folders that were opened before, on a volume that can
// do so ([Opener]). That, making data, eviction, and the flush of the volume at the end are outside of
// all latencies and of their span.
func RunTree(ctx context.Context, vol Volume, spec *TreeSpec, o Options) (Outcome, error) {
	o = o.withDefaults()
	s := &operationStep{step: step{vol: vol, o: o, items: spec.Files, doing: "reading", found: map[string]int{},
		l: newLayout(vol, nil, o)}}
	switch spec.Action {
	case "create", "rewrite":
		s.write, s.doing = true, "writing"
	case "copy", "read":
		if spec.Action == "copy" {
			s.o.Block = cmp.Or(o.Block, copyBlock)
		}
		s.l = layoutRead(vol, spec.Files, s.o)
		s.l.memory = max(s.l.memory, bufferAlign*int64(o.Workers))
		if err := s.evictFiles(); err != nil {
			return s.out, err
		}
	}
	err := s.run(ctx, s.stages(ctx, spec))
	if err == nil && spec.Action != "list" && spec.Action != "read" && spec.Action != "copy" {
		err = syncVolume(vol)
	}
	return s.out, err
}

// stages are the operations of an action, and change the spec: those of a stage
// do not depend on each other, so that several workers can do them.
func (s *operationStep) stages(ctx context.Context, spec *TreeSpec) [][]operation {
	files, t := spec.Files, &spec.Tree
	var names []string
	for _, it := range files {
		names = append(names, it.Name)
	}
	// By level, so that no folder is looked up before the one around it is listed.
	list := byLevel(s.calls("list", t.Folders, s.vol, func(at Volume, name string) error {
		_, err := at.List(name)
		return err
	}))
	switch spec.Action {
	case "create":
		stages := append(byLevel(s.calls("mkdir", t.Folders, s.vol, Volume.Mkdir)), s.transfers("create", s.transferFile))
		return append(stages, s.links(t, s.vol)...)
	case "list":
		return append(list, s.calls("stat", names, s.vol, func(at Volume, name string) error {
			_, err := at.Size(name)
			return err
		}))
	case "copy":
		copies := s.transfers("copy", func(w *operationWorker, op *operation) error {
			return s.copyFile(ctx, w, op)
		})
		for i := range copies {
			copies[i].to = spec.To
		}
		stages := append(list, byLevel(s.calls("mkdir", t.Folders, spec.To, Volume.Mkdir))...)
		return append(append(stages, copies), s.links(&Tree{Links: t.Links}, spec.To)...)
	case "rewrite":
		chosen := map[string]bool{}
		for _, it := range Select(files, plan.Step{Share: units.Share(spec.Share)}, spec.Key) {
			chosen[it.Name] = true
		}
		spec.Files, s.items = slices.Clone(files), nil
		for i := range files {
			if chosen[files[i].Name] {
				spec.Files[i].Version++
				s.items = append(s.items, spec.Files[i])
			}
		}
	case "rename":
		ops := make([]operation, len(files))
		spec.Files = slices.Clone(files)
		for i, it := range files {
			to := it.renamed()
			spec.Files[i] = to
			// Both names are of one length, with and without the folder.
			ops[i] = s.call("rename", it.Name, s.vol, func(at Volume, name string) error {
				return at.Rename(name, to.Name[len(to.Name)-len(name):])
			})
		}
		return [][]operation{ops}
	case "delete":
		for _, l := range t.Links {
			names = append(names, l.Name)
		}
		stages := append(byLevel(s.calls("rmdir", t.Folders, s.vol, Volume.Rmdir)),
			s.calls("remove", names, s.vol, Volume.Remove))
		slices.Reverse(stages)
		*t, spec.Files = Tree{}, nil
		return stages
	}
	return [][]operation{s.transfers(spec.Action, s.transferFile)} // read, rewrite
}

// transfers are operations that transfer the files of the step.
func (s *operationStep) transfers(kind string, do func(*operationWorker, *operation) error) []operation {
	ops := make([]operation, len(s.items))
	for i, it := range s.items {
		ops[i] = operation{kind: kind, name: it.Name, vol: s.vol, item: it, do: do}
	}
	return ops
}

// byLevel are stages of operations on folders, one for each level.
func byLevel(ops []operation) (stages [][]operation) {
	for _, op := range ops {
		level := strings.Count(op.name, "/")
		stages = append(stages, make([][]operation, max(level+1-len(stages), 0))...)
		stages[level] = append(stages[level], op)
	}
	return stages
}

// links make the links and modes of a tree. If the volume cannot have them, as
// an attempt shows, they are removed from the tree.
func (s *operationStep) links(t *Tree, vol Volume) [][]operation {
	const probe = ".dmgbench-probe"
	l, ok := vol.(Linker)
	if n, m := len(t.Links), len(t.Executables); n+m > 0 &&
		(!ok || l.Symlink(".", probe) != nil || l.Remove(probe) != nil) {
		s.out.warn("tree", "the volume has neither symbolic links nor modes: %d links and %d modes were not made", n, m)
		t.Links, t.Executables = nil, nil
	}
	var links []operation
	for _, one := range t.Links {
		links = append(links, s.call("symlink", one.Name, vol, func(at Volume, name string) error {
			return at.(Linker).Symlink(one.Target, name)
		}))
	}
	return [][]operation{links, s.calls("chmod", t.Executables, vol, func(at Volume, name string) error {
		return at.(Linker).Chmod(name, 0o755)
	})}
}

// residentFiles is how many files of a tree are looked up in the page cache
// before it is read through it; those of a tree are treated alike.
const residentFiles = 100

// evictFiles evicts the files from the page cache unless they are read through
// it as it is, and finds out what the first read will find.
func (s *operationStep) evictFiles() error {
	for i, it := range s.items {
		if s.o.Cache == CacheBuffered && i%max(len(s.items)/residentFiles, 1) != 0 {
			continue
		}
		j := &job{item: it}
		if err := s.openFile(j); err != nil {
			return s.fail(it, err)
		}
		s.found[j.found]++
		if err := j.file.Close(); err != nil {
			return s.fail(it, err)
		}
	}
	return nil
}

// CompareCopies compares the checksums of items on two volumes. The findings of
// the outcome are as those of [Verify].
func CompareCopies(ctx context.Context, from, to Volume, items []Item, o Options) (Outcome, error) {
	return verifyItems(ctx, items, o.withDefaults(), func(it Item, mem []byte) error {
		sums := [2]string{}
		for i, vol := range []Volume{from, to} {
			src, err := OpenSource(vol, it.Name, Options{Cache: CacheCold})
			if err != nil {
				return err
			}
			h := sha256.New()
			_, err = io.CopyBuffer(h, io.NewSectionReader(src, 0, src.size), mem)
			if err := errors.Join(err, src.Close()); err != nil {
				return fmt.Errorf("reading: %w", err)
			}
			sums[i] = string(h.Sum(nil))
		}
		if sums[0] != sums[1] {
			return errors.New("its copy differs")
		}
		return nil
	})
}
