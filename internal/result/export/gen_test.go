package export

import (
	"reflect"
	"time"

	"pgregory.net/rapid"
)

// random fills v with random content: lists are never nil where the format says
// [], floats are finite, strings are UTF-8, times are UTC.
func random(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringN(0, 8, 24).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			random(t, v.Elem())
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 2).Draw(t, "len")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			random(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			random(t, v.Index(i))
		}
	case reflect.Map:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.ValueOf(rapid.MapOfN(rapid.StringN(0, 4, 8), rapid.StringN(0, 4, 8), 1, 3).Draw(t, "map")))
		}
	case reflect.Struct:
		randomStruct(t, v)
	default:
		t.Fatalf("no generator for %s", v.Type())
	}
}

func randomStruct(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(randomTime(t)))
		return
	}
	for i := range v.NumField() {
		random(t, v.Field(i))
	}
}

func randomTime(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
}

func randomOf[T any](t *rapid.T) T {
	var v T
	random(t, reflect.ValueOf(&v).Elem())
	return v
}
