package command

import (
	"fmt"
	"strconv"
	"time"

	"dmgbench/internal/image"
)

// CreateOptions describe a new empty image.
type CreateOptions struct {
	Image       string // absolute path, with the extension of the format
	Type        string // for hdiutil: UDIF, SPARSE, SPARSEBUNDLE; for diskutil: RAW, ASIF, UDSB
	Size        int64  // bytes, a multiple of 512 (hdiutil) or 4096 (diskutil)
	Filesystem  string // as -fs or --fs names it; "": none and no partition map (hdiutil), or the tool has no option --fs
	Volume      string // name
	Band        int64  // bytes, hdiutil's SPARSEBUNDLE only; 0: the tool's default
	Encryption  string // hdiutil: AES-128, AES-256 or ""; diskutil always uses AES-256
	Passphrase  []byte // nil: not encrypted
	NoSpotlight bool   // -nospotlight, which the manual page does not list: only for tools whose help has it
}

// Create is `hdiutil create` of an empty image.
func Create(o CreateOptions) Command {
	c := hdiutil("create", checkPath(o.Image), checkSize(o.Size, Sector), checkBand(o.Band, o.Type, "SPARSEBUNDLE"),
		checkEncryption(o.Encryption, o.Passphrase)).with("-sectors", sectors(o.Size), "-type", o.Type)
	if o.Filesystem == "" {
		c = c.with("-layout", "NONE")
	} else {
		c = c.with("-fs", o.Filesystem, "-volname", o.Volume)
	}
	return c.withIf(o.Band != 0, "-imagekey", "sparse-band-size="+sectors(o.Band)).
		withIf(o.Encryption != "", "-encryption", o.Encryption, "-stdinpass").
		withIf(o.NoSpotlight, "-nospotlight").
		with("-plist", o.Image).withInput(o.Passphrase)
}

// AttachOptions describe one attach.
type AttachOptions struct {
	Image      string
	MountPoint string // absolute path of an existing, empty folder; "": attach without mounting
	ReadOnly   bool
	Verify     bool   // hdiutil: verify the stored checksum first
	ServedBy   string // hdiutil: kernel or helper; "": the tool chooses
	Passphrase []byte
}

// Attach is `hdiutil attach`. It honours ownership and skips checks and
// windows, so that it costs what attaching costs.
func Attach(o AttachOptions) Command {
	served, known := map[string][]string{"": nil, "kernel": {"-kernel"}, "helper": {"-nokernel"}}[o.ServedBy]
	c := hdiutil("attach", checkPath(o.Image))
	if !known {
		c.Err = fmt.Errorf("served by %q: want kernel or helper", o.ServedBy)
	}
	verify := "-noverify"
	if o.Verify {
		verify = "-verify"
	}
	c = c.with("-plist", "-nobrowse", "-owners", "on", verify, "-noautofsck", "-noautoopen").
		withIf(o.ReadOnly, "-readonly").with(served...)
	return c.mountAt(o.MountPoint, []string{"-nomount"}, "-mountpoint").
		withIf(o.Passphrase != nil, "-stdinpass").with(o.Image).withInput(o.Passphrase)
}

// mountAt appends the options for a mount point, or those for no mount.
func (c Command) mountAt(point string, none []string, options ...string) Command {
	if point == "" {
		return c.with(none...)
	}
	if err := checkPath(point); err != nil {
		c.Err = err
	}
	return c.with(options...).with(point)
}

// Detach is `hdiutil detach` of an image's whole disk (/dev/diskN).
func Detach(device string, force bool) Command {
	return hdiutil("detach", checkDevice(device)).with(device).withIf(force, "-force")
}

// Info is `hdiutil info`, the list of attached images.
func Info() Command { return hdiutil("info").with("-plist") }

// ImageInfo is `hdiutil imageinfo`.
func ImageInfo(image string, passphrase []byte) Command {
	return onImage("imageinfo", image, passphrase, "-plist")
}

// IsEncrypted is `hdiutil isencrypted`. It needs no passphrase.
func IsEncrypted(image string) Command { return onImage("isencrypted", image, nil, "-plist") }

// Verify is `hdiutil verify`, for formats that store a checksum.
func Verify(image string, passphrase []byte) Command { return onImage("verify", image, passphrase) }

// Compact is `hdiutil compact` of a detached SPARSE or SPARSEBUNDLE image.
func Compact(image string, passphrase []byte, allowBattery bool) Command {
	if allowBattery {
		return onImage("compact", image, passphrase, "-batteryallowed")
	}
	return onImage("compact", image, passphrase)
}

// ResizeOptions describe the new size of a detached image.
type ResizeOptions struct {
	Image      string
	Size       int64 // bytes, a multiple of 512 (hdiutil) or 4096 (diskutil)
	ImageOnly  bool  // leave partition and file system as they are
	Passphrase []byte
}

