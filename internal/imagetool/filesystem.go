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
	for _, f := range c.env.Attacher.Filesystems() {
		if !strings.EqualFold(f.Name, name) && !strings.EqualFold(f.Name, proper) {
			continue
		}
		switch {
		case !f.Present && f.Tool == "":
		case !f.Present:
			return "", refuse("file system %s needs the program %s, of the package %s", f.Name, f.Tool, f.Package)
		case !c.env.Attacher.Loops():
			return "", refuse("file system %s needs loop devices and the rights of root; %s needs neither", f.Name, ours)
		default:
			return f.Name, nil
		}
	}
	possible := strings.Join(c.makeable(), ", ")
	if known {
		return "", refuse("file system %s cannot be made on this system; possible here: %s", proper, possible)
	}
	return "", refuse("file system %q is not known; possible here: %s", name, possible)
}

// makeable are the file systems that create can make here and now.
func (c *call) makeable() []string {
	list := []string{ours}
	if c.env.Attacher.Loops() {
		for _, f := range c.env.Attacher.Filesystems() {
			if f.Present && !slices.Contains(list, f.Name) && !strings.EqualFold(f.Name, ours) {
				list = append(list, f.Name)
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
func partitionType(filesystem string) gpt.GUID {
	switch {
	case filesystem == ours, strings.HasPrefix(filesystem, "MS-DOS"):
		return gpt.BasicData
	case strings.Contains(filesystem, "HFS"):
		return gpt.AppleHFS
	case strings.Contains(filesystem, "APFS"):
		return gpt.AppleAPFS
	}
	return gpt.LinuxData
}
