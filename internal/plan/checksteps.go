package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// maxWork bounds the file operations that are followed to see whether files fit.
const maxWork = 5_000_000

// containerState is what is known of one container while the steps are followed.
type containerState struct {
	made, attached, mounted, readOnly bool
	format                            string // "" of a plain folder
	folders                           map[string]bool
	batches                           int
	unsure                            bool   // behind a block that had to fail: nobody knows how far it came
	damage                            string // what stands in the way of opening it again behind a pause
}

// stepChecker walks through the steps of one case, keeping the state of each container.
type stepChecker struct {
	*checker
	k      *Case
	e      *estimator
	states map[string]*containerState
	phases map[string]Step
	full   bool  // amounts are followed too, not only states
	lost   *Step // the block behind which no pause can be resumed
}

// protocols follows the steps of every case. Cases that do not differ in what
// matters here are followed once.
func (c *checker) protocols() {
	done := map[string]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		id := c.signature(k)
		if done[id] {
			continue
		}
		done[id] = true
		f := &stepChecker{checker: c, k: k, e: newEstimator(c.p, *k),
			states: map[string]*containerState{"": {format: k.Settings.Format, folders: map[string]bool{}}},
			phases: map[string]Step{}, full: c.work < maxWork}
		f.unique(k.Steps)
		f.steps(k.Steps, "")
		if c.work >= maxWork && c.first("too much", "") {
			c.warn(c.root.at("protocol").key, "protocol", "the plan moves too many files to check whether they all fit")
		}
	}
}

// signature holds everything about a case that its steps are checked against.
func (c *checker) signature(k *Case) string {
	s := &k.Settings
	return fmt.Sprintf("%s %s %s %s %q %d %t", c.p.protocolID(k), s.Files, s.Format, s.ConvertTo, s.Filesystems, s.Size,
		k.Baseline)
}

// unique reports steps that could not be told apart in results.
func (f *stepChecker) unique(steps []Step) {
	walk(steps, func(s *Step) {
		named := s.Phase != "" || slices.Contains([]string{"write", "read", "verify", "stream", "copy"}, s.Do)
		if !named || s.Do == "repeat" || s.Do == "parallel" {
			return
		}
		id := s.Do + " " + s.Phase
		if old, ok := f.phases[id]; ok {
			what := fmt.Sprintf("the phase %q", s.Phase)
			if s.Phase == "" {
				what = "no phase"
			}
			f.atStep(s, "phase", "two %s steps of the case %q have %s", s.Do, f.k.ID, what).
				hintf("the first is on line %d; give each its own phase", old.Line)
		}
		f.phases[id] = *s
	})
}

// steps follows a list of steps; inside is the kind of step that holds them.
func (f *stepChecker) steps(steps []Step, inside string) {
	for i := range steps {
		s := &steps[i]
		switch s.Do {
		case "repeat":
			f.repeat(s, inside)
		case "parallel":
			f.parallel(s)
		default:
			f.step(s)
		}
	}
}

func (f *stepChecker) repeat(s *Step, inside string) {
	if inside == "repeat" || slices.ContainsFunc(s.Steps, func(in Step) bool { return in.Do == "repeat" }) {
		f.atStep(s, "nested", "a repeat inside a repeat").hintf("a step has one cycle number; multiply the times instead")
		return
	}
	if s.Expect == "fail" {
		f.failing(s)
		return
	}
	for turn := range s.Times {
		if turn >= 2 && !f.full {
			return
		}
		f.steps(s.Steps, "repeat")
	}
}

// failing follows a block that has to fail, once, for the names in it: how far
// it comes is not known before, so that the state after it is not known either.
func (f *stepChecker) failing(s *Step) {
	f.lost = s
	for _, b := range f.states {
		b.unsure = true
	}
	if f.full {
		f.e.failing(s)
	}
	f.steps(s.Steps, "repeat")
}

func (f *stepChecker) parallel(s *Step) {
	if len(s.Steps) < 2 {
		f.atStep(s, "parallel", "parallel needs at least two steps")
	}
	for i := range s.Steps {
		in := &s.Steps[i]
		if !slices.Contains([]string{"write", "read", "copy", "stream"}, in.Do) {
			f.atStep(in, "parallel", "%s cannot run inside parallel", in.Do).hintf("write, read, copy and stream can")
			continue
		}
	}
	f.checkParallelWrites(s.Steps)
	if s.Expect == "fail" { // as of any step that must fail, nothing is known of what it finds and leaves
		f.lost = s
		return
	}
	// Reads come first: what a neighbour is still writing cannot be read.
	for _, do := range []string{"read", "copy", "stream", "write"} {
		for i := range s.Steps {
			if s.Steps[i].Do == do {
				f.step(&s.Steps[i])
			}
		}
	}
}

