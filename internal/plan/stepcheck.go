package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// maxWork bounds the file operations that are followed to see whether files
// fit.
const maxWork = 5_000_000

// containerState is what is known of one container while the steps are
// followed.
type containerState struct {
	made, attached, mounted, readOnly bool
	// "" of a native folder
	format  string
	folders map[string]bool
	batches int
	// unsure: after a block that has to fail: its last step is unknown
	unsure bool
	// damage: kind of damage that keeps it from being opened again after a
	// pause
	damage string
}

// stepChecker follows the steps of one case with the state of each container.
type stepChecker struct {
	*checker
	c      *Case
	e      *estimator
	states map[string]*containerState
	phases map[string]Step
	// withFiles: files are followed too, not only states
	withFiles bool
	// unresumed: the first block that has to fail: pauses after it cannot be
	// resumed
	unresumed  *Step
	insideLoop bool
}

// checkProtocols follows the steps of every case. Cases with the same signature
// are followed once.
func (c *checker) checkProtocols() {
	done := map[string]bool{}
	for i := range c.cases {
		k := &c.cases[i]
		id := c.signature(k)
		if done[id] {
			continue
		}
		done[id] = true
		f := &stepChecker{checker: c, c: k, e: newEstimator(c.p, *k),
			states: map[string]*containerState{"": {format: k.Settings.Format, folders: map[string]bool{}}},
			phases: map[string]Step{}, withFiles: c.work < maxWork}
		f.checkUnique(k.Steps)
		f.checkSteps(k.Steps)
		if c.work >= maxWork && c.first("too much", "") {
			c.warn(c.root.at("protocol").key, "protocol", "the plan moves too many files to check whether they all fit")
		}
	}
}

// signature contains everything about a case that its steps are checked
// against.
func (c *checker) signature(k *Case) string {
	s := &k.Settings
	return fmt.Sprintf("%s %s %s %s %q %d %t", c.p.protocolID(k), s.Files, s.Format, s.ConvertTo, s.Filesystems, s.Size,
		k.Baseline)
}

// checkUnique reports steps that results could not distinguish.
func (f *stepChecker) checkUnique(steps []Step) {
	walk(steps, func(s *Step) {
		k := findStepKind(s.Do)
		if len(s.Steps) > 0 || s.Phase == "" && !k.files && !k.unique {
			return
		}
		id := s.Do + " " + s.Phase
		if old, ok := f.phases[id]; ok {
			what := fmt.Sprintf("the phase %q", s.Phase)
			if s.Phase == "" {
				what = "no phase"
			}
			f.atStep(s, "phase", "two %s steps of the case %q have %s", s.Do, f.c.ID, what).
				hintf("the first is on line %d; give each its own phase", old.Line)
		}
		f.phases[id] = *s
	})
}

// checkSteps follows a list of steps.
func (f *stepChecker) checkSteps(steps []Step) {
	for i := range steps {
		switch s := &steps[i]; s.Do {
		case "repeat":
			f.checkRepeat(s)
		case "parallel":
			f.checkParallel(s)
		default:
			f.checkStep(s)
		}
	}
}

// checkRepeat follows a block as often as it is repeated. Where files are not
// followed, two cycles show every state.
func (f *stepChecker) checkRepeat(s *Step) {
	if f.insideLoop || slices.ContainsFunc(s.Steps, func(in Step) bool { return in.Do == "repeat" }) {
		f.atStep(s, "nested", "a repeat inside a repeat").
			hintf("a step has one cycle number; multiply the times instead")
		return
	}
	f.insideLoop = true
	defer func() { f.insideLoop = false }()
	if s.Expect != "fail" {
		for n := range s.Times {
			if n >= 2 && !f.withFiles {
				return
			}
			f.checkSteps(s.Steps)
		}
		return
	}
	// A block that has to fail is followed once, for the names in it: the state
	// after it is not known.
	f.unresumed = cmp.Or(f.unresumed, s)
	for _, b := range f.states {
		b.unsure = true
	}
	if f.withFiles {
		f.e.addFailing(s)
	}
	f.checkSteps(s.Steps)
}

