package plan

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/system/units"
)

// maxCases bounds the product of the axes.
const maxCases = 10_000

// Case is one cell of the plan's matrix with the steps that apply to it.
type Case struct {
	// ID is "key=value,…" in axis order; stable across runs of the plan.
	ID       string
	Keys     []KeyValue
	Settings Settings
	Steps    []Step
	// Baseline: the native folder that accompanies the images
	Baseline bool
}

// Value is what selectors see of a case: settings keys, manual axes and
// baseline. Keys that pick samples (phase, cycle, …) are unknown to it.
func (c *Case) Value(key string) (string, bool) {
	if key == "baseline" {
		return strconv.FormatBool(c.Baseline), true
	}
	return c.Settings.value(key)
}

// Cases expands the plan: manual axes outermost, then the matrix in the order
// of its axes without the excluded cells, then [[case]] tables, then the
// baseline. Each case has the steps of the protocol blocks that select it;
// cases with the same protocol share them.
func (p *Plan) Cases() []Case {
	var out []Case
	var cells [][]KeyValue
	if len(p.Axes) > 0 || len(p.Extra) == 0 {
		cells = product(p.Axes)
	}
	var manualAxes []Axis
	for _, m := range p.Manual {
		manualAxes = append(manualAxes, Axis{m.Name, m.Values})
	}
	for _, manual := range product(manualAxes) {
		var group []Case
		for _, cell := range cells {
			c := p.makeCase(cell, manual)
			if !slices.ContainsFunc(p.Exclude, func(s Selector) bool { return s.matchAll(c.Value) }) {
				group = append(group, c)
			}
		}
		for _, extra := range p.Extra {
			if c, ok := p.makeExtra(extra, manual); ok {
				group = append(group, c)
			}
		}
		out = append(out, group...)
		if p.Run.Baseline {
			out = append(out, baselineCases(group)...)
		}
	}
	protocols := map[string][]Step{}
	for i := range out {
		c, id := &out[i], p.protocolID(&out[i])
		if _, ok := protocols[id]; !ok {
			var steps []Step
			for _, b := range p.Protocol {
				if b.When.matchAll(c.Value) {
					steps = append(steps, b.Steps...)
				}
			}
			if c.Settings.Target == "directory" {
				steps = nativeSteps(steps)
			}
			protocols[id] = steps
		}
		c.Steps = protocols[id]
	}
	return out
}

// Places are the named places of all cases and steps, in plan order.
func (p *Plan) Places() []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, c := range p.Cases() {
		add(c.Settings.Place)
		walk(c.Steps, func(s *Step) { add(s.Place) })
	}
	return out
}

// PlaceNote is what a place of the plan has to be, such as a mounted encrypting
// file system.
type PlaceNote struct {
	Name string `plan:"name name !"`
	// Instructions: how to set it up
	Instructions string `plan:"instructions words !"`
	// Tool: the program whose version the result has: one of a closed list, as a
	// plan must not run commands
	Tool string `plan:"tool gocryptfs|cryfs|encfs|securefs|veracrypt|cryptomator-cli|sshfs|rclone"`
}

// PlaceNote is what the plan notes about a place, nil for none.
func (p *Plan) PlaceNote(name string) *PlaceNote {
	return find(p.Notes, func(n *PlaceNote) bool { return n.Name == name })
}

// protocolID is the same for cases with the same steps.
func (p *Plan) protocolID(c *Case) string {
	id := c.Settings.Target
	for i, b := range p.Protocol {
		if b.When.matchAll(c.Value) {
			id += " " + strconv.Itoa(i)
		}
	}
	return id
}

// product is the cartesian product of the axes, the last axis varying fastest;
// without axes one empty cell.
func product(axes []Axis) [][]KeyValue {
	out := [][]KeyValue{nil}
	for _, a := range axes {
		next := make([][]KeyValue, 0, len(out)*len(a.Values))
		for _, head := range out {
			for _, v := range a.Values {
				next = append(next, append(slices.Clone(head), KeyValue{a.Key, v}))
			}
		}
		out = next
	}
	return out
}

// makeCase is the case of some keys; the settings that they do not name are the
// plan's.
func (p *Plan) makeCase(cell, manual []KeyValue) Case {
	c := Case{Settings: p.Defaults, Keys: slices.Concat(manual, cell)}
	c.Settings.Manual = manual
	for _, kv := range cell {
		findSetting(kv.Key).set(&c.Settings, kv.Value)
	}
	if c.Settings.Target == "directory" {
		c.Settings.ImageSettings = nativeFolder
	}
	switch {
	case len(c.Keys) > 0:
	case c.Settings.Target == "image":
		c.Keys = []KeyValue{{"format", c.Settings.Format}}
	default:
		c.Keys = []KeyValue{{"target", c.Settings.Target}}
	}
	c.ID = caseID(c.Keys)
	return c
}

