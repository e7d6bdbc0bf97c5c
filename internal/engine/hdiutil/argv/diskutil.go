package argv

import (
	"fmt"
	"strconv"
)

// diskutilUnit is what sizes have to be multiples of, in bytes.
const diskutilUnit = 4096

// CreateBlank is `diskutil image create blank`. Encryption is AES-256.
type CreateBlank struct {
	Image      string
	Format     string // RAW | ASIF | UDSB
	Size       int64  // bytes, a multiple of 4096
	Filesystem string // APFS | ExFAT | MS-DOS | None; "" where the tool has no such option and makes APFS
	Volume     string
	Passphrase []byte // nil: not encrypted
}

// Command builds the command.
func (c CreateBlank) Command() (Command, error) {
	if err := firstError(path(c.Image), whole(c.Size, diskutilUnit, "image")); err != nil {
		return Command{}, err
	}
	args := secretOptions(c.Passphrase != nil, c.Passphrase != nil)
	args = append(args, "--format", c.Format, "--size", strconv.FormatInt(c.Size, 10))
	if c.Filesystem != "" {
		args = append(args, "--fs", c.Filesystem)
	}
	if c.Filesystem != "None" {
		args = append(args, "--volumeName", c.Volume)
	}
	return diskutil("image create blank", append(args, c.Image)...).lines(c.Passphrase)
}

// CreateFrom is `diskutil image create from`: another image with the same content.
type CreateFrom struct {
	Source, Target string
	Format         string // RAW | UDRO | UDZO | ULFO | ULMO | ASIF | UDSB
	SourcePass     []byte
	TargetPass     []byte // nil: not encrypted
}

// Command builds the command. With two passphrases, the source's comes first.
func (c CreateFrom) Command() (Command, error) {
	if err := firstError(path(c.Source), path(c.Target)); err != nil {
		return Command{}, err
	}
	args := secretOptions(c.TargetPass != nil, c.SourcePass != nil || c.TargetPass != nil)
	return diskutil("image create from", append(args, "--format", c.Format, c.Source, c.Target)...).lines(c.SourcePass, c.TargetPass)
}

func secretOptions(encrypt, read bool) []string {
	var args []string
	if encrypt {
		args = append(args, "--encrypt")
	}
	if read {
		args = append(args, "--stdinpassphrase")
	}
	return args
}

// AttachImage is `diskutil image attach`.
type AttachImage struct {
	Image      string
	MountPoint string // absolute, existing; "" attaches without mounting
	ReadOnly   bool
	Passphrase []byte
}

// Command builds the command. Without mounting, --noMount alone: it conflicts with options about mounts.
func (c AttachImage) Command() (Command, error) {
	if err := path(c.Image); err != nil {
		return Command{}, err
	}
	args := append([]string{"--plist"}, secretOptions(false, c.Passphrase != nil)...)
	if c.ReadOnly {
		args = append(args, "--readOnly")
	}
	if c.MountPoint == "" {
		args = append(args, "--noMount")
	} else if err := path(c.MountPoint); err != nil {
		return Command{}, err
	} else {
		args = append(args, "--nobrowse", "--mountPoint", c.MountPoint)
	}
	return diskutil("image attach", append(args, c.Image)...).lines(c.Passphrase)
}

// ImageInfoDU is `diskutil image info`, the only one that reads ASIF.
type ImageInfoDU struct {
	Image      string
	Passphrase []byte
}

// Command builds the command.
func (c ImageInfoDU) Command() (Command, error) {
	return onImageDU("image info", c.Image, c.Passphrase, "--plist")
}

// ResizeImage is `diskutil image resize` of a detached image with GPT or a bare APFS.
type ResizeImage struct {
	Image      string
	Size       int64 // bytes, a multiple of 4096; 0 asks for the limits
	ImageOnly  bool
	Passphrase []byte
}

// Command builds the command.
func (c ResizeImage) Command() (Command, error) {
	args := []string{"--plist"}
	if c.Size != 0 {
		if err := whole(c.Size, diskutilUnit, "image"); err != nil {
			return Command{}, err
		}
		args = []string{"--size", strconv.FormatInt(c.Size, 10)}
	}
	if c.ImageOnly {
		args = append(args, "--image-only")
	}
	return onImageDU("image resize", c.Image, c.Passphrase, args...)
}

func onImageDU(verb, image string, passphrase []byte, args ...string) (Command, error) {
	if err := path(image); err != nil {
		return Command{}, err
	}
	args = append(args, secretOptions(false, passphrase != nil)...)
	return diskutil(verb, append(args, image)...).lines(passphrase)
}

// Eject is `diskutil eject` of the image's whole disk.
type Eject struct{ Device string }

// Command builds the command.
func (c Eject) Command() (Command, error) { return onDevice("eject", c.Device) }

// VerifyVolume is `diskutil verifyVolume`, or repairVolume.
type VerifyVolume struct {
	Device string
	Repair bool
}

// Command builds the command.
func (c VerifyVolume) Command() (Command, error) {
	if c.Repair {
		return onDevice("repairVolume", c.Device)
	}
	return onDevice("verifyVolume", c.Device)
}

func onDevice(verb, dev string) (Command, error) {
	if err := device(dev); err != nil {
		return Command{}, err
	}
	return diskutil(verb, dev), nil
}

// HelpDU is `diskutil image create blank --help` or `… from --help`.
type HelpDU struct{ Verb string }

// Command builds the command.
func (c HelpDU) Command() (Command, error) {
	if c.Verb == "" {
		return Command{}, fmt.Errorf("asking for help without a verb")
	}
	return diskutil(c.Verb, "--help"), nil
}
