package result

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
)

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
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name, strings.Contains(opts, "omitempty")
}
