package host

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"howett.net/plist"

	"dmgbench/internal/result"
)

// What the tools of macOS print, read on any system so that it can be tested on
// any.

// macFact is one fact of the whole machine that a tool prints.
type macFact struct {
	name, command string
	set           func(h *result.Host, value string)
	// patterns are regular expressions and their values; the first that matches
	// decides. Without a match the fact is unknown.
	patterns [][2]string
}

var macFacts = []macFact{
	{"power", "/usr/bin/pmset -g batt", func(h *result.Host, v string) { h.Power = v },
		// The first line is "Now drawing from 'AC Power'".
		[][2]string{{`'AC Power'`, "ac"}, {`'(Battery|UPS) Power'`, "battery"}}},
	{"low_power", "/usr/bin/pmset -g", func(h *result.Host, v string) { h.LowPower = v == "on" },
		// Since macOS 12 some models have "powermode", where 2 is high power.
		[][2]string{{`(?m)^\s*(low)?powermode\s+1\b`, "on"}}},
	{"thermal", "/usr/bin/pmset -g therm", func(h *result.Host, v string) { h.Thermal = v },
		// Limits below 100 % are throttling (Intel); a warning level that was
		// recorded is pressure; none is nominal.
		[][2]string{
			{`(?m)CPU_(Speed|Scheduler)_Limit\s*=\s*([1-9]\d?)\s*$`, "throttled to $2 %"},
			{`(?im)thermal.*=\s*([1-9]\d*)`, "warning level $1"},
			{`No thermal warning level has been recorded|CPU_Speed_Limit`, "nominal"},
		}},
	{"pressure", "/usr/bin/notifyutil -g com.apple.system.thermalpressurelevel",
		// On Apple silicon this reports what pmset does not: of the two, the one that
		// reports pressure wins.
		func(h *result.Host, v string) {
			if v != "" && (v != "nominal" || h.Thermal == "") {
				h.Thermal = v
			}
		},
		[][2]string{ // levels of <libkern/OSThermalNotification.h>
			{`^com\.apple\.system\.thermalpressurelevel 0\s*$`, "nominal"},
			{`^com\.apple\.system\.thermalpressurelevel 1\s*$`, "moderate"},
			{`^com\.apple\.system\.thermalpressurelevel 2\s*$`, "heavy"},
			{`^com\.apple\.system\.thermalpressurelevel 3\s*$`, "trapping"},
			{`^com\.apple\.system\.thermalpressurelevel 4\s*$`, "sleeping"},
		}},
	{"filevault", "/usr/bin/fdesetup status", func(h *result.Host, v string) { h.FileVault = v },
		[][2]string{{`FileVault is On`, "on"}, {`FileVault is Off`, "off"}}},
	versionFact("apfs_version", "Extensions/apfs.kext/Contents", func(h *result.Host, v string) { h.APFS = v }),
	versionFact("disk_images_version", "PrivateFrameworks/DiskImages.framework/Resources",
		func(h *result.Host, v string) { h.DiskImages = v }),
	versionFact("disk_images2_version", "PrivateFrameworks/DiskImages2.framework/Resources",
		func(h *result.Host, v string) { h.DiskImages2 = v }),
	{"backup", "/usr/bin/tmutil status",
		func(h *result.Host, v string) {
			if v != "" {
				h.Busy = append(h.Busy, v)
			}
		},
		[][2]string{{`(?m)^\s*Running\s*=\s*1\s*;?\s*$`, "Time Machine"}}},
}

// versionFact is the version of a part of the system, by its bundle's list of
// properties. defaults(1) reads it in any format.
func versionFact(name, folder string, set func(h *result.Host, value string)) macFact {
	return macFact{name, "/usr/bin/defaults read /System/Library/" + folder + "/Info CFBundleVersion", set,
		[][2]string{{`^\s*(\d[\d.]*)\s*$`, "$1"}}}
}

// firstMatch is the value of the first pattern that matches, "" if none does.
func firstMatch(out string, patterns [][2]string) string {
	for _, p := range patterns {
		re := regexp.MustCompile(p[0])
		if m := re.FindStringSubmatchIndex(out); m != nil {
			return string(re.ExpandString(nil, p[1], out, m))
		}
	}
	return ""
}

var indexer = regexp.MustCompile(`(?m)^\s*([\d.,]+)\s+(mds|mds_stores|mdworker.*)\s*$`)

// macSpotlight adds up what the indexers take in `ps -Aceo pcpu,comm`, in
// percent of one processor.
func macSpotlight(out string) (sum float64) {
	for _, m := range indexer.FindAllStringSubmatch(out, -1) {
		if v, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64); err == nil && v < 1e6 {
			sum += v
		}
	}
	return sum
}

