package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// maxFailing bounds how many cycles of a block that has to fail are looked at.
const maxFailing = 1000

// Totals is what one case does in one round.
type Totals struct {
	Files        int         // that write, copy and stream steps make
	BytesWritten units.Bytes // to volumes
	BytesRead    units.Bytes // from volumes, verify included
	LivePeak     units.Bytes // most bytes of files on the case's own volume at any time
	HostPeak     units.Bytes // most bytes that its containers can occupy together
	Steps        []StepTotal
	// Approximate says that a random choice decides some of it.
	Approximate bool
}

// StepTotal is one step of a case, cycles unrolled.
type StepTotal struct {
	Do, Phase string
	Cycle     int            // 0 outside a repeat
	Files     int            // that the step touches
	Bytes     units.Bytes    // that it moves or deletes
	Live      units.Bytes    // on the volume after it
	Wait      units.Duration // that it waits at least
}

// Estimate adds up the steps of a case without running them. A new UDRW counts
// in full; formats that grow hold what was written since free space was last
// given back, in whole bands, and never more than their size.
func Estimate(p *Plan, c Case) Totals {
	e := newEstimator(p, c)
	e.run(c.Steps, 0)
	e.Files = e.written
	return e.Totals
}

// liveFile is one file on a volume.
type liveFile struct {
	size       units.Bytes
	set, batch int
}

// containerEstimate is one container with its files.
type containerEstimate struct {
	native bool
	format string
	size   units.Bytes // nominal
	band   units.Bytes
	files  []liveFile
	named  map[string]units.Bytes // made by copy and stream
	live   units.Bytes
	held   units.Bytes // written and not given back
	peak   units.Bytes // most that was held
}

func newContainerEstimate(native bool, format string, size, band units.Bytes) *containerEstimate {
	return &containerEstimate{native: native, format: format, size: size, band: band,
		named: map[string]units.Bytes{}}
}

type estimator struct {
	Totals
	p          *Plan
	c          Case
	containers map[string]*containerEstimate
	batch      int
	written    int
	draws      map[string][][]units.Bytes
}

func newEstimator(p *Plan, c Case) *estimator {
	e := &estimator{p: p, c: c, containers: map[string]*containerEstimate{}, draws: map[string][][]units.Bytes{}}
	e.containers[""] = newContainerEstimate(c.Settings.Target == "directory", c.Settings.Format, c.Settings.Size,
		c.Settings.BandSize)
	return e
}

// draw is the sizes of a set, kept for the next write of it.
func (e *estimator) draw(set *FileSet) [][]units.Bytes {
	if e.draws[set.Name] == nil {
		e.draws[set.Name] = set.Draw(e.p.Run.Seed)
	}
	return e.draws[set.Name]
}

func (e *estimator) run(steps []Step, cycle int) {
	for i := range steps {
		s := &steps[i]
		switch s.Do {
		case "repeat":
			if s.Expect == "fail" {
				e.failing(s)
				continue
			}
			for turn := range s.Times {
				e.run(s.Steps, turn+1)
			}
			continue
		case "parallel":
			if s.Expect != "fail" {
				e.run(s.Steps, cycle)
			}
			continue
		}
		e.addStep(s, cycle)
	}
}

// failing takes a block into account that has to fail: what its containers may
// come to occupy counts, up to where one of them is overfull and something has
// failed for certain. What it leaves is not known.
func (e *estimator) failing(s *Step) {
	live, before := e.LivePeak, map[string]*containerEstimate{}
	for name, b := range e.containers {
		kept := *b
		kept.files, kept.named = slices.Clone(b.files), maps.Clone(b.named)
		before[name] = &kept
	}
	e.Approximate = true
	for turn := range s.Times {
		e.run(s.Steps, turn+1)
		overfull := false
		for _, b := range e.containers {
			overfull = overfull || !b.native && b.live > b.size
		}
		if overfull || turn >= maxFailing || e.written >= maxWork {
			break
		}
	}
	e.LivePeak = live
	for name, b := range before {
		b.peak = e.containers[name].peak
		e.containers[name] = b
	}
}

// cost is roughly how many files must be looked at to follow a step.
func (e *estimator) cost(s *Step) int {
	n := 1
	if set := e.p.fileSet(cmp.Or(s.Files, e.c.Settings.Files)); s.Do == "write" && set != nil {
		n += set.count()
	}
	if b := e.containers[s.On]; b != nil && (s.Do == "read" || s.Do == "verify" || s.Do == "delete" || s.As != "") {
		n += len(b.files)
	}
	return n
}

// addStep takes one step into account and returns what it did.
func (e *estimator) addStep(s *Step, cycle int) StepTotal {
	t := StepTotal{Do: s.Do, Phase: s.Phase, Cycle: cycle, Wait: s.AtLeast * units.Duration(max(s.Times, 1))}
	b := e.containers[s.On]
	if b == nil {
		return t
	}
	if s.Expect != "fail" {
		e.step(s, b, &t)
	}
	t.Live = b.live
	e.Steps = append(e.Steps, t)
	e.LivePeak = max(e.LivePeak, e.containers[""].live)
	e.HostPeak = max(e.HostPeak, e.host())
	return t
}

func (e *estimator) step(s *Step, b *containerEstimate, t *StepTotal) {
	switch s.Do {
	case "write":
		e.write(s, b, t)
	case "read", "verify":
		for _, f := range b.pool(s.Batch) {
			t.Files++
			t.Bytes = plus(t.Bytes, f.size)
		}
		e.BytesRead = plus(e.BytesRead, t.Bytes)
	case "delete":
		e.remove(s, b, t)
	case "trim", "attach", "remount", "compact":
		b.held = b.live
	case "copy", "stream":
		e.move(s, b, t)
	case "convert", "transfer", "damage":
		e.deriveContainer(s, b, t)
	case "resize":
		b.size = s.Size
	}
}

