package plan

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"dmgbench/internal/system/units"
)

// stepFuncsOf are the functions of the kinds of step that have any. It is a
// function because they refer to the registry.
func stepFuncsOf(do string) stepFuncs {
	return map[string]stepFuncs{
		"create": {follow: func(_ *estimator, _ *Step, c *container, _ *StepTotal) { c.made = true }},
		"attach": {follow: followAttach},
		"detach": {follow: func(_ *estimator, _ *Step, c *container, _ *StepTotal) {
			c.attached, c.mounted, c.readOnly = false, false, false
		}},
		"remount":  {follow: followTrim},
		"settle":   {finish: finishSettle},
		"write":    {check: (*stepChecker).checkFiles, follow: (*estimator).write},
		"read":     {check: (*stepChecker).checkPool, follow: (*estimator).read},
		"verify":   {check: (*stepChecker).checkPool, follow: (*estimator).read},
		"delete":   {finish: finishDelete, check: (*stepChecker).checkPool, follow: (*estimator).remove},
		"edit":     {finish: finishEdit, check: (*stepChecker).checkPool, follow: (*estimator).edit},
		"trim":     {follow: followTrim},
		"compact":  {follow: followTrim},
		"resize":   {follow: func(_ *estimator, s *Step, c *container, _ *StepTotal) { c.size = s.Size }},
		"convert":  {check: (*stepChecker).checkConvert, follow: (*estimator).deriveContainer},
		"transfer": {check: (*stepChecker).checkName, follow: (*estimator).deriveContainer},
		"damage":   {finish: finishDamage, check: (*stepChecker).checkDamage, follow: (*estimator).damage},
		"recover":  {check: (*stepChecker).checkPool, follow: (*estimator).read},
		"xattr":    {finish: finishXattr},
		"tree": {finish: finishTreeStep, check: (*stepChecker).checkTree, follow: (*estimator).tree,
			operations: func(s *Step) []string { return treeOperations[s.Action] }},
		"copy_out": {check: (*stepChecker).checkPool, follow: (*estimator).copyOut},
		"copy":     {check: (*stepChecker).checkCopy, follow: (*estimator).copyFile},
		"stream":   {check: (*stepChecker).checkCopy, follow: (*estimator).copyFile},
		"random": {finish: finishRandom, check: (*stepChecker).checkRandom, follow: (*estimator).random,
			operations: randomOperations},
	}[do]
}

// sharedKeys are keys that several kinds of step have, by the word for them in
// keys.md.
var sharedKeys = map[string]string{
	"workers": "Workers workers 1..1024", "sync": "Sync sync sync", "cache": "Cache cache cache",
	"block": "Block block size", "batch": "Batch batch last|all", "as": "As as name !", "place": "Place place place",
	"from": "From from path !", "to": "To to path !", "steps": "Steps steps min=1 !",
}

// readStepKinds fills the registry.
func readStepKinds() {
	for _, row := range docRows["kinds of step"] {
		k := stepKind{do: row[0], needs: need(row[1]), stepFuncs: stepFuncsOf(row[0])}
		for trait := range strings.FieldsSeq(row[2]) {
			*map[string]*bool{"changes": &k.changes, "fills": &k.fills, "files": &k.files, "image-only": &k.imageOnly,
				"untimed": &k.untimed}[trait] = true
		}
		for _, key := range splitKeys(row[3]) {
			k.keys = append(k.keys, cmp.Or(sharedKeys[key], key))
		}
		stepKinds = append(stepKinds, k)
	}
}

// commonStepKeys are keys of every step, without those that k excludes; the
// zero row gives all.
func commonStepKeys(k *stepKind) []string {
	out := []string{"Do do do !", "Phase phase name"}
	if k.do == "measure" {
		out[1] += " !"
	}
	if k.do != "pause" {
		out = append(out, "Expect expect ok|fail =ok")
	}
	if k.do == "" || k.needs != needsNew && k.needs != needsNone {
		out = append(out, "On on name")
	}
	return out
}

