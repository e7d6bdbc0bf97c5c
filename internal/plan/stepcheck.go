package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// maxWork bounds the file operations that are followed to see whether files
// fit.
const maxWork = 5_000_000

// stepChecker checks the steps of one case while the estimator follows them.
type stepChecker struct {
	*checker
	c *Case
	e *estimator
}

// checkProtocols follows the steps of every case; of those with the same steps
// that are checked against the same settings, one.
func (c *checker) checkProtocols() {
	done := map[string]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		s := &k.Settings
		id := fmt.Sprintf("%s %s %s %s %q %d %t", c.p.protocolID(k), s.Files, s.Format, s.ConvertTo, s.Filesystems,
			s.Size, k.Baseline)
		if done[id] {
			continue
		}
		done[id] = true
		f := &stepChecker{checker: c, c: k, e: newEstimator(c.p, k)}
		f.checkBlocks(k.Steps)
		if f.e.before, f.e.after = f.checkStep, f.checkRoom; c.work < maxWork {
			f.e.addSteps(k.Steps, 0)
		}
	}
	if c.work >= maxWork {
		c.warn(c.root.at("protocol").key, "protocol", "the plan moves too many files to check whether they all fit")
	}
}

// checkBlocks reports steps that results could not distinguish, and what cannot
// be inside repeat and parallel or after a block that has to fail.
func (f *stepChecker) checkBlocks(steps []Step) {
	phases, failing := map[string]*Step{}, (*Step)(nil)
	walkCycles(steps, 0, func(s *Step, cycles int) {
		k, id := findStepKind(s.Do), s.Do+" "+s.Phase
		old := phases[id]
		switch {
		case s.Do == "repeat" && cycles > 0:
			f.atStep(s, "nested", "a repeat inside a repeat").
				hintf("a step has one cycle number; multiply the times instead")
		case s.Do == "parallel":
			f.checkParallel(s)
		case s.Do == "pause" && failing != nil:
			f.atStep(s, "pause", "pause: resume cannot know how far the %s got that has to fail", failing.Do).
				hintf("it is on line %d; put the pause before it", failing.Line)
		case len(s.Steps) > 0 || s.Phase == "" && !k.files && s.Do != "verify":
		case old != nil:
			f.atStep(s, "phase", "two %s steps of the case %q have the phase %q", s.Do, f.c.ID, s.Phase).
				hintf("the first is on line %d; give each its own phase", old.Line)
		default:
			phases[id] = s
		}
		if len(s.Steps) > 0 && s.Expect == "fail" {
			failing = cmp.Or(failing, s)
		}
	})
}

// checkParallel checks which steps run at the same time.
func (f *stepChecker) checkParallel(s *Step) {
	concurrent := stepNames(func(k *stepKind) bool { return k.files })
	if len(s.Steps) < 2 {
		f.atStep(s, "parallel", "parallel needs at least two steps")
	}
	writes := map[string]bool{}
	for i := range s.Steps {
		in := &s.Steps[i]
		switch {
		case !slices.Contains(concurrent, in.Do):
			f.atStep(in, "parallel", "%s cannot run inside parallel", in.Do).
				hintf("%s can", strings.Join(concurrent, ", "))
		case in.On == "" || in.Do == "read": // steps on the case's own container have file tables of their own
		case writes[in.On]:
			f.atStep(in, "gate", "parallel: two steps write to the container %q at once", in.On).
				hintf("only one of them can; others may read")
		default:
			writes[in.On] = true
		}
	}
}

// checkStep checks one step against the state of its container, and reports
// whether it can be followed.
func (f *stepChecker) checkStep(s *Step) bool {
	k, c := findStepKind(s.Do), f.e.containers[s.On]
	if f.work += f.e.cost(s); f.work >= maxWork {
		f.e.stop = true
		return false
	}
	switch {
	case c == nil:
		have := slices.Sorted(maps.Keys(f.e.containers))[1:] // without that of the case, which is ""
		f.atStep(s, "on", "there is not yet a container %q", s.On).suggest(s.On, "containers", have)
		return false
	case s.Expect == "fail" || c.unsure:
		return true
	case !c.native && !f.checkState(s, k, c):
		return false
	case k.check != nil:
		k.check(f, s, c)
	}
	return true
}

