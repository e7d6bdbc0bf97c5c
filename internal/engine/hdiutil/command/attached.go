package command

import (
	"cmp"
	"errors"
	"fmt"
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

func (e Entity) hintIn(list []string) bool { return slices.Contains(list, strings.ToUpper(e.Hint)) }

// IsStore reports whether the device is the physical store of an APFS
// container.
func (e Entity) IsStore() bool { return e.hintIn(hintStore) }

func (e Entity) isContainer() bool { return e.hintIn(hintContainer) }

// ParseAttach parses `hdiutil attach -plist` and `diskutil image attach
// --plist`, and also returns the text around the list (warnings, a licence).
func ParseAttach(out []byte) (Attached, string, error) {
	d, around, err := findPlist(out)
	if err != nil {
		return Attached{}, around, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	a := attachedOf(d)
	if _, err := a.Disk(); err != nil {
		return Attached{}, around, err
	}
	return a, around, nil
}

// ParseInfo parses `hdiutil info -plist`. Without attached images the key
// images is missing: an empty list.
func ParseInfo(out []byte) ([]Attached, error) {
	d, _, err := findPlist(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	var list []Attached
	for _, image := range d.Dicts("images") {
		list = append(list, attachedOf(image))
	}
	return list, nil
}

// ParseVendor returns the vendor of the tool and the version of its framework,
// from `hdiutil info -plist`.
func ParseVendor(out []byte) (vendor, version string, err error) {
	d, _, err := findPlist(out)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	return d.String("vendor"), cmp.Or(d.String("framework"), d.String("revision")), nil
}

func attachedOf(d Dict) Attached {
	a := Attached{Image: d.String("image-path"), Type: d.String("image-type")}
	for _, e := range d.Dicts("system-entities") {
		device := devicePath(e.String("dev-entry"))
		if device == "" {
			continue
		}
		a.Entities = append(a.Entities, Entity{
			Device: device, Hint: e.String("content-hint"), MountPoint: e.String("mount-point"),
			Kind:      strings.ToLower(cmp.Or(e.String("volume-kind"), e.String("filesystem-type"))),
			Mountable: e.Bool("potentially-mountable"),
		})
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
		if strings.HasSuffix(e.Hint, partitionScheme) {
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

// partitionScheme ends the hints of whole disks with a partition table
// ("GUID_partition_scheme").
const partitionScheme = "_partition_scheme"

// isSlice reports whether the device is a slice: diskNsM, or another entity's
// name with a partition number (loop0p1).
func (a Attached) isSlice(device string) bool {
	name := strings.TrimPrefix(device, "/dev/")
	if rest, ok := strings.CutPrefix(name, "disk"); ok {
		return strings.Contains(rest, "s")
	}
	return slices.ContainsFunc(a.Entities, func(e Entity) bool {
		rest, ok := strings.CutPrefix(device, e.Device)
		return ok && strings.HasPrefix(rest, "p")
	})
}

// Scheme is the hint of the partition scheme, or "" for an image without one.
func (a Attached) Scheme() string {
	for _, e := range a.Entities {
		if strings.HasSuffix(e.Hint, partitionScheme) {
			return e.Hint
		}
	}
	return ""
}

// Volume is the mounted volume: the entity with a mount point that preferred
// accepts (nil: none), else the only one that is mounted.
func (a Attached) Volume(preferred func(mountPoint string) bool) (Entity, bool) {
	var mounted []Entity
	for _, e := range a.Entities {
		if e.MountPoint == "" {
			continue
		}
		if preferred != nil && preferred(e.MountPoint) {
			return e, true
		}
		mounted = append(mounted, e)
	}
	if len(mounted) == 1 {
		return mounted[0], true
	}
	return Entity{}, false
}

// Candidate is the device that carries the volume of an image that was attached
// without mounting. If an APFS container is so damaged that the system makes no
// disk of it, that is its physical store.
func (a Attached) Candidate() (Entity, bool) {
	for _, test := range []func(Entity) bool{
		func(e Entity) bool { return e.MountPoint != "" },
		func(e Entity) bool { return e.Kind != "" || e.hintIn(hintVolume) },
		func(e Entity) bool { return e.Mountable },
		func(e Entity) bool { return a.isSlice(e.Device) && !e.IsStore() && !e.hintIn(hintNoVolume) },
		func(e Entity) bool { return len(a.Entities) == 1 },
		func(e Entity) bool { return e.IsStore() && !slices.ContainsFunc(a.Entities, Entity.isContainer) },
	} {
		if i := slices.IndexFunc(a.Entities, test); i >= 0 {
			return a.Entities[i], true
		}
	}
	return Entity{}, false
}

// MountPoints are the mount points of all volumes.
func (a Attached) MountPoints() []string {
	var out []string
	for _, e := range a.Entities {
		if e.MountPoint != "" {
			out = append(out, e.MountPoint)
		}
	}
	return out
}