// caseID is the name of a case: its keys and values in order. Journals and
// results name cases by it.
func caseID(keys []KeyValue) string {
	parts := make([]string, len(keys))
	for i, kv := range keys {
		parts[i] = kv.Key + "=" + kv.Value
	}
	return strings.Join(parts, ",")
}

// makeExtra is the case of a [[case]] table, unless that is for other values of
// the manual axes.
func (p *Plan) makeExtra(s Selector, manual []KeyValue) (c Case, ok bool) {
	var cell []KeyValue
	for _, choice := range s {
		i := slices.IndexFunc(manual, func(kv KeyValue) bool { return kv.Key == choice.Key })
		switch {
		case i < 0:
			cell = append(cell, KeyValue{choice.Key, choice.Values[0]})
		case !choice.Matches(manual[i].Value):
			return Case{}, false
		}
	}
	return p.makeCase(cell, manual), true
}

// nativeFolder are the settings of an image for a folder, which has no image.
var nativeFolder = ImageSettings{Encryption: "none"}

// NativeKeys are the settings with a meaning for a native folder; a baseline
// case accompanies each combination of them.
var NativeKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// baselineCases are the native cases that accompany the images of a group: one
// for each place and each combination of native settings, named by the manual
// axes and the keys that vary. A directory case of the plan is not measured
// twice.
func baselineCases(group []Case) (out []Case) {
	varied, seen := map[string]bool{}, map[string]bool{}
	for i := range group {
		for _, kv := range group[i].Keys {
			varied[kv.Key] = true
		}
		if s := &group[i].Settings; s.Target == "directory" && !s.Preallocate {
			seen[s.nativeID()] = true
		}
	}
	for i := range group {
		s := group[i].Settings
		id := s.nativeID()
		if s.Target == "directory" || seen[id] {
			continue
		}
		seen[id] = true
		s.Target, s.Preallocate = "directory", false
		s.ImageSettings = nativeFolder
		c := Case{Settings: s, Baseline: true, Keys: append([]KeyValue{{"baseline", "true"}}, s.Manual...)}
		for _, k := range NativeKeys {
			if varied[k] {
				c.Keys = append(c.Keys, KeyValue{k, findSetting(k).get(&s)})
			}
		}
		c.ID = caseID(c.Keys)
		out = append(out, c)
	}
	return out
}

// nativeID is the same for settings between which a native folder cannot
// distinguish.
func (s *Settings) nativeID() (id string) {
	for _, k := range NativeKeys {
		id += findSetting(k).get(s) + "\x00"
	}
	return id
}

