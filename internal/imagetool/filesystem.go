package imagetool

import (
	"slices"
	"strings"

	"dmgbench/internal/gpt"
)

// ours is the file system that is made in this process, without privileges.
const ours = "ExFAT"

// namesAlso are other names of file systems that Apple's -fs takes.
var namesAlso = map[string]string{
	"exfat": "ExFAT", "ms-dos fat32": "MS-DOS FAT32", "fat32": "MS-DOS FAT32", "ms-dos": "MS-DOS FAT32",
	"ms-dos fat16": "MS-DOS FAT16", "ms-dos fat12": "MS-DOS FAT12", "udf": "UDF", "apfs": "APFS", "case-sensitive apfs": "Case-sensitive APFS",
	"hfs+": "HFS+", "hfs+j": "Journaled HFS+", "jhfs+": "Journaled HFS+", "journaled hfs+": "Journaled HFS+",
	"hfsx": "Case-sensitive HFS+", "case-sensitive hfs+": "Case-sensitive HFS+", "jhfs+x": "Case-sensitive Journaled HFS+",
	"case-sensitive journaled hfs+": "Case-sensitive Journaled HFS+", "ext4": "ext4", "xfs": "xfs", "btrfs": "btrfs",
}

// filesystem is the file system that a name stands for: its proper name, whether it can be made, and why not.
func (c *call) filesystem(name string) (string, error) {
	proper, known := namesAlso[strings.ToLower(name)]
	if proper == ours {
		return ours, nil
	}
	if f, ok := c.made(name, proper); ok {
		switch {
		case !f.Present && f.Tool != "":
			return "", refuse("file system %s needs the program %s, of the package %s", appleName(f), f.Tool, f.Package)
		case !c.env.Attacher.Loops():
			return "", refuse("file system %s needs loop devices and the rights of root; %s needs neither", appleName(f), ours)
		}
		return f.Name, nil
	}
	possible := strings.Join(c.makeable(), ", ")
	if known {
		return "", refuse("file system %s cannot be made on this system; possible here: %s", proper, possible)
	}
	return "", refuse("file system %q is not known; possible here: %s", name, possible)
}

// made finds a file system of the attacher's by one of two names.
func (c *call) made(names ...string) (Filesystem, bool) {
	for _, f := range c.env.Attacher.Filesystems() {
		for _, n := range append([]string{f.Name}, f.Aliases...) {
			if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(n, name) }) {
				return f, true
			}
		}
	}
	return Filesystem{}, false
}

// appleName is what -fs calls a file system.
func appleName(f Filesystem) string {
	if proper, ok := namesAlso[strings.ToLower(f.Name)]; ok {
		return proper
	}
	return f.Name
}

// makeable are the file systems that create can make and attach can mount, here and now.
// What the kernel does not mount can be made all the same, for other machines.
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
	for _, f := range c.env.Attacher.Filesystems() {
		if f.Name == "ext4" && f.Present && f.MountableByKernel && c.env.UID == 0 && c.env.Attacher.Loops() {
			return f.Name
		}
	}
	return ours
}

// partitionType is what the partition of a file system is marked as.
func (c *call) partitionType(filesystem string) gpt.GUID {
	f, _ := c.made(filesystem)
	switch {
	case filesystem == ours:
		return gpt.BasicData
	case f.Type != gpt.GUID{}:
		return f.Type
	}
	return gpt.LinuxData
}

// roomFor says whether a partition is large enough for a file system that a program of the host makes.
func (c *call) roomFor(filesystem string, size int64) error {
	if f, ok := c.made(filesystem); ok && filesystem != ours && size < f.MinSize {
		return refuse("%s needs %d bytes at least, the image has %d for it", appleName(f), f.MinSize, size)
	}
	return nil
}