// stepCodec reads a step by the table of its kind. A step with errors stays in
// the list, so that the others keep their places.
func stepCodec() codec {
	return codec{typ: "step",
		decode: func(r *reader, n *node, v reflect.Value) {
			s := v.Addr().Interface().(*Step)
			s.Line, s.Column = r.place(n.off)
			do := n.get("do")
			switch {
			case n.kind != tableNode:
				r.bad(n, "want a step such as { do = \"write\" }, this is %s", n.kind)
			case do == nil:
				r.bad(n, "a step without \"do\"").hintf("kinds: %s", strings.Join(stepNames(nil), ", "))
			default:
				if name, ok := kinds["do"].read(r, do); ok {
					findStepKind(name).table.read(r, n, v)
				}
			}
		},
		encode: func(v reflect.Value) (string, bool) {
			return inlineOf(findStepKind(v.FieldByName("Do").String()).table.lines(v)), true
		},
		json: func() map[string]any { return schemaReference("step") }}
}

// finishSettle checks the limits of settle; until_stable without at_most stops
// after five minutes.
func finishSettle(r *reader, n *node, s *Step) {
	if n.get("at_most") != nil && !s.UntilStable {
		r.badKey(n.get("at_most"), "at_most has no meaning without until_stable")
	}
	if s.UntilStable && s.AtMost == 0 {
		s.AtMost = max(units.Duration(5*60e9), s.AtLeast)
	}
}

// finishDelete checks that files are chosen in one way, and fills in the batch
// they are chosen from.
func finishDelete(r *reader, n *node, s *Step) {
	given := countTrue(s.All, s.LastSets > 0, s.Largest > 0, s.Every, s.Share > 0)
	fromLast := s.LastSets > 0 || s.Largest > 0
	switch {
	case given != 1:
		r.bad(n, "delete needs exactly one way to choose files, this has %d", given).
			hintf("all = true, last_sets = 8, largest = 40, every_other = true or share = \"30%%\"")
	case s.Share > 1:
		r.bad(n.get("share"), "share: %s is more than all files", s.Share)
	case s.Batch == "all" && fromLast:
		r.bad(n.get("batch"), "delete: last_sets and largest choose from the last batch")
	}
	if s.Batch == "" {
		s.Batch = map[bool]string{true: "last", false: "all"}[fromLast]
	}
}

// finishEdit checks that an edit has the size of its changes.
func finishEdit(r *reader, n *node, s *Step) {
	byShare := s.Kind == "overwrite" || s.Kind == "replace"
	switch {
	case s.Kind == "":
	case byShare && (s.Share <= 0 || s.Share > 1 || s.Amount > 0):
		r.bad(n, "edit: %q needs a share of more than 0%% and at most 100%%, and no amount", s.Kind)
	case !byShare && (s.Amount <= 0 || s.Share != 0):
		r.bad(n, "edit: %q needs an amount, and no share", s.Kind)
	}
	s.Batch = cmp.Or(s.Batch, "last")
}

// countTrue is how many of the conditions hold.
func countTrue(conditions ...bool) int {
	return len(slices.DeleteFunc(conditions, func(c bool) bool { return !c }))
}

// finishDamage checks that keys belong to the kind of damage; "flipped" flips one
// byte by default.
func finishDamage(r *reader, n *node, s *Step) {
	for key, kind := range map[string]string{"files": "killed", "bytes": "flipped", "band": "flipped"} {
		if n.get(key) != nil && s.Kind != kind && s.Kind != "" {
			r.badKey(n.get(key), "damage: %s has no meaning without kind = %q", key, kind)
		}
	}
	if s.Kind == "flipped" {
		s.Bytes = max(s.Bytes, 1)
	}
}

// finishXattr checks that the action has the name and value that it needs.
func finishXattr(r *reader, n *node, s *Step) {
	for name, missing := range map[string]bool{"attr": s.Attr == "" && s.Action != "list" && s.Action != "",
		"value": s.Action == "set" && s.Value == ""} {
		if missing {
			r.bad(n, "xattr: %q needs %q", s.Action, name)
		}
	}
}