// nativeSteps keeps the steps that have a meaning for a native folder: work on
// files, and attach and detach, which a folder does at once. Steps that make
// another container or act on one are dropped.
func nativeSteps(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		if k := findStepKind(s.Do); k == nil || k.imageOnly || s.On != "" || s.Expect == "fail" {
			continue
		}
		if len(s.Steps) > 0 {
			s.Steps = nativeSteps(s.Steps)
			if len(s.Steps) == 0 || s.Do == "parallel" && len(s.Steps) < 2 {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// Draw gives the sizes of each set in listed order. Explicit sizes stay as
// written; draws from a range depend on the seed and the file set's name alone,
// so that every case and every machine gets the same sizes. A part with fewer
// sets than others is missing from the later ones.
func (f FileSet) Draw(seed uint64) [][]units.Bytes {
	if f.Tree != nil {
		sizes, source := make([]units.Bytes, f.Tree.Files), f.source(seed, 0)
		for i := range sizes {
			sizes[i] = f.Tree.draw(source)
		}
		return [][]units.Bytes{sizes}
	}
	var sets [][]units.Bytes
	for i, p := range f.Parts {
		source := f.source(seed, i)
		for s := range max(p.Sets, 1) {
			if s == len(sets) {
				sets = append(sets, nil)
			}
			sets[s] = append(sets[s], p.Sizes...)
			for range p.Count {
				sets[s] = append(sets[s], p.draw(source))
			}
		}
	}
	return sets
}

// source is the random source of a part: parts and sets of other names get
// other draws.
func (f FileSet) source(seed uint64, part int) *rand.Rand {
	h := fnv.New64a()
	h.Write(append([]byte(f.Name), 0, byte(part), byte(part>>8)))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw is one size from the range, both ends included.
func (p FilePart) draw(source *rand.Rand) units.Bytes {
	low, high := p.Range[0], p.Range[1]
	if p.Spread == "linear" {
		return low + units.Bytes(source.Int64N(int64(high-low)+1))
	}
	size := units.Bytes(math.Round(geometric(float64(low), float64(high), source.Uint64())))
	return min(max(size, low), high)
}

// geometric is low·(high/low)^u for the fraction u with these bits. It halves
// the range at its geometric mean, bit by bit: square roots are rounded the
// same on every processor, exponentials and logarithms are not.
func geometric(low, high float64, bits uint64) float64 {
	a, b := math.Sqrt(low), math.Sqrt(high)
	for i := range 53 {
		mid := math.Sqrt(a) * math.Sqrt(b)
		if bits>>(63-i)&1 == 1 {
			a = mid
		} else {
			b = mid
		}
	}
	return a * a
}

// Count is the number of files and their bytes in one write of the set.
func (f FileSet) Count(seed uint64) (files int, size units.Bytes) {
	for _, set := range f.Draw(seed) {
		files += len(set)
		for _, b := range set {
			size += b
		}
	}
	return files, size
}

// total is the number of sets of the part that has most, and that of the files
// of one write.
func (f FileSet) total() (sets, files int) {
	for _, p := range f.Parts {
		sets, files = max(sets, p.Sets), files+(len(p.Sizes)+p.Count)*p.Sets
	}
	return sets, files
}

// finishPart checks that a part has either sizes or a range with a count, and
// fills in sets and spread.
func finishPart(r *reader, n *node, p *FilePart) {
	sizes, span, count := n.get("sizes"), n.get("range"), n.get("count")
	switch {
	case (sizes == nil) == (span == nil) || (count == nil) != (span == nil):
		r.problem(n.key, "sizes", "a file set has either sizes, or range and count").
			hintf("use parts = [ { sizes = … }, { range = …, count = … } ] for a mixture")
	case len(p.Range) == 2 && p.Range[0] > p.Range[1]:
		r.bad(span, "range: %s is more than %s", p.Range[0], p.Range[1])
	}
	p.Sets = max(p.Sets, 1)
	if span != nil && p.Spread == "" {
		p.Spread = "log"
	}
}

// maxFiles bounds one file set, since its draws are kept in memory.
const maxFiles = 1_000_000

// finishFiles checks that sizes are in the table or in parts, and bounds the
// number of files and bytes.
func finishFiles(r *reader, n *node, f *FileSet) {
	switch hasParts := n.get("parts") != nil; {
	case f.Tree != nil:
		f.Order = ""
		if hasParts || !reflect.ValueOf(f.Single).IsZero() || n.get("order") != nil {
			r.badKey(n.get("tree"), "a tree has no sizes, ranges, sets, parts and order outside of it")
		}
	case !hasParts:
		finishPart(r, n, &f.Single)
		f.Parts, f.Single = []FilePart{f.Single}, FilePart{}
	case !reflect.ValueOf(f.Single).IsZero() || len(f.Parts) == 0:
		r.badKey(n.get("parts"), "parts contain all sizes, ranges and sets of a file set, or are left out")
	}
	files, size := 0, 0.0 // the sum of a careless plan may not be an integer
	for _, p := range f.Parts {
		files += min((len(p.Sizes)+p.Count)*p.Sets, 1<<40)
		for _, s := range p.Sizes {
			size += float64(s) * float64(p.Sets)
		}
		if len(p.Range) == 2 {
			size += float64(p.Range[1]) * float64(p.Count) * float64(p.Sets)
		}
	}
	if size > float64(maxSize) || files > maxFiles {
		r.badKey(n, "file set %q has %d files with up to %.3g EB, more than %d files or %s", n.name, files, size/1e18,
			maxFiles, maxSize)
	}
	if (f.Data == "mixed") != (f.Compressible > 0) || f.Compressible > 1 {
		r.badKey(n, "data = \"mixed\" needs compressible, the share of zeros up to 100%%, and other data has none")
	}
}

// fileForm is a file set as the canonical form writes it: one part in the table
// itself.
func fileForm(v reflect.Value) reflect.Value {
	f := v.Interface().(FileSet)
	if len(f.Parts) == 1 {
		f.Single, f.Parts = f.Parts[0], nil
	}
	return reflect.ValueOf(&f).Elem()
}

// Prose describes a file set: number, sizes, order and data of its files.
func (f *FileSet) Prose() string { return executeProse("files", f) }
