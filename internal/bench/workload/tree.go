package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/plan"
)

// Tree is what a tree has besides its files, which are [Item]s.
type Tree struct {
	Folders     []string // that of the tree first, and each after the one around it
	Links       []Link   `json:",omitempty"`
	Executables []string `json:",omitempty"` // files that get the mode 755 when they are made
}

// Link is a symbolic link to a folder beside it.
type Link struct{ Name, Target string }

// NewTree draws a tree for a batch, with its files folder by folder. Everything
// but the folder of the batch follows from the file set and the seed.
func NewTree(set plan.FileSet, seed uint64, batch int) (Tree, []Item) {
	spec, src := set.Tree, Key{Seed: seed, Step: set.Name}.source("tree", 0)
	folders, open := []string{BatchFolder(batch)}, []int{0} // open are those that can have folders
	for i := 1; i <= spec.Folders; i++ {
		parent := i - 1 // the first ones are a chain, so that the tree is as deep as it should be
		if i > spec.Depth {
			parent = open[pick(src, len(open))]
		}
		folders = append(folders, path.Join(folders[parent], drawName(src, i, "")))
		if strings.Count(folders[i], "/") < spec.Depth {
			open = append(open, i)
		}
	}
	inFolder := make([][]Item, len(folders))
	for i, size := range set.Draw(seed)[0] {
		at := pick(src, len(folders))
		inFolder[at] = append(inFolder[at], Item{Name: path.Join(folders[at], drawName(src, i, nameEnd)),
			Size: int64(size), Batch: batch, Set: 1, Index: i})
	}
	items, t := slices.Concat(inFolder...), Tree{Folders: folders}
	for i := range shareOf(len(items), float64(spec.Links)) {
		to := folders[1+pick(src, len(folders)-1)]
		t.Links = append(t.Links, Link{path.Join(path.Dir(to), drawName(src, i, ".link")), path.Base(to)})
	}
	for _, i := range drawShare(len(items), float64(spec.Executables), src) {
		t.Executables = append(t.Executables, items[i].Name)
	}
	return t, items
}

// pick draws a number from 0 to n-1.
func pick(src *rand.PCG, n int) int {
	drawn, _ := bits.Mul64(src.Uint64(), uint64(n))
	return int(drawn)
}

// shareOf is how many of n a share is.
func shareOf(n int, share float64) int { return int(math.Round(min(share, 1) * float64(n))) }

// drawShare is a random share of the numbers from 0 to n-1, in rising order.
func drawShare(n int, share float64, src *rand.PCG) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	shuffle(all, src)
	all = all[:shareOf(n, share)]
	slices.Sort(all)
	return all
}

// executableMode are the permissions of the executables of a tree.
const executableMode = 0o755

// Names of files before and after they are renamed: of one length, so that
// folders keep theirs.
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
	base, ok := strings.CutSuffix(it.Name, nameEnd)
	if it.Name = base + renamedEnd; !ok {
		it.Name = strings.TrimSuffix(base, renamedEnd) + nameEnd
	}
	return it
}

// TreeSpec is one step on a tree.
type TreeSpec struct {
	Action string // create | list | read | rewrite | rename | delete
	Tree   Tree
	Files  []Item  // of the tree, as they are before the step
	Share  float64 // rewrite: of the files
	Key    Key     // decides which files
}