// checkState reports whether the container is in the state that the step needs.
func (f *stepChecker) checkState(s *Step, k *stepKind, c *container) bool {
	before := func(do string) string { return fmt.Sprintf("put { do = %q } before it", do) }
	writable := "convert to a format that can be written to: " + strings.Join(writableFormat.words, ", ")
	needsAttach := k.needs == needsAttached || k.needs == needsVolume
	for _, rule := range []struct {
		broken        bool
		message, hint string
	}{
		{k.needs == needsNew && c.made, "create: the container exists already", ""},
		{k.needs != needsNew && k.needs != needsNone && !c.made, s.Do + " before the container is created",
			before("create")},
		{k.needs == needsDetached && c.attached, s.Do + " while the container is attached", before("detach")},
		{needsAttach && !c.attached, s.Do + " while the container is detached", before("attach")},
		{k.needs == needsVolume && !c.mounted, s.Do + " while the volume is not mounted",
			"attach without mount = false"},
		{k.needs == needsUnmounted && c.mounted, s.Do + " while the volume is mounted",
			before("detach") + ", or attach with mount = false"},
		{k.changes == changesVolume && c.readOnly, s.Do + " while the volume is mounted read-only",
			"attach without read_only = true"},
		{(k.changes != changesNothing || s.Repair) && c.format.ReadOnly,
			s.Do + ": " + c.format.Name + " images cannot be changed", writable},
		{s.Kind == "table" && c.format.UDIF, "damage: the partition table of " + c.format.Name +
			" images cannot be damaged alone", "kinds for read-only images: header, volume, truncated"},
		{s.Kind == "band-missing" && !c.format.Folder, "damage: " + c.format.Name + " has no bands",
			"kinds for every format: header, truncated, volume"},
	} {
		if rule.broken {
			f.atStep(s, "state", "%s", rule.message).Hint = rule.hint
			return false
		}
	}
	return true
}

// checkRoom checks that the files fit the volume after the step.
func (f *stepChecker) checkRoom(s *Step, c *container) {
	if findStepKind(s.Do).fills && !c.unsure && !c.native && c.size > 0 &&
		float64(c.live) > float64(c.size)*float64(f.p.Run.FitsIn) {
		f.atStep(s, "room", "%s: the files cannot fit: %s on a volume of %s, of which files may fill %s (case %q)",
			s.Do, c.live, c.size, f.p.Run.FitsIn, f.c.ID).
			hintf("make the image larger, or write fewer or smaller files")
	}
}

// checkFiles checks the file set of a write step. Without it no later step can
// be followed.
func (f *stepChecker) checkFiles(s *Step, _ *container) {
	name := cmp.Or(s.Files, f.c.Settings.Files)
	switch {
	case f.e.fileSet(s) != nil:
		return
	case name == "":
		f.atStep(s, "files", "write: the case %q names no file set", f.c.ID).
			hintf("give files = \"…\" here, or in [io]")
	default:
		f.atStep(s, "files", "there is no file set %q", name).
			suggest(name, "file sets", namesOf(f.p.Files, func(one *FileSet) string { return one.Name }))
	}
	f.e.stop = true
}

// checkName checks the name of the container that a step makes.
func (f *stepChecker) checkName(s *Step, _ *container) {
	if f.e.containers[s.As] != nil {
		f.atStep(s, "as", "%s: the name %q is taken", s.Do, s.As)
	}
}

// checkConvert checks that a convert step has a format, and bands only where
// the format has them.
func (f *stepChecker) checkConvert(s *Step, c *container) {
	f.checkName(s, c)
	switch to := s.makes(&f.c.Settings); {
	case to == "":
		f.atStep(s, "format", "convert: the format is missing (case %q)", f.c.ID).
			hintf("give format = \"…\" here, or convert_to in [image]")
	case s.BandSize > 0 && !formatOf(to).Folder:
		f.atStep(s, "band_size", "convert: only UDSB has bands, the case %q converts to %s", f.c.ID, to)
	}
}

// checkPool checks that there are files to read, verify or delete. Fewer sets
// than the plan has may leave none.
func (f *stepChecker) checkPool(s *Step, c *container) {
	switch {
	case c.batches == 0 && len(c.named) == 0:
		f.atStep(s, "empty", "%s before files are written", s.Do).hintf("put { do = \"write\" } before it")
	case len(c.pool(s.Batch)) == 0 && !(s.All && len(c.named) > 0) && len(f.p.Changes) == 0:
		f.atStep(s, "empty", "%s: every file has been deleted before", s.Do)
	}
}

// checkCopy checks the source and the destination of copy and stream.
func (f *stepChecker) checkCopy(s *Step, c *container) {
	_, onVolume := c.named[s.From]
	_, exists := c.named[s.To]
	if !onVolume && (s.Do != "copy" || f.p.input(s.From) == nil) {
		have := slices.Sorted(maps.Keys(c.named))
		if s.Do == "copy" {
			have = append(have, namesOf(f.p.Inputs, func(in *Input) string { return in.Name })...)
		}
		f.atStep(s, "from", "%s: there is not yet a file %q", s.Do, s.From).suggest(s.From, "files to read", have)
	}
	if exists {
		f.atStep(s, "to", "%s: the file %q exists already", s.Do, s.To).
			hintf("write to another name, or delete all before it")
	}
}

// smallestImage is the smallest image that one of the file systems can be made
// in.
func smallestImage(filesystems ...string) units.Bytes {
	least := maxSize
	for _, name := range filesystems {
		least = min(least, units.Bytes(image.FilesystemNamed(name).MinSize+image.PartitionTableSize))
	}
	return least
}
