package command

import "strconv"

// CreateBlank is `diskutil image create blank`.
func CreateBlank(o CreateOptions) Command {
	return diskutil("image create blank", checkPath(o.Image), checkSize(o.Size, DiskutilUnit)).
		withSecretOptions(o.Passphrase != nil, o.Passphrase != nil).
		with("--format", o.Type, "--size", strconv.FormatInt(o.Size, 10)).
		withIf(o.Filesystem != "", "--fs", o.Filesystem).
		withIf(o.Filesystem != "None", "--volumeName", o.Volume).
		with(o.Image).withInput(o.Passphrase)
}

// CreateFrom is `diskutil image create from`. Of two passphrases the source's comes first.
func CreateFrom(o ConvertOptions) Command {
	return diskutil("image create from", checkPath(o.Source), checkPath(o.Target)).
		withSecretOptions(o.TargetPass != nil, o.SourcePass != nil || o.TargetPass != nil).
		with("--format", o.Format, o.Source, o.Target).withInput(o.SourcePass, o.TargetPass)
}

func (c Command) withSecretOptions(encrypt, read bool) Command {
	return c.withIf(encrypt, "--encrypt").withIf(read, "--stdinpassphrase")
}

// AttachDiskutil is `diskutil image attach`. Without a mount it takes --noMount alone, which conflicts with options
// about mounts.
func AttachDiskutil(o AttachOptions) Command {
	return diskutil("image attach", checkPath(o.Image)).with("--plist").
		withSecretOptions(false, o.Passphrase != nil).
		withIf(o.ReadOnly, "--readOnly").
		mountAt(o.MountPoint, []string{"--noMount"}, "--nobrowse", "--mountPoint").
		with(o.Image).withInput(o.Passphrase)
}

// ImageInfoDiskutil is `diskutil image info`, the only command that reads ASIF.
func ImageInfoDiskutil(image string, passphrase []byte) Command {
	return diskutil("image info", checkPath(image)).with("--plist").
		withSecretOptions(false, passphrase != nil).with(image).withInput(passphrase)
}

// ResizeDiskutil is `diskutil image resize` of a detached image with GPT or a bare APFS.
func ResizeDiskutil(o ResizeOptions) Command {
	return diskutil("image resize", checkPath(o.Image), checkSize(o.Size, DiskutilUnit)).
		with("--size", strconv.FormatInt(o.Size, 10)).withIf(o.ImageOnly, "--image-only").
		withSecretOptions(false, o.Passphrase != nil).with(o.Image).withInput(o.Passphrase)
}

// Eject is `diskutil eject` of an image's whole disk.
func Eject(device string) Command { return onDevice("eject", device) }

// VerifyVolume is `diskutil verifyVolume`, or repairVolume.
func VerifyVolume(device string, repair bool) Command {
	if repair {
		return onDevice("repairVolume", device)
	}
	return onDevice("verifyVolume", device)
}

func onDevice(verb, device string) Command {
	return diskutil(verb, checkDevice(device)).with(device)
}

// HelpDiskutil is `diskutil VERB --help`; the verb may have several words.
func HelpDiskutil(verb string) Command { return diskutil(verb).with("--help") }
