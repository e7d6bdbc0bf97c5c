package result

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// notFinite names the first number in v that JSON cannot hold, such as
// "summaries[3].estimates[0].value", or is "".
func notFinite(v any) string { return findNotFinite(reflect.ValueOf(v), "") }

func findNotFinite(v reflect.Value, at string) string {
	if !touches(v.Type()).floats {
		return ""
	}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return strings.TrimPrefix(at, ".")
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return findNotFinite(v.Elem(), at)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if where := findNotFinite(v.Index(i), at+"["+strconv.Itoa(i)+"]"); where != "" {
				return where
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _ := jsonName(v.Type().Field(i))
			if where := findNotFinite(v.Field(i), at+"."+name); where != "" {
				return where
			}
		}
	}
	return ""
}

// complete copies v deeply where it has lists, and makes every missing list of a
// field without omitempty an empty one: readers find [], never null.
func complete[T any](v *T) *T {
	out := reflect.New(reflect.TypeFor[T]())
	out.Elem().Set(reflect.ValueOf(v).Elem())
	fill(out.Elem())
	return out.Interface().(*T)
}

func fill(v reflect.Value) {
	if !touches(v.Type()).lists {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			fill(c.Elem())
			v.Set(c)
		}
	case reflect.Slice:
		if v.IsNil() || !touches(v.Type().Elem()).lists {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			fill(c.Index(i))
		}
		v.Set(c)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if _, omit := jsonName(v.Type().Field(i)); f.Kind() == reflect.Slice && f.IsNil() && !omit {
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
				continue
			}
			fill(f)
		}
	}
}

// contents is what a type can hold; samples hold neither and are never walked.
type contents struct{ floats, lists bool }

var known sync.Map // reflect.Type → contents

func touches(t reflect.Type) contents {
	if c, ok := known.Load(t); ok {
		return c.(contents)
	}
	var c contents
	switch t.Kind() {
	case reflect.Float64, reflect.Float32:
		c.floats = true
	case reflect.Pointer, reflect.Array:
		c = touches(t.Elem())
	case reflect.Slice:
		c = contents{floats: touches(t.Elem()).floats, lists: true}
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() && !f.Anonymous { // time.Time
				continue
			}
			in := touches(f.Type)
			c.floats, c.lists = c.floats || in.floats, c.lists || in.lists
		}
	}
	known.Store(t, c)
	return c
}

// jsonName is the field's name in JSON and whether it is left out when empty.
func jsonName(f reflect.StructField) (name string, omit bool) {
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name, strings.Contains(opts, "omitempty")
}
