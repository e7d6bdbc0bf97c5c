package result

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(JSONSchema(), &s))
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	return r
}

// instance is a result as any JSON reader sees it.
func instance(t require.TestingT, r *Result) map[string]any {
	b, err := r.MarshalIndent()
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

func TestSchemaAcceptsResults(t *testing.T) {
	s := resolved(t)
	folded, err := Fold(begin(1, "a").whole("a", 1).read(t))
	require.NoError(t, err)
	require.NoError(t, s.Validate(instance(t, folded)))
	require.NoError(t, s.Validate(instance(t, goldenResult())))
	rapid.Check(t, func(rt *rapid.T) {
		r := randomOf[Result](rt)
		r.Schema, r.Status = SchemaVersion, Done
		for i := range r.Sessions {
			r.Sessions[i].End = Clean
		}
		if r.Auto != nil {
			for i := range r.Auto.Decisions {
				r.Auto.Decisions[i].Stop = StopWritten
			}
		}
		for i := range r.Cases {
			r.Cases[i].Status = Failed
			for j := range r.Cases[i].Rounds {
				r.Cases[i].Rounds[j].Status = Discarded
			}
		}
		for i := range r.Claims {
			r.Claims[i].Verdict = Holds
		}
		for i := range r.Uses {
			r.Uses[i].Choice = ChosenEqual
			for j := range r.Uses[i].Advice {
				r.Uses[i].Advice[j].Verdict = DoesNotHold
			}
		}
		require.NoError(rt, s.Validate(instance(rt, &r)))
	})
}

func TestSchemaDescribesItsProperties(t *testing.T) {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(JSONSchema(), &s))
	for _, name := range []string{"run", "cases", "summaries", "sources"} {
		require.Contains(t, s.Properties, name)
		assert.NotEmpty(t, s.Properties[name].Description, name)
	}
	assert.NotEmpty(t, s.Properties["cases"].Items.Properties["reason"].Description, "of a case")
}

// A type that JSON cannot write has no schema.
func TestSchemaOfAnImpossibleTypeFails(t *testing.T) {
	_, err := SchemaOf[struct {
		Do func() `json:"do"`
	}]("title", "description", "", nil)
	require.Error(t, err)
}

func TestSchemaAllowsAdditionsAndNothingElse(t *testing.T) {
	s := resolved(t)
	first := func(v map[string]any, key string) map[string]any { return v[key].([]any)[0].(map[string]any) }
	for name, c := range map[string]struct {
		change func(v map[string]any)
		ok     bool
	}{
		"new top-level property": {func(v map[string]any) { v["mood"] = "good" }, true},
		"new property of a step": {func(v map[string]any) { first(first(v, "cases"), "steps")["joules"] = 4.5 }, true},
		"new property of a host": {func(v map[string]any) { first(v, "sessions")["host"].(map[string]any)["gpu"] = nil }, true},
		"other schema":           {func(v map[string]any) { v["schema"] = 2 }, false},
		"no cases":               {func(v map[string]any) { delete(v, "cases") }, false},
		"null for a list":        {func(v map[string]any) { v["claims"] = nil }, false},
		"time as text":           {func(v map[string]any) { first(first(v, "cases"), "steps")["duration_ns"] = "1s" }, false},
		"fraction of a byte":     {func(v map[string]any) { first(first(v, "cases"), "steps")["live"] = 0.5 }, false},
		"unknown verdict":        {func(v map[string]any) { first(v, "claims")["verdict"] = "maybe" }, false},
		"unknown status":         {func(v map[string]any) { first(v, "cases")["status"] = "" }, false},
	} {
		v := instance(t, goldenResult())
		c.change(v)
		if err := s.Validate(v); c.ok {
			assert.NoError(t, err, name)
		} else {
			assert.Error(t, err, name)
		}
	}
}

// Every property is described, and nothing else is.
func TestDescriptionsAreComplete(t *testing.T) {
	have := descriptions(describeText)
	want := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t.PkgPath() == "time" {
			return
		}
		for f := range t.Fields() {
			name, _ := jsonName(f)
			want[t.Name()+"."+name] = true
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Result]())
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(have)))
	for key := range enums {
		assert.Contains(t, want, key)
	}
}

// goldenResult is the result that the exports have in their golden files.
func goldenResult() *Result {
	b, err := os.ReadFile("export/testdata/result.json")
	if err != nil {
		panic(err)
	}
	r, err := ParseResult("result.json", bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	return r
}
