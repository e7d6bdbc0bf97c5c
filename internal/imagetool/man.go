package imagetool

import (
	"fmt"
	"io"
	"strings"
)

// differences are what a person who knows Apple's hdiutil has to know: titles and texts of the manual page.
var differences = [][2]string{
	{"Formats", "UDRW, UDSB (backing-store version 1), UDSP, UDTO and through diskutil ASIF, and the read-only kinds that \"hdiutil help convert\" lists, which are attached read-only. All but ASIF can be encrypted, as version 2 with AES-128 or AES-256; version 1 is only read. While an image is attached, read-only too, nothing changes it. Shadow files, segments and images over HTTP are refused with status 1. An existing image is never taken for another format. A file that ends in .dmg, has no trailer, and begins with a compressed stream of whole sectors where a partition map or a volume would be, is a UDIF image that was cut off, most likely: verify, attach, convert and imageinfo take it for raw sectors and warn. Images of other programs (qcow2, VMDK, VDI, VHD, VHDX, Parallels, QED) are named and refused; -srcimagekey diskimage-class=CRawDiskImage, or the extension .raw, takes their bytes for sectors. Other files without any known structure are raw images, with a warning."},
	{"File systems", "Without -fs the file system is ext4 for root with loop devices and mkfs.ext4, on a kernel that mounts ext4; else it is ExFAT. Apple's default is APFS, which cannot be made here. ExFAT is made by this program itself and needs no rights; the others need root, loop devices and the programs of their packages. A file system that cannot be made is an error with a hint, never replaced by another one. An ExFAT volume can grow to four times its first size; its name has at most 11 characters."},
	{"Layout", "GPTSPUD puts the partition at 1 MiB (20 KiB in images below 4 MiB), where Apple's begin at 20 KiB. NONE is the other layout. A new UDRW image is allocated in full."},
	{"Devices", "Images become loop devices: /dev/loop3, its partition /dev/loop3p1. A sparse bundle is served by a process of its own as a FUSE file under the loop device. Without loop devices an ExFAT volume is served by FUSE alone, and its device is only a name, good for detach. Such a volume is flushed at most 5 s after a change, by fsync of a file or folder (as \"sync FOLDER\" does), and when it is detached; sync without operands, \"sync -f\" and syncfs(2) do not reach it, as Linux passes them to virtiofs and fuseblk mounts alone. If the serving process is killed, the last 5 s may be lost. Where the primary GUID partition table is damaged the backup is used, with a warning; where both are, the device has no partitions, and -nomount attaches it all the same. Apple's shows no partitions as soon as the primary one is damaged."},
	{"Mounting", "Volumes are mounted nosuid, nodev and noatime in a folder named after the volume, below /run/media/dmgbench for root and below the runtime folder for others, where Apple's are in /Volumes. Only known file systems are mounted. -nobrowse changes nothing: there is no Finder to hide from. Nothing is checked before the mount. From the second time on, a volume is trimmed when it is attached."},
	{"Owners", "Owners are what the file system stores; there is no mapping to the user who attaches, as macOS has it without -owners on. On file systems without owners everything belongs to the user who attached, under sudo to the one who called sudo, and -owners on changes nothing. Images made under sudo belong to root."},
	{"Passphrases", "-stdinpass reads all of stdin up to a NUL, a line end included, and only when the image is encrypted. Nobody is asked."},
	{"Sizes", "-size is in the style of mkfile(8): b is sectors of 512 bytes, a number alone bytes; sizes are rounded up to a whole sector. diskutil's G is decimal and its Gi binary."},
	{"Compacting", "Whole bands are given back: those that an ExFAT volume does not use, and of other contents those that are all zeros (trim a mounted volume, or attach it twice, to make them so). The battery is not looked at."},
	{"Converting", "Every byte of the device is converted: what was deleted from a volume and lies in its free space goes into the new image, where Apple's leave out what the volume does not use. Trim the volume, or compact the image, before."},
	{"Leftovers", "An image is made as .dmgbench-, 16 hexadecimal digits and its name, and renamed when it is complete; a file that ends in .lock is locked meanwhile. What a process that was killed has left is removed by the next create or convert into the same folder, by the same user and before the next boot, if nobody holds that lock. Anything else stays: after a power failure such files are to be removed by hand. One that ends in ~ is an old image which was about to be replaced."},
	{"Resizing", "ExFAT volumes grow and shrink with the image, ext4, XFS and Btrfs grow (root, and the programs of the file system). Data is not moved: the smallest size is where the highest used cluster ends. What a resize that was killed has left undone, the same resize does."},
	{"Property lists", "Keys and types are those of Apple's. The vendor is dmgbench. info has an empty list of images when nothing is attached, as older systems of Apple's do (newer ones leave the key out), and one more key, dmgbench-lost: images whose process died since the last look."},
}