// step checks one step against the state and then changes the state.
func (f *stepChecker) step(s *Step) {
	k := findStepKind(s.Do)
	b, known := f.states[s.On]
	if !known {
		var have []string
		for name := range f.states {
			if name != "" {
				have = append(have, name)
			}
		}
		slices.Sort(have)
		p := f.atStep(s, "on", "there is no container %q at this point", s.On)
		if f.hintName(p, s.On, "containers", have); len(have) == 0 {
			p.hintf("convert, transfer and damage make containers, and name them with \"as\"")
		}
		return
	}
	if s.Expect == "fail" {
		return
	}
	if s.Do == "pause" {
		f.pausable(s)
	}
	if b.unsure {
		f.advance(s, b)
		return
	}
	native := f.k.Settings.Target == "directory"
	if !native && !f.state(s, k.state, b) {
		return
	}
	f.content(s, b)
	f.advance(s, b)
	if !f.full {
		return
	}
	f.work += f.e.cost(s)
	if f.full = f.full && f.work < maxWork; !f.full {
		return
	}
	f.e.addStep(s, 0)
	if slices.Contains([]string{"write", "copy", "stream", "resize"}, s.Do) {
		f.room(s, native)
	}
}

// state reports whether the container is in the state that the step needs.
func (f *stepChecker) state(s *Step, need state, b *containerState) bool {
	if need == noContext || need == anyState && b.made {
		return true
	}
	before := func(do string) string { return fmt.Sprintf("put { do = %q } before it", do) }
	bad := func(code, hint, format string, args ...any) bool {
		f.atStep(s, code, format, args...).Hint = hint
		return false
	}
	switch {
	case need == fresh && b.made:
		return bad("state", "", "create: the container is there already")
	case need != fresh && !b.made:
		return bad("state", before("create"), "%s before the container is created", s.Do)
	case need == detached && b.attached:
		return bad("state", before("detach"), "%s while the container is attached", s.Do)
	case (need == attached || need == onVolume) && !b.attached:
		return bad("state", before("attach"), "%s while the container is detached", s.Do)
	case need == onVolume && !b.mounted:
		return bad("state", "attach without mount = false", "%s while the volume is not mounted", s.Do)
	case need == notInUse && b.mounted:
		return bad("state", before("detach")+", or attach with mount = false", "%s while the volume is mounted", s.Do)
	case b.readOnly && slices.Contains([]string{"write", "delete", "mkdir", "copy", "stream", "trim"}, s.Do):
		return bad("state", "attach without read_only = true", "%s while the volume is mounted read-only", s.Do)
	case formatOf(b.format).ReadOnly &&
		slices.Contains([]string{"write", "delete", "mkdir", "copy", "stream", "trim", "compact", "resize"}, s.Do):
		return bad("sealed", "convert to a format that can be written to: "+joinNames(writableFormats),
			"%s: %s images cannot be changed", s.Do, b.format)
	case formatOf(b.format).ReadOnly && s.Repair:
		return bad("sealed", "convert to a format that can be written to: "+joinNames(writableFormats),
			"check: %s images cannot be repaired", b.format)
	case formatOf(b.format).UDIF && s.Do == "damage" && s.Kind == "table":
		return bad("sealed", "kinds for read-only images: header, volume, truncated",
			"damage: the partition table of %s images cannot be harmed by itself", b.format)
	case s.Do == "damage" && s.Kind == "band-missing" && !formatOf(b.format).Folder:
		return bad("no bands", "kinds for every format: header, truncated, volume", "damage: %s has no bands", b.format)
	}
	return true
}

// advance changes the state as the step does.
func (f *stepChecker) advance(s *Step, b *containerState) {
	switch s.Do {
	case "create":
		b.made = true
	case "attach":
		b.attached = true
		b.mounted = s.Mount == nil || *s.Mount
		b.readOnly = s.ReadOnly != nil && *s.ReadOnly
	case "detach":
		b.attached, b.mounted, b.readOnly = false, false, false
	case "write":
		b.batches++
	case "mkdir":
		b.folders[path.Clean(s.Dir)] = true
	case "convert", "transfer", "damage":
		f.states[s.As] = &containerState{made: true, batches: b.batches, format: cmp.Or(s.makes(&f.k.Settings), b.format),
			folders: maps.Clone(b.folders), unsure: b.unsure, damage: b.damage}
		f.states[s.As].recordDamage(s)
	}
}

