package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrNoResult reports an output without the result of the command. Parsers
// never guess one.
var ErrNoResult = errors.New("the tool's output does not contain the result")

// Entity is one device of an attached image.
type Entity struct {
	Device     string // /dev/diskN or /dev/diskNsM, always with /dev/
	Hint       string // content hint as printed: a partition scheme or type, by name or GUID
	MountPoint string // "" while not mounted
	Kind       string // "apfs", "hfs", "exfat", …; may be empty
	Mountable  bool
}

// Attached is what one attach made, or one image in the list of `hdiutil info`.
type Attached struct {
	Image    string // path, only in the list
	Type     string // "read/write", …, only in the list
	Entities []Entity
}

// Hints of the parts of APFS, by GUID and by the name that diskutil prints.
var (
	// The system makes a disk of its own for a container.
	hintContainer = []string{"EF57347C-0000-11AA-AA11-00306543ECAC", "APPLE_APFS_CONTAINER"}
	hintVolume    = []string{"41504653-0000-11AA-AA11-00306543ECAC", "APPLE_APFS_VOLUME"}
	hintStore     = []string{"7C3457EF-0000-11AA-AA11-00306543ECAC", "APPLE_APFS"} // the slice that holds a container
	hintNoVolume  = []string{"C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "EFI", "APPLE_FREE"}
)

// partitionScheme ends the hints of whole disks with a partition table
// ("GUID_partition_scheme").
const partitionScheme = "_partition_scheme"

func (e Entity) hintIn(list []string) bool { return slices.Contains(list, strings.ToUpper(e.Hint)) }

// IsStore reports whether the device is the physical store of an APFS
// container.
func (e Entity) IsStore() bool { return e.hintIn(hintStore) }

func (e Entity) isContainer() bool { return e.hintIn(hintContainer) }

func (e Entity) isDivided() bool { return strings.HasSuffix(e.Hint, partitionScheme) }

func (e Entity) isMounted() bool { return e.MountPoint != "" }

// findResult is findPlist for outputs without which a command has no result.
func findResult(out []byte) (Dict, string, error) {
	d, around, err := findPlist(out)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	return d, around, err
}

// ParseAttach parses `hdiutil attach -plist` and `diskutil image attach
// --plist`, and also returns the text around the list (warnings, a licence).
func ParseAttach(out []byte) (a Attached, around string, err error) {
	d, around, err := findResult(out)
	if err == nil {
		a = attachedOf(d)
		_, err = a.Disk()
	}
	return a, around, err
}

// ParseInfo parses `hdiutil info -plist`: the attached images, the vendor of the
// tool and the version of its framework. Without attached images the key images
// is missing: an empty list.
func ParseInfo(out []byte) (list []Attached, vendor, version string, err error) {
	d, _, err := findResult(out)
	for _, image := range d.Dicts("images") {
		list = append(list, attachedOf(image))
	}
	return list, d.String("vendor"), cmp.Or(d.String("framework"), d.String("revision")), err
}

func attachedOf(d Dict) Attached {
	a := Attached{Image: d.String("image-path"), Type: d.String("image-type")}
	for _, e := range d.Dicts("system-entities") {
		if device := devicePath(e.String("dev-entry")); device != "" {
			a.Entities = append(a.Entities, Entity{
				Device: device, Hint: e.String("content-hint"), MountPoint: e.String("mount-point"),
				Kind:      strings.ToLower(cmp.Or(e.String("volume-kind"), e.String("filesystem-type"))),
				Mountable: e.Bool("potentially-mountable"),
			})
		}
	}
	return a
}

// devicePath is the path of a device: diskutil prints the name alone. What
// could be an option or lead to another folder is "".
func devicePath(dev string) string {
	name := strings.TrimPrefix(dev, "/dev/")
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, "..") ||
		strings.ContainsAny(name, " \t\r\n\x00") {
		return ""
	}
	return "/dev/" + name
}

// Disk is the image's whole disk, which is the device to detach: the one with a
// partition scheme, else the shortest name that is neither a slice nor an APFS
// container.
func (a Attached) Disk() (string, error) {
	var own []string
	for _, e := range a.Entities {
		if e.isDivided() {
			return e.Device, nil
		}
		if !e.isContainer() && !a.isSlice(e.Device) {
			own = append(own, e.Device)
		}
	}
	if len(own) == 0 {
		return "", fmt.Errorf("%w: no whole disk among %d devices", ErrNoResult, len(a.Entities))
	}
	return slices.MinFunc(own, func(x, y string) int {
		return cmp.Or(len(x)-len(y), strings.Compare(x, y))
	}), nil
}

// isSlice reports whether the device is a slice: diskNsM, or another entity's
// name with a partition number (loop0p1).
func (a Attached) isSlice(device string) bool {
	if rest, ok := strings.CutPrefix(device, "/dev/disk"); ok {
		return strings.Contains(rest, "s")
	}
	return slices.ContainsFunc(a.Entities, func(e Entity) bool {
		rest, ok := strings.CutPrefix(device, e.Device)
		return ok && strings.HasPrefix(rest, "p")
	})
}

