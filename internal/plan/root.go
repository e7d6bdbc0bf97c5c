package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/system/units"
)

// codecs are those that tags name, codecsOfTypes those of Go types without such
// a name.
var (
	codecs        map[string]func() codec
	codecsOfTypes map[reflect.Type]func() codec
)

// rootTable is the plan as a whole, in the order of the canonical form.
var rootTable *table

// init fills the registries, in the order of the references between them.
func init() {
	readStepKinds()
	readQuantities()
	quantities := namesOf(Quantities, func(q *QuantityInfo) string { return string(q.Name) })
	kinds["bound"].name = "bound"
	maps.Copy(kinds, map[string]*kind{"do": enum(stepNames(nil)...), "quantities": enum(quantities...)})
	codecs = map[string]func() codec{
		"matrix": matrixCodec, "cases": caseCodec, "published": publishedCodec,
		"inputs":       func() codec { return namedCodec[Input]("inputs") },
		"files":        func() codec { return namedCodec[FileSet]("files") },
		"figure":       func() codec { return figureCodec("1", "B", "s", "B/s", "1/s") },
		"coefficients": coefficientsCodec, "require": requireCodec, "exact": exactFilesystem,
		"outcome": outcomeCodec, "line-where": lineWhereCodec,
		"cases-selector": func() codec { return selectorCodec(selectorKeys) },
	}
	codecsOfTypes = map[reflect.Type]func() codec{
		reflect.TypeFor[Selector](): func() codec { return selectorCodec(allKeys) },
		reflect.TypeFor[Step]():     stepCodec,
	}
	for i := range stepKinds {
		k := &stepKinds[i]
		k.table = &table{name: k.do, keys: newKeys[Step](append(commonStepKeys(k), k.keys...)...)}
		if k.finish != nil {
			k.table.finish = func(r *reader, n *node, v reflect.Value) {
				if !slices.ContainsFunc(n.pairs, func(p *node) bool { return p.invalid }) { // its conditions would not hold either
					k.finish(r, n, v.Addr().Interface().(*Step))
				}
			}
		}
	}
	addSettings()
	addTable[On]("on", nil)
	addTable[Source]("[source]", nil)
	addTable("[[manual]]", finishManual)
	addTable[PlaceNote]("[[place]]", nil)
	addTable("input", finishInput)
	addTable("part", finishPart)
	addTable("tree", finishTree)
	addTable("file set", finishFiles).form = fileForm
	addTable[Block]("[[protocol]]", nil)
	addTable("[run]", finishRun).form = runForm
	values := quantityKeys("Value", func(q Quantity) codec { return figureCodec(q.Unit()) })
	selections := quantityKeys("Where", func(Quantity) codec { return selectorCodec(allKeys) })
	figures, operands := addTable[Published]("[[published]]", nil), addTable("operand", finishOperand)
	figures.keys = append(figures.keys, values...)
	operands.keys = append(selections, operands.keys...)
	addTests()
	addTable("[[claim]]", finishClaim)
	addTable("[[fit]]", finishFit)
	addTable[Relation]("[[relation]]", nil)
	lines := addTable("line", finishLine)
	lines.keys = slices.Concat(newKeys[TableLine](lineKeys[0]...), selections, newKeys[TableLine](lineKeys[1]...))
	addTable[Table]("[[table]]", nil)
	addTable[Candidate]("candidate", nil)
	addTable("criterion", finishCriterion)
	addTable[Advice]("advice", nil)
	addTable[Use]("[[use]]", nil)
	addTable[Change]("[[change]]", nil)
	rootTable = addTable("plan", func(_ *reader, _ *node, p *Plan) {
		if p.Defaults.Files == "" && len(p.Files) == 1 {
			p.Defaults.Files = p.Files[0].Name
		}
	})
}