// RunTree does one action to every file and folder of a tree, and times each
// operation. Afterwards the spec has the tree as it is then. These are the
// operations, and what their latencies contain:
//
//	mkdir, list, remove, rmdir, rename, symlink, chmod: one call
//	stat: looking up the size of a file
//	create: create, write calls, flush by Options.Sync, close
//	rewrite: open, write calls, flush by Options.Sync, close
//	read: open, read calls, close
//
// Making data, eviction, and the flush of the volume at the end are outside of
// all latencies and of their span.
func RunTree(ctx context.Context, vol Volume, spec *TreeSpec, o Options) (Outcome, error) {
	o = o.withDefaults()
	s := &operationStep{step: step{vol: vol, o: o, items: spec.Files, doing: "reading", found: map[string]int{},
		l: newLayout(vol, nil, o)}}
	if spec.Action == "read" {
		s.l = layoutRead(vol, spec.Files, o)
		if err := s.evictFiles(); err != nil {
			return s.out, err
		}
	}
	stages := s.stages(spec)
	var written []Item
	if s.write = spec.Action == "create" || spec.Action == "rewrite"; s.write {
		s.doing, written = "writing", s.items
	}
	err := s.run(ctx, written, func(do func([]operation) error) error {
		for _, ops := range stages {
			if err := do(ops); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && spec.Action != "list" && spec.Action != "read" {
		err = syncVolume(vol)
	}
	return s.out, err
}

// stages are the operations of an action, and change the spec: those of a stage
// do not depend on each other, so that several workers can do them.
func (s *operationStep) stages(spec *TreeSpec) [][]operation {
	files, t := spec.Files, &spec.Tree
	switch spec.Action {
	case "create":
		links, modes := s.linkOperations(t)
		return append(byLevel("mkdir", s.vol, t.Folders), ofFiles("create", s.vol, files), links, modes)
	case "list":
		return [][]operation{listOperations(s.vol, *t, files)}
	case "rewrite":
		spec.Files, s.items = slices.Clone(files), nil
		for _, i := range drawShare(len(files), spec.Share, spec.Key.source("rewrite", 0)) {
			spec.Files[i].Version++
			s.items = append(s.items, spec.Files[i])
		}
		files = s.items
	case "rename":
		ops := ofFiles("rename", s.vol, files)
		spec.Files = slices.Clone(files)
		for i := range ops {
			spec.Files[i] = files[i].renamed()
			ops[i].to = spec.Files[i].Name
		}
		return [][]operation{ops}
	case "delete":
		ops := ofFiles("remove", s.vol, files)
		for _, l := range t.Links {
			ops = append(ops, operation{kind: "remove", name: l.Name, vol: s.vol})
		}
		stages := append(byLevel("rmdir", s.vol, t.Folders), ops)
		slices.Reverse(stages)
		*t, spec.Files = Tree{}, nil
		return stages
	}
	return [][]operation{ofFiles(spec.Action, s.vol, files)} // read, rewrite
}

// ofFiles are operations of one kind on files.
func ofFiles(kind string, vol Volume, items []Item) []operation {
	ops := make([]operation, len(items))
	for i, it := range items {
		ops[i] = operation{kind: kind, name: it.Name, item: it, vol: vol}
	}
	return ops
}

// byLevel are operations on folders, a stage for each level.
func byLevel(kind string, vol Volume, folders []string) (stages [][]operation) {
	for _, name := range folders {
		level := strings.Count(name, "/")
		stages = append(stages, make([][]operation, max(level+1-len(stages), 0))...)
		stages[level] = append(stages[level], operation{kind: kind, name: name, vol: vol})
	}
	return stages
}

// listOperations list each folder and look up its files, folder by folder.
func listOperations(vol Volume, t Tree, files []Item) (ops []operation) {
	inside, entries := map[string][]operation{}, map[string]int64{}
	for _, it := range files {
		folder := path.Dir(it.Name)
		inside[folder] = append(inside[folder], operation{kind: "stat", name: it.Name, vol: vol, want: it.Size})
		entries[folder]++
	}
	for _, name := range t.Folders {
		entries[path.Dir(name)]++
	}
	for _, l := range t.Links {
		entries[path.Dir(l.Name)]++
	}
	for _, name := range t.Folders {
		ops = append(ops, operation{kind: "list", name: name, vol: vol, want: entries[name]})
		ops = append(ops, inside[name]...)
	}
	return ops
}

// linkOperations make the links and modes of a tree. If the volume cannot have
// them, as the attempt shows, they are no longer in the tree.
func (s *operationStep) linkOperations(t *Tree) (links, modes []operation) {
	if len(t.Links)+len(t.Executables) > 0 && !canLink(s.vol) {
		s.out.warn("tree", "the volume has neither symbolic links nor modes: %d links and %d modes were not made",
			len(t.Links), len(t.Executables))
		t.Links, t.Executables = nil, nil
	}
	for _, l := range t.Links {
		links = append(links, operation{kind: "symlink", name: l.Name, to: l.Target, vol: s.vol})
	}
	for _, name := range t.Executables {
		modes = append(modes, operation{kind: "chmod", name: name, vol: s.vol})
	}
	return links, modes
}

// canLink reports whether the volume has symbolic links and modes. exFAT has
// neither, which only its refusal shows.
func canLink(vol Volume) bool {
	const probe = ".dmgbench-probe"
	l, ok := vol.(Linker)
	if !ok || l.Symlink(".", probe) != nil || l.Remove(probe) != nil {
		return false
	}
	f, err := l.Create(probe, 0, FileOptions{})
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), l.Chmod(probe, executableMode), l.Remove(probe)) == nil
}

// residentFiles is how many files of a tree are looked up in the page cache
// before it is read; those of a tree are treated alike.
const residentFiles = 100

// evictFiles evicts the files from the page cache unless they are read through
// it as it is, and finds out what the first read will find.
func (s *operationStep) evictFiles() error {
	every := max(len(s.items)/residentFiles, 1)
	for i, it := range s.items {
		if s.o.Cache == CacheBuffered && i%every != 0 {
			continue
		}
		f, err := s.vol.Open(it.Name, s.o.fileOptions(0))
		if err != nil {
			return s.fail(it, fmt.Errorf("opening: %w", err))
		}
		err = s.evict(f)
		if i%every == 0 {
			s.found[cacheBefore(f)]++
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return s.fail(it, err)
		}
	}
	return nil
}