// find is the first entity that passes the test, or the zero value.
func (a Attached) find(test func(Entity) bool) Entity {
	if i := slices.IndexFunc(a.Entities, test); i >= 0 {
		return a.Entities[i]
	}
	return Entity{}
}

// Scheme is the hint of the partition scheme, or "" for an image without one.
func (a Attached) Scheme() string { return a.find(Entity.isDivided).Hint }

// Candidate is the device that carries the volume of an image, mounted or not.
// If an APFS container is so damaged that the system makes no disk of it, that
// is its physical store. The zero value is an image without a volume.
func (a Attached) Candidate() Entity {
	for _, test := range []func(Entity) bool{
		Entity.isMounted,
		func(e Entity) bool { return e.Kind != "" || e.hintIn(hintVolume) },
		func(e Entity) bool { return e.Mountable },
		func(e Entity) bool { return a.isSlice(e.Device) && !e.IsStore() && !e.hintIn(hintNoVolume) },
		func(Entity) bool { return len(a.Entities) == 1 },
		func(e Entity) bool { return e.IsStore() && a.find(Entity.isContainer).Device == "" },
	} {
		if e := a.find(test); e.Device != "" {
			return e
		}
	}
	return Entity{}
}

// MountPoints are the mount points of all volumes.
func (a Attached) MountPoints() (points []string) {
	for _, e := range a.Entities {
		if e.isMounted() {
			points = append(points, e.MountPoint)
		}
	}
	return points
}

// Image describes an image file.
type Image struct {
	Format    string // Apple's four letters; "" if the tool printed none
	Size      int64  // of the device in bytes, 0 if the tool printed none
	Encrypted bool
	Scheme    string // partition scheme: "GUID", "none", …
}

// ParseImageInfo parses `hdiutil imageinfo -plist` and `diskutil image info
// --plist`.
func ParseImageInfo(out []byte) (Image, error) {
	d, _, err := findResult(out)
	if err != nil {
		return Image{}, err
	}
	locked := len(d.Dict("Encryption Info")) > 0 // diskutil prints it without the passphrase, too
	encryption := d.Dict("Backing Store Information").String("Encryption")
	i := Image{
		Format: cmp.Or(d.String("Format"), d.String("Image Format")),
		Size: cmp.Or(d.Dict("Size Information").Int("Total Bytes"), d.Dict("Size Info").Int("Total Bytes"),
			d.Int("Total Bytes"), d.Int("Size")),
		Encrypted: d.Dict("Properties").Bool("Encrypted") || locked || encryption != "" && encryption != "none",
		Scheme:    d.Dict("partitions").String("partition-scheme"),
	}
	if i.Format == "" && i.Size == 0 && !locked {
		err = fmt.Errorf("%w: neither format nor size", ErrNoResult)
	}
	return i, err
}

var encryptedLine = regexp.MustCompile(`(?m)^encrypted: (YES|NO)\r?$`)

// ParseIsEncrypted parses `hdiutil isencrypted`, as a property list or as text.
func ParseIsEncrypted(out []byte) (bool, error) {
	d, _, _ := findPlist(out)
	if _, ok := d["encrypted"]; ok {
		return d.Bool("encrypted"), nil
	}
	m := encryptedLine.FindSubmatch(out)
	if m == nil {
		return false, fmt.Errorf("%w: no line %q", ErrNoResult, "encrypted: YES|NO")
	}
	return string(m[1]) == "YES", nil
}

var reclaimedLine = regexp.MustCompile(
	`(?m)^Reclaimed [0-9][0-9.]* (bytes|[KMGTPE]B) out of [0-9][0-9.]* (bytes|[KMGTPE]B) possible\.\r?$`)

// ParseCompact returns the line "Reclaimed 4 MB out of 1023.6 GB possible." of
// `hdiutil compact`, "" if there is none, as in other languages. Its figures are
// rounded, and the second is free space of the volume and not of the host: for
// display only.
func ParseCompact(out []byte) string { return strings.TrimSpace(string(reclaimedLine.Find(out))) }

// maxTrims is how many messages of one attachment are kept.
const maxTrims = 32

var diskOfSlice = regexp.MustCompile(`^/dev/(disk[0-9]+)(s[0-9]+)*$`)

// ParseTrims parses `log show --style ndjson`: the messages of APFS that name
// the container of the volume on the device ("/dev/disk9s1" is in disk9), in
// the order of the log, without their time. Messages about other containers,
// which come and go at the same time, are left out. An output without any line
// of a log is [ErrNoResult].
func ParseTrims(out []byte, device string) (list []string, err error) {
	m := diskOfSlice.FindStringSubmatch(device)
	if m == nil {
		return nil, fmt.Errorf("%w: %q is in no container", ErrNoResult, device)
	}
	namesContainer := regexp.MustCompile(`(^|\s)` + m[1] + `(s\S*)?(\s|$)`)
	err = fmt.Errorf("%w: no line of the log", ErrNoResult)
	for line := range bytes.Lines(out) {
		var entry struct {
			Message string `json:"eventMessage"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // headings
		}
		err = nil
		if namesContainer.MatchString(entry.Message) && len(list) < maxTrims {
			list = append(list, cleanLine(entry.Message))
		}
	}
	return list, err
}
