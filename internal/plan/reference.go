package plan

import (
	_ "embed"
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
		"plan": rootTable.reference(), "[source]": sourceTable.reference(), "[[manual]]": manualTable.reference(),
		"[inputs.NAME]": inputTable.reference(), "[files.NAME]": fileTable.reference(),
		"[[protocol]]": blockTable.reference(), "[run]": runTable.reference(),
		"[[published]]": publishedTable.reference(),
		"[[claim]]":     claimReference(), "operand": operandTable.reference(), "[[fit]]": fitTable.reference(),
		"[[relation]]": relationTable.reference(), "[[table]]": tableTable.reference(), "line": lineTable.reference(),
		"outcome": outcomeTable.reference(), "[[change]]": changeTable.reference(),
		"step": (&table[Step]{keys: commonStepKeys(nil)}).reference(),
	}}
	for group, t := range settingTables {
		r.Tables["["+group+"]"] = t.reference()
	}
	for _, k := range stepKinds {
		doc := StepDoc{Do: k.do, State: string(k.needs), About: k.about}
		for _, own := range (&table[Step]{keys: k.keys}).reference() {
			doc.Keys = append(doc.Keys, own.Name)
			r.Tables["steps"] = addKey(r.Tables["steps"], own)
		}
		r.Steps = append(r.Steps, doc)
	}
	for _, t := range tests {
		operands := map[[2]bool]string{{true, true}: "`left`, `right`",
			{true, false}: "`left`"}[[2]bool{t.left, t.right}]
		r.Tests = append(r.Tests, TestDoc{t.name, operands, t.example})
		for _, own := range t.inner {
			r.Tables["tests"] = addKey(r.Tables["tests"], own)
		}
	}
	return r
}

// claimReference is the keys of a claim without its test, which is described
// separately.
func claimReference() []KeyDoc {
	return slices.DeleteFunc(claimTable.reference(), func(k KeyDoc) bool { return assertTable.key(k.Name) != nil })
}

// addKey adds a key unless the list has its name.
func addKey(list []KeyDoc, k KeyDoc) []KeyDoc {
	if slices.ContainsFunc(list, func(have KeyDoc) bool { return have.Name == k.Name }) {
		return list
	}
	return append(list, k)
}

// reference describes the keys with a meaning of their own; tables are
// described under their headers.
func (t *table[T]) reference() []KeyDoc {
	var out []KeyDoc
	section := t.name
	switch any(t).(type) {
	case *table[Assert]:
		section = "test" // for all kinds of test
	case *table[Step]:
		section = "step"
	}
	for _, k := range t.keys {
		if k.sections != nil {
			continue
		}
		d := keyDocs[section+" "+k.name]
		d.Name, d.Type = k.name, k.typ
		switch {
		case d.Type == "" && k.value.words != nil:
			d.Type = "`" + strings.Join(k.value.words, "`, `") + "`"
		case d.Type == "":
			d.Type = k.value.name
		}
		switch {
		case d.Default != "":
		case k.required:
			d.Default = "required"
		case k.fallback != "":
			d.Default = "`" + strings.Trim(k.fallback, `"`) + "`"
		}
		out = append(out, d)
	}
	return out
}

// keyTexts describes the keys of all tables.
//
//go:embed keys.md
var keyTexts string

// keyDocs are the rows of keyTexts by table and key.
var keyDocs = func() map[string]KeyDoc {
	out, table := map[string]KeyDoc{}, ""
	for line := range strings.Lines(keyTexts) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "## "); ok {
			table = header
		} else if cells := strings.Split(strings.Trim(line, "| "), " | "); len(cells) > 1 {
			cells = append(strings.SplitN(strings.TrimPrefix(line, "| "), " | ", 3), "", "")
			out[table+" "+cells[0]] = KeyDoc{Default: strings.TrimSpace(cells[1]),
				About: strings.TrimSuffix(cells[2], " |")}
		}
	}
	return out
}()
