package result

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// complete returns a copy of v in which every missing list of a field without
// omitempty is empty: readers find [], never null. The copy is deep where v has
// lists. The error names the first number that JSON cannot represent, such as
// "summaries[3].estimates[0].value".
func complete[T any](v *T) (*T, error) {
	out := *v
	if where, found := completeValue(reflect.ValueOf(&out).Elem()); found {
		return nil, errors.New(strings.TrimPrefix(where, ".") + " is not a finite number")
	}
	return &out, nil
}

// completeValue completes v in place, after copying what v shares with the
// original. If it finds a number that is not finite, it returns the path to it
// from v.
func completeValue(v reflect.Value) (where string, found bool) {
	if !hasListsOrFloats(v.Type()) {
		return "", false
	}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		return "", v.Float()-v.Float() != 0 // NaN for NaN and infinities
	case reflect.Pointer:
		if v.IsNil() {
			return "", false
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		v.Set(c)
		return completeValue(c.Elem())
	case reflect.Slice:
		if v.IsNil() || !hasListsOrFloats(v.Type().Elem()) {
			return "", false
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		return completeElements(v)
	case reflect.Array:
		return completeElements(v)
	case reflect.Struct:
		return completeFields(v)
	}
	return "", false
}

// completeElements completes the elements of a list.
func completeElements(v reflect.Value) (where string, found bool) {
	for i := range v.Len() {
		if where, found := completeValue(v.Index(i)); found {
			return "[" + strconv.Itoa(i) + "]" + where, true
		}
	}
	return "", false
}

// completeFields completes the fields of a struct.
func completeFields(v reflect.Value) (where string, found bool) {
	for i := range v.NumField() {
		f := v.Field(i)
		name, omit := jsonName(v.Type().Field(i))
		if f.Kind() == reflect.Slice && f.IsNil() && !omit {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			continue
		}
		if where, found := completeValue(f); found {
			return "." + name + where, true
		}
	}
	return "", false
}

// walkedTypes caches hasListsOrFloats by type.
var walkedTypes sync.Map

// hasListsOrFloats reports whether values of the type contain lists or floats.
// Samples contain neither, so that the many of a run are never walked.
func hasListsOrFloats(t reflect.Type) bool {
	if known, ok := walkedTypes.Load(t); ok {
		return known.(bool)
	}
	has := false
	switch t.Kind() {
	case reflect.Float64, reflect.Float32, reflect.Slice:
		has = true
	case reflect.Pointer, reflect.Array:
		has = hasListsOrFloats(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() || f.Anonymous { // not those of time.Time
				has = has || hasListsOrFloats(f.Type)
			}
		}
	}
	walkedTypes.Store(t, has)
	return has
}

// jsonName is the field's name in JSON and whether it is omitted when empty.
func jsonName(f reflect.StructField) (name string, omit bool) {
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name, strings.Contains(opts, "omitempty")
}
