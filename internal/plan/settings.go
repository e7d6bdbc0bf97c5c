package plan

import (
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// setting is one settings key: a key of a case, and so a possible axis.
type setting struct {
	key[Settings]
	group string // table that it stands in: target, image, io, stream
	own   string // its key there, where that differs from its name as an axis
	value *scalar
	set   func(*Settings, string)
	get   func(*Settings) string
}

// Words of the enumerated settings.
var (
	writableFormats = image.FormatNames(image.Format.Writable)
	formatAlias     = formatAliases()
	syncs           = []string{"none", "fsync", "full"}
	caches          = []string{"direct", "buffered", "cold"}
	codecs          = []string{"zstd", "s2", "gzip", "lzfse"}
	qualities       = []string{"default", "utility", "background"}

	formatType     = enumType(formatAlias, writableFormats...)
	filesystemType = enumType(nil, image.FilesystemNames()...)
	workersType    = numberType(1, 1024)
	levelType      = numberType(0, 22)
	threadsType    = numberType(0, 1024)
)

func textSetting(group, name string, typ *scalar, f func(*Settings) *string) setting {
	return setting{key: textKey(name, typ, f), group: group, value: typ,
		set: func(s *Settings, v string) { *f(s) = v }, get: func(s *Settings) string { return *f(s) }}
}

func numberSetting(group, name string, typ *scalar, f func(*Settings) *int) setting {
	set := func(s *Settings, v string) { *f(s) = atoi(v) }
	get := func(s *Settings) string { return itoa(*f(s)) }
	k := scalarKey(name, typ, set, func(s *Settings) (string, bool) { return get(s), true })
	return setting{key: k, group: group, value: typ, set: set, get: get}
}

func sizeSetting(group, name string, typ *scalar, f func(*Settings) *units.Bytes) setting {
	k := sizeKey(name, typ, f)
	return setting{key: k, group: group, value: typ,
		set: func(s *Settings, v string) { *f(s), _ = units.ParseBytes(v) },
		get: func(s *Settings) string {
			text, _ := k.encode(s)
			return strings.Trim(text, `"`)
		}}
}

func (s setting) or(toml string) setting { s.key = s.key.or(toml); return s }

// omitDefault is a key that came after plans were run: at its default it is left out of the canonical form, so that the
// digests in their journals stay true.
func (s setting) omitDefault() setting {
	encode, fallback := s.key.encode, s.key.fallback
	s.key.encode = func(src *Settings) (string, bool) {
		text, ok := encode(src)
		return text, ok && text != fallback
	}
	return s
}

// settingKeys lists the keys of a case in the order of the canonical form.
var settingKeys = []setting{
	{key: textKey("target", enumType(nil, "image", "directory"), targetOf).or(`"image"`), group: "target", own: "kind",
		value: enumType(nil, "image", "directory"),
		set:   func(s *Settings, v string) { s.Target = v }, get: func(s *Settings) string { return s.Target }},
	textSetting("target", "place", placeText, func(s *Settings) *string { return &s.Place }),
	{key: flagKey("preallocate", func(s *Settings) *bool { return &s.Preallocate }).or("false").always(),
		group: "target", value: flagType,
		set: func(s *Settings, v string) { s.Preallocate = v == "true" },
		get: func(s *Settings) string { return boolText(s.Preallocate) }},
	textSetting("image", "format", formatType, func(s *Settings) *string { return &s.Format }),
	textSetting("image", "convert_to", anyFormatType, func(s *Settings) *string { return &s.ConvertTo }),
	textSetting("image", "encryption", enumType(nil, image.Encryptions...),
		func(s *Settings) *string { return &s.Encryption }).or(`"none"`),
	{key: filesystemKey, group: "image", value: filesystemType,
		set: func(s *Settings, v string) { s.Filesystems = []string{v} }, get: firstFilesystem},
	sizeSetting("image", "size", sizeType, func(s *Settings) *units.Bytes { return &s.Size }),
	sizeSetting("image", "band_size", bandType, func(s *Settings) *units.Bytes { return &s.BandSize }).or(`"default"`),
	textSetting("image", "volume_name", volumeText, func(s *Settings) *string { return &s.VolumeName }).or(`"BENCH"`),
	textSetting("image", "backend", enumType(nil, "auto", "hdiutil", "diskutil"),
		func(s *Settings) *string { return &s.Backend }).or(`"auto"`),
	textSetting("image", "served_by", enumType(nil, "auto", "kernel", "helper"),
		func(s *Settings) *string { return &s.ServedBy }).or(`"auto"`).omitDefault(),
	textSetting("io", "files", nameText, func(s *Settings) *string { return &s.Files }),
	numberSetting("io", "workers", workersType, func(s *Settings) *int { return &s.Workers }).or("1"),
	textSetting("io", "sync", enumType(nil, syncs...), func(s *Settings) *string { return &s.Sync }).or(`"fsync"`),
	textSetting("io", "cache", enumType(nil, caches...), func(s *Settings) *string { return &s.Cache }).or(`"direct"`),
	sizeSetting("io", "block", blockType, func(s *Settings) *units.Bytes { return &s.Block }).or(`"whole"`),
	textSetting("io", "qos", enumType(nil, qualities...), func(s *Settings) *string { return &s.QoS }).or(`"default"`),
	textSetting("stream", "codec", enumType(nil, codecs...), func(s *Settings) *string { return &s.Codec }).or(`"zstd"`),
	numberSetting("stream", "level", levelType, func(s *Settings) *int { return &s.Level }).or("0"),
	numberSetting("stream", "threads", threadsType, func(s *Settings) *int { return &s.Threads }).or("0"),
}

func targetOf(s *Settings) *string { return &s.Target }

func firstFilesystem(s *Settings) string {
	if len(s.Filesystems) == 0 {
		return ""
	}
	return s.Filesystems[0]
}

// filesystemKey is the exact file system; the preference is the other key for it.
var filesystemKey = scalarKey("filesystem", filesystemType,
	func(s *Settings, v string) { s.Filesystems = []string{v} },
	func(*Settings) (string, bool) { return "", false })

var preferenceKey = listKey("filesystem_preference", filesystemType,
	func(s *Settings, v []string) { s.Filesystems = v }, func(s *Settings) []string { return s.Filesystems })

// findSetting is the settings key of that name, or nil.
func findSetting(name string) *setting {
	if i, ok := settingIndex[name]; ok {
		return &settingKeys[i]
	}
	return nil
}

var settingIndex = func() map[string]int {
	out := map[string]int{}
	for i := range settingKeys {
		out[settingKeys[i].name] = i
	}
	return out
}()

func settingNames() []string {
	out := make([]string, len(settingKeys))
	for i, s := range settingKeys {
		out[i] = s.name
	}
	return out
}

// groupTable is one of the tables [target], [image], [io], [stream].
func groupTable(group string) *table[Settings] {
	t := &table[Settings]{name: "[" + group + "]"}
	for _, s := range settingKeys {
		if s.group != group {
			continue
		}
		k := s.key
		if s.own != "" {
			k = k.named(s.own)
		}
		t.keys = append(t.keys, k)
		if s.name == "filesystem" {
			t.keys = append(t.keys, preferenceKey)
		}
	}
	if group == "image" {
		t.keys = append(t.keys, flagKey("allow_many_bands", func(s *Settings) *bool { return &s.ManyBands }).or("false").always())
		t.finish = finishImage
	}
	return t
}

var defaultFilesystems = []string{"APFS", "ext4", "exFAT"}

func finishImage(r *reader, n *node, s *Settings) {
	exact, preference := n.get("filesystem"), n.get("filesystem_preference")
	switch {
	case exact != nil && preference != nil:
		r.problem(exact.key, "filesystem", "filesystem and filesystem_preference contradict each other").
			hintf("keep one of them")
	case preference != nil && preference.kind == arrayNode:
		r.distinct(preference, "filesystem_preference")
		if len(preference.items) == 0 {
			r.problem(preference.off, "filesystem_preference", "filesystem_preference is empty")
		}
	}
	if len(s.Filesystems) == 0 {
		s.Filesystems = append([]string{}, defaultFilesystems...)
	}
}

// distinct reports values that a list holds twice.
func (r *reader) distinct(list *node, name string) {
	seen := map[string]bool{}
	for _, it := range list.items {
		id := it.kind.String() + it.text
		if seen[id] && it.kind != tableNode {
			r.problem(it.off, name, "%s: %s is listed twice", name, it.text)
		}
		seen[id] = true
	}
}

// value is the text of one key of a case as selectors see it; ok is false for a
// key that is not a settings key.
func (s *Settings) value(name string) (string, bool) {
	for _, t := range s.Turned {
		if t.Key == name {
			return t.Value, true
		}
	}
	if k := findSetting(name); k != nil {
		return k.get(s), true
	}
	return "", false
}

// formatAliases are the names that diskutil has for formats, where they differ.
func formatAliases() map[string]string {
	out := map[string]string{}
	for _, f := range image.Formats {
		if f.ImageType != "" && f.ImageType != f.Name {
			out[f.ImageType] = f.Name
		}
	}
	return out
}

// formatCodes replaces every name of a format by its code alone.
var formatCodes = func() *strings.Replacer {
	var pairs []string
	for _, f := range image.Formats {
		pairs = append(pairs, FormatName(f.Name), f.Name)
	}
	for alias := range formatAlias {
		pairs = append(pairs, FormatName(alias), alias)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatCodes is text with the codes of image formats in place of their names, for lines that are too short for these.
func FormatCodes(text string) string { return formatCodes.Replace(text) }

// FormatName is the name of an image format with its code: "sparse bundle (UDSB)". A format without a name is its code.
func FormatName(format string) string {
	if f, ok := image.FormatNamed(format); ok {
		return f.Title + " (" + format + ")"
	}
	return format
}
