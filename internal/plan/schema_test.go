package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func resolvedSchema(t testing.TB) *jsonschema.Resolved {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(JSONSchema(), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	return resolved
}

// asJSON is a TOML plan as the schema sees it.
func asJSON(t testing.TB, text []byte) any {
	r := newReader("plan.toml", text)
	root := r.parseTree()
	require.False(t, r.broken)
	raw, err := json.Marshal(jsonOf(root))
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// jsonOf is a TOML value as JSON has it; dates become text.
func jsonOf(n *node) any {
	switch n.kind {
	case intNode:
		v, _ := strconv.ParseInt(n.text, 0, 64)
		return v
	case floatNode:
		v, _ := strconv.ParseFloat(numberToken(n), 64)
		return v
	case boolNode:
		return n.text == "true"
	case arrayNode:
		out := make([]any, len(n.items))
		for i, it := range n.items {
			out[i] = jsonOf(it)
		}
		return out
	case tableNode:
		out := map[string]any{}
		for _, p := range n.pairs {
			out[p.name] = jsonOf(p)
		}
		return out
	}
	return n.text
}

// TestSchemaAccepts: what Parse accepts, and its canonical form, satisfy the schema.
func TestSchemaAccepts(t *testing.T) {
	resolved := resolvedSchema(t)
	for _, dir := range []string{"testdata/good", "../../plans"} {
		files, err := filepath.Glob(dir + "/*.toml")
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			p, problems := Parse(file, text)
			require.Empty(t, problems.Errors())
			assert.NoError(t, resolved.Validate(asJSON(t, text)), file)
			assert.NoError(t, resolved.Validate(asJSON(t, p.Canonical())), file)
		}
	}
}

// TestSchemaRefuses: mistakes of single keys do not satisfy it.
func TestSchemaRefuses(t *testing.T) {
	resolved := resolvedSchema(t)
	for _, name := range []string{"unknown-key", "wrong-type", "bad-enum", "out-of-range", "missing-keys", "step-keys", "schema-version"} {
		text, err := os.ReadFile("testdata/broken/" + name + ".toml")
		require.NoError(t, err)
		assert.Error(t, resolved.Validate(asJSON(t, text)), name)
	}
}
