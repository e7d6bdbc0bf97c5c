package plan

import (
	"cmp"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"dmgbench/internal/system/units"
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

// stepKind is one row of the registry of steps: a row of "kinds of step" in
// keys.md, and its functions.
type stepKind struct {
	do    string
	needs need
	// keys: in addition to those of every step: a field of Step and its tag, see
	// key
	keys []string
	stepFuncs

	changes change
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
}

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
		"trim":     {follow: followTrim},
		"compact":  {follow: followTrim},
		"resize":   {follow: func(_ *estimator, s *Step, c *container, _ *StepTotal) { c.size = s.Size }},
		"convert":  {check: (*stepChecker).checkConvert, follow: (*estimator).deriveContainer},
		"transfer": {check: (*stepChecker).checkName, follow: (*estimator).deriveContainer},
		"damage":   {check: (*stepChecker).checkName, follow: (*estimator).deriveContainer},
		"xattr":    {finish: finishXattr},
		"copy":     {check: (*stepChecker).checkCopy, follow: (*estimator).copyFile},
		"stream":   {check: (*stepChecker).checkCopy, follow: (*estimator).copyFile},
	}[do]
}

// sharedKeys are keys that several kinds of step have, by the word for them in
// keys.md.
var sharedKeys = map[string]string{
	"workers": "Workers workers 1..1024", "sync": "Sync sync sync", "cache": "Cache cache cache",
	"block": "Block block size", "batch": "Batch batch last|all", "as": "As as name !", "place": "Place place place",
	"from": "From from path !", "to": "To to path !", "steps": "Steps steps min=1 !",
}

// stepKinds is the registry, in the order of keys.md.
var stepKinds []stepKind

// readStepKinds fills the registry. Keys are separated by semicolons, the words
// of an enumeration by slashes.
func readStepKinds() {
	for _, row := range docRows["kinds of step"] {
		k := stepKind{do: row[0], needs: need(row[1]), stepFuncs: stepFuncsOf(row[0])}
		for trait := range strings.FieldsSeq(row[2]) {
			switch trait {
			case "changes-image":
				k.changes = changesImage
			case "changes-volume":
				k.changes = changesVolume
			default:
				*map[string]*bool{"fills": &k.fills, "files": &k.files, "image-only": &k.imageOnly,
					"untimed": &k.untimed}[trait] = true
			}
		}
		for key := range strings.SplitSeq(row[3], ";") {
			if key = strings.TrimSpace(key); key != "" {
				k.keys = append(k.keys, cmp.Or(sharedKeys[key], strings.ReplaceAll(key, "/", "|")))
			}
		}
		stepKinds = append(stepKinds, k)
	}
}

// addStepTables makes the table of keys of each kind of step.
func addStepTables() {
	for i := range stepKinds {
		k := &stepKinds[i]
		k.table = &table{name: k.do, keys: newKeys[Step](append(commonStepKeys(k), k.keys...)...)}
		if k.finish != nil {
			k.table.finish = func(r *reader, n *node, v reflect.Value) { k.finish(r, n, v.Addr().Interface().(*Step)) }
		}
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

// stepCodec reads a step by the table of its kind. A step with errors stays in
// the list, so that the others keep their places.
func stepCodec() codec {
	return codec{typ: "step", plural: "steps",
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

// makes is the format that a convert step makes in a case, "" of other steps
// and where neither has a format.
func (s *Step) makes(c *Settings) string {
	if s.Do != "convert" {
		return ""
	}
	return cmp.Or(s.Format, c.ConvertTo)
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

// finishSettle checks the limits of settle; until_stable without at_most stops
// after five minutes.
func finishSettle(r *reader, n *node, s *Step) {
	switch {
	case s.AtLeast == 0 && !s.UntilStable:
		r.bad(n, "settle does not wait").hintf("give at_least, until_stable or both")
	case n.get("at_most") != nil && !s.UntilStable:
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

// countTrue is how many of the conditions hold.
func countTrue(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
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
	if findStepKind(s.Do) == nil {
		return s.Do
	}
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
