package plan

import (
	"encoding/json"
	"strconv"
	"strings"
)

// schema is the JSON Schema of a table.
func (t *table[T]) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, k := range t.keys {
		s := map[string]any{}
		for name, v := range k.json() {
			s[name] = v
		}
		if k.fallback != "" {
			if d := jsonOf(constant(k.fallback)); d != nil {
				s["default"] = d
			}
		}
		properties[k.name] = s
		if k.required {
			required = append(required, k.name)
		}
	}
	var additional any = false
	if t.otherJSON != nil {
		more, rest := t.otherJSON()
		for name, v := range more {
			properties[name] = v
		}
		additional = rest
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": additional}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// jsonOf is a TOML value as JSON holds it; dates become text.
func jsonOf(n *node) any {
	switch n.kind {
	case stringNode, dateNode, timeNode:
		return n.text
	case intNode:
		v, _ := strconv.ParseInt(n.text, 0, 64)
		return v
	case floatNode:
		v, _ := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
		return v
	case boolNode:
		return n.text == "true"
	case arrayNode:
		out := make([]any, len(n.items))
		for i, it := range n.items {
			out[i] = jsonOf(it)
		}
		return out
	}
	out := map[string]any{}
	for _, p := range n.pairs {
		out[p.name] = jsonOf(p)
	}
	return out
}

// matrixJSON describes the axes.
func matrixJSON() map[string]any {
	properties := map[string]any{"exclude": map[string]any{"type": "array",
		"items": map[string]any{"$ref": "#/$defs/selector"}}}
	for _, s := range settingKeys {
		properties[s.name] = map[string]any{"type": "array", "minItems": 1, "uniqueItems": true, "items": s.value.json}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// extraJSON describes [[case]]; manual axes are keys as well.
func extraJSON() map[string]any {
	properties := map[string]any{}
	for _, s := range settingKeys {
		properties[s.name] = s.value.json
	}
	return map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "properties": properties, "additionalProperties": looseType.json}}
}

// oneOrMany is a value or a list of values.
func oneOrMany(item map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{item, map[string]any{"type": "array", "minItems": 1, "items": item}}}
}

func selectorJSON() map[string]any {
	properties := map[string]any{"baseline": flagType.json}
	for _, s := range settingKeys {
		properties[s.name] = oneOrMany(s.value.json)
	}
	properties["format"] = oneOrMany(anyFormatType.json)
	for _, k := range sampleKeys {
		properties[k.name] = oneOrMany(k.value.json)
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": oneOrMany(looseType.json)}
}

// stepJSON is one shape for each kind of step.
func stepJSON() map[string]any {
	var shapes []any
	for i := range stepKindList {
		shape := stepTable(&stepKindList[i]).schema()
		shape["properties"].(map[string]any)["do"] = map[string]any{"const": stepKindList[i].do}
		shapes = append(shapes, shape)
	}
	return map[string]any{"oneOf": shapes}
}

// JSONSchema describes the plan language as JSON Schema (draft 2020-12) over the
// JSON that a TOML plan becomes; dates become text. It is made of the same table
// of keys that decodes plans. Conditions between keys (a phase that does not
// exist, a file that cannot fit) is beyond it: Parse checks that.
func JSONSchema() []byte {
	root := rootTable.schema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "dmgbench plan"
	root["$defs"] = map[string]any{
		"figure":   map[string]any{"type": []string{"string", "number"}},
		"selector": selectorJSON(),
		"operand":  operandTable.schema(),
		"line":     lineTable.schema(),
		"test":     assertTable.schema(),
		"step":     stepJSON(),
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("the plan schema is made of plain values: " + err.Error())
	}
	return append(out, '\n')
}
