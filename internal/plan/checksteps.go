package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
)

// maxWork bounds the file operations that are followed to see whether files fit.
const maxWork = 5_000_000

// stage is what is known of one container while the steps are followed.
type stage struct {
	made, attached, mounted, readOnly bool
	format                            string // "" of a plain folder
	folders                           map[string]bool
	batches                           int
	unsure                            bool   // behind a block that had to fail: nobody knows how far it came
	harm                              string // what stands in the way of opening it again behind a pause
}

// follower walks through the steps of one case, keeping the state of each container.
type follower struct {
	*checker
	k      *Case
	e      *estimator
	stages map[string]*stage
	phases map[string]Step
	full   bool  // amounts are followed too, not only states
	lost   *Step // the block behind which no pause can be resumed
}

// protocols follows the steps of every case. Cases that differ in nothing that
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
		f := &follower{checker: c, k: k, e: newEstimator(c.p, *k), stages: map[string]*stage{"": {format: k.Settings.Format, folders: map[string]bool{}}}, phases: map[string]Step{}, full: c.work < maxWork}
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
	return fmt.Sprintf("%s %s %s %s %q %d %t", c.p.protocolID(k), s.Files, s.Format, s.ConvertTo, s.Filesystems, s.Size, k.Baseline)
}

// unique reports steps that could not be told apart in results.
func (f *follower) unique(steps []Step) {
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
			f.atStep(s, "phase", "two %s steps of the case %q have %s", s.Do, f.k.ID, what).hintf("the first is on line %d; give each its own phase", old.Line)
		}
		f.phases[id] = *s
	})
}

// steps follows a list of steps; inside is the kind of step that holds them.
func (f *follower) steps(steps []Step, inside string) {
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

func (f *follower) repeat(s *Step, inside string) {
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
// it comes is not known before, so that neither is the state behind it.
func (f *follower) failing(s *Step) {
	f.lost = s
	for _, b := range f.stages {
		b.unsure = true
	}
	if f.full {
		f.e.failing(s)
	}
	f.steps(s.Steps, "repeat")
}

func (f *follower) parallel(s *Step) {
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
	f.apart(s.Steps)
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
func (f *follower) step(s *Step) {
	k := findStepKind(s.Do)
	b, known := f.stages[s.On]
	if !known {
		var have []string
		for name := range f.stages {
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
	f.e.one(s, 0)
	if slices.Contains([]string{"write", "copy", "stream", "resize"}, s.Do) {
		f.room(s, native)
	}
}

// state says whether the container is in the state that the step needs.
func (f *follower) state(s *Step, need state, b *stage) bool {
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
	case slices.Contains(sealedFormats, b.format) && slices.Contains([]string{"write", "delete", "mkdir", "copy", "stream", "trim", "compact", "resize"}, s.Do):
		return bad("sealed", "convert to a format that can be written to: "+joinNames(writableFormats), "%s: %s images cannot be changed", s.Do, b.format)
	case slices.Contains(sealedFormats, b.format) && s.Repair:
		return bad("sealed", "convert to a format that can be written to: "+joinNames(writableFormats), "check: %s images cannot be repaired", b.format)
	case slices.Contains(sealedFormats, b.format) && b.format != "UDTO" && s.Do == "damage" && s.Kind == "table":
		return bad("sealed", "kinds for read-only images: header, volume, truncated", "damage: the partition table of %s images cannot be harmed by itself", b.format)
	case s.Do == "damage" && s.Kind == "band-missing" && b.format != "UDSB":
		return bad("no bands", "kinds for every format: header, truncated, volume", "damage: %s has no bands", b.format)
	}
	return true
}

// advance changes the state as the step does.
func (f *follower) advance(s *Step, b *stage) {
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
		f.stages[s.As] = &stage{made: true, batches: b.batches, format: cmp.Or(s.makes(&f.k.Settings), b.format), folders: maps.Clone(b.folders), unsure: b.unsure, harm: b.harm}
		f.stages[s.As].harmed(s)
	}
}

// room checks that the live files fit the volume after the step.
func (f *follower) room(s *Step, native bool) {
	b := f.e.boxes[s.On]
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
