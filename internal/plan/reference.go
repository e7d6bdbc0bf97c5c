package plan

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

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
	// Tables: by header, such as "[image]", or by name, such as "operand"
	Tables     map[string][]KeyDoc
	Steps      []StepDoc
	Tests      []TestDoc
	Quantities []QuantityInfo
	// Settings: names of settings
	Settings []string
}

// LanguageReference reads the registries.
func LanguageReference() Reference {
	r := Reference{Quantities: Quantities, Settings: settingNames(), Tables: map[string][]KeyDoc{}}
	for name, keys := range map[string][]key{"plan": rootTable.keys, "[inputs.NAME]": tableOf[Input]().keys,
		"[files.NAME]": tableOf[FileSet]().keys, "outcome": tableOf[TableLine]().key("outcome").inner,
		"step": newKeys[Step](commonStepKeys(&stepKind{})...)} {
		r.Tables[name] = describeKeys(docTables[name], keys)
	}
	for _, t := range slices.AppendSeq(slices.Collect(maps.Values(tables)), maps.Values(settingTables)) {
		if strings.HasPrefix(t.name, "[") || slices.Contains([]string{"operand", "line"}, t.name) {
			r.Tables[t.name] = describeKeys(t.name, t.keys)
		}
	}
	isTest := func(k KeyDoc) bool { return tableOf[Assert]().key(k.Name) != nil }
	r.Tables["[[claim]]"] = slices.DeleteFunc(r.Tables["[[claim]]"], isTest) // described separately
	for _, row := range docRows["kinds of step"] {
		k := findStepKind(row[0])
		keys := newKeys[Step](k.keys...)
		r.Steps = append(r.Steps, StepDoc{k.do, string(k.needs), row[4], (&table{keys: keys}).keyNames()})
		r.addKeys("steps", describeKeys("step", keys))
	}
	for _, row := range docRows["tests"] {
		t := findTest(row[0])
		operands := map[[2]bool]string{{true, true}: "`left`, `right`",
			{true, false}: "`left`"}[[2]bool{t.left, t.right}]
		r.Tests = append(r.Tests, TestDoc{t.name, operands, row[1]})
		r.addKeys("tests", describeKeys("test", t.key.inner))
	}
	return r
}

// docTables are the names in keys.md of tables with another name on the page.
var docTables = map[string]string{"plan": "plan", "[inputs.NAME]": "input", "[files.NAME]": "file set",
	"outcome": "outcome", "step": "step"}

// addKeys adds those keys to a table of which it does not have the name.
func (r *Reference) addKeys(table string, keys []KeyDoc) {
	for _, k := range keys {
		if !slices.ContainsFunc(r.Tables[table], func(have KeyDoc) bool { return have.Name == k.Name }) {
			r.Tables[table] = append(r.Tables[table], k)
		}
	}
}

// describeKeys describes the keys of a table with a meaning of their own, which
// is in keys.md under the name of the table.
func describeKeys(table string, keys []key) (out []KeyDoc) {
	for _, k := range keys {
		if k.hidden || table == "plan" && k.sections != nil { // described together, or under headers of their own
			continue
		}
		d := KeyDoc{Name: k.name, Type: k.typ}
		switch {
		case table == "test" && k.name == "is":
			d.Type = "see meaning"
		case k.value != nil && k.value.words != nil && k.typ == k.value.name:
			d.Type = "`" + strings.Join(k.value.words, "`, `") + "`"
		}
		i := slices.IndexFunc(docRows[table], func(row []string) bool { return row[0] == k.name })
		if i >= 0 {
			d.Default, d.About = docRows[table][i][1], docRows[table][i][2]
		}
		switch {
		case d.Default != "":
		case k.required:
			d.Default = "required"
		case k.fallback != nil && k.fallback.kind != tableNode:
			d.Default = "`" + k.fallback.text + "`"
		}
		out = append(out, d)
	}
	return out
}

// keyTexts has the quantities and the meanings of keys, steps and tests.
//
//go:embed keys.md
var keyTexts string

// docRows are the rows of the tables of keyTexts, by their headers.
var docRows = func() map[string][][]string {
	out, header := map[string][][]string{}, ""
	for line := range strings.Lines(keyTexts) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			header = name
		} else if row, ok := strings.CutPrefix(line, "| "); ok {
			cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			out[header] = append(out[header], cells)
		}
	}
	for header := range out {
		out[header] = out[header][1:] // without the names of the columns
	}
	return out
}()

// schema is the JSON Schema of a table.
func (t *table) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, k := range t.keys {
		s := maps.Clone(k.json())
		switch {
		case k.fallback == nil:
		case k.value == nil:
			s["default"] = map[string]any{}
		case k.value.node == stringNode:
			s["default"] = k.fallback.text
		default:
			s["default"] = k.value.of(k.fallback.text)
		}
		if k.required {
			required = append(required, k.name)
		}
		properties[k.name] = s
	}
	out := objectSchema(properties, false)
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// schemaReference is the JSON Schema of a value that $defs describes.
func schemaReference(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

// objectSchema describes a table; additional is false, or the schema of all
// other keys.
func objectSchema(properties map[string]any, additional any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": additional}
}

// settingsSchema describes a table that has settings as keys; form makes the
// schema of a key from that of its value.
func settingsSchema(form func(value map[string]any) map[string]any, more map[string]any,
	additional any) map[string]any {
	properties := map[string]any{}
	for _, s := range settings {
		properties[s.name] = form(s.value.json)
	}
	maps.Copy(properties, more)
	return objectSchema(properties, additional)
}

// oneOrMany is a value or a list of values.
func oneOrMany(item map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{item, map[string]any{"type": "array", "minItems": 1, "items": item}}}
}

// JSONSchema describes the plan language as JSON Schema (draft 2020-12) over
// the JSON that a TOML plan becomes; dates become text. Conditions between keys
// (a phase that does not exist, a file that cannot fit) are beyond it: Parse
// checks them.
func JSONSchema() []byte {
	selector := map[string]any{"baseline": flagKind.json, "format": oneOrMany(anyFormat.json)}
	for _, k := range sampleKinds {
		selector[k.name] = oneOrMany(k.value.json)
	}
	var steps []any // each kind of step has a shape of its own
	for _, k := range stepKinds {
		shape := k.table.schema()
		shape["properties"].(map[string]any)["do"] = map[string]any{"const": k.do}
		steps = append(steps, shape)
	}
	defs := map[string]any{
		"figure":   map[string]any{"type": []string{"string", "number"}},
		"selector": settingsSchema(oneOrMany, selector, oneOrMany(looseKind.json)), // manual axes are keys as well
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
