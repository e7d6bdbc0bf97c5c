package imagetool

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"
)

// formatNamer is the name that a verb has for a format, "" for a format that it
// does not make.
type formatNamer func(f image.Format) string

// byType are the names of `hdiutil create -type`.
func byType(f image.Format) string { return f.CreateType }

// byFrom are the names of `diskutil image create from --format`.
func byFrom(f image.Format) string { return f.ImageType }

// byImage are the names of `diskutil image create blank --format`.
func byImage(f image.Format) string {
	if f.UDIF {
		return ""
	}
	return f.ImageType
}

// byConversion are the names of `hdiutil convert -format`.
func byConversion(f image.Format) string {
	if f.UDIF || f.CreateType != "" {
		return f.Name
	}
	return ""
}

// formatWords lists the formats that a verb makes, for help and messages.
func formatWords(name formatNamer) string {
	var words []string
	for _, f := range image.Formats {
		if w := name(f); w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}

// formatNamed finds a format by the name that a verb has for it.
func formatNamed(word string, name formatNamer) (image.Format, error) {
	for _, f := range image.Formats {
		if n := name(f); n != "" && strings.EqualFold(n, word) {
			return f, nil
		}
	}
	if f, ok := image.FormatNamed(word); ok {
		return f, refuse("format %s is not made by this verb: want one of %s%s", f.Name, formatWords(name),
			otherMaker(f))
	}
	return image.Format{}, refuse("format %q is not known: want one of %s", word, formatWords(name))
}

// otherMaker is a hint at the maker of a format that only diskutil makes: ASIF,
// which Apple's hdiutil does not make either.
func otherMaker(f image.Format) string {
	if byConversion(f) != "" {
		return ""
	}
	return fmt.Sprintf("; %s is made by 'diskutil image create'", f.ImageType)
}

// byExtension is the format that belongs to a file name, else UDRW. Of the
// formats with .dmg that is UDRW, the first in the registry: the others are
// only made by convert.
func byExtension(name string) image.Format {
	extension := filepath.Ext(filepath.Clean(name)) // of "x.sparsebundle/" too, as shells complete it
	i := slices.IndexFunc(image.Formats, func(f image.Format) bool { return strings.EqualFold(extension, f.Extension) })
	return image.Formats[max(i, 0)]
}

// ours is the file system that this process makes without privileges.
const ours = "ExFAT"

// appleName is what -fs calls a file system of package attach.
func appleName(f attach.FS) string { return cmp.Or(f.AppleName, f.Name) }

// chooseFilesystem returns the file system of a name, or why it cannot be made:
// it is never replaced by another one. The error distinguishes file systems
// that are not made here, missing programs and missing rights.
func (c *call) chooseFilesystem(name string) (string, error) {
	if strings.EqualFold(name, ours) {
		return ours, nil
	}
	f, ok := c.filesystem(name)
	switch {
	case !ok:
		return "", refuse("file system %s cannot be made on this system; possible here: %s", printable(name),
			strings.Join(c.makeable(), ", "))
	case !f.Present && f.Tool != "":
		return "", refuse("file system %s needs the program %s, of the package %s", appleName(f), f.Tool, f.Package)
	case !c.env.Attacher.Loops():
		return "", refuse("file system %s needs loop devices and the rights of root; %s needs neither", appleName(f),
			ours)
	}
	return f.Name, nil
}

// filesystem finds a file system of the attacher by its name or an alias.
func (c *call) filesystem(name string) (attach.FS, bool) {
	for _, f := range c.env.Attacher.Filesystems() {
		for _, n := range append([]string{f.Name}, f.Aliases...) {
			if strings.EqualFold(n, name) {
				return f, true
			}
		}
	}
	return attach.FS{}, false
}

// makeable are the file systems that create can make and attach can mount on
// this machine. A file system that the kernel does not mount can still be made,
// for other machines.
func (c *call) makeable() []string {
	list := []string{ours}
	for _, f := range c.env.Attacher.Filesystems() {
		if name := appleName(f); f.Present && f.MountableByKernel && name != ours && c.env.Attacher.Loops() {
			list = append(list, name)
		}
	}
	return list
}

// defaultFilesystem is ext4 for root with loop devices and mkfs.ext4, where the
// kernel mounts it; else ExFAT.
func (c *call) defaultFilesystem() string {
	if c.env.UID == 0 && slices.Contains(c.makeable(), "ext4") {
		return "ext4"
	}
	return ours
}

// partitionType is the type of the partition of a file system.
func (c *call) partitionType(filesystem string) gpt.GUID {
	f, _ := c.filesystem(filesystem)
	switch {
	case filesystem == ours:
		return gpt.BasicData
	case f.Type != gpt.GUID{}:
		return f.Type
	}
	return gpt.LinuxData
}
