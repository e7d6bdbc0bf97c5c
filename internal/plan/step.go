package plan

import (
	"fmt"
	"slices"
	"strings"
)

// need is the state in which a kind of step needs its container, as
// docs/plan-language.md names it.
type need string

const (
	needsNew       need = "once, first" // not created yet
	needsDetached  need = "detached"
	needsAttached  need = "attached"    // mounted or not
	needsVolume    need = "volume"      // attached and mounted
	needsUnmounted need = "not mounted" // detached, or attached without mounting
	needsCreated   need = "any"
	needsNone      need = "" // acts on no container
)

// change is what a kind of step changes.
type change int

const (
	changesNothing change = iota
	changesImage          // the image, attached or not
	changesVolume         // files of the volume, and so the image
)

// stepKind is one row of the registry of steps.
type stepKind struct {
	do string
	// about: for docs/plan-language.md
	about string
	needs need
	// keys: in addition to those of every step
	keys []key[Step]
	// finish: finish checks conditions between keys and fills in defaults that
	// depend on other keys.
	finish func(r *reader, n *node, s *Step)
	// prose: prose describes the step; image is the container that it acts on,
	// in words.
	prose func(s *Step, image string) string
	// check, advance: check reports what is wrong with the step when it is
	// reached, advance then changes the state. Both may be nil.
	check, advance func(f *stepChecker, s *Step, b *containerState)
	// estimate: estimate adds what the step moves to b and t, nil: it moves no
	// bytes.
	estimate func(e *estimator, s *Step, b *containerEstimate, t *StepTotal)

	changes change
	// fills: may overfill the volume
	fills bool
	// files: times single files, and may run inside parallel
	files bool
	// unique: steps of this kind without a phase need to be unique, as those
	// that time files
	unique bool
	// imageOnly: has no meaning for a native folder
	imageOnly bool
	// untimed: its duration is not a quantity
	untimed    bool
	needsPhase bool
	// noExpect: cannot be expected to fail
	noExpect bool
}

// stepKinds is the registry, see stepRows.
var stepKinds []stepKind

// findStepKind is the row of that name, or nil.
func findStepKind(do string) *stepKind {
	if i := slices.IndexFunc(stepKinds, func(k stepKind) bool { return k.do == do }); i >= 0 {
		return &stepKinds[i]
	}
	return nil
}

// stepNames are all kinds of step, in the order of the registry.
func stepNames() []string {
	out := make([]string, len(stepKinds))
	for i, k := range stepKinds {
		out[i] = k.do
	}
	return out
}

// stepNamesWith are the kinds that have a property.
func stepNamesWith(has func(k stepKind) bool) []string {
	return slices.DeleteFunc(stepNames(), func(do string) bool { return !has(*findStepKind(do)) })
}

// commonStepKeys are keys of every step that k is no exception of; nil gives
// all.
func commonStepKeys(k *stepKind) []key[Step] {
	phase := field("phase", nameText, func(s *Step) *string { return &s.Phase })
	if k != nil && k.needsPhase {
		phase = phase.must()
	}
	out := []key[Step]{field("do", enum(stepNames()...), func(s *Step) *string { return &s.Do }).must(), phase}
	if k == nil || !k.noExpect {
		out = append(out, field("expect", enum("ok", "fail"), func(s *Step) *string { return &s.Expect }).or(`"ok"`))
	}
	if k == nil || k.needs != needsNew && k.needs != needsNone {
		out = append(out, field("on", nameText, func(s *Step) *string { return &s.On }))
	}
	return out
}

// table is the table of keys of one kind of step.
func (k *stepKind) table() *table[Step] {
	return &table[Step]{name: k.do, keys: append(commonStepKeys(k), k.keys...), finish: k.finish}
}

// stepsField is a key with a list of steps.
func stepsField[T any](at func(*T) *[]Step) key[T] {
	return list[T, Step]{name: "steps", items: "steps", low: 1, at: at, read: (*reader).step, lines: true,
		write: func(s *Step) string { return findStepKind(s.Do).table().inline(s) },
		json:  func() map[string]any { return schemaReference("step") }}.key().must()
}

// step reads one step by the table of its kind. A step with errors stays in the
// list, so that the others keep their places.
func (r *reader) step(n *node, s *Step) bool {
	s.Line, s.Column = r.place(n.off)
	do := n.get("do")
	switch {
	case n.kind != tableNode:
		r.problem(n.off, "", "want a step such as { do = \"write\" }, this is %s", n.kind)
	case do == nil:
		r.problem(n.off, "do", "a step without \"do\"").hintf("kinds: %s", strings.Join(stepNames(), ", "))
	default:
		if name, ok := r.scalar(do, "do", enum(stepNames()...).scalar); ok {
			findStepKind(name).table().read(r, n, s)
		}
	}
	return true
}

// makes is the format that a convert step makes in a case, "" of other steps
// and where neither has a format.
func (s *Step) makes(c *Settings) string {
	if s.Do != "convert" {
		return ""
	}
	return firstWord(s.Format, c.ConvertTo)
}

// walk visits steps and the steps inside repeat and parallel.
func walk(steps []Step, visit func(*Step)) {
	walkCycles(steps, 0, func(s *Step, _ int) { visit(s) })
}

// walkCycles is walk with the number of cycles of the repeat around each step,
// 0 outside of one.
func walkCycles(steps []Step, cycles int, visit func(s *Step, cycles int)) {
	for i := range steps {
		s := &steps[i]
		visit(s, cycles)
		inner := cycles
		if s.Do == "repeat" {
			inner = max(s.Times, 1)
		}
		walkCycles(s.Steps, inner, visit)
	}
}

// Prose describes in a sentence what a step does, as a methods section prints
// it, without number and full stop: "write 160 files to it". Settings of the
// case (workers, sync, cache …) are mentioned where the step overrides them.
// Steps inside a repeat or parallel are not described: the caller prints them
// below it.
func (s *Step) Prose() string {
	k := findStepKind(s.Do)
	if k == nil {
		return s.Do
	}
	image := "the image"
	if s.On != "" {
		image = "“" + s.On + "”"
	}
	text := k.prose(s, image)
	if with := s.overrides(); len(with) > 0 {
		text += ", with " + strings.Join(with, ", ")
	}
	if s.Expect == "fail" {
		text += "; this has to fail"
	}
	return text
}

// overrides are the settings of the case that the step has values of its own
// for.
func (s *Step) overrides() []string {
	var with []string
	add := func(set bool, format string, value any) {
		if set {
			with = append(with, fmt.Sprintf(format, value))
		}
	}
	add(s.Workers > 0, "workers %d", s.Workers)
	add(s.Sync != "", "sync %s", s.Sync)
	add(s.Cache != "", "cache %s", s.Cache)
	add(s.Block > 0, "block %s", s.Block)
	add(s.Codec != "", "codec %s", s.Codec)
	add(s.Level > 0, "level %d", s.Level)
	add(s.Threads > 0, "%s", counted(s.Threads, "thread"))
	return with
}

// counted is plural without the number one: "set", "3 sets".
func counted(n int, noun string) string { return strings.TrimPrefix(plural(n, noun), "1 ") }
