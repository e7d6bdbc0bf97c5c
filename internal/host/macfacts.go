package host

import (
	"encoding/binary"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// macPressure reads `notifyutil -g com.apple.system.thermalpressurelevel`, which
// tells on Apple silicon what pmset does not: "<name> <level>". "" if it is no level.
func macPressure(out string) string {
	f := strings.Fields(out)
	if len(f) != 2 || f[0] != "com.apple.system.thermalpressurelevel" {
		return ""
	}
	// Levels of <libkern/OSThermalNotification.h>.
	levels := []string{"nominal", "moderate", "heavy", "trapping", "sleeping"}
	n, err := strconv.Atoi(f[1])
	if err != nil || n < 0 || n >= len(levels) {
		return ""
	}
	return levels[n]
}

// hotter puts what two sources say together: whichever tells of pressure wins.
func hotter(pmset, pressure string) string {
	if pressure == "" || pressure == "nominal" && pmset != "" {
		return pmset
	}
	return pressure
}

// macMemory names the level of kern.memorystatus_vm_pressure_level.
func macMemory(level int) string {
	return map[int]string{1: "normal", 2: "warning", 4: "critical"}[level]
}

// macSwap reads vm.swapusage (struct xsw_usage: total, available and used bytes,
// each a uint64) and gives the bytes in use; 0 if it is none.
func macSwap(raw []byte) int64 {
	if len(raw) < 24 {
		return 0
	}
	used := int64(binary.LittleEndian.Uint64(raw[16:]))
	return max(0, used)
}

// macVersion is the version of macOS. The kernel tells programs that were linked for older systems a number that no
// system ever had, 10.16 or 16.x; sw_vers(1) says the true one.
func macVersion(product string, swVers func() string) string {
	if product == "10.16" || strings.HasPrefix(product, "16.") {
		if v := clean(swVers()); v != "" {
			return v
		}
	}
	return product
}

// macDisk fills in what the system's tools tell of the volume on the device ("disk3s5") that is mounted on point.
// mdutil(1) and tmutil(8) are asked by the mount point: they take volumes, not the folders in them.
func macDisk(d *result.Disk, device, point string, ask func(tool string, args ...string) []byte) {
	if v, ok := readVolume(ask("/usr/sbin/diskutil", "info", "-plist", device)); ok {
		below := v
		if whole := v.whole(); whole != "" {
			below, _ = readVolume(ask("/usr/sbin/diskutil", "info", "-plist", whole))
		}
		v.describe(d, below)
	}
	d.Indexed = macIndexing(string(ask("/usr/bin/mdutil", "-s", point)))
	d.Snapshots = macSnapshots(string(ask("/usr/bin/tmutil", "listlocalsnapshots", point)))
}

// macIndexing reads `mdutil -s PATH`: a line with the path, then the state.
func macIndexing(out string) string {
	switch {
	case strings.Contains(out, "Indexing enabled"):
		return "on"
	case strings.Contains(out, "Indexing disabled"), strings.Contains(out, "Indexing and searching disabled"):
		return "off"
	}
	return ""
}

// macSnapshots counts the local snapshots in `tmutil listlocalsnapshots PATH`: a
// heading, then a name in each line.
func macSnapshots(out string) int {
	n := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "com.apple.") {
			n++
		}
	}
	return n
}

// macFileVault reads `fdesetup status`: "FileVault is On." or "Off.".
func macFileVault(out string) string {
	switch {
	case strings.Contains(out, "FileVault is On"):
		return "on"
	case strings.Contains(out, "FileVault is Off"):
		return "off"
	}
	return ""
}

// coreLevel names a level of processors as the system does ("Performance"), in lower case.
func coreLevel(name string, i int) string {
	if name != "" {
		return strings.ToLower(name)
	}
	if i == 0 {
		return "performance"
	}
	return "efficiency"
}
