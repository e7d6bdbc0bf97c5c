package imagetool

import (
	"slices"
	"strings"
	"unicode/utf16"

	"dmgbench/internal/attach"
	"dmgbench/internal/gpt"
)

// ours is the file system that this process makes without privileges.
const ours = "ExFAT"

// properNames are the names of file systems that Apple's -fs takes, and the names in messages.
var properNames = map[string]string{
	"exfat": "ExFAT", "ms-dos fat32": "MS-DOS FAT32", "fat32": "MS-DOS FAT32", "ms-dos": "MS-DOS FAT32",
	"ms-dos fat16": "MS-DOS FAT16", "ms-dos fat12": "MS-DOS FAT12", "udf": "UDF", "apfs": "APFS",
	"case-sensitive apfs": "Case-sensitive APFS", "hfs+": "HFS+", "hfs+j": "Journaled HFS+",
	"jhfs+": "Journaled HFS+", "journaled hfs+": "Journaled HFS+", "hfsx": "Case-sensitive HFS+",
	"case-sensitive hfs+": "Case-sensitive HFS+", "jhfs+x": "Case-sensitive Journaled HFS+",
	"case-sensitive journaled hfs+": "Case-sensitive Journaled HFS+", "ext4": "ext4", "xfs": "xfs", "btrfs": "btrfs",
}

// appleName is what -fs calls a file system of package attach.
func appleName(f attach.FS) string {
	if proper, ok := properNames[strings.ToLower(f.Name)]; ok {
		return proper
	}
	return f.Name
}

// chooseFilesystem returns the file system of a name, or why it cannot be made.
func (c *call) chooseFilesystem(name string) (string, error) {
	proper, known := properNames[strings.ToLower(name)]
	if proper == ours {
		return ours, nil
	}
	if f, ok := c.filesystem(name, proper); ok {
		switch {
		case !f.Present && f.Tool != "":
			return "", refuse("file system %s needs the program %s, of the package %s", appleName(f), f.Tool, f.Package)
		case !c.env.Attacher.Loops():
			return "", refuse("file system %s needs loop devices and the rights of root; %s needs neither",
				appleName(f), ours)
		}
		return f.Name, nil
	}
	possible := strings.Join(c.makeable(), ", ")
	if known {
		return "", refuse("file system %s cannot be made on this system; possible here: %s", proper, possible)
	}
	return "", refuse("file system %q is not known; possible here: %s", name, possible)
}

// filesystem finds a file system of the attacher by one of several names.
func (c *call) filesystem(names ...string) (attach.FS, bool) {
	for _, f := range c.env.Attacher.Filesystems() {
		for _, n := range append([]string{f.Name}, f.Aliases...) {
			if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(n, name) }) {
				return f, true
			}
		}
	}
	return attach.FS{}, false
}

// makeable are the file systems that create can make and attach can mount on this machine. A file system that the
// kernel does not mount can still be made, for other machines.
func (c *call) makeable() []string {
	list := []string{ours}
	if c.env.Attacher.Loops() {
		for _, f := range c.env.Attacher.Filesystems() {
			if name := appleName(f); f.Present && f.MountableByKernel && name != ours {
				list = append(list, name)
			}
		}
	}
	return list
}

// defaultFilesystem is ext4 for root with loop devices and mkfs.ext4, where the kernel mounts it; else ExFAT.
func (c *call) defaultFilesystem() string {
	if c.env.UID == 0 && c.env.Attacher.Loops() {
		if f, ok := c.filesystem("ext4"); ok && f.Present && f.MountableByKernel {
			return f.Name
		}
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

// utf16Len is the length of a name in UTF-16 units.
func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }
