package host

import (
	"fmt"
	"math"
	"strings"
)

// storageDriver is the class of the drivers that count bytes, from
// <IOKit/storage/IOBlockStorageDriver.h>.
const storageDriver = "IOBlockStorageDriver"

// registryDepth bounds the entries below a driver; real ones have about ten.
const registryDepth = 64

// registryEntry is an entry of the I/O registry as `ioreg -a` prints it.
type registryEntry struct {
	Class      string `plist:"IOObjectClass"`
	BSDName    string `plist:"BSD Name"`
	Statistics struct {
		Read    *int64 `plist:"Bytes (Read)"`
		Written *int64 `plist:"Bytes (Write)"`
	} `plist:"Statistics"`
	Children []registryEntry `plist:"IORegistryEntryChildren"`
}

// storageBytes finds, in `ioreg -a -l -r -c IOBlockStorageDriver`, the drivers
// that have the named device ("disk3s5") below them and adds up what they
// moved. The list has one tree for each driver: its disk, the partitions of
// that, and the APFS containers and volumes on them, which are disks of their
// own.
func storageBytes(out []byte, device string) (read, written int64, err error) {
	var drivers []registryEntry
	if err := readPlist(out, &drivers); err != nil {
		return 0, 0, fmt.Errorf("reading the I/O registry: no list of storage drivers: %w: %w", err, ErrUnsupported)
	}
	found := false
	for _, d := range drivers {
		if !d.carries(device, 0) {
			continue
		}
		r, w := d.Statistics.Read, d.Statistics.Written
		if r == nil || w == nil || *r < 0 || *w < 0 || read > math.MaxInt64-*r || written > math.MaxInt64-*w {
			return 0, 0, fmt.Errorf("the driver of %q counts no bytes: %w", device, ErrUnsupported)
		}
		found, read, written = true, read+*r, written+*w
	}
	if !found {
		return 0, 0, fmt.Errorf("no storage driver has a device %q: %w", device, ErrUnsupported)
	}
	return read, written, nil
}

// carries reports whether the device is in the tree. A driver inside of
// another's tree counts for itself: it has a tree of its own in the list.
func (e registryEntry) carries(device string, depth int) bool {
	if e.BSDName == device {
		return true
	}
	for _, c := range e.Children {
		if c.Class != storageDriver && depth < registryDepth && c.carries(device, depth+1) {
			return true
		}
	}
	return false
}

// bsdName is the device of a mounted volume as the registry names it. A volume
// mounted by its snapshot ("disk3s1s1", as the system's own) is found by its
// name, too; "" for what is on no disk.
func bsdName(from string) (string, error) {
	name, ok := strings.CutPrefix(from, "/dev/")
	if !ok || wholeDisk.FindString(name) == "" {
		// The name of a share would identify people.
		return "", fmt.Errorf("the volume is on no disk of this machine: %w", ErrUnsupported)
	}
	return name, nil
}
