package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// maxFailingCycles bounds how many cycles of a block that has to fail are
// followed.
const maxFailingCycles = 1000

// Totals is what one case does in one round.
type Totals struct {
	// Files: that write, copy and stream steps make
	Files int
	// BytesWritten: to volumes
	BytesWritten units.Bytes
	// BytesRead: from volumes, verify included
	BytesRead units.Bytes
	// LivePeak: most bytes of files on the case's own volume at any time; the
	// files of trees count with their clusters
	LivePeak units.Bytes
	// HostPeak: most bytes that its containers can occupy together
	HostPeak units.Bytes
	Steps    []StepTotal
	// Approximate: a random choice or the ratio of a compression decides some
	// of it
	Approximate bool
}

// StepTotal is one step of a case, cycles unrolled.
type StepTotal struct {
	Do, Phase string
	// Cycle: 0 outside a repeat
	Cycle int
	// Files: that the step touches
	Files int
	// Bytes: that it moves or deletes
	Bytes units.Bytes
	// Live: on the volume after it
	Live units.Bytes
	// Wait: shortest time that it waits
	Wait units.Duration
}

// Estimate adds up the steps of a case without running them. A new UDRW counts
// in full; formats that grow occupy what was written since free space was last
// given back, in whole bands, and never more than their size.
func Estimate(p *Plan, c Case) Totals {
	e := newEstimator(p, &c)
	e.addSteps(c.Steps, 0)
	return e.Totals
}

// Work is a step of a case, with what decides how long it takes.
type Work struct {
	Step *Step
	StepTotal
	// Native: its container is a native folder
	Native bool
	// Format: of its container, or of the one that it makes
	Format string
	// Held: what that container can occupy
	Held units.Bytes
}

// Works are the steps of [Estimate].
func Works(p *Plan, c Case) (list []Work) {
	e := newEstimator(p, &c)
	e.after = func(s *Step, k *container) {
		if made := e.containers[s.As]; s.As != "" && made != nil {
			k = made
		}
		list = append(list, Work{s, e.Steps[len(e.Steps)-1], k.native, k.format.Name, k.hostBytes()})
	}
	e.addSteps(c.Steps, 0)
	return list
}

// liveFile is one file on a volume.
type liveFile struct {
	size       units.Bytes
	set, batch int
	tree       string // file set of the tree that it is in, or ""
}

// container is what is known of one container while steps are followed.
type container struct {
	native bool
	format image.Format
	// size: nominal
	size, band units.Bytes
	files      []liveFile
	// named: made by copy and stream
	named   map[string]units.Bytes
	batches int
	// slack: what files of trees take beyond their sizes
	slack units.Bytes
	// live: bytes of files
	live units.Bytes
	// held: written and not given back to the host
	held units.Bytes
	// peak: largest held
	peak units.Bytes

	made, attached, mounted, readOnly bool
	// unsure: after a block that has to fail: its last step is unknown
	unsure bool
}

// estimator follows the steps of one case.
type estimator struct {
	Totals
	p *Plan
	c *Case
	// containers: by the name that steps use
	containers map[string]*container
	batch      int
	draws      map[string][][]units.Bytes
	// before: accept decides whether a step is followed; nil: all are
	before func(s *Step) (accept bool)
	// after: is called after each step that was followed
	after func(s *Step, c *container)
	// stop: no further step is followed
	stop bool
}

// newEstimator starts with the case's own container, which steps name by "".
func newEstimator(p *Plan, c *Case) *estimator {
	own := &container{native: c.Settings.Target == "directory", format: formatOf(c.Settings.Format),
		size: c.Settings.Size, band: c.Settings.BandSize, named: map[string]units.Bytes{}}
	return &estimator{p: p, c: c, containers: map[string]*container{"": own}, draws: map[string][][]units.Bytes{}}
}

// addSteps adds a list of steps, cycles unrolled. A parallel block that has to
// fail is left out: its result is unknown.
func (e *estimator) addSteps(steps []Step, cycle int) {
	for i := range steps {
		switch s := &steps[i]; {
		case e.stop:
			return
		case s.Do == "repeat" && s.Expect == "fail":
			e.addFailing(s)
		case s.Do == "repeat":
			for n := 0; n < s.Times && !e.stop; n++ {
				e.addSteps(s.Steps, n+1)
			}
		case s.Do == "parallel" && s.Expect != "fail":
			e.addSteps(s.Steps, cycle)
		case s.Do != "parallel":
			e.addStep(s, cycle)
		}
	}
}

