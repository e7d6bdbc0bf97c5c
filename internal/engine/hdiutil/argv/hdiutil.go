package argv

import "fmt"

// Create is `hdiutil create` of an empty image.
type Create struct {
	Image      string // absolute, with the extension of the type
	Type       string // UDIF | SPARSE | SPARSEBUNDLE | UDTO
	Size       int64  // bytes, a multiple of 512
	Filesystem string // as -fs names it; "" for none, without a partition map
	Volume     string // name
	Band       int64  // bytes, SPARSEBUNDLE only; 0 = the tool's default
	Encryption string // AES-128 | AES-256 | ""
	Passphrase []byte
	// NoSpotlight is given where the tool knows the option: the man page does not list it.
	NoSpotlight bool
}

// Command builds the command.
func (c Create) Command() (Command, error) {
	if err := firstError(path(c.Image), whole(c.Size, Sector, "image")); err != nil {
		return Command{}, err
	}
	args := []string{"-sectors", sectors(c.Size), "-type", c.Type}
	if c.Filesystem == "" {
		args = append(args, "-layout", "NONE")
	} else {
		args = append(args, "-fs", c.Filesystem, "-volname", c.Volume)
	}
	if c.Band != 0 {
		if c.Type != "SPARSEBUNDLE" {
			return Command{}, fmt.Errorf("bands of a %s image: only SPARSEBUNDLE has them", c.Type)
		}
		if err := band(c.Band); err != nil {
			return Command{}, err
		}
		args = append(args, "-imagekey", "sparse-band-size="+sectors(c.Band))
	}
	args, err := encryption(args, c.Encryption, c.Passphrase)
	if err != nil {
		return Command{}, err
	}
	if c.NoSpotlight {
		args = append(args, "-nospotlight")
	}
	return hdiutil("create", append(args, "-plist", c.Image)...).exact(c.Passphrase)
}

func band(size int64) error {
	if size < MinBand || size > MaxBand || size%Sector != 0 {
		return fmt.Errorf("bands of %d bytes: want a multiple of %d from %d to %d", size, Sector, int64(MinBand), int64(MaxBand))
	}
	return nil
}

func encryption(args []string, kind string, passphrase []byte) ([]string, error) {
	switch {
	case kind == "" && passphrase == nil:
		return args, nil
	case kind == "":
		return nil, fmt.Errorf("a passphrase without encryption")
	case passphrase == nil:
		return nil, fmt.Errorf("encryption %s without a passphrase", kind)
	}
	return append(args, "-encryption", kind, "-stdinpass"), nil
}

// Attach is `hdiutil attach`.
type Attach struct {
	Image      string
	MountPoint string // absolute, an empty folder; "" attaches without mounting
	ReadOnly   bool
	Verify     bool   // verify the stored checksum first
	ServedBy   string // kernel or helper; "" leaves it to the tool
	Passphrase []byte
}

// Command builds the command. Ownership is honoured and nothing is checked,
// opened or shown, so that an attach costs what attaching costs.
func (c Attach) Command() (Command, error) {
	if err := path(c.Image); err != nil {
		return Command{}, err
	}
	verify := "-noverify"
	if c.Verify {
		verify = "-verify"
	}
	args := []string{"-plist", "-nobrowse", "-owners", "on", verify, "-noautofsck", "-noautoopen"}
	if c.ReadOnly {
		args = append(args, "-readonly")
	}
	switch c.ServedBy {
	case "":
	case "kernel":
		args = append(args, "-kernel")
	case "helper":
		args = append(args, "-nokernel")
	default:
		return Command{}, fmt.Errorf("served by %q: neither kernel nor helper", c.ServedBy)
	}
	if c.MountPoint == "" {
		args = append(args, "-nomount")
	} else if err := path(c.MountPoint); err != nil {
		return Command{}, err
	} else {
		args = append(args, "-mountpoint", c.MountPoint)
	}
	if c.Passphrase != nil {
		args = append(args, "-stdinpass")
	}
	return hdiutil("attach", append(args, c.Image)...).exact(c.Passphrase)
}

// Detach is `hdiutil detach` of the image's whole disk.
type Detach struct {
	Device string // /dev/diskN
	Force  bool
}

// Command builds the command.
func (c Detach) Command() (Command, error) {
	if err := device(c.Device); err != nil {
		return Command{}, err
	}
	args := []string{c.Device}
	if c.Force {
		args = append(args, "-force")
	}
	return hdiutil("detach", args...), nil
}

// Info is `hdiutil info`: what is attached.
type Info struct{}

// Command builds the command.
func (Info) Command() (Command, error) { return hdiutil("info", "-plist"), nil }

