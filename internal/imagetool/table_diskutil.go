package imagetool

// commonDiskutil are the options of every verb of diskutil. All may stand before the verb below image.
var commonDiskutil = []option{
	{name: "--verbose", help: "says more on stderr"},
	{name: "--help", also: []string{"-h"}, help: "prints this help"},
}

var (
	plistDU   = option{name: "--plist", help: "prints the result as an XML property list"}
	stdinDU   = option{name: "--stdinpassphrase", also: []string{"--stdinpass"}, help: "reads the passphrase of an encrypted image from stdin, as a line"}
	twoDU     = option{name: "--stdinpassphrase", also: []string{"--stdinpass"}, help: "reads passphrases from stdin, each as a line: of the image if it is encrypted, then the new one"}
	encryptDU = option{name: "--encrypt", also: []string{"-e"}, help: "encrypts the new image with AES-256; the passphrase comes by --stdinpassphrase"}
	sizesDU   = "a number and nothing or B (bytes), K, M, G, T, P, E (decimal), Ki … Ei (binary), S or UAM (sectors of 512 bytes); rounded up to 4096 bytes"
)

func diskutilVerbs() []*verb {
	return []*verb{
		{tool: "diskutil", name: "image create blank", short: "make a new image", operands: "IMAGE", min: 1, max: 1, run: (*call).createBlank,
			options: []option{
				{name: "--format", arg: "FORMAT", help: "here one of: {images}; the default is what the file name says, else RAW"},
				{name: "--size", also: []string{"-s"}, arg: "SIZE", help: sizesDU + ". It is needed"},
				{name: "--fs", also: []string{"-fs"}, arg: "NAME", help: "the file system, here one of: {filesystems}, None; the default is {default}"},
				{name: "--volumeName", arg: "NAME", help: "the name of the volume; the default is Untitled"},
				plistDU, stdinDU, encryptDU,
			}},
		{tool: "diskutil", name: "image create from", short: "make an image of another format with the same content", operands: "SOURCE IMAGE", min: 2, max: 2, run: (*call).createFrom,
			options: []option{
				{name: "--format", arg: "FORMAT", help: "here one of: {froms}; the default is what the file name says, else RAW"},
				{name: "--shadow", arg: "FILE", standing: refused, help: "shadow files are not there yet"}, plistDU, twoDU, encryptDU,
			}},
		{tool: "diskutil", name: "image attach", short: "attach an image and mount what is on it", operands: "IMAGE", min: 1, max: 1, run: (*call).attachImage,
			options: []option{
				{name: "--readOnly", help: "attaches and mounts without writing"},
				{name: "--nobrowse", help: "hides the mount from people's file managers"},
				{name: "--mountPoint", arg: "FOLDER", help: "mounts the volume on this folder, which is made if it is missing, and then removed when it is unmounted"},
				{name: "--mountOptions", arg: "OPTIONS", help: "of nobrowse, rdonly, owners and noowners, with commas between them"},
				{name: "--mountPolicy", arg: "POLICY", values: "noMount autoMount forceMount", help: "forceMount, the default: an image with nothing to mount is not attached"},
				{name: "--noMount", help: "attaches without mounting"},
				{name: "--shadow", arg: "FILE", standing: refused, help: "shadow files are not there yet"}, plistDU, stdinDU,
			}},
		{tool: "diskutil", name: "image info", short: "describe an image", operands: "IMAGE", min: 1, max: 1, run: (*call).infoImage,
			options: []option{{name: "--extra", help: "adds the partition map"}, plistDU, stdinDU}},
		{tool: "diskutil", name: "image resize", short: "change the size of an image, or show its limits", operands: "IMAGE", min: 1, max: 1, run: (*call).resizeImage,
			options: []option{
				{name: "--size", also: []string{"-s"}, arg: "SIZE", help: sizesDU + "; min is the smallest size. Without a size the limits are printed, in bytes"},
				{name: "--image-only", help: "leaves partition and volume as they are"}, plistDU, stdinDU,
			}},
		{tool: "diskutil", name: "image chpass", short: "change the passphrase of an image", operands: "IMAGE", min: 1, max: 1, run: (*call).chpass,
			options: []option{twoDU, plistDU}},
		{tool: "diskutil", name: "eject", short: "unmount and detach an image", operands: "DEVICE|MOUNTPOINT", min: 1, max: 1, run: (*call).eject},
		{tool: "diskutil", name: "help", short: "explain a verb", operands: "[VERB]", max: 3, run: (*call).help},
	}
}