// addFailing adds a block that has to fail: what its containers may come to
// occupy counts, up to the cycle in which one of them is overfull, so that a
// step has failed for certain. Its result is not known.
func (e *estimator) addFailing(s *Step) {
	live, before, overfull := e.LivePeak, map[string]*container{}, false
	for name, c := range e.containers {
		c.unsure = true
		before[name] = c.clone()
	}
	e.Approximate = true
	for n := 0; n < s.Times && n <= maxFailingCycles && e.Files < maxWork && !overfull; n++ {
		e.addSteps(s.Steps, n+1)
		for _, c := range e.containers {
			overfull = overfull || !c.native && c.live > c.size
		}
	}
	e.LivePeak = live
	for name, c := range before {
		c.peak = e.containers[name].peak
		e.containers[name] = c
	}
}

// clone is a copy with files of its own.
func (c *container) clone() *container {
	out := *c
	out.files, out.named = slices.Clone(c.files), maps.Clone(c.named)
	return &out
}

// fileSet is the set that a write step writes, nil if it does not exist.
func (e *estimator) fileSet(s *Step) *FileSet {
	return e.p.fileSet(cmp.Or(s.Files, e.c.Settings.Files))
}

// addStep adds one step; one that is not accepted has no effect.
func (e *estimator) addStep(s *Step, cycle int) {
	accepted := e.before == nil || e.before(s)
	c := e.containers[s.On]
	if c == nil {
		return
	}
	t := StepTotal{Do: s.Do, Phase: s.Phase, Cycle: cycle, Wait: s.AtLeast * units.Duration(max(s.Times, 1))}
	if k := findStepKind(s.Do); accepted && k.follow != nil && s.Expect != "fail" {
		k.follow(e, s, c, &t)
	}
	t.Live = c.live
	e.Steps = append(e.Steps, t)
	e.LivePeak = max(e.LivePeak, e.containers[""].occupied())
	e.HostPeak = max(e.HostPeak, e.hostBytes())
	if accepted && e.after != nil {
		e.after(s, c)
	}
}

// occupied is what the files take on the volume.
func (c *container) occupied() units.Bytes { return plus(c.live, c.slack) }

// hostBytes is what all containers can have occupied together at most so far.
func (e *estimator) hostBytes() (n units.Bytes) {
	for _, c := range e.containers {
		n = plus(n, c.hostBytes())
	}
	return n
}

// followAttach attaches and mounts. File systems give free space back to the
// host when they are mounted.
func followAttach(e *estimator, s *Step, c *container, t *StepTotal) {
	c.attached, c.mounted = true, s.Mount == nil || *s.Mount
	c.readOnly = s.ReadOnly != nil && *s.ReadOnly
	followTrim(e, s, c, t)
}

// followTrim gives free space back to the host.
func followTrim(_ *estimator, _ *Step, c *container, _ *StepTotal) { c.held = c.occupied() }

// write adds the files of a set as a new batch. The sizes of a set are drawn
// once and then kept.
func (e *estimator) write(s *Step, c *container, t *StepTotal) {
	set := e.fileSet(s)
	if set == nil {
		return
	}
	e.batch++
	c.batches++
	if e.draws[set.Name] == nil {
		e.draws[set.Name] = set.Draw(e.p.Run.Seed)
	}
	tree := ""
	if set.Tree != nil {
		tree = set.Name
	}
	for i, sizes := range e.draws[set.Name] {
		for _, size := range sizes {
			c.files = append(c.files, liveFile{size, i + 1, e.batch, tree})
			t.Files++
			t.Bytes = plus(t.Bytes, size)
		}
	}
	if c.add(t.Bytes); tree != "" {
		slack := e.treeSlack(c) * units.Bytes(t.Files)
		c.slack += slack
		c.hold(slack)
	}
	e.Files += t.Files
	e.BytesWritten = plus(e.BytesWritten, t.Bytes)
}

// add adds bytes of files. They stay held after the files are deleted, until
// free space is given back.
func (c *container) add(n units.Bytes) {
	c.live = plus(c.live, n)
	c.hold(n)
}

// hold adds bytes that the container occupies.
func (c *container) hold(n units.Bytes) {
	c.held = plus(c.held, n)
	c.peak = max(c.peak, c.held)
}

// release gives deleted files back to the host: a folder does so at once, an
// image when it is trimmed.
func (c *container) release() {
	if c.native {
		c.held = c.occupied()
	}
}

// read is read and verify; read leaves trees out, which have steps of their own.
func (e *estimator) read(s *Step, c *container, t *StepTotal) {
	for _, f := range c.pool(s) {
		t.Files++
		t.Bytes = plus(t.Bytes, f.size)
	}
	e.BytesRead = plus(e.BytesRead, t.Bytes)
}

