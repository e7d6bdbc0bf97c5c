package imagetool

import "slices"

// verbs is the table that grammar, help and manual page are made from. It is filled in
// by init, since the verb help reads it.
var verbs []*verb

func init() {
	for _, v := range slices.Concat(hdiutilVerbs(), extensionVerbs(), diskutilVerbs()) {
		switch v.tool {
		case "hdiutil":
			v.options = append(v.options, common...)
		case "diskutil":
			v.options = append(v.options, commonDiskutil...)
		}
		verbs = append(verbs, v)
	}
}

// common are the options of every verb of hdiutil.
var common = []option{
	{name: "-verbose", help: "says more on stderr"},
	{name: "-quiet", help: "closes stdout and stderr: only the exit status remains"},
	{name: "-debug", help: "implies -verbose; both win over -quiet"},
	{name: "-help", help: "prints this help"},
}

var (
	asPlist    = option{name: "-plist", help: "prints the result as an XML property list"}
	puppet     = option{name: "-puppetstrings", help: "prints progress as lines PERCENT:<number> on stdout; -1 is unknown"}
	stdin      = option{name: "-stdinpass", help: "reads the passphrase of an encrypted image from stdin, up to a NUL or the end; a line end is part of it"}
	askPass    = []option{agent, recover1, cert, pubkey}
	agent      = option{name: "-agentpass", standing: refused, help: "nobody is asked for a passphrase here: want -stdinpass"}
	recover1   = option{name: "-recover", arg: "KEYCHAIN", standing: refused, help: "there are no keychains here"}
	cert       = option{name: "-certificate", arg: "FILE", standing: refused, help: "images unlocked by certificates are not there yet"}
	pubkey     = option{name: "-pubkey", arg: "HASH", standing: refused, help: "images unlocked by certificates are not there yet"}
	shadow     = option{name: "-shadow", arg: "FILE", standing: refused, help: "shadow files are not there yet"}
	cacert     = option{name: "-cacert", arg: "FILE", standing: refused, help: "images over HTTP are not there"}
	insecure   = option{name: "-insecurehttp", standing: refused, help: "images over HTTP are not there"}
	srckey     = option{name: "-srcimagekey", arg: "KEY=VALUE", help: rawkey}
	imagekey   = option{name: "-imagekey", arg: "KEY=VALUE", help: rawkey}
	rawkey     = "diskimage-class=CRawDiskImage takes a file for a raw image whatever it looks like, even an image of another program, such as qcow2"
	convertkey = "sparse-band-size=SECTORS, 2048 to 16777216 (1 MiB to 8 GiB), for sparse bundles and sparse images; zlib-level=1 to 9, for UDZO, default 6; bzip2-level=1 to 9, for UDBZ"
	bandkey    = "sparse-band-size=SECTORS, 2048 to 16777216 (1 MiB to 8 GiB); sparse bundles only"
	encrypt    = option{name: "-encryption", arg: "CIPHER", values: "AES-128 AES-256", optional: true, help: "encrypts the new image, with AES-128 if nothing else is said; the passphrase comes by -stdinpass"}
	decrypt    = option{name: "-encryption", arg: "CIPHER", values: "AES-128 AES-256", optional: true, standing: ignored, help: "the image says how it is encrypted"}
	twoStdin   = option{name: "-stdinpass", help: "reads passphrases from stdin, each up to a NUL or the end: of the image if it is encrypted, then of the new one if it is to be; a line end is part of it"}
	over       = option{name: "-ov", help: "replaces an existing image, once the new one is complete"}
)

// reading are the options of verbs that read an image and make no other.
func reading(list ...option) []option {
	return slices.Concat(list, []option{stdin, decrypt, shadow, cacert, insecure, srckey, imagekey}, askPass)
}