// Parse reads the text of a plan. name is its file, for messages, and names the
// plan. All findings come back at once; the plan is nil if any is an error, and
// problems is nil if there are no findings.
func Parse(name string, text []byte) (*Plan, *Problems) {
	if len(text) > MaxSize {
		r := newReader(name, nil)
		r.problem(0, "", "%s", tooLarge(int64(len(text))))
		return nil, r.problems()
	}
	r, p := newReader(name, text), &Plan{Name: strings.TrimSuffix(filepath.Base(name), ".toml")}
	if root := r.parseTree(); !r.broken {
		for _, it := range root.at("manual").items { // selectors anywhere may name them
			if n := it.get("name"); n != nil && n.kind == stringNode {
				r.manual = append(r.manual, valueKey(n.text, looseKind))
			}
		}
		rootTable.read(r, root, reflect.ValueOf(p).Elem())
		r.check(root, p)
	}
	problems := r.problems()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// PlaceOf is where a text has the value of a path of keys and indexes, or the
// deepest part of it that exists.
func PlaceOf(text []byte, path ...any) (line, column int) {
	r := newReader("", text)
	return r.place(r.parseTree().at(path...).off)
}

// MaxSize is the largest plan that is read, in bytes.
const MaxSize = 1 << 20

// Load reads the plan in a file. Whatever is wrong with its text comes back as
// *Problems; a file that cannot be read as another error. Only regular
// files are read, and none larger than MaxSize.
func Load(path string) (*Plan, error) {
	p, _, err := LoadAll(path)
	return p, err
}

// LoadAll is Load that also gives the warnings of a plan that can be run.
func LoadAll(path string) (*Plan, []Problem, error) {
	var text []byte
	info, err := os.Stat(path) // before opening: a FIFO would wait for a writer
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("it is a directory, want a TOML file")
	case !info.Mode().IsRegular():
		err = fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	case info.Size() > MaxSize:
		err = tooLarge(info.Size())
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err // the path is named once
		}
		return nil, nil, fmt.Errorf("reading plan %q: %w", path, err)
	}
	p, problems := Parse(path, text)
	if len(problems.Errors()) > 0 {
		return nil, nil, problems
	}
	return p, problems.Warnings(), nil
}

// tooLarge is the error for a text of n bytes.
func tooLarge(n int64) error {
	return fmt.Errorf("it holds %d bytes, plans are at most %d", n, MaxSize)
}

// namedCodec is a list of structs from tables [key.NAME].
func namedCodec[U any](key string) codec {
	t := tableCodec(tableOf[U]())
	return codec{typ: "tables by name",
		decode: func(r *reader, n *node, v reflect.Value) {
			if n.kind != tableNode {
				r.bad(n, "%s: want tables [%s.NAME], this is %s", key, key, n.kind)
			}
			for _, it := range n.pairs {
				if !nameRule.MatchString(it.name) {
					r.badKey(it, "%s: %q is not a name", key, it.name).hintf("want %s", nameWords)
				}
				one := reflect.New(v.Type().Elem()).Elem()
				t.decode(r, it, one)
				one.FieldByName("Name").SetString(it.name)
				v.Set(reflect.Append(v, one))
			}
		},
		sections: func(_ string, v reflect.Value) (out []section) {
			for i := range v.Len() {
				name := tomlKey(v.Index(i).FieldByName("Name").String())
				out = append(out, t.sections(key+"."+name, v.Index(i))...)
			}
			return out
		},
		json: func() map[string]any { return map[string]any{"type": "object", "additionalProperties": t.json()} }}
}

// matrixCodec is the axes and the cells that are excluded from their product.
func matrixCodec() codec {
	exclude := listCodec(selectorCodec(selectorKeys), 0, 0)
	return codec{typ: "table", whole: true,
		decode: func(r *reader, n *node, v reflect.Value) {
			axes := *n
			if cells := n.get("exclude"); cells != nil {
				exclude.decode(r, cells, v.FieldByName("Exclude"))
				axes.pairs = slices.DeleteFunc(slices.Clone(n.pairs), func(p *node) bool { return p == cells })
			}
			v.FieldByName("Axes").Set(reflect.ValueOf([]Axis(r.choices(&axes, settings, true))))
		},
		sections: func(_ string, v reflect.Value) []section {
			var lines []string
			for _, a := range v.Interface().(Plan).Axes {
				lines = append(lines, a.Key+" = ["+a.valuesTOML()+"]")
			}
			if cells := v.Interface().(Plan).Exclude; len(cells) > 0 {
				out := "exclude = [\n"
				for _, s := range cells {
					out += "  " + s.toml() + ",\n"
				}
				lines = append(lines, out+"]")
			}
			if len(lines) == 0 {
				return nil
			}
			return []section{{"[matrix]", lines}}
		},
		json: func() map[string]any {
			out := keysSchema(settings, true, false)
			out["properties"].(map[string]any)["exclude"] = exclude.json()
			return out
		}}
}