func (e *estimator) write(s *Step, b *containerEstimate, t *StepTotal) {
	set := e.p.fileSet(cmp.Or(s.Files, e.c.Settings.Files))
	if set == nil {
		return
	}
	e.batch++
	for i, sizes := range e.draw(set) {
		for _, size := range sizes {
			b.files = append(b.files, liveFile{size, i + 1, e.batch})
			t.Files++
			t.Bytes = plus(t.Bytes, size)
		}
	}
	b.add(t.Bytes)
	e.written += t.Files
	e.BytesWritten = plus(e.BytesWritten, t.Bytes)
}

func (b *containerEstimate) add(n units.Bytes) {
	b.live, b.held = plus(b.live, n), plus(b.held, n)
	b.peak = max(b.peak, b.held)
}

// pool is the files of the last batch that has any, or all.
func (b *containerEstimate) pool(batch string) []liveFile {
	if batch != "last" {
		return b.files
	}
	last := 0
	for _, f := range b.files {
		last = max(last, f.batch)
	}
	return slices.DeleteFunc(slices.Clone(b.files), func(f liveFile) bool { return f.batch != last })
}

// remove takes files away. Which ones a random share hits is not known here: it
// is taken evenly over the sizes, and the totals are marked approximate.
func (e *estimator) remove(s *Step, b *containerEstimate, t *StepTotal) {
	pool := slices.Clone(b.pool(s.Batch))
	slices.SortStableFunc(pool, func(x, y liveFile) int { return cmp.Compare(y.size, x.size) })
	var gone []liveFile
	switch {
	case s.All:
		gone = pool
		if s.Batch != "last" {
			for _, size := range b.named {
				t.Bytes += size
				t.Files++
			}
			b.live -= t.Bytes
			clear(b.named)
		}
	case s.LastSets > 0:
		top := 0
		for _, f := range pool {
			top = max(top, f.set)
		}
		gone = slices.DeleteFunc(pool, func(f liveFile) bool { return f.set <= top-s.LastSets })
	case s.Largest > 0:
		gone = pool[:min(s.Largest, len(pool))]
	default:
		share := float64(s.Share)
		n := int(math.Round(min(share, 1) * float64(len(pool))))
		if s.Every {
			n = len(pool) / 2
		}
		e.Approximate = e.Approximate || len(pool) > 0 && pool[0].size != pool[len(pool)-1].size
		for i := range n {
			gone = append(gone, pool[(2*i+1)*len(pool)/(2*n)])
		}
	}
	b.drop(gone, t)
	if b.native { // a folder gives space back at once, an image when it is trimmed
		b.held = b.live
	}
}

func (b *containerEstimate) drop(gone []liveFile, t *StepTotal) {
	left := map[liveFile]int{}
	for _, f := range gone {
		left[f]++
		t.Files++
		t.Bytes += f.size
		b.live -= f.size
	}
	b.files = slices.DeleteFunc(b.files, func(f liveFile) bool {
		if left[f] == 0 {
			return false
		}
		left[f]--
		return true
	})
}

// move is copy and stream; what a stream puts out is at most taken to be as
// large as what it reads.
func (e *estimator) move(s *Step, b *containerEstimate, t *StepTotal) {
	size, onVolume := b.named[s.From]
	if s.Do == "copy" && slices.ContainsFunc(e.p.Inputs, func(in Input) bool { return in.Name == s.From }) {
		size, onVolume = e.p.inputSize(s.From), false // the name of an input comes first
	}
	t.Files, t.Bytes = 1, size
	if onVolume {
		e.BytesRead = plus(e.BytesRead, size)
	}
	e.Approximate = e.Approximate || s.Do == "stream"
	e.BytesWritten = plus(e.BytesWritten, size)
	e.written++
	b.live -= b.named[s.To]
	b.named[s.To] = size
	b.add(size)
}

// deriveContainer is a step that makes a container out of one.
func (e *estimator) deriveContainer(s *Step, b *containerEstimate, t *StepTotal) {
	made := *b
	made.files, made.named = slices.Clone(b.files), map[string]units.Bytes{}
	for name, size := range b.named {
		made.named[name] = size
	}
	if s.Do == "convert" {
		made.format, made.band = s.makes(&e.c.Settings), s.BandSize
	}
	made.held, made.peak = b.live, b.live
	t.Bytes = made.host()
	e.containers[s.As] = &made
}

// host is what a container can occupy at most so far.
func (b *containerEstimate) host() units.Bytes {
	if b.native {
		return b.peak
	}
	switch f := formatOf(b.format); f.Allocation {
	case image.AllocateAll:
		return b.size
	case image.AllocateUnits:
		unit := units.Bytes(f.Unit)
		if f.Folder { // the tools choose the bands of sparse images
			unit = units.Bytes(f.BandSize(int64(b.band)))
		}
		return min(roundUp(b.peak, unit), roundUp(b.size, unit))
	}
	return b.live
}

func roundUp(n, to units.Bytes) units.Bytes { return plus(n, to-1) / to * to }

// plus adds sizes and stops at the largest: what never fits must not come out small.
func plus(a, b units.Bytes) units.Bytes {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (e *estimator) host() units.Bytes {
	var sum units.Bytes
	for _, b := range e.containers {
		sum = plus(sum, b.host())
	}
	return sum
}

// fileSet is the file set of that name, or nil.
func (p *Plan) fileSet(name string) *FileSet {
	for i := range p.Files {
		if p.Files[i].Name == name {
			return &p.Files[i]
		}
	}
	return nil
}