// pool is the files of the last batch that has any, or all. Those of trees are
// not read one by one.
func (c *container) pool(s *Step) []liveFile {
	files := c.files
	if s.Do == "read" && c.slack > 0 {
		files = slices.DeleteFunc(slices.Clone(files), func(f liveFile) bool { return f.tree != "" })
	}
	if s.Batch != "last" || len(files) == 0 {
		return files
	}
	last := files[len(files)-1].batch // batches are added in order
	return slices.DeleteFunc(slices.Clone(files), func(f liveFile) bool { return f.batch != last })
}

// remove deletes files. A random share is taken evenly over the sizes, and
// makes the totals approximate.
func (e *estimator) remove(s *Step, c *container, t *StepTotal) {
	pool := slices.Clone(c.pool(s))
	slices.SortStableFunc(pool, func(x, y liveFile) int { return cmp.Compare(y.size, x.size) })
	removed := pool
	switch {
	case s.LastSets > 0:
		top := 0
		for _, f := range pool {
			top = max(top, f.set)
		}
		removed = slices.DeleteFunc(pool, func(f liveFile) bool { return f.set <= top-s.LastSets })
	case s.Largest > 0:
		removed = pool[:min(s.Largest, len(pool))]
	case s.All && s.Batch != "last":
		for _, size := range c.named {
			removed = append(removed, liveFile{size: size})
		}
		clear(c.named)
	case !s.All:
		n := int(math.Round(min(float64(s.Share), 1) * float64(len(pool))))
		if s.Every {
			n = len(pool) / 2
		}
		e.Approximate = e.Approximate || len(pool) > 0 && pool[0].size != pool[len(pool)-1].size
		removed = nil
		for i := range n {
			removed = append(removed, pool[(2*i+1)*len(pool)/(2*n)])
		}
	}
	left := map[liveFile]int{} // files of one size and batch cannot be distinguished
	for _, f := range removed {
		left[f]++
		t.Files++
		t.Bytes += f.size
		c.live -= f.size
	}
	c.files = slices.DeleteFunc(c.files, func(f liveFile) bool {
		if left[f] == 0 {
			return false
		}
		left[f]--
		return true
	})
	c.release()
}

// edit edits files, taken evenly over the sizes, and makes the totals
// approximate. A replaced file exists twice for a time.
func (e *estimator) edit(s *Step, c *container, t *StepTotal) {
	pool := slices.Clone(c.pool(s))
	slices.SortStableFunc(pool, func(x, y liveFile) int { return cmp.Compare(y.size, x.size) })
	n := min(s.Count, len(pool))
	for i := range n {
		f := pool[(2*i+1)*len(pool)/(2*n)]
		written := units.Bytes(float64(f.size) * min(float64(s.Share), 1))
		switch s.Kind {
		case "append":
			written = s.Amount
		case "insert":
			written = plus(f.size, s.Amount)
		case "replace":
			written = plus(written, f.size)
			c.add(f.size)
			c.live -= f.size
		}
		t.Files++
		t.Bytes = plus(t.Bytes, written)
		c.add(s.Amount)
		at := slices.Index(c.files, f)
		c.files = slices.Delete(slices.Clone(c.files), at, at+1)
		c.named["edited file "+strconv.Itoa(len(c.named)+1)] = plus(f.size, s.Amount)
	}
	e.BytesWritten = plus(e.BytesWritten, t.Bytes)
	e.Approximate = e.Approximate || n < len(pool)
}

// copyFile is copy and stream. The output of a stream counts with the size of
// its input, which is the most it can be.
func (e *estimator) copyFile(s *Step, c *container, t *StepTotal) {
	size, onVolume := c.named[s.From]
	if in := e.p.input(s.From); s.Do == "copy" && in != nil {
		size, onVolume = in.Size, false // names of inputs take precedence
	}
	t.Files, t.Bytes = 1, size
	if onVolume {
		e.BytesRead = plus(e.BytesRead, size)
	}
	e.Approximate = e.Approximate || s.Do == "stream"
	e.BytesWritten = plus(e.BytesWritten, size)
	e.Files++
	c.live -= c.named[s.To]
	c.named[s.To] = size
	c.add(size)
}

