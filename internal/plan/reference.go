package plan

import (
	_ "embed"
	"reflect"
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
	r := Reference{Quantities: Quantities, Settings: settingNames(), Tables: map[string][]KeyDoc{
		"plan": rootTable.reference(), "[inputs.NAME]": tables[reflect.TypeFor[Input]()].reference(),
		"[files.NAME]": tables[reflect.TypeFor[FileSet]()].reference(),
		"step":         (&table{name: "step", keys: stepKeys(commonStepKeys(&stepKind{}))}).reference(),
		"steps":        nil, "tests": nil,
	}}
	for _, one := range tables {
		if strings.HasPrefix(one.name, "[") || slices.Contains([]string{"operand", "line"}, one.name) {
			r.Tables[one.name] = one.reference()
		}
	}
	for _, t := range settingTables {
		r.Tables[t.name] = t.reference()
	}
	r.Tables["outcome"] = (&table{name: "outcome", keys: tables[reflect.TypeFor[TableLine]()].key("outcome").inner}).
		reference()
	isTest := func(k KeyDoc) bool { return tables[reflect.TypeFor[Assert]()].key(k.Name) != nil }
	r.Tables["[[claim]]"] = slices.DeleteFunc(r.Tables["[[claim]]"], isTest) // described separately
	for _, row := range docRows["kinds of step"] {
		k := findStepKind(row[0])
		doc := StepDoc{Do: k.do, State: string(k.needs), About: row[1]}
		for _, own := range (&table{name: "step", keys: stepKeys(k.keys)}).reference() {
			doc.Keys = append(doc.Keys, own.Name)
			r.addKey("steps", own)
		}
		r.Steps = append(r.Steps, doc)
	}
	for _, row := range docRows["tests"] {
		t := findTest(row[0])
		operands := map[[2]bool]string{{true, true}: "`left`, `right`",
			{true, false}: "`left`"}[[2]bool{t.left, t.right}]
		r.Tests = append(r.Tests, TestDoc{t.name, operands, row[1]})
		for _, own := range (&table{name: "test", keys: t.key.inner}).reference() {
			if own.Name == "is" {
				own.Type = "see meaning"
			}
			r.addKey("tests", own)
		}
	}
	return r
}

// addKey adds a key to a table unless it has the name.
func (r *Reference) addKey(table string, k KeyDoc) {
	if !slices.ContainsFunc(r.Tables[table], func(have KeyDoc) bool { return have.Name == k.Name }) {
		r.Tables[table] = append(r.Tables[table], k)
	}
}

// reference describes the keys with a meaning of their own; tables are
// described under their headers.
func (t *table) reference() []KeyDoc {
	var out []KeyDoc
	for _, k := range t.keys {
		if k.names != nil || t == rootTable && k.sections != nil {
			continue
		}
		d := KeyDoc{Name: k.name, Type: k.typ}
		if k.value != nil && k.value.words != nil && k.typ == k.value.name {
			d.Type = "`" + strings.Join(k.value.words, "`, `") + "`"
		}
		i := slices.IndexFunc(docRows[t.name], func(row []string) bool { return row[0] == k.name })
		if i >= 0 {
			d.Default, d.About = docRows[t.name][i][1], docRows[t.name][i][2]
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
