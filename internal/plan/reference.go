package plan

import (
	"slices"
	"strings"
)

// KeyDoc describes one key of the plan language, in Markdown.
type KeyDoc struct{ Name, Type, Default, About string }

// StepDoc describes one kind of step: the state that it needs, and the keys that only some kinds have.
type StepDoc struct {
	Do, State, About string
	Keys             []string
}

// TestDoc describes one kind of test inside a claim.
type TestDoc struct{ Name, Operands, Example string }

// Reference is the plan language as its registries declare it, for docs/plan-language.md.
type Reference struct {
	Tables     map[string][]KeyDoc // by header, such as "[image]", or by name, such as "operand"
	Steps      []StepDoc
	Tests      []TestDoc
	Quantities []QuantityInfo
	Settings   []string // names of settings
}

// LanguageReference reads the registries.
func LanguageReference() Reference {
	r := Reference{Quantities: Quantities, Settings: settingNames(), Tables: map[string][]KeyDoc{
		"plan": rootTable.reference(), "[source]": sourceTable.reference(), "[[manual]]": manualTable.reference(),
		"[inputs.NAME]": inputTable.reference(), "[files.NAME]": fileTable.reference(),
		"[[protocol]]": blockTable.reference(), "[run]": runTable.reference(), "[[published]]": publishedTable.reference(),
		"[[claim]]": claimReference(), "operand": operandTable.reference(), "[[fit]]": fitTable.reference(),
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
		operands := map[[2]bool]string{{true, true}: "`left`, `right`", {true, false}: "`left`"}[[2]bool{t.left, t.right}]
		r.Tests = append(r.Tests, TestDoc{t.name, operands, t.example})
		for _, own := range t.inner {
			r.Tables["tests"] = addKey(r.Tables["tests"], own)
		}
	}
	return r
}

// claimReference is the keys of a claim without its test, which is described separately.
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

// reference describes the keys with a meaning of their own; tables are described under their headers.
func (t *table[T]) reference() []KeyDoc {
	var out []KeyDoc
	for _, k := range t.keys {
		if k.sections != nil {
			continue
		}
		d := KeyDoc{Name: k.name, Type: k.typ, Default: k.unset, About: k.about}
		switch {
		case d.Type == "" && k.value.words != nil:
			d.Type = "`" + strings.Join(k.value.words, "`, `") + "`"
		case d.Type == "":
			d.Type = k.value.name
		}
		switch {
		case k.unset != "":
		case k.required:
			d.Default = "required"
		case k.fallback != "":
			d.Default = "`" + strings.Trim(k.fallback, `"`) + "`"
		}
		out = append(out, d)
	}
	return out
}
