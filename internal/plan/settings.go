package plan

import (
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// setting is one row of the settings: a key of a case, and so a possible axis.
type setting struct {
	key[Settings]
	// group: its table: target, image, io, stream
	group string
	// own: its key there, where that differs from its name as an axis
	own string
	set func(s *Settings, text string)
	get func(s *Settings) (text string)
}

// newSetting is a setting with one value, in the table of its group. Numbers
// and flags are always written.
func newSetting[V comparable](group, name string, k kind[V], fallback string, at func(*Settings) *V) setting {
	f := field(name, k, at).or(fallback)
	if k.node != stringNode {
		f = f.always()
	}
	return setting{key: f, group: group,
		set: func(s *Settings, text string) { *at(s) = k.of(text) },
		get: func(s *Settings) string { return k.text(*at(s)) }}
}

func (s setting) omitDefault() setting                     { s.key = s.key.omitDefault(); return s }
func (s setting) ownName(name string) setting              { s.own = name; return s }
func (s setting) nameInTable() string                      { return firstWord(s.own, s.name) }
func firstWord(words ...string) string                     { return words[max(slices.IndexFunc(words, hasWord), 0)] }
func formatOf(name string) image.Format                    { f, _ := image.FormatNamed(name); return f }
func bandSizeOf(f image.Format, b units.Bytes) units.Bytes { return units.Bytes(f.BandSize(int64(b))) }

// formatAliases are the names that diskutil has for formats, where they differ.
var formatAliases = func() map[string]string {
	out := map[string]string{}
	for _, f := range image.Formats {
		if f.ImageType != "" && f.ImageType != f.Name {
			out[f.ImageType] = f.Name
		}
	}
	return out
}()

var (
	writableFormat = enumWithAliases(formatAliases, image.FormatNames(image.Format.Writable))
	anyFormat      = enumWithAliases(formatAliases, image.FormatNames(nil))
	encryptionKind = enum(image.Encryptions...)
	filesystemKind = enum(image.FilesystemNames()...)
	syncKind       = enum("none", "fsync", "full")
	cacheKind      = enum("direct", "buffered", "cold")
	codecKind      = enum("zstd", "s2", "gzip", "lzfse")
	workersKind    = number[int](1, 1024)
)

// settings are the keys of a case in the order of the canonical form.
var settings = []setting{
	newSetting("target", "target", enum("image", "directory"), `"image"`,
		func(s *Settings) *string { return &s.Target }).ownName("kind"),
	newSetting("target", "place", placeText, "", func(s *Settings) *string { return &s.Place }),
	newSetting("target", "preallocate", flagKind, "false",
		func(s *Settings) *bool { return &s.Preallocate }),
	newSetting("image", "format", writableFormat, "", func(s *Settings) *string { return &s.Format }),
	newSetting("image", "convert_to", anyFormat, "", func(s *Settings) *string { return &s.ConvertTo }),
	newSetting("image", "encryption", encryptionKind, `"none"`,
		func(s *Settings) *string { return &s.Encryption }),
	{key: filesystemKey, group: "image",
		set: func(s *Settings, text string) { s.Filesystems = []string{text} },
		get: func(s *Settings) string { return strings.Join(s.Filesystems[:min(len(s.Filesystems), 1)], "") }},
	newSetting("image", "size", sizeKind, "", func(s *Settings) *units.Bytes { return &s.Size }),
	newSetting("image", "band_size", bandKind, `"default"`,
		func(s *Settings) *units.Bytes { return &s.BandSize }),
	newSetting("image", "volume_name", volumeText, `"BENCH"`,
		func(s *Settings) *string { return &s.VolumeName }),
	newSetting("image", "backend", enum("auto", "hdiutil", "diskutil"), `"auto"`,
		func(s *Settings) *string { return &s.Backend }),
	newSetting("image", "served_by", enum("auto", "kernel", "helper"), `"auto"`,
		func(s *Settings) *string { return &s.ServedBy }).omitDefault(),
	newSetting("io", "files", nameText, "", func(s *Settings) *string { return &s.Files }),
	newSetting("io", "workers", workersKind, "1", func(s *Settings) *int { return &s.Workers }),
	newSetting("io", "sync", syncKind, `"fsync"`, func(s *Settings) *string { return &s.Sync }),
	newSetting("io", "cache", cacheKind, `"direct"`, func(s *Settings) *string { return &s.Cache }),
	newSetting("io", "block", blockKind, `"whole"`, func(s *Settings) *units.Bytes { return &s.Block }),
	newSetting("io", "qos", enum("default", "utility", "background"), `"default"`,
		func(s *Settings) *string { return &s.QoS }),
	newSetting("stream", "codec", codecKind, `"zstd"`, func(s *Settings) *string { return &s.Codec }),
	newSetting("stream", "level", number[int](0, 22), "0", func(s *Settings) *int { return &s.Level }),
	newSetting("stream", "threads", number[int](0, 1024), "0",
		func(s *Settings) *int { return &s.Threads }),
}

// filesystemKey is the exact file system. The canonical form writes it as a
// preference of one.
var filesystemKey = key[Settings]{name: "filesystem", value: filesystemKind.scalar,
	decode: func(r *reader, n *node, s *Settings) {
		if text, ok := r.scalar(n, "filesystem", filesystemKind.scalar); ok {
			s.Filesystems = []string{text}
		}
	},
	encode: func(*Settings) (string, bool) { return "", false },
	json:   func() map[string]any { return filesystemKind.json }}

// findSetting is the setting of that name, or nil.
func findSetting(name string) *setting { return settingIndex[name] }

var settingIndex = func() map[string]*setting {
	out := map[string]*setting{}
	for i := range settings {
		out[settings[i].name] = &settings[i]
	}
	return out
}()

// settingNames are the names of all settings, in the order of the canonical
// form.
func settingNames() []string {
	out := make([]string, len(settings))
	for i := range settings {
		out[i] = settings[i].name
	}
	return out
}

// settingTables are the tables [target], [image], [io] and [stream].
var settingTables = map[string]*table[Settings]{
	"target": settingTable("target"), "image": settingTable("image"), "io": settingTable("io"),
	"stream": settingTable("stream"),
}

// settingTable is the table of a group. [image] has two more keys, which cannot
// be axes.
func settingTable(group string) *table[Settings] {
	t := &table[Settings]{name: "[" + group + "]"}
	for _, s := range settings {
		if s.group == group {
			t.keys = append(t.keys, s.key.named(s.nameInTable()))
		}
	}
	if group == "image" {
		at := slices.IndexFunc(t.keys, func(k key[Settings]) bool { return k.name == "filesystem" })
		t.keys = slices.Insert(t.keys, at+1, listField("filesystem_preference", filesystemKind, 1,
			func(s *Settings) *[]string { return &s.Filesystems }))
		t.keys = append(t.keys, field("allow_many_bands", flagKind, func(s *Settings) *bool { return &s.ManyBands }).
			or("false").always())
		t.finish = finishImage
	}
	return t
}

// finishImage checks the preference of file systems and fills in its default.
func finishImage(r *reader, n *node, s *Settings) {
	exact, preference := n.get("filesystem"), n.get("filesystem_preference")
	if exact != nil && preference != nil {
		r.badKey(exact, "filesystem and filesystem_preference contradict each other").hintf("keep one of them")
	}
	r.checkDistinct(preference, "filesystem_preference")
	if len(s.Filesystems) == 0 {
		s.Filesystems = []string{"APFS", "ext4", "exFAT"}
	}
}

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
