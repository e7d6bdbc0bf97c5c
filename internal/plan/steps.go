package plan

import (
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// state is what a kind of step asks of its container.
type state int

const (
	anyState  state = iota
	fresh           // no container yet
	detached        // a container that is not attached
	attached        // attached, mounted or not
	onVolume        // attached and mounted
	notInUse        // not mounted
	noContext       // acts on no container
)

// stepKind is one kind of step with its own keys.
type stepKind struct {
	do    string
	state state
	keys  []key[Step]
	// noOn kinds take no "on", noExpect kinds no "expect": a pause does nothing
	// that could fail, it ends the session.
	noOn, noExpect bool
	// native kinds mean something for a plain directory.
	native bool
	finish func(r *reader, n *node, s *Step)
}

// commonStepKeys are keys of every step.
func commonStepKeys(k *stepKind) []key[Step] {
	phase := textKey("phase", nameText, func(s *Step) *string { return &s.Phase })
	if k != nil && k.do == "measure" {
		phase = phase.must()
	}
	out := []key[Step]{
		enumKey("do", func(s *Step) *string { return &s.Do }, stepNames()...).must(),
		phase,
	}
	if k == nil || !k.noExpect {
		out = append(out, enumKey("expect", func(s *Step) *string { return &s.Expect }, "ok", "fail").or(`"ok"`))
	}
	if k == nil || !k.noOn {
		out = append(out, textKey("on", nameText, func(s *Step) *string { return &s.On }))
	}
	return out
}

// Keys that several kinds share.
var (
	stepWorkers = numberKey("workers", 1, 1024, func(s *Step) *int { return &s.Workers })
	stepSync    = enumKey("sync", func(s *Step) *string { return &s.Sync }, syncs...)
	stepCache   = enumKey("cache", func(s *Step) *string { return &s.Cache }, caches...)
	stepBlock   = sizeKey("block", sizeType, func(s *Step) *units.Bytes { return &s.Block })
	stepBatch   = enumKey("batch", func(s *Step) *string { return &s.Batch }, "last", "all")
	stepAs      = textKey("as", nameText, func(s *Step) *string { return &s.As }).must()
	stepPlace   = textKey("place", placeText, func(s *Step) *string { return &s.Place })
	stepFrom    = textKey("from", pathText, func(s *Step) *string { return &s.From }).must()
	stepTo      = textKey("to", pathText, func(s *Step) *string { return &s.To }).must()
	stepTimes   = numberKey("times", 1, 100000, func(s *Step) *int { return &s.Times })
	stepSize    = sizeKey("size", sizeType, func(s *Step) *units.Bytes { return &s.Size }).must()
)

// stepKindList lists every kind of step; it is filled by init because repeat
// and parallel hold steps themselves.
var stepKindList []stepKind

func init() {
	stepKindList = []stepKind{
		{do: "create", state: fresh, noOn: true, native: true},
		{do: "attach", state: detached, native: true, keys: []key[Step]{
			choiceKey("mount", func(s *Step) **bool { return &s.Mount }).or("true"),
			choiceKey("verify", func(s *Step) **bool { return &s.Verify }),
			choiceKey("read_only", func(s *Step) **bool { return &s.ReadOnly }).or("false")}},
		{do: "detach", state: attached, native: true},
		{do: "remount", state: onVolume, native: true, keys: []key[Step]{
			stepTimes.or("1"), timeKey("settle", func(s *Step) *units.Duration { return &s.AtLeast })}},
		{do: "settle", state: anyState, native: true, finish: finishSettle, keys: []key[Step]{
			timeKey("at_least", func(s *Step) *units.Duration { return &s.AtLeast }),
			flagKey("until_stable", func(s *Step) *bool { return &s.UntilStable }),
			spanKey("at_most", func(s *Step) *units.Duration { return &s.AtMost })}},
		{do: "mkdir", state: onVolume, native: true, keys: []key[Step]{
			textKey("dir", pathText, func(s *Step) *string { return &s.Dir }).must()}},
		{do: "write", state: onVolume, native: true, keys: []key[Step]{
			textKey("files", nameText, func(s *Step) *string { return &s.Files }), stepWorkers, stepSync, stepCache, stepBlock}},
		{do: "read", state: onVolume, native: true, keys: []key[Step]{
			stepBatch.or(`"last"`),
			enumKey("order", func(s *Step) *string { return &s.Order }, "same-as-written", "shuffled",
				"as-listed").or(`"same-as-written"`),
			stepWorkers, stepCache, stepBlock}},
		{do: "verify", state: onVolume, native: true, keys: []key[Step]{stepBatch.or(`"last"`)}},
		{do: "delete", state: onVolume, native: true, finish: finishDelete, keys: []key[Step]{
			flagKey("all", func(s *Step) *bool { return &s.All }),
			numberKey("last_sets", 1, 100000, func(s *Step) *int { return &s.LastSets }),
			numberKey("largest", 1, 1000000, func(s *Step) *int { return &s.Largest }),
			flagKey("every_other", func(s *Step) *bool { return &s.Every }),
			shareKey("share", func(s *Step) *units.Share { return &s.Share }), stepBatch}},
		{do: "trim", state: onVolume},
		{do: "compact", state: detached, keys: []key[Step]{
			enumKey("battery", func(s *Step) *string { return &s.Battery }, "refuse", "allow").or(`"refuse"`)}},
		{do: "resize", state: detached, keys: []key[Step]{stepSize}},
		{do: "convert", state: detached, keys: []key[Step]{
			stepAs, textKey("format", anyFormatType, func(s *Step) *string { return &s.Format }),
			enumKey("encryption", func(s *Step) *string { return &s.Encryption }, image.Encryptions...).or(`"none"`),
			sizeKey("band_size", bandType, func(s *Step) *units.Bytes { return &s.BandSize }).or(`"default"`), stepPlace},
			finish: finishConvert},
		{do: "transfer", state: detached, keys: []key[Step]{stepAs, stepPlace}},
		{do: "check", state: notInUse, keys: []key[Step]{
			enumKey("what", func(s *Step) *string { return &s.What }, "container", "volume").or(`"volume"`),
			flagKey("repair", func(s *Step) *bool { return &s.Repair })}},
		{do: "damage", state: detached, keys: []key[Step]{
			stepAs, enumKey("kind", func(s *Step) *string { return &s.Kind }, "header", "band-missing", "table", "truncated",
				"volume").must()}},
		{do: "xattr", state: anyState, finish: finishXattr, keys: []key[Step]{
			enumKey("action", func(s *Step) *string { return &s.Action }, "list", "set", "remove").must(),
			textKey("attr", anyText, func(s *Step) *string { return &s.Attr }),
			scalarKey("value", anyText, func(s *Step, v string) { s.Value = v },
				func(s *Step) (string, bool) { return s.Value, s.Action == "set" })}},
		{do: "measure", state: anyState, native: true},
		{do: "copy", state: onVolume, native: true, keys: []key[Step]{stepFrom, stepTo, stepSync, stepCache, stepBlock}},
		{do: "stream", state: onVolume, native: true, keys: []key[Step]{
			stepFrom, stepTo,
			enumKey("direction", func(s *Step) *string { return &s.Direction }, "compress", "decompress").or(`"compress"`),
			enumKey("codec", func(s *Step) *string { return &s.Codec }, codecs...),
			numberKey("level", 1, 22, func(s *Step) *int { return &s.Level }),
			numberKey("threads", 1, 1024, func(s *Step) *int { return &s.Threads })}},
		{do: "pause", state: noContext, noOn: true, noExpect: true, native: true, keys: []key[Step]{
			textKey("message", someText, func(s *Step) *string { return &s.Message }).must()}},
		{do: "repeat", state: noContext, noOn: true, native: true, keys: []key[Step]{stepTimes.must(), stepsKey()}},
		{do: "parallel", state: noContext, noOn: true, native: true, keys: []key[Step]{stepsKey()}},
	}
}

func stepsKey() key[Step] {
	k := tablesKey("steps", func() *table[Step] { return &anyStep }, func(s *Step) *[]Step { return &s.Steps }).must()
	k.typ = "list of steps"
	k.decode = func(r *reader, n *node, dst *Step) { dst.Steps = r.steps(n) }
	k.encode = func(src *Step) (string, bool) { return stepsTOML(src.Steps), true }
	k.json = func() map[string]any {
		return map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"$ref": "#/$defs/step"}}
	}
	return k
}

