// Package parse reads what hdiutil and diskutil print: attached images in both
// property-list dialects, descriptions of image files, and the few lines of text
// that have no list form.
//
// It knows the layouts of captured outputs of macOS 15 to 27 and nothing of
// processes. It never guesses: an answer without the one thing that was asked for is [ErrNoResult].
package parse

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/engine/hdiutil/parse/plist"
)

// ErrNoResult says that the output has not what the command was run for.
var ErrNoResult = errors.New("the tool's output does not have the result")

// Entity is one device that belongs to an attached image.
type Entity struct {
	Device     string // /dev/diskN or /dev/diskNsM, always with /dev/
	Hint       string // content hint, as printed
	MountPoint string // "" while not mounted
	Kind       string // "apfs", "hfs", "exfat", …; may be empty
	Mountable  bool
}

// Attached is what one attach made, or one image of the info list.
type Attached struct {
	Image     string // path, info only
	Type      string // "read/write", …, info only
	Encrypted bool   // info only
	Entities  []Entity
}

// containerGUID is the partition type of a synthesized APFS container: a disk that is none of the image's own.
const containerGUID = "EF57347C-0000-11AA-AA11-00306543ECAC"

// Attach reads the property list of `hdiutil attach -plist` and of `diskutil image attach --plist`.
// The text around it (warnings, a licence) is returned too.
func Attach(out []byte) (Attached, string, error) {
	d, around, err := plist.Find(out)
	if err != nil {
		return Attached{}, around, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	a := attached(d)
	if len(a.Entities) == 0 {
		return Attached{}, around, fmt.Errorf("%w: no devices", ErrNoResult)
	}
	if _, err := a.Disk(); err != nil {
		return Attached{}, around, err
	}
	return a, around, nil
}

// Info reads `hdiutil info -plist`. With nothing attached the images key is missing: that is an empty list.
func Info(out []byte) ([]Attached, string, error) {
	d, around, err := plist.Find(out)
	if err != nil {
		return nil, around, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	var list []Attached
	for _, image := range d.Dicts("images") {
		list = append(list, attached(image))
	}
	return list, around, nil
}

// Vendor reads who made the tool from `hdiutil info -plist`, and the version of its framework.
func Vendor(out []byte) (vendor, version string, err error) {
	d, _, err := plist.Find(out)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	version = d.String("framework")
	if version == "" {
		version = d.String("revision")
	}
	return d.String("vendor"), version, nil
}

func attached(d plist.Dict) Attached {
	a := Attached{Image: d.String("image-path"), Type: d.String("image-type"), Encrypted: d.Bool("image-encrypted")}
	for _, e := range d.Dicts("system-entities") {
		device := node(e.String("dev-entry"))
		if device == "" {
			continue
		}
		kind := e.String("volume-kind")
		if kind == "" {
			kind = e.String("filesystem-type")
		}
		a.Entities = append(a.Entities, Entity{
			Device: device, Hint: e.String("content-hint"), MountPoint: e.String("mount-point"),
			Kind: strings.ToLower(kind), Mountable: e.Bool("potentially-mountable"),
		})
	}
	return a
}

// node is the device's path: diskutil leaves out the folder. What could be an option or another folder is none.
func node(dev string) string {
	name := strings.TrimPrefix(dev, "/dev/")
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, "..") || strings.ContainsAny(name, " \t\r\n\x00") {
		return ""
	}
	return "/dev/" + name
}

// Disk is the whole disk of the image, the node that is detached: the one with a
// partition scheme, else the one that others are slices of, else the only disk
// that is no synthesized container.
func (a Attached) Disk() (string, error) {
	for _, e := range a.Entities {
		if strings.HasSuffix(e.Hint, "_partition_scheme") {
			return e.Device, nil
		}
	}
	var own []string
	for _, e := range a.Entities {
		if !e.synthesized() && !a.slice(e.Device) {
			own = append(own, e.Device)
		}
	}
	slices.SortFunc(own, func(x, y string) int {
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	if len(own) > 0 {
		return own[0], nil
	}
	return "", fmt.Errorf("%w: no whole disk among %d devices", ErrNoResult, len(a.Entities))
}

func (e Entity) synthesized() bool {
	return strings.EqualFold(e.Hint, containerGUID) || e.Hint == "Apple_APFS_Container"
}

// slice says whether the device is a slice: diskNsM, or another entity's name with a partition number behind it.
func (a Attached) slice(device string) bool {
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
		if strings.HasSuffix(e.Hint, "_partition_scheme") {
			return e.Hint
		}
	}
	return ""
}

// Volume is the mounted volume: the entity that same accepts the mount point of
// (nil: none is preferred), else the only one that is mounted.
func (a Attached) Volume(same func(mountPoint string) bool) (Entity, bool) {
	var mounted []Entity
	for _, e := range a.Entities {
		if e.MountPoint == "" {
			continue
		}
		if same != nil && same(e.MountPoint) {
			return e, true
		}
		mounted = append(mounted, e)
	}
	if len(mounted) == 1 {
		return mounted[0], true
	}
	return Entity{}, false
}

// Candidate is the device that carries the volume of an image that was attached without mounting. Where an APFS
// container is so damaged that the system makes no disk of it, that is its physical store.
func (a Attached) Candidate() (Entity, bool) {
	for _, test := range []func(Entity) bool{
		func(e Entity) bool { return e.MountPoint != "" },
		func(e Entity) bool {
			return e.Kind != "" || strings.EqualFold(e.Hint, volumeGUID) || e.Hint == "Apple_APFS_Volume"
		},
		func(e Entity) bool { return e.Mountable },
		func(e Entity) bool { return a.slice(e.Device) && !slices.Contains(foreign, strings.ToUpper(e.Hint)) },
		func(e Entity) bool { return len(a.Entities) == 1 },
		func(e Entity) bool { return e.Store() && !slices.ContainsFunc(a.Entities, Entity.synthesized) },
	} {
		if i := slices.IndexFunc(a.Entities, test); i >= 0 {
			return a.Entities[i], true
		}
	}
	return Entity{}, false
}

const (
	volumeGUID = "41504653-0000-11AA-AA11-00306543ECAC"
	storeGUID  = "7C3457EF-0000-11AA-AA11-00306543ECAC"
)

// Store says whether the device is the physical store of an APFS container.
func (e Entity) Store() bool {
	return strings.EqualFold(e.Hint, storeGUID) || strings.EqualFold(e.Hint, "Apple_APFS")
}

// foreign are slices that carry no volume of ours.
var foreign = []string{
	"C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "EFI", // the EFI partition
	storeGUID, "APPLE_APFS",
	"APPLE_FREE",
}

// Mounted are the mount points.
func (a Attached) Mounted() []string {
	var out []string
	for _, e := range a.Entities {
		if e.MountPoint != "" {
			out = append(out, e.MountPoint)
		}
	}
	return out
}
