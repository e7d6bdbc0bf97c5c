package hdiutil

import (
	"cmp"
	"strings"
)

// none is the name of an image without a file system.
const none = "none"

// filesystem is a file system by the name that plans use.
type filesystem struct {
	name     string
	hdiutil  string   // of -fs; "": -layout NONE
	diskutil string   // of --fs; "": diskutil does not make it
	types    []string // in the mount table
	label    int      // longest volume name, bytes
	apple    bool     // Apple's tool makes it
	linux    bool     // hdiutil of dmgbench makes it
	fsck     fsck     // on Linux
}

// fsck is how a file system is checked on Linux.
type fsck struct {
	program string // "": not checked
	check   string // arguments of a check
	repair  []repairCommand
}

// repairCommand is one run of the program that repairs; all of them run, one
// after the other.
type repairCommand struct {
	args  string
	fixed []int // statuses besides 0 that mean: errors were found and corrected
}

// repairs is a repair by one run with the statuses of fsck(8): 1 corrected, 2
// corrected and to be mounted anew.
func repairs(args string) []repairCommand { return []repairCommand{{args, []int{1, 2, 3}}} }

// filesystems are all file systems that the tools make.
var filesystems = []filesystem{
	{name: "APFS", hdiutil: "APFS", diskutil: "APFS", types: []string{"apfs"}, label: 127, apple: true},
	{name: "Case-sensitive APFS", hdiutil: "Case-sensitive APFS", types: []string{"apfs"}, label: 127, apple: true},
	hfs("HFS+"), hfs("Journaled HFS+"), hfs("Case-sensitive HFS+"), hfs("Case-sensitive Journaled HFS+"),
	{name: "FAT32", hdiutil: "MS-DOS FAT32", diskutil: "MS-DOS", types: []string{"msdos", "vfat"}, label: 11,
		apple: true, linux: true, fsck: fsck{"fsck.fat", "-n", repairs("-a")}},
	{name: "exFAT", hdiutil: "ExFAT", diskutil: "ExFAT", types: []string{"exfat"}, label: 11, apple: true,
		linux: true, fsck: fsck{"fsck.exfat", "-n", repairs("-b -y")}},
	{name: none, diskutil: "None", apple: true, linux: true},
	{name: "ext4", hdiutil: "ext4", diskutil: "ext4", types: []string{"ext4"}, label: 16, linux: true,
		fsck: fsck{"fsck.ext4", "-fn", repairs("-fy")}},
	{name: "XFS", hdiutil: "xfs", diskutil: "xfs", types: []string{"xfs"}, label: 12, linux: true,
		fsck: fsck{"xfs_repair", "-n", []repairCommand{{"", nil}}}},
	// btrfs check opens no volume without the first superblock; super-recover
	// restores it from its copies (status 2), which e2fsck does without being
	// asked.
	{name: "btrfs", hdiutil: "btrfs", diskutil: "btrfs", types: []string{"btrfs"}, label: 255, linux: true,
		fsck: fsck{"btrfs", "check --readonly",
			[]repairCommand{{"rescue super-recover -y", []int{2}}, {"check --repair --force", nil}}}},
}

// hfs is a variant of HFS+.
func hfs(name string) filesystem {
	return filesystem{name: name, hdiutil: name, types: []string{"hfs", "hfsplus"}, label: 127, apple: true,
		linux: name == "HFS+", fsck: fsck{"fsck.hfsplus", "-fn", repairs("-fy")}}
}

// filesystemNamed finds a file system by its name in any case; an unknown name
// gives the zero row.
func filesystemNamed(name string) filesystem {
	for _, f := range filesystems {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return filesystem{}
}

// isType reports whether the file system has this type in the mount table.
func (f filesystem) isType(kind string) bool { return len(f.types) > 0 && f.types[0] == kind }

// labelFor shortens a volume name to what the file system accepts, at a whole
// character.
func (f filesystem) labelFor(name string) string {
	name = cmp.Or(name, "dmgbench")
	return strings.ToValidUTF8(name[:min(len(name), f.label)], "")
}
