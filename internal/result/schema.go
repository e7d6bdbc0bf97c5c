package result

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed describe.txt
var describeText string

// JSONSchema is the JSON Schema (draft 2020-12) of result.json, with a
// description of every property. It allows unknown properties, since versions
// of the format within one schema version only add properties.
var JSONSchema = sync.OnceValue(func() []byte {
	b, err := SchemaOf[Result]("dmgbench result", "What one run of one plan measured, and conclusions from it. "+
		"Times are integer nanoseconds, sizes integer bytes, rates bytes per second.", "", nil)
	if err != nil {
		panic(fmt.Sprintf("building the schema of result.json: %v", err)) // the types are fixed: a test calls this
	}
	return b
})

// SchemaOf is the JSON Schema of a document of schema version 1 that is made
// from results. text has a line "Type.property text" for each property that
// result.json does not have; closed are the accepted values of such properties.
func SchemaOf[T any](title, description, text string, closed map[string][]any) ([]byte, error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	texts, accepted := descriptions(describeText), maps.Clone(enums)
	maps.Copy(texts, descriptions(text))
	maps.Copy(accepted, closed)
	describe(s, reflect.TypeFor[T](), texts, accepted)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title, s.Description = title, description
	s.Properties["schema"].Const = jsonschema.Ptr[any](SchemaVersion)
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// descriptions are lines such as those of describe.txt by "Type.property".
func descriptions(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !strings.HasPrefix(key, "#") {
			out[key] = strings.TrimSpace(text)
		}
	}
	return out
}

// enums are the accepted values of properties that have a closed list.
var enums = map[string][]any{
	"Result.status":     {Unfinished, Done, Failed, Skipped},
	"Case.status":       {Done, Skipped, Failed, Discarded},
	"CaseRound.status":  {Done, Skipped, Failed, Discarded},
	"Claim.verdict":     {Holds, DoesNotHold, CannotTell, NotMeasured},
	"Use.choice":        {ChosenOne, ChosenEqual, Undecided, NotMeasured},
	"UseAdvice.verdict": {Holds, DoesNotHold, CannotTell, NotMeasured, OtherCriterion},
	"Look.stop":         {"", StopPrecise, StopRounds, StopTime, StopWritten, StopNothing},
	"Session.end":       {Clean, Interrupted, Paused, Lost},
}

// describe walks schema and type together. The inferred schema forbids unknown
// properties and allows null for lists; describe reverses both.
func describe(s *jsonschema.Schema, t reflect.Type, texts map[string]string, closed map[string][]any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		s.Type, s.Types = "array", nil
		describe(s.Items, t.Elem(), texts, closed)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			s.Format = "date-time"
			return
		}
		s.AdditionalProperties = nil
		for f := range t.Fields() {
			name, _ := jsonName(f)
			p := s.Properties[name]
			describe(p, f.Type, texts, closed)
			p.Description = texts[t.Name()+"."+name]
			p.Enum = slices.Clone(closed[t.Name()+"."+name])
		}
	}
}

// complete makes every missing list of *v without omitempty an empty one:
// readers find [], never null. The error names the first number that JSON cannot
// represent, such as "summaries[3].estimates[0].value".
func complete[T any](v *T) error {
	if where, bad := completeValue(reflect.ValueOf(v).Elem()); bad {
		return errors.New(strings.TrimPrefix(where, ".") + " is not a finite number")
	}
	return nil
}

// completeValue completes v. If it finds a number that is not finite, it returns
// the path to it from v.
func completeValue(v reflect.Value) (where string, bad bool) {
	switch v.Kind() {
	case reflect.Float64:
		return "", v.Float()-v.Float() != 0 // NaN for NaN and infinities
	case reflect.Pointer:
		if !v.IsNil() {
			return completeValue(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type() == reflect.TypeFor[[]Sample]() { // many, without lists and floats
			return "", false
		}
		for i := range v.Len() {
			if where, bad := completeValue(v.Index(i)); bad {
				return "[" + strconv.Itoa(i) + "]" + where, true
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return "", false
		}
		for i := range v.NumField() {
			f := v.Field(i)
			name, omit := jsonName(v.Type().Field(i))
			if f.Kind() == reflect.Slice && f.IsNil() && !omit {
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			}
			if where, bad := completeValue(f); bad {
				return "." + name + where, true
			}
		}
	}
	return "", false
}

// jsonName is the field's name in JSON and whether it is omitted when empty.
func jsonName(f reflect.StructField) (name string, omit bool) {
	_, tag, _ := strings.Cut(string(f.Tag), `json:"`) // Tag.Get takes four times as long
	tag, _, _ = strings.Cut(tag, `"`)
	name, opts, _ := strings.Cut(tag, ",")
	if name == "" {
		name = f.Name
	}
	return name, strings.Contains(opts, "omitempty")
}
