package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// setting is one row of the settings: a key of a case, and so a possible axis.
type setting struct {
	key
	// group: its table: target, image, io, stream; own: its key there
	group, own string
}

// settings are the keys of a case in the order of the canonical form: the
// fields of Settings with their tags.
var settings []setting

// groups are the tables of settings, in the order of the canonical form.
var groups = []string{"target", "image", "io", "stream"}

// settingTables are the tables [target], [image], [io] and [stream].
var settingTables = map[string]*table{}

// addSettings fills settings and settingTables. Numbers and flags are always
// written. [image] has two more keys, which cannot be axes.
func addSettings() {
	t := reflect.TypeFor[Settings]()
	for _, group := range groups {
		settingTables[group] = &table{name: "[" + group + "]"}
	}
	for f := range t.Fields() {
		if f.Tag.Get("plan") == "" {
			continue
		}
		group, own, _ := strings.Cut(f.Tag.Get("in"), " ")
		s := setting{key: newKey(t, f.Name, f.Tag.Get("plan")), group: group}
		s.always = s.value.node != stringNode
		s.own = cmp.Or(own, s.name)
		settings = append(settings, s)
		k := s.key
		k.name = s.own
		in := settingTables[group]
		in.keys = append(in.keys, k)
		if s.name == "filesystem" {
			in.keys = append(in.keys, newKey(t, f.Name, "filesystem_preference filesystem min=1"))
		}
	}
	images := settingTables["image"]
	images.keys = append(images.keys, newKey(t, "ManyBands", "allow_many_bands =false always"))
	images.finish = func(r *reader, n *node, v reflect.Value) {
		exact, s := n.get("filesystem"), v.Addr().Interface().(*Settings)
		if exact != nil && n.get("filesystem_preference") != nil {
			r.badKey(exact, "filesystem and filesystem_preference contradict each other").hintf("keep one of them")
		}
		if len(s.Filesystems) == 0 {
			s.Filesystems = []string{"APFS", "ext4", "exFAT"}
		}
	}
}

// settingSections are the keys of the plan for the tables of settings, which
// are in the field with the index. Without its table a key has its default.
func settingSections(index []int) (out []key) {
	for _, group := range groups {
		out = append(out, key{name: group, index: index, fallback: &node{kind: tableNode, name: group},
			codec: tableCodec(settingTables[group])})
	}
	return out
}

// exactFilesystem is the key filesystem. The canonical form writes it as a
// preference of one.
func exactFilesystem() codec {
	out := kindCodec(kinds["filesystem"])
	decode := out.decode
	out.decode = func(r *reader, n *node, v reflect.Value) {
		one := reflect.MakeSlice(v.Type(), 1, 1)
		decode(r, n, one.Index(0))
		v.Set(one)
	}
	out.encode = func(reflect.Value) (string, bool) { return "", false }
	return out
}

// set sets the key to the value of a canonical text.
func (s *setting) set(dst *Settings, text string) {
	s.decode(nil, s.value.nodeOf(text), reflect.ValueOf(dst).Elem().FieldByIndex(s.index))
}

// get is the canonical text of the key's value: of several, the first.
func (s *setting) get(src *Settings) string {
	v := reflect.ValueOf(src).Elem().FieldByIndex(s.index)
	if v.Kind() == reflect.Slice {
		return strings.Join(src.Filesystems[:min(len(src.Filesystems), 1)], "")
	}
	return s.value.text(v.Interface())
}

func formatOf(name string) image.Format                    { f, _ := image.FormatNamed(name); return f }
func bandSizeOf(f image.Format, b units.Bytes) units.Bytes { return units.Bytes(f.BandSize(int64(b))) }

// findSetting is the setting of that name, or nil.
func findSetting(name string) *setting {
	return find(settings, func(s *setting) bool { return s.name == name })
}

// keySet is the set of keys that a place of the plan may name, each with those
// before it.
type keySet int

const (
	axisKeys     keySet = iota // the settings
	caseKeys                   // manual axes
	selectorKeys               // baseline, and format = all formats
	sampleKeys                 // keys that pick steps or samples of a case
)

// sampleKinds are the keys that pick steps or samples with the types of their
// values.
var sampleKinds = []struct {
	name  string
	value *kind
}{{"phase", nameText}, {"cycle", countKind}, {"file_size", sizeKind}, {"set", countKind}}

// findKey is the type of the values of a key, or nil if the set does not have
// it; manual are the manual axes of the plan.
func findKey(name string, set keySet, manual []string) *kind {
	s := findSetting(name)
	switch {
	case name == "format" && set >= selectorKeys:
		return anyFormat
	case s != nil:
		return s.value
	case set >= caseKeys && slices.Contains(manual, name):
		return looseKind
	case name == "baseline" && set >= selectorKeys:
		return flagKind
	}
	for _, k := range sampleKinds {
		if k.name == name && set >= sampleKeys {
			return k.value
		}
	}
	return nil
}

// keyNames are the keys of a set, for hints.
func (r *reader) keyNames(set keySet) []string {
	out := settingNames()
	if set >= caseKeys {
		out = append(out, r.manual...)
	}
	if set >= selectorKeys {
		out = append(out, "baseline")
	}
	if set >= sampleKeys {
		for _, k := range sampleKinds {
			out = append(out, k.name)
		}
	}
	return out
}

// settingNames are the names of all settings, in the order of the canonical
// form.
func settingNames() []string { return namesOf(settings, func(s *setting) string { return s.name }) }

// value is the text of one key of a case as selectors see it; ok is false for a
// key that is not a settings key.
func (s *Settings) value(name string) (text string, ok bool) {
	for _, m := range s.Manual {
		if m.Key == name {
			return m.Value, true
		}
	}
	if k := findSetting(name); k != nil {
		return k.get(s), true
	}
	return "", false
}

// formatCodes replaces every name of a format by its code alone.
var formatCodes = func() *strings.Replacer {
	var pairs []string
	for _, code := range append(image.FormatNames(nil), "RAW") {
		pairs = append(pairs, FormatName(code), code)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatCodes is text with the codes of image formats in place of their names,
// for short lines.
func FormatCodes(text string) string { return formatCodes.Replace(text) }

// FormatName is the name of an image format with its code: "sparse bundle
// (UDSB)". An unknown format is its code.
func FormatName(format string) string {
	if f, ok := image.FormatNamed(format); ok {
		return f.Title + " (" + format + ")"
	}
	return format
}