// room checks that the live files fit the volume after the step.
func (f *stepChecker) room(s *Step, native bool) {
	b := f.e.containers[s.On]
	if native || b == nil || b.size == 0 {
		return
	}
	limit := float64(b.size) * float64(f.p.Run.FitsIn)
	if float64(b.live) <= limit {
		return
	}
	if s.Do == "resize" {
		f.atStep(s, "room", "resize: %s are too small for the %s of files on the volume", b.size, b.live)
		return
	}
	f.atStep(s, "room", "%s: the files cannot fit: %s on a volume of %s, of which files may fill %s (case %q)",
		s.Do, b.live, b.size, f.p.Run.FitsIn, f.k.ID).hintf("make the image larger, or write fewer or smaller files")
}

// formatOf is the registry's row of a format; no format gives the zero row.
func formatOf(name string) image.Format {
	f, _ := image.FormatNamed(name)
	return f
}

// makes is the format that a convert step makes in a case, "" of other steps and
// where neither the step nor the case names one.
func (s *Step) makes(c *Settings) string {
	if s.Do != "convert" {
		return ""
	}
	return cmp.Or(s.Format, c.ConvertTo)
}

// content checks what the step works on: file sets, files, inputs, containers.
func (f *stepChecker) content(s *Step, b *containerState) {
	switch s.Do {
	case "write":
		name := cmp.Or(s.Files, f.k.Settings.Files)
		switch {
		case name == "" && f.invalid["files"]:
			f.full = false
		case name == "":
			f.full = false
			f.atStep(s, "files", "write: the case %q names no file set", f.k.ID).hintf("give files = \"…\" here, or in [io]")
		case f.p.fileSet(name) == nil:
			f.full = false
			if s.Files != "" {
				f.hintName(f.atStep(s, "files", "there is no file set %q", name), name, "file sets", f.fileSetNames())
			}
		default:
			f.fileLimit(s, f.p.fileSet(name).largest(), name)
		}
	case "read", "verify", "delete":
		f.pool(s, b)
	case "mkdir":
		if b.folders[path.Clean(s.Dir)] {
			f.atStep(s, "dir", "mkdir: the folder %q is there already", s.Dir)
		}
	case "copy", "stream":
		f.source(s)
		f.destination(s)
	case "resize":
		f.checkResize(s)
	case "convert", "transfer", "damage":
		if _, taken := f.states[s.As]; taken {
			f.atStep(s, "as", "%s: the name %q is taken", s.Do, s.As)
		}
		f.converts(s)
	}
}

// converts checks that a convert step knows what it makes.
func (f *stepChecker) converts(s *Step) {
	switch to := s.makes(&f.k.Settings); {
	case s.Do != "convert":
	case to == "" && !f.invalid["settings"]:
		f.atStep(s, "format", "convert: nothing says to which format (case %q)", f.k.ID).
			hintf("give format = \"…\" here, or convert_to in [image]")
	case s.BandSize > 0 && to != "" && !formatOf(to).Folder:
		f.atStep(s, "band_size", "convert: only UDSB has bands, the case %q converts to %s", f.k.ID, to)
	}
}

// pool checks that there are files to read, verify or delete.
func (f *stepChecker) pool(s *Step, b *containerState) {
	container := f.e.containers[s.On]
	if b.batches == 0 && (container == nil || len(container.named) == 0) {
		f.atStep(s, "empty", "%s before anything is written", s.Do).hintf("put { do = \"write\" } before it")
		return
	}
	if !f.full || container == nil || len(f.p.Changes) > 0 || f.invalid["files"] {
		return
	}
	files := container.pool(s.Batch)
	sets := map[int]bool{}
	for _, x := range files {
		sets[x.set] = true
	}
	switch {
	case len(files) == 0 && !(s.All && len(container.named) > 0):
		f.atStep(s, "empty", "%s: every file has been deleted by then", s.Do)
	case s.LastSets > len(sets):
		f.atStep(s, "sets", "delete: last_sets = %d, but the batch has %d sets left", s.LastSets, len(sets))
	case s.Largest > len(files):
		f.atStep(s, "largest", "delete: largest = %d, but the batch has %d files left", s.Largest, len(files))
	}
}