// checkParallel checks which steps run at the same time, and follows them one
// after the other.
func (f *stepChecker) checkParallel(s *Step) {
	if len(s.Steps) < 2 {
		f.atStep(s, "parallel", "parallel needs at least two steps")
	}
	concurrent := stepNamesWith(func(k stepKind) bool { return k.files })
	writes := map[string]bool{}
	for i := range s.Steps {
		in := &s.Steps[i]
		if !slices.Contains(concurrent, in.Do) {
			f.atStep(in, "parallel", "%s cannot run inside parallel", in.Do).
				hintf("%s can", strings.Join(concurrent, ", "))
			continue
		}
		if in.On == "" || in.Do == "read" { // steps on the case's own container have file tables of their own
			continue
		}
		if writes[in.On] {
			f.atStep(in, "gate", "parallel: two steps write to the container %q at once", in.On).
				hintf("only one of them can; others may read")
		}
		writes[in.On] = true
	}
	if s.Expect == "fail" { // the files that it finds and leaves are not known
		f.unresumed = cmp.Or(f.unresumed, s)
		return
	}
	// Reads come first: what another step is still writing cannot be read.
	for _, do := range append(slices.DeleteFunc(concurrent, func(do string) bool { return do == "write" }), "write") {
		for i := range s.Steps {
			if s.Steps[i].Do == do {
				f.checkStep(&s.Steps[i])
			}
		}
	}
}

// checkStep checks one step against the state and then changes the state.
func (f *stepChecker) checkStep(s *Step) {
	k, b := findStepKind(s.Do), f.states[s.On]
	if b == nil {
		have := slices.DeleteFunc(slices.Sorted(maps.Keys(f.states)), func(name string) bool { return name == "" })
		p := f.atStep(s, "on", "there is not yet a container %q", s.On)
		if f.hintName(p, s.On, "containers", have); len(have) == 0 {
			p.hintf("convert, transfer and damage make containers, and name them with \"as\"")
		}
		return
	}
	if s.Expect == "fail" {
		return
	}
	if s.Do == "pause" {
		f.checkPause(s)
	}
	if !b.unsure {
		if f.c.Settings.Target != "directory" && !f.checkState(s, k, b) {
			return
		}
		if k.check != nil {
			k.check(f, s, b)
		}
	}
	if k.advance != nil {
		k.advance(f, s, b)
	}
	if b.unsure || !f.withFiles {
		return
	}
	f.work += f.e.cost(s)
	if f.withFiles = f.work < maxWork; !f.withFiles {
		return
	}
	f.e.addStep(s, 0)
	if k.fills {
		f.checkRoom(s)
	}
}