// manual prints the manual page. It is made from the table of verbs.
func (c *call) manual() error {
	_, err := io.WriteString(c.out, manualPage())
	return err
}

func manualPage() string {
	var b strings.Builder
	b.WriteString(".\\\" Made from the table of verbs: hdiutil man\n.TH HDIUTIL 1 \"\" dmgbench \"User Commands\"\n.SH NAME\nhdiutil, diskutil image \\- make, attach and change disk images\n.SH SYNOPSIS\n")
	for _, v := range verbs {
		fmt.Fprintf(&b, ".B %s\n.br\n", Roff(v.usage()))
	}
	b.WriteString(".SH DESCRIPTION\n" + Roff("An hdiutil for Linux: the grammar, the property lists, the messages and the exit statuses of Apple's hdiutil and of its diskutil image, over containers and an ExFAT volume of its own. It is for running the plans of dmgbench on Linux, and for inspecting, converting and mounting images. It is not for packaging applications: it makes no HFS+ and no APFS, and ExFAT keeps no modes, owners, extended attributes and links, which applications need. Options and operands may stand in any order; what is not listed here is refused with status 1. diskutil is reached as \"hdiutil diskutil ...\", or by a link of that name to this program.") + "\n")
	for _, tool := range []string{"hdiutil", "diskutil"} {
		fmt.Fprintf(&b, ".SH \"VERBS OF %s\"\n", strings.ToUpper(tool))
		for _, v := range verbs {
			if v.tool == tool {
				v.roff(&b)
			}
		}
	}
	b.WriteString(".SH \"OPTIONS OF EVERY VERB\"\nhdiutil:\n")
	roffOptions(&b, common)
	b.WriteString(".PP\ndiskutil:\n")
	roffOptions(&b, commonDiskutil)
	b.WriteString(".SH \"DIFFERENCES FROM APPLE'S\"\n")
	for _, d := range differences {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", Roff(d[0]), Roff(d[1]))
	}
	b.WriteString(".SH \"EXIT STATUS\"\n")
	for _, s := range [][2]string{{"0", "done"}, {"1", "not done, or not understood"}, {"16", "detach, unmount: the volume is in use"},
		{"35", "resize: the image is in use"}, {"80", "the passphrase is wrong or missing (attach: 1)"}, {"130", "interrupted"},
		{"141", "done, and nobody read the output to its end"}} {
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", s[0], s[1])
	}
	return b.String()
}

// roff writes one verb.
func (v *verb) roff(b *strings.Builder) {
	fmt.Fprintf(b, ".SS \"%s\"\n", Roff(v.usage()))
	text := strings.ToUpper(v.short[:1]) + v.short[1:] + "."
	if v.extension {
		text += " This is an extension: Apple's tool does not have it."
	}
	if len(v.also) > 0 {
		text += " Also: " + strings.Join(v.also, ", ") + "."
	}
	if v.notes != "" {
		text += " " + generally(v.notes)
	}
	b.WriteString(Roff(text) + "\n")
	n := len(common)
	if v.tool == "diskutil" {
		n = len(commonDiskutil)
	}
	roffOptions(b, v.options[:len(v.options)-n])
}

func roffOptions(b *strings.Builder, options []option) {
	for _, o := range options {
		help := generally(o.help)
		switch o.standing {
		case ignored:
			help = "Understood and without effect: " + help
		case refused:
			help = "Refused: " + help
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s.\n", Roff(o.usage()), Roff(help))
	}
}

// generally is a text without what only one machine can say.
func generally(text string) string {
	return strings.NewReplacer("here one of: {filesystems}", "ExFAT and what the machine can make (see the help of the verb)",
		", here one of: {types}", " (see the help of the verb)", ", here one of: {conversions}", " (see the help of the verb)",
		"here one of: {images}", "RAW, UDSB or another one (see the help of the verb)", "here one of: {froms}", "RAW, UDSB, UDZO or another one (see the help of the verb)", "{default}", "as the section on file systems says").Replace(text)
}

// Roff keeps a text from being taken for requests.
func Roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