// loadAverage reads vm.loadavg (struct loadavg: three fixed-point uint32,
// padding, an int64 scale); 0 if it is none.
func loadAverage(raw []byte) float64 {
	if len(raw) < 24 || int64(binary.LittleEndian.Uint64(raw[16:])) <= 0 {
		return 0
	}
	return float64(binary.LittleEndian.Uint32(raw)) / float64(binary.LittleEndian.Uint64(raw[16:]))
}

// macVolume is what is used of `diskutil info -plist`.
type macVolume struct {
	MediaName      string
	BusProtocol    string
	SolidState     *bool
	Internal       *bool
	FileVault      bool
	Encryption     bool
	FilesystemName string
	ParentWhole    string `plist:"ParentWholeDisk"`
	Stores         []struct {
		Name string `plist:"APFSPhysicalStore"`
	} `plist:"APFSPhysicalStores"`
}

// readPlist decodes a property list in XML.
func readPlist(out []byte, into any) (err error) {
	// The decoder panics on some malformed input instead of returning an error.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading a property list: %v", r)
		}
	}()
	// An empty or plain text would pass as a property list of the old format.
	format, err := plist.Unmarshal(out, into)
	if err == nil && format != plist.XMLFormat {
		err = errors.New("reading a property list: it is not XML")
	}
	return err
}

var wholeDisk = regexp.MustCompile(`^disk[0-9]{1,5}`)

// whole is the disk to ask about for the model of a volume; "" if there is
// none.
func (v macVolume) whole() string {
	if len(v.Stores) > 0 {
		return wholeDisk.FindString(v.Stores[0].Name)
	}
	return wholeDisk.FindString(v.ParentWhole)
}

// describe fills in a disk from its volume and from the whole disk below it.
func (v macVolume) describe(d *result.Disk, below macVolume) {
	d.Filesystem = cmp.Or(clean(v.FilesystemName), d.Filesystem)
	d.Device, d.Bus = clean(below.MediaName), clean(v.BusProtocol)
	switch {
	case v.FileVault:
		d.Encrypted = "FileVault"
	case v.Encryption:
		d.Encrypted = "yes"
	}
	if v.Internal != nil {
		d.Location = choose(*v.Internal, "internal", "external")
	}
	switch {
	case v.BusProtocol == "Disk Image":
		d.Medium = "unknown"
	case v.SolidState != nil:
		d.Medium = choose(*v.SolidState, "ssd", "hdd")
	}
}

// choose is one of two texts.
func choose(which bool, yes, no string) string {
	if which {
		return yes
	}
	return no
}

// macMemory names the levels of kern.memorystatus_vm_pressure_level.
var macMemory = map[int]string{1: "normal", 2: "warning", 4: "critical"}

// macSwap reads vm.swapusage (struct xsw_usage: total, available and used
// bytes, each a uint64) and gives the bytes in use; 0 if it is none.
func macSwap(raw []byte) int64 {
	if len(raw) < 24 {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(raw[16:])))
}

// indexing are the states that `mdutil -s PATH` prints after the path.
var indexing = [][2]string{{`Indexing enabled`, "on"}, {`Indexing (and searching )?disabled`, "off"}}

// macDisk fills in what the system's tools report of the volume on the device
// ("disk3s5") that is mounted on point. mdutil(1) and tmutil(8) are asked by
// the mount point: they take volumes, not the folders in them.
func macDisk(ctx context.Context, d *result.Disk, device, point string,
	ask func(ctx context.Context, tool string, args ...string) []byte) {
	var volume, below macVolume
	if readPlist(ask(ctx, "/usr/sbin/diskutil", "info", "-plist", device), &volume) == nil {
		below = volume
		if whole := volume.whole(); whole != "" {
			below = macVolume{}
			_ = readPlist(ask(ctx, "/usr/sbin/diskutil", "info", "-plist", whole), &below) // then the model is unknown
		}
		volume.describe(d, below)
	}
	d.Indexed = firstMatch(string(ask(ctx, "/usr/bin/mdutil", "-s", point)), indexing)
	// A heading, then the name of a snapshot in each line.
	d.Snapshots = strings.Count(string(ask(ctx, "/usr/bin/tmutil", "listlocalsnapshots", point)), "\ncom.apple.")
}

// storageDriver is the class of the drivers that count bytes, from
// <IOKit/storage/IOBlockStorageDriver.h>.
const storageDriver = "IOBlockStorageDriver"

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
		if !d.carries(device) {
			continue
		}
		r, w := d.Statistics.Read, d.Statistics.Written
		if r == nil || w == nil || read+*r < read || written+*w < written { // missing, negative or too large
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
func (e registryEntry) carries(device string) bool {
	return e.BSDName == device || slices.ContainsFunc(e.Children, func(c registryEntry) bool {
		return c.Class != storageDriver && c.carries(device)
	})
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
