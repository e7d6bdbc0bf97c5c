package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	"dmgbench/internal/system/units"
)

// Tree makes a [FileSet] one of many files in folders, for tree steps. All
// values are those of the shape unless the plan has its own; the number of
// folders follows the number of files.
type Tree struct {
	// Shape: source-tree | photo-library | application, "" for none of them
	Shape string `plan:"shape source-tree|photo-library|application"`
	// Files: regular files
	Files int `plan:"files 1..1000000"`
	// Folders: below that of the tree
	Folders int `plan:"folders 1..100000"`
	// Depth: most folders above a file, without that of the tree
	Depth int `plan:"depth 1..32"`
	// Size: median of the drawn sizes
	Size units.Bytes `plan:"size"`
	// Spread: geometric standard deviation of the drawn sizes
	Spread int `plan:"spread 1..100"`
	// Largest: larger draws are cut to this size
	Largest units.Bytes `plan:"largest"`
	// Sizes: instead of Size, Spread and Largest: each is drawn as often
	Sizes []units.Bytes `plan:"sizes min=1"`
	// Links: symbolic links in addition to the files, as a share of their number
	Links units.Share `plan:"links always"`
	// Executables: share of the files that get the mode 755
	Executables units.Share `plan:"executables always"`
}

// shapes are the trees that plans can name. The source tree has the ratios of
// that of Go 1.26 (11,478 files in 1,324 folders, spread 5.4, mean 11 kB). A
// library of photos has a picture and a smaller preview for each; an application
// has thousands of small resources, a few large binaries, and the symbolic links
// of its frameworks.
var shapes = map[string]Tree{
	"":              {Files: 1000, Folders: 100, Depth: 4, Size: 8e3, Spread: 4, Largest: 8e6},
	"source-tree":   {Files: 40_000, Folders: 4000, Depth: 9, Size: 3e3, Spread: 5, Largest: 3e6, Executables: 0.004},
	"photo-library": {Files: 4000, Folders: 40, Depth: 3, Size: 1e6, Spread: 4, Largest: 60e6},
	"application": {Files: 3000, Folders: 600, Depth: 8, Size: 4e3, Spread: 9, Largest: 150e6,
		Links: 0.02, Executables: 0.03},
}

const (
	// maxTreeFile is the largest file of a tree: its data is made before the
	// clock starts, in the memory of the program.
	maxTreeFile = units.Bytes(256e6)
	// minTreeFiles is the smallest number of files that scaling makes.
	minTreeFiles = 10
)

// finishTree fills in what the shape has.
func finishTree(r *reader, n *node, t *Tree) {
	shape := shapes[t.Shape]
	t.Files = cmp.Or(t.Files, shape.Files)
	t.Folders = cmp.Or(t.Folders, scaleCount(shape.Folders, float64(t.Files)/float64(shape.Files), 1))
	t.Depth = min(cmp.Or(t.Depth, shape.Depth), t.Folders)
	if n.get("links") == nil {
		t.Links = shape.Links
	}
	if n.get("executables") == nil {
		t.Executables = shape.Executables
	}
	if len(t.Sizes) == 0 {
		t.Size, t.Spread = cmp.Or(t.Size, shape.Size), cmp.Or(t.Spread, shape.Spread)
		t.Largest = cmp.Or(t.Largest, max(shape.Largest, t.Size))
	} else if t.Size > 0 || t.Spread > 0 || t.Largest > 0 {
		r.bad(n.get("sizes"), "a tree has either sizes, or size, spread and largest")
	}
	switch largest := slices.Max(append(t.Sizes, t.Largest)); {
	case largest > maxTreeFile:
		r.badKey(n, "a tree has files of at most %s, not %s", maxTreeFile, largest)
	case t.Size > t.Largest:
		r.bad(n.get("size"), "size: the median %s is more than the largest, %s", t.Size, t.Largest)
	case t.Links > 1 || t.Executables > 1:
		r.badKey(n, "links and executables: want at most 100%%")
	}
}

// draw is one size. The logarithms of sizes are normal: the sum of twelve
// uniform numbers less 6 has the standard deviation 1 and is normal up to three
// of them. It takes no exponential, see [geometric].
func (t *Tree) draw(source *rand.Rand) units.Bytes {
	if len(t.Sizes) > 0 {
		i, _ := bits.Mul64(source.Uint64(), uint64(len(t.Sizes)))
		return t.Sizes[i]
	}
	sum, median, reach := uint64(0), float64(t.Size), 1.0
	for range 12 {
		sum += source.Uint64() / 12
	}
	for range 6 {
		reach *= float64(t.Spread)
	}
	size := units.Bytes(math.Round(geometric(median/reach, median*reach, sum)))
	return min(max(size, 1), t.Largest)
}

// scaleCount is n times a factor, at least least or n.
func scaleCount(n int, factor float64, least int) int {
	return max(int(math.Round(float64(n)*factor)), min(n, least))
}