// random makes the file that no step made, and accesses it. What it transfers in
// a time is not known, and of an amount the shares of reads and writes are drawn.
func (e *estimator) random(s *Step, c *container, t *StepTotal) {
	if _, exists := c.named[s.File]; !exists {
		c.named[s.File] = s.FileSize
		c.add(s.FileSize)
		e.Files++
		e.BytesWritten = plus(e.BytesWritten, s.FileSize)
		t.Bytes = s.FileSize
	}
	read := units.Bytes(float64(s.Amount) * float64(s.Reads))
	e.BytesRead, e.BytesWritten = plus(e.BytesRead, read), plus(e.BytesWritten, s.Amount-read)
	t.Files, t.Bytes, t.Wait = 1, plus(t.Bytes, s.Amount), s.Time
	e.Approximate = e.Approximate || s.Time > 0 || s.Reads > 0 && s.Reads < 1
}

// deriveContainer is a step that makes a container from another one.
func (e *estimator) deriveContainer(s *Step, c *container, t *StepTotal) {
	made := c.clone()
	made.made, made.attached, made.mounted, made.readOnly = true, false, false, false
	if s.Do == "convert" {
		made.format, made.band = formatOf(s.makes(&e.c.Settings)), s.BandSize
	}
	made.held, made.peak = c.occupied(), c.occupied()
	t.Bytes = made.hostBytes()
	e.containers[s.As] = made
}

// damage is a copy; "killed" writes files to it: then the totals
// are the most that it can write.
func (e *estimator) damage(s *Step, c *container, t *StepTotal) {
	e.deriveContainer(s, c, t)
	if s.Kind == "killed" {
		var written StepTotal
		e.write(s, e.containers[s.As], &written)
		t.Files, t.Bytes, e.Approximate = written.Files, plus(t.Bytes, written.Bytes), true
	}
}

// hostBytes is what a container can have occupied at most so far.
func (c *container) hostBytes() units.Bytes {
	switch {
	case c.native:
		return c.peak
	case c.format.Name == "" || c.format.Allocation == image.AllocateContent:
		return c.occupied()
	case c.format.Allocation == image.AllocateAll:
		return c.size
	}
	unit := units.Bytes(c.format.Unit)
	if c.format.Folder { // band_size is for bundles; tools choose the bands of sparse images
		unit = bandSizeOf(c.format, c.band)
	}
	return units.RoundUp(min(c.peak, c.size), unit)
}

// plus adds sizes and stops at the largest: a sum that never fits must not wrap
// to a small one.
func plus(a, b units.Bytes) units.Bytes {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// input is the input of that name, or nil.
func (p *Plan) input(name string) *Input {
	return find(p.Inputs, func(in *Input) bool { return in.Name == name })
}

// stepKind is one row of the registry of steps: a row of "kinds of step" in
// keys.md, and its functions.
type stepKind struct {
	do    string
	needs need
	// keys: in addition to those of every step: a field of Step and its tag, see
	// key
	keys []string
	stepFuncs

	// changes: writes to the image
	changes bool
	// fills: may overfill the volume
	fills bool
	// files: times single files, and may run inside parallel
	files bool
	// imageOnly: has no meaning for a native folder
	imageOnly bool
	// untimed: its duration is not a quantity
	untimed bool

	table *table
}

// stepFuncs are what a kind of step does beside reading its keys and changing
// its state; nil for nothing.
type stepFuncs struct {
	// finish: finish checks conditions between keys and fills in defaults that
	// depend on other keys.
	finish func(r *reader, n *node, s *Step)
	// check: check reports what is wrong with the step when it is reached; nil:
	// only its state is checked.
	check func(f *stepChecker, s *Step, c *container)
	// follow: follow changes the container and adds what the step moves to t;
	// nil: it does neither.
	follow func(e *estimator, s *Step, c *container, t *StepTotal)
	// operations: the kinds of operation that the step times.
	operations func(s *Step) []string
}

const (
	needsNew       need = "once, first" // not created yet
	needsDetached  need = "detached"
	needsAttached  need = "attached"    // mounted or not
	needsVolume    need = "volume"      // attached and mounted
	needsUnmounted need = "not mounted" // detached, or attached without mounting
	needsCreated   need = "any"
	needsNone      need = "" // acts on no container
)

// need is the state in which a kind of step needs its container, as
// docs/plan-language.md names it.
type need string

// stepKinds is the registry, in the order of keys.md.
var stepKinds []stepKind

// findStepKind is the row of that name, or nil.
func findStepKind(do string) *stepKind {
	return find(stepKinds, func(k *stepKind) bool { return k.do == do })
}

// stepNames are the kinds of step that has accepts, in the order of the
// registry; nil accepts all.
func stepNames(has func(k *stepKind) bool) (out []string) {
	for i := range stepKinds {
		if has == nil || has(&stepKinds[i]) {
			out = append(out, stepKinds[i].do)
		}
	}
	return out
}