var anyStep = table[Step]{name: "step"}

func stepNames() []string {
	return []string{"create", "attach", "detach", "remount", "settle", "mkdir", "write", "read", "verify", "delete",
		"trim", "compact",
		"resize", "convert", "transfer", "check", "damage", "xattr", "measure", "copy", "stream", "pause", "repeat",
		"parallel"}
}

func findStepKind(do string) *stepKind {
	i := slices.IndexFunc(stepKindList, func(k stepKind) bool { return k.do == do })
	if i < 0 {
		return nil
	}
	return &stepKindList[i]
}

// stepTable is the table of one kind of step.
func stepTable(k *stepKind) *table[Step] {
	return &table[Step]{name: k.do, keys: append(commonStepKeys(k), k.keys...), finish: k.finish}
}

// steps reads a list of steps.
func (r *reader) steps(n *node) []Step {
	if n.kind != arrayNode {
		r.problem(n.off, n.name, "steps: want a list of steps, this is %s", n.kind).
			hintf("write it as [ { do = \"create\" }, … ]")
		return nil
	}
	if len(n.items) == 0 {
		r.problem(n.off, n.name, "steps: the list is empty")
	}
	out := make([]Step, 0, len(n.items))
	for _, it := range n.items {
		out = append(out, r.step(it))
	}
	return out
}