// scaleTrees multiplies the numbers of files and folders of trees, and returns
// the text of the change. Sizes stay, since a tree is about operations.
func (p *Plan) scaleTrees(factor float64) (text string) {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Tree == nil {
			continue
		}
		t := *f.Tree // that of the published plan stays
		t.Files = min(scaleCount(t.Files, factor, minTreeFiles), maxFiles)
		t.Folders = scaleCount(t.Folders, factor, 1)
		t.Depth = min(t.Depth, t.Folders)
		text += fmt.Sprintf("; %d files in the tree %s, not %d, of the same sizes", t.Files, f.Name, f.Tree.Files)
		f.Tree = &t
	}
	return text
}

// treeSlack is what a file of a tree takes at most beyond its size, with its
// share of the folders: of the file systems of disk images exFAT has the largest
// clusters, 32 KiB for volumes from 256 MiB to 32 GiB. Others have blocks of 4 KiB.
func (e *estimator) treeSlack(c *container) units.Bytes {
	if c.native || c.size <= 256*mib || !slices.Contains(e.c.Settings.Filesystems, "exFAT") {
		return 4 << 10
	}
	return 32 << 10
}

// treeOperations are the kinds of operation of a tree step by its action.
var treeOperations = map[string][]string{
	"create": {"mkdir", "create", "symlink", "chmod"}, "list": {"list", "stat"}, "read": {"read"},
	"rewrite": {"rewrite"}, "rename": {"rename"}, "delete": {"remove", "rmdir"},
}

// newestTree is the batch of the tree that a step names or, without a name, of
// the newest one; 0 if there is none.
func (c *container) newestTree(name string) int {
	for _, f := range slices.Backward(c.files) {
		if f.tree != "" && (name == "" || f.tree == name) {
			return f.batch
		}
	}
	return 0
}

// changesVolume reports whether a step of the kind writes to the image.
func (k *stepKind) changesVolume(s *Step, c *container) bool {
	if _, exists := c.named[s.File]; s.Do == "random" && exists && s.Reads == 1 {
		return false
	}
	return k.changes || s.Do == "tree" && s.Action != "list" && s.Action != "read"
}

// finishTreeStep fills in the share that is rewritten, and the phase: without
// one, its operations are distinguished by the action.
func finishTreeStep(r *reader, n *node, s *Step) {
	s.Phase = cmp.Or(s.Phase, s.Action)
	switch at := n.get("share"); {
	case s.Action != "rewrite" && at != nil:
		r.badKey(at, "tree: only rewrite has a share")
	case s.Share > 1:
		r.bad(at, "share: %s is more than all files", s.Share)
	case s.Action == "rewrite" && s.Share == 0:
		s.Share = 0.1
	}
}

// checkTree checks that there is a file set to make, or a tree to work on.
func (f *stepChecker) checkTree(s *Step, c *container) {
	set, name := f.e.fileSet(s), ""
	if s.Files != "" {
		name = " " + strconv.Quote(s.Files)
	}
	switch {
	case s.Action == "create" && set == nil:
		f.checkFiles(s, c)
	case s.Action == "create" && set.Tree == nil:
		f.atStep(s, "files", "tree: the file set %q is not a tree", set.Name).
			hintf("give it tree = { … }, or write it with { do = \"write\" }")
		f.e.stop = true
	case s.Action != "create" && c.newestTree(s.Files) == 0:
		f.atStep(s, "empty", "tree: no step before has created a tree%s to %s", name, s.Action).
			hintf("put { do = \"tree\", action = \"create\" } before it")
	}
}

// tree follows a tree step.
func (e *estimator) tree(s *Step, c *container, t *StepTotal) {
	if s.Action == "create" {
		e.write(s, c, t)
		return
	}
	batch := c.newestTree(s.Files)
	for _, f := range c.files {
		if f.batch == batch {
			t.Files, t.Bytes = t.Files+1, t.Bytes+f.size
		}
	}
	switch s.Action {
	case "list", "rename":
		t.Bytes = 0
	case "read":
		e.BytesRead = plus(e.BytesRead, t.Bytes)
	case "rewrite": // a file system that copies on write takes new blocks
		t.Files = int(math.Round(float64(t.Files) * float64(s.Share)))
		t.Bytes = units.Bytes(float64(t.Bytes) * float64(s.Share))
		e.BytesWritten, e.Approximate = plus(e.BytesWritten, t.Bytes), e.Approximate || s.Share < 1
		c.hold(t.Bytes)
	case "delete":
		c.live, c.slack = c.live-t.Bytes, c.slack-e.treeSlack(c)*units.Bytes(t.Files)
		c.files = slices.DeleteFunc(c.files, func(f liveFile) bool { return f.batch == batch })
		c.release()
	}
}

// copyOut follows a copy of all files to a folder of the host.
func (e *estimator) copyOut(_ *Step, c *container, t *StepTotal) {
	t.Files, t.Bytes = len(c.files)+len(c.named), c.live
	e.BytesRead, e.BytesWritten = plus(e.BytesRead, c.live), plus(e.BytesWritten, c.live)
	e.HostPeak = max(e.HostPeak, plus(e.hostBytes(), c.occupied()))
}