// finishRandom checks what ends the step.
func finishRandom(r *reader, n *node, s *Step) {
	switch {
	case (s.Time > 0) == (s.Amount > 0):
		r.bad(n, "random needs one of time and amount").hintf("time = \"10 s\" or amount = \"1 GB\"")
	case s.Reads > 1:
		r.bad(n.get("reads"), "reads: %s is more than all operations", s.Reads)
	}
}

// randomOperations are the kinds of operation of a random step.
func randomOperations(s *Step) (kinds []string) {
	if s.Reads > 0 {
		kinds = append(kinds, "read")
	}
	if s.Reads < 1 {
		kinds = append(kinds, "write")
	}
	if s.Reads < 1 && s.Flush > 0 {
		kinds = append(kinds, "flush")
	}
	return kinds
}

//go:embed prose.tmpl
var proseText string

// prose has a template for each kind of step, for file sets and for parts of
// both.
var prose = template.Must(template.New("prose").Funcs(template.FuncMap{
	"yes": func(flag *bool) bool { return flag != nil && *flag },
	"no":  func(flag *bool) bool { return flag != nil && !*flag },
	// counted: without the number one: "set", "3 sets"
	"counted": func(n int, noun string) string { return strings.TrimPrefix(units.Count(n, noun), "1 ") },
	"trim":    strings.TrimSuffix, "smallest": slices.Min[[]units.Bytes], "largest": slices.Max[[]units.Bytes],
}).Parse(proseText + stepSentences()))

// stepSentences are the templates of the kinds of step, from keys.md.
func stepSentences() (text string) {
	for _, row := range docRows["kinds of step"] {
		text += `{{define "` + row[0] + `"}}` + row[5] + `{{end}}`
	}
	return text
}

// executeProse is the text of a template.
func executeProse(name string, data any) string {
	var b strings.Builder
	if err := prose.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("describing %s: %v", name, err))
	}
	return b.String()
}

// Prose describes in a sentence what a step does, as a methods section prints
// it, without number and full stop: "write 160 files to it". Settings of the
// case (workers, sync, cache …) are mentioned where the step overrides them.
// Steps inside a repeat or parallel are not described: the caller prints them
// below it.
func (s *Step) Prose() string {
	image := "the image"
	if s.On != "" {
		image = "“" + s.On + "”"
	}
	data := struct {
		*Step
		Image string
	}{s, image}
	return executeProse(s.Do, data) + executeProse("overrides", data)
}

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
		id := fmt.Sprintf("%s %s %s %s %q %d %t %d %s", c.p.protocolID(k), s.Files, s.Format, s.ConvertTo,
			s.Filesystems, s.Size, k.Baseline, s.Block, s.Cache)
		if done[id] {
			continue
		}
		done[id] = true
		f := &stepChecker{checker: c, c: k, e: newEstimator(c.p, k)}
		f.checkBlocks(k.Steps)
		if f.e.before, f.e.after = f.checkStep, f.checkRoom; c.work < maxWork {
			f.e.addSteps(k.Steps, 0)
			c.work += f.e.Files
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
			f.atStep(s, "nested", "a repeat inside a repeat: multiply the times instead")
		case s.Do == "parallel":
			f.checkParallel(s)
		case s.Do == "pause" && failing != nil:
			f.atStep(s, "pause", "pause: resume cannot know how far the %s got that has to fail", failing.Do).
				hintf("it is on line %d; put the pause before it", failing.Line)
		case len(s.Steps) > 0 || s.Phase == "" && !k.files && k.operations == nil && s.Do != "verify":
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
	if f.work++; c != nil && (s.Batch != "" || s.As != "") {
		f.work += len(c.files)
	}
	if f.work+f.e.Files >= maxWork {
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
	changes := k.changesVolume(s, c)
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
		{changes && c.readOnly, s.Do + " while the volume is mounted read-only",
			"attach without read_only = true"},
		{(changes || s.Repair) && c.format.ReadOnly,
			s.Do + ": " + c.format.Name + " images cannot be changed", writable},
		{s.Kind == "table" && c.format.UDIF, "damage: the partition table of " + c.format.Name +
			" images cannot be damaged alone", "kinds for read-only images: header, volume, truncated, tail, flipped"},
		{(s.Kind == "band-missing" || s.Band > 0) && !c.format.Folder, "damage: " + c.format.Name + " has no bands",
			"kinds for every format: header, truncated, tail, flipped without band, volume"},
		{s.Kind == "killed" && c.format.ReadOnly, "damage: no files can be written to " + c.format.Name + " images",
			"kinds for read-only images: header, volume, truncated, tail, flipped"},
	} {
		if rule.broken {
			f.atStep(s, "state", "%s", rule.message).Hint = rule.hint
			f.e.stop = f.e.stop || !c.made // all later steps would have the same problem
			return false
		}
	}
	return true
}

