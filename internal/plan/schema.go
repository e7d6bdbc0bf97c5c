package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
)

// schema is the JSON Schema of a table.
func (t *table) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, k := range t.keys {
		s := maps.Clone(k.json())
		if k.fallback != nil {
			s["default"] = jsonDefault(k.fallback)
		}
		if k.required {
			required = append(required, k.name)
		}
		if k.names == nil {
			properties[k.name] = s
		}
		for _, name := range k.names {
			properties[name] = s
		}
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

// jsonDefault is the default of a key as JSON has it.
func jsonDefault(n *node) any {
	switch n.kind {
	case intNode:
		v, _ := strconv.Atoi(n.text)
		return v
	case boolNode:
		return n.text == "true"
	case tableNode:
		return map[string]any{}
	}
	return n.text
}

// settingsSchema describes a table that has settings as keys.
func settingsSchema(value func(s *setting) map[string]any, more map[string]any, additional any) map[string]any {
	properties := map[string]any{}
	for i := range settings {
		properties[settings[i].name] = value(&settings[i])
	}
	maps.Copy(properties, more)
	return objectSchema(properties, additional)
}

// oneOrMany is a value or a list of values.
func oneOrMany(item map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{item, map[string]any{"type": "array", "minItems": 1, "items": item}}}
}

// selectorSchema describes selectors; manual axes are keys as well.
func selectorSchema() map[string]any {
	more := map[string]any{"baseline": flagKind.json, "format": oneOrMany(anyFormat.json)}
	for _, k := range sampleKeys {
		more[k.name] = oneOrMany(k.value.json)
	}
	return settingsSchema(func(s *setting) map[string]any { return oneOrMany(s.value.json) }, more,
		oneOrMany(looseKind.json))
}

// stepSchema has one shape for each kind of step.
func stepSchema() map[string]any {
	var shapes []any
	for i := range stepKinds {
		shape := stepKinds[i].table.schema()
		shape["properties"].(map[string]any)["do"] = map[string]any{"const": stepKinds[i].do}
		shapes = append(shapes, shape)
	}
	return map[string]any{"oneOf": shapes}
}

// JSONSchema describes the plan language as JSON Schema (draft 2020-12) over
// the JSON that a TOML plan becomes; dates become text. Conditions between keys
// (a phase that does not exist, a file that cannot fit) are beyond it: Parse
// checks them.
func JSONSchema() []byte {
	root := rootTable.schema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "dmgbench plan"
	root["$defs"] = map[string]any{
		"figure":   map[string]any{"type": []string{"string", "number"}},
		"selector": selectorSchema(),
		"operand":  tables[reflect.TypeFor[Operand]()].schema(),
		"line":     tables[reflect.TypeFor[TableLine]()].schema(),
		"test":     tables[reflect.TypeFor[Assert]()].schema(),
		"step":     stepSchema(),
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("the plan schema consists of plain values: " + err.Error())
	}
	return append(out, '\n')
}