// caseCodec is a list of [[case]] tables: one value for each key.
func caseCodec() codec {
	return listCodec(codec{typ: "table",
		decode: func(r *reader, n *node, v reflect.Value) {
			v.Set(reflect.ValueOf(r.choices(n, slices.Concat(settings, r.manual), false)))
		},
		json: func() map[string]any { return keysSchema(settings, false, looseKind.json) },
		sections: func(_ string, v reflect.Value) []section {
			return []section{{"[[case]]", v.Interface().(Selector).lines()}}
		}}, 0, 0)
}

// finishManual refuses names that are keys of selectors already.
func finishManual(r *reader, n *node, m *Manual) {
	if keyNamed(allKeys, m.Name) != nil || m.Name == "exclude" || m.Name == "do" {
		r.bad(n.get("name"), "a manual axis cannot be called %q, which is another key", m.Name)
	}
}

// finishInput refuses inputs that could not be made in place of a missing one.
func finishInput(r *reader, n *node, i *Input) {
	if i.Optional && n.get("size") == nil {
		r.badKey(n, "input %q is optional and has no size", n.name).hintf("a generated file of that size replaces it")
	}
}

// Canonical writes the plan with every default filled in and in one fixed
// order: two plans with the same meaning have the same canonical form, and
// reading it gives the plan back (but for the places of steps).
func (p *Plan) Canonical() []byte {
	var lines []string
	v := reflect.ValueOf(p).Elem()
	for _, k := range rootTable.keys {
		switch at := reflect.Indirect(k.in(v)); {
		case k.sections == nil:
			lines = append(lines, (&table{keys: []key{k}}).lines(v)...)
		case at.IsValid(): // of no [source] it is not
			for _, s := range k.sections(k.name, at) {
				lines = slices.Concat(lines, []string{"", s.header}, s.lines)
			}
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// Digest is the SHA-256 of the canonical form in hexadecimal.
func (p *Plan) Digest() string { return hexSum(p.Canonical()) }

// Is reports whether text, from which p was read, is the plan with this digest:
// by its meaning, or byte for byte. The latter are plans that an earlier
// version wrote into run folders, when the canonical form had fewer keys:
// changes of the plan language are additive.
func (p *Plan) Is(digest string, text []byte) bool {
	return p.Digest() == digest || hexSum(text) == digest
}

// hexSum is the SHA-256 of a text in hexadecimal.
func hexSum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// auto is the value of rounds that lets the run choose their number.
const auto = "auto"

// Defaults and limits of rounds = "auto".
const (
	autoPrecision = units.Share(0.05)
	autoRounds    = 30
	maxRounds     = 10000 // as the tags of [RunOptions] have it
)

// Steady is the value of precondition that writes to places until their rate is
// steady.
const Steady = "steady"

// AtMost is the largest number of rounds that a run can have.
func (o RunOptions) AtMost() int {
	if o.Auto {
		return o.MaxRounds
	}
	return max(o.Rounds, 1)
}

// RoundsText is the number of rounds in words: "3 rounds" or "5 to 30 rounds".
func (o RunOptions) RoundsText() string {
	text := units.Count(o.AtMost(), "round")
	if o.Auto && o.Rounds < o.MaxRounds {
		return fmt.Sprintf("%d to %s", o.Rounds, text)
	}
	return text
}

// setAuto lets the run choose the number of rounds, with defaults for the
// limits that are not given.
func (o *RunOptions) setAuto() {
	o.Auto = true
	o.Precision = cmp.Or(o.Precision, autoPrecision)
	o.MaxRounds = cmp.Or(o.MaxRounds, autoRounds)
	o.Rounds = stats.Looks(o.MaxRounds)[0]
}

// setSteady turns preconditioning on, with defaults for what is not given. The
// limit is that of fio's own examples of steadystate=bw_slope.
func (o *RunOptions) setSteady() {
	o.Precondition = Steady
	o.SteadyWindow = cmp.Or(o.SteadyWindow, 20)
	o.SteadyLimit = cmp.Or(o.SteadyLimit, 0.003)
	o.SteadyFile = cmp.Or(o.SteadyFile, 256_000_000)
	o.SteadyTime = cmp.Or(o.SteadyTime, 600e9)
	o.SteadyWritten = cmp.Or(o.SteadyWritten, 100_000_000_000)
}

// runForm is [run] as the canonical form writes it: rounds = "auto" is 0.
func runForm(v reflect.Value) reflect.Value {
	o := v.Interface().(RunOptions)
	if o.Auto {
		o.Rounds = 0
	}
	return reflect.ValueOf(o)
}

// requirements are the host facts that a plan may require, with their kinds as
// tags name them.
var requirements = [][2]string{
	{"power", "ac|battery"}, {"low_power", "off|on"}, {"thermal", "nominal|"}, {"os", "macos|linux"},
	{"memory_pressure", "normal|"}, {"virtual", "no|yes"}, {"translated", "no|yes"}, {"busy", "no|"},
	{"medium", "ssd|hdd|memory"}, {"location", "internal|external"}, {"cpus", "1..4096"}, {"memory", "size"},
}

// requireCodec is the table of requirements. Its canonical form keeps the order
// in which the plan has them.
func requireCodec() codec {
	var facts []key
	for _, row := range requirements {
		facts = append(facts, valueKey(row[0], findKind(row[1], nil)))
	}
	return codec{typ: "table",
		decode: func(r *reader, n *node, v reflect.Value) {
			for _, c := range r.choices(n, facts, false) {
				v.Set(reflect.Append(v, reflect.ValueOf(KeyValue{c.Key, c.Values[0]})))
			}
		},
		encode: func(v reflect.Value) (string, bool) {
			var lines []string
			for _, kv := range v.Interface().([]KeyValue) {
				lines = append(lines, kv.Key+" = "+keyNamed(facts, kv.Key).value.toml(kv.Value))
			}
			return inlineOf(lines), len(lines) > 0
		},
		json: func() map[string]any { return keysSchema(facts, false, false) }}
}

var estimators = []string{"aggregate", "mean", "median", "trimmed", "theil-sen", "least-squares", "weighted"}

// finishRun fills in what rounds = "auto" and precondition = "steady" need, and
// refuses their limits without them.
func finishRun(r *reader, n *node, o *RunOptions) {
	if n.at("rounds").text == auto {
		o.setAuto()
	} else {
		r.refuseKeys(n, `rounds = "auto"`, "max_rounds", "max_time", "max_written")
	}
	if o.Precondition == Steady {
		o.setSteady()
	} else {
		o.Precondition = ""
		r.refuseKeys(n, `precondition = "steady"`, "steady_window", "steady_limit", "steady_file", "steady_max_time",
			"steady_max_written")
	}
	if at := n.get("fits_in"); at != nil && (o.FitsIn > 1 || o.FitsIn == 0) {
		r.bad(at, "fits_in: want more than 0%% and at most 100%%")
	}
}

// refuseKeys reports keys that have a meaning only with another one.
func (r *reader) refuseKeys(n *node, with string, names ...string) {
	for _, name := range names {
		if at := n.get(name); at != nil {
			r.badKey(at, `[run]: %q needs %s`, name, with).hintf(`write %s, or remove it`, with)
		}
	}
}

// LanguageReference reads the registries.
func LanguageReference() Reference {
	r := Reference{Quantities: Quantities, Settings: keyNames(settings), Tables: map[string][]KeyDoc{}}
	for _, t := range tables {
		if docRows[t.name] != nil {
			r.describe(t.name, t.name, t.keys)
		}
	}
	r.describe("outcome", "outcome", keyNamed(tableOf[TableLine]().keys, "outcome").inner)
	r.describe("step", "step", newKeys[Step](commonStepKeys(&stepKind{})...))
	for _, row := range docRows["kinds of step"] {
		k := findStepKind(row[0])
		keys := newKeys[Step](k.keys...)
		r.Steps = append(r.Steps, StepDoc{k.do, string(k.needs), row[4], keyNames(keys)})
		r.describe("steps", "step", keys)
	}
	for i, row := range docRows["tests"] {
		r.Tests = append(r.Tests, TestDoc{row[0], row[1], row[3]})
		r.describe("tests", "test", tests[i].key.inner)
	}
	return r
}

// describe adds the keys that a table of the page does not have and that have a
// meaning of their own, which is in keys.md under a header.
func (r *Reference) describe(table, header string, keys []key) {
	for _, k := range keys {
		has := slices.ContainsFunc(r.Tables[table], func(have KeyDoc) bool { return have.Name == k.name })
		if has || k.hidden || table == "plan" && k.sections != nil { // described under headers of their own
			continue
		}
		d := KeyDoc{Name: k.name, Type: k.typ}
		switch {
		case header == "test" && k.name == "is":
			d.Type = "see meaning"
		case k.value != nil && k.value.words != nil && k.typ == k.value.name:
			d.Type = "`" + strings.Join(k.value.words, "`, `") + "`"
		}
		if row := find(docRows[header], func(row *[]string) bool { return (*row)[0] == k.name }); row != nil {
			d.Default, d.About = (*row)[1], (*row)[2]
		}
		switch {
		case d.Default != "":
		case k.required:
			d.Default = "required"
		case k.fallback != nil && k.fallback.kind != tableNode:
			d.Default = "`" + k.fallback.text + "`"
		}
		r.Tables[table] = append(r.Tables[table], d)
	}
}

// JSONSchema describes the plan language as JSON Schema (draft 2020-12) over
// the JSON that a TOML plan becomes; dates become text. Conditions between keys
// (a phase that does not exist, a file that cannot fit) are beyond it: Parse
// checks them.
func JSONSchema() []byte {
	var steps []any // each kind of step has a shape of its own
	for _, k := range stepKinds {
		shape := k.table.schema()
		shape["properties"].(map[string]any)["do"] = map[string]any{"const": k.do}
		steps = append(steps, shape)
	}
	defs := map[string]any{
		"figure":   map[string]any{"type": []string{"string", "number"}},
		"selector": keysSchema(allKeys, true, listCodec(kindCodec(looseKind), 1, 0).json()),
		"step":     map[string]any{"oneOf": steps},
	}
	for _, t := range tables {
		if slices.Contains(sharedTables, t.name) {
			defs[t.name] = t.schema()
		}
	}
	root := rootTable.schema()
	maps.Copy(root, map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title": "dmgbench plan", "$defs": defs})
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("the plan schema consists of plain values: " + err.Error())
	}
	return append(out, '\n')
}

// KeyDoc describes one key of the plan language, in Markdown.
type KeyDoc struct{ Name, Type, Default, About string }

// StepDoc describes one kind of step: the state that it needs, and the keys
// that only some kinds have.
type StepDoc struct {
	Do, State, About string
	Keys             []string
}

// TestDoc describes one kind of test inside a claim.
type TestDoc struct{ Name, Operands, Example string }

// Reference is the plan language as its registries declare it, for
// docs/plan-language.md.
type Reference struct {
	// Tables: by their headers in keys.md, and "steps" and "tests"
	Tables     map[string][]KeyDoc
	Steps      []StepDoc
	Tests      []TestDoc
	Quantities []QuantityInfo
	// Settings: names of settings
	Settings []string
}

// check reports what is wrong between the parts of a plan. Parts in which
// decoding found errors are not checked, since further findings there would
// follow from these errors.
func (r *reader) check(root *node, p *Plan) {
	c := &checker{reader: r, root: root, p: p, once: map[string]bool{}}
	if c.isValid("matrix", "case", "manual", "target", "image", "io", "stream") {
		if !c.checkCases() {
			return
		}
		c.whole = c.isValid("protocol", "files", "inputs") && len(p.Changes) == 0
	}
	for _, part := range []string{"manual", "fit", "relation", "table", "use"} {
		seen := map[string]bool{}
		for i := range root.at(part).items {
			name := root.at(part, i, "name")
			if name.kind == stringNode && seen[name.text] {
				c.bad(name, "the %s %q is given twice", part, name.text)
			}
			seen[name.text] = true
		}
	}
	if c.isValid("files") {
		c.checkFileSizes()
	}
	c.checkPublished()
	c.checkFits()
	c.checkClaims()
	c.checkRelations()
	c.checkTables()
	c.checkUses()
}