func hdiutilVerbs() []*verb {
	return []*verb{
		{tool: "hdiutil", name: "create", short: "make a new image", operands: "IMAGE", min: 1, max: 1, options: createOptions(), run: (*call).create,
			notes: "One of -size, -sectors, -megabytes is needed, unless there is a -srcfolder. Without -fs and -layout the file system is {default}; with -layout and without -fs there is none."},
		{tool: "hdiutil", name: "attach", also: []string{"mount"}, short: "attach an image and mount what is on it", operands: "IMAGE", min: 1, max: 1,
			options: attachOptions(), run: (*call).attach,
			notes: "Prints a line for each device: device, TAB, content, TAB, mount point. Attaching what is attached already prints what there is, with a warning where that is not what was asked for."},
		{tool: "hdiutil", name: "detach", also: []string{"eject"}, short: "unmount and detach an image", operands: "DEVICE|MOUNTPOINT", min: 1, max: 1, run: (*call).detach,
			options: []option{{name: "-force", help: "detaches even if files are open, and says what was lost"}},
			notes:   "The status is 16 when a volume is busy."},
		{tool: "hdiutil", name: "info", short: "list attached images", run: (*call).info, options: []option{asPlist}},
		{tool: "hdiutil", name: "imageinfo", short: "describe an image", operands: "IMAGE", min: 1, max: 1, run: (*call).imageinfo, options: reading(asPlist,
			option{name: "-format", help: "prints the four letters of the format, and nothing else"},
			option{name: "-checksum", help: "prints the stored checksum, and nothing else"})},
		{tool: "hdiutil", name: "compact", short: "give unused bands of an image back to the host", operands: "IMAGE", min: 1, max: 1, run: (*call).compact,
			options: reading(asPlist, puppet,
				option{name: "-batteryallowed", standing: ignored, help: "compacting on battery is always allowed"},
				option{name: "-sleepallowed", standing: ignored, help: "sleep is not prevented"}),
			notes: "Bands that hold nothing go: by the allocation bitmap of an ExFAT volume, and of other contents those that are all zeros."},
		{tool: "hdiutil", name: "resize", short: "change the size of an image, or show its limits", operands: "IMAGE", min: 1, max: 1, run: (*call).resize, options: resizeOptions(),
			notes: "-limits prints three numbers of sectors: smallest, present, largest. The status is 35 when the image is in use."},
		{tool: "hdiutil", name: "convert", short: "make an image of another format with the same content", operands: "IMAGE", min: 1, max: 1, run: (*call).convert, options: convertOptions()},
		{tool: "hdiutil", name: "verify", short: "check the stored checksum of an image", operands: "IMAGE", min: 1, max: 1, run: (*call).verify, options: reading(asPlist, puppet),
			notes: "UDIF images store checksums: of their parts, of all parts together, and most of the file's data. The status is 1 when one differs, and when there is none: other formats store none. Of these the structure is looked at, such as the bands of a bundle, and what is wrong is told."},
		{tool: "hdiutil", name: "checksum", short: "compute a checksum of what is on an image", operands: "IMAGE", min: 1, max: 1, run: (*call).checksum,
			options: reading(option{name: "-type", arg: "TYPE", values: checksumTypes, help: "the checksum; it is needed"}, asPlist, puppet),
			notes:   "UDIF-CRC32 and UDIF-MD5 are what a read-only image stores: the checksum over the checksums of its parts (boot record, tables, partitions, gaps), without what its own tables leave out; of other images it is what convert would store. The others are over the whole device."},
		{tool: "hdiutil", name: "isencrypted", short: "say whether an image is encrypted", operands: "IMAGE", min: 1, max: 1, run: (*call).isencrypted, options: []option{asPlist, cacert, insecure}},
		{tool: "hdiutil", name: "chpass", short: "change the passphrase of an image", operands: "IMAGE", min: 1, max: 1, run: (*call).chpass,
			options: []option{{name: "-oldstdinpass", help: "reads the present passphrase from stdin, up to a NUL; it is needed"},
				{name: "-newstdinpass", help: "reads the new passphrase from stdin, after the old one, up to a NUL or the end; it is needed"}, agent, recover1},
			notes: "The data stays as it is: the keys are wrapped anew. The image must not be attached."},
		{tool: "hdiutil", name: "unmount", short: "unmount a volume and keep its image attached", operands: "DEVICE|MOUNTPOINT", min: 1, max: 1, run: (*call).unmount,
			options: []option{{name: "-force", help: "unmounts even if files are open"}}},
		{tool: "hdiutil", name: "mountvol", short: "mount the volume of an attached image", operands: "DEVICE", min: 1, max: 1, run: (*call).mountvol,
			options: []option{asPlist, mountpoint, mountroot, mountrandom}},
		{tool: "hdiutil", name: "pmap", short: "show the partition map of an image", operands: "IMAGE", min: 1, max: 1, run: (*call).pmap,
			options: reading(option{name: "-simple", help: "leaves free space and tables out"}, option{name: "-standard", help: "shows everything, as without it"},
				option{name: "-complete", help: "adds types and identifiers"})},
		{tool: "hdiutil", name: "help", short: "explain a verb", operands: "[VERB]", max: 3, run: (*call).help},
	}
}