// source checks what copy and stream read.
func (f *stepChecker) source(s *Step) {
	container := f.e.containers[s.On]
	if container == nil || !f.full {
		return
	}
	if _, ok := container.named[s.From]; ok {
		return
	}
	var have []string
	for name := range container.named {
		have = append(have, name)
	}
	slices.Sort(have)
	if s.Do == "copy" {
		for _, in := range f.p.Inputs {
			have = append(have, in.Name)
		}
		if slices.Contains(have, s.From) {
			f.fileLimit(s, f.p.inputSize(s.From), s.From)
			return
		}
	}
	f.hintName(f.atStep(s, "from", "%s: there is no %q to read at this point", s.Do, s.From), s.From, "files to read",
		have)
	f.e.containers[s.On].named[s.From] = 0
}

// destination checks what copy and stream make.
func (f *stepChecker) destination(s *Step) {
	if container := f.e.containers[s.On]; container != nil && f.full {
		if _, there := container.named[s.To]; there {
			f.atStep(s, "to", "%s: the file %q is there already", s.Do, s.To).
				hintf("write to another name, or delete all before it")
		}
	}
}

// fat32File is the largest file of FAT32: its length has 32 bits (Microsoft,
// FAT32 File System Specification 1.03, DIR_FileSize).
const fat32File = units.Bytes(1<<32 - 1)

// fileLimit reports files that the file system cannot hold at any size of the
// volume; where it is one of several, only that it is out of question.
func (f *stepChecker) fileLimit(s *Step, size units.Bytes, name string) {
	list := f.k.Settings.Filesystems
	if size <= fat32File || !slices.Contains(list, "FAT32") {
		return
	}
	if len(list) > 1 {
		if at := f.settingAt("filesystem"); f.first("file limit", name) {
			f.warn(at.off, "filesystem", "files of %s are too large for FAT32, which ends at %s", size, fat32File).
				hintf("leave FAT32 out of the preference")
		}
		return
	}
	f.atStep(s, "file limit", "%s: %q has files of %s, and FAT32 ends at %s", s.Do, name, size, fat32File).
		hintf("use exFAT, or smaller files")
}

// largest is the size of the largest file that the set can have.
func (fs FileSet) largest() units.Bytes {
	var n units.Bytes
	for _, p := range fs.Parts {
		n = max(n, p.High)
		for _, s := range p.Sizes {
			n = max(n, s)
		}
	}
	return n
}

// inputSize is the size that the plan gives for an input, 0 if it gives none.
func (p *Plan) inputSize(name string) units.Bytes {
	for _, in := range p.Inputs {
		if in.Name == name {
			return in.Size
		}
	}
	return 0
}

// checkParallelWrites reports steps of one parallel block that would write to one named container:
// of the case's own, each gets books of its own.
func (f *stepChecker) checkParallelWrites(steps []Step) {
	writes := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if s.On == "" || s.Do == "read" {
			continue
		}
		if writes[s.On] {
			f.atStep(s, "gate", "parallel: two steps write to the container %q at once", s.On).
				hintf("only one of them can; reads may stand beside it")
		}
		writes[s.On] = true
	}
}

// recordDamage notes whether what a damage step does keeps engines from opening the
// container again: they know bundles and most images by their headers, and
// images other than plain ones by their trailer.
func (b *containerState) recordDamage(s *Step) {
	if s.Do != "damage" {
		return
	}
	if s.Kind == "header" || s.Kind == "truncated" && !slices.Contains([]string{image.UDRW, image.UDSB}, b.format) {
		b.damage = s.Kind
	}
}

// pausable reports a pause that could not be resumed: resume follows the steps
// before it without executing them, and opens every container again.
func (f *stepChecker) pausable(s *Step) {
	if f.lost != nil {
		f.atStep(s, "pause", "pause: resume cannot tell how far the %s got that has to fail", f.lost.Do).
			hintf("it is on line %d; put the pause before it", f.lost.Line)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.states)) {
		if b := f.states[name]; b.damage != "" {
			what := fmt.Sprintf("the container %q", name)
			f.atStep(s, "pause", "pause: %s cannot be opened again after the damage %q", what, b.damage).
				hintf("put the pause before the damage, or harm it in another way: table, volume, band-missing")
			return
		}
	}
}
