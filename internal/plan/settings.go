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
	group string // its table: target, image, io, stream
	own   string // its key there, where that differs from its name as an axis
	set   func(s *Settings, text string)
	get   func(s *Settings) (text string)
}

func newSetting[V comparable](group, name string, k kind[V], fallback, about string, at func(*Settings) *V) setting {
	f := field(name, k, at).or(fallback).doc(about)
	if k.node != stringNode {
		f = f.always()
	}
	return setting{key: f, group: group,
		set: func(s *Settings, text string) { *at(s) = k.of(text) },
		get: func(s *Settings) string { return k.text(*at(s)) }}
}

func (s setting) omitDefault() setting                     { s.key = s.key.omitDefault(); return s }
func (s setting) otherwise(text string) setting            { s.key = s.key.otherwise(text); return s }
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
		"an image, or a native folder. As an axis or in a selector this key is called `target`",
		func(s *Settings) *string { return &s.Target }).ownName("kind"),
	newSetting("target", "place", placeText, "", "name of the folder for containers: `--on NAME=DIR` gives it, "+
		"`--on NAME=here` measures in the run folder, and the place is then called `here (not NAME)`; `\"\"` is the run folder",
		func(s *Settings) *string { return &s.Place }).otherwise("`\"\"`"),
	newSetting("target", "preallocate", flagKind, "false", "directory: reserve a file's space before its timed write",
		func(s *Settings) *bool { return &s.Preallocate }),
	newSetting("image", "format", writableFormat, "", "`RAW` is accepted for UDRW",
		func(s *Settings) *string { return &s.Format }).otherwise("required unless an axis or case gives it"),
	newSetting("image", "convert_to", anyFormat, "", "what `convert` steps without a format make: this is how a read-only "+
		"format becomes an axis", func(s *Settings) *string { return &s.ConvertTo }),
	newSetting("image", "encryption", encryptionKind, `"none"`, "",
		func(s *Settings) *string { return &s.Encryption }),
	{key: filesystemKey, group: "image",
		set: func(s *Settings, text string) { s.Filesystems = []string{text} },
		get: func(s *Settings) string { return strings.Join(s.Filesystems[:min(len(s.Filesystems), 1)], "") }},
	newSetting("image", "size", sizeKind, "", "nominal size of the image; at least what its file system can be made in: the "+
		"volume (1 MiB; FAT32 34 MiB, btrfs 114,294,784 B, XFS 300 MiB) and 1,065,472 B for the partition table. A warning "+
		"names the preferred file systems that need more",
		func(s *Settings) *units.Bytes { return &s.Size }).otherwise("required for images"),
	newSetting("image", "band_size", bandKind, `"default"`,
		"sparse bundles: a multiple of 512 B from 1 MiB to 8 GiB, or `default` (8 MiB)",
		func(s *Settings) *units.Bytes { return &s.BandSize }),
	newSetting("image", "volume_name", volumeText, `"BENCH"`,
		"label of the volume, at most 11 letters, digits, `_` or `-`", func(s *Settings) *string { return &s.VolumeName }),
	newSetting("image", "backend", enum("auto", "hdiutil", "diskutil"), `"auto"`, "which tool makes the image",
		func(s *Settings) *string { return &s.Backend }),
	newSetting("image", "served_by", enum("auto", "kernel", "helper"), `"auto"`, "what serves the attached image: "+
		"`hdiutil attach -kernel` and `-nokernel`. The kernel alone serves unencrypted `UDRW` on Linux, on a Mac also the "+
		"formats without bands; cases that cannot be served so are skipped, with the reason. `UDRW` served by the kernel and "+
		"by a helper shows what the helper (on Linux: FUSE) costs",
		func(s *Settings) *string { return &s.ServedBy }).omitDefault(),
	newSetting("io", "files", nameText, "", "file set that `write` writes unless it names another",
		func(s *Settings) *string { return &s.Files }).otherwise("the only file set, if there is one"),
	newSetting("io", "workers", workersKind, "1", "files in work at once",
		func(s *Settings) *int { return &s.Workers }),
	newSetting("io", "sync", syncKind, `"fsync"`, "flush inside the timed write; `full` reaches the medium",
		func(s *Settings) *string { return &s.Sync }),
	newSetting("io", "cache", cacheKind, `"direct"`, "past the cache, through it, or through it after eviction",
		func(s *Settings) *string { return &s.Cache }),
	newSetting("io", "block", blockKind, `"whole"`, "bytes a call; `whole` is one call a file, up to 1 GiB",
		func(s *Settings) *units.Bytes { return &s.Block }),
	newSetting("io", "qos", enum("default", "utility", "background"), `"default"`, "quality of service of the workers' "+
		"threads: on macOS by the policies of taskpolicy(8) (`utility`: of disk I/O), on Linux imitated by nice and I/O "+
		"priorities, with a warning; the record has what was achieved. Threads of codecs keep the default, and the record "+
		"notes it; LZFSE runs under taskpolicy", func(s *Settings) *string { return &s.QoS }),
	newSetting("stream", "codec", codecKind, `"zstd"`, "`lzfse` needs macOS",
		func(s *Settings) *string { return &s.Codec }),
	newSetting("stream", "level", number[int](0, 22), "0", "the codec's own level, 0 is its default",
		func(s *Settings) *int { return &s.Level }),
	newSetting("stream", "threads", number[int](0, 1024), "0", "compressing threads, 0 is one a CPU",
		func(s *Settings) *int { return &s.Threads }),
}

// filesystemKey is the exact file system. The canonical form writes it as a preference of one.
var filesystemKey = key[Settings]{name: "filesystem", value: filesystemKind.scalar,
	about: "exactly this file system; not together with `filesystem_preference`",
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
			func(s *Settings) *[]string { return &s.Filesystems }).otherwise(`["APFS", "ext4", "exFAT"]`).
			doc("the first one that the engine can make is used; another than the first is a deviation"))
		t.keys = append(t.keys, field("allow_many_bands", flagKind, func(s *Settings) *bool { return &s.ManyBands }).
			or("false").always().doc("silences the warning past 100,000 bands; cannot be an axis"))
		t.finish = finishImage
	}
	return t
}

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

// value is the text of one key of a case as selectors see it; ok is false for a key that is not a settings key.
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

// FormatCodes is text with the codes of image formats in place of their names, for short lines.
func FormatCodes(text string) string { return formatCodes.Replace(text) }

// FormatName is the name of an image format with its code: "sparse bundle (UDSB)". An unknown format is its code.
func FormatName(format string) string {
	if f, ok := image.FormatNamed(format); ok {
		return f.Title + " (" + format + ")"
	}
	return format
}