// ImageInfo is `hdiutil imageinfo`.
type ImageInfo struct {
	Image      string
	Passphrase []byte
}

// Command builds the command.
func (c ImageInfo) Command() (Command, error) {
	return onImage("imageinfo", c.Image, c.Passphrase, "-plist")
}

// IsEncrypted is `hdiutil isencrypted`. It needs no passphrase.
type IsEncrypted struct{ Image string }

// Command builds the command.
func (c IsEncrypted) Command() (Command, error) {
	return onImage("isencrypted", c.Image, nil, "-plist")
}

// Verify is `hdiutil verify`, for kinds that store a checksum.
type Verify struct {
	Image      string
	Passphrase []byte
}

// Command builds the command.
func (c Verify) Command() (Command, error) { return onImage("verify", c.Image, c.Passphrase) }

// Checksum is `hdiutil checksum`.
type Checksum struct {
	Image      string
	Type       string // UDIF-CRC32, CRC32, MD5, SHA256, …
	Passphrase []byte
}

// Command builds the command.
func (c Checksum) Command() (Command, error) {
	return onImage("checksum", c.Image, c.Passphrase, "-type", c.Type)
}

// Compact is `hdiutil compact` of a detached SPARSE or SPARSEBUNDLE image.
type Compact struct {
	Image        string
	AllowBattery bool
	Passphrase   []byte
}

// Command builds the command.
func (c Compact) Command() (Command, error) {
	var args []string
	if c.AllowBattery {
		args = append(args, "-batteryallowed")
	}
	return onImage("compact", c.Image, c.Passphrase, args...)
}

// Resize is `hdiutil resize` of a detached image.
type Resize struct {
	Image      string
	Size       int64 // bytes, a multiple of 512
	ImageOnly  bool  // leave partition and file system as they are
	Passphrase []byte
}

// Command builds the command.
func (c Resize) Command() (Command, error) {
	if err := whole(c.Size, Sector, "image"); err != nil {
		return Command{}, err
	}
	args := []string{"-sectors", sectors(c.Size)}
	if c.ImageOnly {
		args = append(args, "-imageonly")
	}
	return onImage("resize", c.Image, c.Passphrase, args...)
}

// Limits is `hdiutil resize -limits`.
type Limits struct {
	Image      string
	Passphrase []byte
}

// Command builds the command.
func (c Limits) Command() (Command, error) {
	return onImage("resize", c.Image, c.Passphrase, "-limits")
}

// Trim is `hdiutil trim`, an extension of this project's work-alike: it frees what the mounted volume does not use.
type Trim struct{ MountPoint string }

// Command builds the command.
func (c Trim) Command() (Command, error) { return onImage("trim", c.MountPoint, nil) }

func onImage(verb, image string, passphrase []byte, args ...string) (Command, error) {
	if err := path(image); err != nil {
		return Command{}, err
	}
	if passphrase != nil {
		args = append(args, "-stdinpass")
	}
	return hdiutil(verb, append(args, image)...).exact(passphrase)
}

// Convert is `hdiutil convert`.
type Convert struct {
	Source, Target string // absolute, with extensions
	Format         string // UDRW UDRO UDCO UDZO ULFO ULMO UDBZ UDTO UDSP UDSB UFBI
	Band           int64  // bytes, UDSB only; 0 = the tool's default
	Encryption     string // of the target
	SourcePass     []byte // nil: the source is not encrypted
	TargetPass     []byte
}

// Command builds the command. With two passphrases, the source's comes first.
func (c Convert) Command() (Command, error) {
	if err := firstError(path(c.Source), path(c.Target)); err != nil {
		return Command{}, err
	}
	args := []string{c.Source, "-format", c.Format, "-o", c.Target}
	if c.Band != 0 {
		if c.Format != "UDSB" {
			return Command{}, fmt.Errorf("bands of a %s image: only UDSB has them", c.Format)
		}
		if err := band(c.Band); err != nil {
			return Command{}, err
		}
		args = append(args, "-tgtimagekey", "sparse-band-size="+sectors(c.Band))
	}
	args, err := encryption(args, c.Encryption, c.TargetPass)
	if err != nil {
		return Command{}, err
	}
	if c.TargetPass == nil && c.SourcePass != nil {
		args = append(args, "-stdinpass")
	}
	return hdiutil("convert", args...).exact(c.SourcePass, c.TargetPass)
}

// Help is `hdiutil VERB -help`.
type Help struct{ Verb string }

// Command builds the command.
func (c Help) Command() (Command, error) { return hdiutil(c.Verb, "-help"), nil }
