package host

import (
	"fmt"
	"math"
	"strings"

	"howett.net/plist"
)

// Keys and classes of the I/O registry, from
// <IOKit/storage/IOBlockStorageDriver.h> and <IOKit/IOBSD.h>; the children are
// what `ioreg -a` calls them.
const (
	storageDriver  = "IOBlockStorageDriver"
	keyStatistics  = "Statistics"
	keyBytesRead   = "Bytes (Read)"
	keyBytesWrite  = "Bytes (Write)"
	keyBSDName     = "BSD Name"
	keyClass       = "IOObjectClass"
	keyChildren    = "IORegistryEntryChildren"
	registryDepth  = 64       // of entries below a driver; real ones have about ten
	registryOutput = 32 << 20 // bytes of ioreg's output that are read
)

// storageBytes finds, in `ioreg -a -l -r -c IOBlockStorageDriver`, the drivers
// that have the named device ("disk3s5") below them and adds up what they
// moved. The list has one tree for each driver: its disk, the partitions of
// that, and the APFS containers and volumes on them, which are disks of their
// own.
func storageBytes(out []byte, device string) (read, written int64, err error) {
	drivers, err := registry(out)
	if err != nil {
		return 0, 0, err
	}
	found := false
	for _, d := range drivers {
		if !carries(d, device, 0) {
			continue
		}
		s, _ := d[keyStatistics].(map[string]any)
		r, ok1 := count(s[keyBytesRead])
		w, ok2 := count(s[keyBytesWrite])
		if !ok1 || !ok2 || read > math.MaxInt64-r || written > math.MaxInt64-w {
			return 0, 0, fmt.Errorf("the driver of %q counts no bytes: %w", device, ErrUnsupported)
		}
		found, read, written = true, read+r, written+w
	}
	if !found {
		return 0, 0, fmt.Errorf("no storage driver has a device %q: %w", device, ErrUnsupported)
	}
	return read, written, nil
}

// registry reads the list of trees.
func registry(out []byte) (list []map[string]any, err error) {
	// The decoder panics on some malformed input instead of returning an error.
	defer func() {
		if r := recover(); r != nil {
			list, err = nil, errRegistry
		}
	}()
	// Any text would pass as a property list of the old format.
	if len(out) > registryOutput || !strings.HasPrefix(string(out[:min(len(out), 5)]), "<?xml") {
		return nil, errRegistry
	}
	var all []any
	if _, err := plist.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", errRegistry, err)
	}
	for _, e := range all {
		if m, ok := e.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list, nil
}

var errRegistry = fmt.Errorf("reading the I/O registry: no list of storage drivers: %w", ErrUnsupported)

// carries reports whether the device is in the tree. A driver inside of
// another's tree counts for itself: it has a tree of its own in the list.
func carries(entry map[string]any, device string, depth int) bool {
	if name, _ := entry[keyBSDName].(string); name == device {
		return true
	}
	children, _ := entry[keyChildren].([]any)
	for _, c := range children {
		m, ok := c.(map[string]any)
		if class, _ := m[keyClass].(string); !ok || class == storageDriver || depth >= registryDepth {
			continue
		}
		if carries(m, device, depth+1) {
			return true
		}
	}
	return false
}

func count(v any) (int64, bool) {
	switch n := v.(type) {
	case uint64:
		return int64(min(n, math.MaxInt64)), n <= math.MaxInt64
	case int64:
		return n, n >= 0
	}
	return 0, false
}

// bsdName is the device of a mounted volume as the registry names it. A volume
// mounted by its snapshot ("disk3s1s1", as the system's own) is found by its
// name, too; "" for what is on no disk.
func bsdName(from string) (string, error) {
	name, ok := strings.CutPrefix(from, "/dev/")
	if !ok || wholeDisk.FindString(name) == "" {
		return "", fmt.Errorf("the volume is on no disk of this machine: %w", ErrUnsupported) // a share's name tells of people
	}
	return name, nil
}