// checkState reports whether the container is in the state that the step needs.
func (f *stepChecker) checkState(s *Step, k *stepKind, b *containerState) bool {
	before := func(do string) string { return fmt.Sprintf("put { do = %q } before it", do) }
	format := formatOf(b.format)
	writable := "convert to a format that can be written to: " + strings.Join(writableFormat.words, ", ")
	needsAttach := k.needs == needsAttached || k.needs == needsVolume
	for _, rule := range []struct {
		broken        bool
		message, hint string
	}{
		{k.needs == needsNew && b.made, "create: the container exists already", ""},
		{k.needs != needsNew && k.needs != needsNone && !b.made, s.Do + " before the container is created",
			before("create")},
		{k.needs == needsDetached && b.attached, s.Do + " while the container is attached", before("detach")},
		{needsAttach && !b.attached, s.Do + " while the container is detached", before("attach")},
		{k.needs == needsVolume && !b.mounted, s.Do + " while the volume is not mounted",
			"attach without mount = false"},
		{k.needs == needsUnmounted && b.mounted, s.Do + " while the volume is mounted",
			before("detach") + ", or attach with mount = false"},
		{k.changes == changesVolume && b.readOnly, s.Do + " while the volume is mounted read-only",
			"attach without read_only = true"},
		{k.changes != changesNothing && format.ReadOnly, s.Do + ": " + b.format + " images cannot be changed",
			writable},
		{s.Repair && format.ReadOnly, "check: " + b.format + " images cannot be repaired", writable},
		{s.Kind == "table" && format.UDIF, "damage: the partition table of " + b.format +
			" images cannot be damaged alone",
			"kinds for read-only images: header, volume, truncated"},
		{s.Kind == "band-missing" && !format.Folder, "damage: " + b.format + " has no bands",
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
func (f *stepChecker) checkRoom(s *Step) {
	b := f.e.containers[s.On]
	if b == nil || b.native || b.size == 0 || float64(b.live) <= float64(b.size)*float64(f.p.Run.FitsIn) {
		return
	}
	if s.Do == "resize" {
		f.atStep(s, "room", "resize: %s are too small for the %s of files on the volume", b.size, b.live)
		return
	}
	f.atStep(s, "room", "%s: the files cannot fit: %s on a volume of %s, of which files may fill %s (case %q)",
		s.Do, b.live, b.size, f.p.Run.FitsIn, f.c.ID).hintf("make the image larger, or write fewer or smaller files")
}

// checkFiles checks the file set of a write step.
func (f *stepChecker) checkFiles(s *Step, _ *containerState) {
	name := cmp.Or(s.Files, f.c.Settings.Files)
	set := f.p.fileSet(name)
	if set != nil {
		f.checkFileLimit(s, set.largest(), name)
		return
	}
	f.withFiles = false
	switch {
	case name == "" && !f.invalid["files"]:
		f.atStep(s, "files", "write: the case %q names no file set", f.c.ID).
			hintf("give files = \"…\" here, or in [io]")
	case s.Files != "":
		f.hintName(f.atStep(s, "files", "there is no file set %q", name), name, "file sets", f.fileSetNames())
	}
}

// checkFolder refuses a folder that exists already.
func (f *stepChecker) checkFolder(s *Step, b *containerState) {
	if b.folders[path.Clean(s.Dir)] {
		f.atStep(s, "dir", "mkdir: the folder %q exists already", s.Dir)
	}
}

// checkName checks the name of the container that a step makes.
func (f *stepChecker) checkName(s *Step, _ *containerState) {
	if f.states[s.As] != nil {
		f.atStep(s, "as", "%s: the name %q is taken", s.Do, s.As)
	}
}

// checkConvert checks that a convert step has a format, and bands only where
// the format has them.
func (f *stepChecker) checkConvert(s *Step, b *containerState) {
	f.checkName(s, b)
	switch to := s.makes(&f.c.Settings); {
	case to == "" && !f.invalid["settings"]:
		f.atStep(s, "format", "convert: the format is missing (case %q)", f.c.ID).
			hintf("give format = \"…\" here, or convert_to in [image]")
	case s.BandSize > 0 && to != "" && !formatOf(to).Folder:
		f.atStep(s, "band_size", "convert: only UDSB has bands, the case %q converts to %s", f.c.ID, to)
	}
}

// checkPool checks that there are files to read, verify or delete.
func (f *stepChecker) checkPool(s *Step, b *containerState) {
	container := f.e.containers[s.On]
	if b.batches == 0 && (container == nil || len(container.named) == 0) {
		f.atStep(s, "empty", "%s before files are written", s.Do).hintf("put { do = \"write\" } before it")
		return
	}
	if !f.withFiles || container == nil || len(f.p.Changes) > 0 || f.invalid["files"] {
		return
	}
	files, sets := container.pool(s.Batch), map[int]bool{}
	for _, x := range files {
		sets[x.set] = true
	}
	switch {
	case len(files) == 0 && !(s.All && len(container.named) > 0):
		f.atStep(s, "empty", "%s: every file has been deleted before", s.Do)
	case s.LastSets > len(sets):
		f.atStep(s, "sets", "delete: last_sets = %d, but the batch has %d sets left", s.LastSets, len(sets))
	case s.Largest > len(files):
		f.atStep(s, "largest", "delete: largest = %d, but the batch has %d files left", s.Largest, len(files))
	}
}

// checkCopy checks the source and the destination of copy and stream.
func (f *stepChecker) checkCopy(s *Step, _ *containerState) {
	container := f.e.containers[s.On]
	if container == nil || !f.withFiles {
		return
	}
	_, onVolume := container.named[s.From]
	if in := f.p.input(s.From); !onVolume && s.Do == "copy" && in != nil {
		f.checkFileLimit(s, in.Size, s.From)
	} else if !onVolume {
		have := slices.Sorted(maps.Keys(container.named))
		for _, in := range f.p.Inputs {
			if s.Do == "copy" {
				have = append(have, in.Name)
			}
		}
		f.hintName(f.atStep(s, "from", "%s: there is not yet a file %q", s.Do, s.From), s.From, "files to read", have)
		container.named[s.From] = 0
	}
	if _, exists := container.named[s.To]; exists {
		f.atStep(s, "to", "%s: the file %q exists already", s.Do, s.To).
			hintf("write to another name, or delete all before it")
	}
}

// checkFileLimit reports files that the file system cannot contain at any size
// of the volume; of a preference of several file systems, only that this one
// cannot be used.
func (f *stepChecker) checkFileLimit(s *Step, size units.Bytes, name string) {
	preference := f.c.Settings.Filesystems
	for _, fs := range preference {
		most := units.Bytes(image.FilesystemNamed(fs).MaxFile)
		switch {
		case most == 0 || size <= most:
		case len(preference) == 1:
			f.atStep(s, "file limit", "%s: %q has files of %s, the largest file of %s has %s", s.Do, name, size, fs,
				most).hintf("use exFAT, or smaller files")
		case f.first("file limit", name):
			f.warn(f.settingAt("filesystem").off, "filesystem",
				"files of %s are too large for %s, where the largest has %s",
				size, fs, most).hintf("leave %s out of the preference", fs)
		}
	}
}

// largest is the size of the largest file that the set can have.
func (fs *FileSet) largest() units.Bytes {
	var n units.Bytes
	for _, p := range fs.Parts {
		n = max(n, p.High)
		for _, size := range p.Sizes {
			n = max(n, size)
		}
	}
	return n
}

// opensTruncated reports whether engines open images of the format without the
// end of the file.
func opensTruncated(format string) bool {
	return slices.Contains([]string{image.UDRW, image.UDSB}, format)
}

// checkPause reports a pause that could not be resumed: resume follows the
// steps before it without executing them, and opens every container again.
func (f *stepChecker) checkPause(s *Step) {
	if f.unresumed != nil {
		f.atStep(s, "pause", "pause: resume cannot know how far the %s got that has to fail", f.unresumed.Do).
			hintf("it is on line %d; put the pause before it", f.unresumed.Line)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.states)) {
		if b := f.states[name]; b.damage != "" {
			f.atStep(s, "pause", "pause: the container %q cannot be opened again after the damage %q", name, b.damage).
				hintf("put the pause before the damage, or choose another kind: table, volume, band-missing")
			return
		}
	}
}

// smallestImage is the smallest image that one of the file systems can be made
// in.
func smallestImage(filesystems []string) units.Bytes {
	least := maxSize
	for _, name := range filesystems {
		least = min(least, minimumSize(name))
	}
	return least
}

// minimumSize is the smallest image that the file system can be made in.
func minimumSize(filesystem string) units.Bytes {
	return units.Bytes(image.FilesystemNamed(filesystem).MinSize + image.PartitionTableSize)
}

// checkImageSize reports images in which their file system cannot be made; of a
// preference of several file systems, a warning for those that cannot be used.
func (c *checker) checkImageSize(s *Settings) {
	if s.Size == 0 || !c.first("size", [2]any{s.Size, strings.Join(s.Filesystems, " ")}) {
		return
	}
	at := c.settingAt("size")
	if least := smallestImage(s.Filesystems); s.Size < least {
		c.problem(at.off, "size", "an image of %s is too small for %s", s.Size, strings.Join(s.Filesystems, ", ")).
			hintf("at least %d B: %s for the volume and the rest for the partition table", least,
				least-image.PartitionTableSize)
		return
	}
	for _, fs := range s.Filesystems {
		if least := minimumSize(fs); s.Size < least {
			c.warn(at.off, "size", "an image of %s is too small for %s, which needs %d B", s.Size, fs, least).
				hintf("make it larger, or leave %s out of filesystem_preference", fs)
		}
	}
}

// checkResize reports a resize below the smallest image.
func (f *stepChecker) checkResize(s *Step, _ *containerState) {
	list := f.c.Settings.Filesystems
	if least := smallestImage(list); s.Size > 0 && s.Size < least {
		f.atStep(s, "size", "resize: an image of %s is too small for %s", s.Size, strings.Join(list, ", ")).
			hintf("at least %d B", least)
	}
}