// checkRoom checks that the files fit the volume after the step.
func (f *stepChecker) checkRoom(s *Step, c *container) {
	fills := findStepKind(s.Do).fills
	if made := f.e.containers[s.As]; s.Kind == "killed" && made != nil { // one that has to fail makes none
		c, fills = made, true
	}
	if fills && !c.unsure && !c.native && c.size > 0 &&
		float64(c.occupied()) > float64(c.size)*float64(f.p.Run.FitsIn) {
		f.atStep(s, "room", "%s: the files cannot fit: %s on a volume of %s, of which files may fill %s (case %q)",
			s.Do, c.occupied(), c.size, f.p.Run.FitsIn, f.c.ID).
			hintf("make the image larger, or write fewer or smaller files")
	}
}

// checkFiles checks the file set of a write step. Without it no later step can
// be followed.
func (f *stepChecker) checkFiles(s *Step, _ *container) {
	name := cmp.Or(s.Files, f.c.Settings.Files)
	switch {
	case f.e.fileSet(s) != nil && f.e.fileSet(s).Tree != nil:
		f.atStep(s, "files", "%s: the file set %q is a tree", s.Do, name).
			hintf("{ do = \"tree\", action = \"create\" } makes it")
	case f.e.fileSet(s) != nil:
		return
	case name == "":
		f.atStep(s, "files", "%s: the case %q names no file set", s.Do, f.c.ID).
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

// checkDamage checks the name of the copy, and the files that are written to it.
func (f *stepChecker) checkDamage(s *Step, c *container) {
	if f.checkName(s, c); s.Kind == "killed" {
		f.checkFiles(s, c)
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
	case len(c.pool(s)) == 0 && len(c.files) > 0:
		f.atStep(s, "empty", "%s: all files are of trees", s.Do).
			hintf("{ do = \"tree\", action = \"read\" } reads a tree")
	case len(c.pool(s)) == 0 && !(s.All && len(c.named) > 0) && len(f.p.Changes) == 0:
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

// directBlock is the least that direct writes have to be a multiple of: file
// systems write less through the page cache.
const directBlock = units.Bytes(4096)

// checkRandom checks that the file exists or can be made, and that its blocks can
// be accessed as the case asks.
func (f *stepChecker) checkRandom(s *Step, c *container) {
	size, exists := c.named[s.File]
	block, direct := cmp.Or(s.Block, f.c.Settings.Block), cmp.Or(s.Cache, f.c.Settings.Cache) == "direct"
	switch {
	case exists && s.FileSize > 0 && s.FileSize != size:
		f.atStep(s, "file_size", "random: the file %q has %s", s.File, size)
	case !exists && s.FileSize == 0:
		f.atStep(s, "file_size", "random: there is not yet a file %q", s.File).
			hintf("with file_size = \"1 GB\" the step makes it")
	case block == 0:
		f.atStep(s, "block", "random: the case %q names no block size", f.c.ID).
			hintf("give block = \"4 KiB\" here, or in [io]")
	case block > cmp.Or(size, s.FileSize):
		f.atStep(s, "block", "random: blocks of %s in a file of %s", block, cmp.Or(size, s.FileSize))
	case direct && block%directBlock != 0:
		f.atStep(s, "block", "random: direct I/O needs blocks of a multiple of %s, not %s", directBlock, block).
			hintf("or cache = \"buffered\"")
	}
}