func (r *reader) step(n *node) Step {
	var s Step
	s.Line, s.Column = r.place(n.off)
	if n.kind != tableNode {
		r.problem(n.off, "", "want a step such as { do = \"write\" }, this is %s", n.kind)
		return s
	}
	do := n.get("do")
	if do == nil {
		r.problem(n.off, "do", "a step without \"do\"").hintf("kinds: %s", strings.Join(stepNames(), ", "))
		return s
	}
	name, ok := r.scalar(do, "do", enumType(nil, stepNames()...))
	if !ok {
		return s
	}
	k := findStepKind(name)
	t := stepTable(k)
	t.otherNames = func(*reader) []string { return nil }
	if k.noExpect {
		t.other = func(r *reader, n *node, _ *Step) bool {
			if n.name != "expect" {
				return false
			}
			r.problem(n.key, "expect", "%s: it cannot be expected to fail: it does nothing but end the session until resume",
				k.do).
				hintf("expect the failure of the step before or behind it")
			return true
		}
	}
	t.read(r, n, &s)
	return s
}

func finishSettle(r *reader, n *node, s *Step) {
	switch {
	case s.AtLeast == 0 && !s.UntilStable:
		r.problem(n.off, "settle", "settle waits for nothing").hintf("give at_least, until_stable or both")
	case n.get("at_most") != nil && !s.UntilStable:
		r.problem(n.get("at_most").key, "at_most", "at_most has no meaning without until_stable")
	case s.AtMost > 0 && s.AtMost < s.AtLeast:
		r.problem(n.get("at_most").off, "at_most", "at_most %s is shorter than at_least %s", s.AtMost, s.AtLeast)
	}
	if s.UntilStable && s.AtMost == 0 {
		s.AtMost = max(units.Duration(5*60e9), s.AtLeast)
	}
}

func finishDelete(r *reader, n *node, s *Step) {
	given := 0
	for _, yes := range []bool{s.All, s.LastSets > 0, s.Largest > 0, s.Every, s.Share > 0} {
		if yes {
			given++
		}
	}
	if given != 1 && !r.broken {
		r.problem(n.off, "delete", "delete needs exactly one way to choose files, this has %d", given).
			hintf("all = true, last_sets = 8, largest = 40, every_other = true or share = \"30%%\"")
	}
	if s.Share > 1 {
		r.problem(n.get("share").off, "share", "share: %s is more than all files", s.Share)
	}
	if s.Batch == "all" && (s.LastSets > 0 || s.Largest > 0) {
		r.problem(n.get("batch").off, "batch", "delete: last_sets and largest choose from the last batch")
	}
	if s.Batch == "" {
		s.Batch = "all"
		if s.LastSets > 0 || s.Largest > 0 {
			s.Batch = "last"
		}
	}
}

func finishConvert(r *reader, n *node, s *Step) {
	if s.BandSize > 0 && s.Format != "" && !formatOf(s.Format).Folder {
		r.problem(n.get("band_size").key, "band_size", "only UDSB has bands, this converts to %s", s.Format)
	}
}

func finishXattr(r *reader, n *node, s *Step) {
	if s.Action != "list" && s.Action != "" && s.Attr == "" {
		r.problem(n.off, "attr", "xattr: %q needs \"attr\"", s.Action)
	}
	if s.Action == "set" && n.get("value") == nil {
		r.problem(n.off, "value", "xattr: \"set\" needs \"value\"")
	}
}

// stepsTOML writes steps one a line.
func stepsTOML(steps []Step) string {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range steps {
		k := findStepKind(steps[i].Do)
		text := strings.ReplaceAll(stepTable(k).inline(&steps[i]), "\n", "\n  ")
		b.WriteString("  " + text + ",\n")
	}
	b.WriteString("]")
	return b.String()
}