func createOptions() []option {
	return slices.Concat([]option{
		{name: "-size", arg: "SIZE", help: "a number and b (sectors of 512 bytes), k, m, g, t, p or e (binary multiples); fractions are allowed, a number alone is bytes"},
		{name: "-sectors", arg: "N", help: "the size in sectors of 512 bytes"},
		{name: "-megabytes", arg: "N", help: "the size in units of 1048576 bytes"},
		{name: "-type", arg: "TYPE", help: "of an empty image, here one of: {types}; the default is what the file name says, else a UDRW file"},
		{name: "-fs", arg: "NAME", help: "the file system, here one of: {filesystems}"},
		{name: "-volname", arg: "NAME", help: "the name of the volume; the default is untitled"},
		{name: "-layout", arg: "LAYOUT", help: "GPTSPUD, the default, is a GUID partition table with one partition; NONE is none"},
		{name: "-srcfolder", also: []string{"-srcdir"}, arg: "FOLDER", help: "copies what is in a folder into a new ExFAT image, or the folder itself if it is a bundle such as X.app; of several, each becomes a folder. Times are kept; what ExFAT does not keep is told in a line"},
		{name: "-format", arg: "FORMAT", help: "of an image with a -srcfolder, here one of: {conversions}; the default is what the file name says, else UDZO"},
		{name: "-imagekey", also: []string{"-tgtimagekey"}, arg: "KEY=VALUE", help: convertkey},
		over, {name: "-attach", help: "attaches the new image"}, asPlist, puppet,
		{name: "-spotlight", also: []string{"-nospotlight"}, standing: ignored, help: "there is no index"},
		{name: "-autostretch", also: []string{"-noautostretch"}, standing: ignored, help: "for HFS+ of Apple's"},
		{name: "-scrub", also: []string{"-noscrub"}, standing: ignored, help: "for sources that are devices"},
		{name: "-crossdev", also: []string{"-nocrossdev"}, standing: ignored, help: "a -srcfolder is copied with what is mounted in it"},
		{name: "-anyowners", also: []string{"-noanyowners"}, standing: ignored, help: "ExFAT knows no owners"},
		{name: "-fsargs", arg: "ARGS", standing: ignored, help: "arguments for programs of Apple's that make file systems"},
		{name: "-atomic", also: []string{"-noatomic"}, standing: ignored, help: "what did not succeed is always deleted"},
		stdin, encrypt,
	}, refusedAll("not there yet", "-srcdevice DEVICE", "-uid ID", "-gid ID", "-mode MODE", "-partitionType TYPE", "-align SECTORS",
		"-library NAME", "-stretch SIZE", "-skipunreadable", "-copyuid USER"), askPass)
}

// refusedAll are options that Apple's tool has.
func refusedAll(why string, list ...string) []option {
	var out []option
	for _, s := range list {
		o := option{name: s, standing: refused, help: why}
		for i, r := range s {
			if r == ' ' {
				o.name, o.arg = s[:i], s[i+1:]
				break
			}
		}
		out = append(out, o)
	}
	return out
}

var (
	mountpoint  = option{name: "-mountpoint", arg: "FOLDER", help: "mounts the volume on this folder, which is made if it is missing, and then removed when it is unmounted"}
	mountroot   = option{name: "-mountroot", arg: "FOLDER", help: "mounts the volume on a folder made in this one, named like the volume"}
	mountrandom = option{name: "-mountrandom", arg: "FOLDER", help: "mounts the volume on a folder made in this one, with a random name"}
)