// Resize is `hdiutil resize`.
func Resize(o ResizeOptions) Command {
	args := []string{"-sectors", sectors(o.Size)}
	if o.ImageOnly {
		args = append(args, "-imageonly")
	}
	c := onImage("resize", o.Image, o.Passphrase, args...)
	if err := checkSize(o.Size, Sector); err != nil {
		c.Err = err
	}
	return c
}

// Limits is `hdiutil resize -limits`.
func Limits(image string, passphrase []byte) Command {
	return onImage("resize", image, passphrase, "-limits")
}

// Trim is `hdiutil trim`, which only hdiutil for Linux has: it frees what the
// mounted volume does not use.
func Trim(mountPoint string) Command { return onImage("trim", mountPoint, nil) }

func onImage(verb, image string, passphrase []byte, args ...string) Command {
	return hdiutil(verb, checkPath(image)).with(args...).
		withIf(passphrase != nil, "-stdinpass").with(image).withInput(passphrase)
}

// ConvertOptions describe another image with the same content.
type ConvertOptions struct {
	Source, Target string // absolute paths, with extensions
	Format         string // hdiutil: UDRW, UDZO, …; diskutil: RAW, UDRO, UDZO, ULFO, ULMO, ASIF, UDSB
	Band           int64  // bytes, hdiutil's UDSB only; 0: the tool's default
	Encryption     string // of the target, for hdiutil; diskutil always uses AES-256
	SourcePass     []byte // nil: the source is not encrypted
	TargetPass     []byte // nil: the target is not encrypted
}

// Convert is `hdiutil convert`. Of two passphrases the source's comes first.
func Convert(o ConvertOptions) Command {
	return hdiutil("convert", checkPath(o.Source), checkPath(o.Target), checkBand(o.Band, o.Format, image.UDSB),
		checkEncryption(o.Encryption, o.TargetPass)).
		with(o.Source, "-format", o.Format, "-o", o.Target).
		withIf(o.Band != 0, "-tgtimagekey", "sparse-band-size="+sectors(o.Band)).
		withIf(o.Encryption != "", "-encryption", o.Encryption).
		withIf(o.SourcePass != nil || o.TargetPass != nil, "-stdinpass").
		withInput(o.SourcePass, o.TargetPass)
}

// Help is `hdiutil VERB -help`.
func Help(verb string) Command { return hdiutil(verb).with("-help") }

// apfsTrims selects the messages of APFS about what it trims when it mounts a
// volume, and about a backing store that it makes sparse. They start with the
// name of the kernel function: spaceman_scan_free_blocks up to macOS 26,
// spaceman_trim_free_blocks in APFS 3277 of macOS 27 (symbols of both kexts).
const apfsTrims = `senderImagePath CONTAINS "apfs" AND (eventMessage CONTAINS "spaceman_scan_free_blocks"` +
	` OR eventMessage CONTAINS "spaceman_trim_free_blocks" OR eventMessage CONTAINS "set_backingstore")`

// TrimLog is `log show` of APFS's messages about trimming since a time, one
// JSON object per line. The time is given in whole seconds since 1970, which no
// time zone changes.
func TrimLog(since time.Time) Command {
	return Command{Tool: Log, Verb: "show", Args: []string{"show", "--style", "ndjson",
		"--start", "@" + strconv.FormatInt(since.Unix(), 10), "--predicate", apfsTrims}}
}

// CreateBlank is `diskutil image create blank`.
func CreateBlank(o CreateOptions) Command {
	return diskutil("image create blank", checkPath(o.Image), checkSize(o.Size, DiskutilUnit)).
		withSecretOptions(o.Passphrase != nil, o.Passphrase != nil).
		with("--format", o.Type, "--size", strconv.FormatInt(o.Size, 10)).
		withIf(o.Filesystem != "", "--fs", o.Filesystem).
		withIf(o.Filesystem != "None", "--volumeName", o.Volume).
		with(o.Image).withInput(o.Passphrase)
}

// CreateFrom is `diskutil image create from`. Of two passphrases the source's
// comes first.
func CreateFrom(o ConvertOptions) Command {
	return diskutil("image create from", checkPath(o.Source), checkPath(o.Target)).
		withSecretOptions(o.TargetPass != nil, o.SourcePass != nil || o.TargetPass != nil).
		with("--format", o.Format, o.Source, o.Target).withInput(o.SourcePass, o.TargetPass)
}

func (c Command) withSecretOptions(encrypt, read bool) Command {
	return c.withIf(encrypt, "--encrypt").withIf(read, "--stdinpassphrase")
}

// AttachDiskutil is `diskutil image attach`. Without a mount it takes --noMount
// alone, which conflicts with options about mounts.
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

// ResizeDiskutil is `diskutil image resize` of a detached image with GPT or a
// bare APFS.
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
