package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Difference is one setting in which a measurement of two plans is not the
// same.
type Difference struct {
	// Key is that of the plan, "steps" where whole steps differ; Table is the
	// table that it is in: target, image, io, stream, files, inputs, run or
	// steps.
	Key, Table string
	// Of is the file set, input or step with the key, "" for a key of the case or
	// of the run.
	Of string
	// Before and After are the values, "not set" where the key is not given.
	Before, After string
}

// Name is the setting in words: "band size", "data of files few".
func (d Difference) Name() string {
	name := strings.ReplaceAll(d.Key, "_", " ")
	if d.Of != "" {
		name += " of " + d.Of
	}
	return name
}

// settingTables are the tables of [Settings], in the order of its fields.
var settingTables = []string{"target", "image", "io", "stream"}

// stateKeys are the keys of [run] that change the state of the disk before a
// measurement. The other keys change nothing that a round measures.
var stateKeys = []string{"canary", "precondition", "steady_window", "steady_limit", "steady_file", "steady_max_time",
	"steady_max_written"}

// SettingNames are the tables and keys that a [Difference] may have.
func SettingNames() (names []string) {
	names = append(slices.Clone(settingTables), "files", "inputs", "run", "steps")
	names = slices.Concat(names, keyNames(settings), stateKeys, keyNames(tableOf[FileSet]().keys),
		keyNames(tableOf[Input]().keys))
	for _, k := range stepKinds {
		names = append(names, keyNames(k.table.keys)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// differences collects what differs between two plans.
type differences []Difference

// CompareCases gives the settings on which a measurement depends and that differ
// between case a of p and case b of q: those of the cases, of the disk's state
// before them, of the files and inputs that both have, and the protocol. Of the
// protocol, steps after the one of the kind do with the phase do not count; with
// do = "", all count.
func CompareCases(p *Plan, a *Case, q *Plan, b *Case, do, phase string) []Difference {
	var d differences
	for _, k := range settings {
		d.add(settingTables[k.index[0]], k.name, "", k.fullText(&a.Settings), k.fullText(&b.Settings))
	}
	isOther := func(line string) bool {
		key, _, _ := strings.Cut(line, " = ")
		return !slices.Contains(stateKeys, key)
	}
	state := func(o RunOptions) []string {
		return slices.DeleteFunc(linesOf(&o), isOther)
	}
	d.addLines("run", "", state(p.Run), state(q.Run))
	before, after := stepsUntil(a.Steps, do, phase), stepsUntil(b.Steps, do, phase)
	names := []string{a.Settings.Files}
	walk(before, func(s *Step) { names = append(names, s.Files, s.From) })
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if f, g := p.fileSet(name), q.fileSet(name); f != nil && g != nil {
			d.addLines("files", "files "+name, linesOf(f), linesOf(g))
		}
		if f, g := p.input(name), q.input(name); f != nil && g != nil {
			d.addLines("inputs", "input "+name, linesOf(f), linesOf(g))
		}
	}
	d.addSteps(before, after)
	return d
}

// fileSet is the file set of that name, or nil.
func (p *Plan) fileSet(name string) *FileSet {
	return find(p.Files, func(f *FileSet) bool { return f.Name == name })
}

// linesOf are the "key = value" lines of a struct that has a table.
func linesOf[T any](v *T) []string { return tableOf[T]().lines(reflect.ValueOf(v).Elem()) }

// fullText is the canonical text of a setting: of a preference all of it, of a
// band's default its size.
func (k *key) fullText(s *Settings) string {
	if k.name == "filesystem" {
		return strings.Join(s.Filesystems, ", ")
	}
	return canonicalValue(k.name, k.get(s))
}

func (d *differences) add(table, key, of, before, after string) {
	if before == after {
		return
	}
	plain := func(text string) string {
		text = strings.Trim(strings.ReplaceAll(text, `"`, ""), "[]")
		return cmp.Or(text, "not set")
	}
	*d = append(*d, Difference{key, table, of, plain(before), plain(after)})
}

// addLines compares "key = value" lines.
func (d *differences) addLines(table, of string, before, after []string) {
	values, keys := [2]map[string]string{{}, {}}, []string{}
	for i, lines := range [][]string{before, after} {
		for _, line := range lines {
			key, value, _ := strings.Cut(line, " = ")
			values[i][key] = value
			keys = append(keys, key)
		}
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			d.add(table, key, of, values[0][key], values[1][key])
		}
	}
}

// addSteps compares protocols. Between the steps that both have first and last,
// it compares key by key if they have the same kinds of step, else as a whole.
func (d *differences) addSteps(a, b []Step) {
	for len(a) > 0 && len(b) > 0 && a[0].text() == b[0].text() {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].text() == b[len(b)-1].text() {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	isSameKind := func(s, t Step) bool { return s.Do == t.Do && s.Phase == t.Phase }
	if !slices.EqualFunc(a, b, isSameKind) {
		d.add("steps", "steps", "", proseOf(a), proseOf(b))
		return
	}
	for i := range a {
		isInner := func(line string) bool { return strings.HasPrefix(line, "steps = ") }
		name := strings.TrimSpace("step " + a[i].Do + " " + a[i].Phase)
		d.addLines("steps", name, slices.DeleteFunc(a[i].lines(), isInner), slices.DeleteFunc(b[i].lines(), isInner))
		d.addSteps(a[i].Steps, b[i].Steps)
	}
}

// lines are the "key = value" lines of a step.
func (s *Step) lines() []string { return findStepKind(s.Do).table.lines(reflect.ValueOf(s).Elem()) }

func (s *Step) text() string { return strings.Join(s.lines(), "\n") }

// proseOf describes steps in a row, with their phases.
func proseOf(steps []Step) string {
	texts := namesOf(steps, func(s *Step) string {
		return strings.TrimSpace(strings.TrimSuffix(s.Prose(), ":") + " " + s.Phase)
	})
	return cmp.Or(strings.Join(texts, "; "), "no step")
}

// stepsUntil are the steps up to the last one of a kind with a phase, or that
// has such a step in it; all without one.
func stepsUntil(steps []Step, do, phase string) []Step {
	for i := range slices.Backward(steps) {
		found := false
		walk(steps[i:i+1], func(s *Step) { found = found || s.Do == do && s.Phase == phase })
		if found {
			return steps[:i+1]
		}
	}
	return steps
}

// SameClaim reports whether two plans test the claim of an id in the same way. A
// plan that is nil has no claim.
func SameClaim(p, q *Plan, id string) bool {
	if p == nil || q == nil {
		return false
	}
	is := func(c *Claim) bool { return c.ID == id }
	a, b := find(p.Claims, is), find(q.Claims, is)
	return a != nil && b != nil && slices.Equal(linesOf(a), linesOf(b))
}