func attachOptions() []option {
	return slices.Concat([]option{
		{name: "-readonly", help: "attaches and mounts without writing"},
		{name: "-readwrite", help: "the opposite, which is the default"},
		{name: "-nomount", help: "attaches without mounting, as -mount suppressed"},
		{name: "-mount", arg: "POLICY", values: "required optional suppressed", help: "required, the default: an image with nothing to mount is not attached"},
		mountpoint, mountroot, mountrandom,
		{name: "-nobrowse", help: "hides the mount from people's file managers"},
		{name: "-owners", arg: "HOW", values: "on off", help: "whether owners of files are honoured, where the file system has them"},
		asPlist, puppet, srckey, imagekey,
		{name: "-verify", help: "computes the checksums that a read-only image stores, and refuses it if one differs; this is the default"},
		{name: "-noverify", help: "looks at no checksum"},
		{name: "-ignorebadchecksums", help: "attaches in spite of a checksum that differs, with a warning"},
		{name: "-noignorebadchecksums", standing: ignored, help: "the opposite, which is the default"},
		{name: "-noautofsck", standing: ignored, help: "no file system is checked"},
		{name: "-autofsck", standing: refused, help: "checking before the mount is not there: run fsck on the device after attaching with -nomount"},
		{name: "-autoopen", also: []string{"-noautoopen", "-autoopenro", "-noautoopenro", "-autoopenrw", "-noautoopenrw"}, standing: ignored, help: "no windows are opened"},
		{name: "-kernel", help: "attaches without a helper process, or not at all: plain UDRW images, as loop devices"},
		{name: "-nokernel", help: "attaches through a helper process and FUSE, even what a loop device alone could serve"},
		{name: "-noidme", also: []string{"-noidmereveal", "-noidmetrash"}, standing: ignored, help: "a feature of the past"},
		stdin, decrypt, shadow, cacert, insecure,
	}, refusedAll("not there yet", "-section SECTION", "-drivekey KEY=VALUE", "-notremovable"), askPass)
}

func resizeOptions() []option {
	return slices.Concat(reading(
		option{name: "-size", arg: "SIZE", help: "as of create; min is the smallest size"},
		option{name: "-sectors", arg: "N", help: "the size in sectors of 512 bytes; min is the smallest size"},
		option{name: "-limits", help: "prints the limits"},
		option{name: "-imageonly", help: "leaves partition and volume as they are"},
		asPlist, puppet),
		refusedAll("not there: an image is resized with its last partition, or alone with -imageonly", "-partitiononly", "-partitionID N", "-nofinalgap"))
}

func convertOptions() []option {
	return slices.Concat([]option{
		{name: "-format", arg: "FORMAT", help: "the format of the new image, here one of: {conversions}. It is needed"},
		{name: "-o", arg: "FILE", help: "the new image; the extension of the format is added if it is missing. It is needed"},
		over, asPlist, puppet, srckey,
		{name: "-imagekey", also: []string{"-tgtimagekey"}, arg: "KEY=VALUE", help: convertkey},
		{name: "-tasks", arg: "N", help: "how many chunks are compressed at once; the default is one for each processor"},
		{name: "-noverify", help: "keeps the new image where the old one's data differs from the checksums that it stores, with a warning; without it that is an error, and nothing is made"},
		{name: "-pmap", standing: ignored, help: "the device is copied with its partition map"},
		twoStdin, encrypt, shadow, cacert, insecure,
	}, refusedAll("not there yet", "-align SECTORS", "-segmentSize SIZE"), askPass)
}

func extensionVerbs() []*verb {
	return []*verb{
		{tool: "hdiutil", name: "ls", short: "list what is on an ExFAT image, without mounting it", operands: "IMAGE [PATH]", min: 1, max: 2, extension: true, run: (*call).list,
			options: []option{{name: "-l", help: "shows kinds, sizes in bytes and times"}, {name: "-R", help: "lists what is below folders too"}, stdin, srckey, imagekey}},
		{tool: "hdiutil", name: "cat", short: "print files of an ExFAT image, without mounting it", operands: "IMAGE PATH [PATH...]", min: 2, max: 1 << 20, extension: true, run: (*call).cat, options: []option{stdin, srckey, imagekey}},
		{tool: "hdiutil", name: "extract", short: "copy files out of an ExFAT image, without mounting it", operands: "IMAGE [PATH]", min: 1, max: 2, extension: true, run: (*call).extract,
			options: []option{{name: "-d", arg: "FOLDER", help: "the folder that they are copied into, made if it is missing; the default is the working folder"},
				{name: "-ov", help: "replaces files that exist"},
				{name: "-noverify", help: "looks at no checksum; without it those that a read-only image stores are computed, and the status is 1 if one differs"}, stdin, srckey, imagekey}},
		{tool: "hdiutil", name: "trim", short: "free what a mounted volume does not use", operands: "MOUNTPOINT", min: 1, max: 1, extension: true, run: (*call).trim},
		{tool: "hdiutil", name: "man", short: "print the manual page in roff", extension: true, run: (*call).manual},
	}
}
